//! `longwire nesp`

use crate::key_args::KeyArgs;
use crate::{Json, Outcome, outcome};
use anyhow::{Context, anyhow, bail, ensure};
use longwire_nesp::text::{changes, object, setting, setting_name};
use longwire_nesp::{Item, Items, Key, Operation, PORT};
use longwire_report::shown::columns;
use longwire_report::{Report, Row, cells};
use longwire_run::nesp_client::NespClient;
use longwire_rundir::read_key_file;
use longwire_units::Nanos;
use serde_json::Map;
use std::iter::once;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

/// Read and change the settings of an emulator by frames, from a host that is attached to one of its ports
///
/// The instance must allow it: see the section `nesp` of scenarios. Over Ethernet (--interface) it needs the
/// privilege to send raw frames, which root of a test host has; over UDP (--udp) it needs none.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire nesp key nesp.key
  longwire nesp list --interface eth0 --key-file nesp.key
  longwire nesp get up.forward --interface eth0 --key-file nesp.key
  longwire nesp set up.forward rate=5mbit delay=40ms --udp 10.0.0.254 --key-file nesp.key
  longwire nesp set up.forward rate=0 --at 30s --interface eth0 --key-file nesp.key
  longwire nesp apply changes.txt --interface eth0 --key-file nesp.key")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make a key file that only its owner can read
    #[command(after_long_help = "\
Examples:
  longwire nesp key nesp.key")]
    Key(KeyArgs),
    /// List objects (links, sources, media, routers, flows, forwarders, ports), with their settings if asked
    #[command(after_long_help = "\
Examples:
  longwire nesp list --interface eth0 --key-file nesp.key
  longwire nesp list --settings --udp 10.0.0.254 --key-file nesp.key --json")]
    List {
        /// Show every setting of each.
        #[arg(long)]
        settings: bool,

        #[command(flatten)]
        reach: Reach,
    },
    /// Show settings of an object
    #[command(after_long_help = "\
Examples:
  longwire nesp get up.forward --interface eth0 --key-file nesp.key
  longwire nesp get source:video rate --interface eth0 --key-file nesp.key
  longwire nesp get router:west --udp fd00::fe --key-file nesp.key")]
    Get {
        /// The link, or KIND:NAME: source, medium, router, port; flow:ROUTER/FLOW, forwarder:ROUTER/NAME.
        object: String,

        /// The settings to show. Default: all.
        settings: Vec<String>,

        #[command(flatten)]
        reach: Reach,
    },
    /// Change an object: all that is named, or nothing
    #[command(after_long_help = "\
Examples:
  longwire nesp set up.forward rate=5mbit delay=40ms --interface eth0 --key-file nesp.key
  longwire nesp set up.forward rate=0 --at 30s --interface eth0 --key-file nesp.key
  longwire nesp set medium:cell rate=2mbit --udp 10.0.0.254 --key-file nesp.key
  longwire nesp set router:west 'route.10.8.0.0/16=via 10.0.2.9' --interface eth0 --key-file nesp.key
  longwire nesp set flow:west/voice weight=4 --interface eth0 --key-file nesp.key
  longwire nesp set forwarder:west/seen program=syn-monitor key.protocol=tcp --interface eth0 --key-file \
  nesp.key
  longwire nesp set forwarder:west/seen program=none --interface eth0 --key-file nesp.key")]
    Set {
        /// The link, or KIND:NAME: source, medium, router, port; flow:ROUTER/FLOW, forwarder:ROUTER/NAME.
        object: String,

        /// What to change: settings and their values.
        #[arg(required = true, value_name = "KEY=VALUE")]
        settings: Vec<String>,

        #[command(flatten)]
        change: ChangeArgs,
    },
    /// Make the changes in a file at one instant: all of them, or none
    ///
    /// Each line has an object and its changes, in the syntax of nesp set; # begins a comment.
    #[command(after_long_help = "\
Examples:
  longwire nesp apply changes.txt --interface eth0 --key-file nesp.key
  longwire nesp apply - --at 1min --udp 10.0.0.254 --key-file nesp.key")]
    Apply {
        /// The file; - for standard input.
        file: PathBuf,

        #[command(flatten)]
        change: ChangeArgs,
    },
}

/// When and where to make changes.
#[derive(Debug, clap::Args)]
struct ChangeArgs {
    /// Time of the changes, from the start of the run. Default: at once.
    #[arg(long, value_name = "TIME")]
    at: Option<Nanos>,

    #[command(flatten)]
    reach: Reach,
}

/// How to reach the emulator.
#[derive(Debug, clap::Args)]
struct Reach {
    /// Send Ethernet frames by this interface.
    #[arg(long, value_name = "IF", required_unless_present = "udp", conflicts_with = "udp")]
    interface: Option<String>,

    /// Send UDP datagrams to this address, with or without a port (default 8805).
    #[arg(long, value_name = "ADDRESS", value_parser = udp_address)]
    udp: Option<SocketAddr>,

