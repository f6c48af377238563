//! Completion of arguments whose values only a run, a lab or a declaration knows.
//!
//! The shell asks this program, so that names are current. An argument is completed by its name on the
//! command line: new commands that use the same names need no code here.

use crate::commands::ctl::ADDED_KINDS;
use clap::{Arg, Command, ValueHint};
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use longwire_control::{Client, Kind, ObjectQuery, directory};
use longwire_import::Format;
use longwire_program::ShippedForwarder;
use longwire_run::objects::links::LinkKind;
use longwire_scenario::library::SHIPPED;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

/// The environment variable of a shell's request.
pub const VARIABLE: &str = "LONGWIRE_COMPLETE";
/// Time for an instance to answer while a person waits.
const PATIENCE: Duration = Duration::from_millis(300);
/// Most objects of a kind offered.
const MOST: usize = 1000;

/// Values of which some part is given.
type PartialValues = Box<dyn Fn(&str) -> Vec<String> + Send + Sync>;

/// Adds completion to the arguments of a command; `words` are those of the command line.
pub fn completing(command: Command, words: &[OsString]) -> Command {
    let name = command.get_name().to_owned();
    let within = |arg: Arg| {
        let id = arg.get_id().as_str();
        if let Some(values) = partial_values_of(&name, id, words) {
            return arg.add(ArgValueCompleter::new(move |given: &OsStr| {
                let Some(given) = given.to_str() else { return Vec::new() };
                candidates(values(given), given).collect()
            }));
        }
        match (values_of(&name, id), names_a_file(&arg)) {
            (Some(values), true) => arg.add(ArgValueCompleter::new(move |given: &OsStr| {
                let begun = given.to_str().map(|given| candidates(values(), given));
                begun.into_iter().flatten().chain(PathCompleter::any().complete(given)).collect()
            })),
            (Some(values), false) => {
                let all = move || values().into_iter().map(CompletionCandidate::new).collect();
                arg.add(ArgValueCandidates::new(all))
            }
            (None, true) => arg.value_hint(ValueHint::AnyPath),
            (None, false) => arg,
        }
    };
    command.mut_args(within).mut_subcommands(|command| completing(command, words))
}

/// The values that begin with what is given.
fn candidates(values: Vec<String>, given: &str) -> impl Iterator<Item = CompletionCandidate> {
    values.into_iter().filter(move |value| value.starts_with(given)).map(CompletionCandidate::new)
}

/// Whether an argument's value may be a file.
fn names_a_file(arg: &Arg) -> bool {
    let mut names = arg.get_value_names().into_iter().flatten();
    names.any(|name| name.starts_with("FILE") || name.ends_with("]FILE"))
        || ["program", "profile"].contains(&arg.get_id().as_str())
}

/// The possible values of a command's argument whose values depend on what is given of them, or on other
/// words of the command line.
fn partial_values_of(command: &str, argument: &str, words: &[OsString]) -> Option<PartialValues> {
    Some(match (command, argument) {
        ("add", "settings") => {
            let kind = added_kind(words)?;
            Box::new(move |_: &str| new_settings(kind))
        }
        ("exec" | "attach" | "proxy", "up" | "down") => Box::new(|given: &str| {
            let others = &given[..given.rfind(',').map_or(0, |comma| comma + 1)];
            settings().iter().map(|setting| format!("{others}{setting}")).collect()
        }),
        ("run", "settings") => {
            let words = words.to_vec();
            Box::new(move |given: &str| {
                // An object's name may have dots, too.
                let names: Vec<&str> = given.match_indices('.').map(|(dot, _)| &given[..=dot]).collect();
                if names.is_empty() {
                    return objects_of_scenario(&words);
                }
                let settings = settings();
                let all = names
                    .into_iter()
                    .flat_map(|name| settings.iter().map(move |setting| format!("{name}{setting}")));
                all.collect()
            })
        }
        _ => return None,
    })
}

