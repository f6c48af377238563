//! Loss by a process.

use super::Place;
use super::foreseen::{Foreseen, Process};
use crate::foresight::Foresight;
use crate::judge::Judge;
use longwire_block::{Block, Dice, Offer, Settings, Verdict};
use longwire_units::Nanos;

/// A process whose strikes are losses.
pub trait Loss: Process {
    /// Its settings.
    type Settings: Settings;

    /// A process that draws from `dice`; its first settings follow.
    fn new(dice: Dice) -> Self;

    /// Applies settings, and returns where packets are lost, and whether they are marked instead if they can.
    fn change(&mut self, settings: Self::Settings) -> (Place, bool);
}

/// Loses, or marks, the packets that a process strikes.
#[derive(Debug)]
pub struct Lossy<P> {
    process: Foreseen<P>,
    on_wire: bool,
    mark: bool,
}

impl<P: Loss> Block for Lossy<P> {
    type Settings = P::Settings;

    fn build(settings: P::Settings, dice: Dice) -> Self {
        Self { process: Foreseen::new(P::new(dice)), on_wire: false, mark: false }.with(settings)
    }

    fn change(&mut self, settings: P::Settings) {
        let (place, mark) = self.process.process().change(settings);
        (self.on_wire, self.mark) = (place == Place::Wire, mark);
    }
}

impl<P: Loss> Judge for Lossy<P> {
    #[inline(always)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        if self.process.strikes() { super::lose(offer, self.mark) } else { Verdict::Pass }
    }

    #[inline(always)]
    fn foresee(&mut self, _: Nanos) -> Option<Foresight> {
        self.process.foresee()
    }

    fn recall(&mut self, unused: u32) {
        self.process.recall(unused);
    }

    fn on_wire(&self) -> bool {
        self.on_wire
    }
}
