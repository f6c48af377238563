//! The tables and figures of the LinkEM thesis, chapters 4 and 5.

mod bandwidth;
mod delay;
mod forwarding;
pub(crate) mod loss;
mod mapping;
mod multiplexed_tcp;
mod multiplexing;
mod tasks;
mod tick;

pub(crate) use tasks::play_task;

use crate::book::Book;
use crate::experiment::Hosts;

/// All of them.
pub(crate) fn all(book: &mut Book<'_>) {
    let mut hosts = Hosts::default();
    tasks::rows(book);
    mapping::rows(book);
    bandwidth::rows(book, &mut hosts);
    delay::rows(book, &mut hosts);
    loss::rows(book, &mut hosts);
    forwarding::rows(book, &mut hosts);
    multiplexing::rows(book, &mut hosts);
    multiplexed_tcp::rows(book);
    tick::rows(book);
}
