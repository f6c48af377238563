//! `longwire ctl`

mod add;
pub(super) mod elsewhere;
mod remove;
mod route;
mod scenario;
mod weigh;

use crate::commands::lab::print_ended;
use crate::{Json, Outcome, outcome};
pub(crate) use add::KINDS as ADDED_KINDS;
use anyhow::{anyhow, ensure};
use elsewhere::{Elsewhere, InstanceName};
use longwire_control::{
    Client, ClientError, Info, InstanceSocket, Kind, Object, RowFilter, directory, is_pattern,
};
use longwire_report::shown::columns;
use longwire_report::{Report, Row, cells};
use longwire_run::{labs, report_text};
use std::time::{Duration, Instant};

/// Time for an instance to identify itself: one that hangs is listed all the same.
const MOMENT: Duration = Duration::from_secs(2);
/// Time for an instance to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time after which it is said that an instance has not ended yet.
const NOTED: Duration = Duration::from_secs(1);
/// Time between two looks at an instance that ends.
const LOOK: Duration = Duration::from_millis(10);

/// Inspect a running instance, change its objects (links, sources, media, routers, flows, forwarders), end it
///
/// Instances of this user are found by their control sockets. A single one need not be named.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire ctl list
  longwire ctl stats
  longwire ctl get up.forward
  longwire ctl set up.forward rate=5mbit delay=40ms
  longwire ctl add link backup from=a to=b rate=1mbit
  longwire ctl remove backup
  longwire ctl diff net.toml
  longwire ctl apply net.toml
  longwire ctl save > now.toml
  longwire ctl route list r1
  longwire ctl weigh r1 voice 4
  longwire ctl stop two-hosts
  longwire ctl stats --remote https://lab:8399 --ca ca.pem --cert me.pem --key me.key")]
pub struct Args {
    #[command(subcommand)]
    action: Action,

    #[command(flatten)]
    at: Elsewhere,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List what is running
    #[command(after_long_help = "\
Examples:
  longwire ctl list
  longwire ctl list --json")]
    List(Json),
    Stats(Stats),
    /// Show an object's settings and counters: a link, a source, a medium, a router, a flow, a forwarder or a
    /// port
    #[command(after_long_help = "\
Examples:
  longwire ctl get up
  longwire ctl get up.forward --json
  longwire ctl get video
  longwire ctl get r1/voice
  longwire ctl get a --kind port")]
    Get {
        #[command(flatten)]
        object: ObjectArgs,

        #[command(flatten)]
        json: Json,
    },
    Set(Set),
    Add(add::Args),
    Remove(remove::Args),
    /// Show how the running scenario differs from a file; exit status 1 if it does
    ///
    /// Relative file names in the file are relative to the folder of the running scenario. Settings that
    /// events ([[at]]) have changed meanwhile are left out.
    #[command(after_long_help = "\
Examples:
  longwire ctl diff net.toml
  longwire ctl diff net.toml two-hosts --json")]
    Diff(scenario::ScenarioArgs),
    Apply(scenario::Apply),
    Save(scenario::Save),
    Route(route::Args),
    Weigh(weigh::Args),
    /// End an instance, as Ctrl-C does
    #[command(after_long_help = "\
Examples:
  longwire ctl stop
  longwire ctl stop two-hosts")]
    Stop {
        #[command(flatten)]
        instance: InstanceName,

        #[command(flatten)]
        json: Json,
    },
}

/// Show the counters of an instance: links, ports, fidelity
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire ctl stats
  longwire ctl stats two-hosts --json
  longwire ctl stats 'dsl*' --kind link --sort drops --limit 20
  longwire ctl stats 'dsl*' --sort drops --limit 20 --after link/dsl17.forward")]
struct Stats {
    /// The instance, by name, process number or both (name-number); with a * or ? the objects to show, as in
    /// 'dsl*'.
    name: Option<String>,

    /// The instance, if the first argument selects objects.
    #[arg(long, value_name = "INSTANCE")]
    instance: Option<String>,

    /// Show objects of one kind: link, port, source, router, …
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,

    /// Show the highest first: drops, in_packets, queued_bytes, or another field of the JSON.
    #[arg(long, value_name = "FIELD")]
    sort: Option<String>,

    /// Show at most this many.
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,

    /// Begin after this object, the last one that was shown: KIND/NAME, or NAME if only one kind has it.
    #[arg(long, value_name = "NAME")]
    after: Option<String>,

    #[command(flatten)]
    json: Json,
}

/// Selects the object.
#[derive(Debug, clap::Args)]
struct ObjectArgs {
    /// The object. A flow is ROUTER/FLOW, a forwarder ROUTER/NAME; a duplex link means both of its
    /// directions, and a pattern such as 'dsl*' or 'dsl?' all matching links, sources or media.
    name: String,

    /// Its kind, if several objects have this name. Default: the first of link, source, medium, router, flow,
    /// forwarder, port.
    #[arg(long, value_parser = kind)]
    kind: Option<Kind>,

