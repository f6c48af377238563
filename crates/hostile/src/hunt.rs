//! Runs the cases of one target.

use crate::mutate::Corpus;
use crate::targets::Target;
use anyhow::Context;
use std::fs;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time limit of an input: longer ones are treated as hung.
pub const LONGEST: Duration = Duration::from_secs(60);
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

/// An input of a target.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Input {
    /// The file of the corpus at this place, unmodified.
    File(usize),
    /// The case with this number.
    Case(u64),
}

/// The input that runs now.
struct Current(Mutex<Input>);

impl Current {
    fn set(&self, input: Input) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = input;
    }

    fn input(&self) -> Input {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The outcome of a target's cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Cases that ran, failed ones included.
    pub ran: u64,
    /// Cases that failed.
    pub failed: u64,
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
    /// Time limit of an input.
    pub longest: Duration,
}

impl Hunt<'_> {
    /// Runs the unmodified corpus, then the cases with these numbers, and returns how many ran and failed. An
    /// input that hangs ends the process.
    ///
    /// # Errors
    /// If the corpus can't be read or fails, or output can't be written.
    pub fn run(&self, numbers: Range<u64>, progress: &Progress) -> anyhow::Result<Outcome> {
        let corpus = Corpus::new(self.target.name, self.target.corpus()?, self.seed);
        let (current, ended) = (Current(Mutex::new(Input::File(0))), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| self.watch(&corpus, &current, &ended));
            let done = self.files(&corpus, &current).and_then(|()| {
                let began = Instant::now();
                let outcome = self.each_of(&corpus, numbers, progress, &current)?;
                let (Outcome { ran, failed }, took) = (outcome, began.elapsed().as_secs_f64());
                println!("{:<13}{ran:>10} cases in {took:.0} s, {failed} failed", self.target.name);
                Ok(outcome)
            });
            ended.store(true, Ordering::Relaxed);
            watch.thread().unpark();
            done
        })
    }

    /// Runs the unmodified corpus.
    fn files(&self, corpus: &Corpus, current: &Current) -> anyhow::Result<()> {
        for (place, bytes) in corpus.files().iter().enumerate() {
            current.set(Input::File(place));
            anyhow::ensure!(self.holds(bytes), "{}: file {place} of its corpus fails", self.target.name);
        }
        Ok(())
    }

    fn each_of(
        &self,
        corpus: &Corpus,
        numbers: Range<u64>,
        progress: &Progress,
        current: &Current,
    ) -> anyhow::Result<Outcome> {
        let (mut ran, mut failed, mut said) = (0, 0, Instant::now());
        for number in numbers.clone() {
            current.set(Input::Case(number));
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
            ran += 1;
            if !self.holds(&bytes) {
                failed += 1;
                self.keep(number, &bytes)?;
                if failed == MOST_FAILED {
                    println!("{}: given up at case {number}", self.target.name);
                    return Ok(Outcome { ran, failed });
                }
            }
        }
        // A run that is resumed beyond its last case has none, and has been further.
        if !numbers.is_empty() {
            progress.write(numbers.end)?;
        }
        Ok(Outcome { ran, failed })
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

    /// Ends the process if one input takes too long.
    fn watch(&self, corpus: &Corpus, current: &Current, ended: &AtomicBool) {
        let mut seen = (current.input(), Instant::now());
        while !ended.load(Ordering::Relaxed) {
            std::thread::park_timeout(self.longest / 10);
            let input = current.input();
            if input != seen.0 {
                seen = (input, Instant::now());
            } else if seen.1.elapsed() > self.longest && !ended.load(Ordering::Relaxed) {
                self.say_hung(corpus, input);
                std::process::exit(1);
            }
        }
    }

    /// Says which input hangs, and keeps it if it is in no file.
    fn say_hung(&self, corpus: &Corpus, input: Input) {
        match input {
            Input::File(place) => println!("{}: file {place} of its corpus hangs", self.target.name),
            Input::Case(number) => {
                println!("{}: case {number} of seed {} hangs", self.target.name, self.seed);
                // Saved if possible; the process ends in any case.
                let _ = self.keep(number, &corpus.input(number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets;
    use std::process::Command;

    /// Makes a process of this program's tests the one that hangs.
    const HANGS: &str = "LONGWIRE_TEST_HANGS";

    fn on<'a>(target: &'a Target, folder: &'a Path) -> Hunt<'a> {
        Hunt { target, seed: 1, folder, each: false, longest: LONGEST }
    }

    fn hunt(target: &Target, numbers: Range<u64>) -> (Outcome, u64, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let progress = Progress::of(folder, target.name, 1);
        let outcome = on(target, folder).run(numbers, &progress).unwrap();
        let next = progress.read().unwrap();
        let mut files: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.ends_with(".next"))
            .collect();
        files.sort();
        (outcome, next, files)
    }

    /// Runs the corpus of every target and some mutations of it; the nightly run uses millions.
    #[test]
    fn every_target_holds() {
        for target in targets::ALL {
            assert!(target.corpus().unwrap().len() >= 7, "{}", target.name);
            let all = Outcome { ran: 1000, failed: 0 };
            assert_eq!(hunt(target, 0..1000), (all, 1000, vec![]), "{}", target.name);
        }
    }

    #[test]
    fn what_fails_is_kept() {
        let fails = |bytes: &[u8]| assert!(!bytes.starts_with(b"GET"));
        let target = Target { run: fails, ..targets::ALL[0] };
        assert_eq!(hunt(&target, 0..50), (Outcome { ran: 50, failed: 0 }, 50, vec![]));
        let target = Target { run: |bytes| assert!(bytes.len() == 4512 || bytes.len() % 8 == 0), ..target };
        let (Outcome { ran, failed }, _, files) = hunt(&target, 0..2000);
        assert_eq!((failed, files.len()), (MOST_FAILED, MOST_FAILED as usize), "{files:?}");
        let number = |name: &String| name.strip_prefix("object.1.").unwrap().parse::<u64>().unwrap();
        assert_eq!(files.iter().map(number).max().map(|last| last + 1), Some(ran), "it is given up there");
    }

    #[test]
    fn a_run_resumed_beyond_its_end_has_been_further() {
        let folder = tempfile::tempdir().unwrap();
        let target = Target { run: |_| (), ..targets::ALL[0] };
        let progress = Progress::of(folder.path(), target.name, 1);
        progress.write(70).unwrap();
        let hunt = on(&target, folder.path());
        let run = |end| hunt.run(progress.read().unwrap()..end, &progress).unwrap();
        assert_eq!(run(50), Outcome { ran: 0, failed: 0 });
        assert_eq!(progress.read().unwrap(), 70);
        assert_eq!(run(90), Outcome { ran: 20, failed: 0 });
        assert_eq!(progress.read().unwrap(), 90);
    }

    /// Hangs at its first input, for much longer than is allowed.
    fn hangs_once(_: &[u8]) {
        static HUNG: AtomicBool = AtomicBool::new(false);
        let begun = Instant::now();
        while !HUNG.load(Ordering::Relaxed) {
            std::thread::park_timeout(Duration::from_secs(20));
            HUNG.store(begun.elapsed() >= Duration::from_secs(20), Ordering::Relaxed);
        }
    }

    #[test]
    fn a_file_of_a_corpus_that_hangs_ends_the_process() {
        let target = Target { run: hangs_once, ..targets::ALL[0] };
        if let Some(folder) = std::env::var_os(HANGS) {
            let folder = Path::new(&folder);
            let hunt = Hunt { longest: Duration::from_millis(50), ..on(&target, folder) };
            hunt.run(0..0, &Progress::of(folder, target.name, 1)).unwrap();
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let this = "hunt::tests::a_file_of_a_corpus_that_hangs_ends_the_process";
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", this, "--nocapture"])
            .env(HANGS, folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("object: file 0 of its corpus hangs"), "{said}");
        assert_eq!(output.status.code(), Some(1), "{said}");
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
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../CONTRIBUTING.md");
        let text = fs::read_to_string(path).unwrap();
        let nightly: Vec<_> = text.lines().skip_while(|line| !line.contains("xtask fuzz --cases")).collect();
        let end = nightly.iter().position(|line| *line == "```").unwrap();
        let words: Vec<_> = nightly[..end].iter().flat_map(|line| line.split_whitespace()).collect();
        let left_out: Vec<_> = own.into_iter().filter(|name| !words.contains(name)).collect();
        assert_eq!(left_out, [""; 0], "by the nightly job");
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
