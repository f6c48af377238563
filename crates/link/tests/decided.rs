//! A link on which all is decided when packets arrive, beside one that serves them: the same seed, arrivals and changes give the same trace.
//!
//! The served one has a judge on the wire that does nothing, so that its packets wait until they are sent.

use longwire_block::{Dice, Values};
use longwire_link::{Fifo, LinkConfig, Links, registry};
use longwire_packet::{Gso, Pool};
use longwire_units::Nanos;

const HEADERS: usize = 54;
const SEGMENT: usize = 1000;

/// A link, its packets, and what became of them.
struct Side {
    pool: Pool,
    links: Links,
    trace: Vec<String>,
}

impl Side {
    fn new(seed: u64, keys: &[(&str, String)], served: bool) -> Self {
        let mut config = LinkConfig::default();
        for (key, text) in keys {
            config = config.with_text(key, text).unwrap();
        }
        if served {
            config = config.with_text("bit-error", "0").unwrap();
        }
        let mut links = Links::with_capacity(1, seed, Nanos(10_000));
        links.add(0, "test", &config);
        Self { pool: Pool::new(8 << 20).unwrap(), links, trace: Vec::new() }
    }

    fn arrive(&mut self, number: u64, at: u64, bytes: usize, segments: u16) {
        let mut frame =
            vec![0; if segments == 1 { bytes } else { HEADERS + usize::from(segments) * SEGMENT }];
        if segments > 1 {
            (frame[12], frame[14], frame[23], frame[46]) = (8, 0x45, 6, 0x50);
            let total = (frame.len() - 14) as u16;
            frame[16..18].copy_from_slice(&total.to_be_bytes());
        }
        let handle = self.pool.insert(&frame).unwrap();
        let meta = self.pool.meta_mut(handle);
        (meta.arrival, meta.seq) = (at, number << 16);
        if segments > 1 {
            (meta.gso, meta.gso_size) = (Gso::TcpV4 as u8, SEGMENT as u16);
            (meta.header_len, meta.segments) = (HEADERS as u16, segments);
        }
        let mut out = Fifo::EMPTY;
        self.links.arrive(&mut self.pool, 0, handle, &mut out);
        self.collect(out);
    }

    fn expire(&mut self, until: u64, one_by_one: bool) {
        let mut out = Fifo::EMPTY;
        if one_by_one {
            while let Some(handle) = self.links.expire_one(&mut self.pool, 0, Nanos(until)) {
                out.push(&mut self.pool, handle);
            }
        } else {
            self.links.expire(&mut self.pool, 0, Nanos(until), &mut out);
        }
        self.collect(out);
    }

    fn collect(&mut self, mut out: Fifo) {
        while let Some(handle) = out.pop(&self.pool) {
            let meta = self.pool.meta(handle);
            // When it counts as having come: not before what was done by then.
            self.trace.push(format!("{} came at {} and leaves at {}", meta.seq, meta.arrival, meta.leave));
            self.pool.free(handle);
        }
    }

    fn change(&mut self, now: u64, key: &str, kind: &str, given: &[(&str, &str)]) {
        let spec = registry().into_iter().find(|spec| (spec.key, spec.kind) == (key, kind)).unwrap();
        let values = Values::read(spec, given).unwrap();
        self.links.change(&mut self.pool, 0, Nanos(now), &[(spec, values)]).unwrap();
    }

    fn count(&mut self, now: u64) {
        let stats = self.links.stats(&mut self.pool, 0, Nanos(now));
        assert!(stats.is_conserved(), "{stats:?}");
        self.trace.push(format!("{stats:?}"));
    }
}

const RATES: [&str; 9] = [
    "unlimited",
    "300 bit/s",
    "64 kbit/s",
    "1 Mbit/s",
    "97000003 bit/s",
    "1 Gbit/s",
    "10 Gbit/s",
    "400 Gbit/s",
    "0",
];
const DELAYS: [&str; 5] = ["0 ns", "1 ns", "777 ns", "50 us", "10 ms"];
const LIMITS: [&str; 8] =
    ["0 packets", "1 packets", "2 packets", "5 packets", "1000 packets", "3 kB", "20 us", "30 ms"];
