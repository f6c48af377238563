//! `longwire control heavy-hitters`: finds the flows that send most, and polices those that send too much.

use crate::session::{Entry, RouterSession, address_at, double_at, per_second, shipped};
use crate::{Interval, ResidentArgs, protocol_name};
use anyhow::ensure;
use longwire_report::cells;
use longwire_report::output;
use longwire_report::shown::{self, columns};
use longwire_scenario::WrittenKey;
use longwire_units::{Bytes, Nanos, Rate, counted};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::time::Duration;

/// Show the flows that send most bytes, and police those that send too much
///
/// Installs heavy-hitters, which estimates every flow's bytes, and reads the largest flows in each interval.
/// With --install-policer, a flow faster than --above gets its own token bucket, which is removed when it has
/// dropped nothing for a while.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire control heavy-hitters r1
  longwire control heavy-hitters r1 --top 5 --interval '10 s' --json
  longwire control heavy-hitters r1 --above '20 Mbit/s' --install-policer '10 Mbit/s' --burst '50 kB' --hold \
  '1 min'")]
pub struct Args {
    #[command(flatten)]
    target: ResidentArgs,

    /// Number of flows shown, and most that are policed; up to 100.
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    top: usize,

    /// Interval of counting and display.
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    interval: Interval,

    /// Rate of a flow that exceeds --above.
    #[arg(long, value_name = "RATE")]
    install_policer: Option<Rate>,

    /// Rate above which a flow is policed. Default: the policer's rate.
    #[arg(long, value_name = "RATE", requires = "install_policer")]
    above: Option<Rate>,

    /// Burst of a policed flow. Default: 100 ms at its rate, at least two long frames.
    #[arg(long, value_name = "SIZE", requires = "install_policer")]
    burst: Option<Bytes>,

    /// Time without drops after which a policer is removed.
    #[arg(long, value_name = "TIME", default_value = "10 s")]
    hold: Nanos,

    /// Print a JSON object for each interval, and for each policer installed or removed.
    #[arg(long)]
    json: bool,
}

/// Limit that certainly fits the table.
const MOST: usize = 100;
/// Number of flows in the table below which lighter ones are admitted.
const FEW: usize = 64;
/// The largest burst of the policer: 2^62 billionths of a byte.
const MOST_BURST: u64 = (1 << 62) / BILLION;
const BILLION: u64 = 1_000_000_000;
/// Two frames with 1500 bytes of IP.
const LEAST_BURST: u64 = 3028;

impl Args {
    /// Runs until it is stopped.
    ///
    /// # Errors
    /// If the program is refused, or the instance does not answer.
    pub fn run(self) -> anyhow::Result<()> {
        ensure!((1..=MOST).contains(&self.top), "--top {} is outside 1 to {MOST}", self.top);
        let limit = self.install_policer.map(|rate| self.limit(rate)).transpose()?;
        let session = RouterSession::take(&self.target, self.json)?;
        // Prevents attackers from choosing flows that collide with others.
        let seed = RandomState::new().hash_one("heavy-hitters");
        let fid = session.install(&shipped("heavy-hitters", None, Some(&state(1, seed))))?;
        let is_screen = !self.json && std::io::stdout().is_terminal();
        let mut watch = HitterWatch {
            session: &session,
            args: &self,
            fid,
            seed,
            threshold: 1,
            limit,
            policed: HashMap::new(),
            is_screen,
        };
        session.every(self.interval.nanos(), |time| watch.look(time))
    }

    fn limit(&self, rate: Rate) -> anyhow::Result<Limit> {
        ensure!(rate.0 >= 8, "--install-policer {rate} passes nothing; use at least 8 bit/s");
        let above = self.above.unwrap_or(rate);
        ensure!(above >= rate, "--above {above} is below the policer's rate, {rate}");
        let burst = self.burst.map_or((rate.0 / 80).clamp(LEAST_BURST, MOST_BURST), |burst| burst.0);
        ensure!((64..=MOST_BURST).contains(&burst), "--burst {burst} B is outside 64 B to {MOST_BURST} B");
        Ok(Limit { rate: rate.0 / 8, burst, above: above.0 })
    }
}

