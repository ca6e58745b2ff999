//! The description of the API (OpenAPI), generated from the code that answers.

use axum::Json;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder, SecurityRequirement, ServerBuilder};
use utoipa_axum::router::OpenApiRouter;

use crate::web::state::App;

const ABOUT: &str = "Closes unpaid orders and gives back what they held, exactly once. Amounts are integers in minor \
    units; times are RFC 3339 in UTC with milliseconds. Errors are problem documents (RFC 9457) with a stable `code`: \
    400 `bad_json`, `bad_query`; 401 `unauthenticated`; 403 `forbidden`; 404 `not_found`; 409 as named; 413 \
    `too_large`; 422 `invalid` with `errors`; 503 `database_away` with Retry-After.";

/// The part of the description that is no route.
pub(super) fn frame() -> OpenApi {
    let info = InfoBuilder::new().title("Handback").version(env!("CARGO_PKG_VERSION")).description(Some(ABOUT));
    let mut frame = OpenApiBuilder::new()
        .info(info)
        .servers(Some([ServerBuilder::new().url("/api/v1").build()]))
        .security(Some([SecurityRequirement::new::<&str, [&str; 0], &str>("token", [])]))
        .build();
    let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    frame.components.get_or_insert_default().add_security_scheme("token", token);
    frame
}

/// The description of all this
#[utoipa::path(get, path = "/openapi.json", tag = "figures", security(()),
    responses((status = 200, description = "This document")))]
pub(super) async fn show() -> Json<OpenApi> {
    Json(described())
}

fn described() -> OpenApi {
    let router: OpenApiRouter<App> = super::routes();
    router.into_openapi()
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use utoipa::openapi::schema::Schema;
    use utoipa::openapi::{HttpMethod, RefOr};
    use utoipa::{PartialSchema, ToSchema};

    use super::super::fields::{Fields, FromFields};
    use super::*;

    /// What a body's description names and what reading it asks for are the same fields.
    pub fn assert_fields_are_described<T: FromFields + ToSchema + PartialSchema>() {
        let RefOr::T(Schema::Object(object)) = T::schema() else { panic!("{} is an object", T::name()) };
        let described: BTreeSet<&str> = object.properties.keys().map(String::as_str).collect();
        let read: BTreeSet<&str> = Fields::asked_by::<T>().into_iter().collect();
        assert_eq!(described, read, "{}", T::name());
    }

    #[test]
    fn every_route_is_described() {
        let document = serde_json::to_value(described()).expect("JSON");
        let routes = [
            ("/ledger/{type}/{key}", "put"),
            ("/ledger/{type}/{key}", "get"),
            ("/ledger/{type}/{key}", "delete"),
            ("/ledger/{type}/{key}/flow", "get"),
            ("/orders", "post"),
            ("/orders/{no}", "get"),
            ("/orders/{no}/payments", "post"),
            ("/orders/{no}/close", "post"),
            ("/orders/{no}/reduce", "post"),
            ("/orders/{no}/complete", "post"),
            ("/orders/{no}/refunded", "post"),
            ("/orders/{no}/release", "post"),
            ("/returns", "post"),
            ("/returns/{no}/received", "post"),
            ("/returns/{no}", "get"),
            ("/tasks", "get"),
            ("/tasks/{id}", "get"),
            ("/tasks/{id}/retry", "post"),
            ("/tasks/{id}/force-close", "post"),
            ("/reconcile", "post"),
            ("/reconcile/{run}", "get"),
            ("/stats", "get"),
            ("/idle", "get"),
            ("/openapi.json", "get"),
        ];
        for (path, method) in routes {
            let operation = &document["paths"][path][method];
            assert!(operation["summary"].is_string(), "{method} {path}: {operation}");
        }
        let described = document["paths"].as_object().expect("paths").values();
        let described: usize = described.filter_map(|path| path.as_object()).map(serde_json::Map::len).sum();
        assert_eq!(described, routes.len());
        let _ = HttpMethod::Get;
    }
}
