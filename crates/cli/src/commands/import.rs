//! `longwire import`

use crate::{Json, Outcome, outcome};
use anyhow::{Context, bail, ensure};
use longwire_import::{Format, Imported, Source, import};
use longwire_report::{Report, Row};
use std::fs::File;
use std::io::{self, Read};
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
    #[arg(value_parser = format, value_name = "netem|ipfw|ns|mahimahi|theaterq|matrix|containerlab|compose")]
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

fn format(name: &str) -> Result<Format, String> {
    Ok(match name {
        "netem" | "tc" => Format::Netem,
        "ipfw" | "dummynet" => Format::Ipfw,
        "ns" => Format::Ns,
        "mahimahi" => Format::Mahimahi,
        "theaterq" => Format::Theaterq,
        "matrix" => Format::Matrix,
        "containerlab" | "clab" => Format::Containerlab,
        "compose" => Format::Compose,
        _ => {
            let all = "netem, ipfw, ns, mahimahi, theaterq, matrix, containerlab and compose";
            return Err(format!("there are {all}"));
        }
    })
}

impl Args {
    /// Imports and prints the scenario.
    ///
    /// # Errors
    /// If the input can't be read or parsed, or the scenario can't be written.
    pub fn run(mut self) -> anyhow::Result<Outcome> {
        self.options_behind();
        ensure!(!self.what.is_empty(), "there is nothing to import; name a file, or give a command line");
        let sources = self.sources()?;
        let imported = import(self.format, &sources).with_context(|| match &sources[0].file {
            Some(file) => format!("{file} can't be imported"),
            None => "this can't be imported".into(),
        })?;
        if let Some(file) = &self.output {
            if let Some(note) = self.left_behind(&imported) {
                outcome::note(&note);
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

    /// The inputs: existing files, and a command line of the remaining words.
    fn sources(&self) -> anyhow::Result<Vec<Source>> {
        let (first, longest) = (&self.what[0], self.format.longest());
        if self.what.len() == 1 && first == "-" {
            return Ok(vec![Source { file: None, text: bounded(io::stdin(), "standard input", longest)? }]);
        }
        if !Path::new(first).is_file() {
            let command = self.what.len() > 1 || first.contains(char::is_whitespace);
            ensure!(command, "there is no file {first}; name one, or give a command line in quotes");
            return Ok(vec![Source { file: None, text: line(&self.what) }]);
        }
        let (files, words): (Vec<&String>, Vec<&String>) =
            self.what.iter().partition(|word| Path::new(word).is_file());
        let mut sources = Vec::new();
        for name in files {
            let file = File::open(name).with_context(|| format!("{name} can't be read"))?;
            sources.push(Source {
                file: Some(self.seen_from_output(name)?),
                text: bounded(file, name, longest)?,
            });
        }
        if !words.is_empty() {
            let words: Vec<String> = words.into_iter().cloned().collect();
            sources.push(Source { file: None, text: line(&words) });
        }
        Ok(sources)
    }
}

impl Args {
    /// The scenario's folder, if it is not the current one.
    fn folder(&self) -> Option<&Path> {
        self.output.as_deref().and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty())
    }

    /// A file's name for use in the scenario: an absolute path if the scenario is written elsewhere.
    fn seen_from_output(&self, name: &str) -> anyhow::Result<String> {
        if self.folder().is_none() {
            return Ok(name.into());
        }
        let path = std::path::absolute(name).with_context(|| format!("{name} has no path"))?;
        let path = path.into_os_string().into_string();
        path.ok().with_context(|| format!("the path of {name} is not a text; write the scenario beside it"))
    }

    /// Advice on files in a command line, which the scenario expects in its own folder.
    fn left_behind(&self, imported: &Imported) -> Option<String> {
        let folder = self.folder()?;
        let values = imported.scenario.lines().filter(|line| !line.starts_with('#'));
        let named = values.flat_map(|line| {
            let parts = ["file = \"", "distribution = \""].map(|key| line.split(key).nth(1));
            parts.into_iter().flatten().filter_map(|rest| rest.split('"').next())
        });
        let mut missing: Vec<&str> =
            named.filter(|name| Path::new(name).is_file() && !folder.join(name).is_file()).collect();
        missing.sort_unstable();
        missing.dedup();
        let names = missing.join(", ");
        (!missing.is_empty())
            .then(|| format!("note: the scenario looks for {names} in {}: copy them there", folder.display()))
    }
}

/// Reads a text of limited length.
fn bounded(from: impl Read, name: &str, longest: usize) -> anyhow::Result<String> {
    let mut text = String::new();
    // One byte more than the limit, so that endless input is refused like a text that is too long.
    from.take(longest as u64 + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("{name} can't be read as text"))?;
    if text.len() > longest {
        bail!("{name} is longer than {longest} bytes; import a part of it");
    }
    Ok(text)
}

/// Quotes words as one line for a shell; a single word is already a line.
fn line(words: &[String]) -> String {
    if let [line] = words {
        return line.clone();
    }
    let plain =
        |word: &String| !word.is_empty() && !word.contains([' ', '\t', '\n', ';', '#', '"', '\'', '\\']);
    let quoted =
        |word: &String| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// The scenario, and a row for each option that was not converted.
fn report(imported: &Imported) -> Report {
    let mut report = Report::new("import").with("scenario", &*imported.scenario);
    report.extend(imported.notes.iter().map(|note| {
        Row::new(&*note.option, "").extra("kind", "option").extra("line", note.line).note(&*note.why)
    }));
    report
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
        let mut shell = args(&["mm-delay", "20", "--", "cc", "-o", "x"]);
        shell.options_behind();
        assert_eq!((shell.what.len(), shell.output), (6, None));
    }

    #[test]
    fn words_become_a_line_again() {
        let source = |what: &[&str]| args(what).sources().unwrap().swap_remove(0).text;
        assert_eq!(source(&["delay 1ms # x"]), "delay 1ms # x");
        assert_eq!(source(&["mm-link", "a b", "--x=\"1\""]), "mm-link 'a b' '--x=\"1\"'");
        assert!(args(&["missing.sh"]).sources().unwrap_err().to_string().contains("there is no file"));
        assert_eq!(args(&["x"]).seen_from_output("up.trace").unwrap(), "up.trace");
        let elsewhere = Args { output: Some("folder/x.toml".into()), ..args(&["x"]) };
        let here = std::env::current_dir().unwrap().join("up.trace");
        assert_eq!(Path::new(&elsewhere.seen_from_output("up.trace").unwrap()), here);
        let scenario = "# file = \"Cargo.toml\"\nrate = { file = \"Cargo.toml\", x = \"1\" }\n".to_owned();
        let imported = Imported { scenario, notes: Vec::new() };
        assert_eq!(args(&["x"]).left_behind(&imported), None);
        let note = "note: the scenario looks for Cargo.toml in folder: copy them there";
        assert_eq!(elsewhere.left_behind(&imported).as_deref(), Some(note));
        assert!(format("ns2").unwrap_err().contains("theaterq"));
    }
}
