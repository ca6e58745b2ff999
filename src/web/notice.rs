//! The answer to one's own act, carried over the redirect that follows it. The cookie holds a code and
//! figures, never a text, so nobody can make the console say something of theirs.

use crate::core::words::{FailureKind, TaskStatus};
use crate::web::i18n::Lang;
use crate::web::view::{Flash, Tone};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    RetrySucceeded(i64),
    RetryAlready(i64),
    RetryFailed(i64, Option<FailureKind>),
    NotRetryable(i64, TaskStatus),
    OrderOpen(i64),
    Closed(i64),
    AlreadyClosed(i64),
    NotClosable(i64, TaskStatus),
    Stale(i64),
    PaymentAccepted,
    PaymentNotAccepted,
    MoneyGoesBack,
    MoneyNotGivenBack,
    ConflictSettled,
    ConflictSettledBefore,
    Lifted,
    NoTombstone,
    Called(i64),
    ScreenRevoked,
    RunStarted(i64),
    RunGoesOn(i64),
    Saved,
    SessionEnded,
    SetUp,
    SignedOut,
    Expired,
}

impl Notice {
    pub fn code(self) -> String {
        match self {
            Self::RetrySucceeded(id) => format!("retry_succeeded.{id}"),
            Self::RetryAlready(id) => format!("retry_already.{id}"),
            Self::RetryFailed(id, kind) => format!("retry_failed.{id}.{}", kind.map_or(0, FailureKind::code)),
            Self::NotRetryable(id, status) => format!("not_retryable.{id}.{}", status.code()),
            Self::OrderOpen(id) => format!("order_open.{id}"),
            Self::Closed(id) => format!("closed.{id}"),
            Self::AlreadyClosed(id) => format!("already_closed.{id}"),
            Self::NotClosable(id, status) => format!("not_closable.{id}.{}", status.code()),
            Self::Stale(id) => format!("stale.{id}"),
            Self::PaymentAccepted => "payment_accepted".to_owned(),
            Self::PaymentNotAccepted => "payment_not_accepted".to_owned(),
            Self::MoneyGoesBack => "money_goes_back".to_owned(),
            Self::MoneyNotGivenBack => "money_not_given_back".to_owned(),
            Self::ConflictSettled => "conflict_settled".to_owned(),
            Self::ConflictSettledBefore => "conflict_settled_before".to_owned(),
            Self::Lifted => "lifted".to_owned(),
            Self::NoTombstone => "no_tombstone".to_owned(),
            Self::Called(id) => format!("called.{id}"),
            Self::ScreenRevoked => "screen_revoked".to_owned(),
            Self::RunStarted(id) => format!("run_started.{id}"),
            Self::RunGoesOn(id) => format!("run_goes_on.{id}"),
            Self::Saved => "saved".to_owned(),
            Self::SessionEnded => "session_ended".to_owned(),
            Self::SetUp => "set_up".to_owned(),
            Self::SignedOut => "signed_out".to_owned(),
            Self::Expired => "expired".to_owned(),
        }
    }

    pub fn parse(code: &str) -> Option<Notice> {
        let mut parts = code.split('.');
        let name = parts.next()?;
        let mut number = || parts.next()?.parse::<i64>().ok();
        Some(match name {
            "retry_succeeded" => Self::RetrySucceeded(number()?),
            "retry_already" => Self::RetryAlready(number()?),
            "retry_failed" => Self::RetryFailed(number()?, FailureKind::from_code(number()?)),
            "not_retryable" => Self::NotRetryable(number()?, TaskStatus::from_code(number()?)?),
            "order_open" => Self::OrderOpen(number()?),
            "closed" => Self::Closed(number()?),
            "already_closed" => Self::AlreadyClosed(number()?),
            "not_closable" => Self::NotClosable(number()?, TaskStatus::from_code(number()?)?),
            "stale" => Self::Stale(number()?),
            "payment_accepted" => Self::PaymentAccepted,
            "payment_not_accepted" => Self::PaymentNotAccepted,
            "money_goes_back" => Self::MoneyGoesBack,
            "money_not_given_back" => Self::MoneyNotGivenBack,
            "conflict_settled" => Self::ConflictSettled,
            "conflict_settled_before" => Self::ConflictSettledBefore,
            "lifted" => Self::Lifted,
            "no_tombstone" => Self::NoTombstone,
            "called" => Self::Called(number()?),
            "screen_revoked" => Self::ScreenRevoked,
            "run_started" => Self::RunStarted(number()?),
            "run_goes_on" => Self::RunGoesOn(number()?),
            "saved" => Self::Saved,
            "session_ended" => Self::SessionEnded,
            "set_up" => Self::SetUp,
            "signed_out" => Self::SignedOut,
            "expired" => Self::Expired,
            _ => return None,
        })
    }

