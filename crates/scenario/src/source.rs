//! A traffic source of the checked plan.

use crate::address::Mac;
use crate::plan_nodes::Port;
use longwire_block::change::Blocks;
use longwire_block::flow::{Aim, Course, FLOW};
use longwire_block::{Spec, Value, Values};
use longwire_random::process::Model;
use longwire_units::{Nanos, Rate};
use std::net::IpAddr;

/// A traffic source: UDP datagrams that enter by a port.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its name.
    pub name: Box<str>,
    /// Its number in the run, which no other source has had there, except one of its name.
    pub number: u16,
    /// Place of the input port.
    pub in_port: u16,
    /// Place of the destination port.
    pub out_port: u16,
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same family.
    pub destination: IpAddr,
    /// Destination hardware address of its frames: the destination port's, or the first router's.
    pub mac: Mac,
    /// Its model: one of [`longwire_random::process::SPECS`].
    pub spec: &'static Spec,
    /// The model's settings; in `cbr` and `poisson` the (mean) interval replaces the rate if it was given.
    pub values: Values,
    /// Start time.
    pub start: Nanos,
    /// Number of packets; none for no limit.
    pub count: Option<u64>,
    /// Duration from the start; none until the end of the run.
    pub duration: Option<Nanos>,
    /// Whether it sends from its start, rather than when a change enables it.
    pub up: bool,
}

impl Source {
    /// Its model.
    pub fn model(&self) -> Model {
        Model::read(self.spec, &self.values)
    }

    /// Its settings as blocks, for edits: model and flow. `ports` are the plan's.
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

    /// Size of its largest frame in bytes, with the Ethernet header, without FCS.
    pub fn size(&self) -> u32 {
        self.model().largest()
    }

    /// Its rate, if it has one, all the time or while on; that of an interval is rounded down.
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

    /// Its packets a second, if it has a rate, while it is on and at its highest; rounded up.
    pub fn packets_per_second(&self) -> Option<u64> {
        let at = |rate: Rate, size: u32| rate.0.div_ceil(u64::from(size.max(1)) * 8);
        if let Value::Time(interval) = self.values.at(0) {
            return Some(1_000_000_000_u64.div_ceil(interval.0.max(1)));
        }
        match (self.model(), self.rate()) {
            (Model::Mmpp { rates, size, .. }, _) => rates.iter().max().map(|&rate| at(rate, size)),
            (_, Some(rate)) if rate != Rate::UNLIMITED => Some(at(rate, self.size())),
            _ => None,
        }
    }
}
