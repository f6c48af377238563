//! Programs that come and go, in the log of their run and among the changes that it reports.

use longwire_control::{EventQuery, Instance, NewForwarder, ProgramRequest};
use longwire_run::objects::NoticedChange;
use longwire_run::real_run::{RealOptions, RealRun};
use serde_json::json;
use std::sync::mpsc::channel;

/// Two ports without interfaces, and a router between them.
const ROUTED: &str = r#"
[[port]]
name = "a"
driver = "source"
addresses = "10.0.1.9/24"

[[port]]
name = "b"
driver = "source"
addresses = "10.0.2.9/24"

[[router]]
name = "r"
ports = [
  { port = "a", addresses = "10.0.1.1/24" },
  { port = "b", addresses = "10.0.2.1/24" },
]

[[link]]
name = "up"
from = "a"
to = "b"
"#;

fn program(lease: Option<&str>) -> NewForwarder {
    NewForwarder {
        forwarder: json!({ "program": "syn-monitor" }),
        lease: lease.map(str::to_owned),
        ..NewForwarder::default()
    }
}

#[test]
fn programs_that_come_and_go_are_logged_and_reported() {
    let plan = longwire_scenario::parse("programs.toml", ROUTED).unwrap();
    let (told, noticed) = channel();
    let name = format!("t{}-program-log", std::process::id());
    let run = RealRun::start(plan, None, RealOptions { name, told: Some(told), ..RealOptions::default() });
    let run = run.unwrap();
    let instance = run.instance();
    let ask = |ask: &ProgramRequest| instance.forwarders("r", ask).unwrap();
    let fid = |answer: serde_json::Value| u32::try_from(answer["fid"].as_u64().unwrap()).unwrap();
    let first = fid(ask(&ProgramRequest::Install(program(None))));
    ask(&ProgramRequest::Replace(first, program(None)));
    ask(&ProgramRequest::List);
    ask(&ProgramRequest::Remove(first));
    let second = fid(ask(&ProgramRequest::Install(program(Some("1s")))));
    assert!(instance.forwarders("r", &ProgramRequest::Remove(first)).is_err());
    let wanted = [
        format!("installed r/{first} syn-monitor"),
        format!("replaced r/{first} by syn-monitor"),
        format!("removed r/{first}"),
        format!("installed r/{second} syn-monitor, lease 1 s"),
        format!("lease of r/{second} ended: removed"),
    ];
    let log = loop {
        let log = instance.events(EventQuery { after: 0, planned: false }).log;
        let changes = log.into_iter().filter(|event| event.kind == "change").map(|event| event.what);
        let changes: Vec<String> = changes.collect();
        if changes.len() >= wanted.len() {
            break changes;
        }
        std::thread::yield_now();
    };
    assert_eq!(log, wanted);
    let told = noticed.try_iter().filter_map(|notice| match notice.what {
        NoticedChange::Program(change) => Some(change.to_string()),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), wanted);
    run.stop();
}
