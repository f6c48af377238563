//! A tunnel between two namespaces that a veth pair joins: frames a second against a bare UDP loop, and the
//! error of a delay behind it.

use crate::measuring::per_second;
use crate::world::{require_hosts, run, settle_beside};
use crate::{BenchError, Sample, Settings, apart, stop_after};
use longwire_block::{Port, PortError};
use longwire_clock::monotonic;
use longwire_engine::clock::settle_thread;
use longwire_lab::Namespace;
use longwire_nesp::Key;
use longwire_netlink::{address, interface_index, link};
use longwire_packet::{BATCH, Batch, Pool};
use longwire_port::driver::memory::{Blast, BlastPlan};
use longwire_port::driver::tunnel::{Socket, TunnelPort};
use longwire_port::intercepted::{InterceptedPort, Interceptor};
use longwire_report::Row;
use longwire_units::Nanos;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Required share of the bare loop's rate.
const TARGET_PERCENT: f64 = 90.0;
/// Largest mean and 99th percentile of the error of a delay, in ns.
const TARGET_ERROR: (f64, f64) = (20e3, 100e3);
const FRAME: usize = 64;
const UDP_PORT: u16 = 7000;
/// Time within which both ends must be connected.
const PATIENCE: Nanos = Nanos::from_secs(10);
/// Time between frames whose delay is measured.
const APART: Nanos = Nanos::from_micros(200);

/// The rows of this bench.
pub fn rows(settings: &Settings<'_>) -> Result<Vec<Row>, BenchError> {
    require_hosts("tunnel")?;
    let joined = Joined::new()?;
    let (mut bare, mut tunnel) = (Vec::new(), Vec::new());
    for round in 1..=settings.runs(5) {
        settings.next(&format!("tunnel: round {round}, bare UDP"))?;
        bare.push(bare_rate(settings, &joined)?);
        settings.next(&format!("tunnel: round {round}, tunnel"))?;
        tunnel.push(tunnel_rate(settings, &joined)?);
    }
    settings.next("tunnel: a delay of 20 ms")?;
    let delays = delays(settings, &joined)?;
    let ratios: Sample = tunnel.iter().zip(&bare).map(|(tunnel, bare)| tunnel / bare * 100.0).collect();
    let mut rows = vec![
        Sample::from_iter(bare).shown("tunnel: bare UDP, 64 bytes", "pps"),
        Sample::from_iter(tunnel).shown("tunnel: 64 bytes", "pps"),
        ratios
            .median_at_least("tunnel: tunnel of bare UDP", "%", TARGET_PERCENT)
            .note("one direction, a thread at each end; the two take turns; counted where they arrive"),
    ];
    rows.extend(delays);
    Ok(rows)
}

/// Two namespaces, removed when dropped.
pub(crate) struct Joined {
    names: [String; 2],
    places: Vec<Namespace>,
}

impl Joined {
    pub(crate) fn new() -> Result<Self, BenchError> {
        let names = ["a", "b"].map(|end| format!("lwb{}-{end}", std::process::id()));
        let mut joined = Self { names, places: Vec::new() };
        for name in &joined.names {
            joined.places.push(Namespace::create(name)?);
        }
        let failed = BenchError::system("joining two namespaces");
        let [near, far] = &joined.places[..] else { return Ok(joined) };
        // Longer than Ethernet's, so that no frame is fragmented.
        let end = link::LinkSettings { name: Some("eth"), mtu: Some(1700), ..link::LinkSettings::default() };
        let there = link::LinkSettings { namespace: Some(far.as_fd()), ..end };
        let request = || longwire_netlink::Socket::route()?.request(link::new_veth(&end, &there));
        near.run(request)?.map_err(failed)?;
        for (place, number) in joined.places.iter().zip(1..) {
            place.run(|| own(number))?.map_err(failed)?;
        }
        Ok(joined)
    }

    /// Opens something at both ends, which is given the own address and the other one.
    fn ends<T: Send>(
        &self,
        open: impl Fn((SocketAddr, SocketAddr)) -> Result<T, String> + Sync,
    ) -> Result<Vec<T>, BenchError> {
        let failed = |reason| BenchError::Tool { command: "a tunnel".into(), reason };
        let one = |(place, number): (&Namespace, u8)| {
            let addresses = (socket_address(number), socket_address(3 - number));
            place.run(|| open(addresses))?.map_err(failed)
        };
        self.places.iter().zip(1..).map(one).collect()
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        for name in &self.names {
            _ = Namespace::remove(name);
        }
    }
}

fn ip_address(number: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, number).into()
}

fn socket_address(number: u8) -> SocketAddr {
    SocketAddr::new(ip_address(number), UDP_PORT)
}

/// Sets an end up, with its address.
fn own(number: u8) -> io::Result<()> {
    let socket = longwire_netlink::Socket::route()?;
    let index = interface_index("eth")?;
    let up = link::LinkSettings { up: true, ..link::LinkSettings::default() };
    socket.request(link::change(index, &up))?;
    socket.request(address::add(&address::Address { index, address: ip_address(number), prefix: 24 }))
}

