//! Queries of `longwire forwarder cost` about an object.

use crate::cargo::target;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// Number of entries for maps whose source names none.
const ENTRIES: u32 = 64;

/// The release build.
pub struct Longwire(PathBuf);

/// Result for a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It loads.
    Loads {
        /// Worst-case time.
        picoseconds: u64,
        /// Maps with another number of entries than in the source: `NAME=ENTRIES`.
        maps: Vec<String>,
    },
    /// It is refused, for this reason.
    Refused(String),
    /// Not an XDP function.
    NoXdp,
}

impl Longwire {
    /// The binary of this workspace, if it is newer than the sources of these crates.
    pub fn of(root: &Path, crates: &[&str]) -> Result<Self> {
        const BUILD: &str = "cargo build --release --package longwire";
        let program = target(root).join("release/longwire");
        let Ok(built) = program.metadata().and_then(|file| file.modified()) else {
            bail!("there is no release build: {BUILD}");
        };
        for krate in crates {
            let mut sources = Vec::new();
            super::files(&root.join("crates").join(krate).join("src"), "rs", &mut sources)?;
            if let Some(newer) = newer(&sources, built)? {
                bail!("{} is newer than the release build: {BUILD}", newer.display());
            }
        }
        Ok(Self(program))
    }

    /// The functions of an object outside `.text`, or the reason why it can't be read.
    pub fn functions(&self, object: &Path) -> Result<Result<Vec<String>, String>> {
        // No function has this name, and the refusal lists the existing ones.
        let refusal = match self.cost(object, "?", &[])? {
            Ok(_) => bail!("{}: a function is called \"?\"", object.display()),
            Err(refusal) => refusal,
        };
        Ok(named(&refusal).ok_or(refusal))
    }

    /// The worst case of a function, with fewer entries in these maps, and a default number in maps that name
    /// none.
    pub fn worst_case(&self, object: &Path, function: &str, smaller: &[(&str, u32)]) -> Result<Answer> {
        let mut maps: Vec<(String, u32)> =
            smaller.iter().map(|&(name, entries)| (name.to_owned(), entries)).collect();
        loop {
            let refusal = match self.cost(object, function, &maps)? {
                Ok(cost) => {
                    let price = cost["longest_path_ps"].as_u64();
                    let picoseconds = price.context("a cost without a longest path")?;
                    let maps = maps.iter().map(|(name, entries)| format!("{name}={entries}")).collect();
                    return Ok(Answer::Loads { picoseconds, maps });
                }
                Err(refusal) => refusal,
            };
            let known = maps.len();
            if let Some(absent) = absent(&refusal) {
                maps.retain(|(name, _)| name != absent);
            } else if let Some(open) = open(&refusal) {
                maps.retain(|(name, _)| name != open);
                maps.push((open.to_owned(), ENTRIES));
            }
            if maps.len() == known {
                return Ok(judged(refusal));
            }
        }
    }

    /// The cost of a function as JSON, or the refusal.
    fn cost(&self, object: &Path, function: &str, maps: &[(String, u32)]) -> Result<Result<Value, String>> {
        let maps = maps.iter().map(|(name, entries)| format!("--map={name}={entries}"));
        let output = Command::new(&self.0)
            .args(["forwarder", "cost", "--json", "--function", function])
            .args(maps)
            .arg(object)
            .stdin(Stdio::null())
            .output()
            .context("can't start target/release/longwire")?;
        if output.status.success() {
            return Ok(Ok(serde_json::from_slice(&output.stdout)?));
        }
        Ok(Err(reason(&String::from_utf8_lossy(&output.stderr), object)))
    }
}

/// A file that was changed after this time.
fn newer(files: &[PathBuf], built: SystemTime) -> Result<Option<&PathBuf>> {
    for file in files {
        if file.metadata().and_then(|file| file.modified()).context("can't read a source")? > built {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// The reason of a refusal, without the object's path.
fn reason(text: &str, object: &Path) -> String {
    let object = object.display().to_string();
    let text = text.trim().trim_start_matches("error: ").trim_start_matches("program: ");
    text.replace(&format!("{object}: "), "").replace(&object, "the object")
}

/// The functions listed in a refusal.
fn named(refusal: &str) -> Option<Vec<String>> {
    if refusal.contains("there is none, only functions of .text") {
        return Some(Vec::new());
    }
    let (_, names) = refusal.strip_prefix("there is no program ")?.split_once("; there are ")?;
    Some(names.lines().next()?.split(", ").map(str::to_owned).collect())
}

/// The map that is missing according to a refusal.
fn absent(refusal: &str) -> Option<&str> {
    let (_, text) = refusal.split_once("there is no map ")?;
    text.split_whitespace().next()
}

/// The map without a number of entries according to a refusal.
fn open(refusal: &str) -> Option<&str> {
    let (text, _) = refusal.split_once(" has no max_entries")?;
    text.rsplit(' ').next()
}

fn judged(refusal: String) -> Answer {
    if refusal.contains("is no XDP program") { Answer::NoXdp } else { Answer::Refused(refusal) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_functions() {
        let names = named("there is no program ?; there are xdp_pass, xdp_drop").unwrap();
        assert_eq!(names, ["xdp_pass", "xdp_drop"]);
        assert_eq!(named("there is no program ?; there is none, only functions of .text"), Some(vec![]));
        assert_eq!(named("section .maps needs the types of section .BTF"), None);
    }

    #[test]
    fn a_refusal_names_the_map() {
        let text = "program f, instruction 8: map xsks_map has no max_entries: say how many";
        assert_eq!((open(text), absent(text)), (Some("xsks_map"), None));
        let text = "there is no map ch_rings whose number of entries could be said; there are none";
        assert_eq!((open(text), absent(text)), (None, Some("ch_rings")));
    }

    #[test]
    fn a_reason_has_no_path_of_this_machine() {
        let text = "error: program: /tmp/x/a.o: program f, instruction 3, a.c:7: it leaves /tmp/x/a.o\n";
        assert_eq!(
            reason(text, Path::new("/tmp/x/a.o")),
            "program f, instruction 3, a.c:7: it leaves the object"
        );
    }

    #[test]
    fn a_source_is_newer_than_the_build_before_it() {
        let files = [Path::new(env!("CARGO_MANIFEST_DIR")).join("src/main.rs")];
        let changed = files[0].metadata().unwrap().modified().unwrap();
        assert_eq!(newer(&files, changed).unwrap(), None);
        assert_eq!(newer(&files, SystemTime::UNIX_EPOCH).unwrap(), Some(&files[0]));
    }

    #[test]
    fn functions_for_other_places_are_not_counted() {
        let text = "program trace of section fentry/f is no XDP program; put it in SEC(\"xdp\")";
        assert_eq!(judged(text.into()), Answer::NoXdp);
        assert_eq!(judged("it jumps".into()), Answer::Refused("it jumps".into()));
    }
}
