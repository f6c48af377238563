//! Additions and removals that a scenario schedules, among the events of its run.

use longwire_control::{EventQuery, Instance, Kind, RewireRequest, ScenarioRequest};
use longwire_run::real_run::{RealOptions, RealRun};
use longwire_units::Nanos;

const PORTS: &str = r#"
[[port]]
name = "a"
driver = "source"
addresses = "10.0.1.1"

[[port]]
name = "b"
driver = "source"
addresses = "10.0.1.2"

[[port]]
name = "c"
driver = "source"
addresses = "10.0.1.3"
"#;

const SCHEDULED: &str = r#"
[[link]]
name = "k"
between = ["a", "b"]

[[link]]
name = "gone"
from = "a"
to = "c"

[[at]]
time = "4 ms"
remove = "gone"

[[at]]
time = "2 ms"
remove = "k"
[at.add.link]
name = "late"
from = "b"
to = "a"

[[at]]
time = "1 h"
remove = "late"
"#;

/// Starts a run of the ports with these links and events.
fn start(what: &str, links: &str) -> RealRun {
    let plan = longwire_scenario::plan_of(&format!("{PORTS}{links}"));
    let name = format!("t{}-{what}", std::process::id());
    RealRun::start(plan, None, RealOptions { name, ..RealOptions::default() }).unwrap()
}

#[test]
fn scheduled_additions_and_removals_are_planned_and_logged_at_their_times() {
    let run = start("scheduled", SCHEDULED);
    let instance = run.instance();
    let page = |planned| instance.events(EventQuery { after: 0, planned });
    while page(false).log.iter().filter(|event| event.kind == "scheduled").count() < 3 {
        std::thread::yield_now();
    }
    let shown = page(true);
    let logged: Vec<_> = shown.log.iter().filter(|event| event.kind == "scheduled").collect();
    let logged: Vec<_> = logged.iter().map(|event| (event.at_ns, &*event.what)).collect();
    assert_eq!(
        logged,
        [
            (2_000_000, "added link late"),
            (2_000_000, "removed link k.forward and 1 more"),
            (4_000_000, "removed link gone"),
        ]
    );
    let planned = |page: &[longwire_control::PlannedEvent]| {
        page.iter().map(|event| (event.at_ns / 1_000_000, event.what.clone())).collect::<Vec<_>>()
    };
    let all = [
        (3_600_000, "remove link late".to_owned()),
        (4, "remove link gone".to_owned()),
        (2, "add link late, remove link k.forward and 1 more".to_owned()),
    ];
    assert_eq!(planned(&shown.planned), all);
    // They are still known after other changes.
    let ask = RewireRequest {
        add: "[[link]]\nname = \"more\"\nfrom = \"c\"\nto = \"a\"\n".into(),
        ..RewireRequest::default()
    };
    instance.rewire(&ask).unwrap().wait().unwrap();
    let shown = page(true);
    assert_eq!(planned(&shown.planned), all);
    let last = shown.log.last().unwrap();
    assert_eq!((&*last.kind, &*last.what), ("change", "added link more"));
    run.stop();
}

/// As in virtual time: a link that leaves and one of its name that joins are two.
#[test]
fn events_at_one_time_come_one_after_the_other() {
    let link = |header: &str, delay| {
        format!("{header}\nname = \"k\"\nfrom = \"a\"\nto = \"b\"\ndelay = \"{delay} ms\"\n")
    };
    let at = "[[at]]\ntime = \"2 ms\"\n";
    let links = format!("{}\n{at}remove = \"k\"\n\n{at}{}", link("[[link]]", 1), link("[at.add.link]", 9));
    let run = start("again", &links);
    let instance = run.instance();
    while instance.scenario().unwrap().contains("2 ms") {
        std::thread::yield_now();
    }
    assert_eq!(instance.object(Kind::Link, "k").unwrap().settings["delay"], "9 ms");
    run.stop();
}

