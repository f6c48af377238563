//! A router: IPv4 and IPv6 between ports, minimal IP for most packets and full IP for the others.

use crate::above::Above;
use crate::before::Before;
use crate::classify::{Classify, FullIpReason, IpClassifier};
use crate::control::{Confirmation, Control, ControlPort};
use crate::fib::{Fib, FibLimits, RouteError};
use crate::forwarder::{Admission, Fid, Forwarder, Forwarders, InstallError, Programs};
use crate::group::RouteHops;
use crate::meter::Meter;
use crate::neighbour::{NeighbourLimits, Neighbours};
use crate::next_hop::{NextHop, neighbour_key};
use crate::police::{Limits, Police, PolicedWork};
use crate::ports::{PortAddresses, Ports, PortsError, RouterPort, is_link_local};
use crate::prefix::{HopId, Prefix, PrefixError};
use crate::sharing::{Host, ReweighError, Sharing, SharingConfig, SharingError};
use crate::state::{Core, Counts};
use longwire_block::{Node, NodeStats, Outbox, ProcessorStats};
use longwire_packet::{Batch, Pool};
use longwire_punt::Punt;
use longwire_sched::Weight;
use longwire_settings::Choice;
use longwire_units::Nanos;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Waker;
use thiserror::Error;

/// Configuration of a router.
#[derive(Debug, Clone, Default)]
pub struct RouterConfig {
    /// Its ports, at least one.
    pub ports: Vec<RouterPort>,
    /// Sizes of its tables.
    pub fib: FibLimits,
    /// Limits and times of its neighbours.
    pub neighbours: NeighbourLimits,
    /// Limits for exceptional packets.
    pub police: Limits,
    /// The budget of a packet, including programs, and the prices.
    pub admission: Admission,
    /// How flows share its processors, if they do.
    pub sharing: Option<SharingConfig>,
    /// The ports beside its own that lead to a control plane; empty if there is none.
    pub control: Vec<ControlPort>,
    /// Seed that makes hash positions of neighbours and keys unpredictable; also the seed of programs' random
    /// numbers.
    pub seed: u64,
}

