//! Answers that clients share: which lists, and until when; and what is answered when nothing can be counted.

use longwire_control::{Edition, Instance, Kind, ObjectQuery, RowFilter};
use longwire_run::real_run::{RealOptions, RealRun};

/// Two ports without interfaces, a router between them with a flow, and a link.
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
scheduler = "gmr3"
processors = 1
clock = "600 MHz"
cycles = 600
flows = [{ name = "voice", key = { source = "10.0.1.9" }, weight = 3 }]
line-rate = "1 Gbit/s"

[[link]]
name = "up"
from = "a"
to = "b"
"#;

fn start(what: &str) -> RealRun {
    let name = format!("t{}-{what}", std::process::id());
    let options = RealOptions { name, ..RealOptions::default() };
    RealRun::start(longwire_scenario::plan_of(ROUTED), None, options).unwrap()
}

#[test]
fn clients_share_the_lists_of_links_and_routers_until_one_changes_them() {
    let run = start("shared");
    let instance = run.instance();
    // Counters may be taken anew meanwhile.
    let changed = || {
        [Kind::Link, Kind::Router].map(|kind| {
            let (_, Edition { changed, .. }) = instance.kept(Some(kind)).expect("it is shared");
            changed
        })
    };
    let set = |kind, name: &str, key: &str, value: &str| {
        instance.set(kind, name, &[(key.into(), value.into())]).unwrap().wait().unwrap();
    };
    let [links, routers] = changed();
    assert_eq!(changed(), [links, routers], "nothing has changed");
    set(Kind::Router, "r", "route.10.7.0.0/16", "via 10.0.2.9");
    assert_eq!(changed(), [links, routers + 1]);
    set(Kind::Flow, "r/voice", "weight", "4");
    assert_eq!(changed(), [links, routers + 2]);
    set(Kind::Link, "up", "delay", "3 ms");
    let now = changed();
    assert!(now[0] > links && now[1] == routers + 2, "{now:?}, after {links} and {routers}");
    let page = instance.page(Kind::Router, &ObjectQuery { count: 10, ..ObjectQuery::default() }).unwrap();
    assert!(page.objects[0].settings.contains_key("route.10.7.0.0/16"), "{:?}", page.objects[0].settings);
    // Of others, each answer is made anew.
    assert!(instance.kept(Some(Kind::Flow)).is_none());
    assert!(instance.kept(None).is_none(), "programs count in the totals");
    run.stop();
}

/// What flows have used is read for each page; its time is that of the reading, not of other counters.
#[test]
fn pages_of_flows_have_the_time_at_which_these_were_counted() {
    let run = start("flows");
    let instance = run.instance();
    let query = ObjectQuery { count: 10, ..ObjectQuery::default() };
    let mut last = 0;
    for _ in 0..3 {
        let asked = instance.elapsed().0;
        let page = instance.page(Kind::Flow, &query).unwrap();
        assert_eq!(page.objects[0].name, "r/voice");
        assert!(page.counted_ns >= asked && page.counted_ns > last, "{} {asked} {last}", page.counted_ns);
        last = page.counted_ns;
    }
    run.stop();
}

#[test]
fn counters_that_can_not_be_had_are_a_problem_and_no_answer() {
    let run = start("ended");
    let ended = run.stop();
    let problem = ended.instance.stats(&RowFilter::default()).unwrap_err();
    assert_eq!((problem.status, &*problem.detail), (503, "the run has ended"));
}
