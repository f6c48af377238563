//! Control processes: well behaved, killed, silent, flooding, in Python, and none at all.
#![forbid(unsafe_code)]

mod support;

use longwire_punt::client::{ClientError, Control, Event, Hello};
use longwire_punt::{
    Admission, AttachmentId, Capacity, Counts, CutReason, ExpectedProcess, Limits, Listener, Punt, Request,
    Verdict,
};
use longwire_units::Nanos;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Below, PATIENCE};

const ROLE: &str = "LONGWIRE_TEST_ROLE";
const SOCKET: &str = "LONGWIRE_TEST_SOCKET";

struct Router {
    below: Below,
    attachment: AttachmentId,
    listener: Listener,
}

impl Router {
    /// With an attachment called "test"; `name` makes the socket's path.
    fn new(name: &str, limits: Limits) -> Self {
        let mut punt = Punt::new(vec![0, 1]);
        let attachment = punt.add_control("test", limits).unwrap();
        let path = std::env::temp_dir().join(format!("longwire-{name}-{}.sock", std::process::id()));
        let admission = Admission::new(Capacity { packets: 1_000_000, cycles: 1_000_000_000 });
        let sender = punt.control_sender(admission.capacity().packets);
        let listener = Listener::open(&path, sender, admission).unwrap();
        listener.expect(attachment, ExpectedProcess { name: "test".into(), limits, promise: None }).unwrap();
        Self { below: Below::new(punt), attachment, listener }
    }

    fn counts(&self) -> Counts {
        self.below.punt.counts(self.attachment)
    }

    /// Waits until the process has attached.
    fn await_guest(&mut self) {
        let attachment = self.attachment;
        self.below.until(|_| (), |below| below.punt.is_taken(attachment));
    }

    /// Offers packets of different lengths until `done`, and yields the processor between batches.
    fn feed(&mut self, done: impl FnMut(&Below) -> bool) {
        let attachment = self.attachment;
        let mut count = 0u64;
        self.below.until(
            |below| {
                for _ in 0..16 {
                    count += 1;
                    let mut frame = vec![0; 60 + (count * 97 % 1400) as usize];
                    frame[..8].copy_from_slice(&count.to_le_bytes());
                    // What is refused is counted.
                    let _ = below.offer(attachment, &frame);
                }
            },
            done,
        );
    }

    /// Checks that all packets that went up have come back.
    fn assert_settled(&mut self) {
        self.below.until(|_| (), |below| below.punt.kept() == 0);
        let counts = self.counts();
        assert_eq!(self.below.up, counts.verdicts + counts.late + counts.returned, "{counts:?}");
        assert_eq!(self.below.up + counts.made, self.below.sends + self.below.drops + self.below.passes);
    }
}

/// No process is cut off for being slow: the machine may be.
fn patient() -> Limits {
    Limits { answer_within: Nanos::from_secs(60), patience: Nanos::from_secs(60), ..Limits::default() }
}

fn spawn(role: &str, router: &Router) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "what_a_child_does", "--nocapture"]);
    command.env(ROLE, role).env(SOCKET, router.listener.path()).stdout(Stdio::null());
    command.spawn().unwrap()
}

fn join(path: &Path, role: &str) -> Control {
    // All of the level's capacity, except for the process with a hundredth of it.
    let packets = if role == "flood" { 1000 } else { 500_000 };
    let cycles = if role == "busy" { 20 } else { 1_000_000_000 / packets };
    let hello = Hello { name: "test".into(), packets, cycles, share: 0 };
    Control::connect(path, &hello).unwrap()
}

/// Not a test: child processes run it.
#[test]
fn what_a_child_does() {
    let (Ok(role), Some(path)) = (std::env::var(ROLE), std::env::var_os(SOCKET)) else { return };
    let mut control = join(&PathBuf::from(path), &role);
    let ended = loop {
        let done = match role.as_str() {
            "echo" => echo(&mut control),
            "silent" => control.wait(Duration::from_millis(10)),
            "flood" => flood(&mut control),
            "busy" => busy(&mut control),
            other => panic!("nobody plays {other}"),
        };
        if let Err(error) = done {
            break error;
        }
    };
    assert!(matches!(ended, ClientError::Ended(_)), "{ended}");
}

