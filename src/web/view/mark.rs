//! Status as mark + word + colour: each sign means one thing on every page. How full a mark is says
//! how far the effect is: hollow = still out, half = on its way, solid = settled.

use crate::core::words::{OrderStatus, PaymentStatus, RunStatus, TaskStatus};
use crate::web::i18n::Lang;

/// How much a figure or a message should worry its reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Calm,
    Good,
    Warn,
    Bad,
}

impl Tone {
    /// The class of a figure.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Calm => "",
            Self::Good => "good",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }

    /// The class of a message.
    pub const fn flash(self) -> &'static str {
        match self {
            Self::Calm => "info",
            Self::Good => "ok",
            Self::Warn => "retry",
            Self::Bad => "manual",
        }
    }

    pub const fn icon(self) -> &'static str {
        match self {
            Self::Calm => "clock",
            Self::Good => "ok",
            Self::Warn => "retry",
            Self::Bad => "manual",
        }
    }
}

/// A mark with its word.
#[derive(Clone, Debug)]
pub struct Mark {
    pub class: &'static str,
    pub icon: &'static str,
    pub word: &'static str,
}

impl Mark {
    const fn new(class: &'static str, icon: &'static str, word: &'static str) -> Mark {
        Mark { class, icon, word }
    }

    pub fn task(lang: Lang, status: TaskStatus) -> Mark {
        let (class, icon) = match status {
            TaskStatus::Waiting => ("wait", "wait"),
            TaskStatus::Succeeded => ("ok", "ok"),
            TaskStatus::Retrying => ("retry", "retry"),
            TaskStatus::Manual => ("manual", "manual"),
            TaskStatus::ForceClosed => ("force", "force"),
            TaskStatus::Superseded => ("gone", "gone"),
        };
        Mark::new(class, icon, lang.word("task", status.word()))
    }

    pub fn order(lang: Lang, status: OrderStatus) -> Mark {
        let (class, icon) = match status {
            OrderStatus::Pending => ("wait", "clock"),
            OrderStatus::Paid => ("ok", "ok"),
            OrderStatus::Completed => ("ok", "done"),
            OrderStatus::Closed => ("gone", "closed"),
            OrderStatus::Restoring => ("run", "run"),
            OrderStatus::RefundDue => ("manual", "owe"),
            OrderStatus::Refunded => ("gone", "refunded"),
        };
        Mark::new(class, icon, lang.word("order", status.word()))
    }

    pub fn payment(lang: Lang, status: PaymentStatus) -> Mark {
        let (class, icon) = match status {
            PaymentStatus::Started => ("wait", "clock"),
            PaymentStatus::Failed => ("gone", "end"),
            PaymentStatus::Recorded => ("wait", "held"),
            PaymentStatus::Applied => ("ok", "ok"),
            PaymentStatus::RefundDue => ("manual", "owe"),
            PaymentStatus::Refunded => ("gone", "refunded"),
            PaymentStatus::Unmatched => ("manual", "manual"),
        };
        Mark::new(class, icon, lang.word("payment", status.word()))
    }

    pub fn run(lang: Lang, status: RunStatus) -> Mark {
        let (class, icon) = match status {
            RunStatus::Running => ("run", "run"),
            RunStatus::Done => ("ok", "ok"),
            RunStatus::Failed => ("manual", "manual"),
        };
        Mark::new(class, icon, lang.word("run", status.word()))
    }

    /// What became of something the buyer had reserved, in a caller's words.
    pub fn caller(lang: Lang, word: Caller) -> Mark {
        let (class, icon) = match word {
            Caller::Held => ("wait", "held"),
            Caller::ComingBack => ("retry", "retry"),
            Caller::Returned => ("ok", "ok"),
            Caller::Bought => ("gone", "used"),
            Caller::NeedsHelp => ("manual", "manual"),
        };
        Mark::new(class, icon, lang.word("caller", word.word()))
    }

    /// Goods that come back: on their way, owed to stock, there.
    pub fn goods(lang: Lang, state: &str, needs_person: bool) -> Mark {
        let (class, icon) = match state {
            "accepted" => ("wait", "clock"),
            "owed" if needs_person => ("manual", "manual"),
            "owed" => ("run", "run"),
            _ => ("ok", "ok"),
        };
        Mark::new(class, icon, lang.word("return", state))
    }

    pub fn worker(lang: Lang, alive: bool) -> Mark {
        match alive {
            true => Mark::new("ok", "ok", lang.word("worker", "alive")),
            false => Mark::new("retry", "retry", lang.word("worker", "silent")),
        }
    }
}

/// How a held thing stands for the buyer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    Held,
    ComingBack,
    Returned,
    Bought,
    NeedsHelp,
}

impl Caller {
    pub const ALL: [Caller; 5] = [Self::Held, Self::ComingBack, Self::Returned, Self::Bought, Self::NeedsHelp];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::ComingBack => "coming_back",
            Self::Returned => "returned",
            Self::Bought => "bought",
            Self::NeedsHelp => "needs_help",
        }
    }
}
