//! Runs the cases of one target.

use crate::mutate::Corpus;
use crate::targets::Target;
use anyhow::Context;
use std::fs;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time limit of a case: longer ones are treated as hung.
const LONGEST: Duration = Duration::from_secs(60);
/// Interval between progress messages.
const SAID: Duration = Duration::from_secs(30);
/// Number of cases between progress records.
const NOTED: u64 = 1024;
/// Number of failed cases after which a target is abandoned.
const MOST_FAILED: u64 = 10;

/// A file that records the progress of a target with a seed.
pub struct Progress(PathBuf);

impl Progress {
    /// In this folder.
    pub fn of(folder: &Path, target: &str, seed: u64) -> Self {
        Self(folder.join(format!("{target}.{seed}.next")))
    }

    /// The number of the first case that may not have run; 0 if none has.
    ///
    /// # Errors
    /// If the file can't be read, or has other contents.
    pub fn read(&self) -> anyhow::Result<u64> {
        let Self(path) = self;
        match fs::read_to_string(path) {
            Ok(text) => {
                text.trim().parse().with_context(|| format!("{}: it holds no number", path.display()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    fn write(&self, number: u64) -> anyhow::Result<()> {
        let Self(path) = self;
        fs::write(path, number.to_string()).with_context(|| path.display().to_string())
    }
}

/// A target's cases.
pub struct Hunt<'a> {
    /// The target.
    pub target: &'a Target,
    /// Seed of the cases.
    pub seed: u64,
    /// Folder for inputs that fail.
    pub folder: &'a Path,
    /// Whether the number of each case is printed before it runs.
    pub each: bool,
}

impl Hunt<'_> {
    /// Runs the unmodified corpus, then the cases with these numbers, and returns the number of failures. A
    /// case that hangs ends the process.
    ///
    /// # Errors
    /// If the corpus can't be read, or output can't be written.
    pub fn run(&self, numbers: Range<u64>, progress: &Progress) -> anyhow::Result<u64> {
        let corpus = Corpus::new(self.target.name, self.target.corpus()?, self.seed);
        for (place, bytes) in corpus.files().iter().enumerate() {
            anyhow::ensure!(self.holds(bytes), "{}: file {place} of its corpus fails", self.target.name);
        }
        let (began, at, ended) = (Instant::now(), AtomicU64::new(numbers.start), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| self.watch(&corpus, &at, &ended));
            let done = self.each_of(&corpus, numbers.clone(), progress, &at);
            ended.store(true, Ordering::Relaxed);
            watch.thread().unpark();
            let (took, cases) = (began.elapsed(), numbers.end.saturating_sub(numbers.start));
            if let Ok(failed) = &done {
                println!(
                    "{:<13}{cases:>10} cases in {:.0} s, {failed} failed",
                    self.target.name,
                    took.as_secs_f64()
                );
            }
            done
        })
    }

    fn each_of(
        &self,
        corpus: &Corpus,
        numbers: Range<u64>,
        progress: &Progress,
        at: &AtomicU64,
    ) -> anyhow::Result<u64> {
        let (mut failed, mut said) = (0, Instant::now());
        for number in numbers.clone() {
            at.store(number, Ordering::Relaxed);
            if self.each {
                println!("{} {number}", self.target.name);
            }
            if (number - numbers.start).is_multiple_of(NOTED) {
                progress.write(number)?;
                if said.elapsed() > SAID {
                    println!("{:<13}{number:>10} of {}, {failed} failed", self.target.name, numbers.end);
                    said = Instant::now();
                }
            }
            let bytes = corpus.input(number);
            if !self.holds(&bytes) {
                failed += 1;
                self.keep(number, &bytes)?;
                if failed == MOST_FAILED {
                    println!("{}: given up at case {number}", self.target.name);
                    return Ok(failed);
                }
            }
        }
        progress.write(numbers.end)?;
        Ok(failed)
    }

    fn holds(&self, bytes: &[u8]) -> bool {
        catch_unwind(AssertUnwindSafe(|| (self.target.run)(bytes))).is_ok()
    }

    fn keep(&self, number: u64, bytes: &[u8]) -> anyhow::Result<()> {
        let path = self.folder.join(format!("{}.{}.{number}", self.target.name, self.seed));
        fs::write(&path, bytes).with_context(|| path.display().to_string())?;
        println!("{}: case {number} of seed {} fails: {}", self.target.name, self.seed, path.display());
        Ok(())
    }

    /// Ends the process if one case takes too long.
    fn watch(&self, corpus: &Corpus, at: &AtomicU64, ended: &AtomicBool) {
        let mut seen = (at.load(Ordering::Relaxed), Instant::now());
        while !ended.load(Ordering::Relaxed) {
            std::thread::park_timeout(LONGEST / 10);
            let number = at.load(Ordering::Relaxed);
            if number != seen.0 {
                seen = (number, Instant::now());
            } else if seen.1.elapsed() > LONGEST && !ended.load(Ordering::Relaxed) {
                println!("{}: case {number} of seed {} hangs", self.target.name, self.seed);
                // Saved if possible; the process ends in any case.
                let _ = self.keep(number, &corpus.input(number));
                std::process::exit(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets;

    fn hunt(target: &Target, numbers: Range<u64>) -> (u64, u64, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let progress = Progress::of(folder, target.name, 1);
        let failed = Hunt { target, seed: 1, folder, each: false }.run(numbers, &progress).unwrap();
        let next = progress.read().unwrap();
        let mut files: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.ends_with(".next"))
            .collect();
        files.sort();
        (failed, next, files)
    }

    /// Runs the corpus of every target and some mutations of it; the nightly run uses millions.
    #[test]
    fn every_target_holds() {
        for target in targets::ALL {
            assert!(target.corpus().unwrap().len() >= 7, "{}", target.name);
            assert_eq!(hunt(target, 0..1000), (0, 1000, vec![]), "{}", target.name);
        }
    }

    #[test]
    fn what_fails_is_kept() {
        let fails = |bytes: &[u8]| assert!(!bytes.starts_with(b"GET"));
        let target = Target { run: fails, ..targets::ALL[0] };
        assert_eq!(hunt(&target, 0..50), (0, 50, vec![]));
        let target = Target { run: |bytes| assert!(bytes.len() == 4512 || bytes.len() % 8 == 0), ..target };
        let (failed, _, files) = hunt(&target, 0..2000);
        assert_eq!((failed, files.len()), (MOST_FAILED, MOST_FAILED as usize), "{files:?}");
        assert!(files.iter().all(|name| name.starts_with("object.1.")));
    }

    #[test]
    fn every_target_of_the_fuzzer_is_run() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        names.sort();
        let mut own: Vec<_> = targets::ALL.iter().map(|target| target.name).collect();
        own.sort_unstable();
        assert_eq!(names, own);
    }

    #[test]
    fn requests_of_the_corpus_do_what_they_say() {
        let install = targets::ALL.iter().find(|target| target.name == "install").unwrap();
        let done: Vec<_> =
            install.corpus().unwrap().iter().map(|bytes| targets::install::run(bytes)).collect();
        let sum = |of: fn(&targets::install::Done) -> u64| done.iter().map(of).sum::<u64>();
        // Of the requests, 12 install a program that fits, and 7 remove one.
        assert_eq!((sum(|done| done.installed.into()), sum(|done| done.removed.into())), (12, 7));
        let counts = [sum(|done| done.answered.into()), sum(|done| done.refused.into())];
        assert!(counts[0] > 30 && counts[1] > 20, "{counts:?}");
        assert!(sum(|done| done.forwarded) > 50 && sum(|done| done.dropped) > 10);
    }
}
