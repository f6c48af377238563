//! Who is served next. A scheduler is a file here and a line in the list below.

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

use crate::backlog::{Backlog, Gone, Slot};
use crate::{Settings, Warning};

/// What a scheduler says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// Its name in scenarios and reports.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// Who described it.
    pub source: &'static str,
    /// What [`Settings::quantum`], what a round gives a flow of weight 1, is counted in; none for those that
    /// look at no quantum.
    pub quantum: Option<&'static str>,
    /// Whether choosing takes the same time however many flows there are.
    pub constant_time: bool,
    /// Whether its authors promise dominant-resource fairness.
    pub dominant: bool,
    /// Whether each port may have a line of flows of its own: not where there is one queue for all.
    pub apart: bool,
}

/// A scheduler's own part. It is told of what comes and goes, and says which flow's head is next.
pub(crate) trait Discipline: Sized {
    const SPEC: Spec;

    /// How often flows take turns: before the processors (1), and before the port (2).
    const STAGES: usize = 1;

    fn build(settings: &Settings) -> Self;

    /// What is charged for a packet whose processing is predicted to take so many ns. It is frozen when the
    /// packet arrives.
    fn cost(backlog: &Backlog, processor: u32, bytes: u32) -> u32;

    /// What a round gives a flow of weight 1, in the unit of the cost; none if there are no such rounds.
    fn quantum(_: &Settings) -> Option<u64> {
        None
    }

    /// The cost of the most expensive packet, in the same unit.
    fn largest(_: &Settings) -> Option<u64> {
        None
    }

    /// Packets that a round's credit does not cover.
    fn warnings(settings: &Settings) -> Vec<Warning> {
        let quantum = settings.quantum.0;
        let short = Self::largest(settings).filter(|largest| quantum < *largest);
        let warning = |largest| Warning::QuantumBelowCost { field: "quantum", quantum, largest, unit: "ns" };
        short.map(warning).into_iter().collect()
    }

    /// A packet has joined its flow's queue; `first` if it is alone there.
    fn arrived(&mut self, backlog: &mut Backlog, slot: u32, first: bool);

    /// Takes the next packet for a processor; none if there is none, or none may be taken yet.
    fn next(&mut self, backlog: &mut Backlog) -> Option<u32>;

    /// The virtual time of the next packet: what a flow of weight 1 that always waits has had before it, in a
    /// unit of the scheduler's. It wraps around: only differences count. 0 where ports have no lines of their
    /// own.
    #[inline]
    fn due(&self) -> u64 {
        0
    }

    /// A packet has been processed and is the next of its flow.
    #[inline]
    fn processed(&mut self, backlog: &mut Backlog, slot: u32) {
        backlog.line_up(slot);
    }

    /// Takes the next packet for a port.
    #[inline]
    fn next_for_port(&mut self, backlog: &mut Backlog, port: u16) -> Option<u32> {
        backlog.next_of_line(port)
    }

    /// What processing a packet took, in ns, where `slot` says what was charged.
    #[inline]
    fn measured(&mut self, _: &mut Backlog, _slot: u32, _measured: u32) {}

    /// A packet begins to be sent, or will never be.
    #[inline]
    fn left(&mut self, _: &mut Backlog, _slot: u32) {}

    /// A flow has another weight than before.
    fn reweighted(&mut self, _: &mut Backlog, _flow: u32, _before: u32) {}

    // What a scheduler does in one go: distinguishing them takes a jump, and there is one each time.

    /// A packet comes, and joins the queue of its flow. Returns what it will be charged.
    #[inline]
    fn enter(&mut self, backlog: &mut Backlog, slot: u32, processor: u32, first: bool) -> u32 {
        let cost = Self::cost(backlog, processor, backlog.slot(slot).bytes).max(1);
        let place = &mut backlog.slots[slot as usize];
        (place.processor, place.cost) = (processor, cost);
        self.arrived(backlog, slot, first);
        cost
    }

    /// A packet has been processed. It is ready for its port once all of its flow that came before it are.
    #[inline]
    fn finish(&mut self, backlog: &mut Backlog, slot: u32, measured: Option<u32>) {
        if let Some(measured) = measured {
            self.measured(backlog, slot, measured);
        }
        let flow = backlog.hold(slot);
        self.release(backlog, flow);
    }

    /// A packet that was with a processor goes to no port. Those behind it go on.
    #[inline]
    fn give_up(&mut self, backlog: &mut Backlog, slot: u32, measured: Option<u32>, because: Gone) {
        if let Some(measured) = measured {
            self.measured(backlog, slot, measured);
        }
        self.left(backlog, slot);
        let flow = backlog.give_up(slot, because);
        self.release(backlog, flow);
    }

    /// Lets those packets of a flow that are next in order go to their port.
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
        /// Any of them, without a call through a pointer.
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

            pub(crate) fn quantum(&self, settings: &Settings) -> Option<u64> {
                match self { $(Self::$variant(_) => <$type as Discipline>::quantum(settings)),+ }
            }

