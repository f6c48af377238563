//! All programs of a router. Immutable: changes create another table.

use super::key::{FlowKey, Key};
use super::price::{Admission, classifier, minimal_ip};
use super::program::{Fid, Forwarder, Installation};
use super::space::Space;
use crate::next_hop::NextHop;
use longwire_program::{Budget, BudgetItem, Demand, Overdrawn, Resource, admit};
use std::sync::Arc;
use thiserror::Error;

/// Reason why a prepared program is not installed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InstallError {
    /// It exceeds the remaining budget.
    #[error(transparent)]
    Overdrawn(#[from] Overdrawn),
    /// Its output port is not the router's.
    #[error("port {port} is not one of the router's")]
    ForeignPort {
        /// The port's place.
        port: u16,
    },
    /// The maximum number is reached.
    #[error("{MOST} programs are installed, which is the most; remove one")]
    TooMany,
}

/// Most programs of a router.
pub const MOST: usize = 4096;

/// The programs of a router: those for all packets and those for flows.
#[derive(Debug)]
pub struct Forwarders {
    admission: Admission,
    ports: Box<[u16]>,
    seed: u64,
    next: u32,
    /// By fid.
    all: Box<[Arc<Forwarder>]>,
    /// Those for all packets, by fid.
    pub(super) general: Box<[Arc<Forwarder>]>,
    /// Those for flows, by fid: the indices of `space`.
    pub(super) flows: Box<[Arc<Forwarder>]>,
    pub(super) space: Space,
    /// Whether all of them are plain: they only pass or drop packets.
    pub(crate) plain: bool,
    /// Whether one of them may rewrite packets.
    pub(super) writes: bool,
    need: Demand,
}

impl Forwarders {
    /// An empty table, for a router with ports at these indices.
    pub fn none(admission: Admission, ports: &[u16], seed: u64) -> Self {
        let classifier = classifier(&admission.prices, &Space::default(), false);
        let minimal = minimal_ip(&admission.prices);
        // Minimal IP is always there, whatever the budget.
        let need = admit(&Budget::default(), classifier, &[], &[minimal]).unwrap_or_default();
        Self {
            admission,
            ports: ports.into(),
            seed,
            next: 1,
            all: Box::default(),
            general: Box::default(),
            flows: Box::default(),
            space: Space::default(),
            plain: true,
            writes: false,
            need,
        }
    }

    /// This table with one more program, which gets the next number, if all fit the budget.
    ///
    /// # Errors
    /// The arithmetic of the exceeded resource, or another reason.
    pub fn with(&self, mut forwarder: Forwarder) -> Result<(Fid, Arc<Self>), InstallError> {
        if self.all.len() >= MOST || self.next == u32::MAX {
            return Err(InstallError::TooMany);
        }
        let Installation { way, links, .. } = &forwarder.installation;
        let mut ports = way.and_then(NextHop::port).into_iter().chain(links.iter().map(|link| link.port));
        if let Some(port) = ports.find(|port| !self.ports.contains(port)) {
            return Err(InstallError::ForeignPort { port });
        }
        let fid = Fid(self.next);
        forwarder.number(fid, self.seed);
        let all = self.all.iter().cloned().chain([Arc::new(forwarder)]).collect();
        Ok((fid, self.remade(all, self.next + 1, &self.admission.budget)?))
    }

    /// This table with a program replaced; the new one takes over number and position. None if there is no
    /// such program.
    ///
    /// # Errors
    /// As [`Forwarders::with`].
    pub fn replacing(&self, fid: Fid, mut forwarder: Forwarder) -> Option<Result<Arc<Self>, InstallError>> {
        self.forwarder(fid)?;
        forwarder.number(fid, self.seed);
        let new = Arc::new(forwarder);
        let one = |old: &Arc<Forwarder>| Arc::clone(if old.fid == fid { &new } else { old });
        Some(self.remade(self.all.iter().map(one).collect(), self.next, &self.admission.budget))
    }

    /// This table without a program; none if there is no such program.
    pub fn without(&self, fid: Fid) -> Option<Arc<Self>> {
        self.forwarder(fid)?;
        let left = self.all.iter().filter(|forwarder| forwarder.fid != fid).cloned().collect();
        // Fewer keys in a smaller table may collide more often, and cost more than the budget: they stay.
        self.remade(left, self.next, &Budget::default()).ok()
    }

    /// The program with this number.
    pub fn forwarder(&self, fid: Fid) -> Option<&Arc<Forwarder>> {
        let at = self.all.binary_search_by_key(&fid, |forwarder| forwarder.fid).ok()?;
        self.all.get(at)
    }

