//! Reads captures, one frame ahead.

use super::error::PcapError;
use longwire_packet::MAX_FRAME;
use longwire_random::frames::{CapturedFrame, FrameReader, FramesError, Select};
use longwire_units::Nanos;
use longwire_wire::l3_offset;
use pcap_file::DataLink;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Shortest valid frame: an Ethernet header.
const MIN_FRAME: usize = 14;

/// Statistics and anomalies of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InputReport {
    /// Good frames read so far, including the one ahead.
    pub frames: u64,
    /// Of these, frames truncated by the capture: they have their original length.
    pub cut_short: u64,
    /// Skipped frames longer than the MTU or the pool allows: probably trains that the capturing machine's
    /// offloads had not split yet, or had merged.
    pub oversize: u64,
    /// Length of the longest of them in bytes.
    pub largest_oversize: u32,
    /// Skipped frames without a complete Ethernet header.
    pub too_short: u64,
    /// Frames with a time before their predecessor's or the epoch, which got that time instead.
    pub backwards: u64,
}

impl InputReport {
    /// Number of skipped frames.
    pub fn refused(&self) -> u64 {
        self.oversize + self.too_short
    }
}

/// A frame in the file: its absolute time and original length; the bytes are in `Input::bytes`.
struct FileFrame {
    time: Nanos,
    original: u32,
    /// Number of bytes in the file, if they fit in the buffer.
    len: Option<usize>,
    /// What it is, if it is no Ethernet frame.
    other: Option<String>,
}

impl FileFrame {
    fn copy(frame: &CapturedFrame<'_>, bytes: &mut [u8]) -> Self {
        let place = bytes.get_mut(..frame.bytes.len());
        let len = place.map(|place| place.copy_from_slice(frame.bytes)).map(|()| frame.bytes.len());
        let other = (!frame.is_ethernet()).then(|| format!("{:?}", frame.link_type));
        Self { time: frame.time, original: frame.original, len, other }
    }
}

/// A capture being read.
pub(super) struct Input {
    path: PathBuf,
    reader: FrameReader<File>,
    epoch: Nanos,
    mtu: Option<u32>,
    bytes: Box<[u8]>,
    /// Time, original length and number of captured bytes of the frame ahead.
    ahead: Option<(Nanos, u32, usize)>,
    last: Nanos,
    report: InputReport,
    damage: Option<PcapError>,
}

/// The absolute time (since 1970) at which a capture begins: the start of the run if Longwire has recorded it
/// (see [`Recorder::note_start`](super::Recorder::note_start)), else its first frame; none if it has neither.
///
/// # Errors
/// The same as for opening it as a port.
pub fn start_of(path: &Path, select: Option<Select>) -> Result<Option<Nanos>, PcapError> {
    let input = Input::open(path, select, Nanos::ZERO, None)?;
    Ok(input.reader.run_start().or(input.ahead.map(|(time, ..)| time)))
}

/// The names of the interfaces that a pcapng file describes before its first frame, in order; unnamed ones
/// are empty. A pcap file has one unnamed interface.
///
/// # Errors
/// The file can't be opened or is not a capture.
pub fn interfaces(path: &Path) -> Result<Vec<String>, PcapError> {
    let mut reader = open(path, None)?;
    // A first frame that is damaged is no less the first one.
    let _ = reader.find(|_| Some(()));
    Ok(reader.interfaces().into_iter().map(str::to_owned).collect())
}

fn open(path: &Path, select: Option<Select>) -> Result<FrameReader<File>, PcapError> {
    let file = |what: String| PcapError::File { path: path.into(), what };
    let opened = File::open(path).map_err(|error| file(error.to_string()))?;
    FrameReader::new(opened, select).map_err(|error| match error {
        FramesError::NoCapture(hint) => PcapError::NoCapture { path: path.into(), hint },
        FramesError::Header(what) => file(what),
        other => file(other.to_string()),
    })
}

