//! Settings that are one of several words.

/// A choice of words. Implemented by `#[derive(Choice)]` for an enum: the words are the variants' names, with
/// hyphens.
pub trait Choice: Copy + Sized + 'static {
    /// The words.
    const WORDS: &'static [&'static str];
    /// The variants, in the same order.
    const ALL: &'static [Self];
}

impl Choice for bool {
    const WORDS: &'static [&'static str] = &["no", "yes"];
    const ALL: &'static [Self] = &[false, true];
}
