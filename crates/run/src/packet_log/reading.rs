//! Reads packet logs in both formats. Input is untrusted: invalid data are errors, and memory use is bounded
//! by the file's size.

use super::binary::{HEADER_BYTES, LINK_NAME, MAGIC, REASON_NAME, VERSION};
use super::pcapng::OUTSIDE;
use super::row::{Event, NO_LINK, NO_REASON, NO_TIME, ROW_BYTES, Row};
use anyhow::{Context, bail, ensure};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;
use std::rc::Rc;

/// The longest name that a record may have.
const LONGEST_NAME: u32 = 4096;

/// An entry of a log, with names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Nanoseconds since the start of the run.
    pub time_ns: u64,
    /// What happened.
    pub event: Event,
    /// The link; none outside links.
    pub link: Option<Rc<str>>,
    /// The packet's number, or the number of lost events.
    pub id: u64,
    /// Bytes of its frame, all segments together.
    pub length: u32,
    /// Segments of a train that the event concerns.
    pub segments: u16,
    /// The drop reason.
    pub reason: Option<Rc<str>>,
    /// Arrival time at the link.
    pub arrival_ns: Option<u64>,
    /// Departure time.
    pub leave_ns: Option<u64>,
    /// Bytes in the link's queue at its arrival.
    pub queue_bytes: u64,
}

/// Reads a log, in either format, and passes each entry to `then`.
///
/// # Errors
/// If the file can't be read, is not a packet log, or is damaged; entries before the damage have been passed.
/// Those of `then`.
pub fn read(path: &Path, then: &mut dyn FnMut(Entry) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let file = File::open(path).with_context(|| format!("{}", path.display()))?;
    read_input(file, path, then)
}

/// Reads the log in `input`, which is the file of this name, as [`read`] does.
///
/// # Errors
/// As those of [`read`].
pub fn read_input(
    input: impl Read,
    file: &Path,
    then: &mut dyn FnMut(Entry) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let what = || format!("{}", file.display());
    let mut input = BufReader::with_capacity(1 << 18, input);
    let mut first = [0; 8];
    let got = read_up_to(&mut input, &mut first).with_context(what)?;
    if got == 8 && first == MAGIC {
        return read_binary(&mut input, then).with_context(what);
    }
    if got >= 4 && first[..4] == [0x0a, 0x0d, 0x0d, 0x0a] {
        let input = first.chain(input);
        return read_pcapng(input, then).with_context(what);
    }
    bail!("{} is not a packet log; longwire run --log writes them", file.display())
}

