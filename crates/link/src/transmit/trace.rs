//! A rate that follows a trace.

use super::framing::{BYTE, Framing, Layer, OVERHEAD_PARAM};
use super::{Ahead, Sender};
use longwire_block::{Block, Dice, Fallback, Grammar, Param, ParamKind};
use longwire_settings::{Choice, Settings};
use longwire_trace::{Cursor, Deliveries, End, Opportunities, Rates, mahimahi};
use longwire_units::{Nanos, Rate};
use std::sync::Arc;

/// Sends at the rates of a trace, which count from the start of the run, so that links with the same trace
/// are in step.
///
/// Rates hold from one time to the next, and a packet's bits are sent across as many steps and outages as
/// they take, exactly, with the remainder carried within a busy period.
///
/// Delivery opportunities (mahimahi) each take 1504 bytes: of one packet, of several, or of a part of one. A
/// packet waits in the queue until the opportunity comes that takes its first byte, and counts towards the
/// queue's limit until then; it is finished at the opportunity that takes its last byte. Opportunities
/// without waiting packets are lost, and so is one at the exact time at which a packet arrives at an idle
/// link.
#[derive(Debug)]
pub struct Trace {
    framing: Framing,
    rates: Arc<Rates>,
    mean: Rate,
    end: End,
    /// Beginning of the run on the engine's clock.
    begin: Nanos,
    state: TraceState,
    ahead: Ahead<TraceState>,
    /// Positions among the opportunities at which the packet begins and ends.
    from: Place,
    to: Place,
}

/// The packet being sent.
#[derive(Debug, Clone, Copy, Default)]
struct TraceState {
    /// Beginning of the packet being sent, or the time up to which it is settled, from the start of the run.
    start: Nanos,
    /// Work left at `start`.
    work: u64,
    finish: Nanos,
    /// Surplus work at `finish`.
    rest: u64,
    cursor: Cursor,
}

/// A position among opportunities: the next one, and the remaining bytes of the one before it.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    next: Deliveries,
    left: u64,
}

/// The parameter that says what comes after the end of a trace.
pub(crate) const END_PARAM: Param = Param {
    name: "end",
    kind: ParamKind::Choice(End::WORDS),
    default: Fallback::Value("loop"),
    help: "after the end of the trace: loop (start again), hold (keep the last value), clear (as without a \
        trace)",
    live: true,
};

/// Which bytes a trace counts: `auto`, or one of [`Layer`], in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Choice)]
pub(crate) enum TraceFraming {
    Auto,
    Ethernet,
    Ip,
    Wire,
    Atm,
}

impl TraceFraming {
    /// The layer, unless it follows from the trace.
    fn layer(self) -> Option<Layer> {
        Layer::ALL.get((self as usize).checked_sub(1)?).copied()
    }
}

const RATES: Grammar = Grammar {
    wanted: "the file of a trace (mahimahi, TheaterQ, times and rates), or a trace such as \"0 s 10 Mbit/s; \
        5 s 1 Mbit/s\"",
    read: |text, base| Ok(longwire_trace::rates(text, base).map_err(|error| error.to_string())?),
    examples: &[
        "0 s 10 Mbit/s; 5 ms 1 Mbit/s; 20 ms 0; 30 ms end",
        "0;1;1;4;9",
        "0 s 3 Mbit/s",
        "0 s 0; 1 ms unlimited; 2 ms 5 kbit/s",
        "10000,0,1000000,0,0;300,0,0,0,0;5000,0,700000,0,0",
    ],
    form: None,
};

/// Sends at the rates, or by the delivery opportunities, of a trace.
#[derive(Debug, Settings)]
#[settings(
    key = "rate",
    kind = "trace",
    source = "Mahimahi: Accurate Record-and-Replay for HTTP (USENIX ATC 2015), section 3.3; TheaterQ's trace \
        files",
    live
)]
pub struct TraceSettings {
    /// a file with a mahimahi trace, a TheaterQ trace or a list of times and rates; or the list itself
    #[setting(grammar = RATES)]
    pub file: Arc<Rates>,
    #[setting(like = END_PARAM)]
    end: End,
    /// bytes the rate counts: auto (ip and 4 bytes for a mahimahi trace, as mahimahi counts; else ethernet),
    /// ethernet, ip, wire, atm, as for a constant rate
    #[setting(default = "auto")]
    framing: TraceFraming,
    #[setting(like = OVERHEAD_PARAM)]
    overhead: u64,
}

impl Block for Trace {
    type Settings = TraceSettings;

