//! Two connections of a proxy's, whose bytes it relays until the data path does.

use crate::commands::control::post::Post;
use crate::live_forwarders::digits;
use anyhow::{Context, bail, ensure};
use longwire_lab::splicing::{Numbers, Pending, freeze, is_plain, pending, thaw};
use longwire_scenario::{WrittenForwarder, WrittenKey};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

/// How long it is hoped for a moment in which nothing is on its way, before segments with data are held back.
const HOPE: Duration = Duration::from_millis(500);
/// How long all that was written may take to be acknowledged then.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long nothing may have come then: what was past the programs when they began to hold back has come up by then.
const SILENCE: Duration = Duration::from_millis(20);
/// How long it waits when there is nothing to relay.
const PAUSE: Duration = Duration::from_micros(500);

/// A client's connection to the proxy, and the proxy's to the server.
#[derive(Debug)]
pub(super) struct Pair {
    near: Side,
    far: Side,
    /// Their addresses: of the client, of the proxy towards it, of the proxy towards the server, of the server.
    addresses: [SocketAddrV4; 4],
}

/// A connection, and what was read from it and is to be written to the other.
#[derive(Debug)]
struct Side {
    socket: TcpStream,
    read: Vec<u8>,
    ended: bool,
}

/// What became of relaying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relayed {
    Bytes,
    Nothing,
    /// One end sends no more.
    Ended,
}

impl Pair {
    /// Of these two, with what was read from the client already.
    ///
    /// # Errors
    /// If they are not of IPv4, or closed.
    pub(super) fn new(client: TcpStream, server: TcpStream, read: Vec<u8>) -> anyhow::Result<Self> {
        let addresses = [client.peer_addr(), client.local_addr(), server.local_addr(), server.peer_addr()];
        let mut four = [SocketAddrV4::new([0, 0, 0, 0].into(), 0); 4];
        for (four, address) in four.iter_mut().zip(addresses) {
            match address? {
                SocketAddr::V4(address) => *four = address,
                SocketAddr::V6(address) => bail!("{address} is not of IPv4"),
            }
        }
        for socket in [&client, &server] {
            socket.set_nodelay(true)?;
            socket.set_nonblocking(true)?;
        }
        let side = |socket, read| Side { socket, read, ended: false };
        Ok(Self { near: side(client, read), far: side(server, Vec::new()), addresses: four })
    }

    /// Its addresses: of the client, of the proxy towards it, of the proxy towards the server, of the server.
    pub(super) fn addresses(&self) -> [SocketAddrV4; 4] {
        self.addresses
    }

    /// Hands both connections over to the data path: the numbers of the programs there and back that do it from now on. The connections here are
    /// gone then.
    ///
    /// # Errors
    /// Gives the pair back, which is to be relayed further, and says why.
    pub(super) fn splice(mut self, post: &Post) -> Result<[u32; 2], (Self, anyhow::Error)> {
        let mut fids = Vec::new();
        match self.hand_over(post, &mut fids) {
            Ok(()) => Ok([fids[0], fids[1]]),
            Err(error) => {
                for fid in fids {
                    // Without its programs a pair is relayed as before; where they can't be removed, there is no instance.
                    let _ = post.remove(fid);
                }
                Err((self, error))
            }
        }
    }

    fn hand_over(&mut self, post: &Post, fids: &mut Vec<u32>) -> anyhow::Result<()> {
        let plain = is_plain(&self.near.socket)? && is_plain(&self.far.socket)?;
        ensure!(plain, "a connection has options that can't be spliced, or ends");
        let [client, near, far, server] = self.addresses;
        for [source, destination] in [[client, near], [server, far]] {
            fids.push(post.install(&splicer(source, destination))?);
        }
        // If there is no such moment, one is made.
        self.relay_until_quiet(HOPE, Duration::ZERO)?;
        for &fid in &*fids {
            post.set(fid, &HELD)?;
        }
        let quiet = self.relay_until_quiet(PATIENCE, SILENCE)?;
        ensure!(quiet, "not all is acknowledged after {} s", PATIENCE.as_secs());
        let states = self.shifts(freeze(&self.near.socket)?, freeze(&self.far.socket)?);
        let handed = states.iter().zip(&*fids).try_for_each(|(state, &fid)| post.set(fid, state));
        // What came in between was acknowledged and is lost; it can't be, because it was held back.
        let after = self.shifts(freeze(&self.near.socket)?, freeze(&self.far.socket)?);
        if handed.is_err() || after != states {
            for socket in [&self.near.socket, &self.far.socket] {
                thaw(socket).context("taking up a connection again")?;
            }
        }
        handed?;
        ensure!(after == states, "something came at the last moment");
        Ok(())
    }

    /// What programs do to segments there and back.
    fn shifts(&self, near: Numbers, far: Numbers) -> [[u8; 24]; 2] {
        let [client, own_near, own_far, server] = self.addresses;
        let there = (far.send.wrapping_sub(near.receive), far.receive.wrapping_sub(near.send));
        let back = (near.send.wrapping_sub(far.receive), near.receive.wrapping_sub(far.send));
        [state(own_far, server, there), state(own_near, client, back)]
    }

