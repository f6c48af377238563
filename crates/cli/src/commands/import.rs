//! `longwire import`

use crate::inputs::keep_inputs;
use crate::{Json, Outcome, outcome};
use anyhow::Context;
use longwire_import::{Format, ImportedScenario, Source, import};
use longwire_report::{Report, Row};
use std::path::{Path, PathBuf};

/// Convert commands or scripts of other tools to a scenario
///
/// Reads a file, a command line, or standard input (-), writes a scenario with comments, and reports every
/// option that was not converted, or not exactly, with the reason: in the scenario and on standard error.
///
/// Formats: netem (tc commands with netem and tbf, the output of `tc qdisc show`, or netem's options alone),
/// ipfw (dummynet's pipes, and rules to them), ns (Emulab's scripts), mahimahi (mm-delay, mm-loss, mm-link,
/// mm-onoff, or one or two traces: up and down), theaterq (one or two traces, and a tc command with its
/// options), matrix (CSV of delays between regions, as clouds publish them), containerlab (a topology file,
/// and scripts of containerlab tools netem set), compose (Docker Compose files with x-longwire or labels).
#[derive(Debug, clap::Args)]
#[command(mut_arg("json", |json| json.help("Print JSON: the scenario and the notes; may also stand last")))]
#[command(after_long_help = "\
Examples:
  longwire import netem shaping.sh -o shaped.toml
  longwire import netem 'delay 100ms 20ms distribution normal loss gemodel 1% 25%'
  longwire import netem tc qdisc add dev eth0 root netem rate 1mbit delay 20ms
  longwire import ipfw /etc/ipfw.rules
  longwire import ns experiment.ns --json
  longwire import mahimahi 'mm-delay 20 mm-link up.trace down.trace'
  longwire import mahimahi up.trace down.trace
  longwire import theaterq trace.csv 'tc qdisc change dev eth0 root theaterq stage RUN cont HOLD'
  longwire import matrix regions.csv -o regions.toml
  longwire import containerlab lab.clab.yml impair.sh -o lab.toml
  longwire import compose compose.yaml
  tc qdisc show dev eth0 | longwire import netem -

Files that a scenario names are looked for in its own folder.")]
pub struct Args {
    /// The format of the input.
    #[arg(value_name = "netem|ipfw|ns|mahimahi|theaterq|matrix|containerlab|compose")]
    format: Format,

    /// A file, - for standard input, or a command line.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "FILE or COMMAND"
    )]
    what: Vec<String>,

    /// Write the scenario to a file. The option may also come last.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    json: Json,
}

impl Args {
    /// Imports and prints the scenario.
    ///
    /// # Errors
    /// If the input can't be read or parsed, or the scenario can't be written: it never is over an input.
    pub fn run(mut self) -> anyhow::Result<Outcome> {
        self.options_behind();
        let sources = Source::read(&self.what, self.format, self.folder())?;
        let imported = import(self.format, &sources).with_context(|| match &sources[0].file {
            Some(file) => format!("{file} can't be imported"),
            None => "this can't be imported".into(),
        })?;
        if let Some(file) = &self.output {
            self.keep_inputs(&sources, &imported)?;
            if let Some(folder) = self.folder()
                && let missing = imported.missing_in(folder)
                && !missing.is_empty()
            {
                let (names, folder) = (missing.join(", "), folder.display());
                outcome::note(&format!("note: the scenario looks for {names} in {folder}: copy them there"));
            }
            std::fs::write(file, &imported.scenario)
                .with_context(|| format!("the scenario can't be written to {}", file.display()))?;
        }
        if self.json.on {
            outcome::print_report(&report(&imported), true)?;
        } else if self.output.is_none() {
            outcome::print(imported.scenario.trim_end())?;
        }
        imported.notes.iter().for_each(|note| outcome::note(&format!("note: {note}")));
        Ok(Outcome::Well)
    }

    /// Extracts options after the imported command line, where they can't belong to it.
    fn options_behind(&mut self) {
        if self.what.iter().any(|word| word == "--") {
            return;
        }
        loop {
            match &self.what[..] {
                [.., last] if last == "--json" => {
                    self.json.on = true;
                    self.what.pop();
                }
                [.., option, file] if option == "-o" || option == "--output" => {
                    self.output = Some(file.into());
                    self.what.truncate(self.what.len() - 2);
                }
                _ => return,
            }
        }
    }

    /// Checks that the scenario is written neither over what was read for it nor over what it reads.
    fn keep_inputs(&self, sources: &[Source], imported: &ImportedScenario) -> anyhow::Result<()> {
        let read = sources.iter().filter_map(|source| source.file.as_deref()).map(PathBuf::from);
        let folder = self.folder().unwrap_or(Path::new(""));
        let inputs: Vec<PathBuf> = read.chain(imported.files().map(|name| folder.join(name))).collect();
        let inputs: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
        keep_inputs(&self.output, &inputs)
    }

    /// The scenario's folder, if it is not the current one.
    fn folder(&self) -> Option<&Path> {
        self.output.as_deref().and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty())
    }
}

/// The scenario, and a row for each option that was not converted.
fn report(imported: &ImportedScenario) -> Report {
    let rows = imported.notes.iter().map(|note| {
        Row::new(&*note.option, "").extra("kind", "option").extra("line", note.line).note(&*note.why)
    });
    Report::new("import").with("scenario", &*imported.scenario).with_rows(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(what: &[&str]) -> Args {
        let what = what.iter().map(|word| (*word).to_owned()).collect();
        Args { format: Format::Netem, what, output: None, json: Json::default() }
    }

    #[test]
    fn options_may_stand_last() {
        let mut given = args(&["netem", "delay", "1ms", "-o", "x.toml", "--json"]);
        given.options_behind();
        assert_eq!((given.what.len(), given.json.on), (3, true));
        assert_eq!(given.output.as_deref(), Some(Path::new("x.toml")));
        let hint = |name: &str| name.parse::<Format>().unwrap_err();
        assert!(hint("netm").contains("netem") && hint("riverbed").contains("theaterq"));
        let mut shell = args(&["mm-delay", "20", "--", "cc", "-o", "x"]);
        shell.options_behind();
        assert_eq!((shell.what.len(), shell.output), (6, None));
    }
}
