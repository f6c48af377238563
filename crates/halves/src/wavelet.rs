//! `longwire control wavelet`: controls how many layers of a video pass, by the state of the output.

use crate::session::{RouterSession, per_second, shipped, word_at};
use crate::{FlowEnds, Interval, ResidentArgs};
use anyhow::{Context, ensure};
use longwire_control::RowFilter;
use serde_json::{Value, json};

/// Drop a video's upper layers while its output is congested
///
/// Installs the wavelet dropper for a flow of UDP packets whose first byte is their layer, and reads the
/// output link's counters in each interval. While the link drops, the number of layers is reduced in
/// proportion to what it forwards, by at least one, but never to zero. After a while without drops one layer
/// is added. If that was too much, the next attempt waits twice as long, up to sixteen times.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire control wavelet r1 --link a-b --destination 10.0.2.9 --destination-port 5004
  longwire control wavelet r1 --link a-b --source 10.0.1.9 --destination-port 5004 --layers 4 --interval \
  '200 ms' --calm 10 --json")]
pub struct Args {
    #[command(flatten)]
    target: ResidentArgs,

    /// The output link of the video.
    #[arg(long)]
    link: String,

    #[command(flatten)]
    ends: FlowEnds,

    /// Number of layers of the video.
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    layers: u32,

    /// Intervals without a drop before one more layer passes.
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    calm: u32,

    /// Polling interval.
    #[arg(long, value_name = "TIME", default_value = "500 ms")]
    interval: Interval,

    /// Print a JSON object for each change.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Runs until it is stopped.
    ///
    /// # Errors
    /// If there is no such link, the program is refused, or the instance does not answer.
    pub fn run(self) -> anyhow::Result<()> {
        ensure!((2..=256).contains(&self.layers), "--layers {} is outside 2 to 256", self.layers);
        ensure!(self.calm > 0, "--calm must be at least 1");
        let session = RouterSession::take(&self.target, self.json)?;
        let mut last = counts_of(&session, &self.link)?;
        let key = self.ends.key(Some("udp".into()));
        let fid = session.install(&shipped("wavelet", Some(key), None))?;
        let mut steering = Steering::new(self.layers, self.calm);
        let mut forwarded = 0;
        session.every(self.interval.nanos(), |time| {
            let now = counts_of(&session, &self.link)?;
            let own = word_at(&session.data::<8>(fid)?, 4).unwrap_or_default();
            let rate = per_second(own.wrapping_sub(forwarded).into(), time);
            forwarded = own;
            let before = steering.passing;
            let dropped = now.dropped.saturating_sub(last.dropped);
            steering.look(now.out.saturating_sub(last.out), dropped);
            last = now;
            if steering.passing == before {
                return Ok(());
            }
            // A worker may count a packet between the read and the write; an exact count is not needed.
            let data = [steering.cutoff().to_le_bytes(), own.to_le_bytes()].concat();
            session.set(fid, &data)?;
            let event = json!({
                "event": "layers", "passing": steering.passing, "of": self.layers, "dropped": dropped,
                    "rate": rate, "fid": fid,
            });
            let text = format!(
                "{} of {} layers pass; the link dropped {dropped} packets, the video had {rate} packets/s",
                steering.passing, self.layers
            );
            session.tell(&event, &text)
        })
    }
}

/// Packets forwarded and dropped by a link so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LinkCounts {
    out: u64,
    dropped: u64,
}

/// The counts of the link with this name.
///
/// # Errors
/// There is no such link, or the instance does not answer.
fn counts_of(session: &RouterSession, link: &str) -> anyhow::Result<LinkCounts> {
    let found = counted(&session.stats(&rows_of(Some(link)))?, link);
    // The reason is that of all links.
    found.or_else(|_| counted(&session.stats(&rows_of(None))?, link))
}

/// Selects the row of a link, which may be behind the first page of all, or the first page of links.
fn rows_of(link: Option<&str>) -> RowFilter {
    RowFilter { name: link.map(str::to_owned), kind: Some("link".into()), ..RowFilter::default() }
}

