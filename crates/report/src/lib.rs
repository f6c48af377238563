//! The one shape of every result, as JSON and as a table.
