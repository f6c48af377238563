//! Files that can be read while their run goes on.

use longwire_run::real_run::{RealOptions, RealRun};
use longwire_run::records::RecordOptions;
use longwire_run::series::SeriesOptions;
use longwire_units::Nanos;
use std::fs;
use std::time::{Duration, Instant};

/// It sends far less than any buffer holds.
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
name = "up"
from = "a"
to = "b"

[[source]]
name = "slow"
from = "a"
to = "b"
rate = "8 kbit/s"
size = "100 B"
"#;

#[test]
fn captures_and_series_are_written_while_the_run_goes_on() {
    let folder = std::env::temp_dir().join(format!("longwire-readable-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (capture, series) = (folder.join("all.pcapng"), folder.join("rates.csv"));
    let sampled = SeriesOptions { file: series.clone(), every: Nanos::from_millis(500), links: None };
    let records =
        RecordOptions { record: Some(capture.clone()), series: Some(sampled), ..RecordOptions::default() };
    let name = format!("t{}-readable", std::process::id());
    let options = RealOptions { name, records, ..RealOptions::default() };
    let run = RealRun::start(longwire_scenario::plan_of(SCENARIO), None, options).unwrap();
    let begun = fs::read(&capture).unwrap();
    assert!(begun.starts_with(b"\x0a\x0d\x0d\x0a"), "{begun:?}");
    assert!(fs::read_to_string(&series).unwrap().starts_with("time_ns,link,"));
    let until = Instant::now() + Duration::from_secs(30);
    let has_grown = || {
        let rows = fs::read_to_string(&series).unwrap().lines().count();
        fs::metadata(&capture).unwrap().len() > begun.len() as u64 && rows > 1
    };
    while !has_grown() {
        assert!(Instant::now() < until, "nothing more was written");
        std::thread::yield_now();
    }
    run.stop();
    fs::remove_dir_all(folder).unwrap();
}