    /// The file with the shared key.
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,

    /// Time limit for an answer, retransmissions included.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    timeout: Nanos,

    #[command(flatten)]
    json: Json,
}

fn udp_address(text: &str) -> Result<SocketAddr, String> {
    let with_port = text.parse().or_else(|_| text.parse().map(|ip: IpAddr| SocketAddr::new(ip, PORT)));
    with_port.map_err(|_| "write an address, such as 10.0.0.254, fd00::fe or 10.0.0.254:8805".into())
}

impl Args {
    /// Runs the command.
    ///
    /// # Errors
    /// If no emulator answers, it refuses, or a file can't be used.
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self.action {
            Action::Key(args) => args.make("nesp key"),
            Action::List { settings, reach } => {
                let mut exchange = reach.begin()?;
                let all = if settings { exchange.settings()? } else { exchange.all(Operation::List, &[])? };
                show("nesp list", &all, reach.json)
            }
            Action::Get { object: name, settings, reach } => {
                let names = settings.iter().map(|name| setting_name(name));
                let items = once(object(&name)).chain(names).collect::<Result<Vec<_>, _>>()?;
                show("nesp get", &reach.begin()?.all(Operation::Get, &items)?, reach.json)
            }
            Action::Set { object: name, settings, change } => {
                let settings = settings.iter().map(|text| setting(text));
                change.make("nesp set", once(object(&name)).chain(settings).collect::<Result<_, _>>()?)
            }
            Action::Apply { file, change } => change.make("nesp apply", read_changes(&file)?),
        }
    }
}

/// Reads the changes of a file.
fn read_changes(file: &Path) -> anyhow::Result<Items<'static>> {
    let is_input = file == Path::new("-");
    let text = if is_input { io::read_to_string(io::stdin()) } else { fs::read_to_string(file) };
    let file = file.display();
    let text = text.with_context(|| format!("can't read {file}"))?;
    let items = changes(&text).map_err(|error| anyhow!("{file}, {error}"))?;
    ensure!(!items.is_empty(), "{file} has no changes");
    Ok(items)
}

impl Reach {
    /// Opens a session.
    fn begin(&self) -> anyhow::Result<NespClient> {
        let text = read_key_file(&self.key_file).map_err(anyhow::Error::msg)?;
        let patience = Duration::from_nanos(self.timeout.0);
        match (&self.interface, self.udp) {
            (Some(interface), _) => NespClient::by_ethernet(interface, Key::read(&text)?, patience),
            (None, Some(address)) => NespClient::by_udp(address, Key::read(&text)?, patience),
            (None, None) => bail!("name --interface or --udp"),
        }
    }
}

impl ChangeArgs {
    fn make(&self, command: &str, items: Items<'static>) -> anyhow::Result<Outcome> {
        ensure!(self.at != Some(Nanos::ZERO), "--at 0 is past: leave it out to make the change at once");
        let mut exchange = self.reach.begin()?;
        let answer = exchange.ask(Operation::Set, self.at.map_or(0, |at| at.0), items)?;
        let time = Nanos(answer.time);
        if self.reach.json.on {
            return outcome::print_report(&Report::new(command).with("time_ns", time.0), true);
        }
        let what = if self.at.is_some() { "will be made" } else { "made" };
        outcome::print(&format!("{what} at {time} of the run"))
    }
}

/// Prints objects and their settings.
fn show(command: &str, items: &Items<'_>, json: Json) -> anyhow::Result<Outcome> {
    if json.on {
        let mut report = Report::new(command);
        for item in items {
            match item {
                Item::Object(kind, name) => {
                    let row = Row::new(&**name, "").extra("kind", kind.word());
                    report.push(row.extra("settings", Map::new()));
                }
                Item::Setting(name, value) => {
                    let settings = report.rows.last_mut().and_then(|row| row.extra.get_mut("settings"));
                    settings.into_iter().for_each(|settings| settings[&**name] = (&**value).into());
                }
                _ => {}
            }
        }
        return outcome::print_report(&report, true);
    }
    let cells = |item: &Item<'_>| match item {
        Item::Object(kind, name) => Some(cells![kind.word(), &**name, ""]),
        Item::Setting(name, value) => Some(cells!["", &**name, &**value]),
        _ => None,
    };
    let rows: Vec<Vec<String>> = items.iter().filter_map(cells).collect();
    outcome::print_with(|out| columns(&rows).iter().try_for_each(|line| writeln!(out, "{line}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_either_family_are_read() {
        for (text, wanted) in [
            ("10.0.0.254", "10.0.0.254:8805"),
            ("10.0.0.254:9", "10.0.0.254:9"),
            ("fd00::fe", "[fd00::fe]:8805"),
            ("[fd00::fe]:9", "[fd00::fe]:9"),
        ] {
            assert_eq!(udp_address(text).map(|address| address.to_string()), Ok(wanted.into()));
        }
        assert!(udp_address("nobody").is_err());
    }
}