    fn build(settings: TraceSettings, _: Dice) -> Self {
        let mut block = Self {
            framing: Framing::default(),
            rates: Arc::clone(&settings.file),
            mean: Rate::MAX,
            end: settings.end,
            begin: Nanos::ZERO,
            state: TraceState::default(),
            ahead: Ahead::default(),
            from: Place::default(),
            to: Place::default(),
        };
        block.begin_trace();
        block.with(settings)
    }

    /// Applies another trace, from the current time on, to every bit not yet sent.
    fn change(&mut self, settings: TraceSettings) {
        let TraceSettings { file, end, framing, overhead } = settings;
        self.framing = match (framing.layer(), &*file) {
            // mahimahi counts IP packets and the four bytes that its TUN device puts before them.
            (None, Rates::Opportunities(_)) => Framing::of(Layer::Ip, mahimahi::BYTES - 1500 + overhead),
            (layer, _) => Framing::of(layer.unwrap_or(Layer::Ethernet), overhead),
        };
        if !Arc::ptr_eq(&self.rates, &file) || self.end != end {
            (self.rates, self.end) = (file, end);
            self.begin_trace();
        }
    }

    fn start(&mut self, begin: Nanos) {
        self.begin = begin;
    }
}

impl Sender for Trace {
    #[inline]
    fn framing(&self) -> Framing {
        self.framing
    }

    #[inline]
    fn begin(&mut self, start: Nanos, bytes: u64) {
        self.take_over(start, bytes * BYTE);
        self.look_ahead();
    }

    #[inline]
    fn follow(&mut self, finish: Nanos, bytes: u64) {
        self.ahead.leave_behind(&self.state);
        self.state.start = finish - self.begin;
        self.state.work = self.state.rest + bytes * BYTE;
        self.from = self.to;
        self.compute_finish();
    }

    #[inline]
    fn finish(&self) -> Nanos {
        self.state.finish + self.begin
    }

    fn settle(&mut self, now: Nanos) {
        let now = now.since(self.begin);
        match &*self.rates {
            Rates::Steps(steps) => {
                self.state.work -= steps.done(&mut self.state.cursor, self.state.start, now, self.state.work);
            }
            Rates::Opportunities(trace) => {
                while self.state.work > 0
                    && (self.from.left > 0 || self.from.next.next(trace).is_some_and(|at| at <= now))
                {
                    if self.from.left == 0 {
                        self.from.next.take(trace);
                        self.from.left = mahimahi::BYTES;
                    }
                    let taken = self.from.left.min(self.state.work.div_ceil(BYTE));
                    self.from.left -= taken;
                    self.state.work = self.state.work.saturating_sub(taken * BYTE);
                }
            }
        }
        self.state.start = self.state.start.max(now);
    }

    fn by_opportunities(&self) -> bool {
        matches!(*self.rates, Rates::Opportunities(_))
    }

    fn next_opportunity(&self, finish: Nanos) -> Nanos {
        if self.to.left > 0 { finish } else { self.awaited().max(finish) }
    }

    fn opportunity_after(&mut self, now: Nanos) -> Nanos {
        if let Rates::Opportunities(trace) = &*self.rates {
            self.to.left = 0;
            self.to.next.pass(trace, now.since(self.begin));
        }
        self.awaited().max(now)
    }

    /// The mean of the trace; the highest finite rate if it is ever unlimited, because packets may wait all
    /// the same.
    #[inline]
    fn rate(&self) -> Rate {
        self.mean
    }

    /// The highest rate of the trace; unlimited if it ends without a limit.
    fn highest(&self, _: u64) -> Rate {
        if self.end == End::Clear { Rate::UNLIMITED } else { self.rates.highest() }
    }

    fn foresees(&self) -> bool {
        matches!(&*self.rates, Rates::Steps(steps) if steps.goes_on(self.end))
    }

    #[inline]
    fn look_ahead(&mut self) {
        self.ahead.is_ahead = false;
    }

    #[inline]
    fn pass(&mut self, finish: Nanos, bytes: u64) {
        std::mem::swap(&mut self.state, &mut self.ahead.behind);
        self.follow(finish, bytes);
        std::mem::swap(&mut self.state, &mut self.ahead.behind);
    }

    fn go_back(&mut self, _now: Nanos, _first: Nanos, _last: Nanos, _behind: u64) {
        self.ahead.go_back(&mut self.state);
    }

    fn work_left(&self) -> u64 {
        self.state.work
    }

