//! `longwire traffic receive`

use crate::stop_flag::stop_flag;
use crate::{Json, Outcome, outcome};
use longwire_lab::traffic::{DEFAULT_PORT, Recording, Server, Session};
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

    fn tell(&self, session: &Session) -> anyhow::Result<Outcome> {
        if self.json.on {
            return outcome::print(&serde_json::to_string(&session.report())?);
        }
        outcome::print(&format!("{}: {}", session.peer, session.summary()))
    }
}
