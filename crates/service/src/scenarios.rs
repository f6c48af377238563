//! The scenarios of a service: files and names.

use anyhow::Context;
use longwire_run::real_run::instance_name;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A file or folder of the command line, and its name, if given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioArg {
    name: Option<String>,
    path: PathBuf,
}

/// A scenario with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedScenario {
    /// Its name, by which `longwire ctl` finds it.
    pub name: String,
    /// The file.
    pub file: PathBuf,
}

impl FromStr for ScenarioArg {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        Ok(match text.split_once('=') {
            Some((name, path)) if is_name(name) => Self { name: Some(name.into()), path: path.into() },
            _ => Self { name: None, path: text.into() },
        })
    }
}

/// The scenarios of these files, and of all files in these folders whose names end in `.toml`.
///
/// # Errors
/// If a folder can't be read or has none, or two scenarios have the same name.
pub fn named(given: &[ScenarioArg]) -> anyhow::Result<Vec<NamedScenario>> {
    let mut all: Vec<NamedScenario> = Vec::new();
    for ScenarioArg { name, path } in given {
        for file in files(path)? {
            let name = name.clone().unwrap_or_else(|| instance_name(&file));
            if let Some(other) = all.iter().find(|other| other.name == name) {
                anyhow::bail!(
                    "{} and {} are both called \"{name}\"; give one another name: NAME={}",
                    other.file.display(),
                    file.display(),
                    file.display()
                );
            }
            all.push(NamedScenario { name, file });
        }
    }
    Ok(all)
}

fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.into()]);
    }
    let failed = || format!("can't read the folder {}", path.display());
    let entries = std::fs::read_dir(path).with_context(failed)?;
    let entries = entries.collect::<Result<Vec<_>, _>>().with_context(failed)?;
    let mut files: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    anyhow::ensure!(!files.is_empty(), "{} has no scenario: no file that ends in .toml", path.display());
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(texts: &[&str]) -> Vec<ScenarioArg> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn scenarios_have_names() {
        let all = named(&given(&["a/two-hosts.toml", "dsl=b/two-hosts.toml", "c/x=y.toml"])).unwrap();
        let names: Vec<_> = all.iter().map(|one| (&*one.name, one.file.to_str().unwrap())).collect();
        let expected =
            [("two-hosts", "a/two-hosts.toml"), ("dsl", "b/two-hosts.toml"), ("x-y", "c/x=y.toml")];
        assert_eq!(names, expected);
        let error = named(&given(&["a/x.toml", "b/x.toml"])).unwrap_err().to_string();
        assert_eq!(
            error,
            "a/x.toml and b/x.toml are both called \"x\"; give one another name: NAME=b/x.toml"
        );
    }
}
