//! `--json`: the option, and errors as JSON.

use anyhow::Error;
use clap::error::{ContextKind, ContextValue};
use longwire_control::{ClientError, Problem};
use longwire_import::ImportError;
use longwire_partition::MachinesError;
use longwire_report::output::chain;
use longwire_run::absences::Absence;
use longwire_scenario::{Finding, LoadError, ScenarioError};
use longwire_sweep::SweepFault;
use serde_json::{Map, Value, json};
use std::ffi::OsString;

/// Flag for JSON output, flattened into the arguments of every command that prints a result.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct Json {
    /// Print JSON.
    #[arg(id = "json", long = "json")]
    pub on: bool,
}

/// Whether a command line with the arguments `words` asks for JSON.
///
/// Scans the raw arguments, because an invalid command line was not parsed. Arguments after `exec` and `lab
/// exec` belong to the command that they run.
pub fn is_wanted(words: &[OsString]) -> bool {
    let starts_with =
        |command: &[&str]| words.iter().zip(command).filter(|(word, of)| word == of).count() == command.len();
    if starts_with(&["exec"]) || starts_with(&["lab", "exec"]) {
        return false;
    }
    words.iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

/// Whether errors of a command line with `--json` are objects only, without the text on standard error: those
/// of commands that keep a link up.
pub fn has_errors_as_objects_only(words: &[OsString]) -> bool {
    words.first().is_some_and(|command| command == "attach" || command == "proxy")
}

/// An error as an object.
///
/// `error` has the message. Where known, `file`, `line`, `column` and `field` give the place, `fix` the fix,
/// and `suggestion` what was probably meant. Further errors of the same scenario are in `more`.
pub fn of_error(error: &Error) -> Value {
    let text = chain(error.as_ref());
    let known = error.chain().find_map(|cause| {
        match cause.downcast_ref() {
            Some(LoadError::Invalid(invalid)) => return of_scenario(invalid),
            Some(LoadError::Unreadable { file, .. }) => return Some(Fields::new(&text).with("file", file)),
            None => {}
        }
        if let Some(MachinesError::Invalid(invalid)) = cause.downcast_ref() {
            return of_scenario(invalid);
        }
        match cause.downcast_ref() {
            Some(ClientError::Refused(problem)) => return Some(of_problem(problem)),
            Some(ClientError::NoObject { near: Some((_, near)), .. }) => {
                return Some(Fields::new(&text).with("suggestion", near));
            }
            _ => {}
        }
        if let Some(SweepFault { file, line, column, field, what, fix }) = cause.downcast_ref() {
            let fields = Fields::new(what).in_file(file, *line, *column);
            return Some(fields.with("field", field).with("fix", fix));
        }
        if let Some(imported) = cause.downcast_ref::<ImportError>() {
            let fields = Fields::new(&text).with("fix", &imported.fix);
            return Some(if imported.line > 0 { fields.at("line", imported.line) } else { fields });
        }
        cause.downcast_ref().and_then(of_scenario)
    });
    known.unwrap_or_else(|| Fields::new(&text)).finish()
}

/// A command-line error as such an object.
pub fn of_usage(error: &clap::Error) -> Value {
    let text = crate::usage::text(error);
    let mut parts = text.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    let what = parts.next().unwrap_or_default();
    let fields = Fields::new(what.trim_start_matches("error: "));
    let tip = parts.find_map(|part| part.strip_prefix("tip: ").map(str::to_owned));
    let one = |kind| match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        // The most similar one is the last.
        ContextValue::Strings(texts) => texts.last().cloned(),
        _ => None,
    };
    let first = |kinds: &[ContextKind]| kinds.iter().copied().find_map(one).unwrap_or_default();
    let meant = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    fields
        .with("field", &first(&[ContextKind::InvalidArg, ContextKind::InvalidSubcommand]))
        .with("fix", tip.as_deref().unwrap_or_default())
        .with("suggestion", &first(&meant))
        .finish()
}

fn of_scenario(error: &ScenarioError) -> Option<Fields> {
    let (first, more) = error.findings.split_first()?;
    let mut fields = of_finding(first);
    if !more.is_empty() {
        let more = more.iter().map(|finding| of_finding(finding).finish());
        fields.0.insert("more".into(), more.collect());
    }
    Some(fields)
}

/// Warnings of a scenario, and of what its ports lack here, as objects.
pub fn of_warnings(findings: &[Finding], absences: &[Absence]) -> Value {
    let lacking =
        |Absence { port, what }: &Absence| Fields::new(what).with("field", &format!("port \"{port}\""));
    findings.iter().map(of_finding).chain(absences.iter().map(lacking)).map(Fields::finish).collect()
}

fn of_finding(finding: &Finding) -> Fields {
    let Finding { file, line, column, field, what, fix, .. } = finding;
    Fields::new(what).in_file(file, *line, *column).with("field", field).with("fix", fix)
}

fn of_problem(problem: &Problem) -> Fields {
    let fields = Fields::new(&problem.detail)
        .with("field", problem.key.as_deref().unwrap_or_default())
        .with("suggestion", problem.suggestion.as_deref().unwrap_or_default());
    // Text that came from no file is called by its key.
    match place(&problem.detail).filter(|(file, ..)| Some(*file) != problem.key.as_deref()) {
        Some((file, line, column)) => fields.in_file(file, line, column),
        None => fields,
    }
}

