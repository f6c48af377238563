//! WF²Q+: classes share the link by weight, and none is ever served more than a packet ahead of its share.

use super::classes::{ClassSet, Classed, Scheduler, read_lines};
use super::heap::Heap;
use crate::piece::LineError;
use longwire_block::{Block, Dice, Grammar};
use longwire_settings::Settings;
use longwire_units::{Nanos, Rate};
use std::sync::Arc;

/// Highest weight.
const MAX_WEIGHT: u32 = 1_000_000;
/// Fractional bits of virtual time.
const POINT: u32 = 63;
/// Bits sent in 10⁻⁹ s at 1 bit/s, in bytes.
const NANOBITS: u64 = 8_000_000_000;

const CLASSES: Grammar = Grammar {
    wanted: "classes, one a line, such as \"web weight 3 if tcp port 80\"",
    form: None,
    read: |text, _| Ok(Arc::new(read(text).map_err(|error| error.to_string())?)),
    examples: &[
        "all weight 1",
        "a weight 3 if tcp and less 500\nb weight 1",
        "b weight 1000000 limit 20 kB if tcp and greater 900\na weight 1 limit 3 packets\n\
         c weight 7 if ip[1] = 0 and less 200",
        "x weight 2 limit unlimited if greater 300\ny weight 5 limit 20 ms",
        "x weight 2 queue codel target 1 ms interval 5 ms if less 600\n\
         y weight 5 limit 9 packets queue fq-codel flows 4\nz weight 1 if udp",
    ],
};

/// Worst-case fair weighted fair queueing.
///
/// Each class is first in, first out with tail drop, unless it has its own discipline.
///
/// Virtual time is 2⁻⁶³ bytes of a class of weight 1, in 128 bits: it never overflows (2⁶⁵ bytes of weight
/// 1). A packet advances it by its bytes times 2⁶³/weight rounded down, a product without remainder: a share
/// is wrong by less than one part in 2⁶³/weight, which is 10⁻¹³ for the highest weight, for any duration. For
/// all of them together it is rounded up: a class is eligible even if its S is exactly V. Ties go to the
/// class named first.
pub type Wf2q = Classed<Shares>;

/// Classes share the rate by weight, none more than a packet ahead of its share.
#[derive(Debug, Settings)]
#[settings(
    key = "queue",
    kind = "wf2q+",
    source = "Bennett & Zhang, Hierarchical Packet Fair Queueing Algorithms (1997)",
    live
)]
pub struct Wf2qSettings {
    /// one class a line or a list of them: NAME weight N [limit L] [queue KIND [PARAMETER VALUE]...] [if
    /// EXPRESSION]; N is 1 to 1000000, L 1000 packets if not given; the first class without a condition takes
    /// all other packets
    #[setting(grammar = CLASSES)]
    classes: Arc<ClassSet<Weights>>,
}

impl Block for Wf2q {
    type Settings = Wf2qSettings;

    fn build(settings: Wf2qSettings, dice: Dice) -> Self {
        Self::new(settings.classes, dice)
    }

    /// Applies other classes, which start fresh. Waiting packets are reassigned by the new conditions.
    fn change(&mut self, settings: Wf2qSettings) {
        self.wanted = settings.classes;
    }
}

/// Weights of the classes.
#[derive(Debug, PartialEq, Eq)]
pub struct Weights(Box<[u32]>);

fn read(text: &str) -> Result<ClassSet<Weights>, LineError> {
    let lines = read_lines(text, &["weight"], "\"web weight 3 if tcp port 80\"")?;
    let mut weights = Vec::with_capacity(lines.len());
    for line in &lines {
        let fix = "write \"weight\" and a whole number from 1 to 1000000";
        let Some((_, piece)) = line.settings.first() else { return Err(line.name.found(fix)) };
        let digits = piece.text.bytes().all(|byte| byte.is_ascii_digit());
        let weight = piece.text.parse().ok().filter(|weight| digits && (1..=MAX_WEIGHT).contains(weight));
        weights.push(weight.ok_or_else(|| piece.found(fix))?);
    }
    ClassSet::new(lines, Weights(weights.into()))
}

