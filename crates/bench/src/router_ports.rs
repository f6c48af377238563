//! A router between eight real ports: interfaces of test hosts in namespaces, each of which sends 64-byte
//! packets to the next one.

use crate::engine::dropped;
use crate::flood::{description, far_end, received_rate};
use crate::rig::{FrameSpec, PORTS, host_mac, router_mac};
use crate::world::{BenchHosts, Driver, require_hosts, settle_beside, with_losses};
use crate::{BenchError, Sample, Settings, alongside, pause, stop_after};
use longwire_block::Port;
use longwire_clock::monotonic;
use longwire_engine::Report;
use longwire_lab::Mac;
use longwire_packet::{BATCH, Batch, Pool};
use longwire_report::Row;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The rows of this bench.
pub(crate) fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    for driver in Driver::ALL {
        let name = format!("router: minimal IP, 64 B, {PORTS} real ports, {}", driver.name());
        let time = settings.time(Duration::from_secs(1));
        let once = || carry(driver, None, time, || settings.go_on());
        rows.push(match settings.repeat::<_, Vec<_>>(5, &name, once) {
            Ok(runs) => {
                let rates: Sample = runs.iter().map(|run| run.rate).collect();
                let offered = runs.iter().map(|run| run.offered).collect::<Sample>().median();
                let row = rates.shown(&name, "pps").note(description(driver));
                let row = row.note(format!("{:.2} Mpps were offered", offered / 1e6));
                runs.iter().fold(row, |row, run| run.told(row))
            }
            Err(BenchError::Stopped) => return Err(BenchError::Stopped),
            Err(error) => Settings::could_not(&name, &error),
        });
    }
    Ok(rows)
}

/// Results of a router between real ports.
pub struct RouterResult {
    /// Packets per second received at the far ends.
    pub rate: f64,
    /// Packets per second sent by the hosts.
    pub offered: f64,
    /// Frames refused by a port's full queue, which the router did not see.
    pub missed: u64,
    /// Packets lost by the router or its engine.
    pub lost: u64,
    /// The engine's report.
    pub report: Report,
}

impl RouterResult {
    /// Whether the hosts sent at this rate, within 1 %.
    pub fn keeps(&self, rate: u64) -> bool {
        self.offered >= 0.99 * rate as f64
    }

    /// The row with its losses, which fail it: without any it passes, unless it has failed before.
    pub fn told(&self, row: Row) -> Row {
        let row = with_losses(row, &self.report).extra("offered_pps", self.offered);
        let row = row.extra("missed", self.missed).extra("lost", self.lost);
        let row = match self.missed {
            0 => row,
            missed => row.note(format!("{missed} frames found a port's queue full")),
        };
        match (self.lost, self.report.is_conserved()) {
            (0, true) => {
                let pass = row.pass != Some(false);
                row.judged(pass)
            }
            (0, false) => row.judged(false).note("packets are missing from the engine's books"),
            (lost, _) => row.judged(false).note(format!("{lost} packets were lost behind the ports")),
        }
    }
}

/// The scenario: the engine spins on the first processor.
fn scenario() -> String {
    let mut text = "[engine]\nwait = \"spin\"\ncpus = [0]\npool = \"64 MiB\"\n".to_owned();
    for name in crate::world::HOSTS {
        // Writing to a String can't fail.
        let _ = writeln!(text, "[[port]]\nname = \"{name}\"\ndriver = \"memory\"");
    }
    let each = |line: &dyn Fn(u16, &str) -> String| -> String {
        (0..PORTS).zip(crate::world::HOSTS).map(|(port, name)| line(port, name)).collect()
    };
    let ports = each(&|port, name| {
        let mac = Mac(router_mac(port));
        format!("  {{ port = \"{name}\", mac = \"{mac}\", addresses = \"10.0.{port}.1/24\" }},\n")
    });
    let neighbours = each(&|port, _| {
        let mac = Mac(host_mac(port));
        format!("  {{ address = \"{}\", mac = \"{mac}\" }},\n", FrameSpec::host(port))
    });
    text + &format!("[[router]]\nname = \"r\"\nports = [\n{ports}]\nneighbours = [\n{neighbours}]\n")
}