/// Reason why a router can't be created.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RouterError {
    /// Its ports are invalid.
    #[error(transparent)]
    Ports(#[from] PortsError),
    /// The routes to its own networks are invalid.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// An address has a prefix that is too long.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    /// The sharing of its processors is invalid.
    #[error(transparent)]
    Sharing(#[from] SharingError),
}

/// A router with the classifier `C`.
#[derive(Debug)]
pub struct Router<C = IpClassifier> {
    classifier: C,
    pub(crate) core: Core,
    programs: Programs,
    above: Option<Box<Above>>,
    sharing: Option<Box<Sharing>>,
}

impl Router {
    /// An IP router, with routes to the networks of its addresses.
    ///
    /// # Errors
    /// If a port or an address is invalid, or there are too many networks for the tables.
    pub fn new(config: RouterConfig) -> Result<Self, RouterError> {
        Self::with_classifier(config, IpClassifier)
    }
}

impl<C: Classify> Router<C> {
    /// A router with another classifier.
    ///
    /// # Errors
    /// As [`Router::new`].
    pub fn with_classifier(config: RouterConfig, classifier: C) -> Result<Self, RouterError> {
        let ports = Ports::new(config.ports)?;
        let police = Police::new(&config.police, ports.list.len());
        let neighbours = Neighbours::new(config.neighbours, &ports.places, config.seed);
        let mut core = Core {
            fib: Fib::new(config.fib),
            ports,
            neighbours,
            police,
            counts: Counts::default(),
            control: (!config.control.is_empty()).then(|| Box::new(Control::new(config.control))),
            bound: None,
            before: Before::new(),
            id: 0,
            seed: config.seed,
        };
        for port in core.ports.list.clone() {
            core.add_own_routes(&port)?;
        }
        let none = Forwarders::none(config.admission, &core.ports.places, config.seed);
        let sharing = config.sharing.map(|sharing| Sharing::new(sharing, core.ports.list.len(), config.seed));
        let sharing = sharing.transpose()?.map(Box::new);
        Ok(Self { classifier, core, programs: Programs::new(none), above: None, sharing })
    }

    /// Adds or replaces an IPv4 route: to a next hop, or to several ([`RouteHops::among`]).
    ///
    /// # Errors
    /// If a port is not the router's, or a table is full.
    pub fn add_route_v4(&mut self, prefix: Prefix<u32>, way: impl Into<RouteHops>) -> Result<(), RouteError> {
        let way = way.into();
        way.hops().try_for_each(|hop| self.check(hop))?;
        self.core.fib.insert_v4(prefix, &way)
    }

    /// Adds or replaces an IPv6 route.
    ///
    /// # Errors
    /// As [`Router::add_route_v4`].
    pub fn add_route_v6(
        &mut self,
        prefix: Prefix<u128>,
        way: impl Into<RouteHops>,
    ) -> Result<(), RouteError> {
        let way = way.into();
        way.hops().try_for_each(|hop| self.check(hop))?;
        self.core.fib.insert_v6(prefix, &way)
    }

    /// Removes an IPv4 route. Returns whether there was one.
    pub fn remove_route_v4(&mut self, prefix: Prefix<u32>) -> bool {
        self.core.fib.remove_v4(prefix).is_some()
    }

    /// Removes an IPv6 route. Returns whether there was one.
    pub fn remove_route_v6(&mut self, prefix: Prefix<u128>) -> bool {
        self.core.fib.remove_v6(prefix).is_some()
    }

    /// Removes an IPv4 route. If it replaced a port's connected route, that one is restored. Returns whether
    /// there was a route to remove.
    ///
    /// # Errors
    /// If the connected route can't be restored because there are too many next hops. The route is removed
    /// even then.
    pub fn withdraw_route_v4(&mut self, prefix: Prefix<u32>) -> Result<bool, RouteError> {
        let own = self.core.ports.near_v4(prefix).map(|port| NextHop::Direct { port });
        self.core.fib.withdraw_v4(prefix, own)
    }

    /// Removes an IPv6 route, as [`Router::withdraw_route_v4`] does.
    ///
    /// # Errors
    /// As [`Router::withdraw_route_v4`].
    pub fn withdraw_route_v6(&mut self, prefix: Prefix<u128>) -> Result<bool, RouteError> {
        let own = self.core.ports.near_v6(prefix).map(|port| NextHop::Direct { port });
        self.core.fib.withdraw_v6(prefix, own)
    }

    /// The IPv4 routes in order, those of own networks and addresses included.
    pub fn routes_v4(&self) -> impl Iterator<Item = (Prefix<u32>, RouteHops)> {
        self.core.fib.routes_v4()
    }

    /// The IPv6 routes in order, those of own networks and addresses included.
    pub fn routes_v6(&self) -> impl Iterator<Item = (Prefix<u128>, RouteHops)> {
        self.core.fib.routes_v6()
    }

    /// A number for a next hop to which a classifier switches packets.
    ///
    /// # Errors
    /// If the port is not the router's, or there are too many next hops.
    pub fn number_of(&mut self, hop: NextHop) -> Result<HopId, RouteError> {
        self.check(hop)?;
        self.core.fib.hops.take(hop).ok_or(RouteError::TooManyHops)
    }

    /// Adds a permanent neighbour. False if there is no room, or it is being resolved.
    pub fn set_neighbour(&mut self, port: u16, address: IpAddr, mac: [u8; 6]) -> bool {
        self.core.ports.number(port).is_some() && self.core.neighbours.set(port, neighbour_key(address), mac)
    }

    /// Replaces a port's addresses; routes to them and their networks are changed separately. Returns the
    /// previous ones, to be freed off the packet path; the link-local address is kept.
    ///
    /// # Errors
    /// If there is no such port, or an address is invalid for a port; nothing has changed then.
    pub fn set_addresses(&mut self, port: u16, new: PortAddresses) -> Result<PortAddresses, PortsError> {
        self.core.ports.set_addresses(port, new)
    }

    /// Sets a port up or down. Packets from and to a port that is down are dropped. False if there is no such
    /// port.
    pub fn set_up(&mut self, port: u16, up: bool) -> bool {
        if let Some(levels) = self.levels_mut() {
            levels.set_up(port, up);
        }
        self.core.ports.set_up(port, up)
    }

    /// Stores a neighbour's state in the control plane. False if there is no room, or no such port.
    pub fn note_neighbour(
        &mut self,
        port: u16,
        address: IpAddr,
        mac: [u8; 6],
        known: Confirmation,
        now: Nanos,
    ) -> bool {
        self.core.ports.is_port(port)
            && self.core.neighbours.note(port, neighbour_key(address), mac, known, now)
    }

    /// Removes a neighbour, unless packets wait for it. Returns whether it was known.
    pub fn forget_neighbour(&mut self, port: u16, address: IpAddr) -> bool {
        self.core.neighbours.forget(port, neighbour_key(address))
    }

    /// The currently installed programs: an immutable table, from which another one is made for
    /// [`Router::replace_forwarders`].
    pub fn forwarders(&self) -> Arc<Forwarders> {
        Arc::clone(&self.programs.table)
    }

    /// Replaces the table from which `table` was made, and returns it, to be freed off the packet path.
    ///
    /// # Errors
    /// Returns `table` if the router has another one by now: then it must be made again.
    pub fn replace_forwarders(
        &mut self,
        made_from: &Arc<Forwarders>,
        table: Arc<Forwarders>,
    ) -> Result<Arc<Forwarders>, Arc<Forwarders>> {
        let own = &mut self.programs.table;
        if Arc::ptr_eq(made_from, own) { Ok(std::mem::replace(own, table)) } else { Err(table) }
    }

    /// Installs a prepared program.
    ///
    /// # Errors
    /// If it exceeds the remaining budget, or names a port that is not the router's.
    pub fn install(&mut self, forwarder: Forwarder) -> Result<Fid, InstallError> {
        let (fid, table) = self.programs.table.with(forwarder)?;
        self.programs.table = table;
        Ok(fid)
    }

    /// Removes a program. Returns whether it existed.
    pub fn remove(&mut self, fid: Fid) -> bool {
        let Some(table) = self.programs.table.without(fid) else { return false };
        self.programs.table = table;
        true
    }

    /// A copy of a program's state, if it exists.
    pub fn data(&self, fid: Fid) -> Option<Vec<u8>> {
        let forwarder = self.programs.table.forwarder(fid)?;
        Some(self.between_packets(|| forwarder.state().get()))
    }

    /// Writes a program's state. False if there is no such program, or the size differs.
    #[must_use]
    pub fn set_data(&mut self, fid: Fid, data: &[u8]) -> bool {
        let forwarder = self.programs.table.forwarder(fid);
        forwarder.is_some_and(|forwarder| self.between_packets(|| forwarder.state().set(data)))
    }

    /// Calls `act` while no program of this router runs on another thread.
    fn between_packets<T>(&self, act: impl FnOnce() -> T) -> T {
        match &self.sharing {
            Some(sharing) => sharing.between_packets(act),
            None => act(),
        }
    }

    /// Attaches levels above, whose attachments installations may name. Packets at previous levels are
    /// dropped with them, so this must be done before packets flow.
    pub fn set_levels(&mut self, punt: Punt) {
        self.above = Some(Box::new(Above::new(punt)));
    }

    /// The levels above, if there are any.
    pub fn levels(&self) -> Option<&Punt> {
        self.above.as_deref().map(|above| &above.punt)
    }

    /// The levels above, to add and remove attachments.
    pub fn levels_mut(&mut self) -> Option<&mut Punt> {
        self.above.as_deref_mut().map(|above| &mut above.punt)
    }

    /// Starts sampling the cost of programs and, if processors are shared, measuring the cost of each packet,
    /// as a real run needs; several processors become threads. Packets that wait for them would be lost, so
    /// this must be done before packets flow.
    ///
    /// # Errors
    /// If a thread can't be started, or rings to them are too long.
    pub fn measure_processors(&mut self, meter: Meter) -> Result<(), SharingError> {
        let programs = &mut self.programs;
        programs.measure(meter);
        self.sharing.as_mut().map_or(Ok(()), |sharing| sharing.measure(meter, programs))
    }

    /// Sets the weight of a named flow, from its next credit on.
    ///
    /// # Errors
    /// If there is no such flow, or processors are not shared.
    pub fn set_flow_weight(&mut self, flow: &str, weight: Weight) -> Result<(), ReweighError> {
        self.sharing.as_mut().ok_or(ReweighError::NotShared)?.set_weight(flow, weight)
    }

    /// Its scheduler's counters, if processors are shared.
    pub fn processors(&self) -> Option<ProcessorStats> {
        self.sharing.as_ref().map(|sharing| sharing.stats(&self.core.ports.places))
    }

    /// The classifier.
    pub fn classifier_mut(&mut self) -> &mut C {
        &mut self.classifier
    }

    /// Its counters.
    pub fn stats(&self) -> NodeStats {
        let Counts { received, made, forwarded, consumed, dropped, errors, unmade, exceptions } =
            self.core.counts;
        let (neighbours, asked) = self.core.neighbours.counts();
        let (cache_hits, cache_misses) = self.core.fib.hits_and_misses();
        let control = self.core.control.as_deref();
        NodeStats {
            received,
            made,
            forwarded,
            consumed,
            dropped,
            kept: self.kept(),
            errors,
            unmade,
            exceptions: counted(FullIpReason::WORDS, exceptions),
            policed: counted(PolicedWork::WORDS, self.core.police.refused),
            punted: control.map_or_else(Vec::new, |control| counted(PolicedWork::WORDS, control.punted)),
            from_control: control.map_or(0, |control| control.sent),
            cache_hits,
            cache_misses,
            neighbours: neighbours as u64,
            asked: asked as u64,
            table_bytes: self.core.fib.memory() as u64,
            processors: self.processors(),
            levels: self.levels().map(crate::above::stats).unwrap_or_default(),
        }
    }

    /// The processors that flows share, and what they work with.
    fn shared<'a>(
        &'a mut self,
        pool: &'a mut Pool,
        out: &'a mut Outbox,
    ) -> Option<(&'a mut Sharing, Host<'a, C>)> {
        let sharing = self.sharing.as_deref_mut()?;
        let host = Host {
            core: &mut self.core,
            classifier: &mut self.classifier,
            programs: &mut self.programs,
            above: self.above.as_deref_mut(),
            pool,
            out,
        };
        Some((sharing, host))
    }

    fn check(&self, hop: NextHop) -> Result<(), RouteError> {
        match hop {
            NextHop::Gateway { port, .. } | NextHop::Direct { port } if !self.core.ports.is_port(port) => {
                Err(RouteError::ForeignPort { port })
            }
            NextHop::Group(_) => Err(RouteError::ForeignGroup),
            _ => Ok(()),
        }
    }
}

