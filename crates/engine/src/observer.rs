//! Observation of a run from inside, for recordings and tests.

use longwire_packet::Meta;

/// Receives packets as they pass. It must be fast: it runs on the packet path.
pub trait Observer: Send {
    /// A packet enters a link at `meta.arrival`, the effective time.
    fn arrived(&mut self, meta: &Meta, frame: &[u8]);

    /// A packet goes to its port; its departure time is `Meta::leave`.
    fn departed(&mut self, meta: &Meta, frame: &[u8]);
}
