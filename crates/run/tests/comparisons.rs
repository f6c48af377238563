//! Comparisons of a run with other scenarios, whose objects have other places.

use longwire_control::{Instance, Kind, ScenarioRequest};
use longwire_run::real_run::{RealOptions, RealRun};
use longwire_units::Nanos;

/// Three ports without interfaces, links between them, and an event that is over soon.
const SCENARIO: &str = r#"
[[port]]
name = "p"
driver = "source"
addresses = "10.0.1.1"

[[port]]
name = "q"
driver = "source"
addresses = "10.0.1.2"

[[port]]
name = "s"
driver = "source"
addresses = "10.0.1.3"

[[link]]
name = "x"
from = "p"
to = "s"

[[link]]
name = "a"
from = "p"
to = "q"
rate = "1 Mbit/s"

[[link]]
name = "b"
from = "q"
to = "p"
rate = "3 Mbit/s"

[[at]]
time = "1 ms"
link = "a"
rate = "2 Mbit/s"
"#;

/// The link behind a removed one has the place of the one that the event has changed.
#[test]
fn what_an_event_has_changed_hides_no_change_of_another_link() {
    let plan = longwire_scenario::parse("compared.toml", SCENARIO).unwrap();
    let name = format!("t{}-compared", std::process::id());
    let run = RealRun::start(plan, None, RealOptions { name, ..RealOptions::default() }).unwrap();
    let instance = run.instance();
    while instance.elapsed() < Nanos::from_millis(1) {
        std::thread::yield_now();
    }
    let toml = SCENARIO
        .replace("[[link]]\nname = \"x\"\nfrom = \"p\"\nto = \"s\"\n", "")
        .replace("3 Mbit/s", "5 Mbit/s");
    let found = instance.compare(&toml).unwrap();
    let changed: Vec<_> = found.changes.iter().map(|change| &*change.name).collect();
    assert_eq!((&changed[..], found.removed.len()), (&["b"][..], 1), "{found:?}");
    let wanted = ScenarioRequest { toml, partial: false };
    instance.apply(&wanted).unwrap().wait().unwrap();
    assert_eq!(instance.object(Kind::Link, "b").unwrap().settings["rate"], "5 Mbit/s");
    run.stop();
}
