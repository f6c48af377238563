//! Two connections of the proxy, which relays their bytes until the data path does.

use crate::session::{RouterSession, shipped};
use anyhow::{Context, bail, ensure};
use longwire_lab::splicing::{PendingBytes, SequenceNumbers, WindowScales, freeze, pending, plain, thaw};
use longwire_scenario::{WrittenForwarder, WrittenKey};
use longwire_wire::checksum::change;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Time to wait for an idle moment before segments with data are held back.
const QUIET: Duration = Duration::from_millis(500);
/// Time limit for acknowledgements of everything written then.
const PATIENCE: Duration = Duration::from_secs(10);
/// Required silence: segments that had passed the programs before holding back have come up by then.
const SILENCE: Duration = Duration::from_millis(20);
/// Pause when there is nothing to relay.
const PAUSE: Duration = Duration::from_micros(500);

/// A client's connection to the proxy, and the proxy's to the server.
#[derive(Debug)]
pub(super) struct ProxiedConnection {
    near: Leg,
    far: Leg,
    /// Addresses of: the client, the proxy towards it, the proxy towards the server, the server.
    pub(super) addresses: [SocketAddr; 4],
}

/// A connection, and data read from it for the other.
#[derive(Debug)]
struct Leg {
    socket: TcpStream,
    read: Vec<u8>,
    ended: bool,
}

/// Outcome of relaying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RelayOutcome {
    Bytes,
    Nothing,
    /// One end sends no more.
    Ended,
}

impl ProxiedConnection {
    /// Pairs the connections; `read` is data already read from the client.
    ///
    /// # Errors
    /// If they are closed.
    pub(super) fn new(client: TcpStream, server: TcpStream, read: Vec<u8>) -> anyhow::Result<Self> {
        let addresses = [client.peer_addr(), client.local_addr(), server.local_addr(), server.peer_addr()];
        let mut four = [SocketAddr::from(([0, 0, 0, 0], 0)); 4];
        for (four, address) in four.iter_mut().zip(addresses) {
            let address = address?;
            // An IPv4 client of a dual-stack socket.
            *four = SocketAddr::new(address.ip().to_canonical(), address.port());
        }
        for socket in [&client, &server] {
            socket.set_nodelay(true)?;
            socket.set_nonblocking(true)?;
        }
        let side = |socket, read| Leg { socket, read, ended: false };
        Ok(Self { near: side(client, read), far: side(server, Vec::new()), addresses: four })
    }

    /// Hands both connections over to the data path: returns the numbers of the programs for both directions.
    /// The connections here are closed.
    ///
    /// # Errors
    /// The reason, with the pair, which is still relayed.
    pub(super) fn splice(mut self, session: &RouterSession) -> Result<[u32; 2], (Box<Self>, anyhow::Error)> {
        let mut fids = Vec::new();
        match self.hand_over(session, &mut fids) {
            Ok(()) => Ok([fids[0], fids[1]]),
            Err(error) => {
                for fid in fids {
                    // Without its programs a pair is relayed as before; if they can't be removed, the
                    // instance is gone.
                    let _ = session.remove(fid);
                }
                Err((Box::new(self), error))
            }
        }
    }

    fn hand_over(&mut self, session: &RouterSession, fids: &mut Vec<u32>) -> anyhow::Result<()> {
        let (Some(near_scales), Some(far_scales)) = (plain(&self.near.socket)?, plain(&self.far.socket)?)
        else {
            bail!("a connection has options that can't be spliced, or is ending");
        };
        let [client, near, far, server] = self.addresses;
        ensure!(client.is_ipv4() == server.is_ipv4(), "one connection uses IPv4, the other IPv6");
        let scalings = scalings(near_scales, far_scales);
        for (ends, scaling) in [[client, near], [server, far]].into_iter().zip(scalings) {
            fids.push(session.install(&splicer(ends, scaling))?);
        }
        // If there is no idle moment, segments are held back.
        self.relay_until_quiet(QUIET, Duration::ZERO)?;
        for &fid in &*fids {
            session.set(fid, &held(client))?;
        }
        let quiet = self.relay_until_quiet(PATIENCE, SILENCE)?;
        ensure!(quiet, "data is still unacknowledged after {} s", PATIENCE.as_secs());
        let states = self.shifts(freeze(&self.near.socket)?, freeze(&self.far.socket)?, scalings);
        let handed = states.iter().zip(&*fids).try_for_each(|(state, &fid)| session.set(fid, state));
        // Data that arrived in between was acknowledged and would be lost; holding back prevents that.
        let after = self.shifts(freeze(&self.near.socket)?, freeze(&self.far.socket)?, scalings);
        if handed.is_err() || after != states {
            for socket in [&self.near.socket, &self.far.socket] {
                thaw(socket).context("resuming a connection")?;
            }
        }
        handed?;
        ensure!(after == states, "data arrived at the last moment");
        Ok(())
    }

