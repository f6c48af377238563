//! Packet logs as captures: a packet for each event, on an interface named after the link, with the event as
//! its comment. Wireshark and tshark show and filter it (`frame.comment contains "drop"`).

use super::row::{Event, NO_LINK, NO_REASON, NO_TIME, Row};
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::time::Duration;

/// The interface of events outside links.
pub const OUTSIDE: &str = "(outside links)";
/// Larger than any frame; the value that tcpdump writes.
const SNAPLEN: u32 = 262_144;
/// Bytes of a packet block besides its frame, comment and padding.
const BLOCK_BYTES: u64 = 44;

/// A capture being written.
pub struct PcapngWriter {
    writer: PcapNgWriter<BufWriter<File>>,
    interfaces: HashMap<u32, u32>,
    start_since_1970: u64,
}

impl PcapngWriter {
    /// Begins a capture.
    pub fn new(file: File, start_since_1970: u64) -> io::Result<Self> {
        let writer = PcapNgWriter::new(BufWriter::with_capacity(1 << 18, file)).map_err(io::Error::other)?;
        Ok(Self { writer, interfaces: HashMap::new(), start_since_1970 })
    }

    /// Writes a row with the bytes of its frame, and returns the length. `link` is the link's name.
    pub fn write(&mut self, row: &Row, (link, reason): (&str, &str), frame: &[u8]) -> io::Result<u64> {
        let interface_id = self.interface(row.link, link)?;
        let comment = comment(row, reason);
        let length = BLOCK_BYTES + frame.len() as u64 + comment.len() as u64;
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: Duration::from_nanos(self.start_since_1970.saturating_add(row.time)),
            original_len: row.length.max(frame.len() as u32),
            data: Cow::Borrowed(frame),
            options: vec![EnhancedPacketOption::Common(CommonOption::Comment(Cow::Owned(comment)))],
        };
        self.writer.write_block(&block.into_block()).map_err(io::Error::other)?;
        Ok(length)
    }

    /// The interface of a link, created when it is first needed.
    fn interface(&mut self, link: u32, name: &str) -> io::Result<u32> {
        let next = self.interfaces.len() as u32;
        if let Some(&known) = self.interfaces.get(&link) {
            return Ok(known);
        }
        let name = if link == NO_LINK { OUTSIDE } else { name };
        let mut interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, SNAPLEN);
        interface.options.push(InterfaceDescriptionOption::IfName(Cow::Borrowed(name)));
        interface.options.push(InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO));
        self.writer.write_block(&interface.into_block()).map_err(io::Error::other)?;
        self.interfaces.insert(link, next);
        Ok(next)
    }

    /// Flushes the buffer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.get_mut().flush()
    }
}

/// The event as text that [`super::reading`] parses.
fn comment(row: &Row, reason: &str) -> String {
    let mut text = row.event.name().to_owned();
    if row.reason != NO_REASON {
        let _ = write!(text, " {reason}");
    }
    let _ = match row.event {
        Event::Lost => write!(text, " events={} time_ns={}", row.id, row.time),
        _ => write!(text, " id={} time_ns={}", row.id, row.time),
    };
    for (name, time) in [("arrival_ns", row.arrival), ("leave_ns", row.leave)] {
        if time != NO_TIME {
            let _ = write!(text, " {name}={time}");
        }
    }
    let _ = write!(text, " queue_bytes={} segments={}", row.queue_bytes, row.segments);
    text
}
