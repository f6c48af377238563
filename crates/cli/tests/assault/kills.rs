//! Commands killed at a random moment, by each of the signals that end one. Only what the next command
//! removes may be left, and no process at all.

use super::support::lab::can_make_labs;
use super::support::{longwire, stderr};
use super::victims::{Round, Scene, VICTIMS, Victim, prepare};
use super::{Dice, PATIENCE, times, until, wait, whole};
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Environment variable that marks the processes of one attack.
const MARK: &str = "LONGWIRE_ASSAULT_MARK";
/// Commands are killed within this time after their start, or within their duration if that is less.
const WINDOW: Duration = Duration::from_secs(3);
/// Window for commands that run until they are ended: by this time they have started.
const BEGINNING: Duration = Duration::from_secs(1);
/// Number of commands in the ordinary tests: one with a service, and others by the seed.
const SHORT: usize = 5;
const WITH_SERVICE: usize = 1;
/// The number of the round without a kill.
const UNDISTURBED: u64 = 200;

/// The processes with a mark.
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

/// Namespaces, sockets and states of labs on this machine.
fn traces() -> HashSet<String> {
    ["/run/netns", "/run/longwire"]
        .into_iter()
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten())
        .map(|entry| entry.path().display().to_string())
        .collect()
}

/// Remains of one attack: traces with its name or its process id that were not there `before`. A process id
/// alone may be that of an earlier process.
fn remains(name: &str, process: u32, before: &HashSet<String>) -> Vec<String> {
    let marks = [format!("-{process}-"), format!("-{process}."), name.to_owned()];
    let is_own = |path: &String| marks.iter().any(|mark| path.contains(mark.as_str()));
    traces().into_iter().filter(|path| !before.contains(path) && is_own(path)).collect()
}

#[test]
fn killed_commands_leave_nothing() {
    if !can_make_labs("killed_commands_leave_nothing") {
        return;
    }
    let mut dice = Dice::new("killed_commands_leave_nothing");
    let mut places: Vec<usize> = (0..VICTIMS.len()).collect();
    if !whole() {
        // One is always included, others by the seed.
        places.remove(WITH_SERVICE);
        while places.len() >= SHORT {
            places.remove(dice.below(places.len() as u64) as usize);
        }
        places.insert(0, WITH_SERVICE);
    }
    for place in places {
        let (victim, begin) = (&VICTIMS[place], Instant::now());
        let tap = longwire_lab::abilities().tap;
        if victim.needs_lab() && !tap.available {
            println!("skipped {}: {}", victim.line, tap.reason);
            continue;
        }
        let id = format!("k{}-{place}", std::process::id());
        let scene = Scene::new(victim, format!("{id}-lab"));
        let window = window(&scene, victim, &format!("{id}-whole"));
        let count = times(2, 30);
        for number in 0..count {
            let signal = ["KILL", "TERM", "INT", "HUP"][((number + place as u64) % 4) as usize];
            let round = Round { scene: &scene, name: format!("{id}-{number}"), number, fid: String::new() };
            attack(victim, round, signal, dice.below(window.as_millis() as u64 + 1));
        }
        scene.assert_well(victim.line);
        let seconds = begin.elapsed().as_secs_f64();
        println!("{}: {count} rounds within {} ms, {seconds:.1} s", victim.line, window.as_millis());
    }
}

/// Runs a command undisturbed and returns its duration, in which it is killed later. Asserts that it has
/// something to do.
fn window(scene: &Scene, victim: &Victim, name: &str) -> Duration {
    let limit = if victim.endless { BEGINNING } else { WINDOW };
    let mut round = Round { scene, name: name.to_owned(), number: UNDISTURBED, fid: String::new() };
    let before = traces();
    prepare(&mut round, victim, (MARK, name));
    let begin = Instant::now();
    let mut child = start(victim, &round);
    let status = wait(&mut child, limit);
    let taken = begin.elapsed();
    if let Some(status) = status {
        // Shortened measurements may miss their targets.
        assert!(matches!(status.code(), Some(0 | 1)), "{}: {status}: {}", victim.line, said(&round));
        assert!(!victim.endless, "{} ends at once: {}", victim.line, said(&round));
    }
    end(&mut child, "TERM", victim.line);
    clear(victim, &round, (child.id(), &before), victim.line);
    taken.min(limit)
}

/// Starts the command of a round.
fn start(victim: &Victim, round: &Round) -> Child {
    let log = File::create(round.scene.folder.path("stderr")).unwrap();
    let mut command = round.command(victim);
    command.env(MARK, &round.name).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    // A process that leaves the terminal can't lead a process group.
    if !victim.line.starts_with("lab hold") {
        command.process_group(0);
    }
    command.spawn().unwrap()
}

/// Standard error of the command of a round.
fn said(round: &Round) -> String {
    String::from_utf8_lossy(&std::fs::read(round.scene.folder.path("stderr")).unwrap()).into_owned()
}

/// Ends a process by a signal, unless it has ended.
fn end(child: &mut Child, signal: &str, what: &str) {
    if wait(child, Duration::ZERO).is_none() {
        let _ =
            Command::new("kill").args(["-s", signal, &child.id().to_string()]).stderr(Stdio::null()).status();
    }
    assert!(wait(child, PATIENCE).is_some(), "{what}: still runs");
}

/// Starts a command, kills it after `after` milliseconds, and checks for remains.
fn attack(victim: &Victim, mut round: Round, signal: &str, after: u64) {
    let what = format!("longwire {}, signal {signal} after {after} ms", victim.line);
    let (mark, before) = (round.name.clone(), traces());
    prepare(&mut round, victim, (MARK, &mark));
    let mut child = start(victim, &round);
    // Ends early if the command does.
    wait(&mut child, Duration::from_millis(after));
    end(&mut child, signal, &what);
    clear(victim, &round, (child.id(), &before), &what);
}

/// Asserts that no process is left, and nothing else after the next command has cleaned up.
fn clear(victim: &Victim, round: &Round, (process, before): (u32, &HashSet<String>), what: &str) {
    if victim.has_own_lab() {
        // A complete lab stays up, as it should, and is removed on request.
        let down = longwire(&["lab", "down", &round.name]);
        assert!(!stderr(&down).contains("panicked"), "{what}: {}", stderr(&down));
    }
    let gone = until(PATIENCE, || marked(&round.name).is_empty().then_some(()));
    assert!(gone.is_some(), "{what}: processes {:?} are left", marked(&round.name));
    assert!(!said(round).contains("panicked"), "{what}: {}", said(round));
    if remains(&round.name, process, before).is_empty() {
        return;
    }
    // The next command removes what SIGKILL kept the command itself from removing.
    let next = longwire(&["exec", "-q", "--private", "--", "true"]);
    assert!(next.status.success(), "{what}: {}", stderr(&next));
    assert_eq!(remains(&round.name, process, before), [""; 0], "{what}");
}