/// Frames a second that `receive` counts while `send` goes on.
fn flow(
    settings: &Settings<'_>,
    mut send: impl FnMut() + Send,
    mut receive: impl FnMut() -> u64 + Send,
) -> Result<f64, BenchError> {
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            settle_thread(Some(0));
            while !stop.load(Ordering::Relaxed) {
                send();
            }
        });
        scope.spawn(|| {
            settle_thread(Some(1));
            while !stop.load(Ordering::Relaxed) {
                count.fetch_add(receive(), Ordering::Relaxed);
            }
        });
        let counted = || Ok((count.load(Ordering::Relaxed), monotonic()));
        let times = [Duration::from_millis(300), settings.time(Duration::from_secs(2))];
        let measured = per_second(counted, times, |time| settings.pause(time));
        stop.store(true, Ordering::Relaxed);
        measured
    })
}

fn bare_rate(settings: &Settings<'_>, joined: &Joined) -> Result<f64, BenchError> {
    let mut ends = joined.ends(|(own, peer)| Socket::open(own, peer))?;
    let (Some(mut there), Some(mut here)) = (ends.pop(), ends.pop()) else { return Ok(0.0) };
    let frame = [7; FRAME];
    let send = move || {
        for _ in 0..BATCH {
            here.room()[..FRAME].copy_from_slice(&frame);
            here.push(FRAME);
        }
        here.flush();
    };
    flow(settings, send, move || there.receive(BATCH) as u64)
}

/// Connected ports at both ends.
fn connected(
    settings: &Settings<'_>,
    joined: &Joined,
    pool: &mut Pool,
) -> Result<[TunnelPort; 2], BenchError> {
    let key = Key::read(&"5a".repeat(32)).map_err(BenchError::not_here)?;
    let ports = joined.ends(|addresses| TunnelPort::open("tunnel", addresses, key.clone()))?;
    let Ok(mut ports) = <[TunnelPort; 2]>::try_from(ports) else {
        return Err(BenchError::NotHere("there are not two ends".into()));
    };
    let end = monotonic() + PATIENCE;
    while !ports.iter().all(|port| port.underlay().is_some_and(|underlay| underlay.is_connected)) {
        settings.go_on()?;
        if monotonic() > end {
            return Err(BenchError::Silent(Duration::from_nanos(PATIENCE.0)));
        }
        for port in &mut ports {
            // Without a peer this fails.
            _ = port.receive(pool, monotonic(), &mut Batch::new());
        }
    }
    Ok(ports)
}

fn tunnel_rate(settings: &Settings<'_>, joined: &Joined) -> Result<f64, BenchError> {
    let (mut pool, mut other_pool) = (Pool::new(4 << 20)?, Pool::new(4 << 20)?);
    let [mut here, mut there] = connected(settings, joined, &mut pool)?;
    let frame = [7; FRAME];
    let send = move || {
        let now = monotonic();
        let mut batch = Batch::new();
        for _ in 0..BATCH {
            if let Some(handle) = pool.insert(&frame) {
                pool.meta_mut(handle).set_leave(now.0);
                batch.push(handle);
            }
        }
        _ = here.transmit(&mut pool, &batch);
        // Probes, as a worker's step has them.
        _ = here.receive(&mut pool, now, &mut Batch::new());
    };
    let receive = move || {
        let mut batch = Batch::new();
        _ = there.receive(&mut other_pool, monotonic(), &mut batch);
        batch.as_slice().iter().for_each(|&handle| other_pool.free(handle));
        batch.len() as u64
    };
    flow(settings, send, receive)
}

/// A tunnel's ends in a circle: what the second sends, the first receives. A batch of frames of this length
/// is under way.
pub(crate) fn circle(
    settings: &Settings<'_>,
    joined: &Joined,
    frame_bytes: usize,
) -> Result<[Box<dyn Port>; 2], BenchError> {
    let mut pool = Pool::new(4 << 20)?;
    let [here, there] = connected(settings, joined, &mut pool)?;
    let (mut here, mut batch) = (InterceptedPort::new(Box::new(here), SendingEnd), Batch::new());
    let frame = vec![7; frame_bytes];
    (0..BATCH).filter_map(|_| pool.insert(&frame)).for_each(|handle| batch.push(handle));
    here.transmit(&mut pool, &batch)?;
    Ok([Box::new(there), Box::new(here)])
}

/// The end that sends, which also answers probes, as in a worker's step.
struct SendingEnd;

impl Interceptor for SendingEnd {
    fn transmit(&mut self, port: &mut dyn Port, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let now = monotonic();
        batch.as_slice().iter().for_each(|&handle| pool.meta_mut(handle).set_leave(now.0));
        port.transmit(pool, batch)?;
        port.receive(pool, now, &mut Batch::new())
    }
}

