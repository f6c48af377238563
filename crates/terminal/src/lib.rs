//! The view of a running instance on a terminal: tables of its objects, sorted and searched, with the last
//! minutes of the one that is selected, which can be changed.
//!
//! [`view`] shows whatever is a [`WatchedInstance`]: the run of this process, or another one through its API.
//! What it asks for is one page of one table, so its cost does not grow with the number of links. Questions
//! are asked on a thread of their own, so that keys are answered at once.
#![forbid(unsafe_code)]

mod app;
mod asking;
mod columns;
mod detail;
mod draw;
mod fields;
mod help;
mod history;
mod input;
mod key_input;
mod keys;
mod line_edit;
mod list;
mod screen;
mod text;
mod theme;
mod watched;

#[cfg(test)]
mod tests;

pub use app::InstanceOwner;
pub use screen::{ViewEnd, fits, view};
pub use watched::{OfProcess, WatchError, WatchedInstance};
