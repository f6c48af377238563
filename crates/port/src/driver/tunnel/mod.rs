//! Tunnels to other instances: each frame crosses in a datagram with the time at which it left, and arrives
//! here at that time. So the network between the instances is no part of the emulated delay.
#![allow(unsafe_code)]

mod open;
mod socket;

pub use open::{Opener, read_key};
pub use socket::{NotSent, Socket};

use super::wire_frames::each_frame;
use longwire_block::{Port, PortError, PortStats, Stamp, Underlay};
use longwire_clock::{Mapping, monotonic};
use longwire_nesp::Key;
use longwire_packet::{Batch, Pool};
use longwire_tunnel::{Endpoint, MessageEvent, OVERHEAD, VERSION};
use longwire_units::Nanos;
use std::net::SocketAddr;

/// Interval between measurements of the kernel's clock.
const CLOCK_EVERY: Nanos = Nanos::from_secs(1);
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// A port that is one end of a tunnel.
pub struct TunnelPort {
    name: String,
    listen: SocketAddr,
    peer: SocketAddr,
    end: Endpoint,
    socket: Socket,
    mapping: Mapping,
    next_clock: Nanos,
    stats: PortStats,
}

impl TunnelPort {
    /// Opens the port `name` between two addresses, the own one first.
    ///
    /// # Errors
    /// The socket can't be opened; the text says what to do.
    pub fn open(name: &str, (listen, peer): (SocketAddr, SocketAddr), key: Key) -> Result<Self, String> {
        let random = longwire_rundir::random().map_err(|error| error.to_string())?;
        Ok(Self {
            name: name.into(),
            listen,
            peer,
            end: Endpoint::new(key, random),
            socket: Socket::open(listen, peer)?,
            mapping: Mapping::measure(),
            next_clock: Nanos::ZERO,
            stats: PortStats::default(),
        })
    }

    /// Takes waiting messages.
    fn take(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) {
        for at in 0..self.socket.receive(batch.room()) {
            let (message, stamp) = self.socket.datagram(at);
            // As in packet sockets: it may have come after the poll began, and no time is ahead of the clock.
            let at = match stamp.map(|(seconds, nanoseconds)| self.mapping.monotonic(seconds, nanoseconds)) {
                Some(stamp) if stamp >= 0 && stamp as u64 <= now.0 => stamp as u64,
                Some(stamp) => u64::try_from(stamp).unwrap_or(0).min(monotonic().0),
                None => now.0,
            };
            let reply = match self.end.receive(message, at) {
                MessageEvent::Nothing => None,
                MessageEvent::Reply(reply) => Some(reply),
                MessageEvent::Probe(probe) => self.end.echo(probe, monotonic().0),
                MessageEvent::Frame { frame, .. } if frame.len() < ETHERNET => {
                    self.stats.in_bad += 1;
                    None
                }
                MessageEvent::Frame { stamp, frame } => {
                    match pool.insert(frame) {
                        Some(handle) => {
                            // It can't have left after it came: then the offset of the clocks is wrong.
                            pool.meta_mut(handle).arrival = stamp.map_or(at, |stamp| stamp.min(at));
                            self.stats.in_frames += 1;
                            self.stats.in_bytes += frame.len() as u64;
                            batch.push(handle);
                        }
                        None => self.stats.in_pool_full += 1,
                    }
                    None
                }
            };
            if let Some(reply) = reply {
                self.socket.send(reply.as_slice());
            }
        }
    }

    /// Sends hellos and probes that are due.
    #[cold]
    fn say(&mut self) {
        while let Some(message) = self.end.due(monotonic().0) {
            self.socket.send(message.as_slice());
        }
    }