    /// The instance, by name, process number or both (name-number).
    #[arg(long)]
    instance: Option<String>,
}

/// Change an object while it runs: a link, a source, a medium, a router's routes, a flow's weight, a
/// forwarder
///
/// All named settings change at one instant between two batches of packets, or none does; others are kept. A
/// duplex link's name means both of its directions.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire ctl set up.forward rate=5mbit delay=40ms
  longwire ctl set up loss=1% queue='50 ms'
  longwire ctl set 'dsl*' loss=1%
  longwire ctl set up rate=0 --instance two-hosts
  longwire ctl set up queue=codel
  longwire ctl set up queue.kind=red queue=200 max-p=5%
  longwire ctl set up filter=
  longwire ctl set up delay=200ms --ramp 5s
  longwire ctl set up rate=5mbit --ramp 10s --step 1s
  longwire ctl set video rate=8mbit
  longwire ctl set video model=poisson
  longwire ctl set video state=down
  longwire ctl set video to=b packets=unlimited
  longwire ctl set cell rate=2mbit
  longwire ctl set r1 route.10.1.0.0/16='via 10.9.0.2'
  longwire ctl set r1/voice weight=4

longwire blocks lists the settings; those of a source are model, what the kinds of background take, \
interval, to, destination, packets, for and state; those of a medium are what its kind takes. Values are \
written as in a scenario.")]
struct Set {
    #[command(flatten)]
    object: ObjectArgs,

    /// A setting and its new value.
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,

    /// Change the values step by step, over this time.
    #[arg(long, value_name = "TIME", alias = "over")]
    ramp: Option<String>,

    /// Time between steps. Default: 100 ms, or a fiftieth of the ramp if that is less.
    #[arg(long, value_name = "TIME", requires = "ramp")]
    step: Option<String>,

    #[command(flatten)]
    json: Json,
}

/// A kind by its word.
fn kind(text: &str) -> Result<Kind, String> {
    let words = || Kind::ALL.map(Kind::word).join(", ");
    Kind::ALL.into_iter().find(|kind| kind.word() == text).ok_or_else(|| format!("there are {}", words()))
}

/// Parses a setting and its value: `rate=5mbit`. A filter without rules is allowed.
fn setting(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
    let pair = pair.filter(|(key, _)| !key.is_empty());
    let (key, value) = pair.ok_or("write KEY=VALUE, such as rate=5mbit")?;
    Ok((key.into(), value.into()))
}

impl Args {
    /// Runs the command.
    ///
    /// # Errors
    /// If no instance is selected, or it refuses or does not answer.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let at = &self.at;
        match self.action {
            Action::List(json) => list(json, at),
            Action::Stats(args) => stats(args, at),
            Action::Get { object, json } => {
                show("ctl get", &object.connect(at)?.object(object.kind, &object.name)?, json)
            }
            Action::Set(args) => set(args, at),
            Action::Add(args) => args.run(at),
            Action::Remove(args) => args.run(at),
            Action::Diff(args) => args.diff(at),
            Action::Apply(args) => args.run(at),
            Action::Save(args) => args.run(at),
            Action::Route(args) => args.run(at),
            Action::Weigh(args) => args.run(at),
            Action::Stop { instance, json } => stop(&instance, json, at),
        }
    }
}

fn list(json: Json, at: &Elsewhere) -> anyhow::Result<Outcome> {
    let found: Vec<_> = match at.remote()? {
        Some(client) => {
            let info = client.instance()?;
            vec![listed(info.name.clone(), info.pid, Some(info), ("address", client.name()))]
        }
        None => ask_all(longwire_control::list(&directory())?)
            .into_iter()
            .map(|(found, info)| {
                let socket = found.path.display().to_string();
                listed(found.name, found.pid, info, ("socket", socket))
            })
            .collect(),
    };
    let (rows, lines): (Vec<Row>, Vec<Vec<String>>) = found.into_iter().unzip();
    if json.on {
        return outcome::print_report(&Report::new("ctl list").with_rows(rows), true);
    }
    if lines.is_empty() {
        let place = directory();
        outcome::note(&format!(
            "nothing of yours is running (in {}); other users' instances, root's among them, are seen by \
             them only",
            place.display()
        ));
        return Ok(Outcome::Well);
    }
    let head = cells!["instance", "process", "links", "version"];
    outcome::print(&columns(&[vec![head], lines].concat()).join("\n"))
}

/// The row and the line of an instance, which `info` identifies if it answers, and where it is reached.
fn listed(name: String, pid: u32, info: Option<Info>, (key, place): (&str, String)) -> (Row, Vec<String>) {
    let row = match &info {
        Some(Info { name, links, version, .. }) => {
            Row::new(&**name, "links").measured(*links).extra("instance_version", &**version)
        }
        None => Row::new(&*name, "links").note("it does not answer: it is stopped or busy"),
    };
    let row = row.extra("pid", pid).extra("answers", info.is_some()).extra(key, place);
    let [links, version] = match info {
        Some(info) => [info.links.to_string(), info.version],
        None => ["-".into(), "does not answer (stopped or busy)".into()],
    };
    (row, vec![name, pid.to_string(), links, version])
}

