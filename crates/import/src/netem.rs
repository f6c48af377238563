//! netem's options as links: tc-netem(8), with semantics from `net/sched/sch_netem.c`.
//!
//! netem draws duplication, loss and corruption, then delays a packet and, if it has a rate, sends it: its
//! departure is max(the last one's, arrival + delay) + length / rate. That is a link with the delay followed
//! by a link with the rate; or one link whose delay precedes its queue, if packets that netem sends early
//! must bypass both, or on a cable.

pub(super) mod cable;
mod change;
mod loss;

use super::framing::framed;
use super::quantity::{LONGEST_DELAY, Share, any_base, rate_text, tc_rate, tc_size, time, whole};
use super::sheet::file_name;
use super::stage::Stage;
use super::words::{Words, named};
use super::{ImportError, Notes, Result};
use change::has_correlation;
use longwire_units::Nanos;
use loss::{Loss, loss, markov};

/// netem's default limit in packets.
const LIMIT: u64 = 1000;
/// netem's options, in an order that abbreviates as tc does (iproute2, q_netem.c): `d` is `delay`, `dr` is
/// `drop`, `r` is `reorder`, `ra` is `rate`.
const OPTIONS: [&str; 15] = [
    "limit",
    "latency",
    "delay",
    "loss",
    "drop",
    "seed",
    "ecn",
    "reorder",
    "corrupt",
    "gap",
    "duplicate",
    "rate",
    "slot",
    "distribution",
    "jitter",
];
/// Those that a command without `netem` can begin with: all but the last two.
pub(super) const FIRST_OPTIONS: &[&str] = OPTIONS.split_at(13).0;

/// The settings of a netem.
#[derive(Debug, Default)]
pub(super) struct Netem {
    line: usize,
    /// Whether it is on a cable, which is one link.
    on_cable: bool,
    limit: Option<u64>,
    delay: Option<Nanos>,
    jitter: Nanos,
    delay_correlation: Option<Share>,
    distribution: Option<String>,
    loss: Option<Loss>,
    ecn: bool,
    corrupt: Option<(Share, Share)>,
    duplicate: Option<(Share, Share)>,
    reorder: Option<(Share, Share)>,
    gap: Option<u64>,
    rate: Option<u64>,
    overhead: i64,
    atm: bool,
    slot: Option<Slot>,
    /// The kernel's correlations of delay, loss and duplicates, and whether the command sets them: tc sends
    /// all if one is given.
    correlations: [Share; 3],
    is_correlated: bool,
    pub(super) seed: Option<u64>,
}

#[derive(Debug, Clone)]
struct Slot {
    min: Nanos,
    max: Nanos,
    packets: u64,
    bytes: u64,
}

/// A time: a bare number is microseconds.
fn micros(text: &str) -> Option<Nanos> {
    time(text, 1000).filter(|time| *time <= LONGEST_DELAY)
}

impl Netem {
    /// Parses netem's options, as given to `tc` or printed by it.
    pub(super) fn read(words: &mut Words<'_>, notes: &mut Notes) -> Result<Self> {
        let mut netem = Self { line: words.line, ..Self::default() };
        while let Some(word) = words.next() {
            netem.option(word, words, notes)?;
        }
        netem.check()?;
        netem.correlations = [
            netem.delay_correlation.unwrap_or(Share::ZERO),
            match netem.loss {
                Some(Loss::Random(_, correlation)) => correlation,
                _ => Share::ZERO,
            },
            netem.duplicate.map_or(Share::ZERO, |(_, correlation)| correlation),
        ];
        Ok(netem)
    }

    fn option(&mut self, word: &str, words: &mut Words<'_>, notes: &mut Notes) -> Result<()> {
        let (option, behind) = (named(word, &OPTIONS).unwrap_or(word), words.rest);
        match option {
            "delay" | "latency" => self.delay(words, notes)?,
            "jitter" if word == "jitter" => self.jitter = words.value("jitter", "10ms", micros)?,
            "distribution" => {
                self.distribution = Some(words.value("distribution", "normal", |w| Some(w.to_owned()))?);
            }
            "loss" | "drop" if self.loss.is_some() => {
                return Err(ImportError::new(words.line, "netem takes one loss", "leave the other one out"));
            }
            "loss" | "drop" => self.loss = Some(loss(words)?),
            "ecn" => self.ecn = true,
            "corrupt" => self.corrupt = Some(pair("corrupt", words)?),
            "duplicate" => self.duplicate = Some(pair("duplicate", words)?),
            "reorder" => self.reorder = Some(pair("reorder", words)?),
            "gap" => self.gap = Some(words.value("gap", "5", whole)?),
            "rate" => self.rate(words, notes)?,
            "slot" => self.slot(words, notes)?,
            "limit" => {
                self.limit = Some(words.value("limit", "1000", |word| tc_size(word).map(|size| size.0))?);
            }
            "seed" => self.seed = Some(words.value("seed", "42", any_base)?),
            other => {
                let known = "delay, loss, corrupt, duplicate, reorder, rate, slot, limit, seed";
                return words.no_option("netem", other, known);
            }
        }
        self.is_correlated |= has_correlation(option, &behind[..behind.len() - words.rest.len()]);
        Ok(())
    }

