//! Commands for developers: `cargo xtask tidy | ci | assault | fuzz | bench | instructions | numbers |
//! programs | soak | load | walk | new`.
#![forbid(unsafe_code)]

mod api;
mod bench;
mod cargo;
mod ci;
mod files;
mod finding;
mod fuzz;
mod instructions;
mod load;
mod new;
mod numbers;
mod programs;
mod soak;
mod tidy;
mod walk;
mod watched_run;

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// The command that runs the tests. The README and `.ci/run` have the same line, and `tidy` compares the
/// three.
const TEST_COMMAND: &str = "cargo test --workspace";

const HELP: &str = "\
Commands for developers.

cargo xtask tidy                  check the rules of the house that no compiler knows
cargo xtask ci [--quick]          everything a change has to pass; --quick leaves the tests out
cargo xtask assault [SEED]        the attacks of crates/cli/tests/assault at full length, as root: 25 \
minutes, and the build
cargo xtask fuzz [OPTIONS] [TARGET]...
                                  the fuzz targets over mutated corpora; --help says more
cargo xtask bench [NAME]          `longwire bench` as it is packaged, and the criterion benches
cargo xtask instructions [--json] [--keep] [--tests] [NAME]...
                                  instructions of a packet by stage, against those that \
                                  benches/instructions.toml keeps
cargo xtask numbers               make the tables of numbers in Markdown from docs/results
cargo xtask numbers --measure [NAME]...
                                  measure first, the usual results or these; --list names them
cargo xtask programs FOLDER       worst cases of other projects' XDP functions, of the objects in \
FOLDER/PROJECT/,
                                  by target/release/longwire, for docs/results/programs.json
cargo xtask soak [--seconds N] [--binary FILE]
                                  as root, a run of an hour with changes and flaps: nothing is lost, nothing \
grows
cargo xtask load [--binary FILE] [NAME]...
                                  as root, what requests cost a run: 200 clients and 1000 changes a second \
(clients),
                                  a change of one of a million links (change), hosts that are added (add), \
the dashboard
                                  of ten thousand links (dashboard)
cargo xtask walk [--json]         the files that a reader opens who follows a packet or a setting: \
benches/walks.toml
cargo xtask new block STAGE NAME  a new block in crates/link/src/STAGE/, from a template
cargo xtask new driver NAME       a new port driver in crates/drivers and crates/port, from templates
";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Without the backtrace of RUST_BACKTRACE: these are usage errors.
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the command and returns whether all checks passed.
fn run() -> Result<bool> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    Ok(match words.as_slice() {
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            true
        }
        ["tidy"] => tidy::run(&root()?)?,
        ["ci"] => ci::run(&root()?, ci::Extent::All),
        ["ci", "--quick"] => ci::run(&root()?, ci::Extent::WithoutTests),
        ["assault"] => assault(&root()?, today())?,
        ["assault", seed] => assault(&root()?, seed.parse().context("the seed is a whole number")?)?,
        ["fuzz", options @ ..] => fuzz::run(&root()?, options)?,
        ["bench"] => bench::run(&root()?, None)?,
        ["bench", name] => bench::run(&root()?, Some(name))?,
        ["instructions", words @ ..] => instructions::run(&root()?, words)?,
        ["numbers", words @ ..] => numbers::run(&root()?, words)?,
        ["programs", folder] => programs::run(&root()?, folder)?,
        ["soak", words @ ..] => soak::run(&root()?, words)?,
        ["load", words @ ..] => load::run(&root()?, words)?,
        ["walk", words @ ..] => walk::run(&root()?, words)?,
        ["new", "block", stage, name] => new::block(&root()?, stage, name).map(|()| true)?,
        ["new", "driver", name] => new::driver(&root()?, name).map(|()| true)?,
        _ => bail!("no such command: {}\n\n{HELP}", words.join(" ")),
    })
}

/// Runs the attacks at full length, one after another, in a release build. They print their progress.
fn assault(root: &Path, seed: u64) -> Result<bool> {
    println!("seed {seed}; the same again: cargo xtask assault {seed}");
    println!("without the build it takes about 25 minutes on two processors; each attack says how far it is");
    let mut command = cargo::cargo(root);
    command.args(["test", "--release", "-p", "longwire", "--test", "assault"]);
    command.args(["--", "--nocapture", "--test-threads=1"]).env("LONGWIRE_ASSAULT", seed.to_string());
    Ok(command.status().context("can't start cargo")?.success())
}

/// Days since 1970: a different seed each day.
fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400)
}

/// The workspace's folder: the one above this package's.
fn root() -> Result<PathBuf> {
    let package =
        std::env::var("CARGO_MANIFEST_DIR").context("start this with `cargo xtask`, not by its path")?;
    let root = Path::new(&package).parent().context("this package lies in no workspace")?;
    Ok(root.to_path_buf())
}