/// The place with which mistakes in a text begin: `more.toml:3:8: link "c", to: …`.
fn place(mistakes: &str) -> Option<(&str, usize, usize)> {
    let mut parts = mistakes.split_once(": ")?.0.rsplitn(3, ':');
    let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some((parts.next()?, line, column))
}

/// The fields of an error.
struct Fields(Map<String, Value>);

impl Fields {
    fn new(what: &str) -> Self {
        Self(Map::from_iter([("error".to_owned(), what.into())]))
    }

    /// Adds a field, unless it is empty.
    fn with(mut self, name: &str, text: &str) -> Self {
        if !text.is_empty() {
            self.0.insert(name.into(), text.into());
        }
        self
    }

    fn in_file(self, file: &str, line: usize, column: usize) -> Self {
        self.with("file", file).at("line", line).at("column", column)
    }

    fn at(mut self, name: &str, number: usize) -> Self {
        self.0.insert(name.into(), json!(number));
        self
    }

    /// Converts to an object. Without a named suggestion it is extracted from the text: all messages use the
    /// same words for suggestions.
    fn finish(self) -> Value {
        let text =
            |name: &str| self.0.get(name).and_then(Value::as_str).and_then(suggested).map(str::to_owned);
        let meant =
            if self.0.contains_key("suggestion") { None } else { text("fix").or_else(|| text("error")) };
        Value::Object(self.with("suggestion", meant.as_deref().unwrap_or_default()).0)
    }
}

fn suggested(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("did you mean \"")?;
    rest.split_once('"').map(|(meant, _)| meant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    fn wanted(line: &str) -> bool {
        is_wanted(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn a_command_that_is_run_keeps_its_options() {
        for line in ["ctl list --json", "import netem delay 1ms --json", "--json check"] {
            assert!(wanted(line), "{line}");
        }
        for line in [
            "ctl list",
            "exec tool --json",
            "lab exec l a tool --json",
            "import mahimahi mm-delay -- tool --json",
        ] {
            assert!(!wanted(line), "{line}");
        }
    }

    #[test]
    fn causes_appear_once_and_can_not_steer_the_terminal() {
        let error = anyhow!("no such file").context("x.toml: no such file; name another");
        assert_eq!(
            of_error(&error.context("can't load"))["error"],
            "can't load: x.toml: no such file; name another"
        );
        assert_eq!(of_error(&anyhow!("no link \"\u{1b}[2J\""))["error"], "no link \"\\u001b[2J\"");
    }

    #[test]
    fn a_mistake_in_a_scenario_has_its_place() {
        let error = longwire_scenario::parse("a.toml", "[[link]]\nratee = 1\ndealy = 2\n").unwrap_err();
        let count = error.findings.len();
        for error in [Error::new(error.clone()), Error::new(LoadError::Invalid(error)).context("loading")] {
            let told = of_error(&error);
            assert_eq!(
                (&told["file"], &told["line"], &told["column"]),
                (&json!("a.toml"), &json!(2), &json!(1))
            );
            assert_eq!(told["suggestion"], "rate", "{told:#}");
            assert_eq!(told["more"].as_array().unwrap().len(), count - 1);
            assert_eq!(told["more"][0]["suggestion"], "delay", "{told:#}");
        }
    }

    #[test]
    fn other_errors_have_what_is_known() {
        let told = of_error(&anyhow!("there is no key \"quee\"; did you mean \"queue\"?"));
        assert_eq!((&told["suggestion"], told.get("line")), (&json!("queue"), None));
        let told = of_error(&Err::<(), _>(anyhow!("gone")).context("reading").unwrap_err());
        assert_eq!(told, json!({ "error": "reading: gone" }));
    }

    #[test]
    fn a_refusal_of_a_file_has_the_place() {
        let told = |detail: &str| {
            let problem =
                json!({ "type": "about:blank", "title": "", "status": 422, "detail": detail, "key": "add" });
            let problem: Box<Problem> = serde_json::from_value(problem).unwrap();
            of_error(&ClientError::Refused(problem).into())
        };
        let placed = told("more.toml:3:8: host \"c\", address: 10.0.0.1/32 overlaps\n 3 | x");
        assert_eq!(
            (&placed["file"], &placed["line"], &placed["column"]),
            (&json!("more.toml"), &json!(3), &json!(8)),
            "{placed:#}"
        );
        assert_eq!(told("add:3:8: host \"c\", address: it overlaps").get("line"), None);
        assert_eq!(told("rate: it has no unit").get("line"), None);
    }

    #[test]
    fn a_mistake_on_the_command_line_has_the_argument() {
        use clap::CommandFactory;
        let wrong =
            crate::Cli::command().try_get_matches_from(["longwire", "check", "x", "--jsn"]).unwrap_err();
        let told = of_usage(&wrong);
        assert_eq!((&told["field"], &told["suggestion"]), (&json!("--jsn"), &json!("--json")), "{told:#}");
        assert!(told["error"].as_str().unwrap().starts_with("unexpected argument"), "{told:#}");
    }
}