/// Sends packets back, and requests the bodies of long ones first.
fn echo(control: &mut Control) -> Result<(), ClientError> {
    let mut answers = Vec::new();
    while let Some(event) = control.next()? {
        match event {
            Event::Packet(facts, _) if facts.len > 1000 => answers.push((facts.token, Some(facts.len))),
            Event::Packet(facts, head) => {
                assert_eq!((facts.class.fid, head.len()), (5, (facts.len as usize).min(64)));
                answers.push((facts.token, None));
            }
            Event::Body(token, from, bytes) => {
                assert!(from == 64 && (bytes.is_empty() || bytes.len() > 936), "{} bytes", bytes.len());
                answers.push((token, None));
            }
        }
    }
    let was_idle = answers.is_empty();
    for (token, len) in answers {
        let said = match len {
            Some(len) => control.fetch(token, 64, len)?,
            None => control.answer(token, Verdict::Send { port: 1, band: None }, &[])?,
        };
        assert!(said, "the ring has room for an answer to everything that is up");
    }
    if was_idle {
        control.wait(Duration::from_millis(100))
    } else {
        control.flush();
        Ok(())
    }
}

/// Sends new packets, as many as possible.
fn flood(control: &mut Control) -> Result<(), ClientError> {
    while control.send(1, &[7; 60])? {}
    control.flush();
    control.next().map(|_| ())
}

/// Sends packets back, and computes for ever.
fn busy(control: &mut Control) -> Result<(), ClientError> {
    let mut tokens = Vec::new();
    while let Some(event) = control.next()? {
        if let Event::Packet(facts, _) = event {
            tokens.push(facts.token);
        }
    }
    for token in tokens {
        control.answer(token, Verdict::Pass, &[])?;
    }
    control.flush();
    Ok(())
}

#[test]
fn a_process_that_takes_more_of_its_processor_than_promised_gets_no_more_packets_and_is_cut_off() {
    let mut router = Router::new("busy", patient());
    let mut child = spawn("busy", &router);
    router.await_guest();
    // It has a guarantee of a hundredth of a processor: its saved 200 ms are soon gone.
    let attachment = router.attachment;
    router.feed(|below| below.punt.counts(attachment).over_cycles > 0);
    let counts = router.counts();
    assert!(counts.throttled == 1 && counts.processor_ns > 200_000_000, "{counts:?}");
    // No packet goes up to it, but it continues.
    router.feed(|below| below.gone > 0);
    router.assert_settled();
    let counts = router.counts();
    assert_eq!((counts.last_cut, counts.cut), (Some(CutReason::Overrun), 1), "{counts:?}");
    assert!(counts.verdicts > 0 && counts.processor_ns > 1_000_000_000, "{counts:?}");
    assert!(child.wait().unwrap().success(), "it was told");
}

#[test]
fn a_process_echoes_until_it_is_killed_and_another_takes_its_place() {
    let mut router = Router::new("echo", patient());
    let mut child = spawn("echo", &router);
    router.await_guest();
    router.feed(|below| below.sends > 5000);
    child.kill().unwrap();
    child.wait().unwrap();
    // From here on nobody answers: packets that are up come back, and later ones find no process attached.
    router.feed(|below| below.gone > 100);
    router.assert_settled();
    let counts = router.counts();
    assert_eq!(
        (counts.last_cut, counts.cut, counts.late, counts.faults),
        (Some(CutReason::Left), 1, 0, 0),
        "{counts:?}"
    );
    assert!(counts.bodies > 0 && counts.bodiless == 0, "{counts:?}");
    assert!(router.below.sent.iter().all(|(port, frame)| *port == 1 && frame.len() >= 60));

    let sent = router.below.sends;
    let mut child = spawn("echo", &router);
    router.await_guest();
    router.feed(|below| below.sends > sent + 1000);
    router.below.until(|_| (), |below| below.punt.kept() == 0);
    assert_eq!((router.counts().came, router.counts().faults), (2, 0));
    drop(router);
    assert!(child.wait().unwrap().success(), "it was told that the router is gone");
}

#[test]
fn a_silent_process_is_cut_off_and_its_packets_are_forwarded() {
    let limits = Limits {
        answer_within: Nanos::from_millis(5),
        patience: Nanos::from_millis(100),
        ..Limits::default()
    };
    let mut router = Router::new("silent", limits);
    let mut child = spawn("silent", &router);
    router.await_guest();
    router.feed(|below| below.gone > 0);
    router.assert_settled();
    assert_eq!((router.counts().last_cut, router.counts().verdicts), (Some(CutReason::Stalled), 0));
    assert!(router.counts().late > 0 && router.below.passes == router.below.up);
    assert!(child.wait().unwrap().success(), "it was told");
}