    /// The programs that a packet meets, in order: its flow's, found by `space`, and all general ones.
    #[inline]
    pub(super) fn met(&self, own: Option<usize>) -> impl Iterator<Item = &Forwarder> {
        own.and_then(|place| self.flows.get(place)).into_iter().chain(&*self.general).map(AsRef::as_ref)
    }

    /// All, by number.
    pub fn all(&self) -> &[Arc<Forwarder>] {
        &self.all
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Worst-case cost of a packet, including the router's own work.
    pub fn need(&self) -> &Demand {
        &self.need
    }

    /// Worst-case cost of a packet whose flow has this program, in picoseconds.
    pub(crate) fn price(&self, own: Option<&Forwarder>) -> u64 {
        let prices = &self.admission.prices;
        let router = classifier(prices, &self.space, self.writes).amount(Resource::Time)
            + minimal_ip(prices).demand.amount(Resource::Time);
        let programs = own.into_iter().chain(self.general.iter().map(AsRef::as_ref));
        router + programs.map(|forwarder| forwarder.demand.amount(Resource::Time)).sum::<u64>()
    }

    /// The budget and the prices.
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    fn remade(
        &self,
        all: Box<[Arc<Forwarder>]>,
        next: u32,
        budget: &Budget,
    ) -> Result<Arc<Self>, InstallError> {
        let key = |forwarder: &&Arc<Forwarder>| match forwarder.installation.key {
            Key::Flow(key) => Some(key),
            Key::All => None,
        };
        let keys: Vec<FlowKey> = all.iter().filter_map(|forwarder| key(&forwarder)).collect();
        let (flows, general): (Vec<_>, Vec<_>) = all.iter().partition(|forwarder| key(forwarder).is_some());
        let space = Space::new(&keys, self.seed);
        let writes = all.iter().any(|forwarder| forwarder.writes);
        let plain = all.iter().all(|forwarder| forwarder.plain);
        let prices = &self.admission.prices;
        let installed = |forwarder: &&Arc<Forwarder>| {
            let name = format!("{} (fid {})", forwarder.installation.name, forwarder.fid.0).into();
            BudgetItem { name, demand: forwarder.demand }
        };
        let per_flow: Vec<BudgetItem> = flows.iter().map(installed).collect();
        let in_series: Vec<BudgetItem> = general.iter().map(installed).chain([minimal_ip(prices)]).collect();
        let need = admit(budget, classifier(prices, &space, writes), &per_flow, &in_series)?;
        let owned = |list: Vec<&Arc<Forwarder>>| list.into_iter().cloned().collect();
        Ok(Arc::new(Self {
            admission: self.admission.clone(),
            ports: self.ports.clone(),
            seed: self.seed,
            next,
            general: owned(general),
            flows: owned(flows),
            space,
            plain,
            writes,
            need,
            all,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarder::{Installation, RouterPrices};
    use longwire_program::{Program, assemble};

    /// Four keys in eight slots may collide more often than five in sixteen.
    #[test]
    fn a_program_is_removed_whatever_the_others_cost_then() {
        let keys = [1, 2, 3, 4, 5].map(|port| FlowKey { source_port: Some(port), ..FlowKey::default() });
        let lines = |keys: &[FlowKey], seed| Space::new(keys, seed).lookups().sum::<u32>();
        let is_wanted = |seed: &u64| {
            let all = lines(&keys, *seed);
            lines(&keys[1..], *seed) > all && (1..5).all(|count| lines(&keys[..count], *seed) <= all)
        };
        let seed = (0..10_000).find(is_wanted).unwrap();
        let filled = |budget: Budget| {
            let admission = Admission { budget, ..Admission::default() };
            let mut table = Arc::new(Forwarders::none(admission, &[10], seed));
            for key in keys {
                let program = Program::new("pass", assemble("r0 = 2\n exit").unwrap(), []);
                let installation = Installation { key: Key::Flow(key), ..Installation::default() };
                let made = Forwarder::prepare(program, installation, &RouterPrices::default(), seed);
                table = table.with(made.unwrap()).unwrap().1;
            }
            table
        };
        let time = |table: &Forwarders| table.need().amount(Resource::Time);
        let table = filled(Budget::line_rate(Budget::rate_for(time(&filled(Budget::default())))));
        let left = table.without(Fid(1)).unwrap();
        assert_eq!(left.all().len(), 4);
        assert!(time(&left) > time(&table));
    }
}
