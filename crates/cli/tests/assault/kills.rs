//! Commands killed at a random moment, by each of the signals that end one. What may be left is what the next command
//! removes; nothing that runs may be left at all.

use super::support::{Folder, longwire, stderr};
use super::{Dice, PATIENCE, may_make_labs, times, until, wait};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Marks the processes of one attack, in their environment.
const MARK: &str = "LONGWIRE_ASSAULT_MARK";
/// Commands are killed within this time after their start.
const WINDOW_MS: u64 = 3000;

const SCENARIO: &str = "\
[[host]]
name = \"a\"
address = \"10.66.0.1/24\"
[[host]]
name = \"b\"
address = \"10.66.0.2/24\"
[[link]]
name = \"l\"
between = [\"a\", \"b\"]
delay = \"1 ms\"
";

/// The commands, each with arguments; `NAME` and `FILE` are those of the attack.
const COMMANDS: [&[&str]; 10] = [
    &["exec", "-q", "--private", "--delay", "1ms", "--", "sleep", "30"],
    &["exec", "-q", "--private", "--serve", "setsid sleep 30 & sleep 30", "--", "sleep", "30"],
    &["run", "FILE", "--name", "NAME", "--for", "30s"],
    &["lab", "up", "FILE", "--name", "NAME"],
    &["demo"],
    &["run", "FILE", "--virtual", "--for", "30s"],
    &["check", "FILE"],
    &["validate", "linkem", "--quick"],
    &["bench", "delay", "--quick"],
    &["calibrate", "--output", "/dev/null"],
];

/// How many of the commands the ordinary tests try.
const SHORT: usize = 4;

/// The processes that bear a mark.
fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let bears =
        |environment: Vec<u8>| environment.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes());
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| std::fs::read(entry.path().join("environ")).is_ok_and(bears))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// What is left of one attack: namespaces and files that bear its name or its process number.
fn traces(name: &str, process: u32) -> Vec<String> {
    let marks = [format!("-{process}-"), format!("-{process}."), name.to_owned()];
    ["/run/netns", "/run/longwire"]
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten())
        .map(|entry| entry.path().display().to_string())
        .filter(|path| marks.iter().any(|mark| path.contains(mark.as_str())))
        .collect()
}

#[test]
fn killed_commands_leave_nothing() {
    if !may_make_labs("killed_commands_leave_nothing") {
        return;
    }
    let mut dice = Dice::new("killed_commands_leave_nothing");
    let folder = Folder::new("kills");
    let file = folder.write("scenario.toml", SCENARIO);
    let commands = if super::whole() { &COMMANDS[..] } else { &COMMANDS[..SHORT] };
    for (place, command) in commands.iter().enumerate() {
        for round in 0..times(2, 30) {
            let signal = ["KILL", "TERM", "INT", "HUP"][((round + place as u64) % 4) as usize];
            let name = format!("k{}-{place}-{round}", std::process::id());
            attack(command, &file, &name, signal, dice.below(WINDOW_MS));
        }
    }
}

/// Starts a command, kills it after `after` milliseconds, and looks what is left.
fn attack(command: &[&str], file: &str, name: &str, signal: &str, after: u64) {
    let args = command.iter().map(|word| match *word {
        "FILE" => file,
        "NAME" => name,
        word => word,
    });
    let what = format!("{command:?}, signal {signal} after {after} ms");
    let mut child = Command::new(env!("CARGO_BIN_EXE_longwire"))
        .args(args)
        .env(MARK, name)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Ends early where the command does.
    if wait(&mut child, Duration::from_millis(after)).is_none() {
        let _ =
            Command::new("kill").args(["-s", signal, &child.id().to_string()]).stderr(Stdio::null()).status();
    }
    assert!(wait(&mut child, PATIENCE).is_some(), "{what}: still runs");
    // A lab that came up stays up, as it should, and goes on request.
    let down = longwire(&["lab", "down", name]);
    assert!(!stderr(&down).contains("panicked"), "{what}: {}", stderr(&down));
    let gone = until(PATIENCE, || marked(name).is_empty().then_some(()));
    assert!(gone.is_some(), "{what}: processes {:?} are left", marked(name));
    // The next command clears up what SIGKILL did not let the command itself remove.
    let next = longwire(&["exec", "-q", "--private", "--", "true"]);
    assert!(next.status.success(), "{what}: {}", stderr(&next));
    assert_eq!(traces(name, child.id()), [""; 0], "{what}");
}
