//! Progress of operations that take longer than two seconds, on standard error: a line that is redrawn on a
//! terminal, else plain lines.

use crate::outcome;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Delay before progress is shown.
const SILENCE: Duration = Duration::from_secs(2);
/// Redraw interval of the time.
const REDRAW: Duration = Duration::from_millis(250);

/// A progress message, shown after two seconds. On a terminal it is a line with the elapsed time, which
/// disappears when this is dropped; elsewhere it is printed once, and each step when it begins.
#[derive(Debug)]
pub struct Progress {
    thread: Option<(Sender<()>, JoinHandle<()>)>,
    bar: ProgressBar,
    redrawn: bool,
}

impl Progress {
    /// Starts a progress message. `what` describes the operation: `running scenarios/two-hosts.toml`.
    /// `expected` is its duration, if known.
    pub fn start(what: impl Into<String>, expected: Option<Duration>) -> Self {
        let what = what.into();
        let (end, ended) = channel::<()>();
        let redrawn = std::io::stderr().is_terminal();
        let bar = bar(&what, expected);
        let shown = bar.clone();
        let show = move || if redrawn { redraw(&shown, &ended) } else { say_late(&what, &ended) };
        Self { thread: Some((end, std::thread::spawn(show))), bar, redrawn }
    }

    /// Changes the description.
    pub fn say(&self, what: impl Into<String>) {
        let what = what.into();
        if !self.redrawn && self.bar.message() != what {
            outcome::note(&what);
        }
        self.bar.set_message(what);
    }

    /// Starts an operation with steps, each of which is reported.
    pub fn of_steps(what: &str) -> Self {
        if std::io::stderr().is_terminal() {
            return Self::start(what, None);
        }
        Self { thread: None, bar: bar(what, None), redrawn: false }
    }
}

/// A bar that is not shown yet.
fn bar(what: &str, expected: Option<Duration>) -> ProgressBar {
    let (bar, template) = match expected {
        Some(time) => {
            let length = time.as_millis().try_into().unwrap_or(u64::MAX);
            (ProgressBar::new(length), "{msg} {bar:30} {elapsed}")
        }
        None => (ProgressBar::no_length(), "{msg} {spinner} {elapsed}"),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar.set_draw_target(ProgressDrawTarget::hidden());
    bar
}

fn redraw(bar: &ProgressBar, ended: &Receiver<()>) {
    let begin = Instant::now();
    let mut pause = SILENCE;
    while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        if pause == SILENCE {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        pause = REDRAW;
        let passed = begin.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
        bar.set_position(bar.length().map_or(passed, |length| passed.min(length)));
        bar.tick();
    }
}

fn say_late(what: &str, ended: &Receiver<()>) {
    if ended.recv_timeout(SILENCE) == Err(RecvTimeoutError::Timeout) {
        outcome::note(what);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.thread.take() {
            drop(end);
            // The thread only draws; if it panicked, its message has been printed.
            let _ = thread.join();
            self.bar.finish_and_clear();
        }
    }
}