const FRAMINGS: [&str; 4] = ["ethernet", "ip", "wire", "atm"];

fn one_of<'t>(dice: &mut Dice, texts: &[&'t str]) -> &'t str {
    texts[dice.below(texts.len() as u64) as usize]
}

/// About how long a packet takes at a rate.
fn usual(rate: &str) -> u64 {
    let bits: u64 = match rate {
        "unlimited" | "0" => return 500,
        text => text.parse::<longwire_units::Rate>().unwrap().0,
    };
    (8_000_000_000 * 300 / bits).max(2)
}

/// One run of both; the number of packets that were dropped.
fn compare(case: u64) -> usize {
    let mut dice = Dice::named(case, "decided");
    let (mut rate, delay) = (one_of(&mut dice, &RATES), one_of(&mut dice, &DELAYS));
    let keys = [
        ("rate", rate.to_owned()),
        ("delay", delay.to_owned()),
        ("queue", one_of(&mut dice, &LIMITS).to_owned()),
        ("loss", one_of(&mut dice, &["0 %", "0 %", "10 %"]).to_owned()),
    ];
    let changes = dice.below(3) > 0;
    let mut sides = [Side::new(case, &keys, false), Side::new(case, &keys, true)];
    let mut now = 1_000_000;
    for number in 0..400 {
        let gap = usual(rate);
        if dice.below(3) > 0 {
            now += dice.below(gap * 2);
        }
        if dice.below(40) == 0 {
            now += dice.below(gap * 100);
        }
        // A stamp may lie before one that was there already.
        let stamp = if dice.below(20) == 0 { now - dice.below(gap.min(now)) } else { now };
        let (bytes, segments) = (20 + dice.below(1500) as usize, [1, 1, 1, 1, 7][dice.below(5) as usize]);
        let segments = if case.is_multiple_of(3) { segments } else { 1 };
        let (act, until, one) = (dice.below(60), now - dice.below(gap.min(now)), dice.below(2) == 0);
        let change = (one_of(&mut dice, &RATES), one_of(&mut dice, &DELAYS), one_of(&mut dice, &LIMITS));
        let framing = one_of(&mut dice, &FRAMINGS);
        for side in &mut sides {
            match act {
                0..20 => side.expire(until, one),
                20..23 => side.count(now),
                23 if changes => {
                    side.change(now, "rate", "constant", &[("rate", change.0), ("framing", framing)]);
                }
                24 if changes => side.change(now, "delay", "constant", &[("delay", change.1)]),
                25 if changes => side.change(now, "queue", "tail-drop", &[("limit", change.2)]),
                26 if changes => side.change(now, "queue", "codel", &[]),
                27 if changes => {
                    side.change(now, "delay", "jitter", &[("delay", "1 ms"), ("jitter", "1 ms")]);
                }
                _ => {}
            }
            side.arrive(number, stamp, bytes, segments);
        }
        if act == 23 && changes {
            rate = change.0;
        }
    }
    for side in &mut sides {
        side.count(now);
        side.expire(u64::MAX / 4, false);
        side.count(u64::MAX / 4);
    }
    let [decided, served] = sides;
    let differs = decided.trace.iter().zip(&served.trace).position(|(one, other)| one != other);
    if let Some(at) = differs {
        panic!("case {case}, {keys:?}:\n{}\n{}", decided.trace[at], served.trace[at]);
    }
    assert_eq!(decided.trace.len(), served.trace.len(), "case {case}");
    decided.trace.len()
}

#[test]
fn decided_links_do_what_served_ones_do() {
    let lines: usize = (0..600).map(compare).sum();
    assert!(lines > 100_000, "{lines} lines are too few to say anything");
}
