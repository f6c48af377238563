//! Attacks on the program as users have it: killed at any moment, given hostile input, flooded, changed
//! continuously. In the ordinary tests each is short; `cargo xtask assault` runs all of it, with another seed
//! each time.

#[path = "../support/mod.rs"]
mod support;

mod bombs;
mod captures;
mod floods;
mod kills;
mod pokes;
mod scribbles;
mod soak;
mod victims;

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time limit for eventual events, however busy the machine is: only hanging processes reach it.
const PATIENCE: Duration = Duration::from_secs(600);
/// Processor time limit of one command, in seconds: no command needs more on any machine.
const PROCESSOR_SECONDS: u32 = 120;
/// Polling interval.
const LOOK: Duration = Duration::from_millis(5);

/// Whether the full length is requested, as by `cargo xtask assault`.
fn whole() -> bool {
    std::env::var_os("LONGWIRE_ASSAULT").is_some()
}

/// Number of repetitions: `short` in the ordinary tests.
fn times(short: u64, whole_count: u64) -> u64 {
    if whole() { whole_count } else { short }
}

/// Random numbers (SplitMix64). The seed is printed, so that a run can be repeated.
struct Dice(u64);

impl Dice {
    fn new(what: &str) -> Self {
        let seed = std::env::var("LONGWIRE_ASSAULT").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
        println!("{what}: LONGWIRE_ASSAULT={seed}");
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Result of a command with limited memory and processor time.
struct Ran {
    status: Option<ExitStatus>,
    /// Standard error, then standard output.
    told: String,
}

impl Ran {
    /// Runs `longwire` with limits on memory and processor time, which end it by a signal if exceeded. No
    /// status means that it hung and was killed.
    fn bounded(args: &[&str]) -> Self {
        // 4 GiB of address space: hostile input must not exhaust the machine's memory.
        let script = format!("ulimit -v 4194304; ulimit -t {PROCESSOR_SECONDS}; exec \"$0\" \"$@\"");
        let mut child = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_longwire")])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let readers = [reader(child.stdout.take().unwrap()), reader(child.stderr.take().unwrap())];
        let status = wait(&mut child, PATIENCE);
        if status.is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let [stdout, stderr] = readers.map(|reader| reader.join().unwrap());
        Self { status, told: stderr + &stdout }
    }

    /// Refused with an explanation, or accepted; no signal, panic, or hang.
    #[track_caller]
    fn assert_orderly(&self, what: &str) {
        let status = self.status.unwrap_or_else(|| panic!("{what}: did not end"));
        let told = self.told.chars().take(2000).collect::<String>();
        assert!(status.signal().is_none(), "{what}: {status}: {told}");
        assert!(matches!(status.code(), Some(0..=2)), "{what}: {status}: {told}");
        assert!(!self.told.contains("panicked"), "{what}: {told}");
        assert!(status.success() || !self.told.trim().is_empty(), "{what}: refused without a word");
    }
}

/// Reads all that comes.
fn reader(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for a process within a limit.
fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    until(limit, || child.try_wait().unwrap())
}

/// Polls until there is a result, within a limit.
fn until<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        let found = look();
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        std::thread::park_timeout(LOOK);
    }
}
