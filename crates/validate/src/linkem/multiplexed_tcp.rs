//! Figures 5.6 and 5.8 with TCP, as in the thesis: unidirectional flows, each between its own addresses, with
//! a link in each direction. A flow that has its link's bandwidth is two carried links.

use super::bandwidth::{FULL, FULL_SETTLING};
use super::multiplexing::{RATES, ThroughputPair, WITHIN, ideal, judged};
use crate::Settings;
use crate::book::{Book, paper};
use crate::experiment::{End, ExperimentResult, Far, LONGEST_BITS, base, close, deep, generator, nth};
use crate::meter::Meter;
use longwire_bench::world::{BenchHosts, HOSTS, address, settle_beside};
use longwire_bench::{BenchError, joined, stop_after};
use longwire_clock::monotonic;
use longwire_lab::{Network, Route, Wiring, allow_open_files};
use longwire_packet::Pool;
use longwire_port::driver::memory::BlastPlan;
use longwire_report::Row;
use longwire_units::{Nanos, Rate};
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Port of the receivers.
const PORT: u16 = 5001;
/// Timeout of a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Timeout of all connections; the count then begins in any case.
const LONGEST_BEGIN: Duration = Duration::from_secs(60);
/// Bytes of one read or write.
const CHUNK: usize = 64 << 10;
/// How long connections wait for data while others are set up.
const FILL: Nanos = Nanos::from_millis(20);
/// Frames that may wait to be counted.
const SLOTS: u32 = 8192;
/// Open files of this program besides connections.
const OTHER_FILES: u64 = 200;

pub(super) fn rows(book: &mut Book<'_>) {
    figure(book, "5.6", 4, |row| row.1);
    figure(book, "5.8", 2, |row| row.2);
}

fn figure(
    book: &mut Book<'_>,
    figure: &str,
    ports: usize,
    reached: impl Fn(&(u64, ThroughputPair, ThroughputPair)) -> ThroughputPair,
) {
    let settings = book.settings;
    for entry in &RATES {
        let (rate, ideal) = (entry.0, ideal(ports, entry.0));
        let name = format!("fig {figure}, TCP: links of {}, {ports} ports", Rate(rate));
        let mut row = Row::new(name, "links").expected(ideal);
        if let Some((linkem, dummynet)) = reached(entry) {
            row = paper(row, linkem).extra("paper_dummynet", dummynet);
        }
        book.row(row, |row| {
            let seen = carry(settings, ports, (ideal / ports as u64) as u32, rate)?;
            let rates = seen.meters.iter().flat_map(Meter::rates).collect::<Vec<_>>();
            let row = seen.checked(judged(row, (&rates, 2), rate, WITHIN));
            Ok(row
                .note("a flow is two links; the reverse paths, which carry acknowledgements, are not judged"))
        });
    }
}

/// This many flows from the first host of each pair to the second, for the time in the settings.
fn carry(
    settings: &Settings<'_>,
    ports: usize,
    flows: u32,
    rate: u64,
) -> Result<ExperimentResult, BenchError> {
    settings.require_real("TCP")?;
    allow_open_files(OTHER_FILES + u64::from(flows) * ports as u64)?;
    let world = hosts(settings, ports, flows)?;
    let run = world.start_scenario(&scenario(ports, flows, rate))?;
    let ((meters, missed), report) = stop_after(run, between(settings, &world, ports, flows))?;
    Ok(ExperimentResult { meters, report, missed })
}

/// Pairs of hosts; the second of each has an address for every flow. They send complete frames, so that more
/// fit a ring.
fn hosts(settings: &Settings<'_>, ports: usize, flows: u32) -> Result<BenchHosts, BenchError> {
    let world = BenchHosts::with_specs(settings.driver, ports, |place, spec| {
        if let Wiring::Veth { offload } = &mut spec.wiring {
            *offload = false;
        }
        let of = |address: Ipv4Addr, prefix| Network { address: address.into(), prefix };
        if place % 2 == 1 {
            spec.addresses.extend((0..flows).map(|n| of(nth(base(place), n), 32)));
        } else {
            let via = Some(address(place + 1).into());
            spec.routes.push(Route { to: of(base(place + 1), 16), via });
        }
    })?;
    Ok(world.with_packet_options(deep()))
}

