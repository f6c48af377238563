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
use std::str::FromStr;
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
    List(List),
    Stats(Stats),
    Get(Get),
    Set(Set),
    Add(add::Args),
    Remove(remove::Args),
    Diff(scenario::Diff),
    Apply(scenario::Apply),
    Save(scenario::Save),
    Route(route::Args),
    Weigh(weigh::Args),
    Stop(Stop),
}

/// List what is running
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire ctl list
  longwire ctl list --json")]
struct List {
    #[command(flatten)]
    json: Json,
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

/// Show an object's settings and counters: a link, a source, a medium, a router, a flow, a forwarder or a
/// port
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire ctl get up
  longwire ctl get up.forward --json
  longwire ctl get video
  longwire ctl get r1/voice
  longwire ctl get a --kind port")]
struct Get {
    #[command(flatten)]
    object: ObjectArgs,

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
    #[arg(required = true, value_name = "KEY=VALUE")]
    settings: Vec<Setting>,

    /// Change the values step by step, over this time.
    #[arg(long, value_name = "TIME", alias = "over")]
    ramp: Option<String>,

    /// Time between steps. Default: 100 ms, or a fiftieth of the ramp if that is less.
    #[arg(long, value_name = "TIME", requires = "ramp")]
    step: Option<String>,

    #[command(flatten)]
    json: Json,
}

/// End an instance, as Ctrl-C does
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire ctl stop
  longwire ctl stop two-hosts")]
struct Stop {
    #[command(flatten)]
    instance: InstanceName,

    #[command(flatten)]
    json: Json,
}

/// A kind by its word.
fn kind(text: &str) -> Result<Kind, String> {
    let words = || Kind::ALL.map(Kind::word).join(", ");
    Kind::ALL.into_iter().find(|kind| kind.word() == text).ok_or_else(|| format!("there are {}", words()))
}

/// A setting and its value: `rate=5mbit`.
#[derive(Debug, Clone)]
struct Setting(String, String);

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            // A filter without rules is allowed.
            Some((key, value)) if !key.trim().is_empty() => Ok(Self(key.trim().into(), value.trim().into())),
            _ => Err("write KEY=VALUE, such as rate=5mbit".into()),
        }
    }
}

impl Args {
    /// Runs the command.
    ///
    /// # Errors
    /// If no instance is selected, or it refuses or does not answer.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let at = &self.at;
        match self.action {
            Action::List(args) => list(&args, at),
            Action::Stats(args) => stats(&args, at),
            Action::Get(args) => get(&args, at),
            Action::Set(args) => set(&args, at),
            Action::Add(args) => args.run(at),
            Action::Remove(args) => args.run(at),
            Action::Diff(args) => args.run(at),
            Action::Apply(args) => args.run(at),
            Action::Save(args) => args.run(at),
            Action::Route(args) => args.run(at),
            Action::Weigh(args) => args.run(at),
            Action::Stop(args) => stop(&args, at),
        }
    }
}

fn list(args: &List, at: &Elsewhere) -> anyhow::Result<Outcome> {
    if let Some(client) = at.remote()? {
        return list_remote(args, &client);
    }
    let mut report = Report::new("ctl list");
    let mut table = vec![cells!["instance", "process", "links", "version"]];
    for (found, info) in ask_all(longwire_control::list(&directory())?) {
        let socket = found.path.display().to_string();
        let (row, links, version) = match info {
            Some(info) => {
                let row = Row::new(info.name, "links")
                    .measured(info.links)
                    .extra("instance_version", &*info.version);
                (row, info.links.to_string(), info.version)
            }
            None => {
                let why = "it does not answer: it is stopped or busy";
                (
                    Row::new(&*found.name, "links").note(why),
                    "-".into(),
                    "does not answer (stopped or busy)".into(),
                )
            }
        };
        report.push(row.extra("pid", found.pid).extra("answers", links != "-").extra("socket", socket));
        table.push(vec![found.name, found.pid.to_string(), links, version]);
    }
    if args.json.on {
        return outcome::print_report(&report, true);
    }
    if report.rows.is_empty() {
        let place = directory();
        outcome::note(&format!(
            "nothing of yours is running (in {}); other users' instances, root's among them, are seen by \
             them only",
            place.display()
        ));
    } else {
        outcome::print(&columns(&table).join("\n"))?;
    }
    Ok(Outcome::Well)
}