#[test]
fn a_flooding_process_is_cut_off_and_sends_no_more_than_promised() {
    let mut router = Router::new("flood", Limits { faults: 100, ..patient() });
    // Before it can have sent anything, however slow the machine is.
    let begin = Instant::now();
    let mut child = spawn("flood", &router);
    router.await_guest();
    router.feed(|below| below.gone > 0);
    let promised = 126.0 + begin.elapsed().as_secs_f64() * 1000.0;
    router.assert_settled();
    let counts = router.counts();
    assert_eq!(counts.last_cut, Some(CutReason::Flood), "{counts:?}");
    assert!(counts.made as f64 <= promised, "{counts:?}");
    assert!(child.wait().unwrap().success(), "it was told");
}

#[test]
fn who_is_not_expected_or_asks_too_much_is_refused_with_the_reason() {
    let router = Router::new("refused", Limits::default());
    let ask = |name: &str, packets, cycles| {
        let hello = Hello { name: name.into(), packets, cycles, share: 1 };
        Control::connect(router.listener.path(), &hello)
    };
    let refused = |name, packets, cycles| ask(name, packets, cycles).unwrap_err().to_string();
    assert_eq!(refused("nobody", 1, 1), "refused: nobody is expected by the name \"nobody\"; expected: test");
    assert_eq!(
        refused("test", 800_000, 1510),
        "refused: 800000 packets/s x 1510 cycles = 1208000000 cycles/s, and 0 promised already, make \
         1208000000 of 1000000000: 208000000 too many; ask for at most 662251 packets/s"
    );
    let first = ask("test", 10, 10).unwrap();
    assert_eq!(refused("test", 10, 10), "refused: test is there already");
    drop(first);
    let begin = Instant::now();
    while ask("test", 10, 10).is_err() {
        assert!(begin.elapsed() < PATIENCE, "its place is free again");
        std::thread::yield_now();
    }
    assert!(ask(&"x".repeat(33), 1, 1).is_err());
}

/// A process that was cut off with its forwarder may attach again before the socket refuses it.
#[test]
fn who_comes_to_a_removed_attachment_is_told() {
    let mut router = Router::new("removed", Limits::default());
    router.below.punt.remove(router.attachment);
    let mut control = join(router.listener.path(), "echo");
    let begin = Instant::now();
    let ended = loop {
        assert!(begin.elapsed() < PATIENCE);
        router.below.turn();
        if let Err(error) = control.wait(Duration::from_millis(1)) {
            break error;
        }
    };
    assert!(matches!(ended, ClientError::Ended(Some(CutReason::Stopped))), "{ended}");
    assert_eq!(router.below.punt.add_control("next", Limits::default()), Some(router.attachment));
}

#[test]
fn who_comes_when_too_many_are_attaching_is_refused() {
    let router = Router::new("crowd", Limits::default());
    let hello = Hello { name: "test".into(), packets: 1, cycles: 1, share: 1 };
    let (begin, mut came) = (Instant::now(), 0);
    // The router looks at none of those who come and go.
    let refused = loop {
        assert!(begin.elapsed() < PATIENCE && came <= 64, "{came} came");
        match Control::connect(router.listener.path(), &hello) {
            Ok(_) => came += 1,
            Err(error) if error.to_string().ends_with("is there already") => std::thread::yield_now(),
            Err(error) => break error.to_string(),
        }
    };
    assert_eq!(refused, "refused: the memory can't be shared: too many processes or services are attaching");
    assert_eq!(came, 64);
}

