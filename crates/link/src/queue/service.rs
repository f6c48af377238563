//! The link behind a queue.

use super::Discipline;
use longwire_block::Verdict;
use longwire_packet::Handle;
use longwire_units::Nanos;

/// A link whose discipline is temporarily taken out, so that both are mutable: its path through the
/// discipline, compiled for each. A packet comes with its time and counted bytes.
pub trait Service {
    /// See [`Discipline::enter`].
    fn enter<Q: Discipline>(&mut self, queue: &mut Q, packet: (Handle, Nanos, u64)) -> Verdict;

    /// See [`Discipline::join`].
    fn join<Q: Discipline>(&mut self, queue: &mut Q, packet: (Handle, Nanos, u64));

    /// See [`Discipline::send`].
    fn send<Q: Discipline>(&mut self, queue: &mut Q, until: Nanos);

    /// See [`Discipline::begin`].
    fn begin<Q: Discipline>(&mut self, queue: &mut Q, start: Nanos, pause: bool);
}