/// Lists the instance elsewhere.
fn list_remote(args: &List, client: &Client) -> anyhow::Result<Outcome> {
    let info = client.instance()?;
    let mut report = Report::new("ctl list");
    let row = Row::new(&*info.name, "links").measured(info.links);
    let row = row.extra("instance_version", &*info.version).extra("pid", info.pid).extra("answers", true);
    report.push(row.extra("address", client.name()));
    if args.json.on {
        return outcome::print_report(&report, true);
    }
    let table = [
        cells!["instance", "process", "links", "version"],
        vec![info.name, info.pid.to_string(), info.links.to_string(), info.version],
    ];
    outcome::print(&columns(&table).join("\n"))?;
    Ok(Outcome::Well)
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
fn stop(args: &Stop, at: &Elsewhere) -> anyhow::Result<Outcome> {
    let client = at.connect(args.instance.get())?;
    let row = match client.found().map(labs::end_kept).transpose()?.flatten() {
        Some(ended) if args.json.on => ended.row(),
        Some(ended) => {
            print_ended(&ended)?;
            return Ok(Outcome::Well);
        }
        None => {
            client.stop()?;
            if let Some(found) = client.found() {
                await_end(&client, found)?;
            }
            let row = Row::new(client.name(), "").extra("kind", "instance");
            client.found().into_iter().fold(row, |row, found| row.extra("pid", found.pid))
        }
    };
    let mut report = Report::new("ctl stop");
    report.push(row);
    outcome::print_if_json(&report, args.json)
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

fn stats(args: &Stats, at: &Elsewhere) -> anyhow::Result<Outcome> {
    let name = args.name.clone().filter(|name| is_pattern(name));
    let named = args.name.as_ref().filter(|name| !is_pattern(name));
    let instance = named.or(args.instance.as_ref());
    let Stats { kind, sort, limit, after, .. } = args;
    let filter =
        RowFilter { name, kind: kind.clone(), sort: sort.clone(), limit: *limit, after: after.clone() };
    let client = at.connect(instance.map(String::as_str)).map_err(|error| match named {
        Some(object) if matches!(error.downcast_ref(), Some(ClientError::NotRunning { .. })) => {
            anyhow!("{error}; for a link or another object: longwire ctl get {object}")
        }
        _ => error,
    });
    let mut report: Report = serde_json::from_value(client?.stats(&filter)?)?;
    if args.json.on {
        report.command = "ctl stats".into();
        outcome::print(&report.to_json())?;
        return Ok(Outcome::Well);
    }
    outcome::print_with(|out| report_text::write(&report, out))?;
    Ok(Outcome::Well)
}

fn get(args: &Get, at: &Elsewhere) -> anyhow::Result<Outcome> {
    let ObjectArgs { name, kind, instance } = &args.object;
    show("ctl get", &at.connect(instance.as_deref())?.object(*kind, name)?, args.json)
}

fn set(args: &Set, at: &Elsewhere) -> anyhow::Result<Outcome> {
    let ObjectArgs { name, kind, instance } = &args.object;
    let settings = args.settings.iter().map(|Setting(key, value)| (key.clone(), value.clone()));
    let ramp = args.ramp.clone().map(|time| ("ramp".into(), time));
    let step = args.step.clone().map(|time| ("ramp.step".into(), time));
    let changes: Vec<_> = settings.chain(ramp).chain(step).collect();
    show("ctl set", &at.connect(instance.as_deref())?.set(*kind, name, &changes)?, args.json)
}

/// Prints an object; both directions of a duplex link.
fn show(command: &str, object: &Object, json: Json) -> anyhow::Result<Outcome> {
    let mut report = Report::new(command);
    for one in object.each() {
        let settings: Vec<_> = one.settings.iter().map(|(key, text)| format!("{key}={text}")).collect();
        let row = Row::new(&*one.name, "").extra("kind", one.kind.word());
        let row = row.extra("settings", serde_json::to_value(&one.settings)?);
        let row = one.notes.iter().fold(row, |row, note| row.note(note));
        report.push(if one.stats.is_null() { row } else { row.extra("stats", one.stats.clone()) });
        if !json.on {
            outcome::print(&format!("{}: {}", one.name, settings.join(", ")))?;
            let kind = one.kind.word();
            one.notes
                .iter()
                .for_each(|note| outcome::note(&format!("note: {kind} \"{}\": {note}", one.name)));
        }
    }
    outcome::print_if_json(&report, json)
}
