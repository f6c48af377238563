//! The `longwire` command.
fn main() {}
