//! The filters and impairments of a link, in order: those that judge packets on arrival, and those on the
//! wire.

use crate::fate::{Affected, Coming};
use crate::filter::Filter;
use crate::foresight::Foresight;
use crate::impair::Impair;
use crate::judge::{JudgesVerdict, PacketJudge, ask_fully};
use crate::stage::Holds;
use longwire_block::{Dice, Offer, Spec, Values, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_units::Nanos;

/// A filter or an impairment.
#[derive(Debug)]
pub(crate) enum AnyJudge {
    Filter(Filter),
    Impair(Impair),
}

/// Evaluates an expression about the block, which is of either stage.
macro_rules! of_either {
    ($judge:ident, $block:ident => $about:expr) => {
        match $judge {
            AnyJudge::Filter($block) => $about,
            AnyJudge::Impair($block) => $about,
        }
    };
}

impl AnyJudge {
    /// The block for `spec`, if it is a judge.
    pub(crate) fn build(spec: &Spec, values: &Values, dice: impl Fn() -> Dice) -> Option<Self> {
        let filter = Filter::build(spec, values, &dice).map(Self::Filter);
        filter.or_else(|| Impair::build(spec, values, &dice).map(Self::Impair))
    }

    pub(crate) fn spec(&self) -> &'static Spec {
        of_either!(self, block => block.spec())
    }

    /// Applies new parameters at `now`.
    pub(crate) fn change(&mut self, values: &Values, now: Nanos) {
        of_either!(self, block => block.settle(now));
        of_either!(self, block => block.change(values));
    }

    pub(crate) fn start(&mut self, begin: Nanos) {
        of_either!(self, block => block.start(begin));
    }

    pub(crate) fn on_wire(&self) -> bool {
        of_either!(self, block => block.on_wire())
    }

    pub(crate) fn hastens(&self) -> bool {
        of_either!(self, block => block.hastens())
    }

    pub(crate) fn is_up(&self, now: Nanos) -> bool {
        match self {
            Self::Filter(filter) => filter.is_up(now),
            Self::Impair(_) => true,
        }
    }

    #[inline(always)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        of_either!(self, block => block.judge(offer))
    }

    fn recall(&mut self, unused: u32) {
        of_either!(self, block => block.recall(unused));
    }

    /// Filters before impairments, each in registry order, whatever the order in the scenario.
    fn place(&self) -> usize {
        let key = self.spec().key;
        let rows = Filter::SPECS.iter().chain(Impair::SPECS);
        rows.map(|spec| spec.key).position(|other| other == key).unwrap_or(usize::MAX)
    }
}

/// A sequence of judges: most links have at most one, stored in the link's own record.
#[derive(Debug, Default)]
pub(crate) enum Chain {
    #[default]
    None,
    One(AnyJudge),
    Many(Box<[AnyJudge]>),
}

impl Chain {
    pub(crate) fn new(mut judges: Vec<AnyJudge>) -> Self {
        judges.sort_by_key(AnyJudge::place);
        match judges.len() {
            0 | 1 => judges.pop().map_or(Self::None, Self::One),
            _ => Self::Many(judges.into()),
        }
    }

    pub(crate) fn into_vec(self) -> Vec<AnyJudge> {
        match self {
            Self::None => Vec::new(),
            Self::One(judge) => vec![judge],
            Self::Many(judges) => judges.into(),
        }
    }

