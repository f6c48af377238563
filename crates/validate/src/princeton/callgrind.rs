//! Counts this program's instructions with valgrind, in another process.

use crate::Settings;
use longwire_bench::BenchError;
use std::process::{Command, Stdio};

/// Environment variable that tells a process of this program which stage to run, and for how many bursts.
pub(crate) const STAGE: &str = "LONGWIRE_VALIDATE_STAGE";

/// Counts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallgrindCounts {
    pub instructions: u64,
    /// Memory reads and writes; 0 unless requested.
    pub reads: u64,
    pub writes: u64,
}

impl CallgrindCounts {
    /// The counts beyond those of `other`.
    pub(crate) fn less(self, other: Self) -> Self {
        Self {
            instructions: self.instructions.saturating_sub(other.instructions),
            reads: self.reads.saturating_sub(other.reads),
            writes: self.writes.saturating_sub(other.writes),
        }
    }
}

/// Counts the difference between two runs of a stage, a shorter and a longer one: what is done once is in
/// both. `stage` makes its text from each number.
///
/// # Errors
/// If the tool is missing, or can't run this program, or the run is stopped.
pub(crate) fn counted_between(
    settings: &Settings<'_>,
    options: &[&str],
    [few, many]: [u64; 2],
    stage: impl Fn(u64) -> String,
) -> Result<CallgrindCounts, BenchError> {
    let count = |number| {
        settings.go_on()?;
        counted(&stage(number), options)
    };
    let few = count(few)?;
    Ok(count(many)?.less(few))
}

/// Runs the stage `text` in a process of this program under callgrind.
fn counted(text: &str, options: &[&str]) -> Result<CallgrindCounts, BenchError> {
    let program = std::env::current_exe().map_err(BenchError::system("finding this program"))?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(options)
        .arg(program)
        .env(STAGE, text)
        .stdin(Stdio::null())
        .output()
        .map_err(|_| BenchError::not_here("there is no valgrind, which counts instructions"))?;
    collected(&String::from_utf8_lossy(&output.stderr))
        .ok_or_else(|| BenchError::not_here("valgrind does not count this program's instructions"))
}

/// Callgrind's totals: instructions, and data reads and writes if it simulated memory.
fn collected(said: &str) -> Option<CallgrindCounts> {
    let line = said.lines().find_map(|line| line.split_once("Collected :"))?;
    let mut numbers = line.1.split_ascii_whitespace().map(|number| number.parse().ok());
    let instructions = numbers.next()??;
    let mut next = || numbers.next().flatten().unwrap_or(0);
    Some(CallgrindCounts { instructions, reads: next(), writes: next() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_what_valgrind_says() {
        let said =
            "==7== \n==7== Events    : Ir\n==7== Collected : 4711\n==7== \n==7== I   refs:      4,711\n";
        assert_eq!(collected(said), Some(CallgrindCounts { instructions: 4711, reads: 0, writes: 0 }));
        let said = "==7== Events    : Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\n\
            ==7== Collected : 30 20 10 1 2 3 4 5 6\n";
        assert_eq!(collected(said), Some(CallgrindCounts { instructions: 30, reads: 20, writes: 10 }));
        assert_eq!(collected("valgrind: no such tool"), None);
    }
}