/// The possible values of a command's argument.
fn values_of(command: &str, argument: &str) -> Option<fn() -> Vec<String>> {
    Some(match (command, argument) {
        ("get" | "set", "name" | "object") => objects,
        ("set", "settings") => settings,
        ("remove", "names") => removable,
        ("stats" | "top" | "stop" | "diff" | "apply" | "save", "name") | (_, "instance") => instances,
        (_, "router") => || of_kind(Kind::Router),
        ("weigh", "flow") => flows,
        ("show", "name") | (_, "profile") => {
            || SHIPPED.iter().map(|shipped| shipped.name.to_owned()).collect()
        }
        ("blocks", "key") => keys,
        (_, "program") => || ShippedForwarder::ALL.iter().map(|shipped| shipped.name.to_owned()).collect(),
        ("import", "format") => || Format::NAMES.map(str::to_owned).into(),
        (_, "lab") => || labs().into_iter().map(|(lab, _)| lab).collect(),
        ("exec", "host") => || labs().into_iter().flat_map(|(_, hosts)| hosts).collect(),
        ("attach", "netns") => namespaces,
        // It has its own.
        ("add", "kind") => return None,
        (_, "kind") => || Kind::ALL.map(|kind| kind.word().to_owned()).into(),
        _ => return None,
    })
}

/// The running instances; none if they can't be listed.
fn instances() -> Vec<String> {
    let found = longwire_control::list(&directory()).unwrap_or_default();
    found.into_iter().map(|found| found.name).collect()
}

fn clients() -> impl Iterator<Item = Client> {
    let found = longwire_control::list(&directory()).unwrap_or_default();
    found.into_iter().filter_map(|found| Client::of(found, PATIENCE).ok())
}

/// The names of the objects of a kind in all instances.
fn of_kind(kind: Kind) -> Vec<String> {
    let query = ObjectQuery { count: MOST, ..ObjectQuery::default() };
    let pages = clients().filter_map(|client| client.page(kind, &query).ok());
    pages.flat_map(|page| page.objects).map(|object| object.name).collect()
}

/// Links; a duplex link also by its own name.
fn with_duplex(mut names: Vec<String>) -> Vec<String> {
    let duplex: Vec<String> =
        names.iter().filter_map(|name| name.strip_suffix(".forward")).map(str::to_owned).collect();
    names.splice(..0, duplex);
    names
}

/// All objects.
fn objects() -> Vec<String> {
    let mut names = with_duplex(of_kind(Kind::Link));
    Kind::ALL.into_iter().filter(|&kind| kind != Kind::Link).for_each(|kind| names.extend(of_kind(kind)));
    names
}

/// What can be removed from all instances: a duplex link by its own name, and not by its directions.
fn removable() -> Vec<String> {
    let texts = clients().filter_map(|client| client.scenario().ok());
    texts.flat_map(|text| longwire_scenario::removable(&text)).take(MOST).collect()
}

/// Network namespaces with names, as `ip netns` makes them.
fn namespaces() -> Vec<String> {
    let folder = std::fs::read_dir("/run/netns");
    folder.into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Flows as ROUTER/FLOW.
fn flows() -> Vec<String> {
    let own = |name: String| name.split_once('/').map(|(_, flow)| flow.to_owned());
    of_kind(Kind::Flow).into_iter().filter_map(own).collect()
}

/// The settings of links, ready for a value.
fn settings() -> Vec<String> {
    LinkKind::known().into_iter().map(|setting| format!("{}=", setting.key)).collect()
}

/// What `ctl add` adds on a command line.
fn added_kind(words: &[OsString]) -> Option<&'static str> {
    let mut behind = words.iter().skip_while(|word| *word != "add").skip(1);
    behind.find_map(|word| ADDED_KINDS.into_iter().find(|kind| word == kind))
}

/// The keys of a new object's section, ready for a value. What running links do not have comes first.
fn new_settings(kind: &str) -> Vec<String> {
    let schema = longwire_scenario::schema();
    let section = schema["properties"][kind]["items"]["properties"].as_object();
    let keys = section.into_iter().flatten().map(|(key, _)| key.as_str()).filter(|key| *key != "name");
    let known = if kind == "link" { LinkKind::known() } else { Vec::new() };
    let (later, first): (Vec<&str>, Vec<&str>) =
        keys.partition(|key| known.iter().any(|setting| setting.key == *key));
    let of_blocks = known.iter().map(|setting| &*setting.key);
    let of_blocks = of_blocks.filter(|key| key.contains('.') && !key.starts_with("ramp"));
    first.into_iter().chain(later).chain(of_blocks).map(|key| format!("{key}=")).collect()
}

