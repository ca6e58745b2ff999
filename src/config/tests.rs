use super::*;

fn from(text: &str) -> Result<Config, Problems> {
    Config::load(Inputs::default().with_file("handback.toml", text))
}

fn refusal(text: &str) -> String {
    from(text).expect_err("should be refused").to_string()
}

fn with(name: &str, value: &str) -> Result<Config, Problems> {
    Config::load(Inputs::default().with_variable(name, value))
}

#[test]
fn an_empty_configuration_has_the_documented_defaults() {
    let config = from("").expect("defaults");
    assert_eq!(config.database.url.expose(), "sqlite://handback.db");
    assert!(config.database.migrate);
    assert!(!config.metrics.require_token);
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.order.pay_within_s, 900);
    assert_eq!(config.scan.interval.as_millis(), 1000);
    assert_eq!(config.retry.delays_ms, [1000, 5000, 30_000, 300_000, 1_800_000]);
    assert_eq!(config.retry.max_failures, 8);
    assert!((config.retry.jitter - 0.2).abs() < f64::EPSILON);
    assert_eq!(config.coupon.policy("platform").on_release, OnRelease::Keep);
    assert_eq!(config.coupon.extend_days, 3);
    assert!(config.coupon.extend_once);
    assert_eq!(config.late_payment, LatePayment::TakeBack);
    assert_eq!(config.triggers.enable, [Trigger::Scan]);
    assert!(config.remote.is_empty() && config.mapped.ledgers.is_empty());
    assert_eq!(config.channel.ask_times, 3);
    assert_eq!(config.channel.ask_every.as_millis(), 60_000);
    assert_eq!(config.reconcile.at, TimeOfDay { hour: 3, minute: 10 });
    assert_eq!(config.reconcile.zone, "Asia/Shanghai");
    assert_eq!(config.two_person.force_close, SecondPerson::Never);
    assert_eq!(config.display.zone, "Asia/Shanghai");
    assert_eq!(config.display.language, None);
}

#[test]
fn every_layer_wins_over_those_before() {
    let file = "[database]\nurl = \"sqlite://file.db\"\n[server]\nlisten = \"127.0.0.1:1\"\n";
    let inputs = || Inputs::default().with_file("handback.toml", file);
    let url = |inputs| {
        let config = Config::load(inputs).expect("fine");
        config.database.url.expose().to_owned()
    };
    assert_eq!(url(inputs()), "sqlite://file.db");
    let inputs = || inputs().with_variable("DATABASE_URL", "sqlite://plain.db");
    assert_eq!(url(inputs()), "sqlite://plain.db");
    let inputs = || inputs().with_variable("HANDBACK_DATABASE__URL", "sqlite://own.db");
    assert_eq!(url(inputs()), "sqlite://own.db");

    let inputs = || inputs().with_variable("HANDBACK_SERVER__LISTEN", "127.0.0.1:2");
    let port = |inputs| Config::load(inputs).expect("fine").server.listen.port();
    assert_eq!(port(inputs()), 2);
    assert_eq!(port(inputs().with_listen(Some("127.0.0.1:3".into()))), 3);
}

#[test]
fn every_problem_is_told_at_once_with_its_key_and_place() {
    let inputs = Inputs::default()
        .with_file(
            "handback.toml",
            "[order]\npay_within_s = \"15m\"\n\n[retry]\nmax_failure = 3\njitter = 2.5\n[typo]\n",
        )
        .with_variable("HANDBACK_SCAN__INTERVAL_MS", "soon")
        .with_variable("HANDBACK_RETRY_MAX_FAILURES", "3");
    let refusal = Config::load(inputs).expect_err("refused").to_string();
    for line in [
        "6 problems",
        "order.pay_within_s (handback.toml:2): must be a whole number from 1 to 2592000, not \"15m\"",
        "retry.max_failure (handback.toml:5): unknown key; did you mean retry.max_failures?",
        "retry.jitter (handback.toml:6): must be a number from 0 to 1, not 2.5",
        "typo (handback.toml:7): unknown key",
        "scan.interval_ms (HANDBACK_SCAN__INTERVAL_MS): must be a whole number from 10 to 3600000, not \"soon\"",
        "HANDBACK_RETRY_MAX_FAILURES: unknown key; did you mean HANDBACK_RETRY__MAX_FAILURES?",
    ] {
        assert!(refusal.contains(line), "{line}\nmissing in:\n{refusal}");
    }
}

