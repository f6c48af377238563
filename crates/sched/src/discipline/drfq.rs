//! DRFQ, dominant resource fair queueing: virtual time for several resources.
//!
//! With s(p, j) the time of packet p on resource j over the capacity: S(p, j) = max(V(j), B(j)), F(p, j) =
//! S(p, j) + s(p, j) / w, and the packet whose largest S(p, j) is smallest comes first. B(j) is the flow's
//! last finish on j, and at least Δ before its last finish on the other. Δ = 0 is memoryless (S is the same
//! on both, F after the dominant one); without Δ resources dovetail: a flow is charged for each separately,
//! whatever the order of its packets.
//!
//! Cost beyond a packet's estimate is charged to its flow's next packet.
//!
//! Written from the paper's published equations; only the abstract of its text was available. Choices: V(j)
//! is the largest start tag of a packet given to a processor (for the port as well, which such packets reach
//! a little later), and the largest finish once nothing is inside.

use super::tags::Tags;
use super::{Discipline, Spec};
use crate::Settings;
use crate::backlog::Backlog;

/// Memoryless, or with `DOVETAIL` with the distance in the settings.
#[derive(Debug)]
pub(crate) struct Drfq<const DOVETAIL: bool>(Tags);

impl<const DOVETAIL: bool> Discipline for Drfq<DOVETAIL> {
    const SPEC: Spec = Spec {
        name: if DOVETAIL { "drfq-dovetail" } else { "drfq" },
        summary: if DOVETAIL {
            "Dominant resource fair queueing where a flow's demands for both resources may follow each other."
        } else {
            "Dominant resource fair queueing without memory: each packet counts by its dominant resource."
        },
        source: "Ghodsi, Sekar, Zaharia & Stoica, Multi-Resource Fair Queueing for Packet Processing \
            (SIGCOMM 2012)",
        quantum: None,
        constant_time: false,
        dominant: true,
        apart: true,
    };

    fn build(settings: &Settings) -> Self {
        Self(Tags::new(settings.flows, if DOVETAIL { settings.dovetail.0 } else { 0 }))
    }

    #[inline]
    fn join(&mut self, backlog: &mut Backlog, flow: u32) {
        self.0.join(backlog, flow);
    }

    #[inline]
    fn next(&mut self, backlog: &mut Backlog) -> Option<u32> {
        self.0.next(backlog, |backlog, slot| {
            let charged = super::with_owed(backlog, slot);
            backlog.prices.normalised(charged, backlog.slot(slot).bytes)
        })
    }

    #[inline]
    fn due(&self) -> u64 {
        self.0.due()
    }

    /// Without memory both clocks are the same.
    #[inline]
    fn processor_clock(&mut self) -> Option<&mut u64> {
        DOVETAIL.then(|| self.0.processor_clock())
    }

    #[inline]
    fn measured(&mut self, backlog: &mut Backlog, slot: u32, measured: u32) {
        super::owe(backlog, slot, measured);
    }
}
