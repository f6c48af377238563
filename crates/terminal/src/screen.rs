//! The terminal while the view has it, and the loop that reads keys and shows answers.

use crate::app::{App, InstanceOwner};
use crate::asking::{Answer, Ask, Asking, ViewRequest};
use crate::draw::draw;
use crate::key_input::{Input, KeyInput};
use crate::keys::{self, Action};
use crate::theme::Theme;
use crate::watched::WatchedInstance;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, Event};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use signal_hook::consts::{SIGINT, SIGTSTP};
use signal_hook::low_level::raise;
use std::io::{self, IsTerminal, Stdout};
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks at the instance.
const PERIOD: Duration = Duration::from_millis(500);

/// How the view ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewEnd {
    /// Somebody wants the end, or has closed the terminal: of the run, if it is of this process.
    End,
    /// Somebody wants to leave the view; a run of this process goes on.
    Detached,
    /// What the caller waited for has come.
    Over,
    /// The instance has ended, or does not answer any more.
    Gone(String),
}

/// Whether standard output is a terminal that can show the view: not a dumb one, and with this process in its
/// foreground.
pub fn fits() -> bool {
    let term = std::env::var("TERM").unwrap_or_default();
    io::stdout().is_terminal() && !term.is_empty() && term != "dumb" && in_foreground()
}

/// A process in the background would be stopped by what the view asks of the terminal. One without job
/// control is not.
fn in_foreground() -> bool {
    let foreground = rustix::termios::tcgetpgrp(io::stdout());
    foreground.map_or(true, |group| group == rustix::process::getpgrp())
}

/// Shows an instance until somebody leaves, or `over`. With `dashboard`, where that is.
///
/// # Errors
/// If the terminal can't be used.
pub fn view(
    watched: Box<dyn WatchedInstance>,
    owner: InstanceOwner,
    (name, dashboard): (String, Option<String>),
    over: impl FnMut() -> bool,
) -> io::Result<ViewEnd> {
    let asking = Asking::start(watched)?;
    let mut input = KeyInput::open()?;
    match show(&asking, App::new(owner, name, dashboard), &mut input, over) {
        // A closed terminal can't be written to.
        Err(_) if input.is_closed() => Ok(ViewEnd::End),
        end => end,
    }
}

/// Shows answers and reads keys until the end.
fn show(
    asking: &Asking,
    mut app: App,
    input: &mut KeyInput,
    mut over: impl FnMut() -> bool,
) -> io::Result<ViewEnd> {
    let theme = Theme::of_environment();
    let mut screen = Screen::enter()?;
    let mut pace = PollSchedule::new();
    let mut stale = true;
    loop {
        if over() {
            return Ok(ViewEnd::Over);
        }
        while let Ok(answer) = asking.answers.try_recv() {
            pace.answered(&answer);
            app.take(answer);
            stale = true;
        }
        if let Some(reason) = app.gone.take() {
            return Ok(ViewEnd::Gone(reason));
        }
        // A panic of another thread has restored the terminal.
        if !ACTIVE.load(Ordering::Relaxed) {
            return Ok(ViewEnd::Detached);
        }
        if std::mem::take(&mut stale) {
            screen.terminal.draw(|frame| draw(&mut app, theme, frame))?;
        }
        if let Some(wanted) = pace.next(&mut app) {
            ask(asking, Ask::Look(wanted))?;
        }
        let event = match input.next()? {
            Input::Event(event) => event,
            Input::Nothing => continue,
            Input::Closed => return Ok(ViewEnd::End),
        };
        stale = true;
        let action = match event {
            Event::Key(key) => keys::key(&mut app, key),
            Event::Paste(text) => {
                keys::paste(&mut app, &text);
                Action::None
            }
            _ => Action::None,
        };
        match action {
            Action::None => {}
            Action::Ask(question) => ask(asking, question)?,
            Action::End => return Ok(ViewEnd::End),
            Action::Detach => return Ok(ViewEnd::Detached),
            // The terminal makes no signal of it while the view has it.
            Action::Interrupt => raise(SIGINT)?,
            Action::Suspend => {
                if !screen.suspend()? {
                    return Ok(ViewEnd::Detached);
                }
            }
        }
    }
}

fn ask(asking: &Asking, question: Ask) -> io::Result<()> {
    let gone = |_| io::Error::other("the thread that asks the instance has ended");
    asking.asks.send(question).map_err(gone)
}

/// When the instance is asked how things are: one question at a time.
struct PollSchedule {
    waiting: bool,
    /// It has said how many links there are, or why it can't.
    knows_links: bool,
    last: Option<(Instant, ViewRequest)>,
}

impl PollSchedule {
    const fn new() -> Self {
        Self { waiting: false, knows_links: false, last: None }
    }

    fn answered(&mut self, answer: &Answer) {
        match answer {
            Answer::Looked(_) => (self.waiting, self.knows_links) = (false, true),
            _ => self.knows_links = true,
        }
    }

