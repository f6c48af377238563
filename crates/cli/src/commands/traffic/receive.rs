//! `longwire traffic receive`

use crate::stop_flag::stop_flag;
use crate::{Json, Outcome, outcome};
use longwire_lab::traffic::{DEFAULT_PORT, Outcome as Received, Recording, Server, Session};
use longwire_report::{Report, Row};
use longwire_units::counted;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// Receive from one sender after another, until interrupted
#[derive(Debug, clap::Args)]
#[command(mut_arg("json", |json| json.help("Print a line of JSON for each sender")))]
#[command(after_long_help = "\
Examples:
  longwire traffic receive
  longwire traffic receive --port 7000 --count 1
  longwire traffic receive --json >> received.jsonl
  longwire traffic receive --record received.pcap --count 1")]
pub struct Args {
    /// The address to listen on. Default: all addresses of this machine.
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,

    /// The TCP port to listen on; the system chooses the ports for packets.
    #[arg(long, default_value_t = DEFAULT_PORT)]
    port: u16,

    /// Record the packets of UDP senders as a capture, for "longwire distill".
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// End after this number of senders.
    #[arg(long, value_name = "SENDERS")]
    count: Option<u64>,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let server = self.listen()?;
        outcome::note(&format!("listening on {}; end with Ctrl-C", server.address()?));
        let stop = stop_flag()?;
        let mut recording = self.record.as_deref().map(Recording::create).transpose()?;
        let mut left = self.count.unwrap_or(u64::MAX);
        while left > 0 {
            let Some(session) = server.serve_one_recorded(&stop, recording.as_mut())? else { break };
            if let Some(recording) = &mut recording {
                recording.flush()?;
            }
            self.tell(&session)?;
            left -= 1;
        }
        Ok(Outcome::Well)
    }

    fn listen(&self) -> anyhow::Result<Server> {
        if let Some(address) = self.bind {
            return Ok(Server::bind(SocketAddr::new(address, self.port))?);
        }
        // A machine without IPv6 has only IPv4 addresses.
        let any: [IpAddr; 2] = [Ipv6Addr::UNSPECIFIED.into(), [0, 0, 0, 0].into()];
        let both = Server::bind(SocketAddr::new(any[0], self.port));
        Ok(both.or_else(|_| Server::bind(SocketAddr::new(any[1], self.port)))?)
    }

    fn tell(&self, session: &Session) -> anyhow::Result<()> {
        if self.json.on {
            return outcome::print(&serde_json::to_string(&report(session))?);
        }
        outcome::print(&format!("{}: {}", session.peer, in_words(session)))
    }
}

fn report(session: &Session) -> Report {
    let mut report = Report::new("traffic receive").with("peer", session.peer.to_string());
    match &session.outcome {
        Ok(Received::Udp(seen)) => {
            report.push(Row::new("received", "packets").measured(seen.received));
            report.push(Row::new("lost", "packets").measured(seen.lost));
            report.extend(
                seen.rate_bits_per_second.map(|rate| Row::new("received rate", "bit/s").measured(rate)),
            );
            report.extend(seen.delay_row());
        }
        Ok(Received::Bulk(seen)) => {
            report.push(Row::new("received", "bytes").measured(seen.bytes));
            report
                .extend(seen.goodput_bits_per_second.map(|rate| Row::new("goodput", "bit/s").measured(rate)));
        }
        Ok(Received::Requests(answered)) => report.push(Row::new("answered", "requests").measured(*answered)),
        Err(error) => report.fail(error.to_string()),
    }
    report
}

fn in_words(session: &Session) -> String {
    let rate = |rate: Option<f64>| match rate {
        Some(rate) => format!(", {:.3} Mbit/s", rate / 1e6),
        None => String::new(),
    };
    match &session.outcome {
        Ok(Received::Udp(seen)) => {
            let received = counted(seen.received, "packet");
            format!("UDP, {received}, {} lost{}", seen.lost, rate(seen.rate_bits_per_second))
        }
        Ok(Received::Bulk(seen)) => {
            format!("TCP, {}{}", counted(seen.bytes, "byte"), rate(seen.goodput_bits_per_second))
        }
        Ok(Received::Requests(answered)) => format!("{} answered", counted(*answered, "request")),
        Err(error) => format!("failed: {error}"),
    }
}
