//! Selection of the next packet. A scheduler is a file here and a line in the list below.

mod cbcs;
mod drfq;
mod fifo;
mod gmr3;
mod mr3;
mod progress;
mod ring;
mod separate_drr;
mod sfq;
mod tags;
mod turns;

use crate::Settings;
use crate::backlog::{Backlog, Gone, Slot, Turn};
use crate::cost::Prices;

/// Specification of a scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// Its name in scenarios and reports.
    pub name: &'static str,
    /// Summary in one sentence.
    pub summary: &'static str,
    /// Source of its description.
    pub source: &'static str,
    /// Unit of [`Settings::quantum`], the credit of a flow of weight 1 per round; none for those that ignore
    /// the quantum.
    pub quantum: Option<&'static str>,
    /// Whether selection takes constant time for any number of flows.
    pub constant_time: bool,
    /// Whether its authors claim dominant-resource fairness.
    pub dominant: bool,
    /// Whether each port may have its own line of flows: not with one queue for all.
    pub apart: bool,
}

/// The part specific to a scheduler. It receives arrivals and departures, and selects the flow whose head is
/// next.
pub(crate) trait Discipline: Sized {
    const SPEC: Spec;

    /// Number of rounds: before the processors (1), and before the port (2).
    const STAGES: usize = 1;

    /// Whether a flow's progress on the port limits its turns: one that waits for processors is parked.
    const LIMITED: bool = false;

    fn build(settings: &Settings) -> Self;

    /// Charge for a packet with a predicted processing time in ns. It is fixed when the packet arrives.
    #[inline]
    fn cost(prices: &Prices, processor: u32, bytes: u32) -> u32 {
        if Self::SPEC.dominant { prices.normalised(processor, bytes).dominant() } else { processor }
    }

    /// The highest cost of a packet, in the unit of the quantum: a program that uses its whole budget on the
    /// longest packet. None for schedulers without a quantum.
    fn largest(settings: &Settings) -> Option<u64> {
        let prices = Prices::new(settings);
        let cost = Self::cost(&prices, prices.processing(settings.budget), settings.longest);
        Self::SPEC.quantum.map(|_| cost.into())
    }

    /// Adds a flow that takes part from now on.
    fn join(&mut self, _: &mut Backlog, _flow: u32) {}

    /// Adds a packet that has joined its flow's queue; `first` if it is alone there.
    #[inline]
    fn arrived(&mut self, backlog: &mut Backlog, slot: u32, first: bool) {
        let joins = if Self::LIMITED {
            let Turn { active, parked, .. } = backlog.flow(backlog.slot(slot).flow).turn;
            !active && !parked
        } else {
            first
        };
        if joins {
            self.join(backlog, backlog.slot(slot).flow);
        }
    }

    /// Takes the next packet for a processor; none if there is none, or none may be taken yet.
    fn next(&mut self, backlog: &mut Backlog) -> Option<u32>;

    /// The virtual time of the next packet: the service so far of a permanently backlogged flow of weight 1,
    /// in the scheduler's unit. It wraps around: only differences matter. 0 for schedulers without lines per
    /// port.
    #[inline]
    fn due(&self) -> u64 {
        0
    }

    /// The virtual time of the processors, for schedulers that have another one for the port; in the units of
    /// [`due`](Self::due).
    #[inline]
    fn processor_clock(&mut self) -> Option<&mut u64> {
        None
    }

    /// Handles a processed packet that is the next of its flow.
    #[inline]
    fn processed(&mut self, backlog: &mut Backlog, slot: u32) {
        backlog.line_up(slot);
        self.wake(backlog, slot);
    }

    /// Lets the flow of a packet proceed if it waits for processors.
    #[inline]
    fn wake(&mut self, backlog: &mut Backlog, slot: u32) {
        if Self::LIMITED {
            let flow = backlog.slot(slot).flow;
            if backlog.flow(flow).turn.parked {
                self.join(backlog, flow);
            }
        }
    }

    /// Takes the next packet for a port.
    #[inline]
    fn next_for_port(&mut self, backlog: &mut Backlog, port: u16) -> Option<u32> {
        backlog.next_of_line(port)
    }

    /// Reports the measured processing time of a packet, in ns; `slot` has the charge.
    #[inline]
    fn measured(&mut self, _: &mut Backlog, _slot: u32, _measured: u32) {}

    /// Reports that a packet begins to be sent, or never will be.
    #[inline]
    fn left(&mut self, backlog: &mut Backlog, slot: u32) {
        if Self::LIMITED {
            note_progress(backlog, slot);
            self.wake(backlog, slot);
        }
    }

    /// Adapts to a flow's new weight.
    fn reweighted(&mut self, _: &mut Backlog, _flow: u32, _before: u32) {}