#[test]
fn what_was_promised_beforehand_is_kept_and_no_more_is_given() {
    let mut router = Router::new("promised", Limits::default());
    let mut expect = |name: &str, packets, cycles| {
        let attachment = router.below.punt.add_control(name, Limits::default()).unwrap();
        let promise = Some((Request { packets, cycles }, 1));
        let expected = ExpectedProcess { name: name.into(), limits: Limits::default(), promise };
        (attachment, router.listener.expect(attachment, expected).map_err(|error| error.to_string()))
    };
    let (early, done) = expect("early", 700_000, 1000);
    assert_eq!(done, Ok(()));
    assert_eq!(expect("early", 1, 1).1, Err("early has been admitted already".into()));
    let (_, refused) = expect("late", 400_000, 100);
    let sum = "400000 packets/s, and 700000 promised already, make 1100000 of 1000000: 100000 too many; ask \
        for at most 300000";
    assert_eq!(refused, Err(sum.into()));
    let ask = |packets, cycles| {
        let hello = Hello { name: "early".into(), packets, cycles, share: 9 };
        Control::connect(router.listener.path(), &hello).map_err(|error| error.to_string())
    };
    assert_eq!(
        ask(700_001, 1000).unwrap_err(),
        "refused: early asks for 700001 packets/s x 1000 cycles, and was promised 700000 packets/s x 1000 \
         cycles: ask for no more, or promise it more"
    );
    assert!(ask(1, 1001).is_err());
    let control = ask(0, 0).unwrap();
    router.below.until(|_| (), |below| below.punt.is_taken(early));
    // It leaves, and its guarantee stays: no other process gets it.
    drop(control);
    router.below.until(|_| (), |below| !below.punt.is_taken(early));
    let mut expect = |packets| {
        let attachment = router.below.punt.add_control("other", Limits::default()).unwrap();
        let promise = Some((Request { packets, cycles: 100 }, 1));
        router
            .listener
            .expect(attachment, ExpectedProcess { name: "other".into(), limits: Limits::default(), promise })
    };
    assert!(expect(400_000).is_err());
    router.listener.forget(early);
    assert_eq!(expect(400_000), Ok(()));
}

/// The rest is divided among those present, also after one has left.
#[test]
fn what_a_process_had_is_for_the_others_once_it_has_left() {
    let mut punt = Punt::new(vec![0, 1]);
    let attachments = ["stays", "leaves"].map(|name| punt.add_control(name, patient()).unwrap());
    let path = std::env::temp_dir().join(format!("longwire-shares-{}.sock", std::process::id()));
    let admission = Admission::new(Capacity { packets: 800, cycles: 1_000_000_000 });
    let listener = Listener::open(&path, punt.control_sender(800), admission).unwrap();
    let mut below = Below::new(punt);
    let processes = [("stays", attachments[0]), ("leaves", attachments[1])].map(|(name, attachment)| {
        let expected = ExpectedProcess { name: name.into(), limits: patient(), promise: None };
        listener.expect(attachment, expected).unwrap();
        let hello = Hello { name: name.into(), packets: 0, cycles: 0, share: 1 };
        let control = Control::connect(&path, &hello).unwrap();
        below.until(|_| (), |below| below.punt.is_taken(attachment));
        control
    });
    // How many packets go up at once: those of an eighth of a second, and one.
    let burst = |below: &mut Below| {
        let now = below.now();
        (0..200).filter(|_| below.offer_at(now, attachments[0], &[7; 60]).is_ok()).count()
    };
    assert_eq!(burst(&mut below), 51);
    let [_stays, leaves] = processes;
    drop(leaves);
    below.until(|_| (), |below| !below.punt.is_taken(attachments[1]));
    assert_eq!(burst(&mut below), 101);
}

#[test]
fn nonsense_in_the_socket_disturbs_nobody() {
    let mut router = Router::new("nonsense", Limits::default());
    let connect = || UnixStream::connect(router.listener.path()).unwrap();
    // Silent ones, more than the limit; none of them blocks others.
    let silent: Vec<_> = (0..12).map(|_| connect()).collect();
    let mut dice = 1u64;
    for round in 0..50 {
        let mut socket = connect();
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (dice >> 56) as u8
        })
        .take(1 + round * 7)
        .collect();
        // The other side may already have closed.
        let _ = socket.write_all(&bytes);
        if bytes.len() >= 64 {
            let mut answer = Vec::new();
            let _ = socket.read_to_end(&mut answer);
            assert!(answer.is_empty() || answer[12] == 1, "refused");
        }
    }
    drop(silent);
    let mut child = spawn("echo", &router);
    router.await_guest();
    router.feed(|below| below.sends > 100);
    child.kill().unwrap();
    child.wait().unwrap();
    router.assert_settled();
}

#[test]
fn python_echoes() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let limits = patient();
    let mut router = Router::new("python", limits);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/control.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(router.listener.path()).args(["test", "500000"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    router.await_guest();
    router.feed(|below| below.sends > 5000);
    router.assert_settled();
    assert!(router.below.sent.iter().all(|(port, _)| *port == 0), "out of the port they came in by");
    assert_eq!((router.counts().faults, router.counts().cut), (0, 0));
    drop(router);
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success() && said.starts_with("cut off: "), "{said}");
}
