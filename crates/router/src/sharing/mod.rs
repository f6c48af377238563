//! Processors that a router's flows share: packets wait for their flow's turn, are processed, and wait for
//! their port.
//!
//! - `identity`: which flow a packet is of;
//! - `model`: processors in virtual time, with rings between the stages;
//! - `live`: the engine's worker as the one processor of a real run, its time measured;
//! - `threads`: threads as several processors of a real run; `processor`: one of them; `measured`: what both
//!   kinds of real run have in common.
//!
//! The decisions behind it: `docs/adr/0019-sharing-processors.md`, `docs/adr/0022-processors-on-threads.md`.

mod identity;
mod live;
mod measured;
mod model;
mod processor;
mod report;
mod threads;

use crate::Classify;
use crate::above::Above;
use crate::classify::Class;
use crate::forwarder::{FlowKey, Programs, Ruling, Words, carry_out, flow};
use crate::meter::Meter;
use crate::next_hop::{NextHop, key_v4};
use crate::state::{Core, Fate};
use identity::Identity;
use live::Live;
use longwire_block::Outbox;
use longwire_packet::{BATCH, Batch, Handle, Pool};
use longwire_sched::model::Demand;
use longwire_sched::{FlowError, Scheduler, Settings, SettingsError, Weight};
use longwire_units::Nanos;
use model::Model;
use std::task::Waker;
use thiserror::Error;
use threads::Threads;

/// How a router's processors are shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharingConfig {
    /// The scheduler's name, one of [`longwire_sched::SPECS`].
    pub scheduler: Box<str>,
    /// Its settings. The number of ports is the router's.
    pub settings: Settings,
    /// The fields that distinguish flows without names.
    pub fields: FlowFields,
    /// Flows with names. Of several that match, the one with fewest wild fields counts, then the first.
    pub flows: Vec<NamedFlow>,
    /// What a packet costs in virtual time, if its flow says nothing else: what its programs and forwarding
    /// are priced at, if this is none.
    pub cycles: Option<Demand>,
    /// Rings between the stages. Real time has those before processors, `requests` for each of several, and
    /// before ports.
    pub rings: Rings,
}

impl SharingConfig {
    /// How many threads run a program in real time: what
    /// [`Installation::threads`](crate::Installation::threads) is to be.
    pub const fn threads(&self) -> u32 {
        match self.settings.processors {
            0 | 1 => 1,
            // The worker sees to what is not IP.
            several => several + 1,
        }
    }

    /// The most that `rings.requests` may be in real time; none if there is one processor, which has no ring.
    pub fn most_requests(&self) -> Option<usize> {
        let processors = self.settings.processors as usize;
        (processors > 1).then(|| (threads::MOST / processors).saturating_sub(1))
    }
}

/// The fields that distinguish flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowFields {
    /// The source address.
    pub source: bool,
    /// The source port.
    pub source_port: bool,
    /// The destination address.
    pub destination: bool,
    /// The destination port.
    pub destination_port: bool,
    /// The protocol.
    pub protocol: bool,
}

impl Default for FlowFields {
    fn default() -> Self {
        Self { source: true, source_port: true, destination: true, destination_port: true, protocol: true }
    }
}

/// A flow that was given a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFlow {
    /// Its name in reports.
    pub name: Box<str>,
    /// Its packets.
    pub key: FlowKey,
    /// Its weight.
    pub weight: Weight,
    /// The cost of its packets in virtual time, if it differs from others'.
    pub cycles: Option<Demand>,
}

/// How many messages the rings between stages hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rings {
    /// From the input to the scheduler: what comes when it is full is dropped.
    pub input: usize,
    /// From the scheduler to the processors; in real time to each of them, if there are several.
    pub requests: usize,
    /// From the processors back to the estimator.
    pub feedback: usize,
    /// Processed packets before each port: while there are as many, processors take none of its flows'
    /// packets.
    pub ready: u32,
    /// What the scheduler takes in virtual time to take a packet in, to give one out, and to hear what one
    /// cost. With 0 all that happens at once, so that the rings `input` and `feedback` are never full.
    pub step: Nanos,
}

