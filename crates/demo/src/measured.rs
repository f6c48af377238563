//! The demo on real packets: ping, UDP and TCP between two hosts.

use crate::criteria::{LinkConfiguration, Losses};
use crate::say;
use anyhow::{Context, bail};
use longwire_lab::Host;
use longwire_lab::traffic::bulk::{self, Bulk, BulkResult};
use longwire_lab::traffic::ping::{self, Ping, PingResult};
use longwire_lab::traffic::udp::{self, SendingRate, UdpResult, UdpStream};
use longwire_lab::traffic::{DEFAULT_PORT, Layer, Receiver, Server, StopAfter, until};
use longwire_report::Row;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Number of pings, one every 5 ms.
const PINGS: u32 = 300;
const PING_INTERVAL: Duration = Duration::from_millis(5);
/// Payload of small packets at half the link's rate: many packets and no queue.
const PAYLOAD: usize = 100;
const RATE: u64 = 5_000_000;
const TIME: Duration = Duration::from_millis(2500);
/// Payload of large packets at one and a half times the link's rate.
const OVERLOAD_PAYLOAD: usize = 1400;
const OVERLOAD: u64 = 15_000_000;
const OVERLOAD_TIME: Duration = Duration::from_secs(2);
const TCP_TIME: Duration = Duration::from_millis(3500);
/// Time to wait for stragglers: many times the link's delay.
const STRAGGLERS: Duration = Duration::from_millis(200);
/// Ethernet, IPv4 and ICMP headers and check sequence of a ping.
const PING_OVERHEAD: u64 = 14 + 20 + 8 + 4;

/// Measures the path from host `a` to host `b`, until the flag `stop` is set.
pub fn measure(a: &Host, b: &Host, link: &LinkConfiguration, stop: &AtomicBool) -> anyhow::Result<Vec<Row>> {
    let to = address(b)?;
    let server = b.run(|| Server::bind(SocketAddr::new(to, DEFAULT_PORT)))??;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // The server opens sockets for each sender, so its thread must be in the host.
        let serving = scope.spawn(|| b.run(|| server.serve(&done, &mut |_| {})));
        let rows = a.run(|| all(to, link, stop)).map_err(anyhow::Error::from).flatten();
        done.store(true, Ordering::Relaxed);
        match serving.join() {
            Ok(served) => served??,
            Err(_) => bail!("the receiver broke"),
        }
        rows
    })
}

/// Runs inside host a.
fn all(to: IpAddr, link: &LinkConfiguration, stop: &AtomicBool) -> anyhow::Result<Vec<Row>> {
    reach(to, stop)?;
    let receiver = Receiver::at(SocketAddr::new(to, DEFAULT_PORT));
    say(&format!("ping: {PINGS} of them, one every {} ms", PING_INTERVAL.as_millis()));
    let echoes = ping::ping(
        &Ping { interval_ns: nanos(PING_INTERVAL), timeout_ns: nanos(STRAGGLERS), ..Ping::new(to, PINGS) },
        &mut until(stop),
    )?;
    say(&format!("UDP: {} Mbit/s of small packets for {} s", RATE / 1_000_000, TIME.as_secs_f64()));
    let stream = |rate, time, payload| UdpStream {
        layer: Layer::Ethernet,
        payload,
        quiet_ns: nanos(STRAGGLERS),
        ..UdpStream::new(SendingRate::BitsPerSecond(rate), time)
    };
    let small = udp::send(&receiver, &stream(RATE, TIME, PAYLOAD), &mut until(stop))?;
    say(&format!(
        "UDP: {} Mbit/s, more than the link carries, for {} s",
        OVERLOAD / 1_000_000,
        OVERLOAD_TIME.as_secs()
    ));
    let large = udp::send(&receiver, &stream(OVERLOAD, OVERLOAD_TIME, OVERLOAD_PAYLOAD), &mut until(stop))?;
    let congestion = congestion_control();
    say(&format!("TCP: {congestion} for {} s", TCP_TIME.as_secs_f64()));
    let transfer = Bulk { congestion: Some(congestion.into()), ..Bulk::new(StopAfter::duration(TCP_TIME)) };
    let tcp = bulk::send(&receiver, &transfer, &mut until(stop))?;
    Ok(rows(link, &echoes, &small, &large, &tcp))
}

/// Waits for an echo reply, so that address resolution, which the link delays and loses too, is complete.
fn reach(to: IpAddr, stop: &AtomicBool) -> anyhow::Result<()> {
    const TRIES: u32 = 40;
    for _ in 0..TRIES {
        let once = Ping { timeout_ns: nanos(STRAGGLERS), ..Ping::new(to, 1) };
        if ping::ping(&once, &mut until(stop))?.answered > 0 {
            return Ok(());
        }
    }
    bail!("no ping to {to} came back in {TRIES} tries; `longwire check` says what this system allows")
}

fn rows(
    link: &LinkConfiguration,
    echoes: &PingResult,
    small: &UdpResult,
    large: &UdpResult,
    tcp: &BulkResult,
) -> Vec<Row> {
    let mut rows = Vec::new();
    let frame = echoes.ping.payload as u64 + PING_OVERHEAD;
    rows.push(match echoes.rtt {
        Some(rtt) => link.round_trip(rtt.p50_ns as f64, rtt.min_ns as f64, frame),
        None => Row::new("round trip", "ns").judged(false).note("no ping came back"),
    });
    rows.push(link.round_trip_loss(Losses { sent: echoes.sent, lost: echoes.lost }));
    let seen = &small.reception;
    rows.push(match seen.delay {
        Some(delay) => {
            let frame = Layer::Ethernet.bytes(PAYLOAD as u64, [0, 0, 0, 0].into());
            link.one_way_delay(delay.p50_ns as f64, delay.min_ns as f64, frame)
        }
        None => Row::new("one-way delay", "ns").judged(false).note("no packet arrived"),
    });
    let mut loss = link.loss(Losses { sent: small.sent, lost: seen.lost });
    if seen.receiver_drops > 0 {
        loss = loss.note(format!("{} of them found the receiving socket full", seen.receiver_drops));
    }
    rows.push(loss);
    rows.push(link.bandwidth(large.reception.rate_bits_per_second, OVERLOAD as f64));
    let goodput = link.goodput(tcp.reception.goodput_bits_per_second, &tcp.congestion);
    rows.push(goodput.extra("retransmits", tcp.retransmits));
    rows
}

/// CUBIC, which most systems use, or else Reno, which all have: the law for the expected goodput applies to
/// both.
fn congestion_control() -> &'static str {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    if known.unwrap_or_default().split_whitespace().any(|name| name == "cubic") { "cubic" } else { "reno" }
}

fn address(host: &Host) -> anyhow::Result<IpAddr> {
    let first = host.spec().addresses.first();
    Ok(first
        .with_context(|| format!("host {} has no address; give it one in the scenario", host.name()))?
        .address)
}

/// The durations here are seconds.
fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}