    pub fn flash(self, lang: Lang) -> Flash {
        let (tone, text) = match self {
            Self::RetrySucceeded(id) => (Tone::Good, lang.f("flash.retry_succeeded", &[("id", &id)])),
            Self::RetryAlready(id) => (Tone::Good, lang.f("flash.retry_already", &[("id", &id)])),
            Self::RetryFailed(id, kind) => {
                let kind = kind.map_or("–", |kind| lang.word("kind", kind.word()));
                (Tone::Warn, lang.f("flash.retry_failed", &[("id", &id), ("kind", &kind)]))
            }
            Self::NotRetryable(id, status) => {
                let status = lang.word("task", status.word());
                (Tone::Bad, lang.f("flash.not_retryable", &[("id", &id), ("status", &status)]))
            }
            Self::OrderOpen(id) => (Tone::Bad, lang.f("flash.order_open", &[("id", &id)])),
            Self::Closed(id) => (Tone::Good, lang.f("flash.closed", &[("id", &id)])),
            Self::AlreadyClosed(id) => (Tone::Calm, lang.f("flash.already_closed", &[("id", &id)])),
            Self::NotClosable(id, status) => {
                let status = lang.word("task", status.word());
                (Tone::Bad, lang.f("flash.not_closable", &[("id", &id), ("status", &status)]))
            }
            Self::Stale(id) => (Tone::Bad, lang.f("flash.stale", &[("id", &id)])),
            Self::PaymentAccepted => (Tone::Good, lang.t("flash.payment_accepted").to_owned()),
            Self::PaymentNotAccepted => (Tone::Bad, lang.t("flash.payment_not_accepted").to_owned()),
            Self::MoneyGoesBack => (Tone::Good, lang.t("flash.money_goes_back").to_owned()),
            Self::MoneyNotGivenBack => (Tone::Bad, lang.t("flash.money_not_given_back").to_owned()),
            Self::ConflictSettled => (Tone::Good, lang.t("flash.conflict_settled").to_owned()),
            Self::ConflictSettledBefore => (Tone::Calm, lang.t("flash.conflict_settled_before").to_owned()),
            Self::Lifted => (Tone::Good, lang.t("flash.lifted").to_owned()),
            Self::NoTombstone => (Tone::Calm, lang.t("flash.no_tombstone").to_owned()),
            Self::Called(id) => (Tone::Good, lang.f("flash.called", &[("id", &id)])),
            Self::ScreenRevoked => (Tone::Good, lang.t("flash.screen_revoked").to_owned()),
            Self::RunStarted(id) => (Tone::Calm, lang.f("flash.run_started", &[("id", &id)])),
            Self::RunGoesOn(id) => (Tone::Calm, lang.f("flash.run_goes_on", &[("id", &id)])),
            Self::Saved => (Tone::Good, lang.t("flash.saved").to_owned()),
            Self::SessionEnded => (Tone::Good, lang.t("flash.session_ended").to_owned()),
            Self::SetUp => (Tone::Good, lang.t("flash.set_up").to_owned()),
            Self::SignedOut => (Tone::Calm, lang.t("flash.signed_out").to_owned()),
            Self::Expired => (Tone::Warn, lang.t("flash.expired").to_owned()),
        };
        Flash { tone, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_reads_back_and_a_made_up_one_says_nothing() {
        let all = [
            Notice::RetryFailed(7, Some(FailureKind::Rejected)),
            Notice::RetryFailed(7, None),
            Notice::NotClosable(9, TaskStatus::Succeeded),
            Notice::Saved,
        ];
        for notice in all {
            assert_eq!(Notice::parse(&notice.code()), Some(notice));
        }
        for made_up in ["", "hello", "closed", "closed.x", "not_closable.1.99", "<b>"] {
            assert_eq!(Notice::parse(made_up), None, "{made_up}");
        }
    }
}