    /// The programs' changes to segments in both directions.
    fn shifts(&self, near: SequenceNumbers, far: SequenceNumbers, scalings: [Scaling; 2]) -> [Vec<u8>; 2] {
        let [client, own_near, own_far, server] = self.addresses;
        let there = (far.send.wrapping_sub(near.receive), far.receive.wrapping_sub(near.send));
        let back = (near.send.wrapping_sub(far.receive), near.receive.wrapping_sub(far.send));
        [
            state([client, own_near], [own_far, server], there, scalings[0]),
            state([server, own_far], [own_near, client], back, scalings[1]),
        ]
    }

    /// Relays until no data is in flight and nothing has arrived for a while; false if that did not happen in
    /// time.
    fn relay_until_quiet(&mut self, patience: Duration, silence: Duration) -> anyhow::Result<bool> {
        let begin = Instant::now();
        let mut quiet_since = None;
        while begin.elapsed() < patience {
            match self.relay()? {
                RelayOutcome::Ended => bail!("one end has finished sending"),
                RelayOutcome::Nothing if self.is_quiet()? => {
                    let since = *quiet_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= silence {
                        return Ok(true);
                    }
                }
                _ => quiet_since = None,
            }
            std::thread::sleep(PAUSE);
        }
        Ok(false)
    }

    fn is_quiet(&self) -> io::Result<bool> {
        let done = |side: &Leg| {
            Ok::<_, io::Error>(side.read.is_empty() && pending(&side.socket)? == PendingBytes::NONE)
        };
        Ok(done(&self.near)? && done(&self.far)?)
    }

    /// Relays pending data.
    fn relay(&mut self) -> io::Result<RelayOutcome> {
        let there = move_on(&mut self.near, &self.far.socket)?;
        let back = move_on(&mut self.far, &self.near.socket)?;
        Ok(if self.near.ended || self.far.ended {
            RelayOutcome::Ended
        } else if there || back {
            RelayOutcome::Bytes
        } else {
            RelayOutcome::Nothing
        })
    }

    /// Relays until both ends have sent everything.
    ///
    /// # Errors
    /// If a connection breaks.
    pub(super) fn relay_to_the_end(self) -> io::Result<()> {
        let Self { near, far, .. } = self;
        near.socket.set_nonblocking(false)?;
        far.socket.set_nonblocking(false)?;
        std::thread::scope(|scope| {
            let there = scope.spawn(|| copy_or_break(&near, &far));
            let back = copy_or_break(&far, &near);
            there.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).and(back)
        })
    }
}

