//! Sweeps: a scenario run in virtual time for many values of its settings, with a row of results for each
//! task.
//!
//! A [`Sweep`] is read from a file and numbers its tasks, each of which is one value of every axis and a
//! seed. [`run_in_order`] executes tasks on threads, [`RowFile`] keeps their rows and knows which tasks are
//! done, [`TaskOutcomes`] counts them, and [`RowTable`] and [`Curves`] show rows.
#![forbid(unsafe_code)]

mod axis;
mod curves;
mod fault;
mod file;
mod line;
mod outcome;
mod range;
mod result;
mod row_file;
mod table;
mod task;
mod tasks;
mod threads;

pub use curves::{Curve, Curves};
pub use fault::SweepFault;
pub use line::Line;
pub use outcome::{DoneBefore, TaskOutcomes};
pub use row_file::RowFile;
pub use table::RowTable;
pub use task::Task;
pub use tasks::{Selection, Sweep};
pub use threads::run_in_order;
