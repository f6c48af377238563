//! A control process: another instance of this program, which handles each packet as configured.

use crate::BenchError;
use crate::world::settle_beside;
use longwire_punt::client::{ClientError, Control, Event, Hello};
use longwire_punt::{
    Admission, AttachmentId, Capacity, ExpectedProcess, HEAD, Limits, Listener, Punt, Verdict,
};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Environment variable that makes a process of this program a control process, with its socket and work.
const PLACE: &str = "LONGWIRE_BENCH_ECHO";
const WORK: &str = "LONGWIRE_BENCH_WORK";
/// The name of its attachment.
pub const NAME: &str = "echo";
/// Guaranteed packets per second: more than possible.
pub const RATE: u64 = 100_000_000;

/// Work per packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketWork {
    /// Iterations of an empty loop: see [`turns_of`].
    pub turns: u32,
    /// Whether the whole packet is requested first.
    pub body: bool,
    /// Whether packets go on to the default forwarder, instead of back out of their ingress port.
    pub pass: bool,
}

impl PacketWork {
    fn text(self) -> String {
        format!("{} {} {}", self.turns, u8::from(self.body), u8::from(self.pass))
    }

    fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let turns = words.next()?.parse().ok()?;
        let mut flag = || Some(words.next()? == "1");
        Some(Self { turns, body: flag()?, pass: flag()? })
    }

    /// The verdict on a packet from this port.
    pub const fn verdict(self, port: u16) -> Verdict {
        if self.pass { Verdict::Pass } else { Verdict::Send { port, band: None } }
    }
}

/// An empty loop: the paper's delay loop, with a fixed number of iterations.
#[inline]
pub fn spin(turns: u32) {
    for turn in 0..turns {
        std::hint::black_box(turn);
    }
}

/// Iterations of [`spin`] that take this time on this machine: the best of several tries.
pub fn turns_of(time: Duration) -> u32 {
    const MANY: u32 = 100_000;
    let tries = (0..20).map(|_| {
        let begin = Instant::now();
        spin(MANY);
        begin.elapsed().as_nanos()
    });
    let best = tries.min().unwrap_or(1).max(1);
    u32::try_from(time.as_nanos() * u128::from(MANY) / best).unwrap_or(u32::MAX)
}

/// Acts as the control process of a bench if this process was started as one; returns false otherwise.
pub fn play_control_process() -> bool {
    let Some(path) = std::env::var_os(PLACE) else { return false };
    let work = std::env::var(WORK).ok().and_then(|text| PacketWork::read(&text)).unwrap_or_default();
    settle_beside();
    let hello = Hello { name: NAME.into(), packets: RATE, cycles: 0, share: 1 };
    // It ends when its host closes the socket. Other failures show up at the host as a disconnection.
    let _ = Control::connect(Path::new(&path), &hello).map(|mut control| {
        if work == PacketWork::default() {
            control.echo().map(|_| ())
        } else {
            serve(&mut control, work).map(|_| ())
        }
    });
    true
}

/// Handles packets until disconnected.
fn serve(control: &mut Control, work: PacketWork) -> Result<Infallible, ClientError> {
    /// Unsuccessful polls before it sleeps, and the number of answers per notification of the router.
    const LOOKS: u32 = 10_000;
    const TOGETHER: u32 = 32;
    // Indexed by the last 16 bits of tokens: no more packets are up at once.
    let mut ports = vec![0; 1 << 16];
    let (mut idle, mut said) = (0, 0);
    loop {
        let next = match control.next()? {
            Some(Event::Packet(facts, _)) => {
                ports[facts.token as usize & 0xffff] = facts.in_port;
                Some((facts.token, (facts.len as usize).saturating_sub(HEAD)))
            }
            Some(Event::Body(token, ..)) => Some((token, 0)),
            None => None,
        };
        let Some((token, rest)) = next else {
            if said > 0 {
                control.flush();
                said = 0;
            }
            idle += 1;
            std::hint::spin_loop();
            if idle == LOOKS {
                control.wait(Duration::from_millis(100))?;
                idle = 0;
            }
            continue;
        };
        if work.body && rest > 0 {
            while !control.fetch(token, HEAD as u32, rest as u32)? {
                control.flush();
            }
        } else {
            spin(work.turns);
            let verdict = work.verdict(ports[token as usize & 0xffff]);
            while !control.answer(token, verdict, &[])? {
                control.flush();
            }
        }
        (idle, said) = (0, said + 1);
        if said == TOGETHER {
            control.flush();
            said = 0;
        }
    }
}

/// The attachment, and the process once started. Both end when this is dropped.
#[derive(Debug)]
pub struct Guest {
    listener: Option<Listener>,
    child: Option<Child>,
}

impl Guest {
    /// Creates an attachment and opens its socket.
    ///
    /// # Errors
    /// If the socket can't be opened.
    pub fn expected(punt: &mut Punt, limits: Limits) -> Result<(Self, AttachmentId), BenchError> {
        let attachment = punt.add_control(NAME, limits).unwrap_or(AttachmentId::control(0));
        let admission = Admission::new(Capacity { packets: RATE, cycles: u64::MAX });
        let listener = Listener::open(&socket(), punt.control_sender(RATE), admission)?;
        let expected = ExpectedProcess { name: NAME.into(), limits, promise: None };
        listener.expect(attachment, expected).map_err(BenchError::not_here)?;
        Ok((Self { listener: Some(listener), child: None }, attachment))
    }

    /// Path of the socket.
    pub fn socket(&self) -> PathBuf {
        self.listener.as_ref().map(|listener| listener.path().to_path_buf()).unwrap_or_default()
    }

    /// Starts this program as the process.
    ///
    /// # Errors
    /// If it can't be started.
    pub fn start(&mut self, work: PacketWork) -> Result<(), BenchError> {
        let program = std::env::current_exe().map_err(BenchError::system("finding this program"))?;
        let mut command = Command::new(program);
        command.env(WORK, work.text());
        self.start_as(command)
    }

    /// Starts another program as the process.
    pub(crate) fn start_as(&mut self, mut command: Command) -> Result<(), BenchError> {
        let child = command.env(PLACE, self.socket()).spawn();
        self.child = Some(child.map_err(BenchError::system("starting a process"))?);
        Ok(())
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None)))
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.listener = None;
        if let Some(child) = &mut self.child {
            // It ends by itself, unless it hangs.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A unique path for each listener, because tests run in parallel.
fn socket() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("longwire-bench-{}-{count}.sock", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_told_in_a_text() {
        let work = PacketWork { turns: 70, body: true, pass: false };
        assert_eq!(PacketWork::read(&work.text()), Some(work));
        assert_eq!(PacketWork::read("7 1"), None);
        assert_eq!(PacketWork::read(""), None);
    }

    #[test]
    fn a_longer_time_has_more_turns() {
        assert!(turns_of(Duration::from_micros(50)) > turns_of(Duration::from_nanos(50)));
    }
}
