//! Bytes of a packet as counted by tc.

use super::Notes;
use super::stage::Stage;

/// Bytes of a packet that tc counts and the IP packet does not have: the Ethernet header.
const HEADER: i64 = 14;

/// The trailer that `framing = "atm"` adds before splitting into cells (AAL5). tc has no trailer: it counts
/// ⌈(frame + overhead) / 48⌉ cells.
const AAL5_TRAILER: i64 = 8;

/// Sets the bytes that tc counts: the frame without FCS, and an overhead.
pub(super) fn framed(line: usize, stage: &mut Stage, overhead: i64, atm: bool, notes: &mut Notes) {
    let all = overhead.saturating_add(HEADER - if atm { AAL5_TRAILER } else { 0 });
    stage.set("framing", if atm { "atm" } else { "ip" });
    match u64::try_from(all) {
        Ok(all) if all <= 1000 => stage.set("overhead", &all.to_string()),
        _ => notes.add(line, &format!("overhead {overhead}"), "a link adds 0 to 1000 bytes to the IP packet"),
    }
}
