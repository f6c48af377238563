//! Processors shared by a router's flows: packets wait for their flow's turn, are processed, and wait for
//! their port.
//!
//! - `identity`: flows as scheduler keys;
//! - `model`: processors in virtual time, with rings between the stages;
//! - `live`: processors of a real run, with measured time: the engine's worker, or threads; `processor`: a
//!   thread.
//!
//! The decisions behind it: `docs/adr/0019-sharing-processors.md`, `docs/adr/0022-processors-on-threads.md`.

mod identity;
mod live;
mod model;
mod processor;
mod report;

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

/// Configuration of shared processors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharingConfig {
    /// The scheduler's name, one of [`longwire_sched::SPECS`].
    pub scheduler: Box<str>,
    /// Its settings. The number of ports is the router's.
    pub settings: Settings,
    /// The fields that distinguish unnamed flows.
    pub fields: FlowFields,
    /// Named flows. Among several that match, the one with the fewest wildcards is chosen, then the one with
    /// the longest prefixes, then the first.
    pub flows: Vec<NamedFlow>,
    /// Default cost of a packet in virtual time; none for the prices of its programs and forwarding.
    pub cycles: Option<Demand>,
    /// Rings between the stages. In real time there are only those before several processors (`requests`),
    /// and before ports.
    pub rings: Rings,
}

impl SharingConfig {
    /// Number of threads that run a program in real time: the value of
    /// [`Installation::threads`](crate::Installation::threads).
    pub const fn threads(&self) -> u32 {
        match self.settings.processors {
            0 | 1 => 1,
            // The worker processes packets other than IP.
            several => several + 1,
        }
    }

    /// Maximum of `rings.requests` in real time; none if there is one processor, which has no ring.
    pub fn most_requests(&self) -> Option<usize> {
        let processors = self.settings.processors as usize;
        (processors > 1).then(|| (live::MOST / processors).saturating_sub(1))
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

/// A named flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFlow {
    /// Its name in reports.
    pub name: Box<str>,
    /// Its packets.
    pub key: FlowKey,
    /// Its weight.
    pub weight: Weight,
    /// The cost of its packets in virtual time, if different from others'.
    pub cycles: Option<Demand>,
}

/// Capacity of the rings between stages, in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rings {
    /// From the input to the scheduler; arrivals at a full ring are dropped.
    pub input: usize,
    /// From the scheduler to the processors; in real time to each of several.
    pub requests: usize,
    /// From the processors back to the estimator.
    pub feedback: usize,
    /// Processed packets before each port: while the ring is full, processors take no packets of its flows.
    pub ready: u32,
    /// Virtual time that the scheduler takes to receive a packet, to select one, and to receive a
    /// measurement. With 0 all this is instantaneous, so that the rings `input` and `feedback` are never
    /// full.
    pub step: Nanos,
}

impl Default for Rings {
    fn default() -> Self {
        Self { input: 128, requests: 1, feedback: 128, ready: 128, step: Nanos::ZERO }
    }
}

/// Reason why the sharing of processors is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SharingError {
    /// The scheduler's settings are invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A named flow is invalid.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// The flow table has no room for unnamed flows.
    #[error(
        "flows = {flows} leaves no room beside {named} named flows to {ports} ports; give {least} or more"
    )]
    TooFewFlows {
        /// The given value.
        flows: u32,
        /// Number of named flows.
        named: usize,
        /// The router's ports.
        ports: usize,
        /// The required minimum.
        least: usize,
    },
    /// Rings to processors of a real run would be too long.
    #[error(
        "rings.requests = {requests} is too much before {processors} processors in real time; give {most} or \
         less"
    )]
    Requests {
        /// Number of processors.
        processors: usize,
        /// The given value.
        requests: usize,
        /// The maximum.
        most: usize,
    },
    /// A processor's thread can't be started.
    #[error("a processor's thread can't be started: {why}")]
    Thread {
        /// The system's error.
        why: String,
    },
}

/// Reason why a flow's weight can't be changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReweighError {
    /// The router's processors are not shared.
    #[error(
        "the router has no scheduler, so that no flows share its processors; give it one in the scenario, \
         such as scheduler = \"gmr3\""
    )]
    NotShared,
    /// There is no flow of this name.
    #[error("there is no flow named \"{flow}\"; {}", names_to_give(known))]
    Unknown {
        /// The given value.
        flow: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// The scheduler has no room for it.
    #[error(transparent)]
    Flow(#[from] FlowError),
}

fn names_to_give(known: &[String]) -> String {
    if known.is_empty() {
        return "give it a name in the router's flows, in the scenario".into();
    }
    format!("there are {}", known.join(", "))
}

/// The processors of a router, and their waiting packets.
#[derive(Debug)]
pub(crate) struct Sharing {
    /// With the router's number of ports.
    config: SharingConfig,
    identity: Identity,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Model(Box<Model>),
    Live(Box<Live>),
}

/// Access to the router, which works on packets.
pub(crate) struct Host<'a, C> {
    pub core: &'a mut Core,
    pub classifier: &'a mut C,
    pub programs: &'a mut Programs,
    pub above: Option<&'a mut Above>,
    pub pool: &'a mut Pool,
    pub out: &'a mut Outbox,
}

