//! Programs between the classifier and minimal IP: keys, budget, and installation while packets flow (T.
//! Spalink and others, "Building a robust software-based router using network processors", sections 4.5 and
//! 4.6).
//!
//! - `key`: the packets of a program; `space`: the program of a flow;
//! - `program`: a program with state, maps and counters; `table`: all of them, with the budget; `price`: the
//!   router's own share;
//! - `routes`: what programs see of the router, above all routes;
//! - `code`: execution of a program; `exit`: programs named by entries of maps;
//! - `bench`: their working memory; `cost`: sampled cost;
//! - `ruling`: the programs' decision on a packet;
//! - `through`: packets through programs; `plain`: the fast path for programs that only pass or drop;
//!   `errand`: on another thread.
//!
//! The decision behind it: `docs/adr/0017-installing-programs.md`.

mod bench;
mod code;
mod cost;
mod counters;
mod errand;
mod exit;
mod key;
mod plain;
mod price;
mod program;
mod routes;
mod ruling;
mod space;
mod table;
mod through;

pub(crate) use bench::Bench;
pub use cost::MeasuredCost;
pub use counters::{ForwarderStats, REASONS};
pub(crate) use errand::Errand;
pub use key::{FlowKey, Key, KeyAddress, KeyError};
pub(crate) use key::{Words, flow, hash, words_key};
pub use price::{Admission, RouterPrices};
pub use program::{Fid, Forwarder, Installation, LinkChoice, PrepareError};
pub(crate) use ruling::Ruling;
pub(crate) use space::Space;
pub use table::{Forwarders, InstallError, MOST as MOST_FORWARDERS};
pub(crate) use through::{Programs, carry_out};
