//! Walks through the code: the files that a reader opens to follow something from end to end.
//!
//! `benches/walks.toml` lists each walk as functions, `FILE::FUNCTION`, in reading order. A function must
//! exist, and the body of an earlier one must name it, unless the step gives another link (`via`: a name in
//! such a body, such as a trait's method or a table). So a walk can't skip a function, and its number of
//! files is counted, not estimated.

use crate::tidy::has_word;
use anyhow::{Context, Result, bail};
use longwire_report::{Report, Row};
use std::collections::BTreeMap;
use std::path::Path;

const WALKS: &str = "benches/walks.toml";

/// A walk as listed in the file.
#[derive(Debug)]
struct Walk {
    name: String,
    /// Maximum number of files.
    target: u64,
    steps: Vec<Step>,
}

/// A function and its file, and the link to it.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    file: String,
    function: String,
    /// A name in an earlier body that leads here, if not the function's own.
    via: Option<String>,
}

/// Counts the files of each walk. Returns false if a walk is broken, for which its row gives the reason, or
/// leads through more files than its target.
///
/// # Errors
/// If the list of walks can't be read.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<bool> {
    let json = match words {
        [] => false,
        ["--json"] => true,
        _ => bail!("cargo xtask walk takes --json only"),
    };
    let text = std::fs::read_to_string(root.join(WALKS)).with_context(|| WALKS.to_owned())?;
    let mut report = Report::new("walk");
    for walk in read(&text)? {
        let source = |file: &str| std::fs::read_to_string(root.join(file)).ok();
        let faults = walk.faults(source);
        let row = walk.row(&faults);
        let verdict = match row.pass {
            _ if !faults.is_empty() => "BROKEN",
            Some(true) => "met",
            _ => "missed",
        };
        report.push(row);
        if json {
            continue;
        }
        let files = walk.files();
        println!("{}: {} files, target {} ({verdict})", walk.name, files.len(), walk.target);
        for (file, functions) in &files {
            println!("  {file}: {}", functions.join(", "));
        }
        for fault in faults {
            println!("  BROKEN: {fault}");
        }
    }
    if json {
        println!("{}", report.to_json());
    }
    Ok(report.pass)
}

fn read(text: &str) -> Result<Vec<Walk>> {
    let table: toml::Table = text.parse().context(WALKS)?;
    let walks = table.get("walk").and_then(toml::Value::as_array).context("there is no [[walk]]")?;
    let walk = |value: &toml::Value| {
        let text = |key: &str| value.get(key).and_then(toml::Value::as_str);
        let target = value.get("target").and_then(toml::Value::as_integer);
        let steps = value.get("steps").and_then(toml::Value::as_array).context("steps is missing")?;
        Ok(Walk {
            name: text("name").context("name is missing")?.into(),
            target: target.and_then(|target| target.try_into().ok()).context("target is missing")?,
            steps: steps.iter().map(step).collect::<Result<_>>()?,
        })
    };
    walks.iter().map(walk).collect()
}

/// `FILE::FUNCTION`, or `FILE::FUNCTION via NAME`.
fn step(value: &toml::Value) -> Result<Step> {
    let text = value.as_str().context("a step is a text")?;
    let (place, via) = match text.split_once(" via ") {
        Some((place, via)) => (place, Some(via.trim().to_owned())),
        None => (text, None),
    };
    let wanted = || format!("\"{text}\" is no step: write FILE::FUNCTION");
    let (file, function) = place.trim().split_once("::").with_context(wanted)?;
    Ok(Step { file: file.into(), function: function.into(), via })
}

impl Walk {
    /// The files in the order of their first use, and the functions read in each.
    fn files(&self) -> Vec<(String, Vec<&str>)> {
        let mut files: Vec<(String, Vec<&str>)> = Vec::new();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for Step { file, function, .. } in &self.steps {
            let place = *places.entry(file).or_insert_with(|| {
                files.push((file.clone(), Vec::new()));
                files.len() - 1
            });
            files[place].1.push(function);
        }
        files
    }

    /// The number of files beside the target; a broken walk has failed.
    fn row(&self, faults: &[String]) -> Row {
        let files = self.files();
        let row = Row::new(&*self.name, "files").expected(self.target).measured(files.len() as u64);
        let row = row.extra("files", files.iter().map(|(file, _)| file.as_str()).collect::<Vec<_>>());
        match faults.first() {
            Some(fault) => row.judged(false).note(fault),
            None => row.at_most(),
        }
    }