/// Prefetch distance in packets.
const AHEAD: usize = 8;

/// A packet that is about to wait for a processor.
#[derive(Debug, Clone, Copy)]
struct Comer {
    handle: Handle,
    flow: identity::Flow,
    /// Number of its presumed port.
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
        give_weights(model.machine.scheduler(), &identity, &config)?;
        Ok(Self { config, identity, stage: Stage::Model(Box::new(model)) })
    }

    /// Starts measuring the cost of packets: on the calling worker if there is one processor, else on
    /// threads, which run the programs.
    pub fn measure(&mut self, meter: Meter, programs: &mut Programs) -> Result<(), SharingError> {
        if self.config.settings.processors > 1 {
            programs.share();
        }
        let mut live = Live::new(&self.config, meter, &programs.table)?;
        give_weights(&mut live.scheduler, &self.identity, &self.config)?;
        self.stage = Stage::Live(Box::new(live));
        Ok(())
    }

    /// Sets the weight of a named flow to each of its possible ports.
    pub fn set_weight(&mut self, flow: &str, weight: Weight) -> Result<(), ReweighError> {
        let flows = &self.config.flows;
        let Some(named) = flows.iter().position(|named| &*named.name == flow) else {
            let known = flows.iter().map(|named| named.name.to_string()).collect();
            return Err(ReweighError::Unknown { flow: flow.into(), known });
        };
        let scheduler = match &mut self.stage {
            Stage::Model(model) => model.machine.scheduler(),
            Stage::Live(live) => &mut live.scheduler,
        };
        for port in 0..self.config.settings.ports {
            scheduler.set_weight(self.identity.key_of(named, port), weight)?;
        }
        Ok(())
    }

    /// Sets how processors wake the worker when a packet returns. Effective once.
    pub fn set_waker(&mut self, waker: &Waker) {
        if let Stage::Live(live) = &self.stage {
            live.common.waker.get_or_init(|| waker.clone());
        }
    }

    /// Calls `act` while no program runs on another thread.
    pub fn between_packets<T>(&self, act: impl FnOnce() -> T) -> T {
        match &self.stage {
            Stage::Model(_) => act(),
            Stage::Live(live) => live.common.between_packets(act),
        }
    }

    pub fn scheduler(&self) -> &Scheduler {
        match &self.stage {
            Stage::Model(model) => model.machine.scheduler_ref(),
            Stage::Live(live) => &live.scheduler,
        }
    }

    /// Packets that it holds.
    pub fn kept(&self) -> u64 {
        match &self.stage {
            Stage::Model(model) => model.machine.inside() as u64,
            Stage::Live(live) => live.kept(),
        }
    }

    /// When it must be called next.
    pub fn deadline(&self) -> Nanos {
        match &self.stage {
            Stage::Model(model) => model.deadline(),
            Stage::Live(live) => live.deadline(),
        }
    }

    /// Queues packets for their turns. Packets other than IP are processed at once.
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
                Stage::Model(model) => model.come(&mut host, &self.config, comer),
                Stage::Live(live) => live.come(&mut host, comer),
            };
            if let Some(place) = place {
                self.identity.note(place, comer.flow, &comer.words);
            }
        }
        if let Some(above) = &mut host.above {
            above.flush(host.pool, handles);
        }
    }

    /// The flow of a packet, if it has one.
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
        }
        if let Some(above) = &mut host.above {
            above.punt.flush(now);
        }
    }
}

/// Sets the weights of named flows to each of their possible ports.
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
    /// Number of the port to which a packet's installations or route lead; for one addressed to the router,
    /// its ingress port.
    fn port_towards(&self, words: &Words, handle: Handle) -> u16 {
        let destination = u128::from(words[2]) << 64 | u128::from(words[3]);
        let way = self.programs.way(words).or_else(|| match key_v4(destination) {
            Some(destination) => self.core.fib.way_v4(destination),
            None => self.core.fib.way_v6(destination),
        });
        let hop = way.map(|hop| self.core.chosen(hop, self.pool.data(handle)));
        let place = hop.and_then(NextHop::port).unwrap_or(self.pool.meta(handle).in_port);
        // Its number, also while it is down: its packets, which are dropped, are no other port's.
        self.core.ports.places.binary_search(&place).unwrap_or(0) as u16
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

    /// Does a processor's work on a waiting packet. Returns the packet and the index of its output port,
    /// unless it ends.
    fn process(&mut self, handle: Handle, now: Nanos) -> Option<(Handle, u16)> {
        self.pool.meta_mut(handle).arrival = now.0;
        let decided = self.decide(handle);
        self.go_on(handle, decided)
    }

    /// The rest of that work, after the programs' ruling.
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
}
