//! The bodies about orders: placing, paying, closing, releasing by type.

use serde::Serialize;
use utoipa::ToSchema;

use super::fields::{Fields, FromFields};
use crate::core::order::pay::{NewPayment, Said};
use crate::core::order::place::{NewHold, NewOrder};
use crate::core::order::reduce::Reduce;
use crate::core::text::{
    AMOUNT_MAX, HOLDS_MAX, KEY_MAX, NUMBER_MAX, PAY_WITHIN_MAX_S, QTY_MAX, REASON_MAX, check_currency,
};
use crate::core::words::ResourceType;

/// What an order may hold.
pub(super) const TYPES: &[(&str, ResourceType)] = &[
    ("stock", ResourceType::Stock),
    ("coupon", ResourceType::Coupon),
    ("funds", ResourceType::Funds),
    ("quota", ResourceType::Quota),
    ("slot", ResourceType::Slot),
];

#[derive(Debug, ToSchema)]
pub(super) struct PlaceOrder {
    #[schema(max_length = 64)]
    order_no: String,
    #[schema(max_length = 128)]
    buyer: String,
    /// Minor units. 0 is paid at once
    #[schema(minimum = 0)]
    amount: i64,
    #[schema(example = "CNY")]
    currency: String,
    /// Two holds of the same type and key add up
    #[schema(max_items = 200)]
    holds: Vec<HoldAsked>,
    #[schema(minimum = 1, maximum = 2_592_000)]
    pay_within_s: Option<i64>,
    /// For display
    #[schema(max_items = 200)]
    lines: Option<Vec<Line>>,
}

#[derive(Debug, ToSchema)]
pub(super) struct HoldAsked {
    #[schema(value_type = String, example = "stock")]
    r#type: ResourceType,
    #[schema(max_length = 128)]
    key: String,
    /// 1 at most for a coupon or slot; 0 makes no hold
    #[schema(minimum = 0, maximum = 1_000_000_000_000_i64)]
    qty: i64,
}

/// One line of an order, as a person knows it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Line {
    #[schema(max_length = 500)]
    name: String,
    qty: Option<i64>,
    /// Minor units
    price: Option<i64>,
}