#[test]
fn variables_are_read_as_what_their_key_is() {
    let config = Config::load(
        Inputs::default()
            .with_variable("HANDBACK_RETRY__MAX_FAILURES", "3")
            .with_variable("HANDBACK_RETRY__DELAYS_MS", "100, 200")
            .with_variable("HANDBACK_RETRY__JITTER", "0")
            .with_variable("HANDBACK_DATABASE__MIGRATE", "false")
            .with_variable("HANDBACK_LATE_PAYMENT", "refund")
            .with_variable("HANDBACK_TRIGGERS__ENABLE", "[\"wheel\"]")
            .with_variable("HANDBACK_DISPLAY__LANGUAGE", "zh")
            .with_variable("HANDBACK_DISPLAY__ZONE", "")
            .with_variable("HANDBACK_SERVICE_HOST", "10.0.0.1"),
    )
    .expect("fine");
    assert_eq!(config.retry.max_failures, 3);
    assert_eq!(config.retry.delays_ms, [100, 200]);
    assert!(!config.database.migrate);
    assert_eq!(config.late_payment, LatePayment::Refund);
    assert_eq!(config.triggers.enable, [Trigger::Scan, Trigger::Wheel]);
    assert_eq!(config.display.language, Some(Language::Chinese));
    assert_eq!(config.display.zone, "Asia/Shanghai", "an empty variable is not set");
}

#[test]
fn an_issuer_overrides_only_what_it_names() {
    let file = "[coupon]\non_release = \"extend\"\nextend_days = 5\n\
                [coupon.issuer.\"merchant:M1\"]\nextend_days = 9\n";
    let inputs = Inputs::default()
        .with_file("handback.toml", file)
        .with_variable("HANDBACK_COUPON__ISSUER__merchant:M2__ON_RELEASE", "keep")
        .with_variable("HANDBACK_COUPON__ISSUER__PLATFORM__EXTEND_ONCE", "false");
    let coupon = Config::load(inputs).expect("fine").coupon;
    assert_eq!(coupon.policy("merchant:M1").extend_days, 9);
    assert_eq!(coupon.policy("merchant:M1").on_release, OnRelease::Extend);
    assert_eq!(coupon.policy("merchant:M2").on_release, OnRelease::Keep);
    assert_eq!(coupon.policy("merchant:M2").extend_days, 5);
    assert!(!coupon.policy("platform").extend_once);
    assert_eq!(coupon.policy("merchant:M3").extend_days, 5);
    assert!(refusal("[coupon.issuer.somebody]\n").contains("merchant:"));
}

#[test]
fn a_remote_type_has_defaults_and_needs_its_address() {
    let config = Config::load(
        Inputs::default()
            .with_variable("HANDBACK_REMOTE__STOCK__BASE_URL", "https://wms.example/hb")
            .with_variable("HANDBACK_REMOTE__STOCK__SECRET_ENV", "HANDBACK_WMS_SECRET")
            .with_variable("HANDBACK_WMS_SECRET", "s3cret"),
    )
    .expect("fine");
    let remote = &config.remote[0];
    assert_eq!(remote.kind, "stock");
    assert_eq!(remote.secret.as_ref().expect("secret").expose(), "s3cret");
    assert_eq!(remote.supports.len(), 4);
    assert!(!format!("{config:?}").contains("s3cret"));

    assert!(refusal("[remote.stock]\ntimeout_ms = 5\n").contains("remote.stock.base_url"));
    assert!(refusal("[remote.stok]\nbase_url = \"http://a\"\n").contains("unknown key"));
    let no_secret = "[channel]\nbase_url = \"http://c\"\nsecret_env = \"NOT_SET\"\n";
    assert!(refusal(no_secret).contains("NOT_SET, which isn't set"));
}

#[test]
fn a_mapped_type_names_the_columns_it_lacks() {
    let file = "[mapped.stock]\ntable = \"shop.sku\"\nkey_column = \"sku\"\n\
                available_column = \"free\"\nlocked_column = \"held\"\n";
    let config = from(file).expect("fine");
    assert_eq!(config.mapped.ledgers[0].table, "shop.sku");
    assert_eq!(config.mapped.ledgers[0].sold_column, None);

    let refused = refusal("[mapped.coupon]\ntable = \"c\"\nkey_column = \"id; drop table c\"\n");
    for line in ["mapped.coupon.key_column", "mapped.coupon.status_column", "mapped.coupon.values.unused"] {
        assert!(refused.contains(line), "{refused}");
    }
    let both = format!("{file}[remote.stock]\nbase_url = \"http://wms\"\n");
    assert!(refusal(&both).contains("one owner"));
    assert!(refusal("[mapped.orders]\ntable = \"o\"\n").contains("mapped.orders.open_value"));
}

#[test]
fn a_trigger_needs_the_address_it_works_with() {
    let refused = refusal("[triggers]\nenable = [\"redis\", \"broker\"]\n");
    assert!(refused.contains("redis.url") && refused.contains("amqp.url"), "{refused}");
    let config = from("[triggers]\nenable = [\"redis\"]\n[redis]\nurl = \"redis://:pw@c\"\n");
    let redis = config.expect("fine").triggers.redis.expect("address");
    assert_eq!(redis.expose(), "redis://:pw@c");
}

