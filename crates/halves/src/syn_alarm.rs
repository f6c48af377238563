//! `longwire control syn-alarm`: detects SYN floods, raises an alarm, and filters them.

use crate::session::{RouterSession, address_at, double_at, is_refused, per_second, shipped, word_at};
use crate::{Interval, ResidentArgs};
use anyhow::ensure;
use longwire_report::output;
use longwire_scenario::WrittenKey;
use longwire_units::Nanos;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Raise an alarm when a server is flooded with SYNs, and filter them while that lasts
///
/// Installs syn-monitor, which counts SYNs, and reads the count in each interval. While there are more than
/// one server may get, syn-targets counts them for each address and port. A target that gets too many is
/// reported, and a syn-filter is installed for it, which is removed when the flood has been over for a while.
/// Existing connections continue.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire control syn-alarm r1
  longwire control syn-alarm r1 --threshold 500 --admit 20 --hold '30 s' --json")]
pub struct Args {
    #[command(flatten)]
    target: ResidentArgs,

    /// SYNs a second to one address and port that raise an alarm.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    threshold: u64,

    /// SYNs a second below which the flood is over. Default: half the threshold.
    #[arg(long, value_name = "COUNT")]
    clear: Option<u64>,

    /// Time without a flood after which the filter is removed.
    #[arg(long, value_name = "TIME", default_value = "10 s")]
    hold: Nanos,

    /// SYNs a second that the filter passes.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    admit: u64,

    /// How often counters are read.
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    interval: Interval,

    /// Print a JSON object for each event.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Runs until it is stopped.
    ///
    /// # Errors
    /// If the programs are refused, or the instance does not answer.
    pub fn run(self) -> anyhow::Result<()> {
        let limits = Limits {
            threshold: self.threshold,
            clear: self.clear.unwrap_or(self.threshold / 2),
            hold: Duration::from_nanos(self.hold.0),
            admit: self.admit,
        };
        ensure!(limits.threshold > 0, "--threshold must be at least 1");
        let (clear, threshold) = (limits.clear, limits.threshold);
        ensure!(clear <= threshold, "--clear {clear} is above the threshold, {threshold}");
        let session = RouterSession::take(&self.target, self.json)?;
        let mut alarm = Alarm::begin(&session, limits)?;
        session.every(self.interval.nanos(), |time| alarm.look(time))
    }
}

struct Limits {
    threshold: u64,
    clear: u64,
    hold: Duration,
    admit: u64,
}

/// State between two intervals.
struct Alarm<'p> {
    session: &'p RouterSession,
    limits: Limits,
    monitor: u32,
    syns: u32,
    targets: Option<Targets>,
    /// Whether it was told that the router has no room for the program that counts by target.
    has_no_room: bool,
    filters: HashMap<Target, Filter>,
}

/// A destination address and port of SYNs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Target {
    address: IpAddr,
    port: u16,
}

/// The program that counts by target.
struct Targets {
    fid: u32,
    counted: HashMap<Target, u64>,
    calm: Duration,
}

struct Filter {
    fid: u32,
    seen: u32,
    dropped: u32,
    calm: Duration,
}

impl<'p> Alarm<'p> {
    fn begin(session: &'p RouterSession, limits: Limits) -> anyhow::Result<Self> {
        let monitor = session.install(&shipped("syn-monitor", None, None))?;
        let (targets, filters) = (None, HashMap::new());
        Ok(Self { session, limits, monitor, syns: 0, targets, has_no_room: false, filters })
    }

    /// Reads all counters, and acts.
    fn look(&mut self, time: Duration) -> anyhow::Result<()> {
        let syns = word_at(&self.session.data::<4>(self.monitor)?, 0).unwrap_or_default();
        let rate = per_second(syns.wrapping_sub(self.syns).into(), time);
        self.syns = syns;
        self.follow_filters(time)?;
        self.follow_targets(time)?;
        self.suspect(rate, time)
    }

    /// Removes filters that are no longer needed.
    fn follow_filters(&mut self, time: Duration) -> anyhow::Result<()> {
        let mut over = Vec::new();
        for (&target, filter) in &mut self.filters {
            let Some(data) = self.session.data_unless_removed::<24>(filter.fid)? else {
                // If the flood goes on, the next look raises an alarm again.
                over.push((target, None));
                continue;
            };
            let seen = word_at(&data, 16).unwrap_or_default();
            let rate = per_second(seen.wrapping_sub(filter.seen).into(), time);
            (filter.seen, filter.dropped) = (seen, word_at(&data, 20).unwrap_or_default());
            filter.calm = if rate > self.limits.clear { Duration::ZERO } else { filter.calm + time };
            if filter.calm >= self.limits.hold {
                over.push((target, Some(filter.fid)));
            }
        }
        for (target, installed) in over {
            let Some(Filter { fid, dropped, .. }) = self.filters.remove(&target) else { continue };
            installed.map_or(Ok(()), |fid| self.session.remove(fid))?;
            let event = target.event("over", &[("fid", fid.into()), ("dropped", dropped.into())]);
            self.session.tell(
                &event,
                &format!("over: {target}, {dropped} SYNs were dropped; the filter is removed"),
            )?;
        }
        Ok(())
    }

