//! Every answer of the contract's table and its verdict; what is sent; what is recorded of each try.

use handback::core::words::{AttemptOutcome, FailureKind, ResourceType, TaskStatus};
use handback::store::task;
use serde_json::json;

use super::{SECRET, Town};
use crate::support::database::{TestDb, on_every_engine};
use crate::support::shop::{Ordering, START_MS, an_order};
use crate::support::standin::{Does, is_signed_with};

use ResourceType::{Coupon, Stock};

on_every_engine!(a_release_says_all_that_the_contract_names_and_leaves_one_flow_row);

async fn a_release_says_all_that_the_contract_names_and_leaves_one_flow_row(db: TestDb) {
    let town = Town::open(&db).await;
    town.shop.stock("s", 5).await;
    // Nobody locks a remote resource: there is no ledger row, and none is missed.
    town.shop.placed(an_order("A/1").holding(Coupon, "券 7", 1).holding(Stock, "s", 2)).await;
    assert_eq!(town.shop.moves("A/1").await.len(), 1, "only the stock was locked here");
    town.shop.close("A/1", "buyer").await;
    town.work().await;

    let seen = town.coupons.seen("/release");
    assert_eq!(seen.len(), 1);
    let expected = json!({
        "order_no": "A/1", "ref_no": "A/1", "source": "close", "round": 1, "type": "coupon", "key": "券 7",
        "qty": 1, "action": "release", "attempt": 1,
    });
    assert_eq!(seen[0].body, expected);
    // printf '["release","A/1","close",1,"coupon","券 7"]' | sha256sum
    assert_eq!(seen[0].key.as_deref(), Some(KEY));
    assert!(is_signed_with(&seen[0], SECRET), "{:?}", seen[0].headers);
    assert!(!is_signed_with(&seen[0], "another"));
    let timestamp = seen[0].headers["handback-timestamp"].to_str().unwrap();
    assert_eq!(timestamp, (START_MS / 1000).to_string());

    let tasks = town.shop.tasks("A/1").await;
    let coupon = tasks.iter().find(|task| task.resource == Coupon).unwrap();
    assert_eq!((coupon.status, coupon.retry, coupon.ledger_id), (TaskStatus::Succeeded, 0, None));
    let flows = town.shop.flows("A/1").await;
    let own: Vec<_> = flows.iter().filter(|flow| flow.resource == Coupon).collect();
    assert_eq!(own.len(), 1);
    assert_eq!((own[0].qty, own[0].task_id, own[0].ledger_id), (1, Some(coupon.id), None));
    let tries = task::attempts(&mut town.shop.core.db.read().await.unwrap(), coupon).await.unwrap();
    assert_eq!(tries.len(), 1, "{tries:#?}");
    assert_eq!((tries[0].n, tries[0].outcome), (1, Some(AttemptOutcome::Succeeded)));
    town.all_is_well().await;
}

const KEY: &str = "hb1-39721b9c9571bcc03860a6ba52dbbb81c3308011db55e48bef1cdae222ad3130";

/// Status, kind, in doubt, next wait.
type Stands = (TaskStatus, Option<FailureKind>, bool, Option<i64>);

on_every_engine!(every_answer_has_the_verdict_of_the_table);

