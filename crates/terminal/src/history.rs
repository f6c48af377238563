//! The last minutes of the objects that were on the screen.

use longwire_control::{Kind, Object, ObjectPage};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};

/// Most samples of an object, and how long each is kept, in nanoseconds: five minutes. Counters of very many
/// links are seldom new.
const SAMPLES: usize = 600;
const KEPT_NS: u64 = 300_000_000_000;
/// Objects that are remembered: those that were shown last.
const MOST: usize = 512;

/// A link at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    /// The time of the run.
    at_ns: u64,
    /// Bits per second.
    pub(crate) out: f64,
    pub(crate) queued_bytes: u64,
    pub(crate) delay_ns: u64,
}

/// What is remembered of an object.
#[derive(Debug, Default)]
pub(crate) struct Track {
    samples: VecDeque<Sample>,
    /// The last counters and those before, with the times of the run at which they were taken.
    last: Option<(u64, Value)>,
    before: Option<(u64, Value)>,
    /// Median and 99th percentile of the samples' delays.
    delays: Option<(u64, u64)>,
    seen: u64,
}

impl Track {
    fn add(&mut self, ns: u64, object: &Object) {
        if self.last.as_ref().is_some_and(|(last, _)| *last >= ns) || object.stats.is_null() {
            return;
        }
        self.before = self.last.replace((ns, object.stats.clone()));
        if object.kind == Kind::Link {
            self.add_sample(ns, object);
        }
    }

    fn add_sample(&mut self, at_ns: u64, link: &Object) {
        let stats = &link.stats;
        let Some(out) = stats["out_bit_per_s"].as_f64() else { return };
        let number = |field: &str| stats[field].as_u64().unwrap_or(0);
        let is_old = |first: &Sample| first.at_ns.saturating_add(KEPT_NS) < at_ns;
        while self.samples.len() == SAMPLES || self.samples.front().is_some_and(is_old) {
            self.samples.pop_front();
        }
        let (queued_bytes, delay_ns) = (number("queued_bytes"), number("delay_ns"));
        self.samples.push_back(Sample { at_ns, out, queued_bytes, delay_ns });
        let mut delays: Vec<u64> = self.samples.iter().map(|sample| sample.delay_ns).collect();
        delays.sort_unstable();
        let at = |share: f64| delays[((delays.len() - 1) as f64 * share).round() as usize];
        self.delays = Some((at(0.5), at(0.99)));
    }

    /// The samples, the earliest first.
    pub(crate) fn samples(&self) -> impl DoubleEndedIterator<Item = &Sample> + ExactSizeIterator {
        self.samples.iter()
    }

    /// Median and 99th percentile of the delays of the samples, in nanoseconds.
    pub(crate) const fn delays(&self) -> Option<(u64, u64)> {
        self.delays
    }

    /// How quickly a counter grows.
    pub(crate) fn per_second(&self, field: &str) -> Option<f64> {
        let ((from, old), (to, new)) = (self.before.as_ref()?, self.last.as_ref()?);
        let grown = new[field].as_u64()?.saturating_sub(old[field].as_u64()?);
        Some(grown as f64 * 1e9 / (to - from) as f64)
    }
}

/// What is remembered of all.
#[derive(Debug, Default)]
pub(crate) struct History {
    tracks: HashMap<(Kind, String), Track>,
    pages: u64,
}

impl History {
    /// Remembers the objects of a page.
    pub(crate) fn add(&mut self, page: &ObjectPage) {
        self.pages += 1;
        for object in &page.objects {
            let track = self.tracks.entry((object.kind, object.name.clone())).or_default();
            track.seen = self.pages;
            track.add(page.counted_ns, object);
        }
        if self.tracks.len() > MOST {
            let mut seen: Vec<u64> = self.tracks.values().map(|track| track.seen).collect();
            seen.sort_unstable();
            let oldest = seen[seen.len() - MOST];
            self.tracks.retain(|_, track| track.seen >= oldest);
        }
    }

    pub(crate) fn of(&self, object: &Object) -> Option<&Track> {
        self.tracks.get(&(object.kind, object.name.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn page(counted_ns: u64, names: &[String], bytes: u64, delay_ns: u64) -> ObjectPage {
        let object = |name: &String| Object {
            kind: Kind::Link,
            name: name.clone(),
            settings: BTreeMap::new(),
            stats: json!({
                "out_bytes": bytes, "out_bit_per_s": 8.0, "delay_ns": delay_ns, "queued_bytes": 3,
            }),
            members: Vec::new(),
            notes: Vec::new(),
        };
        ObjectPage { total: names.len(), from: 0, counted_ns, objects: names.iter().map(object).collect() }
    }

    #[test]
    fn rates_and_percentiles_come_from_the_samples() {
        let names = ["up".to_owned()];
        let mut history = History::default();
        for (second, delay) in (1..=100).zip((1..=100).rev()) {
            history.add(&page(second * 1_000_000_000, &names, 500 * second, delay));
        }
        let up = &page(0, &names, 0, 0).objects[0];
        let track = history.of(up).unwrap();
        assert_eq!(track.delays(), Some((51, 99)));
        assert_eq!(track.per_second("out_bytes"), Some(500.0));
        assert_eq!(track.per_second("nothing"), None);
        // Counters that were taken before are no news.
        history.add(&page(1_000_000_000, &names, 0, 0));
        assert_eq!(history.of(up).unwrap().samples().len(), 100);
        // Two minutes later, then five after the 50th second: those before it are too old.
        history.add(&page(220_000_000_000, &names, 0, 7));
        assert_eq!(history.of(up).unwrap().samples().len(), 101);
        history.add(&page(350_000_000_000, &names, 0, 7));
        assert_eq!(history.of(up).unwrap().samples().len(), 53);
    }

    #[test]
    fn those_shown_last_are_remembered() {
        let mut history = History::default();
        for part in 0..20u64 {
            let names: Vec<String> = (0..50).map(|number| format!("link{part}-{number}")).collect();
            history.add(&page(1, &names, 0, 0));
        }
        assert!(history.tracks.len() <= MOST + 50, "{}", history.tracks.len());
        assert!(history.tracks.contains_key(&(Kind::Link, "link19-0".into())));
        assert!(!history.tracks.contains_key(&(Kind::Link, "link0-0".into())));
    }
}
