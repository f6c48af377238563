//! The file with the key shared by operators and an instance.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A key is at most 128 digits.
const LONGEST: u64 = 4096;

/// Reads a key file that only its owner can access, who must be this user or root.
///
/// # Errors
/// The fault and its fix.
pub fn read_key_file(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let can_t = |error: std::io::Error| format!("can't read {shown}: {error}");
    // Opening a FIFO would wait for a writer.
    if !std::fs::metadata(path).map_err(can_t)?.is_file() {
        return Err(format!("{shown} is not a regular file; make a key with: longwire nesp key FILE"));
    }
    let file = File::open(path).map_err(can_t)?;
    let found = file.metadata().map_err(can_t)?;
    if found.mode() & 0o077 != 0 {
        let mode = found.mode() & 0o777;
        return Err(format!("others can read or write {shown} (mode {mode:03o}); run: chmod 600 {shown}"));
    }
    let own = std::fs::metadata("/proc/self").map_err(can_t)?.uid();
    if ![own, 0].contains(&found.uid()) {
        return Err(format!("{shown} belongs to user {}; run: chown {own} {shown}", found.uid()));
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).map_err(can_t)?;
    Ok(text)
}
