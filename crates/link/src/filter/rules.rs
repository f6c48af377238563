//! Decisions by packet contents: rules in order, each an action and a condition.

use super::policer::Bucket;
use super::rule_set::{Action, RuleSet};
use crate::judge::Judge;
use longwire_block::{Block, Dice, DropReason, Grammar, Offer, Verdict};
use longwire_packet::{Handle, Pool};
use longwire_settings::Settings;
use longwire_units::Nanos;
use std::sync::Arc;

/// Applies rules. The first that drops a packet, lets it pass or steers it ends the search; a band, a mark, a
/// DSCP and a rate that was not exceeded are recorded, and the search continues. Conditions see the packet as
/// it arrived.
#[derive(Debug)]
pub struct Rules {
    set: Arc<RuleSet>,
    /// One for each rule with a rate, in order.
    buckets: Vec<Bucket>,
}

const RULES: Grammar = Grammar {
    wanted: "rules, one a line, such as \"drop if udp port 53\"",
    form: None,
    read: |text, _| Ok(Arc::new(text.parse::<RuleSet>().map_err(|error| error.to_string())?)),
    examples: &[
        "pass",
        "drop if tcp",
        "pass if greater 1000\ndrop if less 100",
        "band 2 if len < 300\nmark if ip\ndscp ef if tcp and len > 600",
        "police 1 Mbit/s if tcp",
        "police 3 Mbit/s burst 3 kB if tcp\npolice 400 Gbit/s\nband 1",
        "police 0 burst 1 GB",
    ],
};

/// Drops, polices, marks, classifies or steers packets by their content.
#[derive(Debug, Settings)]
#[settings(key = "filter", kind = "rules", source = "pcap-filter(7); RFC 2475, section 2.3", live)]
pub struct RulesSettings {
    /// one rule a line or a list of them: ACTION if EXPRESSION; ACTION is drop, pass, band N, mark, dscp N,
    /// steer LINK, or police RATE [burst SIZE]; EXPRESSION is tcpdump's
    #[setting(grammar = RULES)]
    pub rules: Arc<RuleSet>,
}

impl Block for Rules {
    type Settings = RulesSettings;

    fn build(settings: RulesSettings, _: Dice) -> Self {
        Self { set: Arc::clone(&settings.rules), buckets: Vec::new() }.with(settings)
    }

    /// Applies new rules. The first rule with a rate takes over the bucket of the first one before, and so
    /// on.
    fn change(&mut self, settings: RulesSettings) {
        self.set = settings.rules;
        let allowances = &self.set.allowances;
        self.buckets.truncate(allowances.len());
        for (bucket, &allowance) in self.buckets.iter_mut().zip(allowances) {
            bucket.change(allowance);
        }
        let more = allowances.iter().skip(self.buckets.len());
        self.buckets.extend(more.map(|&allowance| Bucket::new(allowance)));
    }
}

impl Judge for Rules {
    /// Tokens that have come by then came at the old rates.
    fn settle(&mut self, now: Nanos) {
        self.buckets.iter_mut().for_each(|bucket| bucket.settle(now));
    }

    #[inline(never)]
    fn judge(&mut self, offer: &mut Offer<'_>) -> Verdict {
        let frame = own_bytes(offer.frame(), offer.bytes);
        let mark = if self.set.reads_mark { offer.mark() } else { 0 };
        for rule in &self.set.rules {
            if rule
                .condition
                .as_ref()
                .is_none_or(|condition| condition.matches_marked(frame, offer.bytes, mark))
                && let Some(verdict) = apply(rule.action, &mut self.buckets, offer)
            {
                return verdict;
            }
        }
        Verdict::Pass
    }

    /// Whether bytes at fixed places show that no rule matches.
    #[inline(always)]
    fn spares(&self, pool: &Pool, handle: Handle, bytes: u32) -> bool {
        let frame = own_bytes(pool.data(handle), bytes);
        self.set.rules.iter().all(|rule| {
            rule.condition.as_ref().is_some_and(|condition| condition.matches_at_once(frame) == Some(false))
        })
    }
}

/// The bytes of a packet: of a train, only the headers and the first segment's bytes are this one's.
#[inline(always)]
fn own_bytes(frame: &[u8], bytes: u32) -> &[u8] {
    &frame[..frame.len().min(bytes as usize)]
}

