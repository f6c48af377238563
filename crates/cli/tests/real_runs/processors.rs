//! The processors of a run's threads.

use crate::Running;
use crate::support::{Folder, json};
use std::fs::{read_dir, read_to_string};
use std::ops::RangeInclusive;
use std::path::Path;

/// The name of a thread, and the processors that it may use. None if it has ended.
fn thread(status: &Path) -> Option<(String, Vec<u32>)> {
    let text = read_to_string(status).ok()?;
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_else(|| panic!("no {key} in {text}")).trim().to_owned()
    };
    let range = |part: &str| -> RangeInclusive<u32> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse().unwrap()..=last.parse().unwrap()
    };
    Some((value("Name:"), value("Cpus_allowed_list:").split(',').flat_map(range).collect()))
}

/// Where a worker is pinned to a processor, no other thread of the run uses that, if there are others.
#[test]
fn a_pinned_worker_has_its_processor_for_itself() {
    let (_, allowed) = thread(Path::new("/proc/thread-self/status")).unwrap();
    let &own = allowed.last().unwrap();
    let folder = Folder::new("pinned");
    let scenario = format!(
        "[engine]\ncpus = [{own}]\n\
         [[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.0.1\"\n\
         [[port]]\nname = \"b\"\ndriver = \"source\"\naddresses = \"10.0.0.2\"\n\
         [[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n"
    );
    let series = folder.path("series.csv");
    let more = ["--web=0", "--series", series.to_str().unwrap()];
    let run = Running::start(&folder.write("s.toml", scenario), "pinned", &more);
    // Requests are answered by threads that start for them.
    json(&run.ctl(&["stats", "--instance", &run.name, "--json"]), 0);
    let tasks = format!("/proc/{}/task", run.running.child.id());
    let status = read_dir(tasks).unwrap().map(|task| task.unwrap().path().join("status"));
    let mut threads: Vec<_> = status.filter_map(|status| thread(&status)).collect();
    // It only waits for signals, and was there before the scenario was read.
    threads.retain(|(name, _)| name != "longwire-signal");
    let workers = threads.iter().filter(|(_, cpus)| *cpus == [own]).count();
    let others = threads.iter().filter(|(_, cpus)| !cpus.contains(&own)).count();
    if allowed.len() > 1 {
        assert!(others > 5, "{threads:?}");
        assert_eq!((workers, others + workers), (1, threads.len()), "{threads:?}");
    } else {
        assert_eq!(workers, threads.len(), "{threads:?}");
    }
    run.signal("INT");
    assert_eq!(run.end().0, Some(0));
}