    fn delay(&mut self, words: &mut Words<'_>, notes: &mut Notes) -> Result<()> {
        let mut bare = None;
        let mut read = |word: &str| {
            if word.ends_with(|c: char| c.is_ascii_digit()) {
                bare = Some(word.to_owned());
            }
            micros(word)
        };
        self.delay = Some(words.value("delay", "100ms", &mut read)?);
        self.jitter = words.optional("delay", Nanos::ZERO, &mut read)?;
        self.delay_correlation = Some(words.optional("delay", Share::ZERO, Share::percent)?);
        if let Some(word) = bare.filter(|word| word != "0") {
            let why = "taken as microseconds, as tc did for long; newer ones read nanoseconds: write a unit";
            notes.add(words.line, &format!("delay {word}"), why);
        }
        Ok(())
    }

    fn rate(&mut self, words: &mut Words<'_>, notes: &mut Notes) -> Result<()> {
        self.rate = Some(words.value("rate", "1mbit", tc_rate)?);
        let signed = |word: &str| word.parse::<i64>().ok().filter(|n| n.abs() < 10_000);
        let mut numbers = Vec::new();
        for label in ["packetoverhead", "cellsize", "celloverhead"] {
            words.skip(label);
            let negative = words.rest.first().is_some_and(|word| word.starts_with('-'));
            match if negative { words.next() } else { words.number() } {
                Some(word) => {
                    numbers.push(signed(word).ok_or_else(|| words.bad("rate", word, "correct it"))?);
                }
                None => break,
            }
        }
        self.overhead = numbers.first().copied().unwrap_or(0);
        self.atm = numbers.get(1) == Some(&48) && numbers.get(2) == Some(&5);
        if !self.atm && numbers.get(1).is_some_and(|cell| *cell != 0) {
            let why =
                "only ATM's cells, 48 and 5, are carried over: packets take the time of their own bytes here";
            notes.add(words.line, "rate … CELLSIZE CELLOVERHEAD", why);
        }
        Ok(())
    }

    fn slot(&mut self, words: &mut Words<'_>, notes: &mut Notes) -> Result<()> {
        let nanos = |word: &str| time(word, 1).filter(|time| *time <= LONGEST_DELAY);
        let drawn = words.rest.first().is_some_and(|word| word == "distribution");
        let mut slot = Slot { min: Nanos::ZERO, max: Nanos::ZERO, packets: 0, bytes: 0 };
        if drawn {
            let kind = words.rest.get(1).cloned().unwrap_or_default();
            words.rest = words.rest.get(2..).unwrap_or_default();
            let mean = words.value("slot distribution", "normal 10ms 1ms", nanos)?;
            let spread = words.optional("slot distribution", Nanos::ZERO, nanos)?;
            (slot.min, slot.max) = (mean.since(spread), mean + spread);
            let why = "slots are drawn uniformly from delay − jitter to delay + jitter here";
            notes.add(words.line, &format!("slot distribution {kind}"), why);
        } else {
            slot.min = words.value("slot", "10ms 20ms", nanos)?;
            slot.max = words.optional("slot", slot.min, nanos)?;
        }
        while let Some(word) = words.rest.first().filter(|word| ["packets", "bytes"].contains(&word.as_str()))
        {
            words.skip(word);
            let size = |text: &str| tc_size(text).map(|bytes| bytes.0);
            match word.as_str() {
                "bytes" => slot.bytes = words.value(word, "64k", size)?,
                _ => slot.packets = words.value(word, "10", whole)?,
            }
        }
        self.slot = Some(slot);
        Ok(())
    }

    /// Refuses what tc itself refuses.
    fn check(&self) -> Result<()> {
        let delayed = self.delay.is_some_and(|delay| delay > Nanos::ZERO);
        let wrong = |what: &str, fix: &str| Err(ImportError::new(self.line, what, fix));
        if (self.reorder.is_some() || self.gap.is_some()) && !delayed {
            let what = "reorder needs a delay: what is not delayed overtakes";
            return wrong(what, "write delay 10ms reorder 25%");
        }
        if self.distribution.is_some() && (!delayed || self.jitter == Nanos::ZERO) {
            let fix = "write delay 100ms 20ms distribution normal";
            return wrong("distribution needs a delay and a jitter", fix);
        }
        if self.ecn && self.loss.is_none() {
            return wrong("ecn needs a loss: it marks what would be lost", "write loss 1% ecn");
        }
        if self.slot.as_ref().is_some_and(|slot| slot.max < slot.min) {
            return wrong("slot: the longest is below the shortest", "write slot 10ms 20ms");
        }
        Ok(())
    }

