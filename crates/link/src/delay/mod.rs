//! How long a packet travels once it is sent.

pub mod constant;

use longwire_units::Nanos;

crate::registry::stage! {
    /// A delay model.
    Delay {
        Constant = constant::Constant,
    }
    /// How long the packet travels whose transmission ended at `finish`. Asked once a packet.
    fn travel(&mut self, finish: Nanos) -> Nanos;
    /// The same for every packet until the next change, if it is known beforehand: such a link need not be woken
    /// when a transmission ends, only when a packet leaves.
    fn fixed(&mut self) -> Option<Nanos>;
}
