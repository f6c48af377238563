//! A traffic source of the checked plan.

use crate::address::Mac;
use crate::plan::Port;
use longwire_block::change::Blocks;
use longwire_block::flow::{Aim, Course, FLOW};
use longwire_block::{Spec, Value, Values};
use longwire_random::process::{Interval, Model};
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
    /// Hardware address that its frames are sent to: of the port they are bound for, or of the first router on the way.
    pub mac: Mac,
    /// How its packets come: one of [`longwire_random::process::SPECS`].
    pub spec: &'static Spec,
    /// What that is set to.
    pub values: Values,
    /// The time between two packets of `cbr`, or the mean of `poisson`, if it was given instead of the rate; the rate among
    /// the values is then rounded down.
    pub interval: Option<Nanos>,
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
        let every = self.interval.and_then(Interval::of);
        match (Model::read(self.spec, &self.values), every) {
            (Model::Cbr { size, .. }, Some(every)) => Model::Cbr { every, size },
            (Model::Poisson { size, .. }, Some(every)) => Model::Poisson { every, size },
            (model, _) => model,
        }
    }

    /// What it is made of, as its changes take it: its model, with an interval in the place of the rate if it has one, and
    /// the rest of it. `ports` are the plan's.
    pub fn blocks(&self, ports: &[Port]) -> Blocks {
        let values = match self.interval {
            Some(interval) => self.values.replaced(0, Value::Time(interval)),
            None => self.values.clone(),
        };
        let port = &ports[usize::from(self.out_port)];
        let course = Course {
            aim: Aim { port: self.out_port, mac: self.mac.0 },
            destination: self.destination,
            packets: self.count.unwrap_or(u64::MAX),
            duration: self.duration.unwrap_or(Nanos::NEVER),
            up: self.up,
        };
        vec![(self.spec, values), (&FLOW, course.values(&port.name))]
    }

    /// Bytes of its largest frame, from the Ethernet header on and without FCS.
    pub fn size(&self) -> u32 {
        self.model().largest()
    }

    /// Its first parameter, if that is a rate: all the time, or while it is on.
    pub fn rate(&self) -> Option<Rate> {
        match self.values.at(0) {
            Value::Rate(rate) => Some(rate),
            _ => None,
        }
    }
}
