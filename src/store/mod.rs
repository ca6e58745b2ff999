//! All SQL. `db` runs transactions, `dialect` knows the engines apart, then one file per subject.

pub mod db;
pub mod dialect;
pub mod error;
pub mod migrate;

pub use db::{Conn, Db, Decision, Result, RowExt, Value};
pub use error::{Class, Error};
