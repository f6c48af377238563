//! How fast packets are sent, one after the other.

pub mod constant;

use longwire_units::{Nanos, Rate};

crate::registry::stage! {
    /// A transmitter.
    Transmit {
        Constant = constant::Constant,
    }
    /// How many bytes a frame of `frame` bytes counts, of which `link_header` come before its IP header.
    fn counted(&mut self, frame: u32, link_header: u32) -> u64;
    /// Whether [`Transmit::counted`] needs to know where the IP header begins.
    fn counts_ip(&mut self) -> bool;
    /// Begins to send a packet of `bytes` counted bytes at `start`, after a pause.
    fn begin(&mut self, start: Nanos, bytes: u64);
    /// Begins to send a packet the moment the one before has ended: the remainder is carried.
    fn follow(&mut self, bytes: u64);
    /// When the packet being sent is finished: exact, rounded down.
    fn finish(&mut self) -> Nanos;
    /// Whether, of the packet being sent, all but the last `bytes` counted bytes are sent by `now`.
    fn has_sent_all_but(&mut self, bytes: u64, now: Nanos) -> bool;
    /// Before a change at `now` while a packet is being sent: what is sent by now stays sent.
    fn settle(&mut self, now: Nanos);
    /// The current rate.
    fn rate(&mut self) -> Rate;
}