/// The scheduler.
#[derive(Debug, Default)]
pub struct Shares {
    classes: Box<[Share]>,
    /// 2⁶³ divided by the sum of all weights, rounded up.
    inverse: u64,
    /// V at the beginning of the packet being sent, its bytes, and the time.
    time: u128,
    sent: u64,
    since: Nanos,
    /// Classes whose S is later than V, by S; the others, by F.
    waiting: Heap,
    eligible: Heap,
    /// The highest F of a sent packet.
    top: u128,
}

/// A class, with the virtual start and finish of its first packet, or the finish of its last.
#[derive(Debug, Clone)]
struct Share {
    /// 2⁶³ divided by its weight.
    inverse: u64,
    start: u128,
    finish: u128,
}

impl Share {
    /// F = S + L / r.
    #[inline]
    fn stamp(&mut self, start: u128, bytes: u64) {
        self.start = start;
        self.finish = start + u128::from(bytes) * u128::from(self.inverse);
    }
}

impl Scheduler for Shares {
    type Plan = Weights;

    fn new(Weights(weights): &Weights) -> Self {
        let one = 1u64 << POINT;
        let share = |&weight: &u32| Share { inverse: one / u64::from(weight), start: 0, finish: 0 };
        let sum: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        Self {
            classes: weights.iter().map(share).collect(),
            inverse: one.div_ceil(sum),
            waiting: Heap::new(weights.len()),
            eligible: Heap::new(weights.len()),
            ..Self::default()
        }
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.classes) + self.waiting.memory_bytes() + self.eligible.memory_bytes()
    }

    /// S = max(F, V), with V as advanced so far during transmission.
    #[inline]
    fn wake(&mut self, class: usize, bytes: u64, now: Nanos, rate: Rate) {
        let done = now.since(self.since).0.saturating_mul(rate.0) / NANOBITS;
        let time = self.time + self.virtual_of(done.min(self.sent));
        let share = &mut self.classes[class];
        share.stamp(share.finish.max(time), bytes);
        self.waiting.set(class, share.start);
    }

    /// A new busy period begins with V at the end of everything sent: no class has a debt.
    fn rest(&mut self) {
        self.settle();
        self.time = self.time.max(self.top);
    }

    /// The smallest F among those with S ≤ V, where V is at least the smallest S.
    #[inline]
    fn select(&mut self, _: Nanos) -> Option<usize> {
        self.settle();
        if let (None, Some((start, _))) = (self.eligible.first(), self.waiting.first()) {
            self.time = self.time.max(start);
        }
        while let Some((start, class)) = self.waiting.first()
            && start <= self.time
        {
            self.waiting.remove(class);
            self.eligible.set(class, self.classes[class].finish);
        }
        self.eligible.first().map(|(_, class)| class)
    }

    /// Some class always is eligible.
    fn resume(&self, now: Nanos) -> Nanos {
        now + Nanos(1)
    }

    #[inline]
    fn serve(&mut self, class: usize, bytes: u64, next: Option<u64>, now: Nanos) {
        (self.sent, self.since) = (bytes, now);
        self.eligible.remove(class);
        let share = &mut self.classes[class];
        self.top = self.top.max(share.finish);
        if let Some(bytes) = next {
            share.stamp(share.finish, bytes);
            self.waiting.set(class, share.start);
        }
    }
}

impl Shares {
    /// Advances V by the bytes sent.
    #[inline]
    fn settle(&mut self) {
        self.time += self.virtual_of(self.sent);
        self.sent = 0;
    }