    pub(crate) fn as_slice(&self) -> &[AnyJudge] {
        match self {
            Self::None => &[],
            Self::One(judge) => std::slice::from_ref(judge),
            Self::Many(judges) => judges,
        }
    }

    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [AnyJudge] {
        match self {
            Self::None => &mut [],
            Self::One(judge) => std::slice::from_mut(judge),
            Self::Many(judges) => judges,
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Whether there is none but random loss, and it spares the next `packets`. If not, nothing has happened.
    pub(crate) fn spares(&mut self, packets: u16) -> bool {
        match self {
            Self::None => true,
            Self::One(AnyJudge::Impair(Impair::Independent(loss))) => loss.spares(packets),
            _ => false,
        }
    }

    /// Returns the first drop, else pass; a mark is one of the effects.
    #[inline(never)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        let judges = self.as_mut_slice();
        for judge in judges {
            match judge.judge(offer) {
                Verdict::Pass => {}
                Verdict::Mark => offer.effects().mark = true,
                dropped @ Verdict::Drop(_) => return dropped,
            }
            if offer.done().is_some_and(|effects| effects.steer.is_some()) {
                break;
            }
        }
        Verdict::Pass
    }

    /// The function that asks them about a packet. A single judge is the usual case.
    fn packet_judge(&self) -> PacketJudge<Judges> {
        match self {
            Self::One(AnyJudge::Impair(impair)) => impair.packet_judge(),
            Self::One(AnyJudge::Filter(filter)) => filter.packet_judge(),
            Self::None | Self::Many(_) => judge_in_turn,
        }
    }
}

/// See [`PacketJudge`]: asks all judges of a sequence. Of several none foresees anything.
fn judge_in_turn(
    judges: &mut Judges,
    pool: &Pool,
    handle: Handle,
    now: Nanos,
    bytes: u32,
    affected: &mut Affected,
) -> JudgesVerdict {
    ask_fully(|offer| judges.chain.judge(offer), pool, handle, Coming { now, frame: bytes }, affected)
}

impl Holds<Filter> for Judges {
    #[inline(always)]
    fn held(&mut self) -> (Option<&mut Filter>, &mut Foresight) {
        let Self { chain, foreseen, .. } = self;
        (if let Chain::One(AnyJudge::Filter(filter)) = chain { Some(filter) } else { None }, foreseen)
    }
}

impl Holds<Impair> for Judges {
    #[inline(always)]
    fn held(&mut self) -> (Option<&mut Impair>, &mut Foresight) {
        let Self { chain, foreseen, .. } = self;
        (if let Chain::One(AnyJudge::Impair(impair)) = chain { Some(impair) } else { None }, foreseen)
    }
}

/// Judges and the function that asks them.
#[derive(Debug)]
pub(crate) struct Judges {
    /// In order.
    pub chain: Chain,
    ask: PacketJudge<Self>,
    /// By a single judge.
    foreseen: Foresight,
}

impl Default for Judges {
    fn default() -> Self {
        Self::new(Chain::None)
    }
}

impl Judges {
    pub(crate) fn new(chain: Chain) -> Self {
        Self { ask: chain.packet_judge(), chain, foreseen: Foresight::NONE }
    }

    /// Takes all of them out, as they are after the packets that have come.
    pub(crate) fn take(&mut self) -> Vec<AnyJudge> {
        self.recall();
        std::mem::take(self).chain.into_vec()
    }

    /// Whether a packet of `frame` bytes that comes at `now` is foreseen, and so passes.
    #[inline(always)]
    pub(crate) fn foresees(&mut self, now: Nanos, frame: u32) -> bool {
        self.foreseen.has(now, frame)
    }

    /// Asks them about a packet in the pool, unless it is foreseen. Further effects go to `affected`.
    #[inline(always)]
    pub(crate) fn judge_packet(
        &mut self,
        pool: &Pool,
        handle: Handle,
        coming: Coming,
        affected: &mut Affected,
    ) -> JudgesVerdict {
        if self.foresees(coming.now, coming.frame) {
            return JudgesVerdict::Passes;
        }
        self.ask(pool, handle, coming, affected)
    }

    /// Asks them about a packet in the pool that is not foreseen. Further effects go to `affected`.
    #[inline(always)]
    pub(crate) fn ask(
        &mut self,
        pool: &Pool,
        handle: Handle,
        Coming { now, frame }: Coming,
        affected: &mut Affected,
    ) -> JudgesVerdict {
        (self.ask)(self, pool, handle, now, frame, affected)
    }

    /// Returns the first drop, else pass; a mark is one of the effects. For what comes rarely, such as
    /// segments.
    pub(crate) fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        self.recall();
        self.chain.judge(offer)
    }

