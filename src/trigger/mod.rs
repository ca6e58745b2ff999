//! What notices that an order is due. Every trigger calls the one close; all but the scan are hints (R23).

pub mod scan;