    // Combined operations: selecting the scheduler takes one jump for each.

    /// Adds a packet to the queue of its flow. Returns its charge.
    #[inline]
    fn enter(&mut self, backlog: &mut Backlog, slot: u32, processor: u32, first: bool) -> u32 {
        let cost = Self::cost(&backlog.prices, processor, backlog.slot(slot).bytes).max(1);
        let place = &mut backlog.slots[slot as usize];
        (place.processor, place.cost) = (processor, cost);
        self.arrived(backlog, slot, first);
        cost
    }

    /// Marks a packet as processed. It becomes ready for its port once all earlier packets of its flow are.
    #[inline]
    fn finish(&mut self, backlog: &mut Backlog, slot: u32, measured: Option<u32>) {
        if let Some(measured) = measured {
            self.measured(backlog, slot, measured);
        }
        let flow = backlog.hold(slot);
        self.release(backlog, flow);
    }

    /// Removes a packet that was with a processor and goes to no port. Later ones proceed.
    #[inline]
    fn give_up(&mut self, backlog: &mut Backlog, slot: u32, measured: Option<u32>, because: Gone) {
        if let Some(measured) = measured {
            self.measured(backlog, slot, measured);
        }
        self.left(backlog, slot);
        let flow = backlog.give_up(slot, because);
        self.release(backlog, flow);
    }

    /// Passes a flow's packets that are next in order to their port.
    #[inline]
    fn release(&mut self, backlog: &mut Backlog, flow: u32) {
        while let Some(slot) = backlog.next_in_order(flow) {
            self.processed(backlog, slot);
        }
    }

    /// The next packet for a port begins to be sent.
    #[inline]
    fn send(&mut self, backlog: &mut Backlog, port: u16) -> Option<u32> {
        let slot = self.next_for_port(backlog, port)?;
        self.left(backlog, slot);
        Some(slot)
    }
}

macro_rules! schedulers {
    ($($variant:ident: $type:ty),+ $(,)?) => {
        /// Any scheduler, without calls through a pointer.
        #[derive(Debug)]
        pub(crate) enum AnyDiscipline {
            $($variant($type)),+
        }

        /// All schedulers.
        pub const SPECS: &[Spec] = &[$(<$type as Discipline>::SPEC),+];

        impl AnyDiscipline {
            /// The one of this name.
            pub(crate) fn build(name: &str, settings: &Settings) -> Option<Self> {
                $(if name == <$type as Discipline>::SPEC.name {
                    return Some(Self::$variant(<$type as Discipline>::build(settings)));
                })+
                None
            }

            pub(crate) fn spec(&self) -> &'static Spec {
                match self { $(Self::$variant(_) => const { &<$type as Discipline>::SPEC }),+ }
            }

            pub(crate) fn stages(&self) -> usize {
                match self { $(Self::$variant(_) => <$type as Discipline>::STAGES),+ }
            }

            pub(crate) fn largest(&self, settings: &Settings) -> Option<u64> {
                match self { $(Self::$variant(_) => <$type as Discipline>::largest(settings)),+ }
            }

            #[inline]
            pub(crate) fn enter(&mut self, backlog: &mut Backlog, slot: u32, processor: u32, first: bool)
                -> u32 {
                match self { $(Self::$variant(own) => own.enter(backlog, slot, processor, first)),+ }
            }

            #[inline]
            pub(crate) fn next(&mut self, backlog: &mut Backlog) -> Option<u32> {
                match self { $(Self::$variant(own) => own.next(backlog)),+ }
            }

            #[inline]
            pub(crate) fn finish(&mut self, backlog: &mut Backlog, slot: u32, measured: Option<u32>) {
                match self { $(Self::$variant(own) => own.finish(backlog, slot, measured)),+ }
            }

            #[inline]
            pub(crate) fn due(&self) -> u64 {
                match self { $(Self::$variant(own) => own.due()),+ }
            }

            #[inline]
            pub(crate) fn processor_clock(&mut self) -> Option<&mut u64> {
                match self { $(Self::$variant(own) => own.processor_clock()),+ }
            }

            pub(crate) fn give_up(&mut self, backlog: &mut Backlog, slot: u32, measured: Option<u32>,
                because: Gone) {
                match self { $(Self::$variant(own) => own.give_up(backlog, slot, measured, because)),+ }
            }

            #[inline]
            pub(crate) fn send(&mut self, backlog: &mut Backlog, port: u16) -> Option<u32> {
                match self { $(Self::$variant(own) => own.send(backlog, port)),+ }
            }

            pub(crate) fn reweighted(&mut self, backlog: &mut Backlog, flow: u32, before: u32) {
                match self { $(Self::$variant(own) => own.reweighted(backlog, flow, before)),+ }
            }
        }
    };
}

