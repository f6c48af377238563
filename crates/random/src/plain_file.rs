//! Opening the files that settings name.

use std::fs::{self, File};
use std::path::Path;

/// Opens a regular file. Anything else is refused before it is opened: opening a FIFO waits for a writer.
///
/// # Errors
/// It is missing, can't be read, or is not a regular file.
pub(crate) fn open(path: &Path) -> Result<File, String> {
    let about = fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("not a plain file".into());
    }
    File::open(path).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use crate::process::spec;
    use crate::quantile::Times;
    use longwire_block::Values;
    use std::process::Command;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn a_fifo_without_a_writer_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
        let (said, heard) = channel();
        std::thread::spawn(move || {
            let times = Times::parse("pipe", folder.path()).map(drop);
            let packets = Values::read_in(spec("replay").unwrap(), &[("file", "pipe")], folder.path());
            said.send([times, packets.map(drop).map_err(|error| error.to_string())])
        });
        for refused in heard.recv_timeout(Duration::from_secs(60)).expect("it waits for a writer") {
            let error = refused.unwrap_err();
            assert!(error.contains("pipe") && error.contains("not a plain file"), "{error}");
        }
    }
}
