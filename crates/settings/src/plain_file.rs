//! Reading the files that settings name.

use std::fs::{self, File};
use std::io::{Error, Read, Result};
use std::path::Path;

/// Opens a regular file. Anything else is refused before it is opened: opening a FIFO waits for a writer.
///
/// # Errors
/// It is missing, can't be read, or is no regular file.
pub fn open(path: &Path) -> Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(Error::other("it is not a plain file"));
    }
    File::open(path)
}

/// The contents of a regular file of at most `longest` bytes.
///
/// # Errors
/// As [`open`], or it is longer.
pub fn bytes_of(path: &Path, longest: u64) -> Result<Vec<u8>> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    let mut is_longer = file.metadata()?.len() > longest;
    if !is_longer {
        // One byte above the limit: it may have grown, and not every file knows its length.
        file.take(longest + 1).read_to_end(&mut bytes)?;
        is_longer = bytes.len() as u64 > longest;
    }
    if is_longer {
        return Err(Error::other(format!("it is longer than {longest} bytes")));
    }
    Ok(bytes)
}

/// The text of such a file, without the byte order mark that some editors put before it: a line that begins
/// with one would be taken for a heading.
///
/// # Errors
/// As [`bytes_of`], or it is not UTF-8.
pub fn text_of(path: &Path, longest: u64) -> Result<String> {
    const MARK: char = '\u{feff}';
    let text = String::from_utf8(bytes_of(path, longest)?);
    let mut text = text.map_err(|_| Error::other("it is not text in UTF-8"))?;
    if text.starts_with(MARK) {
        text.drain(..MARK.len_utf8());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // Opened, it would be an empty file.
        let refused = bytes_of(Path::new("/dev/null"), 100).unwrap_err().to_string();
        assert!(refused.contains("not a plain file"), "{refused}");
    }
}
