//! `longwire lab up`

use super::hold::{NOTE, READY};
use crate::outcome::print_report;
use crate::progress::Progress;
use crate::{Json, Outcome, outcome};
use anyhow::{Context, bail, ensure};
use longwire_report::{Report, Row};
use longwire_run::labs::find;
use longwire_run::real_run::instance_name;
use longwire_run::test_hosts::log_of;
use longwire_scenario::Plan;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Make a scenario's hosts and links, and keep them up in the background
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire lab up scenarios/two-hosts.toml
  longwire lab up scenarios/dumbbell.toml --name experiment-1
  longwire import netem 'delay 100ms loss 1%' | longwire lab up - --name slow")]
pub struct Args {
    /// The scenario file, or - for standard input.
    scenario: PathBuf,

    /// The name of the lab. Default: the file's; required for standard input.
    #[arg(long)]
    name: Option<String>,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let text = longwire_scenario::read_text(&self.scenario)?;
        let plan = longwire_scenario::parse(&self.scenario.display().to_string(), &text)?;
        outcome::print_notes(&plan);
        ensure!(
            self.name.is_some() || !self.is_piped(),
            "a scenario from standard input has no name; give the lab one: longwire lab up - --name NAME"
        );
        ensure!(
            plan.has_lab(),
            "{} has no hosts, so there is no lab to make; `longwire run` runs it",
            self.scenario.display()
        );
        let name = self.name.clone().unwrap_or_else(|| instance_name(&self.scenario));
        if find(&name)?.is_some_and(|lab| !lab.info.dead) {
            bail!(
                "lab {name} is up already; `longwire lab down {name}` takes it down, --name gives this one \
                 another name"
            );
        }
        let progress = Progress::start(format!("making lab {name}"), None);
        let (pid, notes) = self.start(&name, &text)?;
        drop(progress);
        notes.iter().for_each(|note| outcome::note(note));
        if self.json.on {
            return print_report(&report(&plan, &name, pid), true);
        }
        outcome::print(&in_words(&plan, &name, pid))
    }

    /// Whether the scenario comes from standard input.
    fn is_piped(&self) -> bool {
        self.scenario.as_os_str() == "-"
    }

    /// Starts the process that keeps the lab up, and waits until packets can flow. Its number, and what it
    /// has said until then.
    fn start(&self, name: &str, text: &str) -> anyhow::Result<(u32, Vec<String>)> {
        let program = std::env::current_exe().context("finding this program's file")?;
        let piped = self.is_piped();
        let scenario = if piped { self.scenario.clone() } else { std::fs::canonicalize(&self.scenario)? };
        let (output, input) = io::pipe()?;
        let mut command = Command::new(program);
        command.args(["lab", "hold", "--name", name]).arg(&scenario);
        command.stdin(if piped { Stdio::piped() } else { Stdio::null() });
        command.stderr(input.try_clone()?).stdout(input);
        let mut child = command.spawn().context("starting the process that keeps the lab up")?;
        // Closes this process's ends of the pipe, so that its end is noticed.
        drop(command);
        if let Some(mut stdin) = child.stdin.take() {
            // If it ended before it read everything, it reports why.
            let _ = stdin.write_all(text.as_bytes());
        }
        let (told, is_up) = until_ready(BufReader::new(output));
        if is_up {
            // It continues in the background.
            return Ok((child.id(), told));
        }
        child.wait()?;
        let told: Vec<_> = told.into_iter().filter(|line| !line.starts_with(NOTE)).collect();
        let told = told.join("\n");
        bail!("lab {name} could not be made: {}", told.trim().trim_start_matches("error: "))
    }
}

/// The lines before the one that says that packets can flow, and whether that came. Text of programs need not
/// be UTF-8.
fn until_ready(output: impl BufRead) -> (Vec<String>, bool) {
    let mut told = Vec::new();
    for line in output.split(b'\n').map_while(Result::ok) {
        if line == READY.as_bytes() {
            return (told, true);
        }
        told.push(String::from_utf8_lossy(&line).into_owned());
    }
    (told, false)
}

fn addresses(plan: &Plan) -> impl Iterator<Item = (&str, String)> {
    plan.hosts.iter().map(|host| {
        let all: Vec<_> = host.addresses.iter().map(ToString::to_string).collect();
        (&*host.name, all.join(", "))
    })
}

fn in_words(plan: &Plan, name: &str, pid: u32) -> String {
    let mut lines = vec![format!("lab {name} is up (process {pid})")];
    lines.extend(addresses(plan).map(|(host, addresses)| {
        format!("  host {host} ({addresses}): longwire lab exec {name} {host} -- COMMAND")
    }));
    lines.extend(plan.control_planes().map(|router| {
        let router = &router.name;
        format!("  control plane of router {router}: longwire lab exec {name} {router} -- COMMAND")
    }));
    lines.push(format!("  statistics: longwire ctl stats {name}"));
    lines.push(format!("  to end it: longwire lab down {name}"));
    lines.join("\n")
}

fn report(plan: &Plan, name: &str, pid: u32) -> Report {
    let log = log_of(name).display().to_string();
    let report = Report::new("lab up").with("lab", name).with("pid", pid).with("log", log);
    report.with_rows(
        addresses(plan).map(|(host, addresses)| Row::new(host, "").measured(addresses).extra("kind", "host")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_before_the_lab_is_up_is_passed_on() {
        let lines = |text: &[u8]| until_ready(text);
        let told = vec!["note: \u{fffd}".to_owned(), "waiting for process 1 (x)".to_owned()];
        let (before, is_up) = lines(b"note: \xff\nwaiting for process 1 (x)\nready\nafter\n");
        assert_eq!((before, is_up), (told, true));
        assert_eq!(lines(b"error: \xff"), (vec!["error: \u{fffd}".to_owned()], false));
    }
}
