//! Queues of ns scripts, in Emulab's interpretation of the settings and in ns-2's.
//!
//! Emulab passes limits and thresholds to dummynet unchanged; its defaults are those of its parser
//! (lanlink.tcl). ns-2 reads them as packets, of `mean_pktsize_` bytes each if a queue is measured in bytes
//! (drop-tail.cc, red.cc); its defaults are those of ns-default.tcl, in version 2.35.

mod weight;

use super::ns_value::{count, read, seconds};
use super::quantity::{Share, in_units, plain};
use super::stage::Stage;
use super::{Notes, Result};
use longwire_units::{Bytes, Nanos};
use weight::{WeightRule, weight};

/// The highest threshold of a queue, in packets.
const MOST_PACKETS: u64 = 1_000_000;
/// Possible sizes of RED's mean packet here.
const PACKETS: std::ops::RangeInclusive<u64> = 40..=65_536;

/// Dialects of scripts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Emulab: the script reads tb_compat.tcl, or has its commands.
    Emulab,
    /// That of ns-2.
    #[default]
    Ns2,
}

/// A queue's settings, by ns names. The defaults depend on the dialect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Queue {
    pub(super) kind: Kind,
    limit: Option<u64>,
    bytes: Option<bool>,
    gentle: Option<bool>,
    min: Option<u64>,
    max: Option<u64>,
    linterm: Option<u64>,
    /// RED's weight, if it is not derived by `rule`.
    weight: Option<String>,
    rule: WeightRule,
    packet: Option<u64>,
    marks: bool,
    head: bool,
    /// Whether a packet's length affects RED's probability.
    by_length: Option<bool>,
    adaptive: bool,
    target: Option<Nanos>,
    interval: Option<Nanos>,
    /// RIO's own settings, in the order of [`RIO`], unless they are the defaults.
    rio: [Option<u64>; 6],
}

/// RIO's own settings: thresholds, and 1/max-p, of In and of Out packets. The defaults are those of
/// ns-default.tcl.
const RIO: [(&str, u64); 6] = [
    ("in_thresh_", 15),
    ("in_maxthresh_", 30),
    ("in_linterm_", 50),
    ("out_thresh_", 5),
    ("out_maxthresh_", 15),
    ("out_linterm_", 5),
];

/// Kinds of queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    DropTail,
    Red,
    Rio,
    Codel,
    FairCodel,
    Drr,
}

impl Dialect {
    /// The kind of script, in a sentence.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Emulab => "An ns script of Emulab.",
            Self::Ns2 => "A script of ns-2.",
        }
    }
}

impl Queue {
    /// A new link's queue, by its name in a script; none if it is unknown.
    pub(super) fn named(name: &str) -> Option<Self> {
        let (kind, gentle) = match name.to_ascii_lowercase().as_str() {
            "droptail" | "" => (Kind::DropTail, None),
            "red" => (Kind::Red, None),
            "gred" => (Kind::Red, Some(true)),
            "red/rio" | "rio" => (Kind::Rio, None),
            "codel" => (Kind::Codel, None),
            "sfqcodel" => (Kind::FairCodel, None),
            "drr" => (Kind::Drr, None),
            _ => return None,
        };
        Some(Self { kind, gentle, ..Self::default() })
    }

    /// Sets the limit.
    pub(super) fn hold(&mut self, limit: u64) {
        self.limit = Some(limit);
    }

    /// Whether Emulab was configured to measure it in bytes.
    pub(super) fn counts_bytes(&self) -> bool {
        self.bytes == Some(true)
    }

    /// Measures it in bytes or in packets.
    pub(super) fn count_bytes(&mut self, bytes: bool) {
        self.bytes = Some(bytes);
    }

    /// Copies what dummynet stores in a pipe's flags from another queue: whether it counts bytes, and whether
    /// it is RED.
    pub(super) fn take_flags(&mut self, other: &Self) {
        (self.bytes, self.kind, self.gentle) = (other.bytes, other.kind, other.gentle);
    }

