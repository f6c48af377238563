//! TOML as people write it: what is written where, tables with settings, addresses, names that are numbered,
//! mistakes with their place and fix, schemas, quoting, and edits of the text that keep the rest as it is.
#![forbid(unsafe_code)]

pub mod address;
pub mod edit;
pub mod expanded;
pub mod finding;
pub mod quoting;
pub mod row;
pub mod setting_schema;
pub mod template;
pub mod written;
