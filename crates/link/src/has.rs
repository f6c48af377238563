//! Which of the things that few links have a link has: bits of `Line::features`.

/// Something judges packets on the wire.
pub const WIRE: u16 = 1;
/// There is background traffic.
pub const BACKGROUND: u16 = 2;
/// The queue has packets, but none before `Rare::resume`.
pub const WAITING: u16 = 4;
/// Packets may leave in another order than they were sent, or at times that are sorted.
pub const DISORDER: u16 = 8;
/// The delay may lose packets.
pub const LOSSY_DELAY: u16 = 16;
/// A shared medium decides when packets are sent.
pub const MEDIUM: u16 = 32;
/// Packets may leave sooner after they were sent than the delay says.
pub const AHEAD: u16 = 128;
/// Those that concern a packet whose last bit is sent.
pub const BEYOND: u16 = WIRE | BACKGROUND | DISORDER | LOSSY_DELAY | MEDIUM;
/// A train may wait, or be being sent.
pub const TRAIN: u16 = 64;
/// It serves packets, whatever it is made of: tests hold links that decide against such.
pub const SERVED: u16 = 256;
/// Packets are delayed before the queue, or were.
pub const FRONT: u16 = 512;
/// The transmitter takes packets at opportunities only: they wait in the queue until then.
pub const OPPORTUNITIES: u16 = 1024;
/// All can be decided when a packet arrives, as the blocks are; and it has been, for all that the link holds.
pub const DECIDABLE: u16 = 2048;
pub const DECIDED: u16 = 4096;
/// Neither sending nor travelling takes time, and an empty queue lets in whatever comes: see
/// `Link::pass_through`.
pub const INSTANT: u16 = 8192;
/// Of those that can be decided: the queue is a tail drop and the rate constant, as [`crate::plain`] takes
/// them.
pub const PLAIN: u16 = 16_384;
/// It keeps a histogram of lateness.
pub const HISTOGRAM: u16 = 32_768;
/// Something other than ends of transmission happens at the queue.
pub const OTHERS: u16 = BACKGROUND | WAITING | FRONT | OPPORTUNITIES;
/// Those of links on which more happens than ends of transmission.
pub const EVENTFUL: u16 = OTHERS | MEDIUM;