impl Default for Rings {
    fn default() -> Self {
        Self { input: 128, requests: 1, feedback: 128, ready: 128, step: Nanos::ZERO }
    }
}

/// Why processors can't be shared like that.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SharingError {
    /// The scheduler can't be made.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A named flow has no place.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// The flow table has no room for others.
    #[error(
        "flows = {flows} leaves no room beside {named} named flows to {ports} ports; give {least} or more"
    )]
    TooFewFlows {
        /// The given value.
        flows: u32,
        /// How many have names.
        named: usize,
        /// The router's ports.
        ports: usize,
        /// The least that would do.
        least: usize,
    },
    /// Rings before processors of a real run would be too long.
    #[error(
        "rings.requests = {requests} is too much before {processors} processors in real time; give {most} or \
         less"
    )]
    Requests {
        /// How many processors there are.
        processors: usize,
        /// The given value.
        requests: usize,
        /// The most there may be.
        most: usize,
    },
    /// A processor's thread can't be started.
    #[error("a processor's thread can't be started: {why}")]
    Thread {
        /// The system's error.
        why: String,
    },
}

/// Why a flow can't be given another weight.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReweighError {
    /// Nobody shares the router's processors.
    #[error(
        "the router has no scheduler, so that no flows share its processors; give it one in the scenario, \
         such as scheduler = \"gmr3\""
    )]
    NotShared,
    /// No flow has this name.
    #[error("there is no flow named \"{flow}\"; {}", names_to_give(known))]
    Unknown {
        /// The given value.
        flow: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The scheduler has no place for it.
    #[error(transparent)]
    Flow(#[from] FlowError),
}

fn names_to_give(known: &[String]) -> String {
    if known.is_empty() {
        return "give it a name in the router's flows, in the scenario".into();
    }
    format!("there are {}", known.join(", "))
}

/// The processors of a router, and who waits for them.
#[derive(Debug)]
pub(crate) struct Sharing {
    identity: Identity,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Model(Box<Model>),
    Live(Box<Live>),
    Threads(Box<Threads>),
}

/// The work on a packet: the router itself.
pub(crate) struct Host<'a, C> {
    pub core: &'a mut Core,
    pub classifier: &'a mut C,
    pub programs: &'a mut Programs,
    pub above: Option<&'a mut Above>,
    pub pool: &'a mut Pool,
    pub out: &'a mut Outbox,
}

/// How many packets ahead it is read what their flows need.
const AHEAD: usize = 8;

/// A packet that is about to wait for a processor.
#[derive(Debug, Clone, Copy)]
struct Comer {
    handle: Handle,
    flow: identity::Flow,
    /// The number of the port that it is taken to be for.
    port: u16,
    words: Words,
}

impl Sharing {
    pub fn new(config: SharingConfig, ports: usize, seed: u64) -> Result<Self, SharingError> {
        let settings =
            Settings { ports: u16::try_from(ports).unwrap_or(u16::MAX), ..config.settings.clone() };
        let (named, flows) = (config.flows.len(), settings.flows);
        let identity = Identity::new(&config.flows, config.fields, ports, flows, seed);
        let config = SharingConfig { settings, ..config };
        let mut model = Model::new(&config, seed)?;
        let least = named * ports + 1;
        if (flows as usize) < least {
            return Err(SharingError::TooFewFlows { flows, named, ports, least });
        }
        give_weights(model.scheduler_mut(), &identity, &config)?;
        Ok(Self { identity, stage: Stage::Model(Box::new(model)) })
    }

    /// Its settings, with the router's number of ports.
    pub fn config(&self) -> &SharingConfig {
        match &self.stage {
            Stage::Model(model) => model.config(),
            Stage::Live(live) => live.config(),
            Stage::Threads(threads) => threads.config(),
        }
    }

