//! Inputs as they are given: files, standard input, and words of a command line.

use crate::{Format, ImportedScenario, Source};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An input that can't be read.
#[derive(Debug, Error)]
pub enum SourceError {
    /// There is no word.
    #[error("there is nothing to import; name a file, or give a command line")]
    Nothing,
    /// A word that is neither a file nor a command line.
    #[error("there is no file {0}; name one, or give a command line in quotes")]
    NoFile(String),
    /// A text that can't be read.
    #[error("{name} can't be read as text")]
    Unreadable {
        /// The file, or standard input.
        name: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A text that is too long for its format.
    #[error("{name} is longer than {longest} bytes; import a part of it")]
    TooLong {
        /// The file, or standard input.
        name: String,
        /// Most bytes.
        longest: usize,
    },
    /// A path that a scenario can't name.
    #[error("the path of {0} is not a text; write the scenario beside it")]
    Path(String),
}

impl Source {
    /// Reads inputs of `format`: existing files, `-` for standard input, and a command line of the remaining
    /// words. Files are named as from `folder`, where the scenario will be; none for the current one.
    ///
    /// # Errors
    /// If an input can't be read, or is too long.
    pub fn read(words: &[String], format: Format, folder: Option<&Path>) -> Result<Vec<Self>, SourceError> {
        let longest = format.longest();
        let first = words.first().ok_or(SourceError::Nothing)?;
        if words.len() == 1 && first == "-" {
            return Ok(vec![Self { file: None, text: bounded(io::stdin(), "standard input", longest)? }]);
        }
        if !is_readable(first) {
            let is_command = words.len() > 1 || first.contains(char::is_whitespace);
            if !is_command {
                return Err(SourceError::NoFile(first.clone()));
            }
            return Ok(vec![Self { file: None, text: command_line(words) }]);
        }
        let (files, words): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| is_readable(word));
        let mut sources = Vec::new();
        for name in files {
            let file = File::open(name).map_err(|source| unreadable(name, source))?;
            let text = bounded(file, name, longest)?;
            sources.push(Self { file: Some(seen_from(folder, name)?), text });
        }
        if !words.is_empty() {
            let words: Vec<String> = words.into_iter().cloned().collect();
            sources.push(Self { file: None, text: command_line(&words) });
        }
        Ok(sources)
    }
}

impl ImportedScenario {
    /// The names of files that the scenario may read: traces and distributions.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let values = self.scenario.lines().filter(|line| !line.starts_with('#'));
        values.flat_map(|line| {
            let parts = ["file = \"", "distribution = \""].map(|key| line.split(key).nth(1));
            parts.into_iter().flatten().filter_map(|rest| rest.split('"').next())
        })
    }

    /// Files of a command line that the scenario expects in `folder`, where they are not.
    pub fn missing_in(&self, folder: &Path) -> Vec<String> {
        let is_missing = |name: &&str| Path::new(name).is_file() && !folder.join(name).is_file();
        let mut missing: Vec<String> = self.files().filter(is_missing).map(str::to_owned).collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }
}

/// Whether a word names a file, or a pipe such as `<(command)` of a shell.
fn is_readable(word: &str) -> bool {
    fs::metadata(word).is_ok_and(|found| !found.is_dir())
}

fn unreadable(name: &str, source: io::Error) -> SourceError {
    SourceError::Unreadable { name: name.into(), source }
}

/// A file's name for use in the scenario: an absolute path if the scenario is written elsewhere.
fn seen_from(folder: Option<&Path>, name: &str) -> Result<String, SourceError> {
    if folder.is_none() {
        return Ok(name.into());
    }
    let path = std::path::absolute(name).map(PathBuf::into_os_string);
    let path = path.map_err(|source| unreadable(name, source))?;
    path.into_string().map_err(|_| SourceError::Path(name.into()))
}

/// Reads a text of limited length.
fn bounded(from: impl Read, name: &str, longest: usize) -> Result<String, SourceError> {
    let mut text = String::new();
    // One byte more than the limit, so that endless input is refused like a text that is too long.
    let read = from.take(longest as u64 + 1).read_to_string(&mut text);
    read.map_err(|source| unreadable(name, source))?;
    if text.len() > longest {
        return Err(SourceError::TooLong { name: name.into(), longest });
    }
    Ok(text)
}

/// Quotes words as one line for a shell; a single word is already a line.
fn command_line(words: &[String]) -> String {
    if let [line] = words {
        return line.clone();
    }
    let plain =
        |word: &String| !word.is_empty() && !word.contains([' ', '\t', '\n', ';', '#', '"', '\'', '\\']);
    let quoted =
        |word: &String| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Vec<Source>, SourceError> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Source::read(&words, Format::Netem, None)
    }

    #[test]
    fn words_become_a_line_again() {
        let source = |words: &[&str]| read(words).unwrap().swap_remove(0).text;
        assert_eq!(source(&["delay 1ms # x"]), "delay 1ms # x");
        assert_eq!(source(&["mm-link", "a b", "--x=\"1\""]), "mm-link 'a b' '--x=\"1\"'");
        assert!(read(&["missing.sh"]).unwrap_err().to_string().contains("there is no file"));
        assert!(matches!(read(&[]), Err(SourceError::Nothing)));
        assert_eq!(read(&["Cargo.toml"]).unwrap()[0].file.as_deref(), Some("Cargo.toml"));
        // As of a pipe that a shell makes for <(command).
        assert_eq!(read(&["/dev/null"]).unwrap()[0].text, "");
        assert!(read(&["src"]).is_err(), "a folder");
    }

    #[test]
    fn files_are_found_from_where_the_scenario_is() {
        let here = std::env::current_dir().unwrap().join("up.trace");
        assert_eq!(seen_from(None, "up.trace").unwrap(), "up.trace");
        assert_eq!(Path::new(&seen_from(Some(Path::new("folder")), "up.trace").unwrap()), here);
        let scenario = "# file = \"Cargo.toml\"\nrate = { file = \"Cargo.toml\", x = \"1\" }\n".to_owned();
        let imported = ImportedScenario { scenario, notes: Vec::new() };
        assert_eq!(imported.missing_in(Path::new("folder")), ["Cargo.toml"]);
        assert!(imported.missing_in(Path::new(".")).is_empty());
    }
}