    fn take_over(&mut self, now: Nanos, work: u64) {
        self.state.start = now.since(self.begin);
        self.state.work = work;
        if let Rates::Opportunities(trace) = &*self.rates {
            self.from = self.to;
            self.from.left = 0;
            self.from.next.pass(trace, self.state.start);
        }
        self.compute_finish();
    }
}

impl Trace {
    /// Time of the next unused opportunity; the end of the trace, if that ends all limits.
    fn awaited(&self) -> Nanos {
        match &*self.rates {
            Rates::Opportunities(trace) => self.begin + self.to.next.next(trace).unwrap_or(trace.length()),
            Rates::Steps(_) => Nanos::ZERO,
        }
    }

    #[inline]
    fn compute_finish(&mut self) {
        match &*self.rates {
            Rates::Steps(steps) => {
                let done = steps.finish(&mut self.state.cursor, self.state.start, self.state.work);
                (self.state.finish, self.state.rest) = (done.at, done.rest);
            }
            Rates::Opportunities(trace) => {
                (self.state.finish, self.to) =
                    by_opportunities(trace, self.from, self.state.start, self.state.work);
            }
        }
    }

    /// Begins to follow the trace, at the time reached.
    fn begin_trace(&mut self) {
        self.mean = self.rates.mean().min(Rate::MAX);
        self.state.rest = 0;
        self.state.cursor = Cursor::new(self.end);
        self.from = Place { next: Deliveries::new(self.end), left: 0 };
        if let Rates::Opportunities(trace) = &*self.rates {
            self.from.next.pass(trace, self.state.start);
        }
        self.to = self.from;
        self.compute_finish();
    }
}

