//! Completion of arguments whose values only a run, a lab or a declaration knows.
//!
//! The shell asks this program, so that names are current. An argument is completed by its name on the
//! command line: new commands that use the same names need no code here.

use clap::{Arg, Command, ValueHint};
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use longwire_control::{Client, Kind, ObjectQuery, directory};
use longwire_import::Format;
use longwire_program::ShippedForwarder;
use longwire_run::objects::links::LinkKind;
use longwire_scenario::library::SHIPPED;
use std::ffi::OsStr;
use std::time::Duration;

/// The environment variable of a shell's request.
pub const VARIABLE: &str = "LONGWIRE_COMPLETE";
/// Time for an instance to answer while a person waits.
const PATIENCE: Duration = Duration::from_millis(300);
/// Most objects of a kind offered.
const MOST: usize = 1000;

/// Adds completion to the arguments of a command.
pub fn completing(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let within = |arg: Arg| match (values_of(&name, arg.get_id().as_str()), names_a_file(&arg)) {
        (Some(values), true) => arg.add(ArgValueCompleter::new(move |given: &OsStr| {
            let begun = |value: &String| given.to_str().is_some_and(|given| value.starts_with(given));
            let values = values().into_iter().filter(begun).map(CompletionCandidate::new);
            values.chain(PathCompleter::any().complete(given)).collect()
        })),
        (Some(values), false) => {
            let all = move || values().into_iter().map(CompletionCandidate::new).collect();
            arg.add(ArgValueCandidates::new(all))
        }
        (None, true) => arg.value_hint(ValueHint::AnyPath),
        (None, false) => arg,
    };
    command.mut_args(within).mut_subcommands(completing)
}

/// Whether an argument's value may be a file.
fn names_a_file(arg: &Arg) -> bool {
    let mut names = arg.get_value_names().into_iter().flatten();
    names.any(|name| name.starts_with("FILE") || name.ends_with("]FILE"))
        || ["program", "profile"].contains(&arg.get_id().as_str())
}

/// The possible values of a command's argument.
fn values_of(command: &str, argument: &str) -> Option<fn() -> Vec<String>> {
    Some(match (command, argument) {
        ("get" | "set", "name" | "object") => objects,
        ("set" | "add", "settings") => settings,
        ("remove", "names") => removable,
        ("stats" | "top" | "stop" | "diff" | "apply" | "save", "name") | (_, "instance") => instances,
        (_, "router") => || of_kind(Kind::Router),
        ("weigh", "flow") => flows,
        ("show", "name") | (_, "profile") => profiles,
        ("blocks", "key") => keys,
        (_, "program") => programs,
        ("import", "format") => || Format::NAMES.map(str::to_owned).into(),
        (_, "lab") => labs,
        ("exec", "host") => hosts,
        ("attach", "netns") => namespaces,
        (_, "kind") => || Kind::ALL.map(|kind| kind.word().to_owned()).into(),
        _ => return None,
    })
}

/// The running instances; none if they can't be listed.
fn instances() -> Vec<String> {
    let found = longwire_control::list(&directory()).unwrap_or_default();
    found.into_iter().map(|found| found.name).collect()
}

/// The names of the objects of a kind in all instances.
fn of_kind(kind: Kind) -> Vec<String> {
    let found = longwire_control::list(&directory()).unwrap_or_default();
    let pages = found.into_iter().filter_map(|found| {
        let client = Client::of(found, PATIENCE).ok()?;
        client.page(kind, &ObjectQuery { count: MOST, ..ObjectQuery::default() }).ok()
    });
    pages.flat_map(|page| page.objects).map(|object| object.name).collect()
}

/// All links; a duplex link also by its own name.
fn links() -> Vec<String> {
    let mut names = of_kind(Kind::Link);
    let duplex: Vec<String> =
        names.iter().filter_map(|name| name.strip_suffix(".forward")).map(str::to_owned).collect();
    names.splice(..0, duplex);
    names
}

/// All objects.
fn objects() -> Vec<String> {
    let mut names = links();
    Kind::ALL.into_iter().filter(|&kind| kind != Kind::Link).for_each(|kind| names.extend(of_kind(kind)));
    names
}

/// What can be removed from all instances: a duplex link by its own name, and not by its directions.
fn removable() -> Vec<String> {
    let found = longwire_control::list(&directory()).unwrap_or_default();
    let texts = found.into_iter().filter_map(|found| Client::of(found, PATIENCE).ok()?.scenario().ok());
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

fn profiles() -> Vec<String> {
    SHIPPED.iter().map(|shipped| shipped.name.to_owned()).collect()
}

/// The programs that are built in.
fn programs() -> Vec<String> {
    ShippedForwarder::ALL.iter().map(|shipped| shipped.name.to_owned()).collect()
}

fn keys() -> Vec<String> {
    let mut keys: Vec<String> =
        longwire_link::registry().into_iter().map(|spec| spec.key.to_owned()).collect();
    keys.dedup();
    keys
}

fn labs() -> Vec<String> {
    longwire_run::labs::names().unwrap_or_default().into_iter().map(|(lab, _)| lab).collect()
}

fn hosts() -> Vec<String> {
    longwire_run::labs::names().unwrap_or_default().into_iter().flat_map(|(_, hosts)| hosts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use clap_complete::engine::complete;

    fn offered(line: &str) -> Vec<String> {
        let mut command = completing(crate::Cli::command());
        let words: Vec<_> = line.split(' ').map(Into::into).collect();
        let last = words.len() - 1;
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
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
    fn files_are_offered() {
        for line in ["run", "ctl apply", "exec --record", "exec --trace", "exec --profile", "serve"] {
            assert_eq!(offered(&format!("longwire {line} Carg")), ["Cargo.toml"], "{line}");
        }
        assert_eq!(offered("longwire import netem Carg"), ["Cargo.toml"]);
        assert_eq!(offered("longwire forwarder install r Carg"), ["Cargo.toml"]);
    }
}
