//! RED with In and Out: two REDs on one queue, for packets within a profile and those beyond it.

use super::average::Average;
use super::early::{CERTAIN, Early, in_steps};
use super::settings::{ECN, LIMIT, Limit, MEAN_PACKET, WEIGHT};
use super::{Admission, Discipline, Next, QueueContext};
use crate::fifo::Fifo;
use longwire_block::{Block, Dice, Grammar, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_settings::{Millionths, Settings};
use longwire_units::{Bytes, Probability};
use longwire_wire::ds_field;
use std::any::Any;
use std::path::Path;
use std::sync::Arc;

/// RIO: packets are In if their DSCP is one of `in`, else Out.
///
/// In packets are dropped by the average number of In packets, Out packets by the average of all, with
/// thresholds that drop Out first. By default those of lowest drop precedence of assured forwarding (RFC
/// 2597: AF11, AF21, AF31, AF41) are In. Packets other than IP are Out. Neither is gentle. The packet being
/// sent counts.
#[derive(Debug, Default)]
pub struct Rio {
    all: Average,
    inside: Average,
    early_in: Early,
    early_out: Early,
    fifo: Fifo,
    limit: Limit,
    marks: bool,
    /// A bit for each DSCP that is In.
    codes: u64,
    /// In packets waiting, the one being sent included.
    waiting_in: u64,
    sends_in: bool,
}

/// Grammar of a set of DSCPs, as names and numbers.
const CODES: Grammar = Grammar {
    wanted: "a list of DSCPs such as \"af11,af21\" or \"10,18\"",
    form: None,
    read: |text, _: &Path| {
        let code = |word: &str| longwire_expression::code_point(word.trim());
        let codes = text.split(',').try_fold(0u64, |codes, word| Some(codes | 1u64 << code(word)?));
        match codes {
            Some(codes) => Ok(Arc::new(codes) as Arc<dyn Any + Send + Sync>),
            None => Err(format!(
                "\"{text}\" is no list of DSCPs; each is a number from 0 to 63, or be, le, va, ef, cs0 to \
                 cs7, af11 to af43"
            )),
        }
    },
    examples: &["af11,af21,af31,af41", "10, 18", "ef", "cs0,cs7"],
};

/// RED with In and Out: drops out-of-profile packets before in-profile ones.
#[derive(Debug, Settings)]
#[settings(
    key = "queue",
    kind = "rio",
    source = "Clark & Fang, Explicit allocation of best-effort packet delivery service, 1998; RFC 2597",
    live
)]
pub struct RioSettings {
    #[setting(like = LIMIT)]
    limit: Limit,
    /// the DSCPs of in-profile packets, by name or number
    #[setting(name = "in", default = "af11,af21,af31,af41", grammar = CODES)]
    codes: Arc<u64>,
    /// average of In packets from which some are dropped
    #[setting(default = "40", min = 0, max = 1_000_000)]
    in_min: u64,
    /// average of In packets from which all are dropped
    #[setting(default = "70", min = 0, max = 1_000_000)]
    in_max: u64,
    /// probability that an In packet is dropped just below in-max
    #[setting(default = "2 %")]
    in_max_p: Probability,
    /// average of all packets from which some Out packets are dropped
    #[setting(default = "10", min = 0, max = 1_000_000)]
    out_min: u64,
    /// average of all packets from which all Out packets are dropped
    #[setting(default = "30", min = 0, max = 1_000_000)]
    out_max: u64,
    /// probability that an Out packet is dropped just below out-max
    #[setting(default = "20 %")]
    out_max_p: Probability,
    #[setting(like = WEIGHT)]
    weight: Millionths,
    #[setting(like = ECN)]
    ecn: bool,
    #[setting(like = MEAN_PACKET)]
    mean_packet: Bytes,
}

impl Block for Rio {
    type Settings = RioSettings;

    fn build(settings: RioSettings, mut dice: Dice) -> Self {
        let mut early = || Early::new(Dice::seeded(dice.draw()));
        Self { early_in: early(), early_out: early(), ..Self::default() }.with(settings)
    }

    /// Applies new parameters; the averages stay. Waiting packets are treated as In or Out by the new list.
    fn change(&mut self, settings: RioSettings) {
        self.limit = settings.limit;
        self.codes = *settings.codes;
        let RioSettings { in_min, in_max, in_max_p, out_min, out_max, out_max_p, .. } = settings;
        self.early_in.set((in_min, in_max), in_steps(in_max_p.bits()), false);
        self.early_out.set((out_min, out_max), in_steps(out_max_p.bits()), false);
        self.all.set_weight(settings.weight.0, settings.mean_packet.0);
        self.inside.set_weight(settings.weight.0, settings.mean_packet.0);
        self.marks = settings.ecn;
    }
}

impl Discipline for Rio {
    #[inline]
    fn admit(&mut self, packet: &Admission<'_>) -> Verdict {
        self.all.arrival(packet.now, packet.packets_waiting, packet.rate);
        let outcome = if self.is_in(packet.frame()) {
            self.inside.arrival(packet.now, self.waiting_in, packet.rate);
            self.early_in.judge(self.inside.value(), CERTAIN)
        } else {
            self.early_out.judge(self.all.value(), CERTAIN)
        };
        outcome.verdict(packet, self.limit, self.marks)
    }

    #[inline]
    fn push(&mut self, context: &mut QueueContext<'_>, handle: Handle) {
        self.waiting_in += u64::from(self.is_in(context.pool.data(handle)));
        self.fifo.push(context.pool, handle);
    }

    fn resettle(&mut self, context: &mut QueueContext<'_>) {
        let waiting =
            self.fifo.iter(context.pool).filter(|handle| self.is_in(context.pool.data(*handle))).count();
        self.waiting_in = waiting as u64 + u64::from(self.sends_in);
    }

    #[inline]
    fn pop(&mut self, context: &mut QueueContext<'_>) -> Next {
        if self.sends_in {
            self.sends_in = false;
            self.waiting_in = self.waiting_in.saturating_sub(1);
            if self.waiting_in == 0 {
                self.inside.idle(context.now);
            }
        }
        match self.fifo.pop(context.pool) {
            Some(handle) => {
                self.sends_in = self.is_in(context.pool.data(handle));
                Next::Packet(handle)
            }
            None => {
                self.all.idle(context.now);
                self.waiting_in = 0;
                Next::Empty
            }
        }
    }

    fn drain(&mut self, _: &mut Pool) -> Fifo {
        self.waiting_in = u64::from(self.sends_in);
        std::mem::take(&mut self.fifo)
    }
}

impl Rio {
    #[inline]
    fn is_in(&self, frame: &[u8]) -> bool {
        self.codes >> (ds_field(frame).unwrap_or(0) >> 2) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_by_name_and_number() {
        let read = |text: &str| RioSettings::read(&[("in", text)]).map(|settings| *settings.codes);
        for (text, wanted) in
            [("AF43", 1u64 << 38), ("le", 1 << 1), ("va", 1 << 44), ("af11, 63", 1 << 10 | 1 << 63)]
        {
            assert_eq!(read(text).ok(), Some(wanted), "{text}");
        }
        for text in ["+5", "64", "af44", "af51", ""] {
            assert!(read(text).is_err(), "{text}");
        }
        let error = RioSettings::read(&[("in", "af11,gold")]).unwrap_err().to_string();
        assert!(error.contains("af11 to af43"), "{error}");
    }
}
