//! The tables and figures of the LinkEM thesis, chapter 5, in its order.

mod bandwidth;
mod delay;
mod forwarding;
pub(crate) mod loss;
mod multiplexing;
mod tick;

use crate::book::Book;
use crate::experiment::Hosts;

/// All of them.
pub(crate) fn all(book: &mut Book<'_>) {
    let mut hosts = Hosts::default();
    bandwidth::rows(book, &mut hosts);
    delay::rows(book, &mut hosts);
    loss::rows(book, &mut hosts);
    forwarding::rows(book, &mut hosts);
    multiplexing::rows(book, &mut hosts);
    tick::rows(book);
}