/// The objects of the scenario on a command line, ready for a setting.
fn objects_of_scenario(words: &[OsString]) -> Vec<String> {
    let is_toml = |file: &&Path| file.extension().is_some_and(|extension| extension == "toml");
    let mut files = words.iter().map(Path::new).filter(is_toml);
    let Some(plan) = files.find_map(|file| longwire_scenario::load(file).ok()) else { return Vec::new() };
    let mut names = with_duplex(plan.links.iter().map(|link| link.name.to_string()).collect());
    names.extend(plan.sources.iter().map(|source| source.name.to_string()));
    names.extend(plan.media.iter().map(|medium| medium.name.to_string()));
    names.into_iter().take(MOST).map(|name| name + ".").collect()
}

fn keys() -> Vec<String> {
    let mut keys: Vec<String> =
        longwire_link::registry().into_iter().map(|spec| spec.key.to_owned()).collect();
    keys.dedup();
    keys
}

/// The labs with their hosts.
fn labs() -> Vec<(String, Vec<String>)> {
    longwire_run::labs::names().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use clap_complete::engine::complete;

    fn offered(line: &str) -> Vec<String> {
        let words: Vec<OsString> = line.split(' ').map(Into::into).collect();
        let mut command = completing(crate::Cli::command(), &words);
        let last = words.len() - 1;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = complete(&mut command, words, last, Some(folder)).unwrap();
        found.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn settings_profiles_and_kinds_are_offered() {
        assert!(offered("longwire ctl set up ra").contains(&"rate=".into()));
        assert!(offered("longwire exec --profile l").contains(&"lte".into()));
        assert!(offered("longwire profiles show ad").contains(&"adsl".into()));
        assert_eq!(offered("longwire ctl get up --kind fl"), ["flow"]);
        assert_eq!(offered("longwire blocks jitt"), [""; 0]);
        assert_eq!(offered("longwire blocks del"), ["delay"]);
        assert!(offered("longwire ct").contains(&"ctl".into()));
        assert!(offered("longwire ctl add link b del").contains(&"delay=".into()));
        assert_eq!(offered("longwire forwarder cost nat"), ["nat44"]);
        assert_eq!(offered("longwire import cont"), ["containerlab"]);
    }

    #[test]
    fn what_can_be_added_is_offered_with_the_keys_of_its_section() {
        assert_eq!(offered("longwire ctl add h"), ["host"]);
        assert_eq!(offered("longwire ctl add fl"), [""; 0]);
        assert_eq!(offered("longwire ctl add link c betw"), ["between="]);
        let keys = offered("longwire ctl add link c from=a ");
        let place = |key: &str| keys.iter().position(|other| other == key);
        assert!(place("to=") < place("rate=") && place("to=").is_some(), "{keys:?}");
        assert!(place("queue.kind=").is_some() && place("name=").is_none(), "{keys:?}");
        assert_eq!(offered("longwire ctl add host h addr"), ["address="]);
        assert_eq!(offered("longwire ctl add host h del"), [""; 0]);
        assert!(offered("longwire ctl add port p dr").contains(&"driver=".into()));
    }

    #[test]
    fn settings_are_offered_behind_what_is_given() {
        assert!(offered("longwire exec --up ra").contains(&"rate=".into()));
        let more = offered("longwire attach --down rate=1mbit,del");
        assert!(more.contains(&"rate=1mbit,delay=".into()), "{more:?}");
        let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/two-hosts.toml");
        let names = offered(&format!("longwire run {scenario} --set up"));
        assert!(["up.", "up.forward."].iter().all(|name| names.contains(&name.to_string())), "{names:?}");
        let more = offered("longwire run --set up.forward.ra");
        assert!(more.contains(&"up.forward.rate=".into()), "{more:?}");
    }

    #[test]
    fn files_are_offered() {
        for line in ["run", "ctl apply", "exec --record", "exec --trace", "exec --profile", "serve"] {
            assert_eq!(offered(&format!("longwire {line} Carg")), ["Cargo.toml"], "{line}");
        }
        assert_eq!(offered("longwire import netem Carg"), ["Cargo.toml"]);
        assert_eq!(offered("longwire forwarder install r Carg"), ["Cargo.toml"]);
    }
}
