//! Reading the files that a scenario names.

use std::fs::{self, File};
use std::io::{Error, Read, Result};
use std::path::Path;

/// The contents of a regular file of at most `longest` bytes. Anything else is refused before it is opened:
/// opening a FIFO waits for a writer.
///
/// # Errors
/// It is missing, can't be read, is no regular file, or is longer.
pub(crate) fn bytes_of(path: &Path, longest: u64) -> Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(Error::other("it is not a plain file"));
    }
    let mut bytes = Vec::new();
    // One byte above the limit, so that a longer file is refused instead of cut.
    File::open(path)?.take(longest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        return Err(Error::other(format!("it is longer than {longest} bytes")));
    }
    Ok(bytes)
}

/// The text of such a file.
///
/// # Errors
/// As [`bytes_of`], or it is not UTF-8.
pub(crate) fn text_of(path: &Path, longest: u64) -> Result<String> {
    String::from_utf8(bytes_of(path, longest)?).map_err(|_| Error::other("it is not text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_plain_files_are_read_and_long_ones_refused() {
        let file = std::env::temp_dir().join(format!("longwire-plain-{}", std::process::id()));
        for (length, is_read) in [(99, true), (100, true), (101, false)] {
            fs::write(&file, "#".repeat(length)).unwrap();
            assert_eq!(bytes_of(&file, 100).is_ok(), is_read, "{length}");
        }
        fs::write(&file, [0xff]).unwrap();
        assert!(text_of(&file, 100).unwrap_err().to_string().contains("UTF-8"));
        fs::remove_file(&file).unwrap();
        // Opened, it would wait for a writer.
        assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        let refused = bytes_of(&file, 100).unwrap_err().to_string();
        fs::remove_file(&file).unwrap();
        assert!(refused.contains("not a plain file"), "{refused}");
    }
}
