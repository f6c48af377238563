//! A look at a run from inside, for recordings and tests.

use longwire_packet::Meta;

/// Is shown packets as they pass. It must not take long: it runs on the packet path.
pub trait Observer: Send {
    /// A packet enters a link at `meta.arrival`, the time that counts.
    fn arrived(&mut self, meta: &Meta, frame: &[u8]);

    /// A packet goes to its port; it was to leave at `Meta::leave`.
    fn departed(&mut self, meta: &Meta, frame: &[u8]);
}