impl PlaceOrder {
    pub fn into_new(self) -> NewOrder {
        let lines = self.lines.and_then(|lines| serde_json::to_string(&lines).ok());
        let holds = self.holds.into_iter();
        NewOrder {
            order_no: self.order_no,
            buyer: self.buyer,
            amount: self.amount,
            currency: self.currency,
            holds: holds.map(|hold| NewHold { resource: hold.r#type, key: hold.key, qty: hold.qty }).collect(),
            pay_within_s: self.pay_within_s,
            lines,
        }
    }
}

impl FromFields for PlaceOrder {
    fn read(f: &mut Fields) -> Option<Self> {
        let order_no = f.text("order_no", NUMBER_MAX);
        let buyer = f.text("buyer", KEY_MAX);
        let amount = f.whole("amount", 0, AMOUNT_MAX);
        let currency = f.checked("currency", check_currency);
        let holds = f.list("holds", HOLDS_MAX);
        let pay_within_s = f.opt_whole("pay_within_s", 1, PAY_WITHIN_MAX_S);
        let lines = f.opt_list("lines", HOLDS_MAX);
        Some(Self {
            order_no: order_no?,
            buyer: buyer?,
            amount: amount?,
            currency: currency?,
            holds: holds?,
            pay_within_s,
            lines,
        })
    }
}

impl FromFields for HoldAsked {
    fn read(f: &mut Fields) -> Option<Self> {
        let resource = f.word("type", TYPES);
        let key = f.text("key", KEY_MAX);
        let most = if resource.is_some_and(ResourceType::is_single) { 1 } else { QTY_MAX };
        let qty = f.whole("qty", 0, most);
        Some(Self { r#type: resource?, key: key?, qty: qty? })
    }
}

impl FromFields for Line {
    fn read(f: &mut Fields) -> Option<Self> {
        let name = f.text("name", REASON_MAX);
        let qty = f.opt_whole("qty", 0, QTY_MAX);
        let price = f.opt_whole("price", 0, AMOUNT_MAX);
        Some(Self { name: name?, qty, price })
    }
}

#[derive(Debug, ToSchema)]
pub(super) struct TellPayment {
    #[schema(value_type = String, example = "succeeded")]
    status: Said,
    #[schema(max_length = 64)]
    channel: String,
    #[schema(max_length = 64)]
    channel_txn: String,
    /// Minor units
    #[schema(minimum = 0)]
    amount: i64,
    #[schema(example = "CNY")]
    currency: String,
    #[schema(value_type = String, format = DateTime)]
    occurred_at: i64,
}

impl TellPayment {
    pub fn into_new(self, order_no: String) -> NewPayment {
        NewPayment {
            order_no,
            said: self.status,
            channel: self.channel,
            channel_txn: self.channel_txn,
            amount: self.amount,
            currency: self.currency,
            occurred_at: self.occurred_at,
        }
    }
}

impl FromFields for TellPayment {
    fn read(f: &mut Fields) -> Option<Self> {
        let said = [("started", Said::Started), ("failed", Said::Failed), ("succeeded", Said::Succeeded)];
        let status = f.word("status", &said);
        let channel = f.text("channel", NUMBER_MAX);
        let channel_txn = f.text("channel_txn", NUMBER_MAX);
        let amount = f.whole("amount", 0, AMOUNT_MAX);
        let currency = f.checked("currency", check_currency);
        let occurred_at = f.moment("occurred_at");
        Some(Self {
            status: status?,
            channel: channel?,
            channel_txn: channel_txn?,
            amount: amount?,
            currency: currency?,
            occurred_at: occurred_at?,
        })
    }
}

#[derive(Debug, ToSchema)]
pub(super) struct ReduceOrder {
    /// The shop's own name for it; each counts once
    #[schema(max_length = 64)]
    r#ref: String,
    /// What is to be paid from now on, in minor units
    #[schema(minimum = 0)]
    amount: i64,
    #[schema(max_items = 200)]
    holds: Vec<HoldAsked>,
}

impl ReduceOrder {
    pub fn into_reduce(self, order_no: String) -> Reduce {
        let holds = self.holds.into_iter();
        let holds = holds.map(|hold| NewHold { resource: hold.r#type, key: hold.key, qty: hold.qty }).collect();
        Reduce { order_no, reference: self.r#ref, amount: self.amount, holds }
    }
}

impl FromFields for ReduceOrder {
    fn read(f: &mut Fields) -> Option<Self> {
        let reference = f.text("ref", NUMBER_MAX);
        let amount = f.whole("amount", 0, AMOUNT_MAX);
        let holds = f.list("holds", HOLDS_MAX);
        Some(Self { r#ref: reference?, amount: amount?, holds: holds? })
    }
}

#[derive(Debug, ToSchema)]
pub(super) struct TellRefund {
    #[schema(max_length = 64)]
    pub channel_txn: String,
}

impl FromFields for TellRefund {
    fn read(f: &mut Fields) -> Option<Self> {
        Some(Self { channel_txn: f.text("channel_txn", NUMBER_MAX)? })
    }
}

/// Why something is done.
#[derive(Debug, ToSchema)]
pub(super) struct Reason {
    /// For a close: `timeout`, `buyer`, `operator`, `channel` or any other text
    #[schema(max_length = 500)]
    pub reason: String,
}

impl FromFields for Reason {
    fn read(f: &mut Fields) -> Option<Self> {
        Some(Self { reason: f.text("reason", REASON_MAX)? })
    }
}

#[derive(Debug, ToSchema)]
pub(super) struct ReleaseType {
    #[schema(value_type = String, example = "stock")]
    pub r#type: ResourceType,
    #[schema(max_length = 500)]
    pub reason: String,
}

impl FromFields for ReleaseType {
    fn read(f: &mut Fields) -> Option<Self> {
        let resource = f.word("type", TYPES);
        let reason = f.text("reason", REASON_MAX);
        Some(Self { r#type: resource?, reason: reason? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::assert_fields_are_described;
    use super::*;

    #[test]
    fn the_description_names_the_fields_that_are_read() {
        assert_fields_are_described::<PlaceOrder>();
        assert_fields_are_described::<HoldAsked>();
        assert_fields_are_described::<Line>();
        assert_fields_are_described::<TellPayment>();
        assert_fields_are_described::<Reason>();
        assert_fields_are_described::<ReleaseType>();
    }
}
