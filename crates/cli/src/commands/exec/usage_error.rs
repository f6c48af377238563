//! Errors of a command line of `exec` that could not be parsed, as JSON where its `--json` says.

use super::Args;
use super::outputs::{Outputs, is_shared, is_standard_error};
use crate::inputs::keep_inputs;
use longwire_lab::User;
use longwire_run::named_files::named_files;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Writes an error of a command line that could not be parsed to where its `--json` says, if it is one of
/// this command and has one: never over a file that another option names, or a profile that one names.
/// Returns whether that was standard error.
pub fn write_usage_error(words: &[OsString], error: &Value) -> bool {
    let named = Named::of(words.get(1..).unwrap_or_default());
    let Some(file) = &named.report else { return false };
    let write = || {
        if !is_shared(file) {
            let others = named_files(Path::new(""), named.others.iter().map(String::as_str));
            let others: Vec<&Path> = others.iter().map(PathBuf::as_path).collect();
            keep_inputs([file], &others)?;
        }
        let outputs = Outputs { user: named.user.as_deref().map(User::find).transpose()? };
        outputs.make_for_caller(&[&named.report])?;
        outputs.report(file, &format!("{error:#}"))
    };
    // If a file can't be written, the error is still reported as text.
    let written: anyhow::Result<()> = write();
    written.is_ok() && is_standard_error(file)
}

/// What a command line names before the command that is run.
#[derive(Debug, Default)]
struct Named {
    /// The file of `--json`.
    report: Option<PathBuf>,
    /// The user of `--user`.
    user: Option<String>,
    /// The values of the other options, some of which are files.
    others: Vec<String>,
}

impl Named {
    /// Reads the arguments. The word after an option that takes a value, or that there is not, is its value.
    fn of(words: &[OsString]) -> Self {
        let mut named = Self::default();
        let Some((_, words)) = words.split_first().filter(|(first, _)| *first == "exec") else {
            return named;
        };
        let known = <Args as clap::Args>::augment_args(clap::Command::new("exec"));
        let is_flag = |name: &str| {
            let mut same = known.get_arguments().filter(|arg| arg.get_long() == Some(name));
            same.any(|arg| !arg.get_action().takes_values() || arg.is_require_equals_set())
        };
        // The option that the next word is the value of.
        let mut option = None;
        for word in words.iter().map(|word| word.to_str().unwrap_or_default()) {
            match word.strip_prefix("--").map(|option| option.split_once('=').unwrap_or((option, ""))) {
                Some(("", _)) => break,
                Some(("json", file)) => {
                    named.report = Some(if file.is_empty() { "-".into() } else { file.into() });
                    option = None;
                }
                Some((name, value)) if word.contains('=') => {
                    named.take(name, value);
                    option = None;
                }
                Some((name, _)) => option = Some(name).filter(|name| !is_flag(name)),
                None if word.starts_with('-') => option = None,
                None => match option.take() {
                    Some(name) => named.take(name, word),
                    None => break,
                },
            }
        }
        named
    }

    fn take(&mut self, option: &str, value: &str) {
        if option == "user" {
            self.user = Some(value.to_owned());
            return;
        }
        // In the settings of a direction there may be a trace.
        let settings = value.split(',').filter_map(|pair| Some(pair.split_once('=')?.1.trim()));
        self.others.extend(settings.chain([value]).map(str::to_owned));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_file_of_the_report_is_found_on_a_wrong_command_line() {
        let found = |line: &str| {
            let words: Vec<_> = line.split(' ').map(OsString::from).collect();
            Named::of(&words).report.map(|file| file.display().to_string())
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
        let found = |line: &str| Named::of(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for (line, user) in [
            ("exec --user ann --rate foo --json=e.json -- true", Some("ann")),
            ("exec --rate foo --json=e.json --user=ann true", Some("ann")),
            ("exec --serve-user ann --json=e.json su --user bob", None),
        ] {
            let Named { report, user: its, .. } = found(line);
            assert_eq!((report, its.as_deref()), (Some("e.json".into()), user), "{line}");
        }
    }

    #[test]
    fn no_file_of_another_option_is_overwritten() {
        let folder = std::env::temp_dir().join(format!("longwire-usage-error-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let [own, link, report, profile] =
            ["own", "link", "report", "profile.toml"].map(|name| folder.join(name));
        fs::write(&own, "kept").unwrap();
        fs::write(&profile, format!("rate = {{ kind = \"trace\", file = \"{}\" }}", own.display())).unwrap();
        symlink(&own, &link).unwrap();
        let write = |options: &str, file: &Path| {
            let line = format!("longwire exec {options} --rate foo --json={} -- true", file.display());
            let words: Vec<_> = line.split(' ').map(OsString::from).collect();
            write_usage_error(&words, &json!({ "error": "foo" }))
        };
        let (name, profile) = (own.display(), profile.display());
        for options in [
            format!("--profile {name}"),
            format!("--profile {profile}"),
            format!("--down profile={profile}.backward"),
            format!("--trace={name}"),
            format!("--up rate.kind=trace,rate.file={name}"),
            format!("--log={name}"),
        ] {
            for file in [&own, &link] {
                assert!(!write(&options, file), "{options}");
                assert_eq!(fs::read_to_string(&own).unwrap(), "kept", "{options}");
            }
            assert!(!write(&options, &report), "{options}");
            assert!(fs::read_to_string(&report).unwrap().contains("foo"), "{options}");
            fs::remove_file(&report).unwrap();
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
