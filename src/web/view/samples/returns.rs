//! Samples of the list of returns.

use super::{NOW, shell};
use crate::store::return_order::{Listed, Listing, Return, State};
use crate::web::view::Eye;
use crate::web::view::returns::ReturnsPage;

pub fn returns(eye: &Eye, hostile: &str) -> ReturnsPage {
    let listed = |id: i64| Listed {
        row: Return {
            id,
            return_no: format!("R{id}{hostile}"),
            order_no: (id % 2 == 0).then(|| format!("HB{id}{hostile}")),
            is_received: id > 0,
            is_tasked: id > 1,
            raw: None,
            origin: Some(format!("return_orders{hostile}")),
            accepted_at: (id != 2).then_some(NOW - id * 1_000),
            received_at: None,
        },
        pieces: 12_000,
        owed: id % 3,
        manual: id % 2,
    };
    let listing = Listing { rows: (0..5).map(listed).collect(), next: Some(7) };
    ReturnsPage::new(shell(eye, hostile), eye, None, &listing, false)
}

pub fn returns_none(eye: &Eye) -> ReturnsPage {
    ReturnsPage::new(shell(eye, ""), eye, Some(State::Owed), &Listing::default(), true)
}
