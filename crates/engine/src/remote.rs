//! Queries and changes of a running engine. Workers execute commands between batches, so that a change is
//! never partial.

use crate::bell::Bell;
use crate::by_worker::{ByWorker, in_order};
use crate::events::{LocalChange, TargetKind};
use crate::fidelity::{Fidelity, Lateness, Sample};
use crate::rewiring_step::{AtNode, RewiringStep};
use crate::stats::{FlowStats, LinkReport, Report};
use longwire_block::Node;
use longwire_block::change::Blocks;
use longwire_block::path::LinkRef;
use longwire_link::Links;
use longwire_units::Nanos;
use std::any::{Any, type_name};
use std::fmt;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) enum Command {
    Flow(SyncSender<(FlowStats, Nanos)>),
    Report { first: u32, reply: SyncSender<ReportPart> },
    Links { links: Vec<u32>, reply: SyncSender<Vec<LinkReport>> },
    Sample { into: Sample, reply: SyncSender<Sample> },
    MadeOf { what: Vec<(TargetKind, u32)>, reply: SyncSender<Vec<Option<Arc<Blocks>>>> },
    Change { changes: Vec<LocalChange>, bases: Bases, step: Step, reply: SyncSender<ChangeResult> },
    AtNode { place: u32, act: AtNode },
    Rewire { step: Box<RewiringStep>, reply: SyncSender<Box<RewiringStep>> },
    Query(LinkQuery),
}

/// What has changed, or why nothing has.
pub(crate) type ChangeResult = Result<Changed, String>;

/// A worker's counters, or those of some of its links: of very many it counts a part between two batches.
pub(crate) struct ReportPart {
    pub(crate) worker: u32,
    pub(crate) report: Report,
    /// The first link of the next part.
    pub(crate) next: Option<u32>,
    /// In the last part.
    pub(crate) lateness: Option<Box<Lateness>>,
}

/// A query of links that does not advance them.
type LinkQuery = Box<dyn FnOnce(&mut Links, Nanos) + Send>;

/// Reference to a bridge or router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeRef {
    /// The worker that owns it.
    pub worker: u32,
    /// Its index at the worker.
    pub place: u32,
}

/// Reference to a traffic source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceRef {
    /// The worker of its port.
    pub worker: u32,
    /// Its index among the worker's sources.
    pub place: u32,
}

/// Reference to a shared medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediumRef {
    /// The worker of its links.
    pub worker: u32,
    /// Its index among the worker's links; media follow the links.
    pub place: u32,
}

/// Objects that can be changed during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A link.
    Link(LinkRef),
    /// A traffic source.
    Source(SourceRef),
    /// A shared medium.
    Medium(MediumRef),
}

impl Target {
    /// Its worker, kind and index.
    pub(crate) const fn place(self) -> (u32, (TargetKind, u32)) {
        match self {
            Self::Link(link) => (link.worker(), (TargetKind::Links, link.local())),
            Self::Source(source) => (source.worker, (TargetKind::Sources, source.place)),
            Self::Medium(medium) => (medium.worker, (TargetKind::Links, medium.place)),
        }
    }
}

/// Failure of a request to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteError {
    /// The worker has ended, or has no such object.
    Gone,
    /// The worker did not answer in time. It may still do what was asked.
    Late,
    /// The change was refused; no part of it was made.
    Refused(String),
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the run has ended"),
            Self::Late => {
                let seconds = PATIENCE.as_secs();
                write!(f, "the run did not answer within {seconds} s, and may still do what was asked")
            }
            Self::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for RemoteError {}

/// A handle for requests to the workers of a run.
#[derive(Clone)]
pub struct Remote {
    pub(crate) inboxes: Vec<Sender<Command>>,
    pub(crate) bells: Arc<[Bell]>,
    /// Held for reading while links are counted in parts, for writing while the engine is rewired.
    pub(crate) rewiring: Arc<RwLock<()>>,
}

/// Longest wait for a worker's answer, except where the result must be known.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Interval between checks for an answer.
const LOOK: Duration = Duration::from_micros(50);

impl Remote {
    pub(crate) fn new(inboxes: Vec<Sender<Command>>, bells: Arc<[Bell]>) -> Self {
        Self { inboxes, bells, rewiring: Arc::default() }
    }

    /// Wakes every worker that sleeps.
    pub fn ring(&self) {
        self.bells.iter().for_each(Bell::ring);
    }