/// Queries all instances at once, so that a hanging one delays the answer only briefly. None for those that
/// have not answered by then; those that have ended meanwhile are left out.
fn ask_all(found: Vec<InstanceSocket>) -> Vec<(InstanceSocket, Option<Info>)> {
    // The outer none means an instance that has ended.
    let ask = |found: &InstanceSocket| -> Option<Option<Info>> {
        let client = Client::of(found.clone(), MOMENT).ok()?;
        let info = client.instance().ok();
        (info.is_some() || !client.has_ended()).then_some(info)
    };
    let answers: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = found.iter().map(|found| scope.spawn(move || ask(found))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    found.into_iter().zip(answers).filter_map(|(found, answer)| Some((found, answer?))).collect()
}

/// Ends an instance. The process that keeps a lab up has no terminal for its report, so it is printed here.
fn stop(instance: &InstanceName, json: Json, at: &Elsewhere) -> anyhow::Result<Outcome> {
    let client = at.connect(instance.get())?;
    let row = match client.found().map(labs::end_kept).transpose()?.flatten() {
        Some(ended) if json.on => ended.row(),
        Some(ended) => return print_ended(&ended),
        None => {
            client.stop()?;
            if let Some(found) = client.found() {
                await_end(&client, found)?;
            }
            let row = Row::new(client.name(), "").extra("kind", "instance");
            client.found().into_iter().fold(row, |row, found| row.extra("pid", found.pid))
        }
    };
    outcome::print_if_json(&Report::new("ctl stop").with_rows([row]), json)
}

/// Waits until an instance of this machine has ended and its hosts are gone: the next one may have its name.
fn await_end(client: &Client, found: &InstanceSocket) -> anyhow::Result<()> {
    let asked = Instant::now();
    let mut is_noted = false;
    while !client.has_ended() || labs::has_hosts(found)? {
        ensure!(asked.elapsed() < PATIENCE, "{} is still ending after {} s", found.name, PATIENCE.as_secs());
        if !is_noted && asked.elapsed() >= NOTED {
            outcome::note(&format!("{} is ending …", found.name));
            is_noted = true;
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn stats(args: Stats, at: &Elsewhere) -> anyhow::Result<Outcome> {
    let Stats { name, instance, kind, sort, limit, after, json } = args;
    let (name, named) = match name {
        Some(pattern) if is_pattern(&pattern) => (Some(pattern), None),
        named => (None, named),
    };
    let client = at.connect(named.as_deref().or(instance.as_deref())).map_err(|error| match &named {
        Some(object) if matches!(error.downcast_ref(), Some(ClientError::NotRunning { .. })) => {
            anyhow!("{error}; for a link or another object: longwire ctl get {object}")
        }
        _ => error,
    });
    let filter = RowFilter { name, kind, sort, limit, after };
    let mut report: Report = serde_json::from_value(client?.stats(&filter)?)?;
    if json.on {
        report.command = "ctl stats".into();
        return outcome::print(&report.to_json());
    }
    outcome::print_with(|out| report_text::write(&report, out))
}

fn set(args: Set, at: &Elsewhere) -> anyhow::Result<Outcome> {
    let Set { object, mut settings, ramp, step, json } = args;
    settings.extend(ramp.map(|time| ("ramp".to_owned(), time)));
    settings.extend(step.map(|time| ("ramp.step".to_owned(), time)));
    show("ctl set", &object.connect(at)?.set(object.kind, &object.name, &settings)?, json)
}

impl ObjectArgs {
    fn connect(&self, at: &Elsewhere) -> anyhow::Result<Client> {
        at.connect(self.instance.as_deref())
    }
}

/// Prints an object; both directions of a duplex link.
fn show(command: &str, object: &Object, json: Json) -> anyhow::Result<Outcome> {
    let mut report = Report::new(command);
    for one in object.each() {
        let settings: Vec<_> = one.settings.iter().map(|(key, text)| format!("{key}={text}")).collect();
        let kind = one.kind.word();
        let row = Row::new(&*one.name, "").extra("kind", kind);
        let row = row.extra("settings", serde_json::to_value(&one.settings)?);
        let row = one.notes.iter().fold(row, |row, note| row.note(note));
        report.push(if one.stats.is_null() { row } else { row.extra("stats", one.stats.clone()) });
        if !json.on {
            outcome::print(&format!("{}: {}", one.name, settings.join(", ")))?;
            let notes = one.notes.iter();
            notes.for_each(|note| outcome::note(&format!("note: {kind} \"{}\": {note}", one.name)));
        }
    }
    outcome::print_if_json(&report, json)
}
