//! Rare features of a link: bits of `Line::features`.

/// Judges on the wire.
pub const WIRE: u16 = 1;
/// There is background traffic.
pub const BACKGROUND: u16 = 2;
/// The queue has packets, but none before `Rare::resume`.
pub const WAITING: u16 = 4;
/// Packets may leave in another order than they were sent, or at sorted times.
pub const DISORDER: u16 = 8;
/// The delay may lose packets.
pub const LOSSY_DELAY: u16 = 16;
/// A shared medium decides when packets are sent.
pub const MEDIUM: u16 = 32;
/// Packets may leave earlier than their delay.
pub const AHEAD: u16 = 128;
/// Features relevant when the last bit of a packet is sent.
pub const BEYOND: u16 = WIRE | BACKGROUND | DISORDER | LOSSY_DELAY | MEDIUM;
/// A train may be waiting or being sent.
pub const TRAIN: u16 = 64;
/// It always serves packets: tests compare decided links with such.
pub const SERVED: u16 = 256;
/// Packets are or were delayed before the queue.
pub const FRONT: u16 = 512;
/// The transmitter takes packets only at opportunities: they wait in the queue until then.
pub const OPPORTUNITIES: u16 = 1024;
/// With its blocks, everything can be decided on arrival; and it has been, for all packets of the link.
pub const DECIDABLE: u16 = 2048;
pub const DECIDED: u16 = 4096;
/// Neither transmission nor delay takes time, and an empty queue admits everything: see `Link::pass_through`.
pub const INSTANT: u16 = 8192;
/// A link that can be decided, with tail drop and a constant delay, as in [`crate::plain`].
pub const PLAIN: u16 = 16_384;
/// A link that can be decided, which sends packets when they come and asks nothing but their delay.
pub const VARIES: u16 = 32_768;
/// Events other than ends of transmission at the queue.
pub const OTHERS: u16 = BACKGROUND | WAITING | FRONT | OPPORTUNITIES;
/// Features of links with events other than ends of transmission.
pub const EVENTFUL: u16 = OTHERS | MEDIUM;