impl Core {
    /// Adds the routes that come with a port: to its networks, to its own addresses, and to the broadcast
    /// (RFC 1812, 5.3.5) and subnet-router anycast addresses (RFC 4291, 2.6.1) of its networks.
    fn add_own_routes(&mut self, port: &RouterPort) -> Result<(), RouterError> {
        let (direct, local, broadcast) =
            (NextHop::Direct { port: port.place }.into(), NextHop::Local.into(), NextHop::Broadcast.into());
        for own in &port.v4 {
            let network = Prefix::new(own.address, own.len)?;
            if own.len < 32 {
                self.fib.insert_v4(network, &direct)?;
            }
            if own.len < 31 {
                let last = network.address() | (u32::MAX >> own.len);
                self.fib.insert_v4(Prefix::host(last), &broadcast)?;
                self.fib.insert_v4(Prefix::host(network.address()), &broadcast)?;
            }
            self.fib.insert_v4(Prefix::host(own.address), &local)?;
        }
        for own in port.v6.iter().filter(|own| !is_link_local(own.address)) {
            let network = Prefix::new(own.address, own.len)?;
            if own.len < 127 {
                self.fib.insert_v6(Prefix::host(network.address()), &local)?;
            }
            if own.len < 128 {
                self.fib.insert_v6(network, &direct)?;
            }
            self.fib.insert_v6(Prefix::host(own.address), &local)?;
        }
        Ok(())
    }
}

