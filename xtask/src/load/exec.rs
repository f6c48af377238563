//! `longwire exec` around a command that does nothing: what each call of a script waits for its link.

use super::{Load, times_row};
use anyhow::{Context, Result, ensure};
use longwire_report::Row;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a call may take.
const AT_MOST: Duration = Duration::from_millis(150);
const CALLS: u32 = 20;

pub(super) fn rows(load: &Load<'_>) -> Result<Vec<Row>> {
    // The first loads the program from the disk.
    call(load)?;
    let times = (0..CALLS).map(|_| call(load)).collect::<Result<Vec<_>>>()?;
    Ok(vec![times_row("exec: --delay 20ms -- true", &times, 95, AT_MOST)])
}

fn call(load: &Load<'_>) -> Result<Duration> {
    let begin = Instant::now();
    let status = Command::new(load.binary)
        .args(["exec", "--delay", "20ms", "--", "true"])
        .stderr(Stdio::null())
        .status()
        .context("starting longwire exec")?;
    ensure!(status.success(), "longwire exec: {status}");
    Ok(begin.elapsed())
}