/// The program's state: the threshold, the seed of its hash, zero missed.
fn state(threshold: u64, seed: u64) -> Vec<u8> {
    [threshold, seed, 0].iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The threshold for policing, and the policer's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit {
    /// Bytes a second.
    rate: u64,
    /// Bytes.
    burst: u64,
    /// Bits a second.
    above: u64,
}

impl Limit {
    /// The policer's state, with a full bucket.
    fn state(&self) -> Vec<u8> {
        let tokens = self.burst.saturating_mul(BILLION);
        let fill = tokens.div_ceil(self.rate);
        [self.rate, tokens, fill, tokens, 0, 0].iter().flat_map(|number| number.to_le_bytes()).collect()
    }
}

/// A flow: a key of the program's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Flow {
    source: SocketAddr,
    destination: SocketAddr,
    protocol: u8,
}

/// A flow's traffic in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FlowTraffic {
    flow: Flow,
    bytes: u64,
    packets: u64,
}

impl FlowTraffic {
    fn read((key, value): &Entry) -> Option<Self> {
        let port = |at: usize| Some(u16::from_be_bytes(key.get(at..at + 2)?.try_into().ok()?));
        let source = SocketAddr::new(address_at(key, 0)?, port(32)?);
        let destination = SocketAddr::new(address_at(key, 16)?, port(34)?);
        let flow = Flow { source, destination, protocol: *key.get(36)? };
        Some(Self { flow, bytes: double_at(value, 0)?, packets: double_at(value, 8)? })
    }
}

impl Flow {
    /// Whether packets of the flow are counted by ports; fragments are not.
    fn has_ports(self) -> bool {
        matches!(self.protocol, 6 | 17) && (self.source.port(), self.destination.port()) != (0, 0)
    }

    /// The key of its packets.
    fn key(self) -> WrittenKey {
        let port = |end: SocketAddr| self.has_ports().then(|| end.port().to_string());
        WrittenKey {
            source: Some(self.source.ip().to_string()),
            source_port: port(self.source),
            destination: Some(self.destination.ip().to_string()),
            destination_port: port(self.destination),
            protocol: Some(self.protocol.to_string()),
        }
    }

    fn json(self) -> Value {
        let address = |end: SocketAddr| Value::from(end.ip().to_string());
        json!({
            "source": address(self.source), "source-port": self.source.port(),
            "destination": address(self.destination), "destination-port": self.destination.port(),
            "protocol": protocol_name(self.protocol),
        })
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |end: SocketAddr| if self.has_ports() { end.to_string() } else { end.ip().to_string() };
        write!(f, "{} > {} {}", end(self.source), end(self.destination), protocol_name(self.protocol))
    }
}

/// A flow with a policer, or one that was refused.
struct PolicedFlow {
    /// The policer's number; none if it was refused.
    fid: Option<u32>,
    /// Packets dropped by it.
    dropped: u64,
    /// Time without drops.
    calm: Duration,
}

struct HitterWatch<'p> {
    session: &'p RouterSession,
    args: &'p Args,
    fid: u32,
    seed: u64,
    /// Bytes per interval from which a flow is in the table.
    threshold: u64,
    limit: Option<Limit>,
    policed: HashMap<Flow, PolicedFlow>,
    is_screen: bool,
}

