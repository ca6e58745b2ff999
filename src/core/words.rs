//! The vocabulary: one enum per word of the glossary, with its number in the database and its word
//! in the API. Numbers are those of the first seed ("订单关单后的资源释放"); they are never reused.

/// Declares an enum whose values have a stable number (database) and a stable word (API, pages).
macro_rules! coded {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $code:literal $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The number stored in the database.
            pub const fn code(self) -> i64 { match self { $($name::$variant => $code),+ } }

            /// The word of the API, the pages and the docs.
            pub const fn word(self) -> &'static str { match self { $($name::$variant => $word),+ } }

            pub fn from_code(code: i64) -> Option<Self> { match code { $($code => Some($name::$variant),)+ _ => None } }

            pub fn from_word(word: &str) -> Option<Self> { match word { $($word => Some($name::$variant),)+ _ => None } }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(self.word()) }
        }
    };
}

coded! {
    /// What can be held. `Payment` is no ledger: it is the type of a refund task.
    ResourceType {
        Payment = 0 "payment",
        Stock = 1 "stock",
        Coupon = 2 "coupon",
        Funds = 3 "funds",
        Quota = 4 "quota",
        Slot = 5 "slot",
    }
}

impl ResourceType {
    /// The five types that have a ledger.
    pub const LEDGERS: [ResourceType; 5] = [Self::Stock, Self::Coupon, Self::Funds, Self::Quota, Self::Slot];

    /// Coupons and slots: one piece, held by one order, returned only by that order (R16).
    pub const fn is_single(self) -> bool {
        matches!(self, Self::Coupon | Self::Slot)
    }
}

coded! {
    /// Why a ledger changes. The first five are also what a task does.
    Action {
        Lock = 0 "lock",
        Release = 1 "release",
        Settle = 2 "settle",
        TakeBack = 3 "take_back",
        ReturnIn = 4 "return_in",
        Refund = 5 "refund",
        Adjust = 6 "adjust",
        AdjustLocked = 7 "adjust_locked",
    }
}

coded! {
    /// Where a release task stands. Running is no status: it is a claim under a fence.
    TaskStatus {
        Waiting = 0 "waiting",
        Succeeded = 1 "succeeded",
        Retrying = 2 "retrying",
        Manual = 3 "manual",
        ForceClosed = 4 "force_closed",
        Superseded = 5 "superseded",
    }
}

impl TaskStatus {
    /// Waiting, retrying or manual: the effect is still owed and still tried by someone.
    pub const fn is_unfinished(self) -> bool {
        matches!(self, Self::Waiting | Self::Retrying | Self::Manual)
    }
}

coded! {
    OrderStatus {
        Pending = 0 "PENDING",
        Paid = 1 "PAID",
        Completed = 2 "COMPLETED",
        Closed = 3 "CLOSED",
        Restoring = 4 "RESTORING",
        RefundDue = 5 "REFUND_DUE",
        Refunded = 6 "REFUNDED",
    }
}

coded! {
    PaymentStatus {
        Started = 0 "started",
        Failed = 1 "failed",
        Recorded = 2 "recorded",
        Applied = 3 "applied",
        RefundDue = 4 "refund_due",
        Refunded = 5 "refunded",
        Unmatched = 6 "unmatched",
    }
}

impl PaymentStatus {
    /// Money has moved: every such payment ends applied or refunded.
    pub const fn is_money(self) -> bool {
        !matches!(self, Self::Started | Self::Failed)
    }
}

coded! {
    /// How a try at a task failed. The verdict on each is in `core::task::failure`.
    FailureKind {
        RemoteTimeout = 1 "remote_timeout",
        RemoteError = 2 "remote_error",
        RemoteBusy = 3 "remote_busy",
        LockedInsufficient = 4 "locked_insufficient",
        StateMismatch = 5 "state_mismatch",
        ResourceMissing = 6 "resource_missing",
        Rejected = 7 "rejected",
        Database = 8 "database",
        Poisoned = 9 "poisoned",
    }
}

impl FailureKind {
    /// The effect was refused for certain: it doesn't exist, and trying again alone won't make it.
    pub const fn is_refusal(self) -> bool {
        matches!(self, Self::LockedInsufficient | Self::StateMismatch | Self::ResourceMissing | Self::Rejected)
    }
}

coded! {
    /// What noticed that an order is to be closed.
    Trigger {
        Scan = 1 "scan",
        Wheel = 2 "wheel",
        Redis = 3 "redis",
        Broker = 4 "broker",
        Api = 5 "api",
        Outbox = 6 "outbox",
        Operator = 7 "operator",
    }
}

coded! {
    /// What became of one attempt at a task.
    AttemptOutcome {
        Succeeded = 1 "succeeded",
        Duplicate = 2 "duplicate",
        NothingLocked = 3 "nothing_locked",
        Failed = 4 "failed",
    }
}

