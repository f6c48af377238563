//! tc's token bucket as a link: tc-tbf(8).

use super::framing::framed;
use super::quantity::{rate_text, tc_rate, tc_size, time, whole};
use super::stage::Stage;
use super::words::{Words, named};
use super::{ImportError, Notes, Result};
use longwire_units::{Bytes, Nanos};

/// Options that tc abbreviates, in its matching order (iproute2, q_tbf.c).
const ABBREVIATED: [&str; 6] = ["limit", "latency", "burst", "peakrate", "overhead", "linklayer"];

/// Link layers; `adsl` is ATM, too (iproute2, `get_linklayer`).
const LINK_LAYERS: [&str; 3] = ["ethernet", "atm", "adsl"];

/// The settings of a tbf.
#[derive(Default)]
struct Tbf {
    rate: u64,
    burst: u64,
    limit: Option<u64>,
    latency: Option<Nanos>,
    peak: Option<u64>,
    mtu: u64,
    overhead: i64,
    atm: bool,
}

/// The link equivalent to these options.
pub(super) fn stage(words: &mut Words<'_>, notes: &mut Notes) -> Result<Stage> {
    let line = words.line;
    let mut tbf = Tbf::default();
    while let Some(word) = words.next() {
        tbf.option(word, words, notes)?;
    }
    let example = "write tbf rate 1mbit burst 32kbit latency 400ms";
    let missing = |what: &str| ImportError::new(line, format!("tbf needs a {what}"), example);
    if tbf.rate == 0 {
        return Err(missing("rate"));
    }
    if tbf.burst == 0 {
        return Err(missing("burst"));
    }
    if tbf.limit.is_none() && tbf.latency.is_none() {
        return Err(missing("limit, or a latency"));
    }
    let mut stage = Stage::named("tc's token bucket.");
    let mut parameters = vec![("rate", rate_text(line, tbf.rate)?), ("burst", Bytes(tbf.burst).to_string())];
    if let Some(peak) = tbf.peak {
        parameters.push(("peak", rate_text(line, peak)?));
    }
    stage.block("rate", "token-bucket", &parameters);
    framed(line, &mut stage, tbf.overhead, tbf.atm, notes);
    stage.set("queue", &Bytes(tbf.limit()).to_string());
    Ok(stage)
}

impl Tbf {
    fn option(&mut self, word: &str, words: &mut Words<'_>, notes: &mut Notes) -> Result<()> {
        // A size may be followed by the cell size of tc's rate table.
        let size = |word: &str| tc_size(word.split('/').next().unwrap_or_default()).map(|bytes| bytes.0);
        match named(word, &ABBREVIATED).unwrap_or(word) {
            "rate" => self.rate = words.value("rate", "1mbit", tc_rate)?,
            "burst" | "buffer" | "maxburst" => self.burst = words.value(word, "32kbit", size)?,
            "limit" => self.limit = Some(words.value("limit", "64kb", size)?),
            "latency" => {
                self.latency = Some(words.value("latency", "400ms", |word| time(word, 1000))?);
            }
            "peakrate" => self.peak = Some(words.value("peakrate", "2mbit", tc_rate)?),
            "overhead" => self.overhead = words.value("overhead", "4", |word| word.parse().ok())?,
            "linklayer" => {
                let layer = |word: &str| named(word, &LINK_LAYERS);
                self.atm = words.value("linklayer", "atm", layer)? != "ethernet";
            }
            "mtu" | "minburst" => {
                let bytes = words.value(word, "1540", size)?;
                self.mtu = bytes;
                notes.add(words.line, &format!("{word} {bytes}"), "the peak's bucket holds one packet here");
            }
            "mpu" => {
                let bytes = words.value("mpu", "64", whole)?;
                let why = "short packets are not counted as longer ones here";
                notes.add(words.line, &format!("mpu {bytes}"), why);
            }
            other => {
                let known = "rate, burst, limit or latency, peakrate, mtu, mpu, overhead, linklayer";
                return words.no_option("tbf", other, known);
            }
        }
        Ok(())
    }

    /// Most waiting bytes: computed by tc from a latency as what bucket and rate give in that time, or the
    /// peak's if that is less.
    fn limit(&self) -> u64 {
        const BITS_AND_NANOS: u128 = 8_000_000_000;
        let within = |rate: u64, time: Nanos| (u128::from(rate) * u128::from(time.0) / BITS_AND_NANOS) as u64;
        if let Some(limit) = self.limit {
            return limit;
        }
        let latency = self.latency.unwrap_or(Nanos::ZERO);
        let limit = within(self.rate, latency).saturating_add(self.burst);
        let peak = self.peak.map(|peak| within(peak, latency).saturating_add(self.mtu));
        peak.map_or(limit, |peak| peak.min(limit))
    }
}
