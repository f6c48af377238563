//! Kinds of blocks that a paper needs.

use longwire_bench::BenchError;

/// Checks that links support this kind of block.
///
/// # Errors
/// If there is no such block.
pub(crate) fn require(key: &str, kind: &str) -> Result<(), BenchError> {
    if longwire_link::registry().iter().any(|spec| (spec.key, spec.kind) == (key, kind)) {
        return Ok(());
    }
    Err(BenchError::NotHere(format!("no such block yet: {key} of kind {kind}")))
}
