//! Times and lengths of the frames in a capture.

use super::replay::{MOST_BYTES, Packets};
use crate::frames::read_frames;
use longwire_settings::plain_file;
use std::path::Path;

/// Most packets kept, at 16 bytes each.
const MOST: usize = 1 << 26;

/// Reads a pcap or pcapng file.
///
/// # Errors
/// It can't be read, has another format, is damaged, or has too many frames or none.
pub(super) fn read(path: &Path) -> Result<Packets, String> {
    let named = |what: String| format!("{}: {what}", path.display());
    let file = plain_file::open(path).map_err(|error| named(error.to_string()))?;
    let mut list = Vec::new();
    let read = read_frames(file, &mut |frame| {
        if list.len() == MOST {
            return Err(format!("it has more than {MOST} packets; cut it into pieces"));
        }
        // A frame beyond the maximum length was merged from several: it is as long as a packet can be.
        list.push((frame.time, frame.original.clamp(1, MOST_BYTES)));
        Ok(())
    });
    match read {
        Ok(()) if list.is_empty() => Err(named("there is no packet in it".into())),
        Ok(()) => Ok(Packets::new(list)),
        Err(error) => Err(named(error.to_string())),
    }
}