    /// The counters of all workers so far, with the current verdict. A worker with very many links counts
    /// them in parts, and carries packets and makes changes between them: then they are not of one time.
    /// Nothing is rewired meanwhile.
    ///
    /// # Errors
    /// If a worker has ended or does not answer.
    pub fn report(&self, tolerance: crate::Tolerance) -> Result<Report, RemoteError> {
        let _wired = self.rewiring.read().unwrap_or_else(PoisonError::into_inner);
        let (reply, answers) = sync_channel(self.inboxes.len());
        for worker in 0..self.inboxes.len() as u32 {
            self.tell(worker, Command::Report { first: 0, reply: reply.clone() })?;
        }
        let mut all = Report::default();
        let mut lateness = Lateness::default();
        let mut counting = self.inboxes.len();
        while counting > 0 {
            let part = looked_for(&answers, PATIENCE)?;
            if let Some(first) = part.next {
                self.tell(part.worker, Command::Report { first, reply: reply.clone() })?;
            } else {
                counting -= 1;
            }
            all.absorb(part.report);
            part.lateness.iter().for_each(|its| lateness.merge(its));
        }
        all.put_in_order();
        all.fidelity = Some(Fidelity::judge(&lateness, all.own_losses(), all.tunnels(), tolerance));
        Ok(all)
    }

    /// The counters of some links so far, in this order: fast, however many links there are.
    ///
    /// # Errors
    /// If one of them does not exist, or a worker has ended or does not answer.
    pub fn links(&self, links: &[LinkRef]) -> Result<Vec<LinkReport>, RemoteError> {
        let places = links.iter().map(|link| (link.worker(), link.local()));
        self.ask_about(places, |links, reply| Command::Links { links, reply })
    }

    /// Each worker's records so far, in `spare` memory, so that the workers need not allocate.
    pub(crate) fn samples(&self, spare: &mut Vec<Sample>) -> Result<Vec<Sample>, RemoteError> {
        self.ask_all(|reply| Command::Sample { into: spare.pop().unwrap_or_default(), reply })
    }

    /// Totals of all workers outside links, and the time of the last answer on the engine's clock. Fast,
    /// however many links there are.
    ///
    /// # Errors
    /// If a worker has ended or does not answer.
    pub fn flow(&self) -> Result<(FlowStats, Nanos), RemoteError> {
        let (mut all, mut last) = (FlowStats::default(), Nanos::ZERO);
        for (flow, at) in self.ask_all(Command::Flow)? {
            all.add(&flow);
            last = last.max(at);
        }
        Ok((all, last))
    }

    /// Whether each of `links` is up, according to its `state`.
    ///
    /// # Errors
    /// If a worker has ended or does not answer.
    pub fn are_up(&self, links: &[LinkRef]) -> Result<Vec<bool>, RemoteError> {
        let places = links.iter().map(|link| (link.worker(), link.local()));
        self.ask_about(places, |links, reply| {
            Command::Query(Box::new(move |all, now| {
                let up = links.into_iter().map(|link| all.is_up(link, now)).collect();
                // The caller may have given up.
                let _ = reply.send(up);
            }))
        })
    }

    /// The current blocks of links, sources or media, in this order, of those that were changed or have
    /// pending changes.
    ///
    /// # Errors
    /// If a worker has ended or does not answer.
    pub fn made_of(&self, targets: &[Target]) -> Result<Vec<Option<Arc<Blocks>>>, RemoteError> {
        let places = targets.iter().map(|target| target.place());
        self.ask_about(places, |what, reply| Command::MadeOf { what, reply })
    }