    /// From now on what packets cost is measured: on the worker that asks, if there is one processor, else on
    /// threads, which run the programs.
    pub fn measure(&mut self, meter: Meter, programs: &mut Programs) -> Result<(), SharingError> {
        let config = self.config();
        let mut stage = if config.settings.processors > 1 {
            programs.share();
            Stage::Threads(Box::new(Threads::new(config, meter, programs.table())?))
        } else {
            Stage::Live(Box::new(Live::new(config, meter)?))
        };
        give_weights(stage.scheduler_mut(), &self.identity, self.config())?;
        self.stage = stage;
        Ok(())
    }

    /// Gives a flow with a name another weight from now on, to each port it may go to.
    pub fn set_weight(&mut self, flow: &str, weight: Weight) -> Result<(), ReweighError> {
        let flows = &self.config().flows;
        let Some(named) = flows.iter().position(|named| &*named.name == flow) else {
            let known = flows.iter().map(|named| named.name.to_string()).collect();
            return Err(ReweighError::Unknown { flow: flow.into(), known });
        };
        for port in 0..self.config().settings.ports {
            let key = self.identity.key_of(named, port);
            self.stage.scheduler_mut().set_weight(key, weight)?;
        }
        Ok(())
    }

    /// How processors wake the worker.
    pub fn set_waker(&mut self, waker: &Waker) {
        if let Stage::Threads(threads) = &self.stage {
            threads.set_waker(waker);
        }
    }

    /// Does something while no program runs on another thread.
    pub fn between_packets<T>(&self, act: impl FnOnce() -> T) -> T {
        match &self.stage {
            Stage::Threads(threads) => threads.between_packets(act),
            _ => act(),
        }
    }

    pub fn scheduler(&self) -> &Scheduler {
        match &self.stage {
            Stage::Model(model) => model.scheduler(),
            Stage::Live(live) => live.scheduler(),
            Stage::Threads(threads) => threads.scheduler(),
        }
    }

    /// Packets that it holds.
    pub fn kept(&self) -> u64 {
        match &self.stage {
            Stage::Model(model) => model.kept(),
            Stage::Live(live) => live.kept(),
            Stage::Threads(threads) => threads.kept(),
        }
    }

    /// When it wants to be told the time.
    pub fn deadline(&self) -> Nanos {
        match &self.stage {
            Stage::Model(model) => model.deadline(),
            Stage::Live(live) => live.deadline(),
            Stage::Threads(threads) => threads.deadline(),
        }
    }

    /// Lets packets wait for their turns. What is not IP has none: it is seen to at once.
    pub fn forward<C: Classify>(&mut self, mut host: Host<'_, C>, batch: &Batch) {
        let handles = batch.as_slice();
        let mut comers = [None; BATCH];
        for (&handle, comer) in handles.iter().zip(&mut comers) {
            *comer = self.comer(&host, handle);
        }
        for (at, &handle) in handles.iter().enumerate() {
            host.core.counts.received += u64::from(host.pool.meta(handle).segments);
            let Some(comer) = comers[at] else {
                host.decide_at_once(handle);
                continue;
            };
            let key = |ahead: usize| comers.get(at + ahead).and_then(|comer| Some(comer.as_ref()?.flow.key));
            self.scheduler().expect(key(AHEAD), key(AHEAD / 2), key(1));
            host.pool.meta_mut(handle).out_port = Fate::Kept.code();
            let place = match &mut self.stage {
                Stage::Model(model) => model.come(&mut host, comer),
                Stage::Live(live) => live.come(&mut host, comer),
                Stage::Threads(threads) => threads.come(&mut host, comer),
            };
            if let Some(place) = place {
                self.identity.note(place, comer.flow, &comer.words);
            }
        }
        host.flush(batch.as_slice());
    }

    /// Whose packet it is, if it is anybody's.
    fn comer<C: Classify>(&self, host: &Host<'_, C>, handle: Handle) -> Option<Comer> {
        let words = flow(host.pool.data(handle))?;
        let port = host.port_towards(&words, handle);
        Some(Comer { handle, flow: self.identity.of(&words, port), port, words })
    }

    /// Does what is due.
    pub fn tick<C: Classify>(&mut self, mut host: Host<'_, C>, now: Nanos) {
        host.out.at(now);
        match &mut self.stage {
            Stage::Model(model) => model.run(&mut host, now),
            Stage::Live(live) => live.serve(&mut host, now),
            Stage::Threads(threads) => threads.serve(&mut host, now),
        }
        host.flush_at(now);
    }
}

