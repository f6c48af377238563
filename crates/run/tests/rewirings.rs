//! Ports that join and leave a run in real time: their files, what fails at their end, and their number.

use longwire_control::{EventQuery, Instance, Kind, RewireRequest, SetError};
use longwire_run::instance::RunningInstance;
use longwire_run::objects::NoticedChange;
use longwire_run::packet_log::LogOptions;
use longwire_run::real_run::{RealOptions, RealRun};
use longwire_run::records::RecordOptions;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;

const TWO_PORTS: &str = r#"
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
"#;

/// A section of a scenario: a port on a capture.
fn capture(name: &str, key: &str, file: &Path) -> String {
    format!("[[port]]\nname = \"{name}\"\ndriver = \"pcap\"\n{key} = \"{}\"\n", file.display())
}

fn start(what: &str, text: &str, options: RealOptions) -> RealRun {
    let plan = longwire_scenario::parse("rewired.toml", text).unwrap();
    let name = format!("t{}-{what}", std::process::id());
    RealRun::start(plan, None, RealOptions { name, ..options }).unwrap()
}

fn folder(what: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("longwire-{what}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn add(instance: &RunningInstance, text: String) -> Result<(), SetError> {
    let ask = RewireRequest { add: text, ..RewireRequest::default() };
    instance.rewire(&ask).and_then(|made| made.wait().map(drop))
}

fn remove(instance: &RunningInstance, names: &[&str]) -> Result<(), SetError> {
    let remove = names.iter().map(|name| name.to_string()).collect();
    let ask = RewireRequest { remove, ..RewireRequest::default() };
    instance.rewire(&ask).and_then(|made| made.wait().map(drop))
}

/// /dev/full is a full disk.
#[test]
fn a_removal_after_which_something_fails_is_logged_and_reported() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return println!("skipped: this system has no /dev/full");
    }
    let (told, noticed) = channel();
    let options = RealOptions { told: Some(told), ..RealOptions::default() };
    let run = start("full", &format!("{TWO_PORTS}{}", capture("full", "output", full)), options);
    let error = remove(run.instance(), &["full"]).unwrap_err().to_string();
    assert!(error.contains("it was removed, and its port failed"), "{error}");
    let log = run.instance().events(EventQuery { after: 0, planned: false }).log;
    let logged = |kind: &str, what: &str| log.iter().any(|event| event.kind == kind && event.what == what);
    assert!(logged("change", "removed port full") && logged("fault", &error), "{log:?}");
    assert!(matches!(noticed.try_recv().unwrap().what, NoticedChange::Applied { changed: 1, .. }));
    run.stop();
}

#[test]
fn ports_that_join_have_files_of_their_own() {
    let folder = folder("joining-files");
    let [input, log, seen] = ["in.pcap", "log.pcapng", "seen.pcap"].map(|name| folder.join(name));
    // The header of a capture of Ethernet frames, without any.
    let header = [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 0xffff, 1].map(u32::to_le_bytes).concat();
    fs::write(&input, header).unwrap();
    let records = RecordOptions {
        log: Some(LogOptions { file: log.clone(), links: None }),
        ..RecordOptions::default()
    };
    let options = RealOptions { records, ..RealOptions::default() };
    let run = start("files", &format!("{TWO_PORTS}{}", capture("replay", "input", &input)), options);
    let instance = run.instance();
    let refused = |file: &Path| {
        let error = add(instance, capture("other", "output", file)).unwrap_err().to_string();
        assert!(error.contains("named twice"), "{error}");
    };
    refused(&log);
    refused(&input);
    add(instance, capture("record", "output", &seen)).unwrap();
    refused(&seen);
    // What has left has no file any more, and nobody looks into those of others.
    remove(instance, &["record"]).unwrap();
    fs::remove_file(&input).unwrap();
    add(instance, capture("other", "output", &seen)).unwrap();
    run.stop();
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn empty_lines_are_no_addition() {
    let run = start("empty", TWO_PORTS, RealOptions::default());
    let ask = RewireRequest {
        add: "\n".repeat(100),
        remove: vec!["a".into(), "b".into()],
        ..RewireRequest::default()
    };
    let error = run.instance().rewire(&ask).map(drop).unwrap_err();
    assert!(matches!(&error, SetError::Refused(why) if why.contains("nothing can send")), "{error}");
    run.stop();
}

/// What is saved of a run is a scenario.
#[test]
fn a_port_to_which_a_change_has_directed_a_source_stays() {
    let more = "[[port]]\nname = \"c\"\ndriver = \"source\"\naddresses = \"10.0.1.3\"\n\
        [[source]]\nname = \"video\"\nfrom = \"a\"\nto = \"b\"\nrate = \"100 kbit/s\"\n";
    let run = start("aimed", &format!("{TWO_PORTS}{more}"), RealOptions::default());
    let direct = |to: &str| {
        let changes = [("to".to_owned(), to.to_owned())];
        run.instance().set(Kind::Source, "video", &changes).unwrap().wait().unwrap();
    };
    direct("c");
    let error = remove(run.instance(), &["c"]).unwrap_err().to_string();
    assert!(error.starts_with("source \"video\" sends to \"c\", which would not be there"), "{error}");
    longwire_scenario::parse("saved.toml", &run.instance().scenario().unwrap()).unwrap();
    direct("b");
    remove(run.instance(), &["c"]).unwrap();
    longwire_scenario::parse("saved.toml", &run.instance().scenario().unwrap()).unwrap();
    run.stop();
}

#[test]
fn totals_count_the_ports_that_are_there() {
    let third = "[[port]]\nname = \"c\"\ndriver = \"source\"\naddresses = \"10.0.1.3\"\n";
    let run = start("counted", &format!("{third}{TWO_PORTS}"), RealOptions::default());
    let ports = || run.instance().summary().unwrap().objects["ports"];
    assert_eq!(ports(), 3);
    remove(run.instance(), &["c"]).unwrap();
    assert_eq!(ports(), 2);
    run.stop();
}