    #[inline]
    fn virtual_of(&self, bytes: u64) -> u128 {
        u128::from(bytes) * u128::from(self.inverse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_class_column_and_fix() {
        let table = [
            ("", "there is no class; write one a line, such as \"web weight 3 if tcp port 80\""),
            ("a", "class 1, column 1: found \"a\"; write \"weight\" and a whole number from 1 to 1000000"),
            ("a weight 0", "class 1, column 10: found \"0\"; write \"weight\" and a whole number"),
            ("a weight", "class 1, column 9: found nothing; write \"weight\" and a whole number"),
            ("\n# b\na weight 1\nb weight +2", "class 2, column 10: found \"+2\"; write"),
            (
                "a wieght 1",
                "class 1, column 3: found \"wieght 1\"; write \"weight\", \"limit\", \"queue\" or \"if\" \
                 there",
            ),
            ("a weight 1 limit many", "class 1, column 18: found \"many\"; write packets, bytes or a time"),
            ("a weight 1 queue", "class 1, column 17: found nothing; write tail-drop, head-drop, red"),
            ("a weight 1 queue hfsc", "class 1, column 18: found \"hfsc\"; write tail-drop"),
            (
                "a weight 1 queue codel goal 1 ms",
                "class 1, column 24: found \"goal 1 ms\"; write \"limit\", \"target\"",
            ),
            ("a weight 1 queue codel target soon", "class 1, column 18: target: \"soon\""),
            ("a weight 1 queue codel target", "class 1, column 18: target: "),
            (
                "a weight 1 limit 9 queue codel limit 9",
                "class 1, column 18: found \"9\"; write \"limit\" once",
            ),
            ("a weight 1 weight 2", "class 1, column 19: found \"2\"; write \"weight\" once"),
            ("a weight 1\na weight 2", "class 2, column 1: found \"a\"; give it another name"),
            ("a! weight 1", "class 1, column 1: found \"a!\"; begin with a name"),
            ("if tcp", "class 1, column 1: found nothing; begin with a name"),
            ("a weight 1 if", "class 1, column 14: found nothing; write a condition"),
            ("a weight 1 if tcp prot 80", "class 1, column 19: found \"prot\": no such word is known"),
            ("a weight 1 if tcp", "every class has an \"if\""),
        ];
        for (text, wanted) in table {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        let many: String = (0..=1024).map(|n| format!("c{n} weight 1\n")).collect();
        let error = read(&many).unwrap_err().to_string();
        assert_eq!(error, "there are more than 1024 classes; leave some out");
    }

    /// After 104 and 65 bytes V is 169/13, which is the S of a class of weight 5 that has sent 65.
    #[test]
    fn a_class_is_eligible_at_exactly_its_start() {
        let mut shares = Shares::new(&Weights([5, 2, 3, 3].into()));
        let wake = |shares: &mut Shares, class, bytes| shares.wake(class, bytes, Nanos::ZERO, Rate(8));
        wake(&mut shares, 3, 104);
        assert_eq!(shares.select(Nanos::ZERO), Some(3));
        shares.serve(3, 104, None, Nanos::ZERO);
        for (class, bytes) in [(0, 65), (1, 65), (2, 104)] {
            wake(&mut shares, class, bytes);
        }
        assert_eq!(shares.select(Nanos::ZERO), Some(0));
        shares.serve(0, 65, Some(65), Nanos::ZERO);
        assert_eq!(shares.select(Nanos::ZERO), Some(0));
    }

    #[test]
    fn a_busy_period_begins_without_debts() {
        let mut shares = Shares::new(&Weights([1, 1].into()));
        shares.wake(0, 1000, Nanos::ZERO, Rate(8));
        for _ in 0..9 {
            assert_eq!(shares.select(Nanos::ZERO), Some(0));
            shares.serve(0, 1000, Some(1000), Nanos::ZERO);
        }
        assert_eq!(shares.select(Nanos::ZERO), Some(0));
        shares.serve(0, 1000, None, Nanos::ZERO);
        shares.rest();
        // Class 0 is named first, and has no disadvantage from having sent ten packets alone.
        shares.wake(1, 1000, Nanos::ZERO, Rate(8));
        shares.wake(0, 1000, Nanos::ZERO, Rate(8));
        assert_eq!(shares.select(Nanos::ZERO), Some(0));
    }
}