// The schedulers, in the order of reports.
schedulers! {
    Fifo: fifo::Fifo,
    SeparateDrr: separate_drr::SeparateDrr,
    Cbcs: cbcs::Cbcs<false>,
    CbcsNormalised: cbcs::Cbcs<true>,
    Sfq: sfq::Sfq,
    Drfq: drfq::Drfq<false>,
    DrfqDovetail: drfq::Drfq<true>,
    Mr3: mr3::Mr3,
    Gmr3: gmr3::Gmr3,
}

/// Records that a packet of a turn has reached the port. Abandoned packets may be reported before earlier
/// ones.
#[inline]
fn note_progress(backlog: &mut Backlog, slot: u32) {
    let (flow, turn) = (backlog.slot(slot).flow, backlog.slot(slot).tag);
    let left = &mut backlog.flow_mut(flow).left_turn;
    if (turn.wrapping_sub(*left) as i32) > 0 {
        *left = turn;
    }
}

/// Whether the port has not started some of a flow's last turns, up to the number of packets that processors
/// hold: then the flow gets none. With one processor, as in the papers, a flow is never two turns ahead of
/// the port; each further processor, and each place in rings that keep processors busy, allows one more turn.
/// A flow that is `alone` in its port's line proceeds: no other flow waits there, other lines have their
/// shares, and packets ready for the port are limited.
#[inline]
fn is_ahead(backlog: &Backlog, flow: u32, alone: bool) -> bool {
    if alone && backlog.settings.ready_limit.is_some() {
        return false;
    }
    let place = backlog.flow(flow);
    place.taken_turn.wrapping_sub(place.left_turn) >= backlog.turns_ahead
}

/// Whether a flow that is ahead waits for processors: they have packets of it, and its port is idle. Then it
/// does not block others; otherwise the port is the bottleneck, and all wait, so that it gets packets in the
/// order of rounds.
#[inline]
fn is_with_processors(backlog: &Backlog, flow: u32) -> bool {
    let place = backlog.flow(flow);
    place.working.first().is_some() && backlog.ready(place.port) == 0
}

/// Charge for processing a packet: the prediction, plus or minus previous prediction errors of its flow.
#[inline]
fn with_owed(backlog: &mut Backlog, slot: u32) -> u32 {
    let Slot { flow, processor, .. } = *backlog.slot(slot);
    let (cost, owed) = (i64::from(processor), &mut backlog.flow_mut(flow).owed);
    let charged = cost.saturating_add(*owed).clamp(0, u32::MAX.into());
    *owed = owed.saturating_sub(charged - cost);
    charged as u32
}

/// Records a packet's prediction error.
#[inline]
fn owe(backlog: &mut Backlog, slot: u32, measured: u32) {
    let Slot { flow, processor, .. } = *backlog.slot(slot);
    let owed = &mut backlog.flow_mut(flow).owed;
    *owed = owed.saturating_add(i64::from(measured) - i64::from(processor));
}

/// Charges a flow the dominant cost of a packet beyond its previous charge; credit is shifted by the `scale`
/// of its weight.
#[inline]
fn charge_later(backlog: &mut Backlog, slot: u32, measured: u32, scale: impl Fn(u32) -> u32) {
    let Slot { flow, bytes, cost, .. } = *backlog.slot(slot);
    let beyond = i64::from(backlog.prices.normalised(measured, bytes).dominant().max(1)) - i64::from(cost);
    let place = backlog.flow_mut(flow);
    if beyond != 0 {
        place.turn.credit -= beyond << scale(place.weight);
    }
}

/// Takes a packet in a flow's turn; `begins` marks the first.
#[inline]
fn take_in_turn(backlog: &mut Backlog, flow: u32, slot: u32, begins: bool) {
    let place = backlog.flow_mut(flow);
    place.taken_turn = place.taken_turn.wrapping_add(u32::from(begins));
    let turn = place.taken_turn;
    backlog.slots[slot as usize].tag = turn;
    backlog.pop(flow);
}

/// The later of two virtual times, which wrap around.
#[inline]
pub(crate) fn later(a: u64, b: u64) -> u64 {
    if (a.wrapping_sub(b) as i64) < 0 { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_line_can_be_built() {
        let names: std::collections::BTreeSet<_> = SPECS.iter().map(|spec| spec.name).collect();
        assert_eq!(names.len(), SPECS.len());
        for spec in SPECS {
            let built = AnyDiscipline::build(spec.name, &Settings::default()).unwrap();
            assert_eq!(built.spec(), spec);
            assert!(spec.summary.ends_with('.') && !spec.source.is_empty());
        }
        assert!(AnyDiscipline::build("none", &Settings::default()).is_none());
    }
}
