//! A recording of a run in real time, replayed in virtual time.

use longwire_control::{Instance, RowFilter};
use longwire_port::driver::pcap::start_of;
use longwire_run::port_files::{PortFile, PortFiles};
use longwire_run::real_run::{RealOptions, RealRun};
use longwire_run::records::RecordOptions;
use longwire_run::rotation::{FileMaker, Rotation};
use longwire_run::virtual_run::simulate;
use longwire_scenario::Plan;
use pcap_file::pcap::PcapReader;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A link whose delay grows from 0.1 s after the start on, by 4 ms in 20 ms.
const LINK: &str = r#"
[[port]]
name = "a"
driver = "source"
addresses = "10.0.1.1"

[[port]]
name = "b"
driver = "source"
addresses = "10.0.1.2"

[[link]]
name = "l"
from = "a"
to = "b"
delay = "1 ms"

[[at]]
time = "100 ms"
link = "l"
ramp = "20 s"
step = "10 ms"
delay = "4001 ms"
"#;

/// Packets that come meanwhile, and none before.
const SOURCE: &str = r#"
[[source]]
name = "s"
from = "a"
to = "b"
start = "200 ms"
interval = "20 ms"
packets = 10
"#;

fn plan(text: &str) -> Plan {
    longwire_scenario::parse("replay.toml", text).unwrap()
}

fn folder(what: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("longwire-{what}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn at_port(port: &str, file: &Path) -> PortFile {
    PortFile { port: port.into(), file: file.into() }
}

/// Records a run until port b has sent all packets.
fn record(what: &str, record: &Path, maker: FileMaker, out: &Path) {
    let plan = plan(&format!("{LINK}{SOURCE}"));
    let files = Some(PortFiles::new(&plan, &[], &[at_port("b", out)]).unwrap());
    let records = RecordOptions { record: Some(record.into()), maker, ..RecordOptions::default() };
    let name = format!("t{}-{what}", std::process::id());
    let run = RealRun::start(plan, None, RealOptions { name, files, records, ..RealOptions::default() });
    let run = run.unwrap();
    let sent = || {
        let stats = run.instance().stats(&RowFilter::default()).unwrap();
        let rows = stats["rows"].as_array().unwrap();
        let port = rows.iter().find(|row| row["name"] == "b" && row["kind"] == "port");
        port.unwrap_or_else(|| panic!("{stats:#}"))["out_frames"].as_u64().unwrap()
    };
    while sent() < 10 {
        std::thread::yield_now();
    }
    let ended = run.stop();
    assert!(ended.counted.errors.is_empty(), "{:?}", ended.counted.errors);
}

/// The times of the packets in a file after the first of them.
fn times(file: &Path) -> Vec<Duration> {
    let mut reader = PcapReader::new(File::open(file).unwrap()).unwrap();
    let all = std::iter::from_fn(|| reader.next_packet().map(|packet| packet.unwrap().timestamp()));
    let all: Vec<Duration> = all.collect();
    all.iter().map(|time| *time - all[0]).collect()
}

/// Changes of the scenario meet the same packets, though the first comes long after the start.
#[test]
fn a_replay_begins_with_the_run_and_not_with_the_first_packet() {
    let folder = folder("replay");
    let (arrivals, real, replayed) =
        (folder.join("all.pcapng"), folder.join("real.pcap"), folder.join("replayed.pcap"));
    record("replay", &arrivals, FileMaker::default(), &real);
    let plan = plan(LINK);
    let inputs = [at_port("a", &arrivals), at_port("b", &arrivals)];
    let files = PortFiles::new(&plan, &inputs, &[at_port("b", &replayed)]).unwrap();
    let ran = simulate(&Arc::new(plan), &files, None, RecordOptions::default()).unwrap();
    let (real, replayed) = (times(&real), times(&replayed));
    fs::remove_dir_all(&folder).unwrap();
    assert!(ran.counted.errors.is_empty(), "{:?}", ran.counted.errors);
    assert_eq!(real.len(), 10);
    // The delay grows from packet to packet.
    assert!(real[1] > Duration::from_millis(22), "{real:?}");
    assert_eq!(real, replayed);
}

#[test]
fn each_rotated_file_names_the_start_of_the_run() {
    let folder = folder("replay-rotated");
    let arrivals = folder.join("all.pcapng");
    let rotation = Some(Rotation { size: 1, files: 3 });
    record("rotated", &arrivals, FileMaker { rotation, ..FileMaker::default() }, &folder.join("out.pcap"));
    let starts = ["all.pcapng", "all.1.pcapng", "all.2.pcapng"]
        .map(|name| start_of(&folder.join(name), None).unwrap().unwrap());
    fs::remove_dir_all(&folder).unwrap();
    assert!(starts[0] == starts[1] && starts[1] == starts[2], "{starts:?}");
}
