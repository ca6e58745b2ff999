//! Case 15: references that differ only in letter case.

use handback::core::order::close::Closed;
use handback::core::words::{OrderStatus, ResourceType};

use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering, Shop, an_order};

use ResourceType::Stock;

on_every_engine!(case_15_references_that_differ_in_letter_case_are_two_orders);

async fn case_15_references_that_differ_in_letter_case_are_two_orders(db: TestDb) {
    let shop = Shop::open(&db).await;
    shop.stock("S", 10).await;
    shop.placed(an_order("5ab4").holding(Stock, "S", 1)).await;
    shop.placed(an_order("5AB4").holding(Stock, "S", 2)).await;
    assert_eq!(shop.stock_figures("S").await, (7, 3, 0));
    assert_eq!(shop.close("5AB4", "buyer").await, Closed::Closed);
    shop.work().await;
    assert_eq!((shop.status("5ab4").await, shop.status("5AB4").await), (OrderStatus::Pending, OrderStatus::Closed));
    assert_eq!(shop.stock_figures("S").await, (9, 1, 0));
    shop.rules_hold().await;
}

on_every_engine!(r17_look_alikes_go_through_the_whole_core_as_different_things);

/// Orders and keys that other comparisons take for one: placed, swept and released together in sets.
async fn r17_look_alikes_go_through_the_whole_core_as_different_things(db: TestDb) {
    let twins = [
        "5ab4",
        "5AB4",
        "5ab4 ",
        "05ab4",
        "5áb4",
        "5a\u{301}b4",
        "5ａb4",
        "🎟",
        "a/b",
        "a'b",
        "a\"b",
        "a\\b",
        "%2F",
        "null",
    ];
    let shop = Shop::open(&db).await;
    for twin in twins {
        shop.stock(twin, 3).await;
        shop.placed(an_order(twin).holding(Stock, twin, 2)).await;
    }
    shop.later(std::time::Duration::from_secs(901));
    assert_eq!(shop.sweep().await.closed, twins.len());
    assert_eq!(shop.work().await.succeeded, twins.len());
    for twin in twins {
        assert_eq!(shop.stock_figures(twin).await, (3, 0, 0), "{twin:?}");
        assert_eq!(shop.moves(twin).await.len(), 2, "{twin:?}");
    }
    shop.rules_hold().await;
}