    /// The equivalent links.
    pub(super) fn stages(&self, notes: &mut Notes) -> Result<Vec<Stage>> {
        let mut first = Stage::default();
        self.impairments(&mut first);
        self.note_correlations(notes);
        self.delays(&mut first, notes)?;
        let last = self.sending(notes)?;
        self.limits(last.is_some(), notes);
        if self.seed.is_some() {
            let why = "the seed is carried over, but the draws are those of another generator";
            notes.add(self.line, "seed", why);
        }
        Ok(match last {
            None => {
                first.comment = "The effect of netem on a packet.".into();
                vec![first]
            }
            Some(mut last) if first.is_empty() => {
                last.comment = "netem's rate.".into();
                vec![last]
            }
            Some(last) if self.is_one_link() => {
                first.comment =
                    "The effect of netem: it delays before it sends, and packets sent early bypass both."
                        .into();
                first.settings.extend(last.settings);
                vec![first]
            }
            Some(last) => {
                first.comment = "The first effect of netem: it delays before it sends.".into();
                vec![first, last]
            }
        })
    }

    /// Whether one link delays and sends: on a cable, or if packets sent early bypass both.
    fn is_one_link(&self) -> bool {
        let sends = self.rate.is_some() || self.slot.is_some();
        sends && (self.on_cable || self.reorder.is_some() || self.gap.is_some())
    }

    fn queue_limit(&self) -> u64 {
        self.limit.unwrap_or(if self.on_cable { cable::LIMIT } else { LIMIT })
    }

    /// netem averages each draw with the previous one: the draws concentrate around the middle, and small
    /// shares are hardly ever reached.
    fn note_correlations(&self, notes: &mut Notes) {
        let of_loss = match self.loss {
            Some(Loss::Random(share, correlation)) => Some((share, correlation)),
            _ => None,
        };
        let shares = [
            ("loss", of_loss),
            ("duplicate", self.duplicate),
            ("corrupt", self.corrupt),
            ("reorder", self.reorder),
        ];
        for (option, pair) in shares {
            let Some((share, correlation)) = pair.filter(|(_, correlation)| *correlation > Share::ZERO)
            else {
                continue;
            };
            let instead = if option == "loss" { "; for bursts write loss gemodel or state" } else { "" };
            let why = format!(
                "netem's correlation, which tc-netem(8) long called deprecated for its bad behaviour, makes \
                 it rarer than the share says: 1% 25% hits next to nothing. Here the share is kept, and hits \
                 come in clusters{instead}"
            );
            let plain = |share: Share| share.text().replace(' ', "");
            notes.add(self.line, &format!("{option} {} {}", plain(share), plain(correlation)), why);
        }
        if let Some(correlation) =
            self.delay_correlation.filter(|share| *share > Share::ZERO && self.jitter > Nanos::ZERO)
        {
            let why = "netem's correlation narrows the jitter; here the jitter keeps its width, and so often \
                a delay is that before";
            notes.add(self.line, &format!("delay … {}", correlation.text().replace(' ', "")), why);
        }
    }

    fn impairments(&self, stage: &mut Stage) {
        let correlated =
            |stage: &mut Stage, (key, kind), (share, correlation): (Share, Share), more: &[_]| {
                let mut parameters = vec![("probability", share.text())];
                parameters.extend((correlation > Share::ZERO).then(|| ("correlation", correlation.text())));
                parameters.extend_from_slice(more);
                stage.block(key, kind, &parameters);
            };
        if let Some(duplicate) = self.duplicate {
            correlated(stage, ("duplicate", "independent"), duplicate, &[("where", "queue".into())]);
        }
        let ecn = self.ecn.then(|| ("ecn", "yes".to_owned()));
        let ecn = ecn.as_slice();
        match &self.loss {
            Some(Loss::Random(share, Share::ZERO)) if !self.ecn => stage.set("loss", &share.text()),
            Some(Loss::Random(share, correlation)) => {
                let kind = if *correlation > Share::ZERO { "correlated" } else { "independent" };
                correlated(stage, ("loss", kind), (*share, *correlation), ecn);
            }
            Some(Loss::State(p)) => markov(stage, "markov", &["p13", "p31", "p32", "p23", "p14"], p, ecn),
            Some(Loss::Gilbert(p)) => markov(stage, "gilbert-elliott", &["p", "r", "h", "k"], p, ecn),
            None => {}
        }
        if let Some(corrupt) = self.corrupt {
            correlated(stage, ("bit-error", "per-packet"), corrupt, &[]);
        }
        match (self.reorder, self.gap) {
            (None, None) => {}
            // A gap without a probability is certain for netem: every gap-th packet is sent at once.
            (reorder, gap) => {
                let gap = gap.filter(|gap| *gap > 1).map(|gap| ("gap", gap.to_string()));
                let past = self.is_one_link().then(|| ("past", "link".to_owned()));
                let more: Vec<_> = gap.into_iter().chain(past).collect();
                let reorder = reorder.unwrap_or((Share::ALL, Share::ZERO));
                correlated(stage, ("reorder", "independent"), reorder, &more);
            }
        }
    }

