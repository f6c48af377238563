//! Start-time fair queueing of the processors alone, by measured costs.
//!
//! Only start tags decide, so that a packet's cost need not be known before processing: it is charged as
//! estimated, and the difference to the measurement is charged to the flow's next packet. The port is
//! ignored.

use super::tags::Tags;
use super::{Discipline, Spec};
use crate::Settings;
use crate::backlog::Backlog;
use crate::cost::Cost;

/// Start-time fair queueing on processor time.
#[derive(Debug)]
pub(crate) struct Sfq(Tags);

impl Discipline for Sfq {
    const SPEC: Spec = Spec {
        name: "sfq",
        summary: "Start-time fair queueing on measured processor time; the port is first come, first served.",
        source: "Goyal, Vin & Cheng, Start-time Fair Queueing (SIGCOMM 1996)",
        quantum: None,
        constant_time: false,
        dominant: false,
        apart: true,
    };

    fn build(settings: &Settings) -> Self {
        Self(Tags::new(settings.flows, 0))
    }

    #[inline]
    fn join(&mut self, backlog: &mut Backlog, flow: u32) {
        self.0.join(backlog, flow);
    }

    #[inline]
    fn next(&mut self, backlog: &mut Backlog) -> Option<u32> {
        self.0.next(backlog, |backlog, slot| Cost { processor: super::with_owed(backlog, slot), port: 0 })
    }

    #[inline]
    fn due(&self) -> u64 {
        self.0.due()
    }

    #[inline]
    fn measured(&mut self, backlog: &mut Backlog, slot: u32, measured: u32) {
        super::owe(backlog, slot, measured);
    }
}
