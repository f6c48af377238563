//! NESP, the network emulator setting protocol: settings of a running emulator, read and changed by frames
//! that a host sends into one of its ports. Idea and name are from "Realizing a Network Emulator System with
//! Intel IXP1200 Network Processor" (II-C.2), which leaves the protocol itself open; `PROTOCOL.md`,
//! beside this crate's manifest, is its specification.
//!
//! This crate has no sockets and no clock. Every message is checked once, when it is opened; all stored state
//! is bounded.
#![forbid(unsafe_code)]

mod body;
mod carrier;
mod client;
mod group;
mod item;
mod key;
mod message;
mod retry;
mod server;
pub mod text;
mod window;

pub use body::{Answer, Operation, Request, Status, Welcome};
pub use carrier::{
    Carrier, ETHERTYPE, GROUP_ADDRESS, ListenAddresses, MessageEnds, PORT, Tags, UdpEnds, carried,
    resolution_answer, unwrap, wrap,
};
pub use client::{Client, RequestRefusal};
pub use item::{ErrorCode, Item, Items, Kind, MOST_NAME, MOST_TEXT};
pub use key::{Key, KeyError, MacKey, SHORTEST_KEY, TAG};
pub use message::{MAGIC, MOST, Malformed, Message, MessageKind, VERSION, seal};
pub use retry::{Retry, RetryAction};
pub use server::{Counters, Job, Outcome, Server};
pub use window::{Freshness, Window};
