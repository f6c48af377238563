//! Sweeps: a scenario run in virtual time for many values of its settings, with a row of results for each
//! task.
//!
//! A [`Sweep`] is read from a file and numbers its tasks, each of which is one value of every axis and a
//! seed. [`run_in_order`] executes tasks on threads, [`RowFile`] keeps their rows and knows which tasks are
//! done, and [`RowTable`] reads rows back.
#![forbid(unsafe_code)]

mod axis;
mod fault;
mod file;
mod line;
mod range;
mod result;
mod row_file;
mod table;
mod task;
mod tasks;
mod threads;

pub use fault::SweepFault;
pub use line::Line;
pub use row_file::RowFile;
pub use table::RowTable;
pub use task::Task;
pub use tasks::{Selection, Sweep};
pub use threads::run_in_order;
