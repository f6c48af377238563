//! Loss by a fixed pattern.

use super::foreseen::Process;
use super::lossy::{Loss, Lossy};
use super::{ECN_PARAM, Place, WHERE_PARAM};
use longwire_block::{Dice, Grammar};
use longwire_settings::Settings;
use std::any::Any;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

/// Loses every n-th packet, and the packets in a list. Packets are numbered from 1 in order of arrival; each
/// segment of a train is counted.
pub type Pattern = Lossy<Numbers>;

/// The process of [`Pattern`].
#[derive(Debug, Clone)]
pub struct Numbers {
    every: u64,
    list: Arc<Ranges>,
    /// The first range of the list that has not ended.
    at: usize,
    seen: u64,
}

/// Ascending ranges with gaps between them.
#[derive(Debug, Default)]
struct Ranges(Vec<RangeInclusive<u64>>);

const LIST: Grammar = Grammar {
    wanted: "numbers of packets such as \"3, 7, 10-12\", counted from 1",
    form: None,
    read: read_list,
    examples: &["", "3, 7, 10-12", "1", "5-400"],
};

/// Most ranges of a list.
const MOST: usize = 1_000_000;

/// Loses every n-th packet, or those of a list.
#[derive(Debug, Settings)]
#[settings(key = "loss", kind = "pattern", source = "Longwire's design: loss that no dice decide", live)]
pub struct PatternSettings {
    /// loses every packet whose number is a multiple of this; 0 for none
    #[setting(default = "0", min = 0, max = u64::MAX)]
    every: u64,
    /// loses the packets with these numbers, as in "3, 7, 10-12"
    #[setting(default = "", grammar = LIST)]
    list: Arc<Ranges>,
    #[setting(like = WHERE_PARAM)]
    place: Place,
    #[setting(like = ECN_PARAM)]
    ecn: bool,
}

impl Loss for Numbers {
    type Settings = PatternSettings;

    fn new(_: Dice) -> Self {
        Self { every: 0, list: Arc::default(), at: 0, seen: 0 }
    }

    /// Applies a new pattern; the numbering continues.
    fn change(&mut self, settings: PatternSettings) -> (Place, bool) {
        self.every = settings.every;
        self.list = settings.list;
        self.at = self.list.0.partition_point(|range| *range.end() <= self.seen);
        (settings.place, settings.ecn)
    }
}

impl Process for Numbers {
    #[inline]
    fn strikes(&mut self) -> bool {
        self.seen += 1;
        let listed = self.list.0.get(self.at).is_some_and(|range| range.contains(&self.seen));
        if self.list.0.get(self.at).is_some_and(|range| *range.end() <= self.seen) {
            self.at += 1;
        }
        listed || (self.every > 0 && self.seen.is_multiple_of(self.every))
    }
}

fn read_list(text: &str, _: &Path) -> Result<Arc<dyn Any + Send + Sync>, String> {
    let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
    let items = text.split([',', ' ', '\n']).map(str::trim).filter(|item| !item.is_empty());
    for item in items {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let number = |text: &str| text.trim().parse::<u64>().ok().filter(|&n| n > 0);
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            let item: String = item.chars().take(40).collect();
            return Err(format!(
                "\"{}\" is no packet's number; write a list such as \"3, 7, 10-12\"",
                item.escape_debug()
            ));
        };
        if first > last {
            return Err(format!("{first}-{last} goes backwards; write {last}-{first}"));
        }
        if ranges.len() == MOST {
            return Err(format!("there are more than {MOST} numbers; use every, or ranges"));
        }
        ranges.push(first..=last);
    }
    ranges.sort_unstable_by_key(|range| *range.start());
    ranges.dedup_by(|later, earlier| {
        let joins = later.start() <= &earlier.end().saturating_add(1);
        if joins {
            *earlier = *earlier.start()..=*earlier.end().max(later.end());
        }
        joins
    });
    Ok(Arc::new(Ranges(ranges)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Judge;
    use longwire_block::{Block, Offer, Verdict};
    use longwire_units::Nanos;

    fn lost(given: &[(&str, &str)], n: u64) -> Vec<u64> {
        let mut block = Pattern::build(Settings::read(given).unwrap(), Dice::named(0, ""));
        let mut offer = Offer::new(Nanos::ZERO, 60, &[]);
        (1..=n).filter(|_| block.judge(&mut offer) != Verdict::Pass).collect()
    }

    #[test]
    fn loses_just_those() {
        assert_eq!(lost(&[("every", "4")], 12), [4, 8, 12]);
        assert_eq!(lost(&[("list", "10-12, 3,7 , 11-13")], 20), [3, 7, 10, 11, 12, 13]);
        assert_eq!(lost(&[("every", "5"), ("list", "1 5")], 10), [1, 5, 10]);
        assert!(lost(&[], 100).is_empty());
    }

    #[test]
    fn a_new_list_begins_where_the_packets_are() {
        let values = |list| PatternSettings::read(&[("list", list)]).unwrap();
        let mut block = Pattern::build(values("1-3"), Dice::named(0, ""));
        let mut offer = Offer::new(Nanos::ZERO, 60, &[]);
        let mut judge = |block: &mut Pattern| block.judge(&mut offer) != Verdict::Pass;
        assert_eq!([judge(&mut block), judge(&mut block)], [true, true]);
        block.change(values("1, 4"));
        assert_eq!([judge(&mut block), judge(&mut block), judge(&mut block)], [false, true, false]);
    }

    #[test]
    fn mistakes_are_named() {
        for (list, part) in [("3,x", "\"x\""), ("0", "no packet's number"), ("9-4", "4-9"), ("1--2", "1--2")]
        {
            let error = PatternSettings::read(&[("list", list)]).unwrap_err().to_string();
            assert!(error.contains(part), "{list}: {error}");
        }
    }
}
