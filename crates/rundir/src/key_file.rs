//! Files with a key that is shared by several machines, or by operators and an instance.

use crate::own_uid;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A key is at most 128 digits.
const LONGEST: u64 = 4096;

/// Reads a key file that only its owner can access, who must be this user or root.
///
/// # Errors
/// The fault and its fix.
pub fn read_key_file(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let can_t = |error: io::Error| format!("can't read {shown}: {error}");
    // Opening a FIFO would wait for a writer.
    if !std::fs::metadata(path).map_err(can_t)?.is_file() {
        return Err(format!(
            "{shown} is no regular file; make a key with: longwire nesp key FILE, or longwire tunnel key FILE"
        ));
    }
    let file = File::open(path).map_err(can_t)?;
    let found = file.metadata().map_err(can_t)?;
    if found.mode() & 0o077 != 0 {
        let mode = found.mode() & 0o777;
        return Err(format!("others can read or write {shown} (mode {mode:03o}); run: chmod 600 {shown}"));
    }
    let own = own_uid();
    if ![own, 0].contains(&found.uid()) {
        return Err(format!("{shown} belongs to user {}; run: chown {own} {shown}", found.uid()));
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).map_err(can_t)?;
    Ok(text)
}

/// Makes a key file that only its owner can access.
///
/// # Errors
/// It exists already, or can't be written.
pub fn make_key_file(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// Random bytes of the system.
///
/// # Errors
/// The system has none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| io::Error::new(error.kind(), format!("/dev/urandom: {error}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_for_its_owner_only() {
        let path = std::env::temp_dir().join(format!("longwire-key-file-{}", std::process::id()));
        make_key_file(&path, "00\n").unwrap();
        assert_eq!(read_key_file(&path).as_deref(), Ok("00\n"));
        assert!(make_key_file(&path, "11\n").is_err(), "an existing key is not changed");
        set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let error = read_key_file(&path).unwrap_err();
        assert!(error.contains("mode 640") && error.contains("chmod 600"), "{error}");
        std::fs::remove_file(&path).unwrap();
        assert!(read_key_file(&path).unwrap_err().starts_with("can't read"));
        assert!(read_key_file(&std::env::temp_dir()).unwrap_err().contains("no regular file"));
    }

    #[test]
    fn random_bytes_differ() {
        assert_ne!(random::<32>().unwrap(), random::<32>().unwrap());
    }
}
