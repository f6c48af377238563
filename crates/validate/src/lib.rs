//! The papers' tables and figures beside Longwire's own measurements.
//!
//! Each paper is a list of rows, grouped by its tables and figures. A row has the paper's value and its pass
//! criterion; the value under "ours" is measured by the run that prints it, or the row says why it was not.
//! Experiments run on real ports, between test hosts, and in virtual time, where they are exact.
#![forbid(unsafe_code)]

mod book;
mod cbcs;
mod chances;
mod ends;
mod experiment;
mod flooding;
pub mod html;
mod kinds;
mod linkem;
mod memory;
mod meter;
mod osaka;
pub mod plot;
mod princeton;
mod seeds;
mod table;
mod trust;

pub use book::Findings;
pub use longwire_bench::world::Driver;
pub use table::print_table;

use book::Book;
use std::sync::atomic::{AtomicBool, Ordering};

/// A paper whose tables and figures are reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paper {
    /// "High capacity network link emulation using network processors", University of Utah, 2004, chapter 5.
    Linkem,
    /// "Realizing a network emulator system with Intel IXP1200 network processor", Osaka University.
    Osaka,
    /// "A scheduler architecture for Intel's IXP2400 network processor", University of New South Wales, 2005,
    /// section 5.
    Cbcs,
    /// "Building a robust software-based router using network processors", Princeton University, SOSP 2001.
    Princeton,
}

/// Settings of a reproduction.
pub struct Settings<'a> {
    /// The driver of real ports.
    pub driver: Driver,
    /// In virtual time instead of on real ports.
    pub simulate: bool,
    /// Shorter, with fewer packets: shows that it works, not how exact it is.
    pub quick: bool,
    /// As long as in the papers, even where less would do.
    pub full: bool,
    /// Seed of losses.
    pub seed: u64,
    /// Only rows whose names contain one of these texts; all if empty.
    pub only: &'a [String],
    /// Only lists the rows.
    pub list: bool,
    /// Receives progress: the row, its number, and their total.
    pub say: &'a (dyn Fn(&str) + Sync),
    /// Stops the run soon after it is set.
    pub stop: &'a AtomicBool,
}

impl Paper {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linkem => "linkem",
            Self::Osaka => "osaka",
            Self::Cbcs => "cbcs",
            Self::Princeton => "princeton",
        }
    }

    /// Author and title.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Linkem => {
                "High Capacity Network Link Emulation Using Network Processors (LinkEM), University of Utah, \
                 2004"
            }
            Self::Osaka => {
                "Realizing a Network Emulator System with Intel IXP1200 Network Processor, Osaka University"
            }
            Self::Cbcs => {
                "A Scheduler Architecture for Intel's IXP2400 Network Processor (CBCS), University of New \
                 South Wales, UNSW-CSE-TR-0505, 2005"
            }
            Self::Princeton => {
                "Building a Robust Software-Based Router Using Network Processors, Princeton University, \
                 SOSP 2001"
            }
        }
    }

    /// Whether it is reproduced in virtual time only.
    pub const fn is_virtual(self) -> bool {
        matches!(self, Self::Cbcs)
    }

    /// Whether its traffic crosses real ports, between test hosts.
    pub const fn has_hosts(self) -> bool {
        matches!(self, Self::Linkem | Self::Osaka)
    }
}

/// Measures the rows of `paper` in its order, and draws its figures. A row that fails or can't be measured
/// says why; it does not end the run.
pub fn run(paper: Paper, settings: &Settings<'_>) -> Findings {
    let wanted = if settings.list { 0 } else { wanted(paper, settings) };
    let mut book = Book::new(settings, wanted);
    fill(paper, &mut book);
    book.close()
}

/// Whether this program calls [`play_stage`] at its start. One that does not, such as a test, would run as a
/// whole instead.
static PLAYS_STAGES: AtomicBool = AtomicBool::new(false);

/// Runs one part of an experiment if this process was started to count its instructions; returns false
/// otherwise.
pub fn play_stage() -> bool {
    PLAYS_STAGES.store(true, Ordering::Relaxed);
    linkem::play_task() || princeton::play_stage()
}

/// Number of requested rows.
fn wanted(paper: Paper, settings: &Settings<'_>) -> usize {
    let list = Settings { list: true, ..*settings };
    let mut book = Book::new(&list, 0);
    fill(paper, &mut book);
    book.wanted()
}

fn fill(paper: Paper, book: &mut Book<'_>) {
    match paper {
        Paper::Linkem => linkem::all(book),
        Paper::Osaka => osaka::all(book),
        Paper::Cbcs => cbcs::all(book),
        Paper::Princeton => princeton::all(book),
    }
}
