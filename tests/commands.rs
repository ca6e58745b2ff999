//! Every command of the built binary, run as a user runs it: what it answers, where, and with which
//! exit code.

use serde_json::{Value, json};

use crate::support::database::{Engine, TestDb, on_every_engine};
use crate::support::process::{Api, Ended, Handback};

/// Nothing listens there.
const NOBODY: &str = "postgres://app:s3cret-word@127.0.0.1:1/hb";

fn run<const N: usize>(db: &TestDb, args: [&str; N]) -> Ended {
    Handback::new(args).database(&db.url).run()
}

fn with_input<const N: usize>(db: &TestDb, args: [&str; N], input: &str) -> Ended {
    Handback::new(args).database(&db.url).input(input).run()
}

/// A command that answered 'no': nothing on standard output, the reason on standard error.
fn no(ended: &Ended, why: &str) {
    assert_eq!((ended.code(), ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    assert!(ended.stderr.contains(why), "{ended:?}");
}

on_every_engine!(tokens_are_made_listed_and_revoked, users_are_added_listed_and_changed, rows_are_imported_all_or_none);

async fn tokens_are_made_listed_and_revoked(db: TestDb) {
    run(&db, ["migrate"]).ok();
    for scope in ["read", "shop", "operate", "admin", "metrics"] {
        let made = run(&db, ["token", "create", scope, "--scope", scope]).ok();
        let token = made.stdout.strip_suffix('\n').unwrap();
        assert!(token.starts_with("hb_") && token.len() == 46 && !token.contains(char::is_whitespace), "{token:?}");
    }
    no(&run(&db, ["token", "create", "read", "--scope", "admin"]), "already");
    let listed = run(&db, ["token", "list"]).ok().stdout;
    assert_eq!(listed.lines().count(), 6, "{listed}");
    assert!(!listed.contains("hb_"), "{listed}");
    run(&db, ["token", "revoke", "read"]).ok();
    no(&run(&db, ["token", "revoke", "read"]), "read");
    assert!(run(&db, ["token", "list"]).ok().stdout.contains("revoked"));
    assert_eq!(run(&db, ["token", "create", "x", "--scope", "god"]).code(), Some(2));
    assert_eq!(run(&db, ["token", "create", "a\nb", "--scope", "read"]).code(), Some(2));
}

async fn users_are_added_listed_and_changed(db: TestDb) {
    let code = run(&db, ["setup-code"]).ok().stdout;
    assert!(code.starts_with("set up at http://127.0.0.1:8080/setup#"), "{code}");
    let add = ["user", "add", "王芳", "--role", "operator", "--password-stdin"];
    let added = with_input(&db, add, "long enough a word\n").ok();
    assert_eq!(added.stdout, "");
    no(&with_input(&db, add, "long enough a word\n"), "王芳");
    let short = with_input(&db, ["user", "add", "bo", "--role", "viewer", "--password-stdin"], "short\n");
    assert_eq!(short.code(), Some(2), "{short:?}");
    assert!(short.stderr.contains("password") && !short.stderr.contains("short\n"), "{short:?}");
    no(&run(&db, ["setup-code"]), "account");
    run(&db, ["user", "disable", "王芳"]).ok();
    assert!(run(&db, ["user", "list"]).ok().stdout.contains("disabled"));
    run(&db, ["user", "enable", "王芳"]).ok();
    with_input(&db, ["user", "passwd", "王芳", "--password-stdin"], "another long word").ok();
    no(&run(&db, ["user", "disable", "nobody"]), "nobody");
    // Without a terminal there is nobody to ask, and a password is never an argument.
    assert_eq!(run(&db, ["user", "passwd", "王芳"]).code(), Some(2));
    assert_eq!(run(&db, ["user", "passwd", "王芳", "--password", "x"]).code(), Some(2));
    assert_eq!(run(&db, ["user", "add", "x", "--role", "god", "--password-stdin"]).code(), Some(2));
}

async fn rows_are_imported_all_or_none(db: TestDb) {
    let import = |what: &str, text: &str| {
        Handback::new(["import"]).arg(what).arg("rows.csv").file("rows.csv", text).database(&db.url).run()
    };
    for (what, text) in [
        ("stock", "key,available\ns1,5\n\"s 2\",0\n"),
        ("quota", "available,key\r\n7,q1\r\n"),
        ("funds", "key,kind,available,expires_at\nu1,balance,900,\nu1p,points,30,2030-01-01T00:00:00Z\n"),
        (
            "coupons",
            "key,owner,issuer,expires_at\nc1,u1,platform,2030-01-01T00:00:00Z\nc2,,merchant:M1,2030-01-01T08:00:00+08:00\n",
        ),
        ("slots", "key\nseat-1\n座-2\n"),
    ] {
        let rows = text.lines().count() - 1;
        assert_eq!(import(what, text).ok().stdout, format!("imported {rows} rows\n"));
    }
    let bad = import("stock", "key,available\nnew,1\ns1,5\nx,-1\ny,one\nz\n");
    no(&bad, "nothing was imported");
    for line in ["line 4: available", "line 5: available", "line 6: must have 2 fields"] {
        assert!(bad.stderr.contains(line), "{}", bad.stderr);
    }
    let taken = import("stock", "key,available\nnew,1\ns1,5\n");
    no(&taken, "line 3: key \"s1\" exists already");
    no(&import("slots", "seat\nx\n"), "line 1: the head must be key");
    assert_eq!(db.count("SELECT COUNT(*) FROM ledger").await, 9);
    assert_eq!(Handback::new(["import", "stock", "nowhere.csv"]).database(&db.url).run().code(), Some(2));
    run(&db, ["check"]).ok();
}

on_every_engine!(a_server_says_where_it_listens_and_ends_when_told, a_server_without_a_worker_only_answers);

async fn a_server_says_where_it_listens_and_ends_when_told(db: TestDb) {
    let token = run(&db, ["token", "create", "t", "--scope", "admin"]).ok().stdout;
    let (mut server, url) =
        Handback::new(["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]).database(&db.url).serve();
    // The line is the promise that everything is there.
    let api = Api::new(&url, token.trim());
    assert_eq!(api.put("/ledger/stock/s1", json!({"available": 3})).await.status, 200);
    let set_up = server.wait_for_line("set up at ");
    assert!(set_up.starts_with(&format!("set up at {url}/setup#")), "{set_up}");
    let order = json!({"order_no": "o1", "buyer": "u", "amount": 1, "currency": "CNY",
        "holds": [{"type": "stock", "key": "s1", "qty": 1}]});
    assert_eq!(api.post("/orders", order).await.status, 201);
    assert_eq!(api.post("/orders/o1/close", json!({"reason": "buyer"})).await.body["result"], "closed");
    assert_eq!(api.get("/idle?wait_s=30").await.body["idle"], true);
    assert_eq!(api.get("/ledger/stock/s1").await.body, json!({"available": 3, "locked": 0, "sold": 0}));
    assert_eq!(run_health(&url).ok().stdout, "ready\n");
    assert_eq!(run_health(&format!("{url}/healthz")).code(), Some(0));
    assert_eq!(run_health(&format!("{url}/nothing")).code(), Some(1));

    let ended = server.stop().ok();
    assert_eq!(ended.stdout, format!("listening on {url}\n{set_up}\n"), "nothing else goes there");
    for line in ended.stderr.lines() {
        let entry: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(entry["level"] != "ERROR", "{line}");
    }
    let gone = run_health(&url);
    assert_eq!(gone.code(), Some(1), "{gone:?}");
}

fn run_health(url: &str) -> Ended {
    Handback::new(["health", "--url"]).arg(url).run()
}

async fn a_server_without_a_worker_only_answers(db: TestDb) {
    let (server, url) = Handback::new(["serve", "--no-worker", "--listen", "127.0.0.1:0"]).database(&db.url).serve();
    let api = Api::with_new_token(&url, &db.url, "admin");
    assert_eq!(api.put("/ledger/slot/s1", json!({})).await.status, 200);
    let order = json!({"order_no": "o1", "buyer": "u", "amount": 1, "currency": "CNY",
        "holds": [{"type": "slot", "key": "s1", "qty": 1}]});
    assert_eq!(api.post("/orders", order).await.status, 201);
    assert_eq!(api.post("/orders/o1/close", json!({"reason": "buyer"})).await.status, 200);
    assert_eq!(api.get("/idle").await.body["due"], 1);
    // A worker of its own does what is left. On SQLite there is one process at a time.
    let server = if db.engine == Engine::Sqlite {
        server.stop().ok();
        None
    } else {
        Some((server, api))
    };
    let worker = Handback::new(["worker"]).database(&db.url).start();
    let left = "SELECT COUNT(*) FROM order_release_task WHERE status <> 1";
    let started = std::time::Instant::now();
    while db.count(left).await > 0 {
        assert!(started.elapsed().as_secs() < 30, "{}", worker.stderr());
        tokio::task::yield_now().await;
    }
    assert_eq!(worker.stop().ok().stdout, "");
    if let Some((server, api)) = server {
        assert_eq!(api.get("/ledger/slot/s1").await.body["status"], "free");
        server.stop().ok();
    }
    let check: Value = serde_json::from_str(&run(&db, ["check", "--json"]).ok().stdout).unwrap();
    assert_eq!(check["ok"], true);
    assert!(check["rules"].as_array().unwrap().iter().all(|rule| rule["broken"] == 0 && rule["rule"].is_string()));
}

on_every_engine!(where_commands_may_not_change_tables_they_ask_for_migrate);

async fn where_commands_may_not_change_tables_they_ask_for_migrate(db: TestDb) {
    let list = || Handback::new(["token", "list"]).env("HANDBACK_DATABASE__MIGRATE", "false").database(&db.url);
    let serve = Handback::new(["serve", "--listen", "127.0.0.1:0"]).env("HANDBACK_DATABASE__MIGRATE", "false");
    for refused in [list().run(), serve.database(&db.url).run()] {
        assert_eq!((refused.code(), refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
        assert!(refused.stderr.contains("handback migrate"), "{refused:?}");
    }
    run(&db, ["migrate"]).ok();
    list().run().ok();
}

on_every_engine!(a_broken_rule_is_told_by_the_exit_code, load_is_measured_and_checked);

async fn a_broken_rule_is_told_by_the_exit_code(db: TestDb) {
    let file = Handback::new(["import", "stock", "s.csv"]).file("s.csv", "key,available\ns1,5\n").database(&db.url);
    file.run().ok();
    db.execute("UPDATE ledger SET available = 6").await.unwrap();
    let broken = run(&db, ["check", "--json"]);
    assert_eq!(broken.code(), Some(1), "{broken:?}");
    let check: Value = serde_json::from_str(&broken.stdout).unwrap();
    assert_eq!(check["ok"], false);
    assert!(run(&db, ["check"]).stdout.contains("BROKEN"));
}

async fn load_is_measured_and_checked(db: TestDb) {
    for (kind, more) in [("release", "--hot"), ("close", "--baseline")] {
        let measured =
            Handback::new(["bench", kind, "--tasks", "300", "--keys", "20", "--workers", "1", "--batch", "100"])
                .arg(more)
                .arg("--json")
                .database(&db.url)
                .run();
        let figures: Value = serde_json::from_str(&measured.ok().stdout).unwrap();
        for name in
            ["rate", "unit", "seconds", "tasks", "transactions", "baseline_rate", "ratio", "rules_ok", "peak_rss_mib"]
        {
            assert!(figures.get(name).is_some(), "{name}: {figures}");
        }
        assert_eq!(figures["rules_ok"], true, "{figures}");
        for table in ["counter_delta", "counter", "resource_flow", "order_release_task", "hold", "orders", "ledger"] {
            db.execute(&format!("DELETE FROM {table}")).await.unwrap();
        }
    }
}

#[test]
fn the_demo_runs_for_as_long_as_asked_and_leaves_nothing_broken() {
    let demo = Handback::new(["demo", "--listen", "127.0.0.1:0", "--speed", "2000", "--seed", "7", "--for", "3"]);
    let ended = demo.database("sqlite://never-touched.db").run().ok();
    assert!(ended.stdout.starts_with("listening on http://127.0.0.1:"), "{}", ended.stdout);
    for role in ["viewer", "service", "operator", "lead", "admin"] {
        assert!(ended.stdout.contains(role), "{}", ended.stdout);
    }
    assert!(!ended.stderr.contains("ERROR"), "{}", ended.stderr);
}

#[test]
fn the_configuration_is_shown_with_secrets_masked_or_refused_whole() {
    let shown = Handback::new(["config", "check"]).database("postgres://app:s3cret-word@db/hb").run().ok();
    assert!(shown.stdout.contains("database.url = \"postgres://app:***@db/hb\""), "{}", shown.stdout);
    assert!(!shown.stdout.contains("s3cret-word"));
    let file = "[retry]\nmax_failures = 3\n[order]\npay_within_s = 60\n";
    let shown = Handback::new(["--config", "other.toml", "config", "check"])
        .file("other.toml", file)
        .env("HANDBACK_RETRY__MAX_FAILURES", "5")
        .run()
        .ok()
        .stdout;
    let line = |key: &str| shown.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{key}\n{shown}"));
    assert!(line("retry.max_failures = 5").ends_with("# HANDBACK_RETRY__MAX_FAILURES"), "{shown}");
    assert!(line("order.pay_within_s = 60").ends_with("# other.toml:4"), "{shown}");

    let wrong = "databse.url = \"x\"\n[order]\npay_within_s = 0\n";
    let refused =
        Handback::new(["config", "check"]).file("handback.toml", wrong).env("HANDBACK_SCAN__INTERVAL_MS", "x").run();
    assert_eq!((refused.code(), refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
    for key in ["database.url", "order.pay_within_s (handback.toml:3)", "HANDBACK_SCAN__INTERVAL_MS", "3 problems"] {
        assert!(refused.stderr.contains(key), "{key}\n{}", refused.stderr);
    }
    let missing = Handback::new(["--config", "nowhere.toml", "config", "check"]).run();
    assert_eq!(missing.code(), Some(2), "{missing:?}");
}

#[test]
fn a_server_refuses_to_send_passwords_in_the_clear() {
    let serve = || {
        Handback::new(["serve", "--listen", "127.0.0.1:0"]).env("HANDBACK_SERVER__PUBLIC_URL", "http://shop.example")
    };
    let refused = serve().run();
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    assert!(refused.stderr.contains("server.allow_plain_http"), "{refused:?}");
    let everywhere = Handback::new(["serve", "--listen", "0.0.0.0:0"]).run();
    assert_eq!(everywhere.code(), Some(2), "{everywhere:?}");
    let (server, _) = serve().env("HANDBACK_SERVER__ALLOW_PLAIN_HTTP", "true").serve();
    server.stop().ok();
}

#[test]
fn wrong_usage_is_2_and_a_database_that_is_away_is_3() {
    for wrong in
        [["fly", "high"], ["serve", "--fast"], ["token", "create"], ["--log-format", "xml"], ["user", "promote"]]
    {
        let ended = Handback::new(wrong).run();
        assert_eq!((ended.code(), ended.stdout.as_str()), (Some(2), ""), "{wrong:?} {ended:?}");
    }
    assert_eq!(Handback::new(["health", "--url", "ftp://x"]).run().code(), Some(2));
    assert_eq!(Handback::new(["migrate"]).env("RUST_LOG", "a=b=c").run().code(), Some(2));
    assert_eq!(Handback::new(["--version"]).run().code(), Some(0));
    assert_eq!(Handback::new(["--help"]).run().code(), Some(0));
    for args in [vec!["check"], vec!["migrate"], vec!["token", "list"], vec!["user", "list"], vec!["setup-code"]] {
        let mut command = Handback::new([]).database(NOBODY);
        for arg in &args {
            command = command.arg(arg);
        }
        let away = command.run();
        assert_eq!((away.code(), away.stdout.as_str()), (Some(3), ""), "{args:?} {away:?}");
        assert!(!away.stderr.contains("s3cret-word"), "{args:?} {away:?}");
    }
}

on_every_engine!(reconciling_exits_with_one_only_for_what_nothing_explains);

async fn reconciling_exits_with_one_only_for_what_nothing_explains(db: TestDb) {
    run(&db, ["migrate"]).ok();
    let shop = crate::support::shop::Shop::open(&db).await;
    shop.stock("sku", 10).await;
    let order = crate::support::shop::an_order("A");
    shop.placed(crate::support::shop::Ordering::holding(order, handback::core::words::ResourceType::Stock, "sku", 2))
        .await;
    shop.close("A", "buyer").await;
    let healthy = run(&db, ["reconcile"]).ok().stdout;
    assert!(healthy.contains("0 not explained"), "a task that waits explains it: {healthy}");
    db.execute("UPDATE ledger SET locked = 1").await.unwrap();
    let found = run(&db, ["reconcile", "--type", "stock", "--json"]);
    assert_eq!(found.code(), Some(1), "{found:?}");
    let shown: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!((&shown["status"], &shown["diffs"][0]["unexplained"]), (&json!("done"), &json!(-1)));
    assert_eq!(run(&db, ["reconcile", "--type", "coupon"]).code(), Some(0));
    let printed = run(&db, ["reconcile"]);
    assert_eq!(printed.code(), Some(1));
    assert!(printed.stdout.contains("double_release stock sku: -1"), "{printed:?}");
    assert_eq!(run(&db, ["reconcile", "--type", "payment"]).code(), Some(2));
}
