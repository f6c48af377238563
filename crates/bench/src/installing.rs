//! How long packets wait while programs are installed and removed: the change between two batches, and the
//! slowdown of the next batch, whose table and code are new.

use crate::rig::{FrameSpec, Rig};
use crate::straight::straight;
use crate::{BenchError, Sample, Settings};
use longwire_packet::BATCH;
use longwire_report::Row;
use longwire_router::{Admission, Fid, Forwarder, Forwarders, Installation, RouterPrices};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, channel, sync_channel};
use std::thread;
use std::time::Instant;

const CHANGES: usize = 400;
const QUICK_CHANGES: usize = 20;
/// Number of flow programs installed throughout.
const KEPT: u16 = 100;
const QUICK_KEPT: u16 = 4;

/// A table, and its predecessor.
type Change = (Arc<Forwarders>, Arc<Forwarders>);

/// Costs of changes, in nanoseconds.
#[derive(Default)]
struct Costs {
    /// Times without forwarding.
    waits: Vec<f64>,
    /// The part of these spent on the exchange of tables.
    exchanges: Vec<f64>,
}

/// The rows: a router that gains or loses a program each time, which another thread verifies, compiles and
/// puts into tables.
pub(crate) fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let name = "router: packets wait for an installation or a removal";
    settings.next(name)?;
    let mut rig = Rig::new(Admission::default())?;
    for flow in 0..if settings.quick { QUICK_KEPT } else { KEPT } {
        rig.install(straight(20)?, FrameSpec { ports: [flow, 53], ..FrameSpec::UDP }.flow(), None)?;
    }
    let (changes, next) = sync_channel(1);
    let (done, freed) = channel();
    let table = rig.router.forwarders();
    let count = if settings.quick { QUICK_CHANGES } else { CHANGES };
    let (asked, Costs { waits, exchanges }) = thread::scope(|scope| {
        let asking = scope.spawn(move || ask(table, count, &changes, &freed));
        let costs = serve(&mut rig, &next, |old| drop(done.send(old)));
        (asking.join(), costs)
    });
    let prepared: Sample = asked.map_err(|_| BenchError::Stopped)??.into_iter().collect();
    let exchanges: Sample = exchanges.into_iter().collect();
    let tally = rig.tally();
    let waits: Sample = waits.into_iter().collect();
    let (p99, most) = (waits.quantile(0.99), waits.most());
    let row = Row::new(name, "ns").expected(50e3).measured(p99).at_most();
    let row = row.extra("median_ns", waits.median()).extra("most_ns", most).note(format!(
        "the 99th of 100; median {:.1} µs, the longest {:.1} µs of {count} changes; {} of {} packets \
         forwarded meanwhile",
        waits.median() / 1e3,
        most / 1e3,
        tally.forwarded,
        tally.offered,
    ));
    let row = if tally.forwarded == tally.offered { row } else { row.judged(false) };
    let beside = Row::new("router: a program of 60 instructions is verified and compiled", "ns");
    let beside = beside
        .measured(prepared.median())
        .extra("most_ns", prepared.most())
        .note(format!("median of {}; on the asking thread, while packets are forwarded", count.div_ceil(2)));
    let exchange = Row::new("router: the path stops for the exchange of programs", "ns").expected(4e3);
    let exchange = exchange.measured(exchanges.quantile(0.99)).at_most();
    let exchange = exchange.extra("median_ns", exchanges.median()).extra("most_ns", exchanges.most());
    let exchange = exchange.note(format!("the 99th of 100 of {count} changes; the next batch apart"));
    Ok(vec![row, beside, exchange])
}

/// Installs and removes a program alternately. Returns the times of verification and compilation.
fn ask(
    mut table: Arc<Forwarders>,
    count: usize,
    changes: &SyncSender<Change>,
    freed: &Receiver<Arc<Forwarders>>,
) -> Result<Vec<f64>, BenchError> {
    let mut prepared = Vec::new();
    let mut installed: Option<Fid> = None;
    for _ in 0..count {
        let more = match installed.take() {
            Some(fid) => table.without(fid).unwrap_or_else(|| Arc::clone(&table)),
            None => {
                let key = FrameSpec { ports: [9999, 53], ..FrameSpec::UDP }.flow();
                let installation = Installation { key, ..Installation::default() };
                let (program, before) = (straight(60)?, Instant::now());
                let forwarder = Forwarder::prepare(program, installation, &RouterPrices::default(), 1)?;
                prepared.push(before.elapsed().as_nanos() as f64);
                let (fid, more) = table.with(forwarder)?;
                installed = Some(fid);
                more
            }
        };
        if changes.send((table, Arc::clone(&more))).is_err() {
            return Ok(prepared);
        }
        // The old one is freed here.
        drop(freed.recv());
        table = more;
    }
    Ok(prepared)
}

/// Forwards batches until there are no more requests. Returns the cost of each change.
fn serve(rig: &mut Rig, changes: &Receiver<Change>, give_back: impl Fn(Arc<Forwarders>)) -> Costs {
    let frames = [(0, FrameSpec { ports: [1, 53], ..FrameSpec::UDP }.frame()); BATCH];
    let usual: Sample = (0..1000).map(|_| rig.time_batch(&frames).as_nanos() as f64).collect();
    let usual = usual.median();
    let mut costs = Costs::default();
    loop {
        let before = Instant::now();
        match changes.try_recv() {
            Ok((made_from, table)) => {
                let (Ok(old) | Err(old)) = rig.router.replace_forwarders(&made_from, table);
                let exchanged = before.elapsed().as_nanos() as f64;
                give_back(old);
                let swapped = before.elapsed().as_nanos() as f64;
                let batch = rig.time_batch(&frames).as_nanos() as f64;
                costs.waits.push(swapped + (batch - usual).max(0.0));
                costs.exchanges.push(exchanged);
            }
            Err(TryRecvError::Empty) => {
                rig.time_batch(&frames);
            }
            Err(TryRecvError::Disconnected) => return costs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every change is carried out, and no packet is lost meanwhile.
    #[test]
    fn packets_flow_while_programs_come_and_go() {
        let mut rig = Rig::new(Admission::default()).unwrap();
        let (changes, next) = sync_channel(1);
        let (done, freed) = channel();
        let table = rig.router.forwarders();
        let costs = thread::scope(|scope| {
            scope.spawn(move || ask(table, 6, &changes, &freed).unwrap());
            serve(&mut rig, &next, |old| drop(done.send(old)))
        });
        assert_eq!((costs.waits.len(), costs.exchanges.len()), (6, 6));
        let tally = rig.tally();
        assert!(tally.forwarded == tally.offered && tally.offered > 0, "{tally:?}");
        assert_eq!(rig.router.forwarders().all().len(), 0, "the last change was a removal");
    }
}
