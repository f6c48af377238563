//! Two flows of small UDP packets from one host to another, paced, stamped and counted.

use anyhow::{Context, bail};
use longwire_clock::monotonic;
use longwire_lab::Host;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes of a packet's payload, of which the first eight are the send time.
const PAYLOAD: usize = 100;
const PORT: u16 = 5001;
/// Time to wait for packets in flight after the last was sent.
const STRAGGLERS: Duration = Duration::from_millis(200);
/// Most packets that a delayed sender sends at once; it skips the others.
const BURST: u64 = 32;
/// Sleep between checks for due packets.
const NAP: Duration = Duration::from_micros(200);
/// Time allowed for the first packet, which waits for address resolution.
const REACH: Duration = Duration::from_secs(10);

/// Packet rate and duration.
#[derive(Debug, Clone, Copy)]
pub struct FlowLoad {
    pub per_second: f64,
    pub time: Duration,
}

/// Packets of a flow that arrived.
#[derive(Debug, Clone, Copy, Default)]
pub struct Arrivals {
    pub packets: u64,
    /// Median from sending to receiving by the program there.
    pub median_ns: u64,
}

/// Sends from both `sources` of the first host to the second, and returns the number of packets sent and the
/// arrivals.
pub fn exchange(
    (from, to): (&Host, &Host),
    sources: [IpAddr; 2],
    paces: [FlowLoad; 2],
    stop: &AtomicBool,
) -> anyhow::Result<([u64; 2], [Arrivals; 2])> {
    let address = to.spec().addresses.first().context("the receiving host has no address")?.address;
    let target = SocketAddr::new(address, PORT);
    let socket = to.run(|| UdpSocket::bind(target))?.context("the receiver's socket")?;
    socket.set_read_timeout(Some(Duration::from_millis(20))).context("the receiver's socket")?;
    let (reached, done) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&socket, sources, &reached, &done));
        let sent = from.run(|| send(target, sources, paces, (&reached, stop)));
        std::thread::sleep(STRAGGLERS);
        done.store(true, Ordering::Relaxed);
        let Ok(arrived) = receiving.join() else { bail!("the receiver broke") };
        Ok((sent??, arrived))
    })
}

fn send(
    target: SocketAddr,
    sources: [IpAddr; 2],
    paces: [FlowLoad; 2],
    (reached, stop): (&AtomicBool, &AtomicBool),
) -> anyhow::Result<[u64; 2]> {
    let socket = |source: IpAddr| -> anyhow::Result<UdpSocket> {
        let socket = UdpSocket::bind((source, 0)).context("a sender's socket")?;
        socket.connect(target).context("a sender's socket")?;
        Ok(socket)
    };
    let sockets = [socket(sources[0])?, socket(sources[1])?];
    let mut sent = [0, 0];
    let begin = monotonic();
    while !reached.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
        if monotonic().since(begin).0 > REACH.as_nanos() as u64 {
            bail!("nothing arrives at {target}; `longwire check` says what this system allows");
        }
        // Until its neighbour is resolved, the system may refuse.
        sent[1] += u64::from(sockets[1].send(&stamped()).is_ok());
        std::thread::sleep(Duration::from_millis(10));
    }
    let begin = monotonic();
    let mut due_before = [0; 2];
    loop {
        let elapsed = monotonic().since(begin).0;
        let mut over = true;
        for flow in 0..2 {
            let FlowLoad { per_second, time } = paces[flow];
            let time = time.as_nanos() as u64;
            over &= elapsed >= time;
            let due = (elapsed.min(time) as f64 * per_second / 1e9) as u64;
            for _ in 0..(due - due_before[flow]).min(BURST) {
                sent[flow] += u64::from(sockets[flow].send(&stamped()).is_ok());
            }
            due_before[flow] = due;
        }
        if over || stop.load(Ordering::Relaxed) {
            return Ok(sent);
        }
        std::thread::sleep(NAP);
    }
}

fn stamped() -> [u8; PAYLOAD] {
    let mut payload = [0; PAYLOAD];
    payload[..8].copy_from_slice(&monotonic().0.to_le_bytes());
    payload
}

fn receive(
    socket: &UdpSocket,
    sources: [IpAddr; 2],
    reached: &AtomicBool,
    done: &AtomicBool,
) -> [Arrivals; 2] {
    let mut delays: [Vec<u64>; 2] = [Vec::new(), Vec::new()];
    let mut payload = [0; PAYLOAD];
    while !done.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut payload) else { continue };
        reached.store(true, Ordering::Relaxed);
        let (Some(flow), Some(stamp)) =
            (sources.iter().position(|source| *source == from.ip()), payload[..length].first_chunk::<8>())
        else {
            continue;
        };
        delays[flow].push(monotonic().0.saturating_sub(u64::from_le_bytes(*stamp)));
    }
    delays.map(|mut delays| {
        delays.sort_unstable();
        let median_ns = delays.get(delays.len() / 2).copied().unwrap_or_default();
        Arrivals { packets: delays.len() as u64, median_ns }
    })
}
