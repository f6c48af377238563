//! A control process that corrupts the memory shared with the router: it is cut off, and the router and the
//! service beside it continue.

use super::support::guarded::Guarded;
use super::support::lab::RunningLab;
use super::support::{json, longwire, repository, row, stderr, stdout};
use super::{Dice, times, until, wait};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Attaches as `echo`, then writes anything anywhere: single words, fake verdict records, and ring positions.
/// It ends when it is cut off.
const SCRIBBLER: &str = "\
import sys
sys.path.insert(0, sys.argv[1])
from control import *
import random
control, dice = Control(sys.argv[2], 'echo'), random.Random(int(sys.argv[3]))
def number():
    return dice.choice([0, 1, 2, 63, 64, 2**16, 2**31, 2**32, 2**63, 2**64 - 1, dice.getrandbits(64), \
    dice.getrandbits(8)])
def heads():
    control.words[dice.choice([UP_HEAD, UP_TAIL, DOWN_HEAD, DOWN_TAIL, ASLEEP, ENDED, NOW])] = number()
def anywhere():
    control.words[dice.randrange(len(control.words))] = number()
def on():
    control.words[DOWN_HEAD] = (control.words[DOWN_HEAD] + dice.randrange(100)) % 2**64
def record():
    small, large = 2**16 - 1, 2**32 - 1
    SAID.pack_into(control.down, dice.randrange(control.down_lines) * LINE, dice.randrange(6), number() & \
    small,
        number() & large, number(), number() & small, number() & small, number() & small, number() & large, \
        number() & large)
ways = [[record, on], [heads], [anywhere], [heads, anywhere, on, record]][dice.randrange(4)]
try:
    while control.socket is not None:
        for _ in range(50):
            dice.choice(ways)()
        try:
            if not control.socket.recv(64):
                break
        except BlockingIOError:
            pass
        # Whatever was written before, the router looks at it now, and finds more than there can be.
        if dice.randrange(200) == 0:
            control.words[DOWN_HEAD] = 2**63
except ConnectionError:
    pass
";

/// Endless packets for the process, as fast as a shell sends them.
const PACKETS: &str = "while :; do echo packet 2>/dev/null >/dev/udp/10.0.2.9/9; done";

/// The counters of the process's attachment.
fn attachment(lab: &RunningLab) -> Value {
    let levels = json(&longwire(&["forwarder", "levels", "r1", "--json", "--instance", &lab.name]), 0);
    let mut attachments = levels["rows"].as_array().into_iter().flatten();
    let attachment =
        attachments.find(|attachment| attachment["level"] == "control" && attachment["who"] == "echo");
    attachment.unwrap_or_else(|| panic!("no attachment in {levels}")).clone()
}

#[test]
fn a_process_that_scribbles_over_its_rings_harms_nobody_else() {
    let test = "a_process_that_scribbles_over_its_rings_harms_nobody_else";
    if Command::new("python3").arg("--version").output().is_err() {
        return println!("skipped {test}: there is no python3");
    }
    let scenario = repository("scenarios/levels.toml").display().to_string();
    let Some(lab) = RunningLab::of_file("scribbles", &scenario) else { return };
    let mut dice = Dice::new(test);
    let host = |script: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(["lab", "exec", &lab.name, "a", "--", "bash", "-c", script]);
        command
    };
    let packets = host(PACKETS).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let _packets = Guarded::killed(packets);
    let socket = longwire(&["forwarder", "levels", "r1", "--socket", "--instance", &lab.name]);
    let socket = stdout(&socket).trim().to_owned();
    let folder = repository("crates/punt/examples").display().to_string();
    for round in 1..=times(3, 100) {
        let seed = dice.next().to_string();
        let what = format!("round {round}, seed {seed}");
        let mut scribbler = Command::new("python3");
        scribbler.args(["-B", "-c", SCRIBBLER, &folder, &socket, &seed]);
        let mut scribbler = Guarded::killed(scribbler.stderr(Stdio::piped()).spawn().unwrap());
        let ended = wait(&mut scribbler, super::PATIENCE);
        assert!(ended.is_some_and(|status| status.success()), "{what}: {ended:?}, {:#}", attachment(&lab));
        let cut = until(super::PATIENCE, || {
            Some(attachment(&lab)).filter(|attachment| attachment["there"] == false)
        });
        let cut = cut.unwrap_or_else(|| panic!("{what}: it is still there: {:#}", attachment(&lab)));
        assert_eq!(cut["cut"], round, "{what}: {cut:#}");
    }
    // The service beside it answers; on a busy machine not always in time.
    let ask = "exec 3<>/dev/udp/10.0.2.9/7; echo word >&3; timeout 1 head -1 <&3";
    let answered = || (stdout(&host(ask).output().unwrap()).trim() == "word").then_some(());
    assert!(until(super::PATIENCE, answered).is_some(), "the service does not answer any more");
    let stats = json(&longwire(&["ctl", "stats", &lab.name, "--json"]), 0);
    assert_eq!(row(&stats, "packets accounted for")["pass"], true, "{stats:#}");
    let down = longwire(&["lab", "down", &lab.name]);
    assert!(down.status.success(), "{}", stderr(&down));
    assert!(!stdout(&down).contains("failed:"), "{}", stdout(&down));
}
