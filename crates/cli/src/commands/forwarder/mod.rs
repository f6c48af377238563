//! `longwire forwarder`

mod answers;
mod cost;
mod events;
mod get;
mod levels;
mod list;
mod program_args;
mod replace;

use crate::commands::ctl::elsewhere::Elsewhere;
use crate::{Json, Outcome, outcome};
use answers::{about_one, done, named_row, report};
use longwire_control::{Entries, MapChange, NewForwarder, NewState, ProgramRequest};
use longwire_halves::FlowEnds;
use longwire_report::Report;
use longwire_scenario::{WrittenForwarder, WrittenKey};
use program_args::{ProgramArgs, sent};
use serde_json::Value;

/// Install programs on a running router, inspect and change them, and compute their cost
///
/// Programs are eBPF with XDP's calling convention: objects that clang -target bpf makes from C, and built-in
/// ones with the names ack-monitor, balancer, detector, dscp-marker, heavy-hitters, minimal-ip, nat44,
/// performance-monitor, policer, port-filter, rebind, syn-filter, syn-monitor, syn-targets, tcp-splicer,
/// tcp-splicer-scaled, tcp-splicer6, wavelet. Bytes are written as pairs of hexadecimal digits.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire forwarder cost syn-monitor
  longwire forwarder install r1 syn-monitor
  longwire forwarder list r1
  longwire forwarder get r1 1
  longwire forwarder set r1 1 '00000000'
  longwire forwarder replace r1 1 syn-monitor
  longwire forwarder remove r1 1
  longwire forwarder list r1 --remote https://lab:8399 --ca ca.pem --cert me.pem --key me.key")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Cost(cost::Args),
    Install(Box<Install>),
    List(List),
    Levels(levels::Args),
    Get(get::Args),
    Set(Set),
    Events(events::Args),
    Replace(Box<replace::Args>),
    Renew(Renew),
    Remove(Remove),
    Map(Map),
}

/// The router of a command, and the format of its answer.
#[derive(Debug, clap::Args)]
struct Target {
    /// The router.
    router: String,

    /// The instance, by name, process number or both (name-number).
    #[arg(long)]
    instance: Option<String>,

    #[command(flatten)]
    json: Json,

    #[command(flatten)]
    at: Elsewhere,
}

impl Target {
    fn ask(&self, ask: &ProgramRequest) -> anyhow::Result<Value> {
        Ok(self.at.connect(self.instance.as_deref())?.forwarders(&self.router, ask)?)
    }
}

/// Install a program while packets flow
///
/// It is verified and compiled first; the router's packets only wait for the change of a pointer. Prints the
/// program's number.
#[derive(Debug, clap::Args)]
#[command(mut_arg("json", |json| json.help("Print JSON: its number, how long it was verified and compiled, \
    and for how long the router's packets waited for the exchange")))]
#[command(after_long_help = "\
Examples:
  longwire forwarder install r1 syn-monitor
  longwire forwarder install r1 port-filter --data '0100 1700 00000000 00000000 00000000 00000000'
  longwire forwarder install r1 wavelet --destination 10.0.1.9 --destination-port 5000 --protocol udp
  longwire forwarder install r1 mine.o --function count --state '8 B' --constant limit=100
  longwire forwarder install r1 spread.o --map counts=64 --map cpus=4
  longwire forwarder install r1 ports.o --function redirect --exit stamp
  longwire forwarder install r1 --where slow-path --service echo --packets 10000 --cycles 1000 \
  --destination-port 7 --protocol udp
  longwire forwarder install r1 --where control --name monitor --packets 1000 --cycles 50000 \
  --destination-port 53")]
struct Install {
    #[command(flatten)]
    target: Target,

    /// A built-in program, or an object file. Packets that it passes go up, if --where says so; without a
    /// program, all packets with the key do.
    #[arg(required_unless_present = "level")]
    program: Option<String>,

    /// The level for its packets: data-path, slow-path (a service), control (another process).
    #[arg(long = "where", value_name = "LEVEL")]
    level: Option<String>,

    /// The service on the slow path.
    #[arg(long)]
    service: Option<String>,

    /// Guaranteed packets a second above.
    #[arg(long, value_name = "COUNT")]
    packets: Option<String>,

    /// Cycles for each of them.
    #[arg(long, value_name = "COUNT")]
    cycles: Option<String>,

    /// Its share of what is not guaranteed, relative to others. Default: 1.
    #[arg(long, value_name = "COUNT")]
    share: Option<String>,

    /// Send up only packets with this mark, set by an earlier program. Default: all.
    #[arg(long)]
    mark: Option<String>,

    /// Time limit for verdicts on packets that go up. Default: 20 ms.
    #[arg(long, value_name = "TIME")]
    within: Option<String>,

    /// Action for packets without a verdict in time, or without an attached process: pass, drop. Default:
    /// pass.
    #[arg(long, value_name = "WHAT")]
    otherwise: Option<String>,