/// Sends from all ports to the next ones for this time, at full speed or at a total rate; `go_on` is called
/// now and then.
///
/// # Errors
/// If test hosts are not allowed, or ports can't be opened.
pub fn carry(
    driver: Driver,
    rate: Option<u64>,
    time: Duration,
    go_on: impl Fn() -> Result<(), BenchError>,
) -> Result<RouterResult, BenchError> {
    require_hosts("a router between real ports")?;
    let world = BenchHosts::of(driver, PORTS.into(), false)?;
    let run = world.start_scenario(&scenario())?;
    let measure = || received_rate(&world, [time / 4, time], |time| pause(time, &go_on));
    let measured = alongside(|stop| send(&world, rate, stop), measure);
    let ((offered, rate), report) = stop_after(run, measured)?;
    let missed = report.ports.iter().map(|port| port.stats.in_missed).sum();
    let lost = dropped(&report);
    Ok(RouterResult { rate, offered, missed, lost, report })
}

/// Sends a batch from each host in turn, on the processor that the engine leaves free. Returns the packets
/// per second that the hosts' interfaces took.
fn send(world: &BenchHosts, rate: Option<u64>, stop: &AtomicBool) -> Result<f64, BenchError> {
    settle_beside();
    let mut far = Vec::new();
    for (port, host) in (0..PORTS).zip(world.hosts()) {
        let frame = FrameSpec { from: port, to: (port + 1) % PORTS, ..FrameSpec::UDP }.frame();
        far.push((far_end(host, 64)?, frame));
    }
    let mut pool = Pool::new(4 << 20)?;
    let (begin, mut sent) = (monotonic(), 0);
    while !stop.load(Ordering::Relaxed) {
        for (socket, frame) in &mut far {
            let due = rate.map_or(u64::MAX, |rate| {
                (u128::from(monotonic().since(begin).0) * u128::from(rate) / 1_000_000_000) as u64
            });
            let count = due.saturating_sub(sent).min(BATCH as u64);
            let mut batch = Batch::new();
            (0..count).filter_map(|_| pool.insert(frame)).for_each(|handle| batch.push(handle));
            sent += count;
            if !batch.is_empty() {
                socket.transmit(&mut pool, &batch)?;
            }
        }
    }
    let taken: u64 = far.iter().map(|(socket, _)| socket.stats().out_frames).sum();
    Ok(taken as f64 / monotonic().since(begin).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_is_one() {
        let plan = longwire_scenario::plan_of(&scenario());
        assert_eq!(plan.ports.len(), usize::from(PORTS));
    }

    #[test]
    fn packets_cross_between_eight_interfaces() {
        let carried = carry(Driver::AfPacket, Some(8000), Duration::from_secs(2), || Ok(()));
        let carried = match carried {
            Ok(carried) => carried,
            Err(BenchError::NotHere(why)) => return println!("skipped: {why}"),
            Err(error) => panic!("{error}"),
        };
        assert!(carried.rate > 0.0 && carried.lost == 0, "{} a second, {} lost", carried.rate, carried.lost);
        assert!(carried.offered > 0.0, "{} a second were offered", carried.offered);
        assert_eq!(carried.told(Row::new("router", "pps")).pass, Some(true));
    }

    #[test]
    fn losses_fail_a_row_for_good() {
        let of = |lost| RouterResult { rate: 1e6, offered: 1e6, missed: 0, lost, report: Report::default() };
        let row = || Row::new("router", "pps");
        assert_eq!(of(0).told(row()).pass, Some(true));
        assert_eq!(of(0).told(of(1).told(row())).pass, Some(false), "a later run does not make up for it");
        assert_eq!(of(1).told(of(0).told(row())).pass, Some(false));
        assert!(of(0).keeps(1_000_000) && of(0).keeps(1_010_000) && !of(0).keeps(1_100_000));
    }
}
