//! Hostile input: the function of every fuzz target over its mutated corpus, without a fuzzer and with the
//! normal compiler. `cargo xtask fuzz` runs it, optimized.
//!
//! - `targets`: the fuzz targets; `mutate`: mutation of a corpus; `hunt`: running the cases.

#![forbid(unsafe_code)]

mod hunt;
mod mutate;
mod targets;

use clap::Parser;
use hunt::{Hunt, LONGEST, Progress};
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the functions of the fuzz targets over their mutated corpora.
#[derive(Debug, Parser)]
struct Args {
    /// Targets; all if none is given
    targets: Vec<String>,

    /// Number of cases for each target
    #[arg(long, default_value_t = 100_000)]
    cases: u64,

    /// Seed: the same seed gives the same cases
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Number of the first case
    #[arg(long, default_value_t = 0)]
    from: u64,

    /// Resume an interrupted run with this seed
    #[arg(long, conflicts_with = "from")]
    resume: bool,

    /// Print the number of each case before it runs, to find one that ends the process
    #[arg(long)]
    each: bool,

    /// Folder for inputs that fail and for progress
    #[arg(long, default_value = "target/fuzz")]
    folder: PathBuf,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("{failed} cases failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the requested cases, and returns the number of failures.
fn run(args: &Args) -> anyhow::Result<u64> {
    if let Some(unknown) =
        args.targets.iter().find(|name| targets::ALL.iter().all(|target| target.name != **name))
    {
        let known: Vec<&str> = targets::ALL.iter().map(|target| target.name).collect();
        anyhow::bail!("there is no target \"{unknown}\"; there are {}", known.join(", "));
    }
    std::fs::create_dir_all(&args.folder)?;
    let mut failed = 0;
    for target in targets::ALL {
        if !args.targets.is_empty() && !args.targets.iter().any(|name| name == target.name) {
            continue;
        }
        let progress = Progress::of(&args.folder, target.name, args.seed);
        let first = if args.resume { progress.read()? } else { args.from };
        let hunt = Hunt { target, seed: args.seed, folder: &args.folder, each: args.each, longest: LONGEST };
        failed += hunt.run(first..args.from.saturating_add(args.cases), &progress)?.failed;
    }
    Ok(failed)
}
