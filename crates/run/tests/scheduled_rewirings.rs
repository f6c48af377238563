//! Additions and removals that a scenario schedules, among the events of its run.

use longwire_control::{EventQuery, Instance, RewireRequest};
use longwire_run::real_run::{RealOptions, RealRun};

const SCHEDULED: &str = r#"
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

#[test]
fn scheduled_additions_and_removals_are_planned_and_logged_at_their_times() {
    let plan = longwire_scenario::parse("scheduled.toml", SCHEDULED).unwrap();
    let name = format!("t{}-scheduled", std::process::id());
    let run = RealRun::start(plan, None, RealOptions { name, ..RealOptions::default() }).unwrap();
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

/// What can't be done is said when it fails, not only at the end.
#[test]
fn a_scheduled_addition_that_fails_is_logged() {
    let port = "[at.add.port]\nname = \"x\"\ndriver = \"af_packet\"\ninterface = \"longwire-none\"\n";
    let text = SCHEDULED.replace("remove = \"gone\"\n", port);
    let plan = longwire_scenario::parse("scheduled.toml", &text).unwrap();
    let name = format!("t{}-unscheduled", std::process::id());
    let run = RealRun::start(plan, None, RealOptions { name, ..RealOptions::default() }).unwrap();
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