/// The instance at the far end: a link of 20 ms behind the tunnel.
const FAR_END: &str = "\
[engine]
wait = \"spin\"
cpus = [0]
pool = \"64 MiB\"
[[port]]
name = \"tunnel\"
driver = \"memory\"
[[port]]
name = \"out\"
driver = \"memory\"
[[link]]
name = \"way\"
from = \"tunnel\"
to = \"out\"
delay = \"20 ms\"
";
const DELAY: i64 = 20_000_000;
/// The place of a frame's leaving time.
const TIME: std::ops::Range<usize> = 20..28;

/// Notes how much longer than the delay frames took, in ns.
struct Noting(Arc<Mutex<Vec<f64>>>);

impl Interceptor for Noting {
    fn transmit(&mut self, _: &mut dyn Port, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let now = monotonic().0 as i64;
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for &handle in batch.as_slice() {
            let left = pool.data(handle).get(TIME).and_then(|time| time.first_chunk());
            noted.extend(left.map(|left| (now - i64::from_ne_bytes(*left) - DELAY) as f64));
            pool.free(handle);
        }
        Ok(())
    }
}

/// How far the delay of a link behind the tunnel is off: both ends have the same clock.
fn delays(settings: &Settings<'_>, joined: &Joined) -> Result<Vec<Row>, BenchError> {
    let mut pool = Pool::new(4 << 20)?;
    let [here, there] = connected(settings, joined, &mut pool)?;
    let noted = Arc::<Mutex<Vec<f64>>>::default();
    let out = Blast::new("out", BlastPlan::sink()).expect("60-byte frames are in range");
    let out = InterceptedPort::new(Box::new(out), Noting(Arc::clone(&noted)));
    let run = run(FAR_END, vec![Box::new(there), Box::new(out)])?;
    // A separate thread, so that later benches, and the programs that they start, are not pinned.
    let (sent, report) = stop_after(run, apart(|| send_apart(settings, here, pool)))?;
    let noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
    let tunnels = report.tunnels();
    let bound = tunnels.first().and_then(|tunnel| tunnel.clock_error).unwrap_or_default();
    Ok(judged(&noted, sent, bound).into())
}

/// Sends frames with their leaving times, [`APART`] from each other, on the processor that the engine leaves
/// free. Returns their number.
fn send_apart(settings: &Settings<'_>, mut here: TunnelPort, mut pool: Pool) -> Result<u64, BenchError> {
    settle_beside();
    let end = monotonic() + Nanos(settings.time(Duration::from_secs(5)).as_nanos() as u64);
    let (mut next, mut sent) = (monotonic(), 0);
    while next < end {
        settings.go_on()?;
        let now = monotonic();
        if now >= next {
            next = now + APART;
            let mut frame = [0; FRAME];
            frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
            frame[TIME].copy_from_slice(&now.0.to_ne_bytes());
            if let Some(handle) = pool.insert(&frame) {
                pool.meta_mut(handle).set_leave(now.0);
                let mut batch = Batch::new();
                batch.push(handle);
                here.transmit(&mut pool, &batch)?;
                sent += 1;
            }
        }
        _ = here.receive(&mut pool, monotonic(), &mut Batch::new());
    }
    Ok(sent)
}

/// The rows about how much longer than the delay the frames took that arrived, of those that were sent.
fn judged(noted: &[f64], sent: u64, bound: Nanos) -> [Row; 2] {
    let late: Sample = noted.iter().copied().collect();
    let errors: Sample = noted.iter().map(|error| error.abs()).collect();
    let row = |name: &str, target: f64, measured: f64| {
        let name = format!("tunnel: error of a delay of 20 ms, {name}");
        let row = Row::new(name, "ns").expected(target).extra("sent", sent);
        if noted.is_empty() {
            row.judged(false).note("no frame arrived")
        } else {
            row.measured(measured.round()).at_most()
        }
    };
    let (mean, p99) = TARGET_ERROR;
    let known = format!("the clocks are known to {bound}; {:.0} to {:.0} ns late", late.least(), late.most());
    [
        row("mean", mean, errors.mean()).note(known),
        row("p99", p99, errors.quantile(0.99)).extra("frames", noted.len()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::allowed;

    #[test]
    fn later_benches_may_use_all_processors() {
        if let Err(why) = require_hosts("tunnel") {
            return println!("skipped: {why}");
        }
        let settings = Settings { runs: None, quick: true, say: &|_| (), stop: &AtomicBool::new(false) };
        let before = allowed();
        let rows = delays(&settings, &Joined::new().unwrap()).unwrap();
        assert_eq!((rows.len(), allowed()), (2, before));
    }

    #[test]
    fn a_delay_of_no_frame_is_not_accepted() {
        let pass = |noted: &[f64]| judged(noted, 2, Nanos(0)).map(|row| row.pass);
        assert_eq!(pass(&[]), [Some(false); 2]);
        assert_eq!(pass(&[-900.0, 30_000.0]), [Some(true); 2]);
        assert_eq!(pass(&[100e3, 200e3]), [Some(false); 2]);
    }
}