    #[command(flatten)]
    chosen: ProgramArgs,

    /// Its name, by which a control process attaches. Default: the program's or the service's name.
    #[arg(long)]
    name: Option<String>,

    #[command(flatten)]
    ends: FlowEnds,

    /// Only packets of this protocol: tcp, udp, icmp, icmpv6, or a number.
    #[arg(long)]
    protocol: Option<String>,

    /// Size of its state. Default: as large as the program uses.
    #[arg(long, value_name = "SIZE")]
    state: Option<String>,

    /// Initial contents of its state. Default: zeros.
    #[arg(long, value_name = "HEX")]
    data: Option<String>,

    /// The output port of its packets, instead of the routes'.
    #[arg(long)]
    port: Option<String>,

    /// The gateway of its packets.
    #[arg(long, value_name = "ADDRESS")]
    via: Option<String>,

    /// The output queue of its packets, 0 to 254.
    #[arg(long)]
    queue: Option<String>,

    /// A link that the program may choose, numbered from 0 in this order. May be given several times.
    #[arg(long = "link", value_name = "LINK")]
    links: Vec<String>,

    /// Remove it after this time, unless it is renewed; 1 s to 1 h. Default: never.
    #[arg(long, value_name = "TIME")]
    lease: Option<String>,
}

/// Renew the leases of programs that were installed with --lease
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire forwarder install r1 syn-monitor --lease '30 s'
  longwire forwarder renew r1 1")]
struct Renew {
    #[command(flatten)]
    target: Target,

    /// The programs' numbers.
    #[arg(required = true)]
    fids: Vec<u32>,
}

/// List a router's programs, their counters, and their worst-case cost per packet
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire forwarder list r1
  longwire forwarder list r1 --json")]
struct List {
    #[command(flatten)]
    target: Target,
}

/// Write all of a program's state, between two batches of packets
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire forwarder set r1 1 '00000000'
  longwire forwarder set r1 1 '{\"limit\": 100}' --type limits")]
struct Set {
    #[command(flatten)]
    target: Target,

    /// The program's number.
    fid: u32,

    /// The bytes; with --type, its fields as JSON. Omitted fields are 0.
    data: String,

    /// The type of its object, such as the name of a structure, that defines the fields.
    #[arg(long = "type", value_name = "NAME")]
    kind: Option<String>,
}

/// Remove a program while packets flow
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire forwarder remove r1 1")]
struct Remove {
    #[command(flatten)]
    target: Target,

    /// The program's number.
    fid: u32,
}

/// List a program's maps, print or write their entries
///
/// Without a map, lists the maps; with one, its entries; with a key, its value; with a value, writes it; with
/// --delete, removes it; with --clear, all. Keys and values are shown by the fields of their types if the
/// object has those (BTF), else as hexadecimal digits. They may be written either way: as JSON, where omitted
/// fields are 0, or as exactly as many digits as there are bytes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire forwarder map r1 1
  longwire forwarder map r1 1 --json
  longwire forwarder map r1 1 top
  longwire forwarder map r1 1 protocols 6
  longwire forwarder map r1 1 top --hex
  longwire forwarder map r1 1 bindings '{\"address\": \"10.0.1.9\", \"port\": 5000, \"protocol\": 17}'
  longwire forwarder map r1 1 filters 00000000000000000000ffff0a000009 0000000000000000
  longwire forwarder map r1 1 filters 00000000000000000000ffff0a000009 --delete
  longwire forwarder map r1 1 filters --clear")]
struct Map {
    #[command(flatten)]
    target: Target,

    /// The program's number.
    fid: u32,

    /// The map.
    map: Option<String>,

    /// The entry's key.
    key: Option<String>,

    /// The value to write.
    value: Option<String>,

    /// Remove the entry with this key.
    #[arg(long, requires = "key", conflicts_with = "value")]
    delete: bool,

    /// Remove all entries of the map; set those of an array to zero.
    #[arg(long, requires = "map", conflicts_with = "key")]
    clear: bool,

    /// Print keys and values as hexadecimal digits.
    #[arg(long)]
    hex: bool,
}

impl Args {
    /// Runs the command.
    ///
    /// # Errors
    /// If the program is refused, no instance is selected, or it refuses or does not answer.
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self.action {
            Action::Cost(args) => args.run(),
            Action::Install(args) => install(*args),
            Action::List(args) => list::list(&args),
            Action::Levels(args) => args.run(),
            Action::Get(args) => args.run(),
            Action::Events(args) => args.run(),
            Action::Set(Set { target, fid, data, kind }) => {
                target.ask(&ProgramRequest::Set(fid, NewState { data, kind }))?;
                done("forwarder set", &target, &[fid])
            }
            Action::Replace(args) => args.run(),
            Action::Renew(Renew { target, fids }) => {
                target.ask(&ProgramRequest::Renew(fids.clone()))?;
                done("forwarder renew", &target, &fids)
            }
            Action::Remove(Remove { target, fid }) => {
                target.ask(&ProgramRequest::Remove(fid))?;
                done("forwarder remove", &target, &[fid])
            }
            Action::Map(args) => map(args),
        }
    }
}

