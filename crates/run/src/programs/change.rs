//! Changes of routers' programs, for logs.

use longwire_control::{NewForwarder, ProgramRequest};
use longwire_units::Nanos;
use serde_json::Value;
use std::fmt;

/// A change of a router's programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramChange {
    /// The router.
    pub router: String,
    /// The program's number.
    pub fid: u32,
    /// What happened to it.
    pub event: ProgramEvent,
}

/// What happened to a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramEvent {
    /// It was installed.
    Installed {
        /// What it is.
        program: String,
        /// The length of its lease, if it has one.
        lease: Option<Nanos>,
    },
    /// It was replaced.
    Replaced {
        /// What is in its place.
        program: String,
    },
    /// It was removed by request.
    Removed,
    /// It was removed because its lease had ended.
    LeaseEnded,
}

impl ProgramChange {
    /// What a request, answered so, has changed; none if it is of another kind.
    pub(crate) fn of(router: &str, ask: &ProgramRequest, answer: &Value) -> Option<Self> {
        let program = |new: &NewForwarder| new.forwarder["program"].as_str().unwrap_or_default().to_owned();
        let event = match ask {
            ProgramRequest::Install(new) => {
                let lease = new.lease.as_deref().and_then(|lease| lease.parse().ok());
                ProgramEvent::Installed { program: program(new), lease }
            }
            ProgramRequest::Replace(_, new) => ProgramEvent::Replaced { program: program(new) },
            ProgramRequest::Remove(_) => ProgramEvent::Removed,
            _ => return None,
        };
        let fid = u32::try_from(answer["fid"].as_u64()?).ok()?;
        Some(Self { router: router.into(), fid, event })
    }
}

/// `installed r1/5 syn-monitor, lease 3 s`.
impl fmt::Display for ProgramChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { router, fid, event } = self;
        match event {
            ProgramEvent::Installed { program, lease } => {
                write!(f, "installed {router}/{fid} {program}")?;
                lease.map_or(Ok(()), |lease| write!(f, ", lease {lease}"))
            }
            ProgramEvent::Replaced { program } => write!(f, "replaced {router}/{fid} by {program}"),
            ProgramEvent::Removed => write!(f, "removed {router}/{fid}"),
            ProgramEvent::LeaseEnded => write!(f, "lease of {router}/{fid} ended: removed"),
        }
    }
}