/// Reads until the slice is full or the file ends, and returns the number of bytes.
fn read_up_to(input: &mut dyn Read, bytes: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while got < bytes.len() {
        match input.read(&mut bytes[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

fn read_binary(
    input: &mut dyn Read,
    then: &mut dyn FnMut(Entry) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut rest = [0; HEADER_BYTES - 8];
    ensure!(read_up_to(input, &mut rest)? == rest.len(), "the header is cut off");
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| rest[at + byte]));
    ensure!(word(0) == VERSION, "version {} of the format is unknown; this program reads {VERSION}", word(0));
    ensure!(word(4) as usize == ROW_BYTES, "its rows have {} bytes instead of {ROW_BYTES}", word(4));
    let mut links: HashMap<u32, Rc<str>> = HashMap::new();
    let mut reasons: HashMap<u8, Rc<str>> = HashMap::new();
    let mut at = HEADER_BYTES as u64;
    let mut bytes = [0; ROW_BYTES];
    loop {
        match read_up_to(input, &mut bytes)? {
            0 => return Ok(()),
            ROW_BYTES => {}
            _ => bail!("the last record, at byte {at}, is cut off"),
        }
        let (kind, reason) = (bytes[50], bytes[51]);
        if matches!(kind, LINK_NAME | REASON_NAME) {
            let length = u32::from_le_bytes([bytes[52], bytes[53], bytes[54], bytes[55]]);
            ensure!(length <= LONGEST_NAME, "the name at byte {at} has {length} bytes");
            let mut name = vec![0; length as usize];
            ensure!(read_up_to(input, &mut name)? == name.len(), "the name at byte {at} is cut off");
            let name = Rc::from(String::from_utf8_lossy(&name));
            let link = u32::from_le_bytes([bytes[44], bytes[45], bytes[46], bytes[47]]);
            _ = if kind == LINK_NAME { links.insert(link, name) } else { reasons.insert(reason, name) };
            at += ROW_BYTES as u64 + u64::from(length);
            continue;
        }
        let Some((row, data)) = Row::decode(&bytes) else {
            bail!("the record at byte {at} has the unknown event {kind}");
        };
        ensure!(data == 0, "the record at byte {at} is followed by {data} bytes instead of none");
        at += ROW_BYTES as u64;
        then(entry(&row, &links, &reasons))?;
    }
}

/// An entry from a row; a number without a name is shown as such.
fn entry(row: &Row, links: &HashMap<u32, Rc<str>>, reasons: &HashMap<u8, Rc<str>>) -> Entry {
    let link = links.get(&row.link).cloned().unwrap_or_else(|| format!("#{}", row.link).into());
    let reason = reasons.get(&row.reason).cloned().unwrap_or_else(|| format!("#{}", row.reason).into());
    let time = |time| (time != NO_TIME).then_some(time);
    Entry {
        time_ns: row.time,
        event: row.event,
        link: (row.link != NO_LINK).then_some(link),
        id: row.id,
        length: row.length,
        segments: row.segments,
        reason: (row.reason != NO_REASON).then_some(reason),
        arrival_ns: time(row.arrival),
        leave_ns: time(row.leave),
        queue_bytes: row.queue_bytes,
    }
}

fn read_pcapng(input: impl Read, then: &mut dyn FnMut(Entry) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut reader = PcapNgReader::new(input).context("it is no capture")?;
    let mut names: Vec<Rc<str>> = Vec::new();
    while let Some(block) = reader.next_block() {
        match block.context("the capture is damaged")?.0 {
            Block::SectionHeader(_) => names.clear(),
            Block::InterfaceDescription(interface) => {
                let name = interface.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(Rc::from(&**name)),
                    _ => None,
                });
                names.push(name.unwrap_or_else(|| "".into()));
            }
            Block::EnhancedPacket(packet) => {
                let entry = of_packet(&packet, &names)
                    .context("a packet has no comment of a packet log; longwire run --log writes them")?;
                then(entry)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Parses a packet's comment; none if it is not ours.
fn of_packet(packet: &EnhancedPacketBlock<'_>, names: &[Rc<str>]) -> Option<Entry> {
    let comment = packet.options.iter().find_map(|option| match option {
        EnhancedPacketOption::Common(CommonOption::Comment(comment)) => Some(&**comment),
        _ => None,
    })?;
    let mut words = comment.split(' ');
    let event = Event::of_name(words.next()?)?;
    let link = names.get(packet.interface_id as usize).filter(|name| &***name != OUTSIDE);
    let mut entry = Entry {
        time_ns: 0,
        event,
        link: link.cloned(),
        id: 0,
        length: packet.original_len,
        segments: 1,
        reason: None,
        arrival_ns: None,
        leave_ns: None,
        queue_bytes: 0,
    };
    for word in words {
        let Some((name, value)) = word.split_once('=') else {
            entry.reason = Some(word.into());
            continue;
        };
        let value: u64 = value.parse().ok()?;
        match name {
            "id" | "events" => entry.id = value,
            "time_ns" => entry.time_ns = value,
            "arrival_ns" => entry.arrival_ns = Some(value),
            "leave_ns" => entry.leave_ns = Some(value),
            "queue_bytes" => entry.queue_bytes = value,
            "segments" => entry.segments = u16::try_from(value).ok()?,
            _ => {}
        }
    }
    Some(entry)
}