fn counted(stats: &Value, link: &str) -> anyhow::Result<LinkCounts> {
    let rows = stats["rows"].as_array().into_iter().flatten().filter(|row| row["kind"] == "link");
    let links = || {
        let names = rows.clone().filter_map(|row| row["name"].as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        if names.is_empty() { "none".to_owned() } else { names }
    };
    let row = rows.clone().find(|row| row["name"] == *link);
    let row =
        row.with_context(|| format!("there is no link \"{}\"; there are {}", link.escape_debug(), links()))?;
    let dropped = row["dropped"].as_object().into_iter().flatten();
    let dropped = dropped.filter_map(|(_, packets)| packets.as_u64()).sum();
    Ok(LinkCounts { out: row["out_packets"].as_u64().unwrap_or(0), dropped })
}

/// Largest factor of the waiting time after failed attempts.
const MOST_PATIENCE: u32 = 16;

/// The number of layers that pass, and the state of its control.
#[derive(Debug, PartialEq, Eq)]
struct Steering {
    layers: u32,
    calm: u32,
    passing: u32,
    /// Intervals without a drop since the last change.
    quiet: u32,
    /// Factor of `calm` before it tries another layer.
    patience: u32,
    /// Whether the last change added a layer that is not confirmed yet.
    trying: bool,
}

impl Steering {
    fn new(layers: u32, calm: u32) -> Self {
        Self { layers, calm, passing: layers, quiet: 0, patience: 1, trying: false }
    }

    /// The dropper's cutoff: the first layer that is dropped, 0 for none.
    fn cutoff(&self) -> u32 {
        if self.passing >= self.layers { 0 } else { self.passing }
    }

    /// Updates after an interval with these packets forwarded and dropped.
    fn look(&mut self, out: u64, dropped: u64) {
        if dropped > 0 {
            self.patience = if self.trying { (self.patience * 2).min(MOST_PATIENCE) } else { self.patience };
            let share = u128::from(self.passing) * u128::from(out) / (u128::from(out) + u128::from(dropped));
            self.passing = (share as u32).min(self.passing - 1).max(1);
            (self.quiet, self.trying) = (0, false);
            return;
        }
        self.quiet += 1;
        if self.trying && self.quiet >= self.calm {
            (self.trying, self.patience) = (false, 1);
        }
        if self.passing < self.layers && self.quiet >= self.calm.saturating_mul(self.patience) {
            (self.passing, self.quiet, self.trying) = (self.passing + 1, 0, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of layers after each of these intervals of packets forwarded and dropped.
    fn passing(steering: &mut Steering, intervals: &[(u64, u64)]) -> Vec<u32> {
        let mut look = |&(out, dropped)| {
            steering.look(out, dropped);
            steering.passing
        };
        intervals.iter().map(&mut look).collect()
    }

    #[test]
    fn layers_go_quickly_and_come_back_slowly() {
        let mut steering = Steering::new(8, 2);
        // Half gets through; then slightly too much; then nothing is dropped.
        let seen = passing(&mut steering, &[(50, 50), (99, 1), (60, 0), (60, 0), (60, 0), (60, 0)]);
        assert_eq!(seen, [4, 3, 3, 4, 4, 5]);
        // The base layer always passes.
        assert_eq!(passing(&mut steering, &[(0, 9), (0, 9), (0, 9)]), [1, 1, 1]);
    }

    #[test]
    fn a_layer_that_was_too_many_is_tried_later_each_time() {
        let mut steering = Steering::new(8, 2);
        steering.look(50, 50);
        let mut waited = Vec::new();
        for _ in 0..6 {
            let mut quiet = 0;
            while steering.passing == 4 {
                steering.look(50, 0);
                quiet += 1;
            }
            steering.look(55, 5);
            waited.push(quiet);
            assert_eq!(steering.passing, 4);
        }
        assert_eq!(waited, [2, 4, 8, 16, 32, 32]);
        // A confirmed layer resets the waiting time.
        passing(&mut steering, &[(50, 0); 34]);
        assert_eq!((steering.passing, steering.patience), (6, 1));
    }

    #[test]
    fn all_layers_are_no_cutoff() {
        let mut steering = Steering::new(2, 1);
        assert_eq!(steering.cutoff(), 0);
        steering.look(1, 1);
        assert_eq!(steering.cutoff(), 1);
        steering.look(1, 0);
        assert_eq!((steering.cutoff(), steering.passing), (0, 2));
    }

    #[test]
    fn a_link_behind_the_first_page_is_found() {
        let row = |number: u64| {
            let name = format!("l{number}");
            json!({ "kind": "link", "name": name, "out_packets": number })
        };
        let rows: Vec<Value> = (0..20_000).map(row).collect();
        let page = |filter: RowFilter| json!({ "rows": filter.select(rows.clone()).unwrap().0 });
        assert!(counted(&page(rows_of(None)), "l19999").is_err());
        assert_eq!(counted(&page(rows_of(Some("l19999"))), "l19999").unwrap().out, 19_999);
    }

    #[test]
    fn a_links_counters_are_found() {
        let stats = json!({ "rows": [
            { "kind": "port", "name": "up" },
            { "kind": "link", "name": "up", "out_packets": 3, "dropped": {} },
            { "kind": "link", "name": "down", "out_packets": 7, "dropped": { "queue-full": 2, "loss": 1 } },
        ] });
        assert_eq!(counted(&stats, "down").unwrap(), LinkCounts { out: 7, dropped: 3 });
        let error = counted(&stats, "side").unwrap_err();
        assert_eq!(error.to_string(), "there is no link \"side\"; there are up, down");
        let none = counted(&json!({ "rows": [] }), "side").unwrap_err();
        assert_eq!(none.to_string(), "there is no link \"side\"; there are none");
    }
}
