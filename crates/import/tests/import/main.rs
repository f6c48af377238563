//! Inputs of other tools become valid scenarios with the same meaning.
#![forbid(unsafe_code)]

mod ipfw;
mod labs;
mod mahimahi;
mod netem;
mod ns;
mod ns_events;
mod ns_values;
mod readable;
mod scripts;
mod theaterq;

use longwire_import::{Format, ImportedScenario, Source, import};
use longwire_scenario::{Plan, plan_of};

/// A command, or a script of them.
fn command(text: &str) -> Source {
    Source { file: None, text: text.into() }
}

fn file(name: &str, text: &str) -> Source {
    Source { file: Some(name.into()), text: text.into() }
}

fn from(format: Format, text: &str) -> ImportedScenario {
    import(format, &[command(text)]).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The lines of the scenario without comments.
fn lines(imported: &ImportedScenario) -> Vec<&str> {
    imported.scenario.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect()
}

fn plan(imported: &ImportedScenario) -> Plan {
    plan_of(&imported.scenario)
}

fn has(imported: &ImportedScenario, wanted: &[&str]) {
    for wanted in wanted {
        assert!(lines(imported).contains(wanted), "no line {wanted} in\n{}", imported.scenario);
    }
}

fn tells(imported: &ImportedScenario, wanted: &[&str]) {
    for wanted in wanted {
        let told = imported.notes.iter().any(|note| note.to_string().contains(wanted));
        assert!(told, "nothing about {wanted} in {:#?}", imported.notes);
        assert!(imported.scenario.contains(&format!("# - {}", imported.notes[0])), "{}", imported.scenario);
    }
}

/// Asserts that no note contains these texts.
fn silent(imported: &ImportedScenario, unwanted: &[&str]) {
    for unwanted in unwanted {
        let told = imported.notes.iter().find(|note| note.to_string().contains(unwanted));
        assert!(told.is_none(), "{}", told.unwrap());
    }
}

fn refused(format: Format, text: &str, wanted: &str) {
    let error = import(format, &[command(text)]).unwrap_err().to_string();
    assert!(error.contains(wanted), "{text}: {error}");
}

/// The links of packets from host to host, by the order of the hosts in the file.
fn way(plan: &Plan, from: u16, to: u16) -> Vec<&str> {
    let links = plan.pair_route(from, to).unwrap();
    links.iter().map(|link| &*plan.links[*link as usize].name).collect()
}