    /// Sends the waiting datagrams, and counts them.
    fn flush(&mut self) {
        let (frames, bytes) =
            (self.socket.waiting().len() as u64, self.socket.waiting().iter().sum::<usize>());
        let not = self.socket.flush();
        let sent = frames - not.full - not.oversize - not.down;
        self.stats.out_frames += sent;
        // If some were not sent, their share: only the kernel knows which.
        let bytes = bytes as u64 - frames * OVERHEAD as u64;
        self.stats.out_bytes += if sent == frames { bytes } else { bytes * sent / frames };
        self.stats.out_full += not.full;
        self.stats.out_oversize += not.oversize;
        self.stats.out_down += not.down;
    }

    #[cold]
    fn unanswered(&self) -> PortError {
        let (port, peer) = (self.name.clone(), self.peer);
        let why = match self.end.status(0).other_version {
            Some(version) => format!(
                "its peer {peer} speaks version {version} of the tunnel protocol, this end version \
                 {VERSION}; run the same version of Longwire at both ends"
            ),
            None => format!(
                "its peer {peer} does not answer; run it with the same key, and let UDP pass to {} and \
                 {peer}",
                self.listen
            ),
        };
        PortError::Unanswered { port, why }
    }

    /// Received datagrams that were not taken.
    fn refused(&self) -> u64 {
        let counters = self.end.status(0).counters;
        counters.forged
            + counters.replayed
            + counters.malformed
            + counters.other_session
            + counters.other_version
    }
}

impl Port for TunnelPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn describe(&self) -> String {
        format!("tunnel from {} to {}", self.listen, self.peer)
    }

    fn stamp(&self) -> Stamp {
        Stamp::Sender
    }

    fn receive(&mut self, pool: &mut Pool, now: Nanos, batch: &mut Batch) -> Result<(), PortError> {
        if now >= self.next_clock {
            self.next_clock = now + CLOCK_EVERY;
            self.mapping.renew();
        }
        self.take(pool, now, batch);
        if now.0 >= self.end.next_due() {
            self.say();
        }
        if self.end.is_connected() || !batch.is_empty() { Ok(()) } else { Err(self.unanswered()) }
    }

    fn transmit(&mut self, pool: &mut Pool, batch: &Batch) -> Result<(), PortError> {
        let is_connected = self.end.is_connected();
        for &handle in batch.as_slice() {
            let (segments, leave) = (u64::from(pool.meta(handle).segments), pool.meta(handle).leave());
            if !is_connected {
                self.stats.out_down += segments;
                pool.free(handle);
                continue;
            }
            self.stats.out_full +=
                each_frame(pool, handle, |_, frame| match self.end.seal(leave, frame, self.socket.room()) {
                    Some(length) => {
                        if self.socket.push(length) {
                            self.flush();
                        }
                    }
                    None => self.stats.out_oversize += 1,
                });
            pool.free(handle);
        }
        if !self.socket.waiting().is_empty() {
            self.flush();
        }
        if is_connected { Ok(()) } else { Err(self.unanswered()) }
    }

    fn readable_fd(&self) -> Option<i32> {
        Some(self.socket.fd())
    }

    fn stats(&self) -> PortStats {
        let in_bad = self.stats.in_bad + self.refused();
        PortStats { in_bad, in_missed: self.socket.dropped(), ..self.stats }
    }

    fn underlay(&self) -> Option<Underlay> {
        let status = self.end.status(monotonic().0);
        let counters = status.counters;
        Some(Underlay {
            is_connected: status.is_connected,
            sessions: counters.sessions,
            overdue: 0,
            // Those that the own queue lost are counted as missed.
            lost: counters.lost.saturating_sub(self.socket.dropped()),
            reordered: counters.reordered,
            replayed: counters.replayed,
            forged: counters.forged,
            malformed: counters.malformed,
            other_session: counters.other_session,
            other_version: counters.other_version,
            clock_jumps: counters.clock_jumps,
            round_trip: status.round_trip.map(Nanos),
            clock_offset: status.offset,
            clock_error: status.clock_error.map(Nanos),
        })
    }
}

#[cfg(test)]
mod tests;