impl<C: Classify> Node for Router<C> {
    fn forward(&mut self, pool: &mut Pool, batch: &Batch, out: &mut Outbox) {
        if let Some((sharing, host)) = self.shared(pool, out) {
            return sharing.forward(host, batch);
        }
        let programs = (&mut self.programs, self.above.as_deref_mut());
        self.core.forward(&mut self.classifier, programs, pool, batch, out);
    }

    fn takes_trains(&self) -> bool {
        self.programs.table.is_empty() && self.sharing.is_none()
    }

    fn ports(&self) -> &[u16] {
        &self.core.ports.places
    }

    fn deadline(&self) -> Nanos {
        let up = self.levels().map_or(Nanos::NEVER, Punt::deadline);
        let shared = self.sharing.as_ref().map_or(Nanos::NEVER, |sharing| sharing.deadline());
        self.core.neighbours.deadline().min(up).min(shared)
    }

    fn tick(&mut self, pool: &mut Pool, now: Nanos, out: &mut Outbox) {
        self.core.tick(pool, now, out);
        if let Some(above) = &mut self.above
            && above.punt.deadline() <= now
        {
            above.collect((&mut self.core, &mut self.classifier), pool, now, out);
        }
        if let Some((sharing, host)) = self.shared(pool, out)
            && sharing.deadline() <= now
        {
            sharing.tick(host, now);
        }
    }

    fn set_waker(&mut self, waker: &Waker) {
        if let Some(sharing) = &mut self.sharing {
            sharing.set_waker(waker);
        }
    }

    fn stats(&self) -> Option<NodeStats> {
        Some(self.stats())
    }

    fn kept(&self) -> u64 {
        let up = self.levels().map_or(0, Punt::kept);
        let shared = self.sharing.as_ref().map_or(0, |sharing| sharing.kept());
        self.core.neighbours.kept() + up + shared
    }
}

/// What is counted by kind, with the kinds' names; only kinds with a count.
fn counted(names: &[&'static str], packets: impl IntoIterator<Item = u64>) -> Vec<(&'static str, u64)> {
    names.iter().copied().zip(packets).filter(|(_, packets)| *packets > 0).collect()
}
