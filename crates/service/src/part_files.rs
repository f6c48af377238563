//! The files of parts that an agent has received: names and sizes checked, kept while their part runs.

use anyhow::Context;
use longwire_control::AgentError;
use longwire_rundir::{Lock, prepare};
use longwire_scenario::hexadecimal;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Most files of a part.
const MOST_FILES: usize = 256;
/// Longest name of a file, with its folders.
const LONGEST: usize = 200;
/// The name of a part's scenario.
const SCENARIO: &str = "scenario.toml";

/// The files of a part, by their checked names.
pub struct PartFiles(Vec<(PathBuf, Vec<u8>)>);

impl PartFiles {
    /// The files of a request: their bytes in hexadecimal digits by their relative names.
    ///
    /// # Errors
    /// If a name leads elsewhere, there are too many, or the bytes are none.
    pub fn read(files: &BTreeMap<String, String>) -> Result<Self, AgentError> {
        let wrong = |reason| AgentError::Value { key: "files", reason };
        if files.len() > MOST_FILES {
            return Err(wrong(format!("{} files; send at most {MOST_FILES}", files.len())));
        }
        let read = files.iter().map(|(name, digits)| {
            if !is_inside(name) || name == SCENARIO {
                let fix = "use relative names of letters, digits and -_. that do not begin with a dot";
                return Err(wrong(format!("\"{}\" can't be a file here; {fix}", name.escape_debug())));
            }
            let bytes = hexadecimal(digits);
            let bytes = bytes
                .map_err(|_| wrong(format!("{name}: write its bytes as pairs of hexadecimal digits")))?;
            Ok((PathBuf::from(name), bytes))
        });
        read.collect::<Result<_, _>>().map(Self)
    }
}

/// Whether a name means a file in its folder or below, whose names are all plain.
fn is_inside(name: &str) -> bool {
    let is_plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    name.len() <= LONGEST && name.split('/').all(is_plain)
}

/// Where an agent keeps the files of its parts. They are gone when it starts again.
#[derive(Debug)]
pub struct PartFolder {
    path: PathBuf,
    /// Keeps a second agent from the same files.
    _lock: Lock,
}

impl PartFolder {
    /// The one in `folder`, which is made if missing, for this user alone.
    ///
    /// # Errors
    /// If others may use the folder, or another agent does.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let failed = || format!("the agent's directory {}", folder.display());
        prepare(folder).with_context(failed)?;
        let lock = Lock::take(&folder.join("agent.lock"))?;
        let lock = lock.with_context(|| {
            format!("another agent keeps its parts in {}: give each its own directory", folder.display())
        })?;
        let opened = Self { path: folder.join("longwire-parts"), _lock: lock };
        remove(&opened.path).with_context(failed)?;
        Ok(opened)
    }

    /// Writes a part's scenario and files, and returns the file of the scenario.
    ///
    /// # Errors
    /// If they can't be written.
    pub fn write(&self, part: &str, toml: &str, files: &PartFiles) -> io::Result<PathBuf> {
        let folder = self.path.join(part);
        remove(&folder)?;
        let scenario = folder.join(SCENARIO);
        write(&scenario, toml.as_bytes())?;
        for (name, bytes) in &files.0 {
            write(&folder.join(name), bytes)?;
        }
        Ok(scenario)
    }

    /// Removes a part's files.
    ///
    /// # Errors
    /// If they can't be removed.
    pub fn clear(&self, part: &str) -> io::Result<()> {
        remove(&self.path.join(part))
    }
}

/// Writes a file that nobody but its owner may read: it may be a key.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}

/// Removes a folder, if it is there.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn read(name: &str, digits: &str) -> Result<PartFiles, String> {
        PartFiles::read(&[(name.into(), digits.into())].into()).map_err(|error| error.to_string())
    }

    #[test]
    fn files_stay_in_their_folder() {
        for name in ["tunnel.key", "traces/lte.csv", "a/b/c-1_2.x"] {
            assert!(read(name, "00ff").is_ok(), "{name}");
        }
        for name in
            ["", "/etc/passwd", "../x", "a/../../x", "a//b", ".", "..", ".ssh", "a\0b", "ä", "a b", SCENARIO]
        {
            assert!(read(name, "").is_err_and(|error| error.contains("can't be a file here")), "{name}");
        }
        assert!(read(&"x".repeat(LONGEST + 1), "").is_err());
        assert!(read("a", "0").is_err() && read("a", "zz").is_err());
        let many = (0..=MOST_FILES).map(|number| (format!("f{number}"), String::new())).collect();
        assert!(PartFiles::read(&many).is_err());
    }

    #[test]
    fn files_are_their_owner_s_and_go_with_their_part() {
        let folder = std::env::temp_dir().join(format!("longwire-parts-{}", std::process::id()));
        let parts = PartFolder::open(&folder).unwrap();
        assert!(PartFolder::open(&folder).unwrap_err().to_string().contains("another agent"));
        let files = read("keys/tunnel.key", "6b6579").unwrap();
        let scenario = parts.write("wan", "seed = 1\n", &files).unwrap();
        assert_eq!(fs::read_to_string(&scenario).unwrap(), "seed = 1\n");
        let key = scenario.with_file_name("keys").join("tunnel.key");
        assert_eq!(fs::read(&key).unwrap(), b"key");
        assert_eq!(fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
        // A later part of the name has none of its files.
        parts.write("wan", "seed = 2\n", &PartFiles(Vec::new())).unwrap();
        assert!(!key.exists());
        drop(parts);
        let parts = PartFolder::open(&folder).unwrap();
        assert!(!scenario.exists(), "what a killed agent left");
        assert!(parts.clear("wan").is_ok());
        drop(parts);
        fs::remove_dir_all(folder).unwrap();
    }
}
