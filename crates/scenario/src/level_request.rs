//! The request for a place on a level above the data path, from a forwarder as written.

use crate::forwarder_plan::{ForwarderFault, WrittenForwarder, fault};
use crate::level_plan::{AboveRequest, Receiver};
use crate::settings::{ForwarderSettings, Level, UnansweredPackets};
use longwire_program::{Program, assemble};
use longwire_punt::Request;
use longwire_punt::services::Native;

/// Longest name of a process.
const LONGEST_NAME: usize = 32;

impl WrittenForwarder {
    /// What it asks for above; none for a program of the data path only.
    pub(crate) fn above(&self, settings: &ForwarderSettings) -> Result<Option<AboveRequest>, ForwarderFault> {
        let receiver = match settings.level {
            Level::DataPath => return self.nobody_above(),
            Level::SlowPath => Receiver::Service(self.native()?),
            Level::Control => Receiver::Process,
        };
        let name = match (self.name.as_deref(), receiver) {
            (Some(name), Receiver::Process) if name.is_empty() || name.len() > LONGEST_NAME => {
                return Err(fault("name", format!("it has 1 to {LONGEST_NAME} bytes")));
            }
            (Some(name), _) => name,
            (None, Receiver::Service(native)) => native.name,
            (None, Receiver::Process) => {
                return Err(fault(
                    "name",
                    "a control process attaches by its name: write one, such as \"monitor\"",
                ));
            }
        };
        if let (Some(_), Receiver::Process) = (&self.service, receiver) {
            let why = "a control process is another program, not a service: leave it out, or write where = \
                \"slow-path\"";
            return Err(fault("service", why));
        }
        let missing = |field, what| fault(field, format!("{what} is missing"));
        let packets = settings
            .packets
            .ok_or_else(|| missing("packets", "the number of packets per second to guarantee"))?;
        let cycles = settings.cycles.ok_or_else(|| missing("cycles", "the number of cycles per packet"))?;
        Ok(Some(AboveRequest {
            receiver,
            name: name.into(),
            request: Request { packets, cycles },
            share: settings.share,
            within: settings.within,
            drops: settings.otherwise == UnansweredPackets::Drop,
        }))
    }

    fn nobody_above(&self) -> Result<Option<AboveRequest>, ForwarderFault> {
        // Settings of packets that go up.
        let above = ["packets", "cycles", "share", "mark", "within", "otherwise"];
        let given = self.given().into_iter().filter(|(field, _)| above.contains(field));
        match [("service", &self.service)].into_iter().chain(given).find(|(_, value)| value.is_some()) {
            Some((field, _)) => Err(fault(
                field,
                "the data path has no such setting: write where = \"slow-path\" or \"control\"",
            )),
            None => Ok(None),
        }
    }

    fn native(&self) -> Result<&'static Native, ForwarderFault> {
        let known = || Native::ALL.iter().map(|native| native.name).collect::<Vec<_>>().join(", ");
        match self.service.as_deref() {
            None => Err(fault("service", format!("no service is named: there are {}", known()))),
            Some(name) => Native::named(name).ok_or_else(|| {
                fault("service", format!("there is no service \"{name}\"; there are {}", known()))
            }),
        }
    }

    /// The program that passes every packet: then the key alone decides what goes up.
    pub(crate) fn all_pass() -> Result<Program, ForwarderFault> {
        const PASS: &str = "r0 = 2\nexit";
        let code = assemble(PASS).map_err(|error| fault("program", error.to_string()))?;
        Ok(Program::new("pass", code, []))
    }
}
