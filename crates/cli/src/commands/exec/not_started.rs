//! The program of a command, and how commands end that could not be started.

use super::Args;
use longwire_lab::{LoopbackServices, Ports, User};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Exit status of shells when a command can't be executed, and when it is not found.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// How a command ended.
pub struct CommandEnd {
    /// Its exit code.
    pub code: u8,
    /// Why it could not be started.
    pub fault: Option<String>,
}

impl Args {
    /// What was probably meant by a command that is not there: the value of an option that takes it after =.
    pub(super) fn meant(&self, program: &str) -> String {
        let is_port = program.parse::<Ports>().is_ok() && self.localhost == Some(LoopbackServices::Listening);
        let is_file = program.ends_with(".json") && self.json.as_deref() == Some(Path::new("-"));
        match (is_port, is_file) {
            (true, _) => format!("; did you mean --localhost={program}?"),
            (_, true) => format!("; did you mean --json={program}?"),
            _ => String::new(),
        }
    }
}

/// A command and its arguments, or the user's shell.
pub fn program(command: &[OsString], shell: Option<OsString>) -> (OsString, &[OsString]) {
    match command.split_first() {
        Some((program, arguments)) => (program.clone(), arguments),
        None => (shell.unwrap_or_else(|| "/bin/sh".into()), &[]),
    }
}

/// The end of a command that could not be started, as in shells. `user` ran it, if that is another one.
pub fn not_started(program: &OsStr, user: Option<&User>, error: &io::Error) -> CommandEnd {
    let is_missing = match error.kind() {
        ErrorKind::NotFound => true,
        // What execvp(3) answers, too, if it may not search one of the folders in PATH.
        ErrorKind::PermissionDenied => !is_there(program, user),
        _ => false,
    };
    let (code, why) = match is_missing {
        true => (NOT_FOUND, "there is no such command".to_owned()),
        false => (CANNOT_RUN, error.to_string()),
    };
    let name = program.to_string_lossy();
    let name = if name.is_empty() { "\"\"".into() } else { name };
    CommandEnd { code, fault: Some(format!("{name}: {why}")) }
}

/// Whether a program that is called by its name is in a folder of PATH, as far as the user may look.
fn is_there(program: &OsStr, user: Option<&User>) -> bool {
    if program.as_encoded_bytes().contains(&b'/') {
        return true;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let look = || Ok(std::env::split_paths(&path).any(|folder| folder.join(program).is_file()));
    // Who may not look with the user's rights leaves it at the system's answer.
    user.map_or_else(look, |user| user.with_rights_to_files(look)).unwrap_or(true)
}