    /// Lets a judge go back to the last packet that has come.
    fn recall(&mut self) {
        if let Chain::One(judge) = &mut self.chain {
            judge.recall(self.foreseen.packets());
        }
        self.foreseen = Foresight::NONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::Effects;

    /// A judge, its settings, and others.
    type Case = (&'static str, &'static str, [&'static [(&'static str, &'static str)]; 2]);

    const CASES: [Case; 16] = [
        (
            "loss",
            "correlated",
            [&[("probability", "10 %"), ("correlation", "50 %")], &[("probability", "2 %")]],
        ),
        ("loss", "burst", [&[("loss", "3 %")], &[("loss", "60 %"), ("ecn", "yes")]]),
        ("loss", "gilbert-elliott", [&[("p", "1 %"), ("r", "25 %")], &[("p", "30 %"), ("r", "30 %")]]),
        ("loss", "markov", [&[("p13", "1 %"), ("p31", "25 %")], &[("p13", "90 %"), ("p31", "10 %")]]),
        ("loss", "drawn", [&[("distribution", "0 0; 0.02 1")], &[("distribution", "0 0; 1 1")]]),
        (
            "loss",
            "limited",
            [&[("probability", "40 %"), ("most", "2")], &[("probability", "1 %"), ("most", "9")]],
        ),
        ("loss", "pattern", [&[("every", "100")], &[("every", "3"), ("list", "100-130, 4000-4500")]]),
        ("loss", "trace", [&[("file", "0 s 1 %; 20 ms 90 %; 21 ms end")], &[("file", "0 s 0 %; 1 ms 9 %")]]),
        ("bit-error", "rate", [&[("rate", "1e-5")], &[("rate", "1e-3"), ("action", "deliver")]]),
        ("bit-error", "per-packet", [&[("probability", "1 %")], &[("probability", "70 %"), ("bits", "3")]]),
        ("duplicate", "independent", [&[("probability", "1 %")], &[("probability", "90 %")]]),
        ("reorder", "independent", [&[("probability", "1 %")], &[("probability", "100 %"), ("gap", "7")]]),
        ("mtu", "drop", [&[("mtu", "1400")], &[("mtu", "500")]]),
        ("mtu", "too-big", [&[("mtu", "1400")], &[("mtu", "500")]]),
        ("state", "flap", [&[("up", "50 ms"), ("down", "2 ms")], &[("up", "1 ms"), ("down", "1 ms")]]),
        ("state", "trace", [&[("file", "0 s up; 9 ms down; 10 ms end")], &[("file", "0 s down; 5 ms up")]]),
    ];

    fn values((key, kind, given): &Case, which: usize) -> (&'static Spec, Values) {
        let known = |spec: &&&Spec| (spec.key, spec.kind) == (*key, *kind);
        let spec = *Filter::SPECS.iter().chain(Impair::SPECS).find(known).unwrap();
        (spec, Values::read(spec, given[which]).unwrap())
    }

    fn judges(case: &Case) -> Judges {
        let (spec, values) = values(case, 0);
        Judges::new(Chain::One(AnyJudge::build(spec, &values, || Dice::named(7, spec.kind)).unwrap()))
    }

    fn change(judges: &mut Judges, values: &Values, now: Nanos) {
        let mut taken = judges.take();
        taken[0].change(values, now);
        *judges = Judges::new(Chain::new(taken));
    }

    /// Asks about each packet.
    fn asked(judges: &mut Judges, mut offer: Offer<'_>) -> (Verdict, Effects) {
        let verdict = judges.chain.judge(&mut offer);
        (verdict, offer.done().copied().unwrap_or_default())
    }

    /// A judge that foresees, now and then asked in the other way, or changed, against one that is asked
    /// about each packet: of several lengths, after several times. Each passes some that are foreseen.
    #[test]
    fn what_is_foreseen_is_what_would_have_been_decided() {
        let mut pool = Pool::new(1 << 20).unwrap();
        for case in &CASES {
            let (mut foreseeing, mut reference) = (judges(case), judges(case));
            let mut dice = Dice::named(3, case.1);
            let (mut now, mut frame, mut which, mut foreseen) = (Nanos::ZERO, 60, 0, 0);
            for number in 0..20_000 {
                now += if dice.below(4) == 0 { Nanos(dice.below(2_000_000)) } else { Nanos(dice.below(3)) };
                if dice.below(20) == 0 {
                    frame = 60 + dice.below(1500) as u32;
                }
                if dice.below(200) == 0 {
                    which = 1 - which;
                    let (_, values) = values(case, which);
                    change(&mut foreseeing, &values, now);
                    change(&mut reference, &values, now);
                }
                let mut bytes = vec![0; frame as usize];
                (bytes[12], bytes[14], bytes[15]) = (8, 0x45, 2 * (number % 2) as u8);
                let handle = pool.insert(&bytes).unwrap();
                let offer = || Offer::pooled(now, frame, &pool, handle);
                let wanted = asked(&mut reference, offer());
                let got = if dice.below(100) == 0 {
                    let mut offer = offer();
                    let verdict = foreseeing.judge(&mut offer);
                    (verdict, offer.done().copied().unwrap_or_default())
                } else {
                    foreseen += u32::from({ foreseeing.foreseen }.has(now, frame));
                    let mut affected = None;
                    match foreseeing.judge_packet(&pool, handle, Coming { now, frame }, &mut affected) {
                        JudgesVerdict::Passes => (Verdict::Pass, Effects::default()),
                        JudgesVerdict::Lost(reason) => (Verdict::Drop(reason), Effects::default()),
                        JudgesVerdict::Affected => affected.unwrap(),
                    }
                };
                assert_eq!(got, wanted, "{} {}, packet {number}", case.0, case.1);
                pool.free(handle);
            }
            assert_eq!(foreseen > 5000, case.1 != "rate", "{} {}: {foreseen} foreseen", case.0, case.1);
        }
    }
}