            pub(crate) fn largest(&self, settings: &Settings) -> Option<u64> {
                match self { $(Self::$variant(_) => <$type as Discipline>::largest(settings)),+ }
            }

            pub(crate) fn warnings(&self, settings: &Settings) -> Vec<Warning> {
                match self { $(Self::$variant(_) => <$type as Discipline>::warnings(settings)),+ }
            }

            #[inline]
            pub(crate) fn enter(&mut self, backlog: &mut Backlog, slot: u32, processor: u32, first: bool) -> u32 {
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

            pub(crate) fn give_up(&mut self, backlog: &mut Backlog, slot: u32, measured: Option<u32>, because: Gone) {
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

// The schedulers, in the order in which reports show them.
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

/// A packet of a turn has reached the port. Packets that were given up may be told of before earlier ones.
#[inline]
fn note_progress(backlog: &mut Backlog, slot: u32) {
    let (flow, turn) = (backlog.slot(slot).flow, backlog.slot(slot).tag);
    let left = &mut backlog.flow_mut(flow).left_turn;
    if (turn.wrapping_sub(*left) as i32) > 0 {
        *left = turn;
    }
}

/// Whether as many turns of a flow as processors hold packets have some that the port has not begun with:
/// then it gets none. With one processor, as the papers have it, a flow is never two turns ahead of the port;
/// each processor more is one more turn that may be on its way, and so is each place in rings before them
/// where these keep processors busy. A flow that is `alone` in a line of its port goes on: nobody there waits
/// for it, other lines have their shares, and what is ready for the port has a limit.
#[inline]
fn is_ahead(backlog: &Backlog, flow: u32, alone: bool) -> bool {
    if alone && backlog.settings().ready_limit.is_some() {
        return false;
    }
    let place = backlog.flow(flow);
    place.taken_turn.wrapping_sub(place.left_turn) >= backlog.turns_ahead
}

/// Whether a flow that is ahead waits for processors: they have packets of it, and its port has nothing to
/// send. Then nobody need wait for its turn; else the port is what is short, and all wait, so that it gets
/// packets in the order of rounds.
#[inline]
fn is_with_processors(backlog: &Backlog, flow: u32) -> bool {
    let place = backlog.flow(flow);
    place.working.first().is_some() && backlog.ready(place.port) == 0
}

/// What processing a packet is charged: as predicted, and what packets of its flow took beyond that (or short
/// of it) before.
#[inline]
fn with_owed(backlog: &mut Backlog, slot: u32) -> u32 {
    let Slot { flow, processor, .. } = *backlog.slot(slot);
    let (cost, owed) = (i64::from(processor), &mut backlog.flow_mut(flow).owed);
    let charged = cost.saturating_add(*owed).clamp(0, u32::MAX.into());
    *owed = owed.saturating_sub(charged - cost);
    charged as u32
}

/// Notes what a packet took beyond what was predicted.
#[inline]
fn owe(backlog: &mut Backlog, slot: u32, measured: u32) {
    let Slot { flow, processor, .. } = *backlog.slot(slot);
    let owed = &mut backlog.flow_mut(flow).owed;
    *owed = owed.saturating_add(i64::from(measured) - i64::from(processor));
}

/// Charges a flow what the dominant cost of a packet has turned out to be beyond what was charged; credit is
/// kept times 2 to what `scale` says of its weight.
#[inline]
fn charge_later(backlog: &mut Backlog, slot: u32, measured: u32, scale: impl Fn(u32) -> u32) {
    let Slot { flow, bytes, cost, .. } = *backlog.slot(slot);
    let beyond = i64::from(backlog.prices.normalised(measured, bytes).dominant().max(1)) - i64::from(cost);
    let place = backlog.flow_mut(flow);
    if beyond != 0 {
        place.turn.credit -= beyond << scale(place.weight);
    }
}

/// Takes a packet in a flow's turn, the first of it if `begins`.
#[inline]
fn take_in_turn(backlog: &mut Backlog, flow: u32, slot: u32, begins: bool) {
    let place = backlog.flow_mut(flow);
    place.taken_turn = place.taken_turn.wrapping_add(u32::from(begins));
    let turn = place.taken_turn;
    backlog.slots[slot as usize].tag = turn;
    backlog.pop(flow);
}

/// The cost of the most expensive packet: a program that uses up its budget on the longest packet.
fn worst_cost(settings: &Settings, price: impl Fn(&crate::cost::Prices, u32, u32) -> u32) -> u64 {
    let prices = crate::cost::Prices::new(settings);
    u64::from(price(&prices, prices.processing(settings.budget), settings.longest))
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
            assert_eq!(
                built.quantum(&Settings::default()).is_some(),
                spec.quantum.is_some(),
                "{}",
                spec.name
            );
        }
        assert!(AnyDiscipline::build("none", &Settings::default()).is_none());
    }
}
