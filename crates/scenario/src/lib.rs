//! Scenario file to checked plan.
//!
//! [`parse`] reads the text once into a [`Plan`] that has passed every check, or reports all that is wrong
//! with it, each with file, line, column, field and fix. [`schema`] describes the file and comes from the
//! same structures. `docs/book/scenario.md` explains the keys; the crate `assemble` builds an engine from the
//! plan.
#![forbid(unsafe_code)]

mod contradictions;
mod event;
mod event_text;
mod file;
mod file_router;
mod forwarder_plan;
mod level_plan;
pub mod library;
mod link_edit;
mod plan;
mod plan_links;
mod plan_nodes;
mod program_plan;
mod read;
mod resolve;
mod router_plan;
mod schema;
mod settings;
mod source;
mod staged;

pub use address::{Mac, Network, RouteTarget};
pub use contradictions::{Contradiction, contradictions};
pub use edit::{EditError, changed_sections, edited, removable, staged_sections, with_seed};
pub use event::Event;
pub use finding::{Finding, ScenarioError, called_elsewhere, name_hint, suggestion};
pub use forwarder_plan::{
    ForwarderFault, ForwarderRequest, PlannedForwarder, WrittenForwarder, WrittenKey, digits,
    fields_of_programs, hexadecimal,
};
pub use level_plan::{AboveRequest, Receiver, RouterLevels, nanoseconds_of};
pub use link_edit::{
    BlockPatch, FaultPlace, LinkFault, implied_block, implied_kind, implied_param, implied_removal,
    kind_hint, link_edit, unplanned_target, with_defaults,
};
pub use plan::{
    AddressRule, Attachment, Bridge, ControlEnd, Delays, DriverSettings, End, EngineSettings, Fidelity, Host,
    HostRoute, LARGEST_POOL, Link, LinkRequest, Medium, Nesp, Owners, PairRule, Places, Plan, Port, PortSide,
    Profile, Route, Routes, Segment, Source, Stage, Steer,
};
pub use program_plan::near_shipped;
pub use quoting::quoted;
pub use resolve::medium_edit;
pub use router_plan::{
    RouteChange, Router, RouterEvent, RouterNeighbour, RouterPort, RouterRoute, WrittenHop, WrittenRoute,
    gateway_of,
};
pub use schema::{reference, schema};
pub use settings::{BetweenWorkers, LevelWait, Mapping, NespAllow, Routing, Wait};
pub use source::{KeyFault, SourceSite, source_edits, source_rows};
pub use staged::{NextStage, advanced, next_stage};

use longwire_block::Spec;
use longwire_document::{address, edit, finding, quoting, row, setting_schema, template, written};
use longwire_units::Nanos;
use resolve::{Resolved, RunSoFar, StageRequest};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use thiserror::Error;

/// Why a scenario could not be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file can't be read.
    #[error("{file}: {source}; name a scenario file, such as scenarios/two-hosts.toml")]
    Unreadable {
        /// The file.
        file: String,
        /// Why not.
        source: std::io::Error,
    },
    /// It is not a valid scenario.
    #[error(transparent)]
    Invalid(#[from] ScenarioError),
}

/// Reads the scenario in the file `path`, or from standard input for `-`.
///
/// # Errors
/// If the file can't be read, or everything that is wrong with it.
pub fn load(path: &Path) -> Result<Plan, LoadError> {
    let text = read_text(path)?;
    Ok(parse(&path.display().to_string(), &text)?)
}

/// The text of the file `path`, or of standard input for `-`, to be given to [`parse`].
///
/// # Errors
/// If it can't be read.
pub fn read_text(path: &Path) -> Result<String, LoadError> {
    let file = path.display().to_string();
    let mut text = String::new();
    // One byte above the limit, so that an endless file is refused as too long.
    let most = read::LONGEST_FILE as u64 + 1;
    let read = if path.as_os_str() == "-" {
        std::io::stdin().take(most).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|opened| opened.take(most).read_to_string(&mut text))
    };
    read.map(|_| text).map_err(|source| LoadError::Unreadable { file, source })
}

/// Reads a scenario. Errors call it `file`; names of captures are relative to its folder.
///
/// # Errors
/// Everything that is wrong with it, each with place and fix.
pub fn parse(file: &str, text: &str) -> Result<Plan, ScenarioError> {
    let mut findings = finding::Findings::new(file, text);
    let registry = longwire_link::registry();
    let resolved = resolved((file, text), None, &registry, &mut findings);
    let plan = resolved.map(|Resolved { mut plan, stages, .. }| {
        plan.stages = plans_of_stages(&plan, text, stages, &mut findings);
        plan
    });
    finished(text, plan, findings)
}

