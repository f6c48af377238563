//! The text files of the project.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// A text file of the project.
pub struct File {
    /// Its path from the workspace's folder, with slashes.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The text files that git tracks or would track.
pub fn files(root: &Path) -> Result<Vec<File>> {
    let list = ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(list).current_dir(root).output().context("can't start git")?;
    if !output.status.success() {
        bail!("git can't list the files: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let names = String::from_utf8(output.stdout).context("a file's name is not UTF-8")?;
    let mut files = Vec::new();
    for name in names.split_terminator('\0') {
        let path = root.join(name);
        // Deleted but not yet committed, or not a plain file.
        if !path.is_file() {
            continue;
        }
        let bytes = std::fs::read(&path).with_context(|| format!("can't read {name}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(File { path: name.into(), text });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    Ok(files)
}
