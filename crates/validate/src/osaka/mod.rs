//! The figures of the Osaka paper, section III, in its order; its delay; and the defect of its RED.

mod cost;
mod defect;
mod delay;
mod discipline;
mod loss;
mod sweep;

use crate::book::Book;
use crate::experiment::Hosts;

/// All of them.
pub(crate) fn all(book: &mut Book<'_>) {
    let mut hosts = Hosts::default();
    cost::rows(book, &mut hosts);
    sweep::ports(book, &mut hosts);
    sweep::input_rate(book, &mut hosts);
    loss::rows(book, &mut hosts);
    delay::rows(book);
    defect::rows(book);
}
