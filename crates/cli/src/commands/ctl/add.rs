//! `longwire ctl add`

use super::elsewhere::{Elsewhere, InstanceArgs};
use super::scenario::{in_file, rows};
use crate::{Outcome, outcome};
use anyhow::ensure;
use longwire_control::{ClientError, RewireRequest, RewiredObject, section};
use longwire_report::Report;
use longwire_scenario::read_text;
use std::path::PathBuf;

/// What can be added.
pub(crate) const KINDS: [&str; 6] = ["link", "host", "port", "bridge", "router", "source"];

/// Add a link, host, port, bridge, router or traffic source while it runs, or all that a file has
///
/// What is added is checked as a part of the scenario that runs, and begins at one instant. Packets of other
/// links are not disturbed. Keys are those of the section in a scenario; with --link, keys that begin with
/// link. are those of the link.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire ctl add link backup from=a to=b rate=1mbit delay=80ms
  longwire ctl add link c between=a,b profile=dsl
  longwire ctl add link r from=a to=b queue.kind=red queue.limit=200
  longwire ctl add host c address=10.0.0.3/24
  longwire ctl add host c address=10.0.0.3/24 --link a link.delay=5ms
  longwire ctl add port vm driver=tap interface=lw-vm0 --link a
  longwire ctl add router r 'ports=[{ port = \"lan\", bridge = \"x\", addresses = \"10.0.0.1/24\" }]'
  longwire ctl add source video from=a to=b rate=2mbit for=10s
  longwire ctl add -f more.toml")]
pub struct Args {
    /// What it is.
    #[arg(value_name = "KIND", value_parser = KINDS, required_unless_present = "file")]
    kind: Option<String>,

    /// Its name.
    #[arg(required_unless_present = "file")]
    name: Option<String>,

    /// A key of its section and the value.
    #[arg(value_name = "KEY=VALUE", value_parser = super::setting)]
    settings: Vec<(String, String)>,

    /// With a host, port or bridge: a duplex link between it and this one, named NAME-PEER.
    #[arg(long, value_name = "PEER", conflicts_with = "file")]
    link: Option<String>,

    /// Add the sections of this file; - is standard input.
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["kind", "name", "settings"])]
    file: Option<PathBuf>,

    #[command(flatten)]
    of: InstanceArgs,
}

impl Args {
    /// Adds it.
    ///
    /// # Errors
    /// If the instance refuses or does not answer, or the file can't be read.
    pub fn run(self, at: &Elsewhere) -> anyhow::Result<Outcome> {
        let add = match (&self.file, &self.kind, &self.name) {
            (Some(file), ..) => read_text(file)?,
            (None, Some(kind), Some(name)) => self.sections(kind, name)?,
            // The parser of arguments sees to it.
            _ => return Err(anyhow::anyhow!("say what to add: a link, say, or -f FILE")),
        };
        ensure!(!add.trim().is_empty(), "the file is empty: there is nothing to add");
        let ask = RewireRequest { add, ..RewireRequest::default() };
        rewire(at, &self.of, &ask, |error| match &self.file {
            Some(file) => in_file(error, file, &ask.add),
            None => error.into(),
        })
    }

    /// The sections described by the arguments.
    fn sections(&self, kind: &str, name: &str) -> anyhow::Result<String> {
        let given = self.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let own = |key: &str| self.link.is_none() || !key.starts_with("link.");
        let pairs: Vec<_> =
            [("name", name)].into_iter().chain(given.clone().filter(|(key, _)| own(key))).collect();
        let Some(peer) = &self.link else { return Ok(section(kind, &pairs)) };
        ensure!(
            !["link", "router", "source"].contains(&kind),
            "--link joins a host, port or bridge; a link has from and to, or between, a source from and to, \
             and a router's ports are joined by links of their own: add both with -f FILE"
        );
        let (called, between) = (format!("{name}-{peer}"), format!("{name},{peer}"));
        let ends = [("name", called.as_str()), ("between", between.as_str())];
        let of_link = given.filter_map(|(key, value)| Some((key.strip_prefix("link.")?, value)));
        let link: Vec<_> = ends.into_iter().chain(of_link).collect();
        Ok(format!("{}\n{}", section(kind, &pairs), section("link", &link)))
    }
}

/// Adds or removes objects, and reports on them; the instance's error is as `explain` says it.
pub(super) fn rewire(
    at: &Elsewhere,
    of: &InstanceArgs,
    ask: &RewireRequest,
    explain: impl FnOnce(ClientError) -> anyhow::Error,
) -> anyhow::Result<Outcome> {
    let (verb, participle) = if ask.remove.is_empty() { ("add", "added") } else { ("remove", "removed") };
    let done = at.connect(of.instance.as_deref())?.rewire(ask).map_err(|error| {
        // Without an answer nobody knows, and what could not be saved was changed.
        let is_refusal = matches!(&error, ClientError::Refused(problem) if problem.status < 500);
        let error = explain(error);
        if is_refusal { error.context(format!("nothing was {participle}")) } else { error }
    })?;
    let mut report = Report::new(format!("ctl {verb}"));
    for (row, RewiredObject { kind, name }, what) in rows(&done.removed, &done.added) {
        report.push(row);
        if !of.json.on {
            outcome::print(&format!("{what} {kind} {name}"))?;
        }
    }
    outcome::print_if_json(&report, of.json)
}
