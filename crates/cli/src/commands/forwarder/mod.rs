//! `longwire forwarder`

mod answers;
mod cost;
mod events;
mod levels;
mod list;
mod program_args;
mod replace;

use crate::commands::ctl::elsewhere::{Elsewhere, InstanceArgs};
use crate::{Outcome, outcome};
use answers::{named_row, program_row};
use longwire_control::{Entries, MapChange, NewState, ProgramRequest, TypeQuery};
use longwire_halves::FlowEnds;
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
    /// List a router's programs, their counters, and their worst-case cost per packet
    #[command(after_long_help = "\
Examples:
  longwire forwarder list r1
  longwire forwarder list r1 --json")]
    List(Target),
    Levels(levels::Args),
    /// Print a program's state
    #[command(after_long_help = "\
Examples:
  longwire forwarder get r1 1
  longwire forwarder get r1 1 --type limits
  longwire forwarder get r1 1 --json")]
    Get {
        #[command(flatten)]
        target: Target,

        /// The program's number.
        fid: u32,

        /// A type of its object, such as the name of a structure, whose fields are shown. Default:
        /// hexadecimal digits.
        #[arg(long = "type", value_name = "NAME")]
        kind: Option<String>,
    },
    /// Write all of a program's state, between two batches of packets
    #[command(after_long_help = "\
Examples:
  longwire forwarder set r1 1 '00000000'
  longwire forwarder set r1 1 '{\"limit\": 100}' --type limits")]
    Set {
        #[command(flatten)]
        target: Target,

        /// The program's number.
        fid: u32,

        /// The bytes; with --type, its fields as JSON. Omitted fields are 0.
        data: String,

        /// The type of its object, such as the name of a structure, that defines the fields.
        #[arg(long = "type", value_name = "NAME")]
        kind: Option<String>,
    },
    Events(events::Args),
    Replace(Box<replace::Args>),
    /// Renew the leases of programs that were installed with --lease
    #[command(after_long_help = "\
Examples:
  longwire forwarder install r1 syn-monitor --lease '30 s'
  longwire forwarder renew r1 1")]
    Renew {
        #[command(flatten)]
        target: Target,

        /// The programs' numbers.
        #[arg(required = true)]
        fids: Vec<u32>,
    },
    /// Remove a program while packets flow
    #[command(after_long_help = "\
Examples:
  longwire forwarder remove r1 1")]
    Remove {
        #[command(flatten)]
        target: Target,

        /// The program's number.
        fid: u32,
    },
    Map(Map),
}

/// The router of a command, and the format of its answer.
#[derive(Debug, clap::Args)]
struct Target {
    /// The router.
    router: String,

    #[command(flatten)]
    of: InstanceArgs,

    #[command(flatten)]
    at: Elsewhere,
}

impl Target {
    fn ask(&self, ask: &ProgramRequest) -> anyhow::Result<Value> {
        Ok(self.at.connect(self.of.instance.as_deref())?.forwarders(&self.router, ask)?)
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
            Action::List(target) => list::list(&target),
            Action::Levels(args) => args.run(),
            Action::Get { target, fid, kind } => {
                let answer = target.ask(&ProgramRequest::Get(fid, TypeQuery { kind }))?;
                if target.of.json.on {
                    return target.print_one("forwarder get", answer, program_row);
                }
                outcome::print(&shown(&answer["fields"], &answer["data"]))
            }
            Action::Set { target, fid, data, kind } => {
                target.ask(&ProgramRequest::Set(fid, NewState { data, kind }))?;
                target.done("forwarder set", &[fid])
            }
            Action::Events(args) => args.run(),
            Action::Replace(args) => args.run(),
            Action::Renew { target, fids } => {
                target.ask(&ProgramRequest::Renew(fids.clone()))?;
                target.done("forwarder renew", &fids)
            }
            Action::Remove { target, fid } => {
                target.ask(&ProgramRequest::Remove(fid))?;
                target.done("forwarder remove", &[fid])
            }
            Action::Map(args) => map(args),
        }
    }
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
    let installed = args.target.ask(&ProgramRequest::Install(sent(&written, args.lease)?))?;
    for odd in installed["notes"].as_array().into_iter().flatten() {
        outcome::note(&format!("note: {}", text(odd)));
    }
    if args.target.of.json.on {
        return args.target.print_one("forwarder install", installed, program_row);
    }
    outcome::print(&installed["fid"].to_string())
}

fn map(args: Map) -> anyhow::Result<Outcome> {
    let Map { target, fid, map, key, value, delete, clear, hex } = args;
    let write = |map, remove, write| ProgramRequest::Write(fid, map, MapChange { remove, write });
    let asked = match (map, key, value) {
        (None, ..) => ProgramRequest::Maps(fid),
        (Some(map), None, _) if clear => ProgramRequest::Clear(fid, map),
        (Some(map), Some(key), _) if delete => write(map, vec![key], Vec::new()),
        (Some(map), Some(key), Some(value)) => write(map, Vec::new(), vec![(key, value)]),
        (Some(map), key, _) => ProgramRequest::Map(fid, map, Entries { key, fields: !hex }),
    };
    let answer = target.ask(&asked)?;
    if target.of.json.on {
        // With a value it is about a single entry.
        let of_entry = |_: &str, entry| named_row(entry, "key");
        return match (answer.get("value"), answer.get("maps")) {
            (Some(_), _) => target.print_one("forwarder map", answer, of_entry),
            (None, Some(_)) => {
                target.print_list("forwarder map", answer, "maps", |_, map| named_row(map, "name"))
            }
            (None, None) => target.print_list("forwarder map", answer, "entries", of_entry),
        };
    }
    if answer["value"].is_string() {
        outcome::print(&shown(&answer["fields"]["value"], &answer["value"]))?;
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

/// Data by their fields; if the answer has none, as it writes them.
fn shown(fields: &Value, data: &Value) -> String {
    if fields.is_null() { text(data).to_owned() } else { fields.to_string() }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