    /// Runs `act` on a node with the current time, between two batches, and returns its result. The worker's
    /// packets wait meanwhile: do expensive work before the call, and return replaced objects so that the
    /// calling thread frees them.
    ///
    /// # Errors
    /// If the node is no `N`, or the worker has ended or does not answer.
    pub fn at_node<N: Node, T: Send + 'static>(
        &self,
        node: NodeRef,
        act: impl FnOnce(&mut N, Nanos) -> T + Send + 'static,
    ) -> Result<T, RemoteError> {
        self.at_node_within(PATIENCE, node, act)
    }

    /// As [`Remote::at_node`], but waits for the result as long as the worker runs: for callers who have to
    /// know what was done.
    ///
    /// # Errors
    /// If the node is no `N`, or the worker has ended.
    pub fn at_node_surely<N: Node, T: Send + 'static>(
        &self,
        node: NodeRef,
        act: impl FnOnce(&mut N, Nanos) -> T + Send + 'static,
    ) -> Result<T, RemoteError> {
        self.at_node_within(Duration::MAX, node, act)
    }

    fn at_node_within<N: Node, T: Send + 'static>(
        &self,
        patience: Duration,
        node: NodeRef,
        act: impl FnOnce(&mut N, Nanos) -> T + Send + 'static,
    ) -> Result<T, RemoteError> {
        let (reply, answer) = sync_channel(1);
        let act = move |node: &mut dyn Node, now| {
            let node: &mut dyn Any = node;
            let done = node.downcast_mut::<N>().map(|node| act(node, now));
            // The caller may have given up.
            let _ = reply.send(done);
        };
        self.tell(node.worker, Command::AtNode { place: node.place, act: Box::new(act) })?;
        let answer = looked_for(&answer, patience)?;
        answer.ok_or_else(|| RemoteError::Refused(format!("the node is no {}", type_name::<N>())))
    }

    /// Sends each worker a command, and returns their answers, in no order.
    fn ask_all<T>(&self, mut command: impl FnMut(SyncSender<T>) -> Command) -> Result<Vec<T>, RemoteError> {
        let (reply, answers) = sync_channel(self.inboxes.len());
        for inbox in &self.inboxes {
            inbox.send(command(reply.clone())).map_err(|_| RemoteError::Gone)?;
        }
        self.ring();
        // A worker that has ended drops its reply.
        drop(reply);
        self.inboxes.iter().map(|_| looked_for(&answers, PATIENCE)).collect()
    }

    /// Asks about objects, given with their workers, and returns the answers in this order.
    fn ask_about<P, T>(
        &self,
        objects: impl Iterator<Item = (u32, P)>,
        command: impl Fn(Vec<P>, SyncSender<Vec<T>>) -> Command,
    ) -> Result<Vec<T>, RemoteError> {
        let ByWorker { parts, order } = ByWorker::new(objects);
        Ok(in_order(&order, self.ask_each(parts, PATIENCE, command)?))
    }

    /// Sends workers a command each, all at once, and returns their answers in this order. Each is waited for
    /// at most for `patience`.
    pub(crate) fn ask_each<P, T>(
        &self,
        parts: Vec<(u32, P)>,
        patience: Duration,
        command: impl Fn(P, SyncSender<T>) -> Command,
    ) -> Result<Vec<T>, RemoteError> {
        let asked = parts.into_iter().map(|(worker, part)| {
            let (reply, answer) = sync_channel(1);
            self.tell(worker, command(part, reply)).map(|()| answer)
        });
        let answers = asked.collect::<Result<Vec<_>, _>>()?;
        answers.iter().map(|answer| looked_for(answer, patience)).collect()
    }

    /// Sends a command to one worker.
    fn tell(&self, worker: u32, command: Command) -> Result<(), RemoteError> {
        let inbox = self.inboxes.get(worker as usize).ok_or(RemoteError::Gone)?;
        inbox.send(command).map_err(|_| RemoteError::Gone)?;
        self.ring();
        Ok(())
    }
}

/// Polls for an answer for at most `patience`. Its room was allocated by this thread, and this thread wakes
/// by itself, because a worker that has to wake another holds up packets by that system call.
fn looked_for<T>(answer: &Receiver<T>, patience: Duration) -> Result<T, RemoteError> {
    let asked = Instant::now();
    loop {
        match answer.try_recv() {
            Ok(answer) => return Ok(answer),
            Err(TryRecvError::Disconnected) => return Err(RemoteError::Gone),
            Err(TryRecvError::Empty) if asked.elapsed() < patience => thread::sleep(LOOK),
            Err(TryRecvError::Empty) => return Err(RemoteError::Late),
        }
    }
}

/// Objects whose changes are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bases {
    /// Only those that have the blocks for which the edits were made.
    Current,
    /// Those with any blocks.
    Any,
}

/// The answer to a request for changes.
#[derive(Debug, Clone)]
pub struct Changed {
    /// Their instant. None if nothing has changed, because not all objects have the blocks for which the
    /// edits were made.
    pub instant: Option<Nanos>,
    /// The current blocks of each changed object, in the order of the changes.
    pub blocks: Vec<Arc<Blocks>>,
}

/// Phases of a group of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Check whether they are possible.
    Check,
    /// Make them.
    Now,
    /// Make them at this time of the engine's clock.
    At(Nanos),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_is_late_is_not_one_that_has_ended() {
        let (reply, answer) = sync_channel(1);
        assert_eq!(looked_for(&answer, Duration::ZERO), Err(RemoteError::Late));
        reply.send(7).unwrap();
        assert_eq!(looked_for(&answer, Duration::ZERO), Ok(7));
        drop(reply);
        assert_eq!(looked_for(&answer, Duration::MAX), Err(RemoteError::Gone));
        let said = "the run did not answer within 5 s, and may still do what was asked";
        assert_eq!(RemoteError::Late.to_string(), said);
    }
}
