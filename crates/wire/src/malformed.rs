//! Errors of malformed headers.

use thiserror::Error;

/// A header that can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// The bytes end within the header.
    #[error("{header} header: it needs {needed} bytes, {present} are there")]
    Short {
        /// Which header.
        header: &'static str,
        /// Bytes required.
        needed: usize,
        /// Bytes there are.
        present: usize,
    },
    /// A field has an invalid value.
    #[error("{header} header: {field} is {value}, it must be {wanted}")]
    Field {
        /// Which header.
        header: &'static str,
        /// Which field.
        field: &'static str,
        /// The value found.
        value: u32,
        /// What may stand there.
        wanted: &'static str,
    },
}

/// Splits the fixed part of a header off the front of `bytes`.
#[inline]
pub(crate) fn split<'a, const N: usize>(
    bytes: &'a [u8],
    header: &'static str,
) -> Result<(&'a [u8; N], &'a [u8]), Malformed> {
    bytes.split_first_chunk::<N>().ok_or(Malformed::Short { header, needed: N, present: bytes.len() })
}

/// Splits the variable part of a header, `len` bytes, off the front of what follows the `fixed` bytes.
#[inline]
pub(crate) fn options<'a>(
    rest: &'a [u8],
    len: usize,
    fixed: usize,
    header: &'static str,
) -> Result<(&'a [u8], &'a [u8]), Malformed> {
    let short = Malformed::Short { header, needed: fixed + len, present: fixed + rest.len() };
    rest.split_at_checked(len).ok_or(short)
}

/// The big-endian number at `AT`. An offset outside the array does not compile.
#[inline]
pub(crate) fn be16<const AT: usize, const N: usize>(bytes: &[u8; N]) -> u16 {
    const { assert!(AT + 2 <= N) };
    u16::from_be_bytes([bytes[AT], bytes[AT + 1]])
}

/// The big-endian number at `AT`. An offset outside the array does not compile.
#[inline]
pub(crate) fn be32<const AT: usize, const N: usize>(bytes: &[u8; N]) -> u32 {
    const { assert!(AT + 4 <= N) };
    u32::from_be_bytes([bytes[AT], bytes[AT + 1], bytes[AT + 2], bytes[AT + 3]])
}

/// The `M` bytes at `AT`. An offset outside the array does not compile.
#[inline]
pub(crate) fn part<const AT: usize, const M: usize, const N: usize>(bytes: &[u8; N]) -> [u8; M] {
    const { assert!(AT + M <= N) };
    std::array::from_fn(|at| bytes[AT + at])
}
