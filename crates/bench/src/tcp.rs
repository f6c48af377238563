//! Bulk TCP between two hosts through an unlimited link, with the offloads of the ports on.

use crate::world::{Driver, World, require_hosts, with_losses};
use crate::{BenchError, Sample, Settings};
use longwire_lab::traffic::Until;
use longwire_lab::traffic::bulk::{Bulk, BulkResult, send};
use longwire_report::Row;
use std::time::Duration;

/// What is asked of TAP and AF_PACKET, in bit/s; AF_XDP can't carry trains, so that nothing is asked of it.
const TARGET: f64 = 15e9;

/// The rows of this bench.
pub fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    require_hosts("tcp")?;
    let mut rows = Vec::new();
    for driver in Driver::ALL {
        match measure(settings, driver) {
            Ok(row) => rows.push(row),
            Err(BenchError::Stopped) => return Err(BenchError::Stopped),
            Err(error) => rows.push(Settings::could_not(&format!("tcp: {}", driver.name()), &error)),
        }
    }
    Ok(rows)
}

fn measure(settings: &Settings<'_>, driver: Driver) -> Result<Row, BenchError> {
    let world = World::new(driver, true)?;
    let run = world.start("loss = \"0 %\"\nqueue = \"unlimited\"")?;
    let mut results = Vec::new();
    for _ in 0..settings.runs(3) {
        settings.next(&format!("tcp: {}", driver.name()))?;
        match transfer(settings, &world) {
            Ok(result) => results.push(result),
            Err(error) => {
                drop(run.stop());
                return Err(error);
            }
        }
    }
    let report = run.stop();
    let goodput: Sample =
        results.iter().map(|result| result.reception.goodput_bits_per_second.unwrap_or(0.0)).collect();
    let name = format!("tcp: {}, one connection, unlimited link", driver.name());
    let row = if driver == Driver::AfXdp {
        goodput
            .shown(&name, "bit/s")
            .note("for information: AF_XDP on veth copies and carries no large segments")
    } else {
        goodput.at_least(&name, "bit/s", TARGET)
    };
    let retransmits: u64 = results.iter().map(|result| result.retransmits).sum();
    let congestion = results.first().map_or("unknown", |result| result.congestion.as_str());
    let row = row
        .extra("congestion", congestion)
        .extra("retransmits", retransmits)
        .note(format!("congestion control {congestion}, {retransmits} segments sent again"));
    Ok(with_losses(row, &report))
}

fn transfer(settings: &Settings<'_>, world: &World) -> Result<BulkResult, BenchError> {
    let time = settings.time(Duration::from_secs(5));
    let bulk = Bulk { congestion: congestion(), ..Bulk::new(Until::duration(time)) };
    world.with_receiver(|receiver| send(receiver, &bulk, &mut settings.progress()))
}

/// CUBIC where the system has it, else the system's own choice: a machine's default should not decide the result.
fn congestion() -> Option<String> {
    let known =
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    known.split_ascii_whitespace().find(|name| *name == "cubic").map(str::to_owned)
}