/// A link each way for every flow of each pair.
fn scenario(ports: usize, flows: u32, rate: u64) -> String {
    // At least the packets that TCP needs to recover from a loss; a fifth of a second, so that TCP fills the
    // link across its losses and the hosts' pauses.
    let queue = (rate / 5 / LONGEST_BITS).clamp(16, 400);
    let mut text =
        "[engine]\nwait = \"spin\"\ncpus = [0]\npool = \"128 MiB\"\ntrain-spread = \"0 us\"\n".to_owned();
    for first in (0..ports).step_by(2) {
        let [a, b] = [HOSTS[first], HOSTS[first + 1]];
        let (near, far, network) = (address(first), address(first + 1), base(first + 1));
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "[[bridge]]\nname = \"pair{first}\"\n\
             [[port]]\nname = \"{a}\"\ndriver = \"memory\"\nbridge = \"pair{first}\"\n\
             addresses = \"{near}\"\n\
             [[port]]\nname = \"{b}\"\ndriver = \"memory\"\nbridge = \"pair{first}\"\n\
             addresses = [\"{far}\", \"{network}/16\"]\n\
             [[link]]\nname = \"{a}{{n}}\"\ncount = {flows}\nfirst = 0\nbetween = [\"{a}\", \"{b}\"]\n\
             match = [{{ source = \"{near}\", destination = \"{{{network} + n}}\" }}]\n\
             rate = \"{rate} bit/s\"\nqueue = \"{queue} packets\"\n"
        );
    }
    text
}

/// Arrivals of each flow once its link was full, by destination; and frames that were not counted.
fn between(
    settings: &Settings<'_>,
    world: &BenchHosts,
    ports: usize,
    flows: u32,
) -> Result<(Vec<Meter>, u64), BenchError> {
    let (time, settling) = if settings.full {
        (FULL + FULL_SETTLING, FULL_SETTLING)
    } else {
        let time = Duration::from_secs(settings.choose(30, 5));
        (time, time / 3)
    };
    let (mut far, mut listeners) = (Vec::new(), Vec::new());
    for place in (1..ports).step_by(2) {
        let listener = world.hosts()[place].run(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)))?;
        listeners.push(listener.map_err(BenchError::system("listening for flows"))?);
        let meter = Meter::new(base(place), flows).after(Nanos::NEVER);
        let end = End { source: generator(place, BlastPlan::sink())?, meter };
        far.push(Far::open(world, place, end, SLOTS)?);
    }
    // Links stay full to the end of the count, and receivers outlive senders.
    let (counted, sent, open) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU32::new(0));
    let (stop, all) = (settings.stop, flows * ports as u32 / 2);
    let stopped = || stop.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let receiving: Vec<_> = listeners
            .iter()
            .map(|listener| {
                let sent = &sent;
                scope.spawn(move || receive(listener, flows, || !sent.load(Ordering::Relaxed)))
            })
            .collect();
        let sending: Vec<_> = (0..ports)
            .step_by(2)
            .map(|place| {
                let (host, counted, open) = (&world.hosts()[place], &counted, &open);
                let go_on = move || !counted.load(Ordering::Relaxed) && !stopped();
                scope.spawn(move || host.run(|| send(base(place + 1), (flows, open), go_on)))
            })
            .collect();
        // A separate thread, because the caller's later threads would inherit its namespace.
        let counting = scope.spawn(|| {
            settle_beside();
            count(far, [settling, time], &|| open.load(Ordering::Relaxed) == all, &stopped)
        });
        let seen = joined(counting);
        counted.store(true, Ordering::Relaxed);
        let all_sent: Vec<_> = sending.into_iter().map(joined).collect();
        sent.store(true, Ordering::Relaxed);
        for thread in receiving {
            joined(thread).map_err(BenchError::system("receiving flows"))?;
        }
        for sent in all_sent {
            sent?.map_err(BenchError::system("sending flows"))?;
        }
        settings.go_on()?;
        seen
    })
}

