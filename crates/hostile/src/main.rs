//! Hostile input: the function of every fuzz target over its mutated corpus, with no fuzzer and no other
//! compiler than the one that builds all else. `cargo xtask fuzz` starts it, optimized.
//!
//! - `targets`: what there is to be run; `mutate`: what becomes of a corpus; `hunt`: case after case.

#![forbid(unsafe_code)]

mod hunt;
mod mutate;
mod targets;

use clap::Parser;
use hunt::{Hunt, Progress};
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the functions of the fuzz targets over their mutated corpora.
#[derive(Debug, Parser)]
struct Args {
    /// The targets; all without that.
    targets: Vec<String>,

    /// How many cases of each.
    #[arg(long, default_value_t = 100_000)]
    cases: u64,

    /// What the cases are drawn from: the same seed gives the same ones.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// The number of the first case.
    #[arg(long, default_value_t = 0)]
    from: u64,

    /// Goes on where a run with this seed was ended.
    #[arg(long, conflicts_with = "from")]
    resume: bool,

    /// Says the number of each case before it is run: after one that ended the process.
    #[arg(long)]
    each: bool,

    /// Where inputs that fail are written, and how far it came.
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

/// Runs what is asked for; how many cases failed.
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
        let hunt = Hunt { target, seed: args.seed, folder: &args.folder, each: args.each };
        failed += hunt.run(first..args.from.saturating_add(args.cases), &progress)?;
    }
    Ok(failed)
}
