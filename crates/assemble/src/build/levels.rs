//! Levels above a plan's routers: attachments, services on their thread or inline, and the socket for control
//! processes.

use super::BuiltEngine;
use longwire_block::Node;
use longwire_engine::NodeRef;
use longwire_punt::{
    Admission, AttachSender, AttachmentId, DoesNotFit, ExpectedProcess, Inline, InlineService, Listener,
    ListenerError, MOST_SERVICES, Punt, ServiceThread, Turns, WaitMode,
};
use longwire_scenario::{AboveRequest, LevelWait, Plan, Receiver, RouterLevels};
use longwire_sched::SettingsError;
use std::any::Any;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An attachment that can't be set up.
#[derive(Debug, Error)]
pub enum LevelsError {
    /// The requested guarantee does not fit.
    #[error(transparent)]
    DoesNotFit(#[from] DoesNotFit),
    /// The socket for control processes can't be made.
    #[error(transparent)]
    Listener(#[from] ListenerError),
    /// The thread for services, or a service's rings, can't be made.
    #[error("the slow path: {0}")]
    Slow(#[from] std::io::Error),
    /// Processes run in real time only.
    #[error(
        "\"{0}\" is a control process, and control processes can't run in virtual time: \
         run the scenario in real time, or use a service (where = \"slow-path\")"
    )]
    Virtual(Box<str>),
    /// There is no such scheduler.
    #[error(transparent)]
    Scheduler(#[from] SettingsError),
    /// A ring could not be opened a second time.
    #[error("that level could not be opened before; start the run again")]
    Shut,
    /// All attachments are taken.
    #[error("all 64 attachments of that level are taken; remove a forwarder")]
    TooMany,
}

/// Services and control processes above one router of a run in real time. It belongs to the runner: the
/// router has the other ends of the rings.
#[derive(Debug)]
pub struct Levels {
    plan: RouterLevels,
    socket: PathBuf,
    /// The ring ends, until something attaches.
    senders: (Option<AttachSender>, Option<AttachSender>),
    listener: Option<Listener>,
    slow: Option<ServiceThread>,
    /// Guarantees of services, and the share of each.
    promised: Admission,
    services: Vec<(AttachmentId, Box<str>, u32)>,
}

impl Levels {
    /// Levels without attachments. `punt` belongs to the router, and `socket` is where processes connect.
    fn new(plan: &RouterLevels, punt: &mut Punt, socket: PathBuf) -> Self {
        punt.set_aside(plan.worker[1], plan.worker[0]);
        Self {
            plan: plan.clone(),
            socket,
            senders: (Some(punt.control_sender(plan.control.packets)), Some(punt.service_sender())),
            listener: None,
            slow: None,
            promised: Admission::new(plan.slow),
            services: Vec::new(),
        }
    }

    /// The levels above the router with that index, and its side of them. `socket` is where its control
    /// processes connect.
    ///
    /// # Errors
    /// The machine's refusal.
    pub(super) fn above(plan: &Plan, index: usize, socket: PathBuf) -> Result<(Self, Punt), LevelsError> {
        let written = &plan.routers[index];
        let mut punt = Punt::new(written.ports.iter().map(|port| port.place).collect());
        let mut levels = Self::new(&written.levels, &mut punt, socket);
        for above in requests_above(plan, index) {
            let attachment = Self::make_attachment(&mut punt, above)?;
            levels.give(attachment, above)?;
        }
        Ok((levels, punt))
    }

    /// Adds an attachment to the router, on its worker.
    ///
    /// # Errors
    /// If all attachments are taken.
    pub fn make_attachment(punt: &mut Punt, above: &AboveRequest) -> Result<AttachmentId, LevelsError> {
        let attachment = match above.receiver {
            Receiver::Service(_) => punt.add_service(&above.name, above.limits()),
            Receiver::Process => punt.add_control(&above.name, above.limits()),
        };
        attachment.ok_or(LevelsError::TooMany)
    }

    /// Activates an attachment: starts the service, or waits for the process.
    ///
    /// # Errors
    /// If the guarantee does not fit, or the machine refuses. The attachment must then be removed.
    pub fn give(&mut self, attachment: AttachmentId, above: &AboveRequest) -> Result<(), LevelsError> {
        let limits = above.limits();
        match above.receiver {
            Receiver::Service(native) => {
                self.promised.admit(&above.name, above.request)?;
                let attached =
                    self.slow().and_then(|slow| Ok(slow.attach(attachment, &limits, (native.make)())?));
                if attached.is_err() {
                    self.promised.release(&above.name);
                    return attached;
                }
                self.services.push((attachment, above.name.clone(), above.share));
                self.weigh();
            }
            Receiver::Process => {
                let promise = Some((above.request, above.share));
                let expected = ExpectedProcess { name: above.name.to_string(), limits, promise };
                self.listener()?.expect(attachment, expected)?;
            }
        }
        Ok(())
    }

    /// Releases the guarantees of an attachment, before the router removes it.
    pub fn take_back(&mut self, attachment: AttachmentId) {
        if attachment.is_control() {
            if let Some(listener) = &self.listener {
                listener.forget(attachment);
            }
            return;
        }
        if let Some(at) = self.services.iter().position(|(other, ..)| *other == attachment) {
            let (_, name, _) = self.services.remove(at);
            self.promised.release(&name);
            self.weigh();
        }
    }

    /// The socket for processes, if any are expected.
    pub fn socket(&self) -> Option<&Path> {
        self.listener.as_ref().map(Listener::path)
    }

    fn listener(&mut self) -> Result<&Listener, LevelsError> {
        if let (None, Some(sender)) = (&self.listener, self.senders.0.take()) {
            self.listener = Some(Listener::open(&self.socket, sender, Admission::new(self.plan.control))?);
        }
        self.listener.as_ref().ok_or(LevelsError::Shut)
    }

    fn slow(&mut self) -> Result<&mut ServiceThread, LevelsError> {
        if let (None, Some(sender)) = (&self.slow, self.senders.1.take()) {
            let waiting = match self.plan.wait {
                LevelWait::Woken => WaitMode::Woken,
                LevelWait::Polling => WaitMode::Polling,
            };
            self.slow = Some(ServiceThread::start(sender, Turns::new(self.plan.scheduler)?, waiting)?);
        }
        self.slow.as_mut().ok_or(LevelsError::Shut)
    }

    fn weigh(&self) {
        let weights = weights(&self.promised, &self.services);
        if let Some(slow) = &self.slow {
            slow.weigh(&weights);
        }
    }
}

/// The weight of each service: its guarantee, and its share of the rest.
fn weights<S: Copy>(promised: &Admission, services: &[(S, Box<str>, u32)]) -> Vec<(S, u64)> {
    let all = services.iter().map(|(.., share)| *share).fold(0, u32::saturating_add);
    services
        .iter()
        .map(|(attachment, name, share)| (*attachment, promised.weight(name, (*share, all))))
        .collect()
}

impl BuiltEngine {
    /// Sets up the levels above each router of a run in real time. `socket` returns the socket path for a
    /// router's control processes.
    ///
    /// # Errors
    /// The machine's refusal.
    pub fn raise(
        &mut self,
        plan: &Plan,
        socket: impl Fn(&longwire_scenario::Router) -> PathBuf,
    ) -> Result<Vec<Levels>, LevelsError> {
        let mut all = Vec::with_capacity(plan.routers.len());
        for (index, written) in plan.routers.iter().enumerate() {
            let (levels, punt) = Levels::above(plan, index, socket(written))?;
            if let Some(router) = self.router_mut(index) {
                router.set_levels(punt);
            }
            all.push(levels);
        }
        Ok(all)
    }

    /// Sets up the levels in virtual time: services run inline.
    ///
    /// # Errors
    /// A control process is requested.
    pub fn raise_in_line(&mut self, plan: &Plan) -> Result<(), LevelsError> {
        for index in 0..plan.routers.len() {
            if let (Some(punt), Some(router)) = (in_line(plan, index)?, self.router_mut(index)) {
                router.set_levels(punt);
            }
        }
        Ok(())
    }

    /// The router of that index.
    pub(super) fn router_mut(&mut self, index: usize) -> Option<&mut longwire_router::Router> {
        let NodeRef { worker, place } = *self.routers.get(index)?;
        let node: &mut dyn Node = &mut **self.setup.workers[worker as usize].nodes.get_mut(place as usize)?;
        (node as &mut dyn Any).downcast_mut()
    }
}

/// The levels above a router in virtual time; none if there are no services.
///
/// # Errors
/// A control process is requested, or there are too many services.
pub(super) fn in_line(plan: &Plan, index: usize) -> Result<Option<Punt>, LevelsError> {
    let written = &plan.routers[index];
    let mut promised = Admission::new(written.levels.slow);
    let mut services = Vec::new();
    for above in requests_above(plan, index) {
        let Receiver::Service(native) = above.receiver else {
            return Err(LevelsError::Virtual(above.name.clone()));
        };
        promised.admit(&above.name, above.request)?;
        services.push((native, above));
    }
    if services.is_empty() {
        return Ok(None);
    }
    if services.len() > MOST_SERVICES {
        return Err(LevelsError::TooMany);
    }
    let shares: Vec<_> = services.iter().map(|(_, above)| ((), above.name.clone(), above.share)).collect();
    let weights = weights(&promised, &shares);
    let in_line = services.iter().zip(weights).map(|((native, above), ((), weight))| InlineService {
        name: above.name.clone(),
        service: (native.make)(),
        time: written.levels.time(above.request.cycles),
        weight,
        limits: above.limits(),
    });
    let inline = Inline::new(in_line.collect(), Turns::new(written.levels.scheduler)?);
    let places = written.ports.iter().map(|port| port.place).collect();
    let mut punt = Punt::simulated(places, inline);
    punt.set_aside(None, written.levels.worker[0]);
    Ok(Some(punt))
}

/// The requested attachments above a router, in order.
fn requests_above(plan: &Plan, router: usize) -> impl Iterator<Item = &AboveRequest> {
    let own = plan.forwarders.iter().filter(move |planned| planned.router as usize == router);
    own.filter_map(|planned| planned.request.above.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTER: &str = r#"
[[host]]
name = "a"
address = "10.0.1.9/24"

[[host]]
name = "b"
address = "10.0.2.9/24"

[[router]]
name = "r"
ports = [{ port = "a", addresses = "10.0.1.1/24" }, { port = "b", addresses = "10.0.2.1/24" }]
"#;

    #[test]
    fn in_virtual_time_there_are_no_more_services_than_in_real_time() {
        let above = |count: usize| {
            let service = |number| {
                format!(
                    "[[forwarder]]\nrouter = \"r\"\nwhere = \"slow-path\"\nservice = \"witness\"\n\
                     name = \"s{number}\"\npackets = 1\ncycles = 1\n"
                )
            };
            let services: String = (0..count).map(service).collect();
            in_line(&longwire_scenario::plan_of(&format!("{ROUTER}{services}")), 0)
        };
        assert!(matches!(above(MOST_SERVICES), Ok(Some(_))));
        assert!(matches!(above(MOST_SERVICES + 1), Err(LevelsError::TooMany)));
    }
}
