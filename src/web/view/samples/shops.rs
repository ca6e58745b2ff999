//! Samples of an order that the shop keeps itself.

use super::*;
use crate::store::mapped::documents::Document;
use crate::store::shop_order::{Kept, ShopOrder};

/// With a row in the shop's table, or with a table that can't be read.
pub fn shops_order(eye: &Eye, is_readable: bool, hostile: &str) -> OrderPage {
    let document = Document {
        no: format!("A1{hostile}"),
        status: format!("PENDING{hostile}"),
        counts: true,
        items: [(format!("sku-40318{hostile}"), 5)].into(),
    };
    let view = ShopOrder {
        order_no: format!("A1{hostile}"),
        kept: if is_readable { Kept::There(document) } else { Kept::Unreadable },
        table: Some(format!("shop.orders{hostile}")),
        tasks: vec![stock(918_204, TaskStatus::Succeeded, hostile), task(918_207, TaskStatus::Retrying, hostile)],
        failed: (1..=4).map(|n| (918_207, attempt(n, hostile))).collect(),
        flow: vec![flow(Action::Release, hostile)],
        payments: vec![Payment {
            id: 1,
            order_no: format!("A1{hostile}"),
            channel: format!("pay-a{hostile}"),
            channel_txn: format!("20261111005521{hostile}"),
            status: PaymentStatus::Unmatched,
            amount: 26_800,
            currency: "CNY".to_owned(),
            occurred_at: NOW - 602_000,
            recorded_at: NOW - 600_000,
            lacking: None,
        }],
        conflicts: Vec::new(),
        returns: vec![returned(hostile)],
    };
    OrderPage::of_shop(shell(eye, hostile), eye, &view, 8)
}