/// Parses a constant and its value.
fn constant(text: &str) -> Result<(String, String), String> {
    assignment(text, "write NAME=VALUE, such as limit=100")
}

/// Parses a map and its number of entries.
fn entries(text: &str) -> Result<(String, String), String> {
    assignment(text, "write NAME=ENTRIES, such as counts=64")
}

/// Parses a name and what is assigned to it; `fix` says how to write both.
fn assignment(text: &str, fix: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or(fix)?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn install(args: Install) -> anyhow::Result<Outcome> {
    let key = args.ends.key(args.protocol);
    let written = WrittenForwarder {
        name: args.name,
        key: (key != WrittenKey::default()).then_some(key),
        state: args.state,
        data: args.data,
        port: args.port,
        via: args.via,
        queue: args.queue,
        links: args.links,
        level: args.level,
        service: args.service,
        packets: args.packets,
        cycles: args.cycles,
        share: args.share,
        mark: args.mark,
        within: args.within,
        otherwise: args.otherwise,
        ..args.chosen.of(args.program.unwrap_or_default())
    };
    let (forwarder, object) = sent(&written)?;
    let new = NewForwarder { forwarder, object, lease: args.lease };
    let installed = args.target.ask(&ProgramRequest::Install(new))?;
    for odd in installed["notes"].as_array().into_iter().flatten() {
        outcome::note(&format!("note: {}", text(odd)));
    }
    if args.target.json.on {
        return outcome::print_report(&about_one("forwarder install", &args.target.router, installed), true);
    }
    outcome::print(&installed["fid"].to_string())?;
    Ok(Outcome::Well)
}

fn map(args: Map) -> anyhow::Result<Outcome> {
    let fid = args.fid;
    let asked = match (args.map, args.key, args.value) {
        (None, ..) => ProgramRequest::Maps(fid),
        (Some(map), None, _) if args.clear => ProgramRequest::Clear(fid, map),
        (Some(map), Some(key), _) if args.delete => {
            ProgramRequest::Write(fid, map, MapChange { remove: vec![key], write: Vec::new() })
        }
        (Some(map), Some(key), Some(value)) => {
            ProgramRequest::Write(fid, map, MapChange { remove: Vec::new(), write: vec![(key, value)] })
        }
        (Some(map), key, _) => ProgramRequest::Map(fid, map, Entries { key, fields: !args.hex }),
    };
    let answer = args.target.ask(&asked)?;
    if args.target.json.on {
        let report = match answer.get("value") {
            // A single entry was requested.
            Some(_) => {
                let mut report = Report::new("forwarder map").with("router", &*args.target.router);
                report.extend(answer.as_object().cloned().map(|entry| named_row(entry, "key")));
                report
            }
            None if answer.get("maps").is_some() => {
                report("forwarder map", &args.target.router, answer, "maps", |map| named_row(map, "name"))
            }
            None => report("forwarder map", &args.target.router, answer, "entries", |entry| {
                named_row(entry, "key")
            }),
        };
        return outcome::print_report(&report, true);
    }
    if let Some(value) = answer["value"].as_str() {
        match &answer["fields"]["value"] {
            Value::Null => outcome::print(value)?,
            fields => outcome::print(&fields.to_string())?,
        }
    }
    let maps = answer["maps"].as_array().into_iter().flatten().map(|map| {
        if map["taken"].is_u64() {
            return ring(map);
        }
        format!(
            "{}: {}{}, {} of {} entries, keys of {} bytes, values of {}",
            text(&map["name"]),
            text(&map["kind"]),
            if map["constant"] == Value::Bool(true) { " of constants" } else { "" },
            map["entries"],
            map["max-entries"],
            map["key"],
            map["value"]
        )
    });
    let entries = answer["entries"].as_array().into_iter().flatten();
    let entries = entries.map(|entry| match &entry["fields"] {
        Value::Null => format!("{} {}", text(&entry["key"]), text(&entry["value"])),
        fields => format!("{} {}", fields["key"], fields["value"]),
    });
    for line in maps.chain(entries) {
        outcome::print(&line)?;
    }
    if answer["more"] == Value::Bool(true) {
        outcome::note("there are more; these are the first");
    }
    Ok(Outcome::Well)
}

/// A line about a ring.
fn ring(map: &Value) -> String {
    format!(
        "{}: {}, {} of {} bytes wait, {} records taken out, {} lost",
        text(&map["name"]),
        text(&map["kind"]),
        map["waiting"],
        map["bytes"],
        map["taken"],
        map["lost"]
    )
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
