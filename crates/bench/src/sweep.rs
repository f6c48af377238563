//! A sweep: a thousand runs of a dumbbell in virtual time, as many at once as there are processors.

use crate::files::Files;
use crate::{BenchError, Sample, Settings, processors};
use longwire_report::Row;
use longwire_sweep::{Line, Sweep, run_in_order};
use std::time::{Duration, Instant};

const RUNS: u32 = 1000;
/// Time in each run.
const LONG: Duration = Duration::from_secs(10);
/// Required time for all runs, in seconds.
const TARGET: f64 = 60.0;
/// Three hosts send to three others through a bottleneck, whose queue they fill.
const DUMBBELL: &str = r#"
[[bridge]]
name = "left"
[[bridge]]
name = "right"
[[host]]
name = "s{n}"
count = 3
address = "{10.0.0.0 + n}/24"
[[host]]
name = "r{n}"
count = 3
address = "{10.0.0.100 + n}/24"
[[link]]
name = "access-s{n}"
count = 3
between = ["s{n}", "left"]
rate = "100 Mbit/s"
delay = "1 ms"
[[link]]
name = "access-r{n}"
count = 3
between = ["r{n}", "right"]
rate = "100 Mbit/s"
delay = "1 ms"
[[link]]
name = "bottleneck"
between = ["left", "right"]
rate = "20 Mbit/s"
delay = "10 ms"
queue = "50 ms"
[[source]]
name = "flow{n}"
count = 3
from = "s{n}"
to = "r{n}"
rate = "8 Mbit/s"
poisson = true
"#;

/// The rows of this bench.
pub(crate) fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let (count, long) = (if settings.quick { RUNS / 100 } else { RUNS }, LONG.as_secs());
    let text = format!(
        "scenario = \"net.toml\"\nfor = \"{long} s\"\nseeds = {}\ncolumns = [\"dropped*\", \"source.*\"]\n\
         [axes]\nbottleneck.rate = [\"10 Mbit/s\", \"15 Mbit/s\", \"20 Mbit/s\", \"25 Mbit/s\"]\n",
        count.div_ceil(4)
    );
    let files = Files::new("sweep", [("net.toml", DUMBBELL.into()), ("sweep.toml", text)])?;
    let sweep = Sweep::load(&files.path("sweep.toml")).map_err(failed)?;
    let tasks: Vec<u64> = (0..sweep.count()).collect();
    let (threads, mut packets) = (processors(), 0);
    let times: Sample = settings.repeat(1, &format!("sweep: {} runs", tasks.len()), || {
        let begin = Instant::now();
        let count = |line: Line| {
            packets += delivered(&line)?;
            settings.go_on()
        };
        run_in_order(&tasks, threads, |task| sweep.run(task), count)?;
        Ok(begin.elapsed().as_secs_f64())
    })?;
    let name = format!("sweep: {} runs of {long} s of a dumbbell", tasks.len());
    let row = times.at_most(&name, "s", TARGET);
    let of_each = packets / (times.values().len() * tasks.len()).max(1) as u64;
    Ok(vec![row.note(format!("{threads} at a time; {of_each} packets arrive in each, in the mean"))])
}

/// Packets that arrived in a run.
fn delivered(line: &Line) -> Result<u64, BenchError> {
    if let Some(why) = line.failure() {
        return Err(failed(why));
    }
    let counters = line.columns().filter(|(column, _)| column.ends_with(".received"));
    Ok(counters.filter_map(|(_, value)| value.as_u64()).sum())
}

fn failed(reason: impl ToString) -> BenchError {
    BenchError::Tool { command: "sweep".into(), reason: reason.to_string() }
}