/// Counts arrivals, starting once all connections are set up and the links have settled.
fn count(
    mut far: Vec<Far>,
    [settling, time]: [Duration; 2],
    all_open: &dyn Fn() -> bool,
    stopped: &dyn Fn() -> bool,
) -> Result<(Vec<Meter>, u64), BenchError> {
    let mut pool = Pool::new(4 << 20)?;
    let mut end = None;
    let latest = monotonic() + Nanos(LONGEST_BEGIN.as_nanos() as u64);
    while end.is_none_or(|end| monotonic() < end) && !stopped() {
        if end.is_none() && (all_open() || monotonic() > latest) {
            let now = monotonic();
            far.iter_mut().for_each(|far| far.settle(now + Nanos(settling.as_nanos() as u64)));
            end = Some(now + Nanos(time.as_nanos() as u64));
        }
        far.iter_mut().try_for_each(|far| far.count(&mut pool))?;
        std::thread::sleep(Duration::from_micros(500));
    }
    Ok(close(far))
}

/// Interval between two rounds over all connections.
fn pause(flows: u32) -> Duration {
    Duration::from_micros(10 * u64::from(flows)).max(Duration::from_millis(2))
}

/// Fills this many connections to addresses from `first` on, by the thesis' TCP. `open` counts the
/// connections.
fn send(first: Ipv4Addr, (flows, open): (u32, &AtomicU32), go_on: impl Fn() -> bool) -> io::Result<()> {
    settle_beside();
    std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno")?;
    let (mut streams, data) = (Vec::new(), vec![0; CHUNK]);
    let fill = |streams: &mut Vec<TcpStream>| -> io::Result<()> {
        streams.iter_mut().try_for_each(|stream| {
            while !waits(stream.write(&data))? {}
            Ok(())
        })
    };
    let mut filled = monotonic();
    for n in (0..flows).take_while(|_| go_on()) {
        let stream = TcpStream::connect_timeout(&SocketAddr::new(nth(first, n).into(), PORT), PATIENCE)?;
        stream.set_nonblocking(true)?;
        streams.push(stream);
        open.fetch_add(1, Ordering::Relaxed);
        // Existing connections go on while others are set up.
        if monotonic().since(filled) > FILL {
            fill(&mut streams)?;
            filled = monotonic();
        }
    }
    while go_on() {
        fill(&mut streams)?;
        std::thread::sleep(pause(flows));
    }
    Ok(())
}

/// Accepts connections and reads their data.
fn receive(listener: &TcpListener, flows: u32, go_on: impl Fn() -> bool) -> io::Result<()> {
    settle_beside();
    listener.set_nonblocking(true)?;
    let (mut streams, mut data) = (Vec::new(), vec![0; CHUNK]);
    while go_on() {
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    streams.push(stream);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        for stream in &mut streams {
            while !waits(stream.read(&mut data))? {}
        }
        let all = streams.len() == flows as usize;
        std::thread::sleep(if all { pause(flows) } else { Duration::from_millis(1) });
    }
    Ok(())
}

/// Whether a connection would block. One that has ended always does.
fn waits(done: io::Result<usize>) -> io::Result<bool> {
    match done {
        Ok(bytes) => Ok(bytes == 0),
        Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => Ok(true),
        // The other end is closed while data is in flight: the flow has been counted by then.
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each flow has a link in each direction, and no packet of a host bypasses them.
    #[test]
    fn every_flow_has_links_of_its_own() {
        let plan = longwire_scenario::plan_of(&scenario(4, 9, 10_000_000));
        assert_eq!(plan.links.len(), 2 * 2 * 9);
        let plan = longwire_scenario::plan_of(&scenario(2, 734, 128_000));
        assert_eq!(plan.links.len(), 2 * 734);
    }

    #[test]
    fn what_ends_or_waits_is_left_alone() {
        assert!(!waits(Ok(10)).unwrap() && waits(Ok(0)).unwrap());
        assert!(waits(Err(ErrorKind::WouldBlock.into())).unwrap());
        assert!(waits(Err(ErrorKind::BrokenPipe.into())).is_err());
    }
}