    /// Functions that do not exist or are not linked.
    fn faults(&self, source: impl Fn(&str) -> Option<String>) -> Vec<String> {
        let mut faults = Vec::new();
        let mut read: Vec<String> = Vec::new();
        for Step { file, function, via } in &self.steps {
            let Some(text) = source(file) else {
                faults.push(format!("there is no {file}"));
                continue;
            };
            let found = bodies(&text, function);
            if found.is_empty() {
                faults.push(format!("{file} has no function {function}"));
                continue;
            }
            let named = via.as_deref().unwrap_or(function);
            if !read.is_empty() && !read.iter().any(|body| has_word(body, named)) {
                faults.push(format!("nothing that was read before {file}::{function} names {named}"));
            }
            read.extend(found);
        }
        faults
    }
}

/// The bodies of the functions of this name: from the line of the declaration to the closing line with the
/// same indentation.
fn bodies(text: &str, function: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let declares = |line: &str| {
        let declared = line.find("fn ").map(|at| &line[at + 3..]);
        declared.and_then(|rest| rest.strip_prefix(function)).is_some_and(|rest| rest.starts_with(['(', '<']))
    };
    let body = |at: usize| {
        let indent = lines[at].len() - lines[at].trim_start().len();
        let closes = |line: &str| line.trim_start() == "}" && line.len() == indent + 1;
        let end = lines[at..].iter().position(|line| closes(line)).unwrap_or(0);
        // The declaration itself contains its name.
        lines[at..=at + end].join("\n").replacen(&format!("fn {function}"), "", 1)
    };
    (0..lines.len()).filter(|&at| declares(lines[at])).map(body).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_projects_walks_lead_somewhere() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for walk in read(&std::fs::read_to_string(root.join(WALKS)).unwrap()).unwrap() {
            let faults = walk.faults(|file| std::fs::read_to_string(root.join(file)).ok());
            assert_eq!(faults, [""; 0], "{}", walk.name);
        }
    }

    const CODE: &str = "impl A \
        {\n    pub fn first(&self) {\n        self.second();\n    }\n\
        \n    fn second<T>(&self) {\n        TABLE[0](1)\n    }\n}\n";

    fn faults(steps: &[&str]) -> Vec<String> {
        let steps: Vec<_> = steps.iter().map(|step| format!("\"{step}\"")).collect();
        let text = format!("[[walk]]\nname = \"w\"\ntarget = 1\nsteps = [{}]\n", steps.join(", "));
        let walks = read(&text).unwrap();
        walks[0].faults(|file| (file == "a.rs").then(|| CODE.to_owned()))
    }

    #[test]
    fn every_function_is_named_before_it_is_read() {
        assert_eq!(faults(&["a.rs::first", "a.rs::second"]), [""; 0]);
        assert_eq!(faults(&["a.rs::second", "a.rs::first via TABLE"]), [""; 0]);
        let nothing = "nothing that was read before a.rs::first names first";
        assert_eq!(faults(&["a.rs::second", "a.rs::first"]), [nothing]);
        assert_eq!(faults(&["a.rs::sec"]), ["a.rs has no function sec"]);
        assert_eq!(faults(&["b.rs::first"]), ["there is no b.rs"]);
    }

    #[test]
    fn a_walk_that_is_broken_or_too_long_fails() {
        let text = |steps: &str| format!("[[walk]]\nname = \"w\"\ntarget = 1\nsteps = [{steps}]\n");
        let walk = &read(&text("\"a.rs::first\"")).unwrap()[0];
        assert_eq!(walk.row(&[]).pass, Some(true));
        let broken = walk.row(&["there is no a.rs".to_owned()]);
        assert_eq!((broken.pass, broken.notes.len()), (Some(false), 1));
        let long = &read(&text("\"a.rs::first\", \"b.rs::first\"")).unwrap()[0];
        assert_eq!(long.row(&[]).pass, Some(false));
    }

    #[test]
    fn files_are_counted_once() {
        let text = "[[walk]]\nname = \"w\"\ntarget = 1\nsteps = [\"a.rs::x\", \"b.rs::y\", \"a.rs::z\"]\n";
        let walk = &read(text).unwrap()[0];
        assert_eq!(walk.files(), [("a.rs".into(), vec!["x", "z"]), ("b.rs".into(), vec!["y"])]);
        for wrong in
            ["", "[[walk]]\nname = \"w\"\n", "[[walk]]\nname = \"w\"\ntarget = 1\nsteps = [\"a.rs\"]\n"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
