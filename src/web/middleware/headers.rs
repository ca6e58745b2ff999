//! Headers of every answer: no script or style but ours, no frame, no sniffing, nothing kept by caches.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;

const FIXED: [(&str, &str); 6] = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=()"),
];

pub fn secure(mut response: Response, nonce: &str, is_https: bool) -> Response {
    let headers = response.headers_mut();
    for (name, value) in FIXED {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if is_https {
        let year = HeaderValue::from_static("max-age=31536000");
        headers.insert(HeaderName::from_static("strict-transport-security"), year);
    }
    if let Ok(policy) = HeaderValue::from_str(&policy(nonce)) {
        headers.insert(HeaderName::from_static("content-security-policy"), policy);
    }
    response
}

/// Scripts need the answer's nonce; no inline script, no inline style, no eval. Only htmx may write
/// markup, and only through its own policy.
fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types htmx"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_allows_nothing_inline_and_no_eval() {
        let policy = policy("abc");
        assert!(policy.starts_with("default-src 'none'") && policy.contains("'nonce-abc'"));
        assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"));
    }
}
