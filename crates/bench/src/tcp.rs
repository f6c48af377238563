//! Bulk TCP between two hosts through an unlimited link, with the ports' offloads on: the engine and a bare
//! forwarding loop on the same drivers, alternating.

use crate::ports::forward;
use crate::world::{BenchHosts, Driver, own_losses, with_each_driver, with_losses};
use crate::{BenchError, Sample, Settings, stop_after};
use longwire_engine::Report;
use longwire_lab::traffic::bulk::{Bulk, BulkResult, send};
use longwire_lab::traffic::{StopAfter, until};
use longwire_report::Row;
use std::time::Duration;

/// Target of TAP and AF_PACKET in bit/s; AF_XDP can't carry trains, so it has none.
const TARGET: f64 = 15e9;
/// Required share of the bare loop's rate on TAP and AF_PACKET.
const TARGET_PERCENT: f64 = 90.0;

/// The rows of this bench.
pub fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    with_each_driver("tcp", |driver| measure(settings, driver))
}

/// Transfers of both, alternating, the bare loop first.
#[derive(Default)]
struct Turns {
    bare: Vec<f64>,
    engine: Vec<f64>,
    retransmits: u64,
    congestion: String,
    /// The engine's report of the last transfer, or of the first with an error or lost packets.
    report: Report,
}

fn measure(settings: &Settings<'_>, driver: Driver) -> Result<Vec<Row>, BenchError> {
    let world = BenchHosts::new(driver, true)?;
    let mut turns = Turns::default();
    for round in 1..=settings.runs(5) {
        settings.next(&format!("tcp: {}, round {round}, bare loop", driver.name()))?;
        let mut ports = world.open()?;
        turns.bare.push(forward(&mut ports, || Ok(goodput(&transfer(settings, &world)?)))?);
        drop(ports);
        settings.next(&format!("tcp: {}, round {round}, engine", driver.name()))?;
        let run = world.start("loss = \"0 %\"\nqueue = \"unlimited\"")?;
        let (result, report) = stop_after(run, transfer(settings, &world))?;
        turns.add(&result, report);
    }
    Ok(turns.rows(driver))
}

impl Turns {
    fn add(&mut self, result: &BulkResult, report: Report) {
        self.engine.push(goodput(result));
        self.retransmits += result.retransmits;
        self.congestion.clone_from(&result.congestion);
        self.keep(report);
    }

    fn keep(&mut self, report: Report) {
        if self.report.errors.is_empty() && own_losses(&self.report).is_none() {
            self.report = report;
        }
    }

    fn rows(&self, driver: Driver) -> Vec<Row> {
        let name = driver.name();
        let carries_trains = driver != Driver::AfXdp;
        let sample = |values: &[f64]| values.iter().copied().collect::<Sample>();
        let engine = format!("tcp: {name}, one connection, unlimited link");
        let row = if carries_trains {
            sample(&self.engine).at_least(&engine, "bit/s", TARGET)
        } else {
            sample(&self.engine)
                .shown(&engine, "bit/s")
                .note("for information: AF_XDP on veth copies and carries no large segments")
        };
        let row =
            row.extra("congestion", self.congestion.as_str()).extra("retransmits", self.retransmits).note(
                format!("congestion control {}, {} segments sent again", self.congestion, self.retransmits),
            );
        let shares: Sample =
            self.engine.iter().zip(&self.bare).map(|(engine, bare)| engine / bare * 100.0).collect();
        let share = format!("tcp: {name}, engine of bare loop");
        let share = if carries_trains {
            shares.median_at_least(&share, "%", TARGET_PERCENT)
        } else {
            shares.shown(&share, "%")
        };
        vec![
            sample(&self.bare).shown(&format!("tcp: {name}, one connection, bare loop"), "bit/s"),
            with_losses(row, &self.report),
            share.note("the bare loop is the same driver, received and sent at once; the two take turns"),
        ]
    }
}

/// The receiver's rate in bit/s.
fn goodput(result: &BulkResult) -> f64 {
    result.reception.goodput_bits_per_second.unwrap_or(0.0)
}

fn transfer(settings: &Settings<'_>, world: &BenchHosts) -> Result<BulkResult, BenchError> {
    let time = settings.time(Duration::from_secs(3));
    // CUBIC where available, else the system's default, which should not decide the result.
    let congestion = available_congestion_control(&["cubic"]).map(str::to_owned);
    let bulk = Bulk { congestion, ..Bulk::new(StopAfter::duration(time)) };
    world.with_receiver(|receiver| send(receiver, &bulk, &mut until(settings.stop)))
}

/// The first of these congestion controls that the system has.
pub(crate) fn available_congestion_control(wanted: &[&'static str]) -> Option<&'static str> {
    let known =
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    wanted.iter().copied().find(|name| known.split_ascii_whitespace().any(|other| other == *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_each_turn_and_only_drivers_with_trains_are_judged() {
        let turns = Turns {
            bare: vec![20e9, 10e9, 40e9],
            engine: vec![19e9, 8e9, 36e9],
            congestion: "cubic".into(),
            ..Turns::default()
        };
        let [bare, engine, share] = &turns.rows(Driver::Tap)[..] else { panic!("three rows") };
        let value = |row: &Row| row.measured.as_ref().and_then(|value| value.as_f64());
        assert_eq!([bare, engine, share].map(value), [Some(20e9), Some(36e9), Some(90.0)]);
        assert_eq!([bare, engine, share].map(|row| row.pass), [None, Some(true), Some(true)]);
        assert!(turns.rows(Driver::AfXdp).iter().all(|row| row.pass.is_none()));
        let slow = Turns { engine: vec![17e9, 8e9, 36e9], ..turns };
        assert_eq!(slow.rows(Driver::AfPacket)[2].pass, Some(false));
    }

    #[test]
    fn losses_of_any_kind_are_told_though_a_later_transfer_has_none() {
        use longwire_engine::{OwnLosses, RemovedPorts};
        let losses = OwnLosses { oversize: 5, ..OwnLosses::default() };
        let lossy =
            Report { removed_ports: RemovedPorts { losses, ..RemovedPorts::default() }, ..Report::default() };
        let mut turns = Turns { bare: vec![1e9], engine: vec![1e9], ..Turns::default() };
        turns.keep(lossy);
        turns.keep(Report::default());
        let notes = turns.rows(Driver::Tap)[1].notes.concat();
        assert!(notes.contains("5 too long for a port"), "{notes}");
    }

    #[test]
    fn both_carry_a_connection_over_each_driver() {
        let stop = std::sync::atomic::AtomicBool::new(false);
        let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &stop };
        match rows(&settings) {
            Ok(rows) => {
                let carried = |row: &Row| row.measured.as_ref().and_then(|value| value.as_f64()) > Some(0.0);
                assert_eq!(rows.len(), 9, "{rows:?}");
                assert!(rows.iter().all(carried), "{rows:?}");
            }
            Err(BenchError::NotHere(why)) => println!("skipped: {why}"),
            Err(error) => panic!("{error}"),
        }
    }
}