impl Stage {
    fn scheduler_mut(&mut self) -> &mut Scheduler {
        match self {
            Self::Model(model) => model.scheduler_mut(),
            Self::Live(live) => live.scheduler_mut(),
            Self::Threads(threads) => threads.scheduler_mut(),
        }
    }
}

/// Gives named flows their weights, to each port they may go to.
fn give_weights(
    scheduler: &mut Scheduler,
    identity: &Identity,
    config: &SharingConfig,
) -> Result<(), SharingError> {
    for (named, flow) in config.flows.iter().enumerate() {
        for port in 0..config.settings.ports {
            let key = identity.key_of(named, port);
            scheduler.set_weight(key, flow.weight)?;
            scheduler.set_port(key, port)?;
        }
    }
    Ok(())
}

impl<C: Classify> Host<'_, C> {
    /// The number of the port that a packet's program or route leads to; of one for the router itself, the
    /// port that it came in by.
    fn port_towards(&self, words: &Words, handle: Handle) -> u16 {
        let destination = u128::from(words[2]) << 64 | u128::from(words[3]);
        let own = self.programs.own(words).and_then(|forwarder| forwarder.installation().way);
        let way = own.or_else(|| match key_v4(destination) {
            Some(destination) => self.core.fib.way_v4(destination),
            None => self.core.fib.way_v6(destination),
        });
        let hop = way.map(|hop| self.core.chosen(hop, self.pool.data(handle)));
        let place = hop.and_then(NextHop::port).unwrap_or(self.pool.meta(handle).in_port);
        self.core.ports.number(place).unwrap_or(0) as u16
    }

    fn decide_at_once(&mut self, handle: Handle) {
        let (own, fate) = self.decide(handle);
        if own == handle {
            let meta = self.pool.meta_mut(handle);
            meta.out_port = fate.code();
            self.core.counts.note(fate, meta.segments);
        } else {
            self.pool.meta_mut(handle).out_port = Fate::Consumed.code();
            self.core.counts.note(Fate::Consumed, 1);
            self.core.settle(self.pool, own, fate, self.out);
        }
    }

    /// Does a processor's work on a packet that was kept. Gives the packet and the place of the port it goes
    /// to, unless it has ended.
    fn process(&mut self, handle: Handle, now: Nanos) -> Option<(Handle, u16)> {
        self.pool.meta_mut(handle).arrival = now.0;
        let decided = self.decide(handle);
        self.go_on(handle, decided)
    }

    /// Does what is left of that when its programs have ruled.
    fn carry_out(
        &mut self,
        (handle, class, ruling): (Handle, Class, &Ruling),
        now: Nanos,
    ) -> Option<(Handle, u16)> {
        self.pool.meta_mut(handle).arrival = now.0;
        let above = self.above.as_deref_mut();
        let packet = (handle, class, ruling);
        let decided = carry_out(self.core, above, self.pool, packet, self.out);
        self.go_on(handle, decided)
    }

    fn go_on(&mut self, handle: Handle, (own, fate): (Handle, Fate)) -> Option<(Handle, u16)> {
        if own != handle {
            self.core.settle(self.pool, handle, Fate::Consumed, self.out);
        }
        match fate {
            Fate::Out(place) => Some((own, place)),
            fate => {
                self.core.settle(self.pool, own, fate, self.out);
                None
            }
        }
    }

    fn decide(&mut self, handle: Handle) -> (Handle, Fate) {
        let router = (&mut *self.core, &mut *self.classifier);
        self.programs.decide_one(router, self.above.as_deref_mut(), self.pool, handle, self.out)
    }

    fn flush(&mut self, batch: &[Handle]) {
        if let Some(above) = &mut self.above {
            above.flush(self.pool, batch);
        }
    }

    fn flush_at(&mut self, now: Nanos) {
        if let Some(above) = &mut self.above {
            above.flush_at(now);
        }
    }
}