    /// Reads the counts by target, and filters excessive ones.
    fn follow_targets(&mut self, time: Duration) -> anyhow::Result<()> {
        let Some(targets) = &mut self.targets else { return Ok(()) };
        let Some(entries) = self.session.entries_unless_removed(targets.fid, "targets")? else {
            // If there are as many SYNs as before, it is installed again.
            self.targets = None;
            return Ok(());
        };
        let mut counted = HashMap::new();
        let mut flooded = Vec::new();
        for (key, value) in entries {
            let (Some(target), Some(count)) = (Target::of(&key), double_at(&value, 0)) else { continue };
            // A lower count means that the entry was evicted and came back.
            let before = targets.counted.get(&target).copied().filter(|&before| before <= count).unwrap_or(0);
            let rate = per_second(count - before, time);
            counted.insert(target, count);
            if rate >= self.limits.threshold && !self.filters.contains_key(&target) {
                flooded.push((target, rate));
            }
        }
        targets.counted = counted;
        for (target, rate) in flooded {
            self.raise(target, rate)?;
        }
        Ok(())
    }

    fn raise(&mut self, target: Target, rate: u64) -> anyhow::Result<()> {
        let interval = interval_of(self.limits.admit);
        let key = WrittenKey {
            destination: Some(target.address.to_string()),
            destination_port: Some(target.port.to_string()),
            protocol: Some("tcp".into()),
            ..WrittenKey::default()
        };
        let data = [&interval.to_le_bytes()[..], &[0; 16]].concat();
        let installed = self.session.install(&shipped("syn-filter", Some(key), Some(&data)));
        let fid = installed.as_ref().ok().copied();
        let how = fid.map_or("not filtered".to_owned(), |fid| format!("filtered by program {fid}"));
        if let Some(fid) = fid {
            self.filters.insert(target, Filter { fid, seen: 0, dropped: 0, calm: Duration::ZERO });
        }
        let event = target.event("alarm", &[("rate", rate.into()), ("fid", fid.into())]);
        self.session.tell(&event, &format!("alarm: {target} gets {rate} SYNs/s; {how}"))?;
        // The alarm is useful even without a filter.
        if let Err(error) = installed {
            output::note(&format!("no filter for {target}: {}", output::chain(error.as_ref())));
        }
        Ok(())
    }

    /// Installs the program that counts by target. If the router has no room for it, that is told once.
    fn count_by_target(&mut self, rate: u64) -> anyhow::Result<()> {
        let fid = match self.session.install(&shipped("syn-targets", None, None)) {
            Ok(fid) => fid,
            Err(error) if is_refused(&error) => {
                if std::mem::replace(&mut self.has_no_room, true) {
                    return Ok(());
                }
                output::note(&format!("SYNs are not counted by target: {}", output::chain(error.as_ref())));
                let event = json!({ "event": "suspicion", "rate": rate, "fid": null });
                return self.session.tell(&event, &format!("suspicion: {rate} SYNs/s; no target is known"));
            }
            Err(error) => return Err(error),
        };
        self.has_no_room = false;
        self.targets = Some(Targets { fid, counted: HashMap::new(), calm: Duration::ZERO });
        let event = json!({ "event": "suspicion", "rate": rate, "fid": fid });
        self.session.tell(&event, &format!("suspicion: {rate} SYNs/s; program {fid} counts them by target"))
    }

    /// Counts SYNs by target while there are more than one server may get, and for a while after.
    fn suspect(&mut self, rate: u64, time: Duration) -> anyhow::Result<()> {
        match &mut self.targets {
            None if rate >= self.limits.threshold => self.count_by_target(rate),
            None => {
                self.has_no_room = false;
                Ok(())
            }
            Some(targets) => {
                targets.calm =
                    if rate >= self.limits.threshold { Duration::ZERO } else { targets.calm + time };
                if targets.calm < self.limits.hold {
                    return Ok(());
                }
                let fid = targets.fid;
                self.targets = None;
                self.session.remove(fid)?;
                self.session.tell(
                    &json!({ "event": "calm", "rate": rate, "fid": fid }),
                    &format!("calm: {rate} SYNs/s"),
                )
            }
        }
    }
}

/// The filter's least time between two SYNs that pass, in nanoseconds, for so many a second; 0 if none
/// passes.
fn interval_of(admit: u64) -> u64 {
    1_000_000_000u64.checked_div(admit).map_or(0, |interval| interval.max(1))
}

impl Target {
    /// Parses a key of the map `targets`.
    fn of(key: &[u8]) -> Option<Self> {
        let port = u16::try_from(word_at(key, 16)?).ok()?;
        Some(Self { address: address_at(key, 0)?, port })
    }

    fn event(&self, event: &str, more: &[(&str, Value)]) -> Value {
        let mut object = json!({ "event": event, "address": self.address.to_string(), "port": self.port });
        for (key, value) in more {
            object[*key] = value.clone();
        }
        object
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::new(self.address, self.port).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_zero_admits_none() {
        for (admit, interval) in [(0, 0), (20, 50_000_000), (1_000_000_000, 1), (u64::MAX, 1)] {
            assert_eq!(interval_of(admit), interval, "{admit}");
        }
    }
}