impl Input {
    /// Opens a capture and reads its first frame.
    pub(super) fn open(
        path: &Path,
        select: Option<Select>,
        epoch: Nanos,
        mtu: Option<u32>,
    ) -> Result<Self, PcapError> {
        let mut input = Self {
            path: path.into(),
            reader: open(path, select)?,
            epoch,
            mtu,
            bytes: vec![0; MAX_FRAME].into(),
            ahead: None,
            last: Nanos::ZERO,
            report: InputReport::default(),
            damage: None,
        };
        input.check_pcap()?;
        input.advance();
        match &input.damage {
            // An error at the first frame makes the whole file useless.
            Some(error @ PcapError::LinkType { .. }) => return Err(error.clone()),
            Some(_) => {}
            None if input.ahead.is_none() => input.check_selected()?,
            None => {}
        }
        Ok(input)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn report(&self) -> InputReport {
        self.report
    }

    pub(super) fn damage(&self) -> Option<&PcapError> {
        self.damage.as_ref()
    }

    /// The frame ahead: arrival time on the engine's clock, original length, and bytes.
    pub(super) fn ahead(&self) -> Option<(Nanos, u32, &[u8])> {
        self.ahead.map(|(time, original, len)| (time, original, &self.bytes[..len]))
    }

    /// Advances to the next good frame, if any.
    pub(super) fn advance(&mut self) {
        self.ahead = None;
        while self.ahead.is_none() && self.damage.is_none() {
            match self.find() {
                Ok(Some(FileFrame { other: Some(link_type), .. })) => {
                    self.damage = Some(PcapError::LinkType { path: self.path.clone(), link_type });
                }
                Ok(Some(found)) => self.accept(&found),
                Ok(None) => break,
                Err(error) => {
                    let what = match error {
                        FramesError::Damaged { what, .. } => what,
                        other => other.to_string(),
                    };
                    let (path, frames) = (self.path.clone(), self.report.frames);
                    self.damage = Some(PcapError::Damaged { path, frames, what });
                }
            }
        }
    }

    /// Accepts a frame as the one ahead if it is valid.
    fn accept(&mut self, found: &FileFrame) {
        let Some(len) = found.len else { return self.oversize(found.original) };
        if len < MIN_FRAME {
            self.report.too_short += 1;
            return;
        }
        let ip_bytes = found.original.saturating_sub(l3_offset(&self.bytes[..len]) as u32);
        if self.mtu.is_some_and(|mtu| ip_bytes > mtu) || found.original as usize > MAX_FRAME {
            return self.oversize(found.original);
        }
        let time = found.time.since(self.epoch).max(self.last);
        if self.epoch + time != found.time {
            self.report.backwards += 1;
        }
        self.last = time;
        self.report.frames += 1;
        self.report.cut_short += u64::from(found.original as usize > len);
        self.ahead = Some((time, found.original, len));
    }

    fn oversize(&mut self, original: u32) {
        self.report.oversize += 1;
        self.report.largest_oversize = self.report.largest_oversize.max(original);
    }

    fn find(&mut self) -> Result<Option<FileFrame>, FramesError> {
        let bytes = &mut self.bytes;
        self.reader.find(|frame| Some(FileFrame::copy(&frame, bytes)))
    }

    /// Checks the header of a pcap file.
    fn check_pcap(&self) -> Result<(), PcapError> {
        let Some(link_type) = self.reader.link_type() else { return Ok(()) };
        if link_type != DataLink::ETHERNET {
            return Err(PcapError::LinkType { path: self.path.clone(), link_type: format!("{link_type:?}") });
        }
        self.check_selected()
    }

    fn check_selected(&self) -> Result<(), PcapError> {
        let Some(select) = self.reader.selected().filter(|_| !self.reader.has_selected()) else {
            return Ok(());
        };
        let names = self.reader.interfaces();
        let known = match names.len() {
            _ if self.reader.link_type().is_some() => "one without a name, as every pcap file".into(),
            0 => "none".into(),
            _ => names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", "),
        };
        Err(PcapError::NoInterface { path: self.path.clone(), wanted: select.to_string(), known })
    }
}
