//! Errors of capture files.

use longwire_random::frames::with_causes;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a capture can't be read or written to its end.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PcapError {
    /// The file can't be opened or made.
    #[error("{}: {what}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        what: String,
    },
    /// The file could not be written to its end: earlier frames are in it.
    #[error("the capture {} is incomplete: {what}", .path.display())]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// The system's error.
        what: String,
    },
    /// The file is not a capture.
    #[error("{} is no pcap or pcapng file{hint}", .path.display())]
    NoCapture {
        /// The file.
        path: PathBuf,
        /// What it may be instead.
        hint: &'static str,
    },
    /// Its link type is not Ethernet.
    #[error(
        "{}: its link type is {link_type}, but Longwire reads Ethernet only; capture on one interface, not \
         on \"any\"",
        .path.display()
    )]
    LinkType {
        /// The file.
        path: PathBuf,
        /// Its link type.
        link_type: String,
    },
    /// The file lacks the requested interface.
    #[error("{} has no interface {wanted}; it has {known}", .path.display())]
    NoInterface {
        /// The file.
        path: PathBuf,
        /// The request.
        wanted: String,
        /// The known ones.
        known: String,
    },
    /// The file is truncated or corrupt: earlier frames are good.
    #[error("{} is damaged after {frames} good frames: {what}; those are used", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Frames before the damage.
        frames: u64,
        /// Description of the damage.
        what: String,
    },
}

impl PcapError {
    /// The error of a file that can't be opened or made.
    pub(super) fn of(path: &Path, error: &dyn std::error::Error) -> Self {
        Self::File { path: path.into(), what: with_causes(error) }
    }

    /// The error of a file that can't be written any more.
    pub(super) fn incomplete(path: &Path, error: &dyn std::error::Error) -> Self {
        let mut cause = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        Self::Incomplete { path: path.into(), what: cause.to_string() }
    }
}
