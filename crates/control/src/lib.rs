//! The API of a running instance and its client.
