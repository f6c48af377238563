//! Names and parameters of the models, shared by traffic sources and background traffic of links.

use super::replay::{MOST_BYTES, Packets, Speed};
use crate::frames::read_frames;
use longwire_block::{Fallback, Grammar, Param, ParamKind, Spec, Value};
use longwire_settings::{Millionths, Setting, Settings, plain_file};
use longwire_units::{Bytes, Nanos, Rate};
use std::any::Any;
use std::path::Path;
use std::sync::Arc;

/// The models. Their key is `background`.
pub static SPECS: &[Spec] = &[
    CbrSettings::SPEC,
    PoissonSettings::SPEC,
    MmppSettings::SPEC,
    OnOffSettings::SPEC,
    ParetoOnOffSettings::SPEC,
    ReplaySettings::SPEC,
];

/// Packets at a constant rate.
#[derive(Debug, Settings)]
#[settings(
    key = "background",
    kind = "cbr",
    source = "Longwire's own: the n-th packet, from 0, comes at n times size over rate, rounded down",
    live
)]
pub(super) struct CbrSettings {
    #[setting(like = RATE)]
    pub rate: RateOrInterval,
    #[setting(like = SIZE)]
    pub size: Bytes,
}

/// Packets with exponential gaps: a Poisson process.
#[derive(Debug, Settings)]
#[settings(
    key = "background",
    kind = "poisson",
    source = "Any textbook; the exponential variate is -ln of a uniform one",
    live
)]
pub(super) struct PoissonSettings {
    #[setting(like = RATE)]
    pub rate: RateOrInterval,
    #[setting(like = SIZE)]
    pub size: Bytes,
}

/// A Poisson process whose rate changes among several, each for an exponential time.
#[derive(Debug, Settings)]
#[settings(
    key = "background",
    kind = "mmpp",
    source = "Fischer & Meier-Hellstern, The Markov-modulated Poisson process (MMPP) cookbook, 1993",
    live
)]
pub(super) struct MmppSettings {
    /// Rates of the states; the next state is any other one, with equal probability.
    #[setting(default = "1 Mbit/s, 9 Mbit/s", grammar = RATES)]
    pub rates: Arc<Vec<Rate>>,
    /// Mean duration of a state.
    #[setting(default = "100 ms", min = SHORTEST, max = DAY)]
    pub dwell: Nanos,
    #[setting(like = SIZE)]
    pub size: Bytes,
}

/// Constant rate while on, nothing while off; both times are exponential.
#[derive(Debug, Settings)]
#[settings(
    key = "background",
    kind = "on-off",
    source = "Longwire's own: packets come as on-time at the rate has given their bits; the mean rate is \
        rate * on / (on + off)",
    live
)]
pub(super) struct OnOffSettings {
    #[setting(like = PEAK)]
    pub rate: Rate,
    #[setting(like = ON)]
    pub on: Nanos,
    #[setting(like = OFF)]
    pub off: Nanos,
    #[setting(like = SIZE)]
    pub size: Bytes,
}

/// Constant rate while on, nothing while off; both times are Pareto: self-similar traffic.
#[derive(Debug, Settings)]
#[settings(
    key = "background",
    kind = "pareto-on-off",
    source = "Willinger, Taqqu, Sherman & Wilson, Self-similarity through high-variability, 1997: H = (3 - \
        shape) / 2",
    live
)]
pub(super) struct ParetoOnOffSettings {
    #[setting(like = PEAK)]
    pub rate: Rate,
    #[setting(like = ON)]
    pub on: Nanos,
    #[setting(like = OFF)]
    pub off: Nanos,
    /// Shape of the Pareto distribution, 1.01 to 10; below 2 the traffic is self-similar.
    #[setting(default = "1.4", min = 1_010_000, max = 10_000_000)]
    pub shape: Millionths,
    #[setting(like = SIZE)]
    pub size: Bytes,
}

/// Packets at the times and with the lengths of a capture, or of a list.
#[derive(Debug, Settings)]
#[settings(
    key = "background",
    kind = "replay",
    source = "Longwire's own: times count from the first packet and are divided by the speed",
    live
)]
pub(super) struct ReplaySettings {
    /// A pcap or pcapng file, or "0 ms 1000 B, 5 ms 200 B".
    #[setting(grammar = PACKETS)]
    pub file: Arc<Packets>,
    /// Speed: "1", "2.5", "1/3", or "max" for all at once.
    #[setting(default = "1", grammar = SPEED)]
    pub speed: Arc<Speed>,
}

/// The pace of packets: a rate or, for sources, an interval.
#[derive(Debug, Clone, Copy)]
pub(super) enum RateOrInterval {
    Rate(Rate),
    Interval(Nanos),
}