/// Applies an action, and returns the verdict, if it ends the search.
fn apply(action: Action, buckets: &mut [Bucket], offer: &mut Offer<'_>) -> Option<Verdict> {
    match action {
        Action::Drop => return Some(Verdict::Drop(DropReason::Filtered)),
        Action::Pass => return Some(Verdict::Pass),
        Action::Band(band) => offer.effects().band = Some(band),
        Action::Mark => offer.effects().mark = true,
        Action::Dscp(dscp) => offer.effects().dscp = Some(dscp),
        Action::Steer(target) => {
            offer.effects().steer = Some(target);
            return Some(Verdict::Pass);
        }
        Action::Police(number) => {
            let bucket = buckets.get_mut(usize::from(number));
            if bucket.is_some_and(|bucket| !bucket.passes(offer.now, offer.bytes)) {
                return Some(Verdict::Drop(DropReason::Policed));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_block::Effects;

    const UDP: u8 = 17;
    const TCP: u8 = 6;

    fn values(text: &str) -> RulesSettings {
        RulesSettings::read(&[("rules", text)]).unwrap()
    }

    fn built(text: &str) -> Rules {
        Rules::build(values(text), Dice::named(0, ""))
    }

    /// An IPv4 frame of this protocol between 10.0.0.1 and 10.0.0.2, ports 1000 and 53.
    fn frame(protocol: u8) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[23] = protocol;
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        frame[34..38].copy_from_slice(&[3, 232, 0, 53]);
        frame
    }

    fn judged(rules: &mut Rules, now: u64, frame: &[u8], bytes: u32) -> (Verdict, Effects) {
        let mut offer = Offer::new(Nanos(now), bytes, frame);
        let verdict = rules.judge(&mut offer);
        (verdict, *offer.effects())
    }

    #[test]
    fn the_first_rule_that_decides_ends_the_search() {
        let text = "band 1\npass if tcp\nmark if udp\ndrop if udp and greater 500\n\
            steer other if udp dst port 53\nband 2";
        let mut rules = built(text);
        let none = Effects::default();
        let band = Effects { band: Some(1), ..none };
        let table = [
            (TCP, 1000, Verdict::Pass, band),
            (UDP, 1000, Verdict::Drop(DropReason::Filtered), Effects { mark: true, ..band }),
            (UDP, 100, Verdict::Pass, Effects { mark: true, steer: Some(0), ..band }),
            (1, 100, Verdict::Pass, Effects { band: Some(2), ..none }),
        ];
        for (protocol, bytes, verdict, effects) in table {
            assert_eq!(
                judged(&mut rules, 0, &frame(protocol), bytes),
                (verdict, effects),
                "{protocol} {bytes}"
            );
        }
    }

    #[test]
    fn a_rewritten_dscp_is_not_seen_by_the_next_rule() {
        let mut rules = built("dscp ef if udp\ndrop if dscp ef\ndscp af11 if dscp 0");
        let (verdict, effects) = judged(&mut rules, 0, &frame(UDP), 60);
        assert_eq!((verdict, effects.dscp), (Verdict::Pass, Some(10)));
    }

    #[test]
    fn what_exceeds_a_rate_is_dropped_and_the_rest_goes_on() {
        // Frames of 96 + 4 bytes at a byte per microsecond, two at once.
        let mut rules = built("police 8 Mbit/s burst 200 B if udp\nband 3");
        let mut at = |now, protocol| judged(&mut rules, now, &frame(protocol), 96).0;
        let policed = Verdict::Drop(DropReason::Policed);
        assert_eq!([at(0, UDP), at(0, UDP), at(0, UDP)], [Verdict::Pass, Verdict::Pass, policed]);
        assert_eq!(at(0, TCP), Verdict::Pass, "of no concern to the rule");
        assert_eq!([at(99_999, UDP), at(100_000, UDP), at(100_000, UDP)], [policed, Verdict::Pass, policed]);
    }

    #[test]
    fn rates_go_on_over_a_change() {
        let mut rules = built("police 0 burst 200 B if udp");
        assert_eq!(judged(&mut rules, 0, &frame(UDP), 96).0, Verdict::Pass);
        rules.change(values("drop if icmp\npolice 0 burst 200 B if udp\npolice 0 burst 100 B if tcp"));
        let mut at = |protocol| judged(&mut rules, 0, &frame(protocol), 96).0;
        let policed = Verdict::Drop(DropReason::Policed);
        assert_eq!([at(UDP), at(UDP), at(TCP), at(TCP)], [Verdict::Pass, policed, Verdict::Pass, policed]);
    }

    #[test]
    fn a_segment_is_not_judged_by_the_bytes_of_the_next() {
        let mut rules = built("drop if ether[1000] = 7");
        let train = vec![7; 3000];
        assert_eq!(judged(&mut rules, 0, &train, 1000).0, Verdict::Pass);
        assert_eq!(judged(&mut rules, 0, &train, 1001).0, Verdict::Drop(DropReason::Filtered));
    }
}