/// The plan of a scenario that is known to be valid, such as one of a test.
///
/// # Panics
/// If it is not valid, with every error.
pub fn plan_of(text: &str) -> Plan {
    parse("scenario.toml", text).unwrap_or_else(|error| panic!("{error}\nin:\n{text}"))
}

/// Reads a scenario to which a run of `before` is brought that has lasted for `elapsed`: ports of the same
/// name keep their places. What `[[at]]` adds and removes is left to the run. Events that are over may name
/// objects that are gone: they are left out, also of the plan's text.
///
/// # Errors
/// As [`parse`].
pub fn parse_after(before: &Plan, text: &str, elapsed: Nanos) -> Result<Plan, ScenarioError> {
    let (mut findings, mut left) = (finding::Findings::new(&before.file, text), text.to_owned());
    let (registry, run) = (longwire_link::registry(), RunSoFar { plan: before, elapsed });
    let resolved = resolved((&before.file, text), Some(run), &registry, &mut findings);
    let plan = resolved.map(|Resolved { plan, left_out, .. }| {
        let span = left_out.first().map(|out| out.span.clone()).unwrap_or_default();
        match staged::without_past(text, left_out) {
            Ok(without) => left = without,
            Err(error) => findings.error(span, "at", error.to_string(), ""),
        }
        plan
    });
    let mut plan = finished(&left, plan, findings)?;
    plan.silence(before.silent_ports.clone());
    Ok(plan)
}

fn resolved(
    (file, text): (&str, &str),
    run: Option<RunSoFar<'_>>,
    registry: &[&'static Spec],
    findings: &mut finding::Findings<'_>,
) -> Option<Resolved> {
    let sections = read::read(text, registry, findings);
    if findings.failed() { None } else { resolve::resolve((&sections, run), file, registry, findings) }
}

fn finished(text: &str, plan: Option<Plan>, findings: finding::Findings<'_>) -> Result<Plan, ScenarioError> {
    let notes = findings.finish()?;
    let plan = plan.expect("a scenario without errors has a plan");
    Ok(Plan { notes, text: text.into(), ..plan })
}

/// The plans after each addition or removal.
fn plans_of_stages(
    first: &Plan,
    text: &str,
    wanted: Vec<StageRequest>,
    findings: &mut finding::Findings<'_>,
) -> Vec<Stage> {
    let mut now = text.to_owned();
    let mut stages: Vec<Stage> = Vec::new();
    for StageRequest { span, time, add, remove, drain } in wanted {
        let before = stages.last().map_or(first, |stage| &*stage.plan);
        let next = edited_by(&now, &add, &remove);
        match next.and_then(|next| stage(before, (&now, &next), time)) {
            Ok(plan) => {
                plan.text.as_ref().clone_into(&mut now);
                stages.push(Stage { time, add, remove, drain, plan: plan.into() });
            }
            Err((what, fix)) => {
                findings.error(span, &format!("at \"{time}\""), what, fix);
                break;
            }
        }
    }
    stages
}

/// The text after an addition or removal, or what is wrong with it, and the fix.
fn edited_by(now: &str, add: &str, remove: &[String]) -> Result<String, (String, String)> {
    if let Err(error) = add.parse::<toml::Table>() {
        let what = format!("what it adds is not TOML: {}", error.message());
        return Err((what, read::fix_syntax(error.message()).to_owned()));
    }
    edited(now, add, remove).map_err(|error| (error.to_string(), String::new()))
}

/// The plan of the text `next`, which follows another at a time of the run, or what is wrong with it, and the
/// fix.
fn stage(before: &Plan, (now, next): (&str, &str), time: Nanos) -> Result<Plan, (String, String)> {
    if let Some(section) = changed_sections(now, next).first() {
        let fix = "add links, hosts, ports, bridges, routers and sources: [at.add.link], or add = { link = { \
            … } }";
        return Err((format!("it adds to {section}"), fix.to_owned()));
    }
    parse_after(before, next, time).map_err(|error| {
        let first = error.findings.into_iter().next();
        first.map_or_else(Default::default, |found| {
            (format!("from then on, {}: {}", found.field, found.what), found.fix)
        })
    })
}
