//! Progress of what takes longer than two seconds, on standard error if that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long something may take without a word.
const SILENCE: Duration = Duration::from_secs(2);
/// How often the time is redrawn.
const REDRAW: Duration = Duration::from_millis(250);

/// A line that says what is being done and for how long; it appears after two seconds and goes when this is dropped.
#[derive(Debug)]
pub struct Progress {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    bar: ProgressBar,
}

impl Progress {
    /// Begins. `what` is what is being done: `running scenarios/two-hosts.toml`. `expected` is how long it takes, if
    /// that is known.
    pub fn start(what: impl Into<String>, expected: Option<Duration>) -> Self {
        let bar = match expected {
            Some(time) => ProgressBar::new(time.as_millis().try_into().unwrap_or(u64::MAX)),
            None => ProgressBar::no_length(),
        };
        let template =
            if expected.is_some() { "{msg} {bar:30} {elapsed}" } else { "{msg} {spinner} {elapsed}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.into());
        bar.set_draw_target(ProgressDrawTarget::hidden());
        if !std::io::stderr().is_terminal() {
            return Self { end: None, thread: None, bar };
        }
        let (end, ended) = channel::<()>();
        let shown = bar.clone();
        let thread = std::thread::spawn(move || {
            let begin = Instant::now();
            let mut pause = SILENCE;
            while ended.recv_timeout(pause) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                if pause == SILENCE {
                    shown.set_draw_target(ProgressDrawTarget::stderr());
                }
                pause = REDRAW;
                let passed = begin.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
                shown.set_position(shown.length().map_or(passed, |length| passed.min(length)));
                shown.tick();
            }
        });
        Self { end: Some(end), thread: Some(thread), bar }
    }

    /// Changes what is being done.
    pub fn say(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It only draws; had it broken, its message has been printed.
            let _ = thread.join();
            self.bar.finish_and_clear();
        }
    }
}
