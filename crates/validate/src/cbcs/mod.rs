//! Tables 8 to 12 and figures 9 to 13 of the CBCS paper for every scheduler, and how fairly each shares the
//! dominant resource.
//!
//! The paper leaves open what its delays depend on most: the number of packets inside, the depths of its
//! rings, its quanta. [`trial`] has the choices, and rows called "open" show the effect of others. Nothing
//! was chosen for its result: a quantum is the largest cost its scheduler can charge, and a ring holds a
//! message for each processor.

mod claim;
mod facts;
mod fair;
mod open;
mod tables;
mod trial;

use crate::book::Book;

/// All of them.
pub(crate) fn all(book: &mut Book<'_>) {
    let mut runs = trial::Runs::new(book.settings);
    claim::rows(book, &mut runs);
    tables::rows(book, &mut runs);
    facts::rows(book, &mut runs);
    fair::rows(book);
    open::rows(book);
}

/// The class of the paper's flows with this key.
fn class_of(key: u32) -> usize {
    longwire_sched::model::TABLE_7.iter().position(|class| class.flows.contains(&key)).unwrap_or(0)
}
