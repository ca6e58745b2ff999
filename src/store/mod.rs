//! All SQL. `db` runs transactions, `dialect` knows the engines apart, then one file per subject.

pub mod audit;
pub mod conn;
pub mod counter;
pub mod db;
pub mod dialect;
pub mod error;
pub mod flow;
pub mod idempotency;
pub mod ledger;
pub mod load;
pub mod mapped;
pub mod migrate;
pub mod order;
pub mod order_view;
pub mod outbox;
pub mod overview;
pub mod payment;
pub mod reconcile;
pub mod reconcile_run;
pub mod return_order;
pub mod rows;
pub mod rules;
pub mod session;
pub mod setup;
pub mod stats;
pub mod task;
pub mod task_list;
pub mod task_search;
pub mod token;
pub mod user;
pub mod wake;
pub mod worker;

pub use conn::{Conn, RowExt, Value};
pub use db::{Db, Decision, Result};
pub use error::{Class, Error};
