//! A traffic source of the checked plan.

use crate::address::Mac;
use crate::plan_nodes::Port;
use longwire_block::change::Blocks;
use longwire_block::flow::{Aim, Course, FLOW};
use longwire_block::{Spec, Value, Values};
use longwire_random::process::Model;
use longwire_units::{Nanos, Rate};
use std::net::IpAddr;

/// A traffic source: UDP datagrams that come in by a port.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its name.
    pub name: Box<str>,
    /// Place of the port by which its packets come in.
    pub in_port: u16,
    /// Place of the port that they are bound for.
    pub out_port: u16,
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same family.
    pub destination: IpAddr,
    /// Hardware address that its frames are sent to: of the port they are bound for, or of the first router
    /// on the way.
    pub mac: Mac,
    /// How its packets come: one of [`longwire_random::process::SPECS`].
    pub spec: &'static Spec,
    /// What that is set to: of `cbr` and `poisson`, with the time between two packets, or its mean, in the
    /// place of the rate if that was given.
    pub values: Values,
    /// When it begins.
    pub start: Nanos,
    /// How many there are; none for no limit.
    pub count: Option<u64>,
    /// When they end, counted from the start; none for the end of the run.
    pub duration: Option<Nanos>,
    /// Whether it sends from its start on, and not only when a change lets it.
    pub up: bool,
}

impl Source {
    /// How its packets come.
    pub fn model(&self) -> Model {
        Model::read(self.spec, &self.values)
    }

    /// What it is made of, as its changes take it: its model, and the rest of it. `ports` are the plan's.
    pub fn blocks(&self, ports: &[Port]) -> Blocks {
        let port = &ports[usize::from(self.out_port)];
        let course = Course {
            aim: Aim { port: self.out_port, mac: self.mac.0 },
            destination: self.destination,
            packets: self.count.unwrap_or(u64::MAX),
            duration: self.duration.unwrap_or(Nanos::NEVER),
            up: self.up,
        };
        vec![(self.spec, self.values.clone()), (&FLOW, course.values(&port.name))]
    }

    /// Bytes of its largest frame, from the Ethernet header on and without FCS.
    pub fn size(&self) -> u32 {
        self.model().largest()
    }

    /// Its rate, if it has one: all the time, or while it is on. That of an interval is rounded down.
    pub fn rate(&self) -> Option<Rate> {
        match self.values.at(0) {
            Value::Rate(rate) => Some(rate),
            Value::Time(interval) => {
                let rate = u64::from(self.size()) * 8_000_000_000 / interval.0.max(1);
                Some(Rate(rate.clamp(Rate::MIN.0, Rate::MAX.0)))
            }
            _ => None,
        }
    }
}
