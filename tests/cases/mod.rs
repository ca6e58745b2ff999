//! Faults that users of such systems have reported, retold with small numbers: each is a scenario with
//! what is right at its end. The number is the case's in the book they come from.

mod coupons;
mod keys;
mod ledgers;
mod orders;
mod payments;
mod workers;
