//! Capture files.

use crate::{Backend, Driver, Prices};
use longwire_settings::{Grammar, Reading, Settings};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Capture files. Either may be given when the run starts.
#[derive(Debug, Settings)]
#[settings(key = "port", kind = "pcap", source = "draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng")]
pub struct Pcap {
    /// Capture file with the frames that come in.
    #[setting(grammar = CAPTURE, default = "")]
    pub input: Arc<Capture>,
    /// Capture file for the frames that go out.
    #[setting(grammar = CAPTURE, default = "")]
    pub output: Arc<Capture>,
}

/// The name of a capture, if there is one. Relative names start at the scenario's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture(pub Option<PathBuf>);

const CAPTURE: Grammar =
    Grammar { wanted: "the name of a capture file", read, examples: &["in.pcap"], form: None };

fn read(text: &str, folder: &Path) -> Reading {
    Ok(Arc::new(Capture((!text.is_empty()).then(|| folder.join(text)))))
}

/// Its row. In real time it replays its input; it costs nothing on the path of a packet.
pub const DRIVER: Driver =
    Driver { spec: Pcap::SPEC, backend: Backend::Process, host: None, prices: Prices::Free, lighter: None };
