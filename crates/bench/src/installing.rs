//! How long packets wait for programs that are installed and removed while they flow: what a change takes between two batches, and by how much
//! the next batch is slower, whose table and code are new.

use crate::rig::{Rig, Said};
use crate::routing::straight;
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
/// Programs that are installed all the while, by the flow.
const KEPT: u16 = 100;
const QUICK_KEPT: u16 = 4;

/// A table, and the one that it was made from.
type Change = (Arc<Forwarders>, Arc<Forwarders>);

/// The rows: a router with one program more or less each time, which another thread verifies, compiles and puts into tables.
pub(crate) fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let name = "router: packets wait for an installation or a removal";
    settings.next(name)?;
    let mut rig = Rig::new(Admission::default())?;
    for flow in 0..if settings.quick { QUICK_KEPT } else { KEPT } {
        rig.install(straight(20)?, Said { ports: [flow, 53], ..Said::UDP }.flow(), None)?;
    }
    let (changes, next) = sync_channel(1);
    let (done, freed) = channel();
    let table = rig.router.forwarders();
    let count = if settings.quick { QUICK_CHANGES } else { CHANGES };
    let (asked, waits) = thread::scope(|scope| {
        let asking = scope.spawn(move || ask(table, count, &changes, &freed));
        let waits = serve(&mut rig, &next, |old| drop(done.send(old)));
        (asking.join(), waits)
    });
    asked.map_err(|_| BenchError::Stopped)??;
    let tally = rig.tally();
    let waits: Sample = waits.into_iter().collect();
    let (p99, most) = (waits.quantile(0.99), waits.most());
    let row = Row::new(name, "ns").expected(50e3).measured(p99).at_most();
    let row = row.extra("median_ns", waits.median()).extra("most_ns", most).note(format!(
        "the 99th of 100; median {:.1} µs, the longest {:.1} µs of {count} changes; {} of {} packets forwarded meanwhile",
        waits.median() / 1e3,
        most / 1e3,
        tally.forwarded,
        tally.offered,
    ));
    Ok(vec![if tally.forwarded == tally.offered { row } else { row.judged(false) }])
}

/// Installs and removes a program in turns.
fn ask(
    mut table: Arc<Forwarders>,
    count: usize,
    changes: &SyncSender<Change>,
    freed: &Receiver<Arc<Forwarders>>,
) -> Result<(), BenchError> {
    let mut installed: Option<Fid> = None;
    for _ in 0..count {
        let more = match installed.take() {
            Some(fid) => table.without(fid).unwrap_or_else(|| Arc::clone(&table)),
            None => {
                let key = Said { ports: [9999, 53], ..Said::UDP }.flow();
                let installation = Installation { key, ..Installation::default() };
                let forwarder = Forwarder::prepare(straight(60)?, installation, &RouterPrices::default(), 1)?;
                let (fid, more) = table.with(forwarder)?;
                installed = Some(fid);
                more
            }
        };
        if changes.send((table, Arc::clone(&more))).is_err() {
            return Ok(());
        }
        // The old one is freed here.
        drop(freed.recv());
        table = more;
    }
    Ok(())
}

/// Forwards batches until nobody asks any more; how long each change kept packets from being forwarded.
fn serve(rig: &mut Rig, changes: &Receiver<Change>, give_back: impl Fn(Arc<Forwarders>)) -> Vec<f64> {
    let frames = [(0, Said { ports: [1, 53], ..Said::UDP }.frame()); BATCH];
    let usual: Sample = (0..1000).map(|_| rig.time_batch(&frames).as_nanos() as f64).collect();
    let usual = usual.median();
    let mut waits = Vec::new();
    loop {
        let before = Instant::now();
        match changes.try_recv() {
            Ok((made_from, table)) => {
                let (Ok(old) | Err(old)) = rig.router.replace_forwarders(&made_from, table);
                give_back(old);
                let swapped = before.elapsed().as_nanos() as f64;
                let batch = rig.time_batch(&frames).as_nanos() as f64;
                waits.push(swapped + (batch - usual).max(0.0));
            }
            Err(TryRecvError::Empty) => {
                rig.time_batch(&frames);
            }
            Err(TryRecvError::Disconnected) => return waits,
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
        let waits = thread::scope(|scope| {
            scope.spawn(move || ask(table, 6, &changes, &freed).unwrap());
            serve(&mut rig, &next, |old| drop(done.send(old)))
        });
        assert_eq!(waits.len(), 6);
        let tally = rig.tally();
        assert!(tally.forwarded == tally.offered && tally.offered > 0, "{tally:?}");
        assert_eq!(rig.router.forwarders().all().len(), 0, "the last change was a removal");
    }
}