    /// Those flags in words.
    pub(super) fn flags(&self) -> &'static str {
        match (self.kind == Kind::Red, self.gentle.unwrap_or(false), self.bytes.unwrap_or(false)) {
            (true, true, true) => "gentle RED, in bytes",
            (true, true, false) => "gentle RED, in packets",
            (true, false, true) => "RED, in bytes",
            (true, false, false) => "RED, in packets",
            (false, _, true) => "drop-tail, in bytes",
            (false, _, false) => "drop-tail, in packets",
        }
    }

    /// Result of reading `set KEY`: the set value or ns's default. None if there is no such setting.
    pub(super) fn value(&self, key: &str, dialect: Dialect) -> Option<String> {
        let emulab = dialect == Dialect::Emulab;
        let truth = |given: bool| u8::from(given).to_string();
        let number = |given: Option<u64>, default: u64| given.unwrap_or(default).to_string();
        let time =
            |time: Option<Nanos>, default: u64| in_units(time.map_or(default, |time| time.0), 1_000_000_000);
        Some(match key {
            "limit_" => number(self.limit, 50),
            // In ns-2 zero means an automatic threshold.
            "thresh_" => number(self.min, if emulab { 5 } else { 0 }),
            "maxthresh_" => number(self.max, if emulab { 15 } else { 0 }),
            "linterm_" => number(self.linterm, 10),
            "q_weight_" => {
                let automatic = if emulab { "0.002" } else { self.rule.number() };
                self.weight.clone().unwrap_or_else(|| automatic.into())
            }
            "mean_pktsize_" => self.packet().to_string(),
            "gentle_" => truth(self.gentle.unwrap_or(!emulab)),
            "red_" => truth(self.kind == Kind::Red),
            "queue-in-bytes_" | "queue_in_bytes_" => truth(self.in_bytes(dialect)),
            "setbit_" => truth(self.marks),
            "drop_front_" | "drop-front_" => truth(self.head),
            "bytes_" => truth(self.by_length.unwrap_or(!emulab)),
            "adaptive_" => truth(self.adaptive),
            "target_" => time(self.target, 5_000_000),
            "interval_" => {
                time(self.interval, if self.kind == Kind::Red { 500_000_000 } else { 100_000_000 })
            }
            _ => RIO.iter().zip(self.rio()).find(|((name, _), _)| *name == key)?.1.to_string(),
        })
    }

    /// RIO's own settings, in the order of [`RIO`].
    fn rio(&self) -> [u64; 6] {
        std::array::from_fn(|at| self.rio[at].unwrap_or(RIO[at].1))
    }

    /// `set KEY VALUE`. Returns whether there is such a setting; settings of other kinds are stored without
    /// effect.
    pub(super) fn set(&mut self, line: usize, key: &str, value: Option<&String>) -> Result<bool> {
        let truth = |word: &str| Some(["1", "true", "yes"].contains(&&*word.to_ascii_lowercase()));
        let positive = |word: &str| count(word).filter(|number| *number > 0);
        let threshold = |word: &str| count(word).filter(|number| *number <= MOST_PACKETS);
        match key {
            "limit_" => self.limit = Some(read(line, key, value, "50", count)?),
            "thresh_" => self.min = Some(read(line, key, value, "5", threshold)?),
            "maxthresh_" => self.max = Some(read(line, key, value, "15", threshold)?),
            "linterm_" => self.linterm = Some(read(line, key, value, "10", positive)?),
            "q_weight_" => match value.and_then(|value| WeightRule::of(value)) {
                Some(rule) => (self.weight, self.rule) = (None, rule),
                None => self.weight = Some(read(line, key, value, "0.002", plain)?),
            },
            "mean_pktsize_" => self.packet = Some(read(line, key, value, "500", positive)?),
            "gentle_" => self.gentle = Some(read(line, key, value, "1", truth)?),
            "red_" => {
                self.kind = if read(line, key, value, "1", truth)? { Kind::Red } else { Kind::DropTail }
            }
            "queue-in-bytes_" | "queue_in_bytes_" => self.bytes = Some(read(line, key, value, "1", truth)?),
            "setbit_" => self.marks = read(line, key, value, "1", truth)?,
            "drop_front_" | "drop-front_" => self.head = read(line, key, value, "1", truth)?,
            "bytes_" => self.by_length = Some(read(line, key, value, "1", truth)?),
            "adaptive_" => self.adaptive = read(line, key, value, "1", truth)?,
            "target_" => self.target = Some(read(line, key, value, "5ms", seconds)?),
            "interval_" => self.interval = Some(read(line, key, value, "100ms", seconds)?),
            _ => {
                let Some(at) = RIO.iter().position(|(name, _)| *name == key) else { return Ok(false) };
                let usual = RIO[at].1;
                let reader =
                    |word: &str| if key.contains("linterm") { positive(word) } else { threshold(word) };
                let value = read(line, key, value, &usual.to_string(), reader)?;
                self.rio[at] = Some(value).filter(|value| *value != usual);
            }
        }
        Ok(true)
    }

    /// Writes it for a link with this rate and delay.
    pub(super) fn write(
        &self,
        line: usize,
        dialect: Dialect,
        link: (u64, Nanos),
        stage: &mut Stage,
        notes: &mut Notes,
    ) {
        let limit = self.limit(line, dialect, notes);
        match self.kind {
            Kind::DropTail if self.head => stage.block("queue", "head-drop", &[("limit", limit)]),
            Kind::DropTail => stage.set("queue", &limit),
            Kind::Red => {
                self.note_red(line, dialect, notes);
                let thresholds = self.thresholds(line, dialect, link.0, notes);
                if self.adaptive {
                    self.ared(limit, thresholds, stage);
                } else {
                    self.red(limit, (dialect, thresholds), link, stage);
                }
            }
            Kind::Rio => self.write_rio(line, limit, stage, notes),
            Kind::Codel => stage.block("queue", "codel", &self.codel(limit)),
            Kind::FairCodel => {
                let mut parameters = self.codel(limit);
                parameters.push(("ecn", "no".into()));
                stage.block("queue", "fq-codel", &parameters);
            }
            Kind::Drr => stage.block("queue", "drr", &[("limit", limit)]),
        }
    }

    /// Notes RED settings that have no counterpart here.
    fn note_red(&self, line: usize, dialect: Dialect, notes: &mut Notes) {
        if !PACKETS.contains(&self.packet()) {
            let why = "a usual packet of RED has 40 to 65536 bytes here";
            notes.add(line, &format!("mean_pktsize_ {}", self.packet()), why);
        }
        let (average, length) = (self.in_bytes(dialect), self.by_length.unwrap_or(true));
        if dialect == Dialect::Ns2 && average != length {
            let unit = if self.by_unit(dialect) { "bytes" } else { "packets" };
            let told = format!("queue_in_bytes_ {average}, bytes_ {length}");
            let why = format!(
                "what RED's average counts and what its probability goes by is one here: unit = \"{unit}\""
            );
            notes.add(line, &told, why);
        }
        if self.adaptive && self.by_unit(dialect) {
            notes.add(line, "adaptive_ 1", "an adaptive RED counts packets here");
        }
    }

    /// The parameters that RED and adaptive RED have.
    fn of_red(&self, limit: String, (min, max): (u64, u64)) -> Vec<(&'static str, String)> {
        let max_p = Share::one_in(self.linterm.unwrap_or(10)).text();
        vec![("limit", limit), ("min", min.to_string()), ("max", max.to_string()), ("max-p", max_p)]
    }

    /// Adaptive RED determines its weight by itself.
    fn ared(&self, limit: String, thresholds: (u64, u64), stage: &mut Stage) {
        let mut parameters = self.of_red(limit, thresholds);
        parameters.extend(self.interval.map(|interval| ("interval", interval.to_string())));
        parameters.extend(self.ecn());
        stage.block("queue", "ared", &parameters);
    }

    fn write_rio(&self, line: usize, limit: String, stage: &mut Stage, notes: &mut Notes) {
        let why = "packets are In by their DSCP here (af11, af21, af31, af41 unless in = \"…\" says others), \
            and not by a mark of ns";
        notes.add(line, "RED/RIO", why);
        if self.gentle == Some(true) {
            notes.add(line, "gentle_", "rio is not gentle here");
        }
        let [in_min, in_max, in_linterm, out_min, out_max, out_linterm] = self.rio();
        let mut parameters = vec![
            ("limit", limit),
            ("in-min", in_min.to_string()),
            ("in-max", in_max.to_string()),
            ("in-max-p", Share::one_in(in_linterm).text()),
            ("out-min", out_min.to_string()),
            ("out-max", out_max.to_string()),
            ("out-max-p", Share::one_in(out_linterm).text()),
            ("weight", self.weight.clone().unwrap_or_else(|| "0.002".into())),
            ("mean-packet", format!("{} B", self.packet().clamp(*PACKETS.start(), *PACKETS.end()))),
        ];
        parameters.extend(self.ecn());
        stage.block("queue", "rio", &parameters);
    }

    fn ecn(&self) -> Option<(&'static str, String)> {
        self.marks.then(|| ("ecn", "yes".into()))
    }

    fn codel(&self, limit: String) -> Vec<(&'static str, String)> {
        let times = [("target", self.target), ("interval", self.interval)];
        let given = times.into_iter().filter_map(|(key, time)| Some((key, time?.to_string())));
        std::iter::once(("limit", limit)).chain(given).collect()
    }

    fn in_bytes(&self, dialect: Dialect) -> bool {
        // In ns-2 RED counts bytes by default, since 2004.
        self.bytes.unwrap_or(self.kind == Kind::Red && dialect == Dialect::Ns2)
    }

    /// Whether RED counts bytes here, in its average and in its probability.
    fn by_unit(&self, dialect: Dialect) -> bool {
        self.in_bytes(dialect) && self.by_length.unwrap_or(true)
    }

    fn packet(&self) -> u64 {
        self.packet.unwrap_or(500)
    }

    fn limit(&self, line: usize, dialect: Dialect, notes: &mut Notes) -> String {
        let limit = self.limit.unwrap_or(50);
        if !self.in_bytes(dialect) {
            return format!("{limit} packets");
        }
        if dialect == Dialect::Emulab {
            let why = "Emulab takes limit_ for bytes then, where ns-2 counts mean_pktsize_ bytes for each: \
                here it is Emulab's";
            notes.add(line, &format!("queue-in-bytes_, limit_ {limit}"), why);
            return Bytes(limit).to_string();
        }
        let bytes = Bytes(limit.saturating_mul(self.packet())).to_string();
        if self.bytes.is_some() {
            let why = format!(
                "limit_ times mean_pktsize_, as ns-2 does, is {bytes}; Emulab takes limit_ for bytes"
            );
            notes.add(line, &format!("queue-in-bytes_, limit_ {limit}"), why);
        }
        bytes
    }

    /// The thresholds, in packets. Automatic ones of ns-2 may be fractional: they are rounded here, with a
    /// note.
    fn thresholds(&self, line: usize, dialect: Dialect, rate: u64, notes: &mut Notes) -> (u64, u64) {
        if dialect == Dialect::Emulab {
            let (min, max) = (self.min.unwrap_or(5), self.max.unwrap_or(15));
            return if self.by_unit(dialect) {
                self.bytes_as_packets(line, (min, max), notes)
            } else {
                (min, max)
            };
        }
        let (min, max) = self.exact_thresholds(rate);
        for (key, exact) in [("thresh_", min), ("maxthresh_", max)] {
            if exact % 1000 > 0 {
                let why = format!("thresholds are whole packets here: it is {}", nearest(exact));
                notes.add(line, &format!("{key} (ns-2: {})", in_units(exact, 1000)), why);
            }
        }
        (nearest(min), nearest(max))
    }

    /// Thresholds of ns-2, in thousandths of a packet: zero means half of the arrivals in 5 ms, at least 5.
    fn exact_thresholds(&self, rate: u64) -> (u64, u64) {
        let own = |value: Option<u64>| value.filter(|value| *value > 0).map(|value| 1000 * value);
        let in_5_ms = u128::from(rate) * 5 / (8 * u128::from(self.packet()));
        let automatic = (in_5_ms / 2).clamp(5000, u128::from(1000 * MOST_PACKETS / 3)) as u64;
        let min = own(self.min).unwrap_or(automatic);
        (min, own(self.max).unwrap_or((3 * min).min(1000 * MOST_PACKETS)))
    }

    /// Fixes the values that ns-2 derives from the link's rate at the beginning of the run: changing one
    /// threshold later keeps the other.
    pub(super) fn begin(&mut self, rate: u64) {
        let (min, max) = self.exact_thresholds(rate);
        (self.min, self.max) = (Some(nearest(min)), Some(nearest(max)));
    }

    /// Thresholds in bytes, as in dummynet if the queue is in bytes (ip_dn_io.c), in mean packets.
    fn bytes_as_packets(&self, line: usize, (min, max): (u64, u64), notes: &mut Notes) -> (u64, u64) {
        let in_packets = |bytes: u64| (bytes + self.packet() / 2) / self.packet();
        let packets = (in_packets(min), in_packets(max).max(1));
        let why = format!(
            "with a queue in bytes so are Emulab's thresholds; here they are packets of {} B: {} and {}",
            self.packet(),
            packets.0,
            packets.1
        );
        notes.add(line, &format!("thresh_ {min}, maxthresh_ {max}"), why);
        packets
    }

    /// Packets per second, from which ns-2 derives RED's default parameters.
    fn pace(&self, rate: u64) -> f64 {
        rate as f64 / (8.0 * self.packet() as f64)
    }

    fn red(
        &self,
        limit: String,
        (dialect, thresholds): (Dialect, (u64, u64)),
        (rate, delay): (u64, Nanos),
        stage: &mut Stage,
    ) {
        let emulab = dialect == Dialect::Emulab;
        let pace = self.pace(rate);
        let automatic = || if emulab { "0.002".to_owned() } else { weight(pace, delay, self.rule) };
        let weight = self.weight.clone().unwrap_or_else(automatic);
        let mut parameters = self.of_red(limit, thresholds);
        parameters.extend([
            ("weight", weight),
            ("gentle", if self.gentle.unwrap_or(!emulab) { "yes" } else { "no" }.into()),
            ("mean-packet", format!("{} B", self.packet().clamp(*PACKETS.start(), *PACKETS.end()))),
        ]);
        parameters.extend(self.by_unit(dialect).then(|| ("unit", "bytes".into())));
        parameters.extend(self.ecn());
        stage.block("queue", "red", &parameters);
    }
}

/// The nearest whole number of thousandths.
const fn nearest(thousandths: u64) -> u64 {
    (thousandths + 500) / 1000
}
