//! Errors of a command line of `exec` that could not be parsed, as JSON where its `--json` says.

use super::Args;
use super::outputs::{Outputs, is_standard_error};
use longwire_lab::User;
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;

/// Writes an error of a command line that could not be parsed to where its `--json` says, if it is one of
/// this command and has one. Returns whether that was standard error.
pub fn write_usage_error(words: &[OsString], error: &Value) -> bool {
    let (Some(file), user) = json_file(words.get(1..).unwrap_or_default()) else { return false };
    let write = || {
        let outputs = Outputs { user: user.as_deref().map(User::find).transpose()? };
        outputs.make_for_caller(&[&Some(file.clone())])?;
        outputs.report(&file, &format!("{error:#}"))
    };
    // If a file can't be written, the error is still reported as text.
    let written: anyhow::Result<()> = write();
    written.is_ok() && is_standard_error(&file)
}

/// The file of `--json`, and the user of `--user`, among the arguments before the command that is run. The
/// word after an option that takes a value, or that there is not, is its value.
fn json_file(words: &[OsString]) -> (Option<PathBuf>, Option<String>) {
    let Some((_, words)) = words.split_first().filter(|(first, _)| *first == "exec") else {
        return (None, None);
    };
    let known = <Args as clap::Args>::augment_args(clap::Command::new("exec"));
    let is_flag = |name: &str| {
        let mut named = known.get_arguments().filter(|arg| arg.get_long() == Some(name));
        named.any(|arg| !arg.get_action().takes_values() || arg.is_require_equals_set())
    };
    // The option that the next word is the value of.
    let (mut file, mut user, mut option) = (None, None, None);
    for word in words.iter().map(|word| word.to_str().unwrap_or_default()) {
        match word.strip_prefix("--").map(|option| option.split_once('=').unwrap_or((option, ""))) {
            Some(("", _)) => break,
            Some(("json", named)) => {
                file = Some(if named.is_empty() { "-".into() } else { named.into() });
                option = None;
            }
            Some(("user", named)) if word.contains('=') => (user, option) = (Some(named.to_owned()), None),
            Some((name, _)) => option = Some(name).filter(|name| !word.contains('=') && !is_flag(name)),
            None if word.starts_with('-') => option = None,
            None => match option.take() {
                Some("user") => user = Some(word.to_owned()),
                Some(_) => {}
                None => break,
            },
        }
    }
    (file, user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_the_report_is_found_on_a_wrong_command_line() {
        let found = |line: &str| {
            let words: Vec<_> = line.split(' ').map(OsString::from).collect();
            json_file(&words).0.map(|file| file.display().to_string())
        };
        for (line, file) in [
            ("exec --rate foo --json -- true", Some("-")),
            ("exec --rate foo --json=e.json -- true", Some("e.json")),
            ("exec --dealy 5ms -v --json true", Some("-")),
            ("exec --delay -5ms --localhost --json=e.json true --json=no", Some("e.json")),
            ("exec --rate foo tool --json", None),
            ("exec --rate foo -- tool --json", None),
            ("run x --json", None),
        ] {
            assert_eq!(found(line).as_deref(), file, "{line}");
        }
    }

    #[test]
    fn the_user_is_found_on_a_wrong_command_line() {
        let found = |line: &str| json_file(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for (line, user) in [
            ("exec --user ann --rate foo --json=e.json -- true", Some("ann")),
            ("exec --rate foo --json=e.json --user=ann true", Some("ann")),
            ("exec --serve-user ann --json=e.json su --user bob", None),
        ] {
            let (file, its) = found(line);
            assert_eq!((file, its.as_deref()), (Some("e.json".into()), user), "{line}");
        }
    }
}