    /// Relays until nothing is on its way, and nothing has come for a while; says whether it came to that.
    fn relay_until_quiet(&mut self, patience: Duration, silence: Duration) -> anyhow::Result<bool> {
        let begin = Instant::now();
        let mut quiet_since = None;
        while begin.elapsed() < patience {
            match self.relay()? {
                Relayed::Ended => bail!("one end sends no more"),
                Relayed::Nothing if self.is_quiet()? => {
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
        let done =
            |side: &Side| Ok::<_, io::Error>(side.read.is_empty() && pending(&side.socket)? == Pending::NONE);
        Ok(done(&self.near)? && done(&self.far)?)
    }

    /// Relays what is there.
    fn relay(&mut self) -> io::Result<Relayed> {
        let there = move_on(&mut self.near, &self.far.socket)?;
        let back = move_on(&mut self.far, &self.near.socket)?;
        Ok(if self.near.ended || self.far.ended {
            Relayed::Ended
        } else if there || back {
            Relayed::Bytes
        } else {
            Relayed::Nothing
        })
    }

    /// Relays all that comes until both ends have sent all.
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

/// Reads from one side, if all that was read before is written, and writes to the other; says whether any bytes moved.
fn move_on(from: &mut Side, to: &TcpStream) -> io::Result<bool> {
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

/// Copies from one side to the other until it has ended, and ends the other.
fn copy(from: &Side, to: &TcpStream) -> io::Result<()> {
    let (mut source, mut sink) = (&from.socket, to);
    sink.write_all(&from.read)?;
    if !from.ended {
        io::copy(&mut source, &mut sink)?;
    }
    match to.shutdown(Shutdown::Write) {
        // The other end has gone already.
        Err(e) if e.kind() == ErrorKind::NotConnected => Ok(()),
        shut => shut,
    }
}

/// The same, and if it breaks, both sides end, so that nobody waits for the other way.
fn copy_or_break(from: &Side, to: &Side) -> io::Result<()> {
    let copied = copy(from, &to.socket);
    if copied.is_err() {
        for side in [from, to] {
            // What has gone already needs no end.
            let _ = side.socket.shutdown(Shutdown::Both);
        }
    }
    copied
}

/// The state of a program whose connection is about to be spliced.
const HELD: [u8; 24] = {
    let mut held = [0; 24];
    held[3] = 1;
    held
};

/// A program for the segments from one address to another, which does nothing yet.
fn splicer(source: SocketAddrV4, destination: SocketAddrV4) -> WrittenForwarder {
    let key = WrittenKey {
        source: Some(source.ip().to_string()),
        source_port: Some(source.port().to_string()),
        destination: Some(destination.ip().to_string()),
        destination_port: Some(destination.port().to_string()),
        protocol: Some("tcp".into()),
    };
    WrittenForwarder {
        program: "tcp-splicer".into(),
        key: Some(key),
        data: Some(digits(&[0; 24])),
        ..WrittenForwarder::default()
    }
}

/// The state of a program that makes segments those from `source` to `destination`, with what is added to their numbers: sequence, acknowledgement.
fn state(source: SocketAddrV4, destination: SocketAddrV4, added: (u32, u32)) -> [u8; 24] {
    let mut state = [0; 24];
    let parts: [&[u8]; 6] = [
        &source.ip().octets(),
        &destination.ip().octets(),
        &source.port().to_be_bytes(),
        &destination.port().to_be_bytes(),
        &added.0.to_le_bytes(),
        &added.1.to_le_bytes(),
    ];
    let mut places = state.iter_mut();
    for byte in parts.into_iter().flatten() {
        places.next().into_iter().for_each(|place| *place = *byte);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn the_clients_next_byte_is_the_servers_next() {
        let [(_client, near), (far, _server)] = [connected(), connected()];
        let pair = Pair::new(near, far, Vec::new()).unwrap();
        // The client's next byte is 1000, the server's 50; the proxy's 9 towards the client, 2 before zero towards the server.
        let (near, far) =
            (Numbers { send: 9, receive: 1000 }, Numbers { send: 2u32.wrapping_neg(), receive: 50 });
        let [there, back] = pair.shifts(near, far);
        let numbers = |state: [u8; 24]| {
            [12, 16].map(|place| u32::from_le_bytes(state[place..place + 4].try_into().unwrap()))
        };
        // 1000 becomes −2, 9 becomes 50; back the other way.
        assert_eq!(numbers(there), [1002u32.wrapping_neg(), 41]);
        assert_eq!(numbers(back), [41u32.wrapping_neg(), 1002]);
        let [client, own_near, own_far, server] = pair.addresses();
        assert_eq!(there[..8], [own_far.ip().octets(), server.ip().octets()].concat());
        assert_eq!(there[8..12], [own_far.port().to_be_bytes(), server.port().to_be_bytes()].concat());
        assert_eq!(back[8..12], [own_near.port().to_be_bytes(), client.port().to_be_bytes()].concat());
    }

    #[test]
    fn what_is_not_spliced_is_relayed_both_ways() {
        let [(mut client, near), (far, mut server)] = [connected(), connected()];
        let pair = Pair::new(near, far, b"GET ".to_vec()).unwrap();
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
