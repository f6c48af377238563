//! Time series read from files: rates, delays, delivery opportunities.
#![forbid(unsafe_code)]