async fn every_answer_has_the_verdict_of_the_table(db: TestDb) {
    let town = Town::impatient(&db).await;
    let unknown = |kind| (TaskStatus::Retrying, Some(kind), true, Some(1000));
    let refused = |kind| (TaskStatus::Manual, Some(kind), false, None);
    let busy = |wait| (TaskStatus::Retrying, Some(FailureKind::RemoteBusy), false, Some(wait));
    let done = (TaskStatus::Succeeded, None, false, None);
    use FailureKind::{LockedInsufficient, Rejected, RemoteError, RemoteTimeout, ResourceMissing, StateMismatch};
    let table: Vec<(&str, Does, Stands)> = vec![
        ("applied", Does::Apply, done),
        ("already", Does::say(200, r#"{"result": "already_applied"}"#), done),
        ("wrong json", Does::say(200, "{\"result\": "), unknown(RemoteError)),
        ("other word", Does::say(200, r#"{"result": "fine"}"#), unknown(RemoteError)),
        ("no word", Does::say(204, ""), unknown(RemoteError)),
        ("again", Does::Apply, done),
        ("redirect", Does::Say(307, vec![("location", "/settle".into())], String::new()), unknown(RemoteError)),
        ("500", Does::say(500, "boom"), unknown(RemoteError)),
        ("404", Does::say(404, r#"{"reason": "resource_missing"}"#), unknown(RemoteError)),
        ("huge", Does::Huge, unknown(RemoteError)),
        ("answers", Does::Apply, done),
        ("hangs", Does::Hang, unknown(RemoteTimeout)),
        ("drips", Does::Drip, unknown(RemoteTimeout)),
        ("cut", Does::ApplyAndCut, unknown(RemoteTimeout)),
        ("409 locked", Does::refuse(409, "locked_insufficient"), refused(LockedInsufficient)),
        ("422 state", Does::refuse(422, "state_mismatch"), refused(StateMismatch)),
        ("409 missing", Does::refuse(409, "resource_missing"), refused(ResourceMissing)),
        ("422 other", Does::refuse(422, "not on a Sunday"), refused(Rejected)),
        ("409 html", Does::say(409, "<html>"), unknown(RemoteError)),
        ("429", Does::busy(429, "7"), busy(7000)),
        ("503 plain", Does::say(503, "down"), busy(1000)),
        ("503 long", Does::busy(503, "86400"), busy(1_800_000)),
        ("429 date", Does::busy(429, "Mon, 30 Nov 2026 10:00:45 GMT"), busy(45_000)),
    ];
    for (name, does, expected) in table {
        town.closed(name).await;
        town.coupons.next("/release", does);
        town.coupon_lane().await;
        let task = town.shop.task(name).await;
        let wait = task.next_at.map(|at| at - town.shop.core.now());
        assert_eq!((task.status, task.kind, task.is_in_doubt, wait), expected, "{name}: {task:#?}");
        assert!(task.claimed_by.is_none(), "{name}");
        assert_eq!(task.retry, i64::from(task.status != TaskStatus::Succeeded), "{name}");
    }
    assert!(town.coupons.seen("/settle").is_empty(), "no redirect is followed");
    town.work_to_the_end().await;
    town.all_is_well().await;
}

on_every_engine!(what_was_applied_and_not_said_is_a_duplicate_the_next_time);

async fn what_was_applied_and_not_said_is_a_duplicate_the_next_time(db: TestDb) {
    let town = Town::impatient(&db).await;
    let lies = [
        Does::ApplyAndHang,
        Does::ApplyAndCut,
        Does::ApplyAndSay(500, "boom".into()),
        Does::ApplyAndSay(200, "{".into()),
    ];
    for (n, lie) in lies.into_iter().enumerate() {
        let no = format!("o{n}");
        town.closed(&no).await;
        town.coupons.next("/release", lie);
        town.coupon_lane().await;
        assert!(town.shop.task(&no).await.is_in_doubt);
        town.at_next_try(&no).await;
        town.coupon_lane().await;
        town.is_succeeded(&no).await;
        let task = town.shop.task(&no).await;
        assert_eq!((task.outcome, task.retry), (Some(AttemptOutcome::Duplicate), 1));
    }
    let keys: Vec<_> = town.coupons.seen("/release").into_iter().filter_map(|seen| seen.key).collect();
    assert_eq!(keys.len(), 8);
    for pair in keys.chunks(2) {
        assert_eq!(pair[0], pair[1], "the same key each time");
    }
    assert_eq!(town.coupons.effect_count(), 4);
    town.all_is_well().await;
}

on_every_engine!(eight_failures_leave_a_task_to_a_person_in_doubt);

async fn eight_failures_leave_a_task_to_a_person_in_doubt(db: TestDb) {
    let town = Town::open(&db).await;
    town.closed("o").await;
    town.coupons.always("/release", Does::say(500, "no"));
    town.work_to_the_end().await;
    let task = town.shop.task("o").await;
    assert_eq!((task.status, task.retry, task.is_in_doubt), (TaskStatus::Manual, 8, true));
    assert_eq!(town.coupons.seen("/release").len(), 8);
    let attempts: Vec<_> = town.coupons.seen("/release").iter().map(|seen| seen.body["attempt"].clone()).collect();
    assert_eq!(attempts, (1..=8).map(|n| json!(n)).collect::<Vec<_>>());
    town.all_is_well().await;
}

on_every_engine!(an_action_that_the_service_does_not_offer_is_never_sent);

async fn an_action_that_the_service_does_not_offer_is_never_sent(db: TestDb) {
    use handback::adapters::RemoteSettings;
    use handback::core::words::Action;
    let town = Town::with(&db, |settings| RemoteSettings { actions: vec![Action::Settle], ..settings }).await;
    town.closed("o").await;
    town.work().await;
    let task = town.shop.task("o").await;
    assert_eq!((task.status, task.kind), (TaskStatus::Manual, Some(FailureKind::Rejected)));
    assert!(town.coupons.seen("/release").is_empty());
    town.all_is_well().await;
}

on_every_engine!(r24_an_address_with_a_password_reaches_no_error_and_no_page);

async fn r24_an_address_with_a_password_reaches_no_error_and_no_page(db: TestDb) {
    use handback::adapters::RemoteSettings;
    // Nobody listens there.
    let base_url = "http://app:hunter2@127.0.0.1:9/hb?token=s3same".to_owned();
    let town = Town::with(&db, |settings| RemoteSettings { base_url, ..settings }).await;
    town.closed("o").await;
    town.coupon_lane().await;
    let task = town.shop.task("o").await;
    assert_eq!((task.kind, task.is_in_doubt), (Some(FailureKind::RemoteTimeout), true));
    let tries = task::attempts(&mut town.shop.core.db.read().await.unwrap(), &task).await.unwrap();
    for said in [format!("{task:?}"), format!("{tries:?}")] {
        assert!(!said.contains("hunter2") && !said.contains("s3same") && !said.contains(SECRET), "{said}");
    }
    town.all_is_well().await;
}

on_every_engine!(a_shops_own_row_for_an_unknown_order_goes_to_the_service);

async fn a_shops_own_row_for_an_unknown_order_goes_to_the_service(db: TestDb) {
    let town = Town::open(&db).await;
    db.execute(&format!(
        "INSERT INTO order_release_task (order_no, resource_type, biz_key, qty, next_at) VALUES ('shop-1', 2, 'c', 1, {START_MS})"
    ))
    .await
    .unwrap();
    town.work().await;
    town.is_succeeded("shop-1").await;
    assert_eq!(town.coupons.effects(), [("release".into(), "c".into(), 1)]);
    // The release came before its lock.
    let placed = town.shop.place(an_order("shop-1").holding(Coupon, "c", 1)).await;
    assert_eq!(placed, handback::core::order::place::Placed::Tombstone);
    town.all_is_well().await;
}