#[test]
fn the_two_person_rule_is_a_word_or_an_amount() {
    let rule = |text: &str| from(text).expect("fine").two_person.force_close;
    assert_eq!(rule("two_person.force_close = \"always\"\n"), SecondPerson::Always);
    let over = "two_person.force_close = { amount_over = 5000 }\n";
    assert_eq!(rule(over), SecondPerson::AmountOver(5000));
    let typed = with("HANDBACK_TWO_PERSON__ADJUST", "{ amount_over = 7 }").expect("fine");
    assert_eq!(typed.two_person.adjust, SecondPerson::AmountOver(7));
    let inputs =
        Inputs::default().with_file("handback.toml", over).with_variable("HANDBACK_TWO_PERSON__FORCE_CLOSE", "never");
    let overruled = Config::load(inputs).expect("fine").two_person.force_close;
    assert_eq!(overruled, SecondPerson::Never);
    assert!(refusal("two_person.force_close = \"sometimes\"\n").contains("amount_over"));
}

#[test]
fn no_password_is_repeated_in_a_complaint_or_shown() {
    for (name, value) in [
        ("HANDBACK_DATABASE__URL", "oracle://app:s3cret@db"),
        ("DATABASE_URL", "app:s3cret@db"),
        ("HANDBACK_REDIS__URL", "s3cret"),
        ("HANDBACK_CHANNEL__BASE_URL", "channel:s3cret@host"),
        ("HANDBACK_SERVER__PUBLIC_URL", "https://app:s3cret@host"),
        ("HANDBACK_ORDER__PAY_WITHIN_S", "postgres://app:s3cret@db"),
    ] {
        let refused = with(name, value).expect_err(name).to_string();
        assert!(refused.contains(name) && !refused.contains("s3cret"), "{refused}");
    }
    let config = with("DATABASE_URL", "postgres://app:s3cret@db/hb").expect("fine");
    assert!(!format!("{config:?}").contains("s3cret"));
    let entry = config.entries().iter().find(|entry| entry.key == "database.url");
    let entry = entry.expect("shown");
    assert_eq!(entry.value.as_deref(), Some("\"postgres://app:***@db/hb\""));
    assert_eq!(entry.origin, Origin::Environment("DATABASE_URL".into()));
}

#[test]
fn what_is_shown_can_be_read_again() {
    let config = from("two_person.adjust = { amount_over = 5 }\n").expect("fine");
    let lines: String = config
        .entries()
        .iter()
        .filter_map(|entry| Some(format!("{} = {}\n", entry.key, entry.value.as_ref()?)))
        .collect();
    let again = from(&lines).unwrap_or_else(|problems| panic!("{problems}\n{lines}"));
    assert_eq!(again.two_person.adjust, SecondPerson::AmountOver(5));
}

#[test]
fn a_section_where_a_value_belongs_and_the_other_way_round_is_explained() {
    assert!(refusal("order = 5\n").contains("is a section"));
    assert!(refusal("[scan.interval_ms]\nx = 1\n").contains("scan.interval_ms.x"));
    assert!(refusal("[retry]\ndelays_ms = [\"soon\"]\n").contains("retry.delays_ms"));
    assert!(refusal("[retry]\ndelays_ms = []\n").contains("retry.delays_ms"));
    assert!(refusal("late_payment = 1999-01-01\n").contains("late_payment"));
}

#[test]
fn the_public_url_follows_from_the_listener_unless_it_is_set() {
    let bound = "127.0.0.1:41233".parse().expect("address");
    let url = |text: &str| from(text).expect("fine").public_url(bound).expect("fine");
    assert_eq!(url("").to_string(), "http://127.0.0.1:41233");
    let set = "[server]\npublic_url = \"https://hb.example\"\n";
    assert_eq!(url(set).to_string(), "https://hb.example");
    let plain = "[server]\npublic_url = \"http://hb.example\"\n";
    assert!(refusal(plain).contains("server.public_url (handback.toml:2): must begin with https://"));
    assert!(from(&format!("{plain}allow_plain_http = true\n")).is_ok());
}

#[test]
fn the_documentation_names_every_key_with_its_default() {
    let documentation = include_str!("../../docs/configuration.md");
    for entry in from("").expect("defaults").entries() {
        let cell = match &entry.value {
            Some(value) => format!("| `{}` | `{value}` |", entry.key),
            None => format!("| `{}` | ", entry.key),
        };
        assert!(documentation.contains(&cell), "docs/configuration.md lacks {cell}");
    }
}
