//! The place above a router that a written forwarder asks for.

use crate::forwarder_plan::{ForwarderFault, WrittenForwarder, fault};
use crate::level_plan::{AboveRequest, Who};
use crate::settings::{ForwarderSettings, Level, Unanswered};
use longwire_program::{Program, assemble};
use longwire_punt::Request;
use longwire_punt::services::Native;

/// Longest name of a process.
const LONGEST_NAME: usize = 32;

impl WrittenForwarder {
    /// Who is asked for above; none if it runs on the data path only.
    pub(crate) fn above(&self, settings: &ForwarderSettings) -> Result<Option<AboveRequest>, ForwarderFault> {
        let who = match settings.level {
            Level::DataPath => return self.nobody_above(),
            Level::SlowPath => Who::Service(self.native()?),
            Level::Control => Who::Process,
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
        let missing = |field, what| fault(field, format!("it is not said {what}"));
        let packets =
            settings.packets.ok_or_else(|| missing("packets", "how many packets a second it is promised"))?;
        let cycles =
            settings.cycles.ok_or_else(|| missing("cycles", "how many cycles it needs for a packet"))?;
        Ok(Some(AboveRequest {
            who,
            name: name.into(),
            request: Request { packets, cycles },
            share: settings.share,
            within: settings.within,
            drops: settings.otherwise == Unanswered::Drop,
        }))
    }

    fn nobody_above(&self) -> Result<Option<AboveRequest>, ForwarderFault> {
        // What is said of packets that go up.
        let above = ["packets", "cycles", "share", "mark", "within", "otherwise"];
        let given = self.given().into_iter().filter(|(field, _)| above.contains(field));
        match [("service", &self.service)].into_iter().chain(given).find(|(_, value)| value.is_some()) {
            Some((field, _)) => Err(fault(
                field,
                "on the data path there is no such thing: write where = \"slow-path\" or \"control\"",
            )),
            None => Ok(None),
        }
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
