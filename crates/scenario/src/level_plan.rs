//! The levels of a router above the data path, and requests for a place there, in a checked plan and
//! as people write it.

use crate::forwarder_plan::{ForwarderFault, WrittenForwarder, fault};
use crate::words::LevelWait;
use longwire_program::{Program, assemble};
use longwire_punt::services::Native;
use longwire_punt::{Admission, Capacity, DoesNotFit, Limits, Request, TRIP};
use longwire_units::{Nanos, Probability};

/// Capacities of a router's slow path and its control level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterLevels {
    /// The slow path: packets and cycles a second.
    pub slow: Capacity,
    /// The control level: packets and cycles a second of all processes together.
    pub control: Capacity,
    /// The scheduler by which services share their thread, one of `longwire_sched::SPECS`.
    pub scheduler: &'static str,
    /// How their thread waits.
    pub wait: LevelWait,
    /// What is set aside of the worker's time for moving packets to services and to processes and back, in
    /// nanoseconds a second; none if it is not bounded.
    pub worker: [Option<u64>; 2],
}

/// The default capacity of a level: an assumption, not measured.
const CAPACITY: Capacity = Capacity { packets: 1_000_000, cycles: 1_000_000_000 };

impl Default for RouterLevels {
    /// A million packets and a billion cycles a second each; start-time fair queueing; woken.
    fn default() -> Self {
        Self {
            slow: CAPACITY,
            control: CAPACITY,
            scheduler: "sfq",
            wait: LevelWait::Woken,
            worker: [None; 2],
        }
    }
}

impl RouterLevels {
    /// What is set aside of the worker's time for both levels, in nanoseconds a second.
    pub fn set_aside(&self) -> u64 {
        self.worker.iter().flatten().sum()
    }

    /// How long a service has the slow path for a packet of so many cycles: what virtual time takes it to
    /// need.
    pub fn time(&self, cycles: u64) -> Nanos {
        let time = u128::from(cycles) * 1_000_000_000 / u128::from(self.slow.cycles.max(1));
        Nanos(u64::try_from(time).unwrap_or(u64::MAX))
    }
}

/// A part of each second, in whole nanoseconds, the nearest: what is written in percent is no sum of powers
/// of two.
pub fn nanoseconds_of(part: Probability) -> u64 {
    ((u128::from(part.bits()) * 1_000_000_000 + (1 << 62)) >> 63) as u64
}

/// The receiver of packets that go up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// A service on the slow path.
    Service(&'static Native),
    /// A control process.
    Process,
}

/// A place above a router that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AboveRequest {
    /// Who is to be there.
    pub who: Who,
    /// Its name, by which a process attaches.
    pub name: Box<str>,
    /// Its guarantee.
    pub request: Request,
    /// Its share of what is promised to nobody, beside others'.
    pub share: u32,
    /// Within which time it has to answer.
    pub within: Nanos,
    /// Whether packets without an answer are dropped, instead of that the default forwarder takes them.
    pub drops: bool,
}

impl AboveRequest {
    /// The bounds of its attachment.
    pub fn limits(&self) -> Limits {
        let usual = Limits::default();
        let patience = usual.patience.max(self.within + self.within);
        let reserved = self.request.packets.saturating_mul(TRIP);
        Limits { answer_within: self.within, patience, drops: self.drops, reserved, ..usual }
    }
}

/// Guarantees on both levels of a router.
#[derive(Debug, Clone)]
pub struct Promises {
    slow: Admission,
    control: Admission,
}

impl Promises {
    /// None yet.
    pub const fn new(levels: &RouterLevels) -> Self {
        Self { slow: Admission::new(levels.slow), control: Admission::new(levels.control) }
    }

    /// Promises what is asked for.
    ///
    /// # Errors
    /// The arithmetic, if it does not fit; or the name is taken.
    pub fn admit(&mut self, above: &AboveRequest) -> Result<(), DoesNotFit> {
        let admission = match above.who {
            Who::Service(_) => &mut self.slow,
            Who::Process => &mut self.control,
        };
        admission.admit(&above.name, above.request)
    }
}

/// Within which times an answer can be asked for.
const WITHIN: (Nanos, Nanos) = (Nanos::from_millis(1), Nanos::from_secs(10));
/// Longest name of a process.
const LONGEST_NAME: usize = 32;

