//! Namespaces of others: by name, of a process, of a container.

use crate::{Namespace, path_of};
use std::path::{Path, PathBuf};
use std::process::Command;
use thiserror::Error;

/// Container managers.
const MANAGERS: [&str; 2] = ["podman", "docker"];

/// What says which namespace is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamespaceSelector {
    /// A name, as `ip netns list` shows it, or a path.
    Name(PathBuf),
    /// A process.
    Process(u32),
    /// A container of Podman or Docker, by its name or its ID.
    Container(String),
}

/// A namespace that can't be found.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct FindError(String);

/// A namespace, and how it was found.
#[derive(Debug)]
pub struct FoundNamespace {
    /// What it belongs to, in words: `container web`.
    pub name: String,
    /// The namespace.
    pub namespace: Namespace,
    path: PathBuf,
}

impl FoundNamespace {
    /// Finds a namespace.
    ///
    /// # Errors
    /// If there is none, or the container does not run.
    pub fn find(selector: &NamespaceSelector) -> Result<Self, FindError> {
        let (name, path) = match selector {
            NamespaceSelector::Name(netns) => {
                let is_name = netns.components().count() == 1 && !netns.has_root();
                let path = if is_name { path_of(&netns.to_string_lossy()) } else { netns.clone() };
                (format!("namespace {}", netns.display()), path)
            }
            NamespaceSelector::Container(id) => (format!("container {id}"), path_of_process(process_of(id)?)),
            NamespaceSelector::Process(pid) => (format!("process {pid}"), path_of_process(*pid)),
        };
        if !path.exists() {
            return Err(FindError(format!("there is no {name}")));
        }
        let namespace = Namespace::at(&path).map_err(|error| FindError(format!("{name}: {error}")))?;
        Ok(Self { name, namespace, path })
    }

    /// Whether it is still where it was found: the process or container has not ended.
    pub fn is_there(&self) -> bool {
        self.namespace.is_at(&self.path)
    }
}

fn path_of_process(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join("ns/net")
}

/// The main process of a running container.
fn process_of(id: &str) -> Result<u32, FindError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !id.starts_with(|c: char| c.is_ascii_alphanumeric()) || !id.chars().all(plain) {
        return Err(FindError(format!("\"{}\" is not a container's name or ID", id.escape_debug())));
    }
    let mut said = Vec::new();
    for manager in MANAGERS {
        let asked =
            Command::new(manager).args(["container", "inspect", "--format", "{{.State.Pid}}", id]).output();
        match asked {
            Err(error) => said.push(format!("{manager}: {error}")),
            Ok(answer) if answer.status.success() => {
                let text = String::from_utf8_lossy(&answer.stdout);
                let pid = text.trim().parse();
                let pid: u32 = pid.map_err(|error| {
                    FindError(format!("{manager} says \"{}\": {error}", text.escape_debug()))
                })?;
                if pid == 0 {
                    return Err(FindError(format!("container {id} does not run; start it first")));
                }
                return Ok(pid);
            }
            Ok(answer) => {
                let error = String::from_utf8_lossy(&answer.stderr);
                said.push(format!("{manager}: {}", error.lines().next().unwrap_or_default()));
            }
        }
    }
    Err(FindError(format!(
        "no container {id} of this user is known ({}); of another user's, give --pid with the process that \
         its manager shows",
        said.join("; ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_named() {
        let error = |selector| FoundNamespace::find(&selector).unwrap_err().to_string();
        assert_eq!(error(NamespaceSelector::Name("no-such".into())), "there is no namespace no-such");
        assert_eq!(error(NamespaceSelector::Process(u32::MAX)), "there is no process 4294967295");
        let wrong = error(NamespaceSelector::Container("--help".into()));
        assert_eq!(wrong, "\"--help\" is not a container's name or ID");
    }

    #[test]
    fn this_process_has_one() {
        let found = FoundNamespace::find(&NamespaceSelector::Process(std::process::id())).unwrap();
        assert!(found.is_there());
        assert_eq!(found.name, format!("process {}", std::process::id()));
    }
}