/// Time of the opportunity that takes the last of `work`, and the rest of it.
#[inline]
fn by_opportunities(trace: &Opportunities, from: Place, start: Nanos, work: u64) -> (Nanos, Place) {
    let bytes = work.div_ceil(BYTE);
    let (mut to, mut finish) = (from, start);
    while to.left < bytes {
        match to.next.next(trace) {
            Some(at) => finish = finish.max(at),
            None => return (finish.max(trace.length()), Place { left: 0, ..to }),
        }
        to.next.take(trace);
        to.left += mahimahi::BYTES;
    }
    to.left -= bytes;
    (finish, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trace(file: &str, end: &str, framing: &str) -> Trace {
        let given = [("file", file), ("end", end), ("framing", framing)];
        Trace::build(Settings::read(&given).unwrap(), Dice::named(0, ""))
    }

    fn set(link: &mut Trace, file: &str) {
        link.change(TraceSettings::read(&[("file", file)]).unwrap());
    }

    #[test]
    fn counts_as_the_tool_that_made_the_trace() {
        for (file, framing, counted) in [
            ("3;7", "auto", 1504),
            ("3;7", "ip", 1500),
            ("3;7", "ethernet", 1518),
            ("0 s 1 Mbit/s", "auto", 1518),
            ("0 s 1 Mbit/s", "atm", 32 * 53),
            ("10,0,1000000,0,0\n", "wire", 1538),
        ] {
            assert_eq!(trace(file, "loop", framing).framing().counted(1514, 14), counted, "{file} {framing}");
        }
    }

    #[test]
    fn tells_its_highest_rate_beforehand() {
        for (file, end, highest) in [
            ("0 s 1 Mbit/s; 10 ms 0; 30 ms 2 Mbit/s; 40 ms end", "loop", Rate(2_000_000)),
            ("0 s 1 Mbit/s; 10 ms unlimited; 30 ms 0", "hold", Rate::UNLIMITED),
            ("0 s 1 Mbit/s; 10 ms end", "clear", Rate::UNLIMITED),
            // Two opportunities of 1504 bytes in a millisecond.
            ("1;3;3;7", "loop", Rate(24_064_000)),
        ] {
            assert_eq!(trace(file, end, "auto").highest(1500), highest, "{file} {end}");
        }
    }

    /// 1000 bytes are 8 ms at 1 Mbit/s. 1 Mbit/s until 10 ms, nothing until 30 ms, then 2 Mbit/s until 40 ms,
    /// and again.
    #[test]
    fn a_packet_is_sent_across_steps_outages_and_rounds() {
        let mut link = trace("0 s 1 Mbit/s; 10 ms 0; 30 ms 2 Mbit/s; 40 ms end", "loop", "ip");
        let mut ends = Vec::new();
        link.begin(Nanos::ZERO, 1000);
        for _ in 0..5 {
            ends.push(link.finish().0 / 1000);
            crate::transmit::follow(&mut link, 1000);
        }
        // 8 ms; 2 ms and 3 ms after the outage; 4 ms; 3 ms (6000 bits) and 2 ms of the next round; 8 ms.
        assert_eq!(ends, [8_000, 33_000, 37_000, 42_000, 50_000]);
        // The 16 000 bits of the second round from 50 ms on: none is left before the outage ends at 70 ms.
        assert_eq!(link.finish(), Nanos::from_millis(74));
    }

    /// Time counts from the start of the run.
    #[test]
    fn links_with_the_same_trace_are_in_step() {
        let mut link = trace("0 s 0; 10 ms 1 Mbit/s; 20 ms end", "loop", "ip");
        link.start(Nanos::from_secs(7));
        link.begin(Nanos::from_secs(7), 1000);
        assert_eq!(link.finish(), Nanos::from_secs(7) + Nanos::from_millis(18));
        // A frame older than the run.
        link.begin(Nanos::from_secs(6), 1000);
        assert_eq!(link.finish(), Nanos::from_secs(7) + Nanos::from_millis(18));
    }

    /// Opportunities at 1, 1, 4, 9 and again 10, 10, 13 ms …
    #[test]
    fn packets_use_opportunities() {
        let mut link = trace("1;1;4;9", "loop", "auto");
        // Before 1 ms: of two opportunities at once, one packet of 1504 takes the first, two of 752 the
        // second.
        link.begin(Nanos(0), 1504);
        assert_eq!(link.finish(), Nanos::from_millis(1));
        for (bytes, finish) in [(752, 1), (752, 1), (500, 4), (1004, 4), (1, 9), (1503, 9), (3009, 13)] {
            crate::transmit::follow(&mut link, bytes);
            assert_eq!(link.finish(), Nanos::from_millis(finish), "{bytes}");
        }
        // 1503 bytes of the one at 13 ms are left for a waiting packet, and lost for a later one.
        crate::transmit::follow(&mut link, 1503);
        assert_eq!(link.finish(), Nanos::from_millis(13));
        link.begin(Nanos::from_millis(13), 10);
        assert_eq!(link.finish(), Nanos::from_millis(18));
        // Unused ones are lost: those at 19 and 22 ms.
        link.begin(Nanos(26_999_999), 1504);
        assert_eq!(link.finish(), Nanos::from_millis(27));
        assert_eq!(link.rate(), Rate(4 * 1504 * 8 * 1000 / 9));
    }

    #[test]
    fn after_the_end() {
        for (file, end, start, finish) in [
            ("5;10", "clear", 3, 5),
            ("5;10", "clear", 10, 10),
            ("5;10", "clear", 50, 50),
            ("5;10", "hold", 50, 51),
            ("5;10", "loop", 50, 55),
            ("0 s 12032 kbit/s; 10 ms end", "clear", 9, 10),
            ("0 s 12032 kbit/s; 10 ms end", "clear", 30, 30),
            ("0 s 1 kbit/s; 10 ms 12032 kbit/s; 11 ms end", "hold", 30, 31),
        ] {
            let mut link = trace(file, end, "ip");
            link.begin(Nanos::from_millis(start), 1504);
            assert_eq!(link.finish(), Nanos::from_millis(finish), "{file} {end} {start}");
        }
    }

    /// 1000 bytes at 1 Mbit/s take 8 ms; after 4 ms a trace of 2 Mbit/s comes, then one whose next
    /// opportunity is at 11 ms.
    #[test]
    fn a_change_takes_every_bit_not_yet_sent() {
        let mut link = trace("0 s 1 Mbit/s", "loop", "ip");
        link.begin(Nanos(0), 1000);
        link.settle(Nanos::from_millis(4));
        assert_eq!(link.work_left(), 500 * BYTE);
        set(&mut link, "0 s 2 Mbit/s");
        assert_eq!(link.finish(), Nanos::from_millis(6));
        link.settle(Nanos::from_millis(5));
        set(&mut link, "3;11");
        assert_eq!(link.finish(), Nanos::from_millis(11));
        // The packet took 250 bytes of it, and one that follows finds the rest.
        crate::transmit::follow(&mut link, 1254);
        assert_eq!(link.finish(), Nanos::from_millis(11));
    }

    /// A packet of two opportunities that is changed between them has one behind it.
    #[test]
    fn opportunities_used_stay_used() {
        let mut link = trace("3;5;9", "loop", "ip");
        link.begin(Nanos(0), 3008);
        link.settle(Nanos::from_millis(4));
        assert_eq!(link.work_left(), 1504 * BYTE);
        set(&mut link, "0 s 1504 kbit/s");
        assert_eq!(link.finish(), Nanos::from_millis(12));
        link.settle(Nanos::from_millis(6));
        assert_eq!(link.work_left(), 1128 * BYTE);
    }

    #[test]
    fn goes_on_with_what_another_began() {
        let mut link = trace("0 s 1 Mbit/s", "loop", "ip");
        link.take_over(Nanos::from_millis(3), 125 * BYTE);
        assert_eq!(link.finish(), Nanos::from_millis(4));
    }

    /// A trace whose rate changes every 10 µs, a million times, with consecutive packets over all of it: each
    /// ends where the running sum of the steps' bits, in 128 bits, says.
    #[test]
    fn a_trace_of_ten_microseconds_is_followed_exactly() {
        let rate = |k: u64| 1_000_000 + k * 7919 % 99_000_000;
        let lines: Vec<_> = (0..1_000_000).map(|k| format!("{}e-5,{}\n", k, rate(k))).collect();
        let mut link = trace(&lines.concat(), "hold", "ip");
        let (mut needed, mut summed, mut k, mut packets) = (0u128, 0u128, 0u64, 0u64);
        link.begin(Nanos::ZERO, 40);
        loop {
            needed += u128::from((40 + packets * 977 % 1461) * BYTE);
            while k < 1_000_000 && summed + u128::from(rate(k) * 10_000) < needed {
                summed += u128::from(rate(k) * 10_000);
                k += 1;
            }
            if k == 1_000_000 {
                break;
            }
            let wanted = k * 10_000 + ((needed - summed) / u128::from(rate(k))) as u64;
            assert_eq!(link.finish(), Nanos(wanted), "packet {packets}");
            packets += 1;
            crate::transmit::follow(&mut link, 40 + packets * 977 % 1461);
        }
        assert!(packets > 75_000, "{packets}");
    }

    /// mahimahi's method of emptying its queue at every opportunity, for packets that all arrived before.
    fn slow(times: &[u32], rounds: u32, packets: &[u64]) -> Vec<u64> {
        let length = *times.last().unwrap();
        let all =
            (0..rounds).flat_map(|round| times.iter().map(move |time| u64::from(round * length + time)));
        let (mut ends, mut waiting) = (Vec::new(), packets.iter().copied());
        let mut current = waiting.next();
        for time in all.filter(|&time| time > 0) {
            let mut left = mahimahi::BYTES;
            while let Some(bytes) = current.filter(|_| left > 0) {
                let taken = bytes.min(left);
                left -= taken;
                current = Some(bytes - taken).filter(|&rest| rest > 0).or_else(|| {
                    ends.push(time);
                    waiting.next()
                });
            }
        }
        ends
    }

    proptest! {
        #[test]
        fn opportunities_empty_the_queue_as_in_mahimahi(
            gaps in prop::collection::vec(0u32..4, 1..30),
            packets in prop::collection::vec(1u64..5000, 1..40),
        ) {
            let mut at = 1;
            let times: Vec<u32> = gaps.iter().map(|gap| { at += gap; at }).collect();
            let text: Vec<_> = times.iter().map(u32::to_string).collect();
            let mut link = trace(&(text.join(";") + ";"), "loop", "ip");
            let wanted = slow(&times, 200, &packets);
            for (index, (&bytes, end)) in packets.iter().zip(wanted).enumerate() {
                if index == 0 {
                    link.begin(Nanos(0), bytes);
                } else {
                    crate::transmit::follow(&mut link, bytes);
                }
                prop_assert_eq!(link.finish(), Nanos::from_millis(end));
            }
        }

        /// Settling at any times on the way changes nothing.
        #[test]
        fn settling_changes_nothing(
            file in prop::sample::select(RATES.examples),
            bytes in 1u64..20_000,
            start in 0u64..50_000,
            looks in prop::collection::vec(0u64..20_000, 1..10),
        ) {
            let mut link = trace(file, "loop", "ip");
            link.begin(Nanos::from_micros(start), bytes);
            let finish = link.finish();
            let mut now = start;
            for look in looks {
                now += look;
                if Nanos::from_micros(now) < finish {
                    link.settle(Nanos::from_micros(now));
                    let work = link.work_left();
                    let mut other = trace(file, "loop", "ip");
                    other.take_over(Nanos::from_micros(now), work);
                    prop_assert_eq!(other.finish(), finish);
                }
            }
        }
    }
}
