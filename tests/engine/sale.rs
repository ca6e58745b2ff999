//! R7, R8, R9 together: a sale of ten thousand orders with payments before, at and after the close, from many
//! tasks at once. Every order ends in exactly one right state, and money in is money accounted for.

use futures_util::StreamExt as _;
use futures_util::stream;
use handback::core::order::close::Swept;
use handback::core::order::pay::Paid;
use handback::core::order::place::Placed;
use handback::core::words::{OrderStatus, ResourceType};

use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{MINUTE, Ordering, Shop, a_payment, an_order};

use ResourceType::Stock;

const WAVE: usize = 5_000;
const KEYS: usize = 10;
/// Fewer pieces than orders want: what the first wave gives back, the second takes.
const PIECES: i64 = 600;
const AT_ONCE: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Before,
    AtTheClose,
    After,
    Never,
}

fn when(n: usize) -> When {
    [When::Before, When::AtTheClose, When::AtTheClose, When::After, When::After, When::Never][n % 6]
}

fn name(wave: usize, n: usize) -> String {
    format!("w{wave}-{n}")
}

/// Runs `act` for all numbers of a wave, many at once, each in a task of its own.
async fn for_each<F: Future<Output = ()> + Send + 'static>(numbers: Vec<usize>, act: impl Fn(usize) -> F) {
    stream::iter(numbers)
        .map(|n| tokio::spawn(act(n)))
        .buffer_unordered(AT_ONCE)
        .for_each(async |done| done.unwrap())
        .await;
}

fn those(wanted: When) -> Vec<usize> {
    (0..WAVE).filter(|n| when(*n) == wanted).collect()
}

async fn place(shop: &Shop, wave: usize) {
    let shop = shop.clone();
    for_each((0..WAVE).collect(), move |n| {
        let shop = shop.clone();
        async move {
            let order = an_order(&name(wave, n)).holding(Stock, &format!("s{}", n % KEYS), 1);
            let placed = shop.place(order).await;
            assert!(matches!(placed, Placed::Placed | Placed::Lacking(_)), "{placed:?}");
        }
    })
    .await;
}

async fn pay(shop: &Shop, wave: usize, wanted: When) {
    let shop = shop.clone();
    for_each(those(wanted), move |n| {
        let (shop, order_no) = (shop.clone(), name(wave, n));
        async move {
            let answer = shop.payment(a_payment(&order_no, &order_no)).await;
            // Told again, by a channel that didn't hear us: how things stand.
            let again = shop.payment(a_payment(&order_no, &order_no)).await;
            let stands = match answer {
                Paid::Paid | Paid::Restored => Paid::AlreadyPaid,
                other => other,
            };
            assert_eq!(again, stands, "{order_no}");
        }
    })
    .await;
}

async fn sweep_and_work(shop: Shop) {
    while shop.sweep().await != Swept::default() {}
    shop.work().await;
}

on_every_engine!(r7_r8_r9_ten_thousand_orders_with_payments_before_at_and_after_the_close);

async fn r7_r8_r9_ten_thousand_orders_with_payments_before_at_and_after_the_close(db: TestDb) {
    let shop = Shop::with_connections(&db, 12).await;
    for key in 0..KEYS {
        shop.stock(&format!("s{key}"), PIECES).await;
    }
    for wave in 1..=2 {
        let late = tokio::spawn({
            let shop = shop.clone();
            // The first wave's late money comes while the second wave is placing.
            async move {
                if wave == 2 {
                    pay(&shop, 1, When::After).await
                }
            }
        });
        place(&shop, wave).await;
        late.await.unwrap();
        pay(&shop, wave, When::Before).await;
        shop.later(16 * MINUTE);
        let closing = tokio::spawn(sweep_and_work(shop.clone()));
        pay(&shop, wave, When::AtTheClose).await;
        closing.await.unwrap();
        sweep_and_work(shop.clone()).await;
    }
    pay(&shop, 2, When::After).await;
    shop.work().await;
    everything_adds_up(&shop, &db).await;
}

async fn everything_adds_up(shop: &Shop, db: &TestDb) {
    let count = async |what: &str, of: &str| db.count(&format!("SELECT COUNT(*) FROM {of} WHERE {what}")).await;
    let (paid, closed, refund_due) =
        (count("status = 1", "orders").await, count("status = 3", "orders").await, count("status = 5", "orders").await);
    let placed = db.count("SELECT COUNT(*) FROM orders").await;
    assert_eq!(paid + closed + refund_due, placed, "every order is PAID, CLOSED or REFUND_DUE");
    assert!(paid > 1_000 && closed > 500 && refund_due > 0, "all three happened: {paid} {closed} {refund_due}");
    // Each state is the right one for what was paid.
    let applied =
        "SELECT COUNT(*) FROM orders o JOIN payment p ON p.order_no = o.order_no AND p.status = 3 WHERE o.status = 1";
    assert_eq!(db.count(applied).await, paid);
    assert_eq!(count("status = 3", "payment").await, paid, "no payment is applied to another order");
    let due =
        "SELECT COUNT(*) FROM orders o JOIN payment p ON p.order_no = o.order_no AND p.status = 4 WHERE o.status = 5";
    assert_eq!(db.count(due).await, refund_due);
    let silent = "SELECT COUNT(*) FROM orders o WHERE o.status = 3 AND EXISTS (SELECT 1 FROM payment p WHERE p.order_no = o.order_no)";
    assert_eq!(db.count(silent).await, 0, "no closed order has money");
    // Money in = money applied + money to give back + money of orders that were never there.
    let (all, unmatched) = (count("status > 2", "payment").await, count("status = 6", "payment").await);
    assert_eq!(all, paid + refund_due + unmatched);
    assert_eq!(count("action = 5", "order_release_task").await, refund_due, "one refund task each");
    let mut sold = 0;
    for key in 0..KEYS {
        let (available, locked, gone) = shop.stock_figures(&format!("s{key}")).await;
        assert_eq!((available + gone, locked), (PIECES, 0), "s{key}");
        sold += gone;
    }
    assert_eq!(sold, paid);
    assert_eq!(shop.status(&name(1, 0)).await, OrderStatus::Paid);
    shop.rules_hold().await;
}
