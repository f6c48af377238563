//! Kinds of blocks that a paper needs, as far as this version has them.

use longwire_bench::BenchError;

/// Whether a link can have a block of this kind.
///
/// # Errors
/// That there is no such block.
pub(crate) fn require(key: &str, kind: &str) -> Result<(), BenchError> {
    if longwire_link::registry().iter().any(|spec| (spec.key, spec.kind) == (key, kind)) {
        return Ok(());
    }
    Err(BenchError::NotHere(format!("no such block yet: {key} of kind {kind}")))
}