coded! {
    /// How a reconciliation run stands.
    RunStatus {
        Running = 0 "running",
        Done = 1 "done",
        Failed = 2 "failed",
    }
}

coded! {
    /// What is wrong with a key whose locked quantity nothing explains. Stored as its word.
    DiffClass {
        /// More is locked than orders and tasks explain.
        MissedRelease = 1 "missed_release",
        /// Less is locked than orders and tasks expect.
        DoubleRelease = 2 "double_release",
        /// Orders hold it, and the ledger has nothing locked.
        MissingLock = 3 "missing_lock",
        /// Locked, and nothing at all names the key.
        OrphanLock = 4 "orphan_lock",
        /// A coupon or slot is locked by an order that doesn't hold it.
        HolderGone = 5 "holder_gone",
        FlowMissing = 6 "flow_missing",
        EditedByHand = 7 "edited_by_hand",
    }
}

coded! {
    /// A funds account holds money or points; only points run out.
    FundsKind {
        Balance = 1 "balance",
        Points = 2 "points",
    }
}

coded! {
    /// What a person may do in the console. The first four include those before them; `service` is
    /// a viewer who also looks after callers.
    Role {
        Viewer = 1 "viewer",
        Operator = 2 "operator",
        Lead = 3 "lead",
        Admin = 4 "admin",
        Service = 5 "service",
    }
}

impl Role {
    /// Whether someone of this role may do what `needed` may do.
    pub const fn includes(self, needed: Role) -> bool {
        match (self, needed) {
            (_, Self::Viewer) | (Self::Service, Self::Service) => true,
            (Self::Service, _) => false,
            // Whoever may change things may also look after callers.
            (_, Self::Service) => !matches!(self, Self::Viewer),
            _ => self.code() >= needed.code(),
        }
    }
}

/// Who did it: a worker, a named operator, a named API token, a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    Worker(String),
    Operator(String),
    Token(String),
    Trigger(Trigger),
    Reconcile,
}

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Worker(name) => write!(f, "worker:{name}"),
            Self::Operator(name) => write!(f, "operator:{name}"),
            Self::Token(name) => write!(f, "token:{name}"),
            Self::Trigger(trigger) => write!(f, "trigger:{trigger}"),
            Self::Reconcile => f.write_str("reconcile"),
        }
    }
}

/// What a flow row or task names as its cause (`close`, `pay`, `place`, `open`, `adjust`, …).
pub mod source {
    pub const CLOSE: &str = "close";
    pub const PAY: &str = "pay";
    pub const PLACE: &str = "place";
    pub const OPEN: &str = "open";
    pub const ADJUST: &str = "adjust";
    /// What the sources of repairs begin with.
    pub const REPAIR: &str = "repair:";

    /// What a payment that came after the close takes back.
    pub fn late(payment_id: i64) -> String {
        format!("late:{payment_id}")
    }

    /// What was taken back for a payment and is released again.
    pub fn undo(payment_id: i64) -> String {
        format!("undo:{payment_id}")
    }

    pub fn refund(payment_id: i64) -> String {
        format!("refund:{payment_id}")
    }

    pub fn reduce(reference: &str) -> String {
        format!("reduce:{reference}")
    }

    /// A line of a return, from 1.
    pub fn return_line(line: i64) -> String {
        format!("return:{line}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_first_seed() {
        let statuses: Vec<i64> = TaskStatus::ALL.iter().map(|s| s.code()).collect();
        assert_eq!(statuses, [0, 1, 2, 3, 4, 5]);
        let types: Vec<(i64, &str)> = ResourceType::LEDGERS.iter().map(|t| (t.code(), t.word())).collect();
        assert_eq!(types, [(1, "stock"), (2, "coupon"), (3, "funds"), (4, "quota"), (5, "slot")]);
    }

    #[test]
    fn each_role_includes_those_before_it() {
        let order = [Role::Viewer, Role::Operator, Role::Lead, Role::Admin];
        for (i, have) in order.iter().enumerate() {
            for (j, need) in order.iter().enumerate() {
                assert_eq!(have.includes(*need), i >= j, "{have} {need}");
            }
        }
        assert!(Role::Service.includes(Role::Viewer) && !Role::Service.includes(Role::Operator));
        assert!(Role::Operator.includes(Role::Service) && !Role::Viewer.includes(Role::Service));
    }

    #[test]
    fn every_word_and_number_reads_back() {
        for action in Action::ALL {
            assert_eq!(Action::from_code(action.code()), Some(*action));
            assert_eq!(Action::from_word(action.word()), Some(*action));
        }
        assert_eq!(TaskStatus::from_code(9), None);
    }
}