impl Setting for RateOrInterval {
    fn of(value: &Value) -> Option<Self> {
        match *value {
            Value::Rate(rate) => Some(Self::Rate(rate)),
            Value::Time(interval) => Some(Self::Interval(interval)),
            _ => None,
        }
    }
}

/// The model of this name.
pub fn spec(kind: &str) -> Option<&'static Spec> {
    SPECS.iter().find(|spec| spec.kind == kind)
}

const RATE: Param = Param {
    name: "rate",
    kind: ParamKind::Rate,
    default: Fallback::Required,
    help: "Bits of the packets per second; 0 for none, unlimited means 400 Gbit/s.",
    live: true,
};

const PEAK: Param = Param {
    name: "rate",
    kind: ParamKind::Rate,
    default: Fallback::Required,
    help: "Rate while on; unlimited means 400 Gbit/s. The mean rate is rate * on / (on + off).",
    live: true,
};

const SIZE: Param = Param {
    name: "size",
    kind: ParamKind::Size { min: Bytes(60), max: Bytes(65_549) },
    default: Fallback::Value("1000 B"),
    help: "Bytes of a packet, from its Ethernet header on and without FCS.",
    live: true,
};

const DAY: Nanos = Nanos::from_secs(86_400);
/// The shortest mean duration of a state that sends, which bounds the work per packet.
const SHORTEST: Nanos = Nanos::from_micros(1);

const ON: Param = Param {
    name: "on",
    kind: ParamKind::Time { min: SHORTEST, max: DAY },
    default: Fallback::Required,
    help: "Mean time on.",
    live: true,
};

const OFF: Param = Param {
    name: "off",
    kind: ParamKind::Time { min: Nanos::ZERO, max: DAY },
    default: Fallback::Required,
    help: "Mean time off.",
    live: true,
};

const RATES: Grammar = Grammar {
    wanted: "rates such as \"1 Mbit/s, 9 Mbit/s\"",
    form: None,
    read: |text, _| {
        let rates: Vec<Rate> = text
            .split(',')
            .map(|rate| rate.trim().parse::<Rate>().map_err(|error| error.to_string()))
            .collect::<Result<_, _>>()?;
        if rates.len() > MOST_RATES {
            return Err(format!("{} rates are too many: {MOST_RATES} at most", rates.len()));
        }
        Ok(any(rates))
    },
    examples: &["1 Mbit/s, 9 Mbit/s", "0, 10 Mbit/s, 1 Gbit/s"],
};

/// Most states of a modulated process.
const MOST_RATES: usize = 1000;

const PACKETS: Grammar = Grammar {
    wanted: "a pcap or pcapng file, or a list such as \"0 ms 1000 B, 5 ms 200 B\"",
    form: None,
    read: |text, base: &Path| {
        let list = Packets::read(text);
        // A text that begins with a digit and is not a file was meant as a list.
        let file = base.join(text);
        match list {
            Ok(packets) => Ok(any(packets)),
            Err(what) if text.trim_start().starts_with(|c: char| c.is_ascii_digit()) && !file.exists() => {
                Err(what)
            }
            Err(_) => read_capture(&file).map(any),
        }
    },
    examples: &["0 ms 1000 B, 5 ms 200 B", "0 ns 60 B"],
};

const SPEED: Grammar = Grammar {
    wanted: "a speed such as \"2.5\", \"1/3\" or \"max\"",
    form: None,
    read: |text, _| Speed::read(text).map(any),
    examples: &["1", "2.5", "1/3", "max"],
};

fn any<T: Any + Send + Sync>(value: T) -> Arc<dyn Any + Send + Sync> {
    Arc::new(value)
}

/// Most packets kept, at 16 bytes each.
const MOST_PACKETS: usize = 1 << 26;

/// Reads a pcap or pcapng file.
///
/// # Errors
/// It can't be read, has another format, is damaged, or has too many frames or none.
fn read_capture(path: &Path) -> Result<Packets, String> {
    let named = |what: String| format!("{}: {what}", path.display());
    let file = plain_file::open(path).map_err(|error| named(error.to_string()))?;
    let mut list = Vec::new();
    let read = read_frames(file, &mut |frame| {
        if list.len() == MOST_PACKETS {
            return Err(format!("it has more than {MOST_PACKETS} packets; cut it into pieces"));
        }
        // A frame beyond the maximum length was merged from several: it is as long as a packet can be.
        list.push((frame.time, frame.original.clamp(1, MOST_BYTES)));
        Ok(())
    });
    match read {
        Ok(()) if list.is_empty() => Err(named("there is no packet in it".into())),
        Ok(()) => Ok(Packets::new(list)),
        Err(error) => Err(named(error.to_string())),
    }
}
