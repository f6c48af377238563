//! The terminal view on a real pseudo-terminal, which util-linux's `script` makes.

mod support;

use longwire_control::{Client, Kind, ObjectQuery, Sort};
use serde_json::Value;
use std::io::{Read, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use support::guarded::Guarded;
use support::service::TWO_PORTS;
use support::{Folder, can_make_terminals, ended_by_all, json, row};

const ENTER_SCREEN: &str = "\u{1b}[?1049h";
const LEAVE_SCREEN: &str = "\u{1b}[?1049l";
const SHOW_CURSOR: &str = "\u{1b}[?25h";
/// Longest wait for output that has to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command on a terminal of 100 columns.
struct OnTerminal {
    /// What runs on the terminal ends with it.
    child: Guarded,
    keys: ChildStdin,
    output: Receiver<Vec<u8>>,
    seen: Vec<u8>,
    /// What its files are called.
    name: &'static str,
}

impl OnTerminal {
    /// Runs `longwire ARGS` on a terminal of this type.
    fn start(folder: &Folder, name: &'static str, term: &str, args: &str) -> Self {
        Self::start_in(folder, name, &[("TERM", term)], args)
    }

    /// Runs `longwire ARGS` with these variables, between two looks at how the terminal is set.
    fn start_in(folder: &Folder, name: &'static str, variables: &[(&str, &str)], args: &str) -> Self {
        let binary = env!("CARGO_BIN_EXE_longwire");
        let [before, after, status] =
            ["before", "after", "status"].map(|what| folder.text(&format!("{name}-{what}")));
        // The shell that looks at the terminal outlives a Ctrl-C, and the terminal.
        let command = format!(
            "trap : INT HUP; stty cols 100 rows 30; stty -a > {before}; {binary} {args}; echo $? > {status}; \
             stty -a > {after}"
        );
        let mut command_line = ended_by_all();
        command_line
            .env("LONGWIRE_RUN_DIR", folder.text("run"))
            .env("SHELL", "/bin/sh")
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied())
            .args(["script", "--quiet", "--flush", "--command", &command, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command_line.spawn().unwrap();
        let (keys, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = from.read(&mut bytes) {
                if sender.send(bytes[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child: Guarded::killed(child), keys, output, seen: Vec::new(), name }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Waits until `done`, which is asked whenever there is output: the view writes all the time.
    fn until(&mut self, what: &str, mut done: impl FnMut(&str) -> bool) {
        while !done(&self.text()) {
            match self.output.recv_timeout(PATIENCE) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(error) => panic!("{what}: {error}; it wrote {:?}", self.text()),
            }
        }
    }

    /// Waits until the view shows the links.
    fn until_shown(&mut self) {
        self.until("the view", |text| text.contains(ENTER_SCREEN) && text.contains("up.forward"));
    }

    /// Waits for the end; answers the exit status and all output. The terminal has to be as it was.
    fn end(mut self, folder: &Folder) -> (String, String) {
        while let Ok(bytes) = self.output.recv_timeout(PATIENCE) {
            self.seen.extend(bytes);
        }
        assert!(self.child.wait().unwrap().success());
        let file =
            |what: &str| std::fs::read_to_string(folder.path(&format!("{}-{what}", self.name))).unwrap();
        assert_eq!(file("before"), file("after"), "the terminal is set differently");
        let text = self.text();
        if let Some(entered) = text.rfind(ENTER_SCREEN) {
            let behind = &text[entered..];
            assert!(behind.contains(LEAVE_SCREEN) && behind.contains(SHOW_CURSOR), "{behind:?}");
        }
        (file("status").trim().to_owned(), text)
    }
}

fn scenario(folder: &Folder) -> String {
    folder.write("net.toml", TWO_PORTS)
}

/// What a command of `longwire` prints as JSON.
fn asked(folder: &Folder, args: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    json(&command.env("LONGWIRE_RUN_DIR", folder.text("run")).args(args).arg("--json").output().unwrap(), 0)
}

#[test]
fn keys_change_a_link_and_ctrl_c_ends_the_run() {
    if !can_make_terminals() {
        return;
    }
    let folder = Folder::new("terminal");
    let mut run = OnTerminal::start(&folder, "run", "xterm-256color", &format!("run {}", scenario(&folder)));
    run.until_shown();
    run.press("erate=7mbit delay=33ms\r");
    let settings = || row(&asked(&folder, &["ctl", "stats"]), "link up.forward")["settings"].clone();
    run.until("the change", |_| settings()["rate"] == "7 Mbit/s");
    assert_eq!(settings()["delay"], "33 ms");
    let other = row(&asked(&folder, &["ctl", "stats"]), "link up.backward")["settings"].clone();
    assert_eq!(other["rate"], "10 Mbit/s");
    assert_links_are_sorted(&folder);
    run.press("\u{3}");
    let (status, text) = run.end(&folder);
    assert_eq!(status, "0", "{text:?}");
    // The report comes behind the view.
    let report = &text[text.rfind(LEAVE_SCREEN).unwrap()..];
    assert!(report.contains("up.forward"), "{report:?}");
}

/// The instance sorts its links by what follows from their settings, either way round.
fn assert_links_are_sorted(folder: &Folder) {
    let client = Client::connect(&folder.path("run"), Some("net")).unwrap();
    let first = |sort, reverse| {
        let choice = ObjectQuery { sort: Some(sort), reverse, count: 1, ..ObjectQuery::default() };
        let page = client.page(Kind::Link, &choice).unwrap();
        assert_eq!(page.total, 2);
        page.objects[0].clone()
    };
    let slow = first(Sort::Delay, false);
    assert_eq!((slow.name.as_str(), &slow.stats["delay_ns"]), ("up.forward", &Value::from(33_000_000)));
    assert_eq!(slow.stats["down"], false);
    assert_eq!(first(Sort::Delay, true).name, "up.backward");
    assert_eq!(first(Sort::Name, false).name, "up.backward");
    client.set(Some(Kind::Link), "up.backward", &[("rate".into(), "0".into())]).unwrap();
    assert_eq!(first(Sort::Load, false).name, "up.backward");
}

#[test]
fn q_ends_the_own_run_after_a_question_and_top_at_once() {
    if !can_make_terminals() {
        return;
    }
    let folder = Folder::new("terminal");
    let mut run = OnTerminal::start(&folder, "run", "xterm-256color", &format!("run {}", scenario(&folder)));
    run.until_shown();
    let mut top = OnTerminal::start(&folder, "top", "xterm-256color", "top net");
    top.until_shown();
    top.press("q");
    assert_eq!(top.end(&folder).0, "0");
    // It did not end the run.
    assert_eq!(asked(&folder, &["ctl", "list"])["rows"][0]["name"], "net");
    run.press("qy");
    assert_eq!(run.end(&folder).0, "0");
}

#[test]
fn a_signal_restores_the_terminal() {
    if !can_make_terminals() {
        return;
    }
    let folder = Folder::new("terminal");
    let mut run = OnTerminal::start(&folder, "run", "xterm-256color", &format!("run {}", scenario(&folder)));
    run.until_shown();
    let pid = asked(&folder, &["ctl", "list"])["rows"][0]["pid"].to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
    assert_eq!(run.end(&folder).0, "0");
}

#[test]
fn a_closed_terminal_ends_the_run() {
    if !can_make_terminals() {
        return;
    }
    let folder = Folder::new("terminal");
    let mut run = OnTerminal::start(&folder, "run", "xterm-256color", &format!("run {}", scenario(&folder)));
    run.until_shown();
    let pid = asked(&folder, &["ctl", "list"])["rows"][0]["pid"].to_string();
    // Kills what holds the terminal, as when its window is closed.
    drop(run);
    let limit = PATIENCE.as_secs().to_string();
    let wait = ["tail", "--follow", "--sleep-interval=0.1", "--pid", &pid, "/dev/null"];
    let ended = Command::new("timeout").arg(limit).args(wait).status().unwrap().success();
    if !ended {
        Command::new("kill").args(["-s", "KILL", &pid]).status().unwrap();
    }
    assert!(ended, "it runs on");
    // It ended in order: a killed one leaves its socket.
    let left: Vec<_> =
        std::fs::read_dir(folder.path("run")).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(!left.iter().any(|path| path.extension().is_some_and(|end| end == "sock")), "{left:?}");
    // As after Ctrl-C: that nobody could read its report is no failure.
    let status = || std::fs::read_to_string(folder.path("run-status")).unwrap_or_default();
    let until = Instant::now() + PATIENCE;
    while !status().ends_with('\n') {
        assert!(Instant::now() < until, "its shell did not end");
    }
    assert_eq!(status(), "0\n");
}

#[test]
fn the_view_can_be_left_for_lines() {
    if !can_make_terminals() {
        return;
    }
    let folder = Folder::new("terminal");
    let mut run = OnTerminal::start(&folder, "run", "xterm-256color", &format!("run {}", scenario(&folder)));
    run.until_shown();
    run.press("qd");
    run.until("lines", |text| {
        text.rfind(LEAVE_SCREEN).is_some_and(|left| text[left..].contains("packets/s"))
    });
    // Now the terminal makes a signal of it.
    run.press("\u{3}");
    assert_eq!(run.end(&folder).0, "0");
}

/// Whether a text has a sequence that sets a colour other than the terminal's own.
fn has_colour(text: &str) -> bool {
    let is_colour = |code: &str| {
        code.parse::<u8>().is_ok_and(|code| matches!(code, 30..=38 | 40..=48 | 58 | 90..=97 | 100..=107))
    };
    text.split("\u{1b}[").skip(1).any(|sequence| {
        let codes = sequence.split_once('m').map_or("", |(codes, _)| codes);
        let is_style = codes.chars().all(|c| c.is_ascii_digit() || ";:".contains(c));
        is_style && codes.split([';', ':']).any(is_colour)
    })
}

#[test]
fn the_view_has_colours_unless_they_are_not_wanted() {
    if !can_make_terminals() {
        return;
    }
    let folder = Folder::new("terminal");
    let args = format!("run {}", scenario(&folder));
    let mut coloured = OnTerminal::start(&folder, "coloured", "xterm-256color", &args);
    coloured.until_shown();
    coloured.until("a colour", has_colour);
    coloured.press("qy");
    assert_eq!(coloured.end(&folder).0, "0");
    let variables = [("TERM", "xterm-256color"), ("NO_COLOR", "1")];
    let mut plain = OnTerminal::start_in(&folder, "plain", &variables, &args);
    plain.until_shown();
    plain.press("qy");
    let (status, text) = plain.end(&folder);
    assert_eq!(status, "0");
    assert!(!has_colour(&text), "{text:?}");
}

#[test]
fn errors_have_colours_unless_they_are_not_wanted() {
    if !can_make_terminals() {
        return;
    }
    let folder = Folder::new("terminal");
    let said = |args: &str, variables: &[(&str, &str)]| {
        let (status, text) = OnTerminal::start_in(&folder, "error", variables, args).end(&folder);
        assert_eq!(status, "2", "{text:?}");
        assert!(text.contains("error:"), "{text:?}");
        text.contains('\u{1b}')
    };
    for args in ["check /nonexistent", "check --frame-bytes x net.toml"] {
        assert!(said(args, &[("TERM", "xterm-256color")]));
        assert!(!said(args, &[("TERM", "xterm-256color"), ("NO_COLOR", "1")]));
        assert!(!said(args, &[("TERM", "dumb")]));
    }
}

#[test]
fn a_dumb_terminal_gets_lines() {
    if !can_make_terminals() {
        return;
    }
    let folder = Folder::new("terminal");
    let run = OnTerminal::start(&folder, "run", "dumb", &format!("run {} --for 2500ms", scenario(&folder)));
    let (status, text) = run.end(&folder);
    assert_eq!(status, "0");
    assert!(text.contains("packets/s") && !text.contains('\u{1b}'), "{text:?}");
}