impl HitterWatch<'_> {
    fn look(&mut self, time: Duration) -> anyhow::Result<()> {
        let entries = self.session.entries(self.fid, "top")?;
        let missed = double_at(&self.session.data::<24>(self.fid)?, 16).unwrap_or(0);
        // Packets in between are counted in neither interval.
        self.session.clear(self.fid, ".bss")?;
        self.session.clear(self.fid, "top")?;
        let mut sent: Vec<FlowTraffic> = entries.iter().filter_map(FlowTraffic::read).collect();
        sent.sort_unstable_by_key(|sent| (std::cmp::Reverse(sent.bytes), sent.flow));
        self.threshold = next_threshold(self.threshold, &sent, missed);
        self.session.set(self.fid, &state(self.threshold, self.seed))?;
        sent.truncate(self.args.top);
        self.show(&sent, missed, time)?;
        self.release(time)?;
        if let Some(limit) = self.limit {
            for one in &sent {
                let rate = bits_per_second(one.bytes, time);
                if rate > limit.above && !self.policed.contains_key(&one.flow) {
                    self.police(one.flow, rate, &limit)?;
                }
            }
        }
        Ok(())
    }

    fn show(&self, sent: &[FlowTraffic], missed: u64, time: Duration) -> anyhow::Result<()> {
        let is_policed = |flow: &Flow| self.policed.get(flow).is_some_and(|policed| policed.fid.is_some());
        let flows = sent.iter().map(|one| {
            let mut flow = one.flow.json();
            flow["bytes"] = one.bytes.into();
            flow["packets"] = one.packets.into();
            flow["rate"] = bits_per_second(one.bytes, time).into();
            flow["policed"] = is_policed(&one.flow).into();
            flow
        });
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let event = json!({
            "event": "interval", "time_ns": nanos, "flows": flows.collect::<Vec<_>>(), "missed": missed,
            "threshold": self.threshold,
        });
        let mut lines = vec![cells!["flow", "bytes", "packets", "rate", ""]];
        for one in sent {
            let rate = shown::rate(bits_per_second(one.bytes, time) as f64);
            let note = if is_policed(&one.flow) { "policed" } else { "" };
            lines.push(cells![
                one.flow.to_string(),
                shown::count(one.bytes),
                shown::count(one.packets),
                rate,
                note
            ]);
        }
        if self.is_screen {
            output::clear_screen();
        }
        let text = format!("{}\n", columns(&lines).join("\n"));
        self.session.tell(&event, &text)
    }

    fn police(&mut self, flow: Flow, rate: u64, limit: &Limit) -> anyhow::Result<()> {
        if self.policed.len() >= self.args.top {
            return Ok(());
        }
        let installed = self.session.install(&shipped("policer", Some(flow.key()), Some(&limit.state())));
        let mut event = flow.json();
        event["event"] = "policed".into();
        event["rate"] = rate.into();
        let (fid, what) = match &installed {
            Ok(fid) => (Some(*fid), format!("policed by program {fid}")),
            Err(error) => {
                output::note(&format!("no policer for {flow}: {}", output::chain(error.as_ref())));
                (None, "not policed".to_owned())
            }
        };
        event["fid"] = fid.into();
        self.policed.insert(flow, PolicedFlow { fid, dropped: 0, calm: Duration::ZERO });
        let text = format!("{flow} sends {}; {what}", shown::rate(rate as f64));
        self.session.tell(&event, &text)
    }

    /// Removes policers that are no longer needed.
    fn release(&mut self, time: Duration) -> anyhow::Result<()> {
        let hold = Duration::from_nanos(self.args.hold.0);
        let mut over = Vec::new();
        for (flow, policed) in &mut self.policed {
            let mut dropped = 0;
            if let Some(fid) = policed.fid {
                let Some(data) = self.session.data_unless_removed::<48>(fid)? else {
                    over.push((*flow, None));
                    continue;
                };
                dropped = double_at(&data, 40).unwrap_or(0);
            }
            policed.calm = if dropped == policed.dropped { policed.calm + time } else { Duration::ZERO };
            policed.dropped = dropped;
            if policed.calm >= hold {
                over.push((*flow, policed.fid));
            }
        }
        over.sort_unstable();
        for (flow, installed) in over {
            let Some(PolicedFlow { fid: Some(_), dropped, .. }) = self.policed.remove(&flow) else {
                continue;
            };
            installed.map_or(Ok(()), |fid| self.session.remove(fid))?;
            let mut event = flow.json();
            event["event"] = "released".into();
            event["dropped"] = dropped.into();
            let dropped = counted(dropped, "packet");
            self.session.tell(&event, &format!("{flow} is no longer policed; {dropped} dropped"))?;
        }
        Ok(())
    }
}