impl WrittenForwarder {
    /// Who is asked for above; none if it runs on the data path only.
    pub(crate) fn above(&self) -> Result<Option<AboveRequest>, ForwarderFault> {
        let who = match self.level.as_deref() {
            None | Some("data-path") => return self.nobody_above(),
            Some("slow-path") => Who::Service(self.native()?),
            Some("control") => Who::Process,
            Some(other) => {
                let why =
                    format!("\"{other}\" is no level: write \"data-path\", \"slow-path\" or \"control\"");
                return Err(fault("where", why));
            }
        };
        let name = match (self.name.as_deref(), who) {
            (Some(name), Who::Process) if name.is_empty() || name.len() > LONGEST_NAME => {
                return Err(fault("name", format!("it has 1 to {LONGEST_NAME} bytes")));
            }
            (Some(name), _) => name,
            (None, Who::Service(native)) => native.name,
            (None, Who::Process) => {
                return Err(fault(
                    "name",
                    "a control process comes by a name: write one, such as \"monitor\"",
                ));
            }
        };
        if let (Some(_), Who::Process) = (&self.service, who) {
            let why = "a control process is another program, not a service: leave it out, or write where = \
                \"slow-path\"";
            return Err(fault("service", why));
        }
        let packets =
            number("packets", self.packets.as_deref(), "how many packets a second it is promised", 1)?;
        let cycles = number("cycles", self.cycles.as_deref(), "how many cycles it needs for a packet", 0)?;
        let share = match &self.share {
            None => 1,
            Some(text) => text.parse().map_err(|_| fault("share", "it is a number from 0 to 4294967295"))?,
        };
        let (within, drops) = (self.within()?, self.drops()?);
        let request = Request { packets, cycles };
        Ok(Some(AboveRequest { who, name: name.into(), request, share, within, drops }))
    }

    fn within(&self) -> Result<Nanos, ForwarderFault> {
        let Some(text) = &self.within else { return Ok(Limits::default().answer_within) };
        let within: Nanos = text.parse().map_err(|error| fault("within", format!("{error}")))?;
        let (least, most) = WITHIN;
        if !(least..=most).contains(&within) {
            return Err(fault("within", format!("{within} is not a time from {least} to {most}")));
        }
        Ok(within)
    }

    fn drops(&self) -> Result<bool, ForwarderFault> {
        match self.otherwise.as_deref() {
            None | Some("pass") => Ok(false),
            Some("drop") => Ok(true),
            Some(other) => Err(fault("otherwise", format!("\"{other}\" is neither \"pass\" nor \"drop\""))),
        }
    }

    fn nobody_above(&self) -> Result<Option<AboveRequest>, ForwarderFault> {
        let given = [
            ("service", &self.service),
            ("packets", &self.packets),
            ("cycles", &self.cycles),
            ("share", &self.share),
            ("mark", &self.mark),
            ("within", &self.within),
            ("otherwise", &self.otherwise),
        ];
        match given.into_iter().find(|(_, value)| value.is_some()) {
            Some((field, _)) => Err(fault(
                field,
                "on the data path there is no such thing: write where = \"slow-path\" or \"control\"",
            )),
            None => Ok(None),
        }
    }

    /// The mark that packets which go up have to have.
    pub(crate) fn mark(&self) -> Result<Option<u32>, ForwarderFault> {
        let read = |text: &String| {
            text.parse().map_err(|_| fault("mark", format!("\"{text}\" is no number from 0 to 4294967295")))
        };
        self.mark.as_ref().map(read).transpose()
    }

    fn native(&self) -> Result<&'static Native, ForwarderFault> {
        let known = || Native::ALL.iter().map(|native| native.name).collect::<Vec<_>>().join(", ");
        match self.service.as_deref() {
            None => Err(fault("service", format!("it is not said which service: there are {}", known()))),
            Some(name) => Native::named(name).ok_or_else(|| {
                fault("service", format!("there is no service \"{name}\"; there are {}", known()))
            }),
        }
    }

    /// The program that lets all its packets pass: what goes up then is decided by the key alone.
    pub(crate) fn all_pass() -> Result<Program, ForwarderFault> {
        const PASS: &str = "r0 = 2\nexit";
        let code = assemble(PASS).map_err(|error| fault("program", error.to_string()))?;
        Ok(Program::new("pass", code, []))
    }
}

fn number(field: &'static str, text: Option<&str>, what: &str, least: u64) -> Result<u64, ForwarderFault> {
    let Some(text) = text else { return Err(fault(field, format!("it is not said {what}"))) };
    match text.replace('_', "").parse() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(fault(field, format!("\"{text}\" is no number from {least} on: write {what}"))),
    }
}
