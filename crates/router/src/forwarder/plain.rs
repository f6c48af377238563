//! Packets through programs that only look at them, or rewrite them, and let them pass, or not: filters, counters and translators, as most are.

use super::key::flow;
use super::program::{Bench, Forwarder};
use super::table::Forwarders;
use super::through::{Programs, fate};
use crate::classify::{Class, Classify};
use crate::state::{Core, Fate};
use longwire_block::{DropReason, Outbox};
use longwire_packet::{BATCH, Checksum, Handle, Pool};
use longwire_program::{Context, Verdict};
use longwire_wire::finish_checksum;

impl Programs {
    /// Decides about every packet of a batch, if all programs are such. A single one is made ready once for all packets.
    pub(super) fn forward_plain<C: Classify>(
        &mut self,
        (core, classifier): (&mut Core, &mut C),
        pool: &mut Pool,
        handles: &[Handle],
        out: &mut Outbox,
    ) {
        let mut classes = [Class::Dropped(DropReason::PortDown); BATCH];
        let mut fates = [None; BATCH];
        core.classify(classifier, pool, handles, &mut classes);
        let (table, bench) = self.parts();
        let packets = handles.iter().copied().zip(&mut classes).zip(&mut fates);
        match &*table.general {
            [only] if table.flows.is_empty() => {
                if let Some(mut ready) = only.alone(bench) {
                    let run = |context: &Context, frame: &mut [u8]| (ready.run(context, frame), only.writes);
                    rule((core, classifier), pool, packets, run);
                }
            }
            _ => {
                let run = |context: &Context, frame: &mut [u8]| pass_all(table, bench, context, frame);
                rule((core, classifier), pool, packets, run);
            }
        }
        core.prefetch_nodes(&classes[..handles.len()]);
        for ((&handle, &class), fate) in handles.iter().zip(&classes).zip(fates) {
            let fate = fate.unwrap_or_else(|| core.decide(pool, handle, class, out));
            core.book(pool.meta_mut(handle), fate);
        }
    }
}

/// Runs programs on packets, and notes the fates of those that are not let pass; the others are looked at again if they may have changed.
#[inline]
fn rule<'p, C: Classify>(
    (core, classifier): (&Core, &mut C),
    pool: &mut Pool,
    packets: impl Iterator<Item = ((Handle, &'p mut Class), &'p mut Option<Fate>)>,
    mut run: impl FnMut(&Context, &mut [u8]) -> (Verdict, bool),
) {
    for ((handle, class), ruled) in packets {
        if matches!(class, Class::Dropped(_)) {
            continue;
        }
        let (meta, frame) = pool.parts_mut(handle);
        if meta.is_train() || finish_checksum(meta, frame).is_err() {
            *ruled = Some(Fate::Dropped(DropReason::BadFrame));
            continue;
        }
        let context = Context { ingress: meta.in_port.into(), queue: 0, now: meta.arrival, worker: 0 };
        let (verdict, changed) = run(&context, frame);
        if changed {
            meta.checksum = Checksum::Unknown as u8;
        }
        if verdict != Verdict::Pass {
            // Without helpers nothing is redirected.
            *ruled = fate(core, verdict, meta.in_port, || Fate::Dropped(DropReason::Aborted));
        } else if changed && !matches!(class, Class::Switched { .. }) {
            *class = core.classify_one(classifier, pool, handle);
            core.prefetch_route(class);
        }
    }
}

/// The programs that a packet meets, until one does not let it pass, and whether one of them may have changed it.
fn pass_all(table: &Forwarders, bench: &mut Bench, context: &Context, frame: &mut [u8]) -> (Verdict, bool) {
    let words = if table.space.is_empty() { None } else { flow(frame) };
    let own = words.and_then(|flow| table.space.find(&flow));
    let mut changed = false;
    let run = |forwarder: &Forwarder| {
        changed |= forwarder.writes;
        forwarder.alone(bench).map(|mut ready| ready.run(context, frame))
    };
    let verdict = table.met(own).filter_map(run).find(|verdict| *verdict != Verdict::Pass);
    (verdict.unwrap_or(Verdict::Pass), changed)
}