/// Reads from one side, if earlier data was written, and writes to the other; returns whether bytes moved.
fn move_on(from: &mut Leg, to: &TcpStream) -> io::Result<bool> {
    let mut moved = false;
    if from.read.is_empty() && !from.ended {
        from.read.resize(1 << 16, 0);
        let read = (&from.socket).read(&mut from.read);
        from.read.truncate(*read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => from.ended = true,
            Ok(_) => moved = true,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
    }
    if !from.read.is_empty() {
        let mut to = to;
        match to.write(&from.read) {
            Ok(written) => {
                from.read.drain(..written);
                moved = true;
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
    }
    Ok(moved)
}

/// Copies from one side to the other until it ends, and shuts down the other.
fn copy(from: &Leg, to: &TcpStream) -> io::Result<()> {
    let (mut source, mut sink) = (&from.socket, to);
    sink.write_all(&from.read)?;
    if !from.ended {
        io::copy(&mut source, &mut sink)?;
    }
    match to.shutdown(Shutdown::Write) {
        // The other end is already closed.
        Err(e) if e.kind() == ErrorKind::NotConnected => Ok(()),
        shut => shut,
    }
}

/// Copies as [`copy`], and closes both sides if it breaks, so that the other direction ends too.
fn copy_or_break(from: &Leg, to: &Leg) -> io::Result<()> {
    let copied = copy(from, &to.socket);
    if copied.is_err() {
        for side in [from, to] {
            // A closed socket needs no shutdown.
            let _ = side.socket.shutdown(Shutdown::Both);
        }
    }
    copied
}

/// Scaling of a window: shifted left, then right; one of them is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Scaling {
    left: u8,
    right: u8,
}

/// Scaling of windows in both directions: from the scale that the sender announced to the proxy to the one
/// that the proxy announced to the receiver.
fn scalings(near: WindowScales, far: WindowScales) -> [Scaling; 2] {
    [(near.send, far.receive), (far.send, near.receive)].map(|(said, understood)| Scaling {
        left: said.saturating_sub(understood),
        right: understood.saturating_sub(said),
    })
}

/// Size of a splicer's state for IPv4, and for IPv6.
const STATES: [usize; 2] = [28, 48];
/// Offset of the FIN and RST flags in them.
const FLAGS: [usize; 2] = [24, 44];

/// The end flags of a direction, from its program's state.
pub(super) fn flags(state: &[u8]) -> u8 {
    let place = if state.len() == STATES[0] { FLAGS[0] } else { FLAGS[1] };
    state.get(place).copied().unwrap_or_default()
}

/// The state of a program that holds back this client's connection before splicing.
fn held(client: SocketAddr) -> Vec<u8> {
    // A source address, or a source port, without a destination.
    let (size, place) = if client.is_ipv4() { (STATES[0], 3) } else { (STATES[1], 33) };
    let mut held = vec![0; size];
    held[place] = 1;
    held
}

/// A program for the segments from one address to another, which does nothing yet.
fn splicer([source, destination]: [SocketAddr; 2], scaling: Scaling) -> WrittenForwarder {
    let key = WrittenKey {
        source: Some(source.ip().to_string()),
        source_port: Some(source.port().to_string()),
        destination: Some(destination.ip().to_string()),
        destination_port: Some(destination.port().to_string()),
        protocol: Some("tcp".into()),
    };
    let (program, size) = match (source, scaling) {
        (SocketAddr::V6(_), _) => ("tcp-splicer6", STATES[1]),
        (_, Scaling { left: 0, right: 0 }) => ("tcp-splicer", STATES[0]),
        _ => ("tcp-splicer-scaled", STATES[0]),
    };
    shipped(program, Some(key), Some(&vec![0; size]))
}

/// The state of a program that rewrites segments from the old to the new ends, with offsets for sequence and
/// acknowledgement numbers.
fn state(old: [SocketAddr; 2], new: [SocketAddr; 2], added: (u32, u32), scaling: Scaling) -> Vec<u8> {
    let octets = |end: SocketAddr| match end.ip() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let addresses = |ends: [SocketAddr; 2]| ends.map(octets).concat();
    let ports = |ends: [SocketAddr; 2]| ends.map(|end| end.port().to_be_bytes()).concat();
    let mut sums = Vec::new();
    if new[0].is_ipv4() {
        let numbers = [added.0.to_be_bytes(), added.1.to_be_bytes()].concat();
        let (ends, new_ends) =
            ([addresses(old), ports(old)].concat(), [addresses(new), ports(new), numbers].concat());
        sums = [change(&ends, &new_ends), change(&addresses(old), &addresses(new))]
            .map(u16::to_be_bytes)
            .concat();
    }
    let numbers = [added.0.to_le_bytes(), added.1.to_le_bytes()].concat();
    [addresses(new), ports(new), numbers, sums, vec![0, 0, scaling.left, scaling.right]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn programs_are_those_of_the_addresses_and_scales() {
        let ends = |text: [&str; 2]| text.map(|end| end.parse::<SocketAddr>().unwrap());
        let (four, six) = (ends(["10.0.0.1:1", "10.0.0.2:2"]), ends(["[fd00::1]:1", "[fd00::2]:2"]));
        for (ends, left, right, program, size) in [
            (four, 0, 0, "tcp-splicer", 28),
            (four, 0, 1, "tcp-splicer-scaled", 28),
            (four, 1, 0, "tcp-splicer-scaled", 28),
            (six, 0, 0, "tcp-splicer6", 48),
            (six, 1, 0, "tcp-splicer6", 48),
        ] {
            let scaling = Scaling { left, right };
            let written = splicer(ends, scaling);
            let sizes = (
                written.data.unwrap().len() / 2,
                held(ends[0]).len(),
                state(ends, ends, (0, 0), scaling).len(),
            );
            assert_eq!((written.program.as_str(), sizes), (program, (size, size, size)));
        }
        // Held back: a source port, no destination port; with IPv4, a source address.
        assert_eq!((&held(six[0])[32..36], held(four[0])[3]), (&[0, 1, 0, 0][..], 1));
    }

    fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn the_clients_next_byte_is_the_servers_next() {
        let [(_client, near), (far, _server)] = [connected(), connected()];
        let pair = ProxiedConnection::new(near, far, Vec::new()).unwrap();
        // The client's next byte is 1000, the server's 50; the proxy's 9 towards the client, 2 before zero
        // towards the server.
        let (near, far) = (
            SequenceNumbers { send: 9, receive: 1000 },
            SequenceNumbers { send: 2u32.wrapping_neg(), receive: 50 },
        );
        let scalings = scalings(WindowScales { send: 7, receive: 7 }, WindowScales { send: 3, receive: 9 });
        let [there, back] = pair.shifts(near, far, scalings);
        let numbers = |state: &[u8]| {
            [12, 16].map(|place| u32::from_le_bytes(state[place..place + 4].try_into().unwrap()))
        };
        // 1000 becomes −2, 9 becomes 50; the reverse in the other direction.
        assert_eq!(numbers(&there), [1002u32.wrapping_neg(), 41]);
        assert_eq!(numbers(&back), [41u32.wrapping_neg(), 1002]);
        // The client's window of 1 << 7 is a quarter of a 1 << 9, the server's of 1 << 3 a sixteenth of a 1
        // << 7.
        assert_eq!((&there[24..], &back[24..]), (&[0, 0, 0, 2][..], &[0, 0, 0, 4][..]));
        let [client, own_near, own_far, server] = pair.addresses;
        assert_eq!(there[..8], [127, 0, 0, 1, 127, 0, 0, 1]);
        assert_eq!(there[8..12], [own_far.port().to_be_bytes(), server.port().to_be_bytes()].concat());
        assert_eq!(back[8..12], [own_near.port().to_be_bytes(), client.port().to_be_bytes()].concat());
    }

    #[test]
    fn sums_change_by_addresses_ports_and_numbers() {
        let ends = |text: [&str; 2]| text.map(|end| end.parse::<SocketAddr>().unwrap());
        let (old, new) = (ends(["10.0.0.1:1", "10.0.0.2:2"]), ends(["10.0.0.1:5", "10.0.0.9:4"]));
        let unscaled = Scaling { left: 0, right: 0 };
        // Addresses are 7 higher, ports 6; two halves of each number.
        for (added, segment) in [
            ((0, 0), 13),
            ((0x1_0002, 0), 16),
            ((0, 0x1_0002), 16),
            // 0xfffe and 0xffff are −1 and zero.
            ((0xffff_fffe, 0xffff_ffff), 12),
        ] {
            let state = state(old, new, added, unscaled);
            assert_eq!(
                [&state[20..22], &state[22..24]].map(|b| u16::from_be_bytes([b[0], b[1]])),
                [segment, 7]
            );
        }
        // Never 0, which would mean not spliced yet.
        assert_eq!(state(old, old, (0, 0), unscaled)[20..24], [0xff; 4]);
        assert_eq!((flags(&[1; 28]), flags(&[4; 48])), (1, 4));
    }

    #[test]
    fn what_is_not_spliced_is_relayed_both_ways() {
        let [(mut client, near), (far, mut server)] = [connected(), connected()];
        let pair = ProxiedConnection::new(near, far, b"GET ".to_vec()).unwrap();
        std::thread::scope(|scope| {
            let relay = scope.spawn(|| pair.relay_to_the_end());
            client.write_all(b"/\n").unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let mut asked = String::new();
            server.read_to_string(&mut asked).unwrap();
            server.write_all(b"here").unwrap();
            drop(server);
            let mut said = String::new();
            client.read_to_string(&mut said).unwrap();
            assert_eq!((&*asked, &*said), ("GET /\n", "here"));
            relay.join().unwrap().unwrap();
        });
    }
}
