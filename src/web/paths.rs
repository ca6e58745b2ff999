//! Every address the console links to, made in one place, so that an order number with a slash or a
//! space in it still opens its page.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but what RFC 3986 leaves unreserved.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub const OVERVIEW: &str = "/";
pub const TASKS: &str = "/tasks";
pub const ORDERS: &str = "/orders";
pub const REFUNDS: &str = "/refunds";
pub const SCREENS: &str = "/admin/screens";
pub const WALL: &str = "/wall";
pub const RECONCILE: &str = "/reconcile";
pub const RETURNS: &str = "/returns";
pub const ACCOUNT: &str = "/account";
pub const HELP: &str = "/help";
pub const LOGIN: &str = "/login";
pub const LOGOUT: &str = "/logout";
pub const SETUP: &str = "/setup";
pub const EVENTS: &str = "/events";
pub const LANGUAGE: &str = "/account/language";
pub const SESSIONS_END: &str = "/account/sessions/end";

fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

pub fn task(id: i64) -> String {
    format!("/tasks/{id}")
}

pub fn reconcile_run(id: i64) -> String {
    format!("/reconcile/{id}")
}

pub fn wall(screen: i64) -> String {
    format!("/wall/{screen}")
}

pub fn retries(id: i64) -> String {
    format!("/tasks/{id}/retries")
}

pub fn closures(id: i64) -> String {
    format!("/tasks/{id}/closures")
}

pub fn order(no: &str) -> String {
    format!("/orders/{}", encode(no))
}

/// The page that asks why a buyer's name is looked at, and where the answer goes.
pub fn reveals(no: &str) -> String {
    format!("{}/reveals", order(no))
}

/// The page that asks whether a payment is taken as it is.
pub fn acceptances(no: &str, payment: i64) -> String {
    format!("{}/payments/{payment}/acceptances", order(no))
}

/// The page that asks whether a payment that fits nothing goes back.
pub fn give_backs(payment: i64) -> String {
    format!("/payments/{payment}/refunds")
}

/// The page that asks whether a transaction that was told twice has been looked into.
pub fn settlements(conflict: i64) -> String {
    format!("/payment-conflicts/{conflict}/settlements")
}

/// The page that asks whether a tombstone is lifted.
pub fn tombstone(no: &str) -> String {
    format!("{}/tombstone/lifts", order(no))
}

pub fn calls(id: i64) -> String {
    format!("/tasks/{id}/calls")
}

/// The task list under a filter; pairs without a value are left out.
pub fn tasks(query: &[(&str, &str)]) -> String {
    with_query(TASKS, query)
}

pub fn with_query(path: &str, query: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = query
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name}={}", encode(value)))
        .collect();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) }
}

/// A path to go back to after an act, only when it is one of ours: no scheme, no host.
pub fn own_path(candidate: &str) -> Option<&str> {
    let ours = candidate.starts_with('/') && !candidate.starts_with("//") && !candidate.contains(['\\', '\r', '\n']);
    ours.then_some(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_order_numbers_stay_one_segment() {
        assert_eq!(order("A/1 ?#%é"), "/orders/A%2F1%20%3F%23%25%C3%A9");
    }

    #[test]
    fn empty_filters_leave_the_address_short() {
        assert_eq!(tasks(&[("status", ""), ("type", "stock")]), "/tasks?type=stock");
        assert_eq!(tasks(&[("status", "")]), "/tasks");
    }

    #[test]
    fn a_way_back_never_leaves_the_console() {
        assert_eq!(own_path("/tasks?x=1"), Some("/tasks?x=1"));
        for evil in ["//evil.example", "https://evil.example", "/\\evil.example", ""] {
            assert_eq!(own_path(evil), None, "{evil}");
        }
    }
}
