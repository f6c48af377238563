//! Code shared by tests of scenarios.

use longwire_block::Port;
use longwire_port::driver::source::{Flow, SourcePort};
use longwire_scenario::{Plan, Source};
use longwire_units::Nanos;
use std::net::SocketAddr;

/// The plan's sources at their input ports.
pub fn source_ports(plan: &Plan) -> Vec<Box<dyn Port>> {
    let flow = |(id, source): (usize, &Source)| Flow {
        name: source.name.to_string(),
        id: id as u16,
        destination_mac: source.mac.0,
        source_mac: plan.ports[usize::from(source.in_port)].mac.0,
        source: SocketAddr::new(source.source, 9),
        destination: SocketAddr::new(source.destination, 9),
        model: source.model(),
        start: source.start,
        until: source.duration.map_or(Nanos::NEVER, |duration| source.start + duration),
        count: source.count.unwrap_or(u64::MAX),
        up: source.up,
    };
    let open = |(place, port): (usize, &longwire_scenario::Port)| {
        let own = plan.sources.iter().enumerate().filter(|(_, source)| usize::from(source.in_port) == place);
        let flows: Vec<_> = own.map(flow).collect();
        let port = SourcePort::new(&port.name, &flows, plan.sources.len() as u16, plan.seed).unwrap();
        Box::new(port) as Box<dyn Port>
    };
    plan.ports.iter().enumerate().map(open).collect()
}
