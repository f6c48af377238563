//! Engines for tests: ports on one bridge, and a path through links between any two of them.
#![allow(unreachable_pub)]

use longwire_block::path::{LinkRef, Paths};
use longwire_block::{Node, Port};
use longwire_engine::{Map, PortLocation, PortSetup, Setup, WorkerSetup};
use longwire_link::classify::Classifier;
use longwire_link::{LinkConfig, Links};
use longwire_packet::Pool;
use longwire_router::Bridge;
use longwire_units::Nanos;

/// A link in the words of a scenario.
pub type LinkSettings = &'static [(&'static str, &'static str)];

/// A path between two ports: the links in order, by their index.
pub type Route = ((u16, u16), &'static [u32]);

/// Construction data of an engine. All ports belong to the first worker; links are distributed over the
/// workers in turn.
pub struct TestBed {
    pub links: &'static [LinkSettings],
    pub routes: &'static [Route],
    pub workers: u32,
    pub pool_bytes: u64,
    /// The lowest delay of the links, for simulated runs with several workers.
    pub lead: Nanos,
}

impl TestBed {
    /// The engine, with these ports.
    pub fn setup(&self, ports: Vec<Box<dyn Port>>) -> Setup {
        let places: Vec<u16> = (0..ports.len() as u16).collect();
        let link_ref = |&link: &u32| LinkRef::new(link % self.workers, link / self.workers);
        let mut paths = Paths::default();
        let path =
            |&(pair, links): &Route| (pair, paths.add(&links.iter().map(link_ref).collect::<Vec<_>>()));
        let rules: Vec<_> = self.routes.iter().map(path).collect();
        let port_locations = places.iter().map(|&slot| PortLocation::single(0, slot.into())).collect();
        let mut ports = Some(ports);
        let worker = |index| {
            let (links, crossing) = self.links_of(index);
            let ports = ports.take().unwrap_or_default();
            let bridge = Bridge::new(places.clone(), Nanos::from_secs(300), 64);
            let setup = |(place, port)| PortSetup { place: place as u16, node: 0, port };
            WorkerSetup {
                nodes: if index == 0 { vec![Box::new(bridge) as Box<dyn Node>] } else { Vec::new() },
                ports: ports.into_iter().enumerate().map(setup).collect(),
                flat: self.routes.iter().all(|(_, links)| links.len() < 2),
                crossing,
                ..WorkerSetup::new(Pool::new(self.pool_bytes).unwrap(), links)
            }
        };
        let map = Map::new(Classifier::new(&[], &[], &rules), paths, port_locations);
        Setup { lead: self.lead, ..Setup::new((0..self.workers).map(worker).collect(), map) }
    }

    /// The links of a worker, and which of them lead to another worker's.
    fn links_of(&self, worker: u32) -> (Links, Vec<bool>) {
        let mut links = Links::with_capacity(self.links.len(), 1, Nanos::from_micros(10));
        let mut crossing = Vec::new();
        for (place, words) in (0u32..).zip(self.links).filter(|(place, _)| place % self.workers == worker) {
            let with = |config: LinkConfig, (key, text): &(&str, &str)| config.with_text(key, text).unwrap();
            links.add(place, &place.to_string(), &words.iter().fold(LinkConfig::default(), with));
            let leads = |hop: &[u32]| hop[0] == place && hop[1] % self.workers != worker;
            crossing.push(self.routes.iter().any(|(_, links)| links.windows(2).any(leads)));
        }
        (links, crossing)
    }
}
