//! R13: a COMMIT whose answer is lost is unknown. Each operation is conditional on what it changes, so it
//! is run again on another connection and says how things stand; every effect exists once.
//!
//! On servers only: SQLite's COMMIT answers in the same process.

use handback::core::order::close::Closed;
use handback::core::order::pay::Paid;
use handback::core::order::place::Placed;
use handback::core::words::{Action, ResourceType};

use crate::support::database::{TestDb, on_every_server};
use crate::support::proxy::{Cut, Proxy};
use crate::support::servers::Server;
use crate::support::shop::{Ordering, Shop, an_order};

use ResourceType::Stock;

on_every_server!(r13_a_commit_that_is_lost_before_or_after_the_server_saw_it_counts_once);

async fn r13_a_commit_that_is_lost_before_or_after_the_server_saw_it_counts_once(db: TestDb) {
    let server = Server::shared(db.engine).port;
    let proxy = Proxy::in_front_of(server).await;
    let through = TestDb::at(db.engine, db.url.replace(&format!(":{server}/"), &format!(":{}/", proxy.port)));
    assert_ne!(through.url, db.url);
    let shop = Shop::open(&through).await;
    shop.stock("s", 100).await;

    for how in [Cut::BeforeCommit, Cut::AfterCommit] {
        let before = proxy.lost();
        let no = |name: &str| format!("{name}-{}", how as u8);
        proxy.lose_the_next_commit(how);
        let placed = shop.place(an_order(&no("paid")).holding(Stock, "s", 2)).await;
        let expected = if how == Cut::AfterCommit { Placed::Same } else { Placed::Placed };
        assert_eq!(placed, expected, "it says how things stand");

        proxy.lose_the_next_commit(how);
        let paid = shop.pay(&no("paid")).await;
        assert_eq!(paid, if how == Cut::AfterCommit { Paid::AlreadyPaid } else { Paid::Paid });

        shop.placed(an_order(&no("closed")).holding(Stock, "s", 3)).await;
        proxy.lose_the_next_commit(how);
        let closed = shop.close(&no("closed"), "buyer").await;
        assert_eq!(closed, if how == Cut::AfterCommit { Closed::AlreadyClosed } else { Closed::Closed });

        proxy.lose_the_next_commit(how);
        shop.work().await;
        assert_eq!(proxy.lost() - before, 4, "four commits were lost");
        for (order, last) in [("paid", (Action::Settle, 2)), ("closed", (Action::Release, 3))] {
            let moves = shop.moves(&no(order)).await;
            assert_eq!(moves.len(), 2, "{moves:?}");
            assert_eq!((moves[1].0, moves[1].2), last);
        }
    }
    assert_eq!(shop.stock_figures("s").await, (96, 0, 4));
    shop.rules_hold().await;
}
