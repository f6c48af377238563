//! The last row that a time series has of a removed link.

use longwire_control::{EventQuery, Instance};
use longwire_run::port_files::PortFiles;
use longwire_run::real_run::{RealOptions, RealRun};
use longwire_run::records::RecordOptions;
use longwire_run::series::SeriesOptions;
use longwire_run::virtual_run::simulate;
use longwire_units::Nanos;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A link that holds all that comes to it until it is removed.
const SCENARIO: &str = r#"
[[port]]
name = "a"
driver = "source"
addresses = "10.0.1.1"

[[port]]
name = "b"
driver = "source"
addresses = "10.0.1.2"

[[link]]
name = "gone"
from = "a"
to = "b"
delay = "60 s"

[[source]]
name = "video"
from = "a"
to = "b"
rate = "10 Mbit/s"
for = "60 ms"

[[at]]
time = "52 ms"
remove = "gone"
"#;

fn series_at(file: &Path) -> RecordOptions {
    let series = SeriesOptions { file: file.into(), every: Nanos::from_millis(5), links: None };
    RecordOptions { series: Some(series), ..RecordOptions::default() }
}

fn file(what: &str) -> PathBuf {
    std::env::temp_dir().join(format!("longwire-removed-{what}-{}.csv", std::process::id()))
}

/// The time of the last row of a series, and the sums of packets that arrived and were dropped.
fn sums(file: &Path) -> (u64, u64, u64) {
    let text = fs::read_to_string(file).unwrap();
    fs::remove_file(file).unwrap();
    let rows = text.lines().skip(1).map(|row| row.split(',').collect::<Vec<_>>());
    rows.fold((0, 0, 0), |(_, arrived, dropped), row| {
        let number = |column: usize| row[column].parse::<u64>().unwrap();
        (number(0), arrived + number(2), dropped + number(6))
    })
}

#[test]
fn it_ends_with_the_removal_in_virtual_time() {
    let file = file("virtual");
    let plan = Arc::new(longwire_scenario::plan_of(SCENARIO));
    let files = PortFiles::new(&plan, &[], &[]).unwrap();
    let counted = simulate(&plan, &files, None, series_at(&file)).unwrap().counted;
    assert!(counted.removed.dropped() > 30, "{:?}", counted.removed);
    assert_eq!(sums(&file), (52_000_000, counted.removed.in_packets, counted.removed.dropped()));
}

#[test]
fn it_counts_what_the_removal_drops_in_real_time() {
    let (file, name) = (file("real"), format!("t{}-removed-series", std::process::id()));
    let options = RealOptions { name, records: series_at(&file), ..RealOptions::default() };
    let run = RealRun::start(longwire_scenario::plan_of(SCENARIO), None, options).unwrap();
    let log = || run.instance().events(EventQuery { after: 0, planned: false }).log;
    while !log().iter().any(|event| event.what == "removed link gone") {
        std::thread::yield_now();
    }
    let counted = run.stop().counted;
    let (time, arrived, dropped) = sums(&file);
    assert!(time >= 52_000_000 && counted.removed.dropped() > 0, "{:?}", counted.removed);
    assert_eq!((arrived, dropped), (counted.removed.in_packets, counted.removed.dropped()));
}
