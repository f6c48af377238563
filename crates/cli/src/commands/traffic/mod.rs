//! `longwire traffic`

mod receive;
mod send;

use crate::Outcome;
use clap::Subcommand;

/// Measure a path, between hosts of a lab or between real machines
///
/// One side receives, the other sends and prints what both measured: loss, one-way delay, jitter and order of
/// UDP at a set rate, goodput of TCP, latency of requests, round trips of pings. Pings need no receiver.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire traffic receive                              on one side, then on the other:
  longwire traffic send udp 192.0.2.7 --rate 5mbit --for 10s
  longwire traffic send tcp 192.0.2.7 --parallel 4 --congestion cubic
  longwire traffic send request 192.0.2.7 --response 10kB --count 1000
  longwire traffic send ping 192.0.2.7 --count 100 --json")]
pub struct Args {
    #[command(subcommand)]
    side: Side,
}

#[derive(Debug, Subcommand)]
enum Side {
    Receive(receive::Args),
    Send(send::Args),
}

impl Args {
    /// Receives or sends.
    ///
    /// # Errors
    /// If a parameter is out of range, or the other side can't be reached, refuses or stops answering.
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self.side {
            Side::Receive(args) => args.run(),
            Side::Send(args) => args.run(),
        }
    }
}