    fn delays(&self, stage: &mut Stage, notes: &mut Notes) -> Result<()> {
        let Some(delay) = self.delay.filter(|delay| *delay > Nanos::ZERO || self.jitter > Nanos::ZERO) else {
            return Ok(());
        };
        let mut parameters = vec![("delay", delay.to_string())];
        let before = self.is_one_link().then(|| ("before", "queue".to_owned()));
        if self.jitter == Nanos::ZERO {
            if before.is_none() {
                stage.set("delay", &delay.to_string());
            } else {
                parameters.extend(before);
                stage.block("delay", "constant", &parameters);
            }
            return Ok(());
        }
        let order = if self.rate.is_some() || self.slot.is_some() { "keep" } else { "reorder" };
        parameters.push(("jitter", self.jitter.to_string()));
        parameters.push(("distribution", self.quantiles(notes)?));
        let correlation = self.delay_correlation.filter(|share| *share > Share::ZERO);
        parameters.extend(correlation.map(|correlation| ("correlation", correlation.text())));
        parameters.push(("order", order.into()));
        parameters.extend(before);
        stage.block("delay", "jitter", &parameters);
        if order == "keep" {
            let why = "with a rate netem keeps packets in order, each waiting for the one before; here \
                in-order jitter keeps the mean delay";
            notes.add(self.line, "delay … JITTER with rate", why);
        }
        Ok(())
    }

    /// The distribution's name here.
    fn quantiles(&self, notes: &mut Notes) -> Result<String> {
        let name = match self.distribution.as_deref() {
            None | Some("uniform") => return Ok("uniform".into()),
            Some(name @ ("normal" | "pareto")) => return Ok(name.into()),
            Some("paretonormal") => return Ok("pareto-normal".into()),
            Some(name) => file_name(self.line, name)?,
        };
        let file = if name.contains(['/', '.']) { name.clone() } else { format!("{name}.dist") };
        let why = format!(
            "tc looks for it in its own folder (/usr/lib/tc); put the file {file} beside the scenario"
        );
        notes.add(self.line, &format!("distribution {name}"), why);
        Ok(file)
    }

    /// The link that transmits, if netem has a rate or slots.
    fn sending(&self, notes: &mut Notes) -> Result<Option<Stage>> {
        if self.rate.is_none() && self.slot.is_none() {
            return Ok(None);
        }
        let mut stage = Stage::named("Then netem's rate.");
        let rate = match self.rate.filter(|rate| *rate > 0) {
            Some(bits) => rate_text(self.line, bits)?,
            None => "unlimited".into(),
        };
        if let Some(slot) = &self.slot {
            let mut parameters =
                vec![("rate", rate), ("min", slot.min.to_string()), ("max", slot.max.to_string())];
            let limits = [("packets", slot.packets), ("bytes", slot.bytes)];
            let limits = limits.into_iter().filter(|(_, number)| *number > 0);
            parameters.extend(limits.map(|(name, number)| (name, number.to_string())));
            stage.block("rate", "slotted", &parameters);
        } else {
            stage.set("rate", &rate);
        }
        framed(self.line, &mut stage, self.overhead, self.atm, notes);
        stage.set("queue", &format!("{} packets", self.queue_limit()));
        Ok(Some(stage))
    }

    fn limits(&self, queue: bool, notes: &mut Notes) {
        let option = format!("limit {}", self.queue_limit());
        if queue {
            if self.delay.is_some() {
                let why = "it counts packets on their way through the delay there; here those that wait for \
                    the rate";
                notes.add(self.line, &option, why);
            }
        } else if self.limit.is_some() {
            let why = "it counts delayed packets, and loses what comes above it; here a delay holds as many \
                as come";
            notes.add(self.line, &option, why);
        }
    }
}

/// A probability and its correlation.
pub(super) fn pair(option: &str, words: &mut Words<'_>) -> Result<(Share, Share)> {
    let share = words.value(option, "1% 25%", Share::percent)?;
    Ok((share, words.optional(option, Share::ZERO, Share::percent)?))
}