/// What can't be done is said when it fails, not only at the end.
#[test]
fn a_scheduled_addition_that_fails_is_logged() {
    let port = "[at.add.port]\nname = \"x\"\ndriver = \"af_packet\"\ninterface = \"longwire-none\"\n";
    let run = start("unscheduled", &SCHEDULED.replace("remove = \"gone\"\n", port));
    let instance = run.instance();
    let fault = loop {
        let log = instance.events(EventQuery { after: 0, planned: false }).log;
        if let Some(event) = log.into_iter().find(|event| event.kind == "fault") {
            break event;
        }
        std::thread::yield_now();
    };
    assert_eq!(fault.at_ns, 4_000_000);
    assert!(fault.what.starts_with("[[at]] 4 ms: "), "{}", fault.what);
    run.stop();
}

/// Links that events change, which are over after 3 ms, or will be after an hour.
const CHANGED: &str = r#"
[[link]]
name = "soon"
from = "a"
to = "b"
delay = "1 ms"

[[link]]
name = "late"
from = "a"
to = "c"
delay = "1 ms"

[[at]]
time = "1 ms"
link = ["soon", "late"]
ramp = "2 ms"
delay = "9 ms"

[[at]]
time = "1 h"
link = "late"
delay = "5 ms"
"#;

/// Starts a run, and waits until the first event is over.
fn changed(what: &str) -> RealRun {
    let run = start(what, CHANGED);
    while run.instance().elapsed() < Nanos::from_millis(4) {
        std::thread::yield_now();
    }
    run
}

/// The scenario that runs, and what has been logged.
fn written_and_logged(run: &RealRun) -> (String, Vec<String>) {
    let log = run.instance().events(EventQuery { after: 0, planned: false }).log;
    let log = log.into_iter().filter(|event| ["change", "scheduled"].contains(&&*event.kind));
    (run.instance().scenario().unwrap(), log.map(|event| event.what).collect())
}

#[test]
fn a_link_is_removed_whose_event_is_over_and_no_other() {
    let run = changed("over");
    let remove = |name: &str| {
        let ask = RewireRequest { remove: vec![name.into()], ..RewireRequest::default() };
        run.instance().rewire(&ask).map(|made| made.wait().map(drop))
    };
    let error = remove("late").unwrap_err().to_string();
    assert!(error.contains("at \"1 h\", link: it changes \"late\""), "{error}");
    assert!(error.contains("take that event away first"), "{error}");
    remove("soon").unwrap().unwrap();
    let (text, log) = written_and_logged(&run);
    assert!(text.contains("link = [\"late\"]") && !text.contains("name = \"soon\""), "{text}");
    // What its event has changed of others is still that event's.
    assert!(!text.contains("time = \"0 s\""), "{text}");
    longwire_scenario::parse("changed.toml", &text).unwrap();
    assert_eq!(log.len(), 2, "{log:?}");
    assert!(log[0].starts_with("soon, late: delay 9 ms") && log[1] == "removed link soon", "{log:?}");
    run.stop();
}

#[test]
fn a_scenario_without_a_link_and_its_event_is_applied() {
    let run = changed("applied");
    let link = "[[link]]\nname = \"soon\"\nfrom = \"a\"\nto = \"b\"\ndelay = \"1 ms\"\n\n";
    let without = |text: String| text.replace(link, "").replace("[\"soon\", \"late\"]", "[\"late\"]");
    let apply = |links: String| {
        let toml = format!("{PORTS}{links}");
        let made = run.instance().apply(&ScenarioRequest { toml, partial: false });
        made.map(|made| made.wait().unwrap()).map_err(|error| error.to_string())
    };
    // Events of what stays, and those still to come, can't be left out or changed.
    for other in [
        CHANGED.replace("\nlink = [\"soon\", \"late\"]", "\nlink = \"soon\""),
        CHANGED.replace("time = \"1 h\"", "time = \"2 h\""),
        CHANGED.replace("time = \"1 ms\"", "time = \"2 ms\""),
    ] {
        let error = apply(other).unwrap_err();
        assert!(error.contains("[[at]]: it is fixed when the instance starts"), "{error}");
    }
    let done = apply(without(CHANGED.into())).unwrap();
    let removed: Vec<_> = done.removed.iter().map(|gone| &*gone.name).collect();
    assert_eq!((removed, done.changes.len()), (vec!["soon"], 0), "{done:?}");
    let (text, _) = written_and_logged(&run);
    assert!(text.contains("link = [\"late\"]") && !text.contains("name = \"soon\""), "{text}");
    run.stop();
}
