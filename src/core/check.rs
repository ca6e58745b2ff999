//! Verifies on a live database every rule of the model that a query can verify.
