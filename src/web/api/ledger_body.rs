//! The bodies of `PUT /ledger/{type}/{key}`: what may stand in one depends on the type, and on
//! whether a key is opened or adjusted.

use utoipa::ToSchema;

use super::fields::{Fields, FromFields, Unread, read_all};
use crate::core::ledger::Adjustment;
use crate::core::text::{AMOUNT_MAX, FieldError, KEY_MAX, NUMBER_MAX, REASON_MAX};
use crate::core::words::{FundsKind, ResourceType};
use crate::store::ledger::NewLedger;

#[derive(Debug, ToSchema)]
#[serde(untagged)]
pub(super) enum PutLedger {
    Counted(OpenCounted),
    Funds(OpenFunds),
    Coupon(OpenCoupon),
    Slot(OpenSlot),
    Adjust(Adjust),
}

/// Opens a key of stock or quota.
#[derive(Debug, ToSchema)]
pub(super) struct OpenCounted {
    #[schema(minimum = 0)]
    available: i64,
}

/// Opens an account of money or points.
#[derive(Debug, ToSchema)]
pub(super) struct OpenFunds {
    /// Minor units, or points
    #[schema(minimum = 0)]
    available: i64,
    #[schema(value_type = String, example = "balance")]
    kind: FundsKind,
    /// Points only
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<i64>,
}

/// Opens one coupon.
#[derive(Debug, ToSchema)]
pub(super) struct OpenCoupon {
    /// The only buyer who may use it
    #[schema(max_length = 128)]
    owner: Option<String>,
    /// `platform` or `merchant:NAME`: who bears its cost
    #[schema(max_length = 128, example = "platform")]
    issuer: String,
    #[schema(value_type = String, format = DateTime)]
    expires_at: i64,
}

/// Opens one seat or time slot.
#[derive(Debug, ToSchema)]
pub(super) struct OpenSlot {}

/// Changes figures by hand, once per `ref`. Either figure may be left out.
#[derive(Debug, ToSchema)]
pub(super) struct Adjust {
    /// Signed; added to available
    adjust: Option<i64>,
    /// Signed; added to locked. Needs the scope `admin`
    adjust_locked: Option<i64>,
    #[schema(max_length = 64)]
    r#ref: String,
    #[schema(max_length = 500)]
    reason: String,
    /// The force-closed task whose debt this settles
    task: Option<i64>,
}

const ADJUST_FIELDS: [&str; 5] = ["adjust", "adjust_locked", "ref", "reason", "task"];

impl PutLedger {
    /// Reads the body that fits the type.
    pub fn read(kind: ResourceType, body: Unread) -> Result<Self, Vec<FieldError>> {
        let is_adjustment = ADJUST_FIELDS.iter().any(|name| body.has(name));
        if is_adjustment && body.has("available") {
            let message = "can't stand beside available: a key is either opened or adjusted";
            return Err(vec![FieldError::new("adjust", message)]);
        }
        match kind {
            ResourceType::Coupon => read_all(body.0).map(Self::Coupon),
            ResourceType::Slot => read_all(body.0).map(Self::Slot),
            _ if is_adjustment => read_all(body.0).map(Self::Adjust),
            ResourceType::Funds => read_all(body.0).map(Self::Funds),
            _ => read_all(body.0).map(Self::Counted),
        }
    }

    /// The row that an opening asks for.
    pub fn into_new(self, resource: ResourceType, key: String) -> NewLedger {
        let bare = NewLedger { resource, key, available: 1, kind: None, owner: None, issuer: None, expires_at: None };
        match self {
            Self::Counted(open) => NewLedger { available: open.available, ..bare },
            Self::Funds(open) => {
                NewLedger { available: open.available, kind: Some(open.kind), expires_at: open.expires_at, ..bare }
            }
            Self::Coupon(open) => {
                let OpenCoupon { owner, issuer, expires_at } = open;
                NewLedger { owner, issuer: Some(issuer), expires_at: Some(expires_at), ..bare }
            }
            Self::Slot(_) | Self::Adjust(_) => bare,
        }
    }
}

impl FromFields for OpenCounted {
    fn read(f: &mut Fields) -> Option<Self> {
        Some(Self { available: f.whole("available", 0, AMOUNT_MAX)? })
    }
}

impl FromFields for OpenFunds {
    fn read(f: &mut Fields) -> Option<Self> {
        let available = f.whole("available", 0, AMOUNT_MAX);
        let kind = f.word("kind", &[("balance", FundsKind::Balance), ("points", FundsKind::Points)]);
        let expires_at = f.opt_moment("expires_at");
        Some(Self { available: available?, kind: kind?, expires_at })
    }
}

impl FromFields for OpenCoupon {
    fn read(f: &mut Fields) -> Option<Self> {
        let owner = f.opt_text("owner", KEY_MAX);
        let issuer = f.text("issuer", KEY_MAX);
        let expires_at = f.moment("expires_at");
        Some(Self { owner, issuer: issuer?, expires_at: expires_at? })
    }
}

impl FromFields for OpenSlot {
    fn read(_: &mut Fields) -> Option<Self> {
        Some(Self {})
    }
}

impl FromFields for Adjust {
    fn read(f: &mut Fields) -> Option<Self> {
        let adjust = f.opt_whole("adjust", -AMOUNT_MAX, AMOUNT_MAX);
        let adjust_locked = f.opt_whole("adjust_locked", -AMOUNT_MAX, AMOUNT_MAX);
        let reference = f.text("ref", NUMBER_MAX);
        let reason = f.text("reason", REASON_MAX);
        let task = f.opt_whole("task", 1, i64::MAX);
        Some(Self { adjust, adjust_locked, r#ref: reference?, reason: reason?, task })
    }
}

impl From<Adjust> for Adjustment {
    fn from(asked: Adjust) -> Self {
        Self {
            available: asked.adjust,
            locked: asked.adjust_locked,
            reference: asked.r#ref,
            reason: asked.reason,
            task: asked.task,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::assert_fields_are_described;
    use super::*;

    #[test]
    fn the_description_names_the_fields_that_are_read() {
        assert_fields_are_described::<OpenCounted>();
        assert_fields_are_described::<OpenFunds>();
        assert_fields_are_described::<OpenCoupon>();
        assert_fields_are_described::<OpenSlot>();
        assert_fields_are_described::<Adjust>();
    }
}