/// The rate of `bytes` in `time`, in bits per second.
fn bits_per_second(bytes: u64, time: Duration) -> u64 {
    per_second(bytes.saturating_mul(8), time)
}

/// The next interval's threshold for the table: at least the median flow's bytes if the table was full; half
/// if it was nearly empty.
fn next_threshold(threshold: u64, sent: &[FlowTraffic], missed: u64) -> u64 {
    if missed > 0 {
        let middle = sent.get(sent.len() / 2).map_or(0, |sent| sent.bytes);
        threshold.saturating_mul(2).max(middle)
    } else if sent.len() < FEW {
        (threshold / 2).max(1)
    } else {
        threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::address_bytes;

    fn sent(last: u8, bytes: u64) -> FlowTraffic {
        let end = |last, port| SocketAddr::new([10, 0, 0, last].into(), port);
        FlowTraffic {
            flow: Flow { source: end(last, 7), destination: end(9, 80), protocol: 17 },
            bytes,
            packets: 1,
        }
    }

    #[test]
    fn entries_are_flows() {
        let address = |last: u8| address_bytes([10, 0, 0, last].into());
        let key = [&address(1)[..], &address(9), &[0, 7, 0, 80, 17, 0, 0, 0]].concat();
        let value = [600u64.to_le_bytes(), 1u64.to_le_bytes()].concat();
        let read = FlowTraffic::read(&(key.clone(), value)).unwrap();
        assert_eq!(read, sent(1, 600));
        assert_eq!(read.flow.to_string(), "10.0.0.1:7 > 10.0.0.9:80 udp");
        let key = read.flow.key();
        assert_eq!((key.source.as_deref(), key.source_port.as_deref()), (Some("10.0.0.1"), Some("7")));
        let ping = Flow { protocol: 1, ..read.flow };
        assert_eq!((ping.to_string(), ping.key().source_port), ("10.0.0.1 > 10.0.0.9 icmp".into(), None));
        let without = |end: SocketAddr| SocketAddr::new(end.ip(), 0);
        let fragments = Flow {
            source: without(read.flow.source),
            destination: without(read.flow.destination),
            ..read.flow
        };
        let key = fragments.key();
        assert_eq!(fragments.to_string(), "10.0.0.1 > 10.0.0.9 udp");
        assert_eq!(
            (key.source_port, key.destination_port, key.protocol.as_deref()),
            (None, None, Some("17"))
        );
    }

    #[test]
    fn the_threshold_follows_what_the_table_has_room_for() {
        let many: Vec<FlowTraffic> = (0..200).map(|n| sent(n, 1000 - u64::from(n))).collect();
        for (threshold, flows, missed, next) in
            [(1, 200, 5, 900), (800, 200, 5, 1600), (800, 200, 0, 800), (800, 63, 0, 400), (1, 0, 0, 1)]
        {
            assert_eq!(
                next_threshold(threshold, &many[..flows], missed),
                next,
                "{threshold} {flows} {missed}"
            );
        }
    }

    #[test]
    fn a_policer_begins_with_a_full_bucket() {
        let limit = Limit { rate: 3, burst: 100, above: 24 };
        let numbers: Vec<u64> =
            limit.state().as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let tokens = 100_000_000_000;
        assert_eq!(numbers, [3, tokens, 33_333_333_334, tokens, 0, 0]);
    }
}
