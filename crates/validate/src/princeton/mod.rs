//! The tables and figures of the Princeton paper, and its experiments on robustness, in its order.
//!
//! Parts of the paper's system that Longwire lacks are only here: queues between input and output workers,
//! lossy ones included, and the circular pool of packet buffers. All the rest are Longwire's own router,
//! programs and levels, from memory to memory, and finally between real ports.

mod blocks;
mod budget;
mod callgrind;
mod circles;
mod classifier;
mod floods;
mod forwarders;
mod install;
mod levels;
mod queue;
mod real;
mod robust;
mod stage;
mod stages;
mod table_1;
mod together;

pub(crate) use callgrind::{STAGE, counted_between};
pub use stages::play_stage;

use crate::Settings;
use crate::book::Book;
use longwire_bench::{BenchError, latency};
use longwire_program::{Program, VerifiedProgram, verify};
use longwire_report::Row;

/// All of them.
pub(crate) fn all(book: &mut Book<'_>) {
    table_1::rows(book);
    circles::rows(book);
    stages::rows(book);
    levels::rows(book);
    blocks::rows(book);
    forwarders::rows(book);
    budget::rows(book);
    classifier::rows(book);
    install::rows(book);
    robust::rows(book);
    floods::rows(book);
    real::rows(book);
}

/// The nanoseconds that `measure` returns, and the row with them in cycles of this machine.
pub(crate) fn in_cycles(
    settings: &Settings<'_>,
    row: Row,
    measure: impl FnOnce() -> f64,
) -> Result<(f64, Row), BenchError> {
    settings.require_real_time("speed")?;
    settings.go_on()?;
    let ns = measure();
    Ok((ns, row.measured((ns * clock()? / 1e9).round()).extra("ns", ns)))
}

/// The row of a read from this many bytes of memory, in cycles.
pub(crate) fn memory_read(settings: &Settings<'_>, row: Row, bytes: usize) -> Result<Row, BenchError> {
    let (ns, row) = in_cycles(settings, row, || latency::latency(bytes))?;
    Ok(row.note(format!("{ns:.1} ns, each read waiting for the one before")))
}

/// This program, if the verifier accepts it.
fn verified(program: Program) -> Result<VerifiedProgram, BenchError> {
    verify(program).map_err(|error| BenchError::failed("verifying", error))
}

/// Clock rate of this machine's first processor, as reported by the system.
pub(crate) fn clock() -> Result<f64, BenchError> {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    megahertz(&text)
        .map(|megahertz| megahertz * 1e6)
        .ok_or_else(|| BenchError::not_here("the system does not tell how fast the processor's clock is"))
}

fn megahertz(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("cpu MHz"))?;
    line.split(':').nth(1)?.trim().parse().ok().filter(|megahertz| *megahertz > 0.0)
}

#[cfg(test)]
mod tests {
    use super::megahertz;

    #[test]
    fn the_clock_is_read_from_what_the_system_says() {
        assert_eq!(megahertz("processor\t: 0\ncpu MHz\t\t: 2445.430\ncache size\t: 512 KB\n"), Some(2445.43));
        assert_eq!(megahertz("processor\t: 0\n"), None);
    }
}