    /// The question that is due.
    fn next(&mut self, app: &mut App) -> Option<ViewRequest> {
        if self.waiting || !self.knows_links {
            return None;
        }
        let wanted = app.wanted();
        let due = app.refresh
            || match &self.last {
                None => !app.paused,
                Some((at, before)) => {
                    let others = (before.kind, &before.choice) != (wanted.kind, &wanted.choice);
                    others || !app.paused && at.elapsed() >= PERIOD
                }
            };
        if !due {
            return None;
        }
        app.refresh = false;
        (self.waiting, self.last) = (true, Some((Instant::now(), wanted.clone())));
        Some(wanted)
    }
}

/// Whether the view has the terminal.
static ACTIVE: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// The terminal, which is as before when this is dropped, and when a thread panics.
struct Screen {
    /// Never dropped: it would show the cursor, which is shown already, and panic if it can't say on a closed
    /// terminal that this failed.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Screen {
    fn enter() -> io::Result<Self> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                restore();
                before(info);
            }));
        });
        let entered = take().and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        entered.map(|terminal| Self { terminal: ManuallyDrop::new(terminal) }).inspect_err(|_| restore())
    }

    /// Stops this process as Ctrl-Z does. Afterwards the view goes on, unless it is in the background.
    fn suspend(&mut self) -> io::Result<bool> {
        restore();
        raise(SIGTSTP)?;
        if !in_foreground() {
            return Ok(false);
        }
        take()?;
        self.terminal.clear()?;
        Ok(true)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Takes the terminal.
fn take() -> io::Result<()> {
    ACTIVE.store(true, Ordering::Relaxed);
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, cursor::Hide)
}

/// Gives the terminal back, once. If it can't be written to there is nothing to restore.
fn restore() {
    if ACTIVE.swap(false, Ordering::Relaxed) {
        let _ = disable_raw_mode();
        let _ = execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen, cursor::Show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watched::WatchError;
    use longwire_control::{EventPage, Kind, Object, ObjectPage, ObjectQuery, Summary};
    use serde_json::Value;
    use std::fs;
    use std::process::Command;

    /// An instance that answers nothing.
    struct Silent;

    fn silence<R>() -> Result<R, WatchError> {
        Err(WatchError { reason: "no answer".into(), gone: false })
    }

    impl WatchedInstance for Silent {
        fn links(&self) -> Result<usize, WatchError> {
            silence()
        }

        fn summary(&self) -> Result<Summary, WatchError> {
            silence()
        }

        fn page(&self, _: Kind, _: &ObjectQuery) -> Result<ObjectPage, WatchError> {
            silence()
        }

        fn events(&self, _: u64) -> Result<EventPage, WatchError> {
            silence()
        }

        fn programs(&self, _: &str) -> Result<Value, WatchError> {
            silence()
        }

        fn description(&self) -> Result<Value, WatchError> {
            silence()
        }

        fn set(&self, _: Kind, _: &str, _: &[(String, String)]) -> Result<Object, WatchError> {
            silence()
        }
    }

    #[test]
    fn an_instance_that_is_silent_at_first_is_asked_again() {
        let Asking { asks, answers } = Asking::start(Box::new(Silent)).unwrap();
        // The thread ends after its first answers.
        drop(asks);
        let mut app = App::new(InstanceOwner::OtherProcess, "all".into(), None);
        let mut pace = PollSchedule::new();
        assert!(pace.next(&mut app).is_none());
        let answer = answers.recv().unwrap();
        pace.answered(&answer);
        app.take(answer);
        assert_eq!(app.trouble.as_deref(), Some("no answer"));
        assert!(pace.next(&mut app).is_some());
    }

    /// Set for the process on the terminal.
    const PANICS: &str = "LONGWIRE_TEST_PANICS";

    /// This test runs itself on a pseudo-terminal, where a thread panics while the view has the terminal.
    #[test]
    fn a_panic_of_any_thread_restores_the_terminal() {
        if std::env::var_os(PANICS).is_some() {
            let _screen = Screen::enter().unwrap();
            let panicked = std::thread::spawn(|| panic!("on purpose")).join();
            assert!(panicked.is_err() && !ACTIVE.load(Ordering::Relaxed));
            return;
        }
        if Command::new("script").arg("--version").output().is_err() {
            eprintln!("skipped: needs script of util-linux");
            return;
        }
        let folder = std::env::temp_dir().join(format!("longwire-screen-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (binary, at) = (std::env::current_exe().unwrap(), folder.display());
        let own = "--exact screen::tests::a_panic_of_any_thread_restores_the_terminal --nocapture";
        let line = format!(
            "stty cols 80 rows 24; stty -a > {at}/before; {} {own}; stty -a > {at}/after",
            binary.display()
        );
        let mut command = Command::new("script");
        command.args(["--quiet", "--command", &line, "/dev/null"]).env(PANICS, "1").env("SHELL", "/bin/sh");
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let entered = text.find("\u{1b}[?1049h").unwrap_or_else(|| panic!("no screen in {text:?}"));
        let (left, said) = (text.find("\u{1b}[?1049l").unwrap(), text.find("on purpose").unwrap());
        assert!(entered < left && left < said, "{text:?}");
        assert!(text.contains("1 passed"), "{text:?}");
        let file = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(file("before"), file("after"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
