//! The delays of a link's blocks.

use crate::plan::Delays;
use crate::plan_links::block;
use longwire_block::{Settings, Spec, Values};
use longwire_link::delay::before_queue;
use longwire_link::delay::constant::ConstantSettings;
use longwire_link::delay::distribution::DistributionSettings;
use longwire_link::delay::jitter::JitterSettings;
use longwire_link::delay::trace::TraceSettings;
use longwire_link::impair::duplicate::DuplicateSettings;
use longwire_units::Nanos;

type Blocks<'b> = &'b [(&'static Spec, Values)];

/// The delays of a link made of these blocks.
pub(super) fn delays(blocks: Blocks<'_>) -> Delays {
    let delay = block(blocks, "delay");
    let times = delay.and_then(|(spec, values)| times(spec, values)).unwrap_or_default();
    // After a delay before the queue, a packet may leave as soon as it is sent.
    let before_queue = delay.is_some_and(|(spec, values)| before_queue(spec, values));
    let skips = before_queue || block(blocks, "reorder").is_some();
    let shortest = if skips { Nanos::ZERO } else { times.shortest };
    let is_constant = delay.is_some_and(|(spec, _)| spec.kind == "constant");
    let least = if is_constant { shortest } else { Nanos::ZERO };
    Delays { least, shortest, mean: times.mean, held: held(blocks, times.longest), before_queue }
}

impl Delays {
    /// The union of two delays of one link over time.
    pub(crate) fn or(self, other: Self) -> Self {
        let (mean, held) = (self.mean.max(other.mean), self.held.max(other.held));
        let before_queue = self.before_queue || other.before_queue;
        let (least, shortest) = (self.least.min(other.least), self.shortest.min(other.shortest));
        Self { least, shortest, mean, held, before_queue }
    }
}

/// Times of a delay.
#[derive(Default)]
struct Times {
    shortest: Nanos,
    mean: Nanos,
    longest: Nanos,
}

fn times(spec: &Spec, values: &Values) -> Option<Times> {
    match spec.kind {
        "constant" => {
            let ConstantSettings { delay, .. } = ConstantSettings::of(values);
            Some(Times { shortest: delay, mean: delay, longest: delay })
        }
        "jitter" => {
            let JitterSettings { delay, jitter, distribution, .. } = JitterSettings::of(values);
            let [least, most] = [0, u64::MAX].map(|draw| distribution.offset(draw, jitter));
            let at = |offset: i64| Nanos(delay.0.saturating_add_signed(offset));
            let is_cut = least < 0 && least.unsigned_abs() > delay.0;
            let mean = if is_cut { mean(|draw| at(distribution.offset(draw, jitter))) } else { delay };
            Some(Times { shortest: at(least), mean, longest: at(most) })
        }
        "distribution" => {
            let times = DistributionSettings::of(values).distribution;
            let (shortest, longest) = times.ends();
            Some(Times { shortest, mean: Nanos(times.mean() as u64), longest })
        }
        "trace" => Some(trace(values)),
        _ => None,
    }
}

/// The mean of a distribution, from its values at even probabilities.
fn mean(value: impl Fn(u64) -> Nanos) -> Nanos {
    const BITS: u32 = 12;
    let step = 1 << (u64::BITS - BITS);
    let sum: u128 = (0..1 << BITS).map(|at: u64| u128::from(value(at * step + step / 2).0)).sum();
    Nanos((sum >> BITS) as u64)
}

/// Times of a trace.
fn trace(values: &Values) -> Times {
    let series = TraceSettings::of(values).file;
    let whole = series.spans().map(|(length, _)| u128::from(length.0)).sum::<u128>();
    let sum = series.spans().map(|(length, delay)| u128::from(length.0) * u128::from(delay.0)).sum::<u128>();
    let first = series.steps().first().map(|step| step.1).unwrap_or_default();
    let mean = sum.checked_div(whole).map_or(first, |mean| Nanos(mean as u64));
    let longest = series.steps().iter().map(|step| step.1).max().unwrap_or_default();
    // There may be no delay after its end.
    Times { shortest: Nanos::ZERO, mean, longest }
}

/// The longest delay with that of copies.
fn held(blocks: Blocks<'_>, longest: Nanos) -> Nanos {
    let Some((_, values)) = block(blocks, "duplicate") else { return longest };
    let DuplicateSettings { probability, delay, .. } = DuplicateSettings::of(values);
    let copies = probability.as_f64() * (longest.0 as f64 + delay.0 as f64);
    Nanos(longest.0.saturating_add(copies as u64))
}
