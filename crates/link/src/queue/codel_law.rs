//! CoDel's control law: when a queue with persistent delay drops, and how the drops become more frequent (RFC
//! 8289, sections 5.3 to 5.6).

use super::QueueContext;
use super::counted::CountedFifo;
use longwire_block::DropReason;
use longwire_packet::Handle;
use longwire_units::Nanos;

/// The parameters.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Terms {
    pub target: Nanos,
    pub interval: Nanos,
    pub marks: bool,
    /// Bytes of the longest packet so far: a queue with no more waiting is not controlled.
    pub longest: u64,
}

/// The state of one queue.
#[derive(Debug, Clone, Default)]
pub(super) struct Codel {
    /// Time at which packets will have exceeded the target for an interval; zero while they do not exceed it.
    first_above: Nanos,
    drop_next: Nanos,
    /// Drops in this dropping state, and their number when it was entered.
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// Number of intervals after a dropping state within which a new one continues at its rate (RFC 8289, section
/// 5.5).
const MEMORY: u64 = 16;

impl Codel {
    /// Takes the next packet from `source`, dropping or marking those that the law selects.
    #[inline(always)]
    pub(super) fn dequeue(
        &mut self,
        settings: &Terms,
        context: &mut QueueContext<'_>,
        source: &mut CountedFifo,
    ) -> Option<Handle> {
        let head = source.pop(context.pool);
        let over = self.is_over(settings, context, head, source.bytes);
        if !self.dropping && !over {
            return head;
        }
        self.act(settings, &mut context.again(), source, (head, over))
    }

    /// Acts on packets after taking `head`, in its dropping state, or when they are `over` the target.
    #[inline(never)]
    fn act(
        &mut self,
        settings: &Terms,
        context: &mut QueueContext<'_>,
        source: &mut CountedFifo,
        (mut head, mut over): (Option<Handle>, bool),
    ) -> Option<Handle> {
        let now = context.now;
        if !self.dropping {
            let spared = signal(settings, context, head);
            if spared.is_none() {
                head = source.pop(context.pool);
                // The following packet is delivered, whatever its delay.
                self.is_over(settings, context, head, source.bytes);
            }
            self.enter(settings, now);
            return head;
        }
        self.dropping = over;
        while self.dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            if signal(settings, context, head).is_some() {
                self.drop_next = control_law(self.drop_next, settings.interval, self.count);
                return head;
            }
            head = source.pop(context.pool);
            over = self.is_over(settings, context, head, source.bytes);
            if over {
                self.drop_next = control_law(self.drop_next, settings.interval, self.count);
            } else {
                self.dropping = false;
            }
        }
        head
    }

    /// Whether packets have exceeded the target for an interval, `head` being the last (section 5.6,
    /// dodequeue).
    #[inline(always)]
    fn is_over(
        &mut self,
        settings: &Terms,
        context: &QueueContext<'_>,
        head: Option<Handle>,
        backlog: u64,
    ) -> bool {
        let Some(head) = head else {
            self.first_above = Nanos::ZERO;
            return false;
        };
        let waited = context.now.since(Nanos(context.pool.meta(head).arrival));
        if waited < settings.target || backlog <= settings.longest {
            self.first_above = Nanos::ZERO;
            return false;
        }
        if self.first_above == Nanos::ZERO {
            self.first_above = context.now + settings.interval;
            return false;
        }
        context.now >= self.first_above
    }

    /// Enters the dropping state after its first drop. If the last state was recent, its rate is a good
    /// starting point.
    fn enter(&mut self, settings: &Terms, now: Nanos) {
        self.dropping = true;
        let more = self.count.wrapping_sub(self.last_count);
        let recent = now.since(self.drop_next).0 < settings.interval.0.saturating_mul(MEMORY);
        self.count = if more > 1 && recent { more } else { 1 };
        self.drop_next = control_law(now, settings.interval, self.count);
        self.last_count = self.count;
    }
}

/// Marks the packet if configured and possible, and returns it; otherwise drops it.
fn signal(settings: &Terms, context: &mut QueueContext<'_>, head: Option<Handle>) -> Option<Handle> {
    let head = head?;
    if settings.marks && context.mark(head) {
        return Some(head);
    }
    context.drop(head, DropReason::Aqm);
    None
}

/// t + interval / √count, rounded down; less than interval · 2⁻³² + 1 ns too small. Computed at drops only.
fn control_law(t: Nanos, interval: Nanos, count: u32) -> Nanos {
    // 1/√count in steps of 2⁻³².
    let inverse = if count <= 1 { 1 << 32 } else { (u64::MAX / u64::from(count)).isqrt() };
    t + Nanos(((u128::from(interval.0) * u128::from(inverse)) >> 32) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 ms / √n for n = 1, 2, 3, 4, 9, 100, 10⁶, from a table of square roots.
    #[test]
    fn intervals_by_the_square_root() {
        for (count, wanted) in [
            (1, 100_000_000),
            (2, 70_710_678),
            (3, 57_735_026),
            (4, 50_000_000),
            (9, 33_333_333),
            (100, 10_000_000),
            (1_000_000, 100_000),
            (u32::MAX, 1_525),
        ] {
            let next = control_law(Nanos(5), Nanos::from_millis(100), count).0 - 5;
            assert!(next <= wanted && wanted - next <= 1, "{count}: {next}");
        }
    }

    /// Section 5.5: after 10 more drops than at its start, and within 16 intervals, the next state starts at
    /// 10; later at 1.
    #[test]
    fn remembers_the_last_dropping_state() {
        let settings = Terms { target: Nanos(5), interval: Nanos(100), marks: false, longest: 0 };
        for (count, last_count, ago, wanted) in
            [(12, 2, 1599, 10), (12, 2, 1600, 1), (3, 2, 0, 1), (4, 2, 0, 2), (0, 0, 0, 1)]
        {
            let drop_next = Nanos(10_000 - ago);
            let mut codel = Codel { count, last_count, drop_next, ..Codel::default() };
            codel.enter(&settings, Nanos(10_000));
            assert_eq!((codel.count, codel.last_count), (wanted, wanted));
        }
    }
}
