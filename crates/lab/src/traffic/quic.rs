//! QUIC servers, asked whether they are there.

use super::{Error, Result};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Time between two packets.
const AGAIN: Duration = Duration::from_millis(500);

/// Waits until the server at `address` answers, and returns whether it has within this time.
///
/// Sends packets of a version that no server has, which a server answers with the versions that it has
/// (RFC 9000, section 6).
///
/// # Errors
/// If there is no route to the address, or the system has no socket.
pub fn wait_for_server(address: SocketAddr, time: Duration) -> Result<bool> {
    let own = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket =
        UdpSocket::bind(SocketAddr::new(own, 0)).map_err(Error::system("can't open a UDP socket"))?;
    socket.connect(address).map_err(Error::system(format!("there is no route to {address}")))?;
    let end = Instant::now() + time;
    while Instant::now() < end {
        // A refusal (nobody listens yet) is reported by the next call, too; it only means to go on.
        let _ = socket.send(&unknown_version());
        if is_answered(&socket, (Instant::now() + AGAIN).min(end))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a server answers until then.
fn is_answered(socket: &UdpSocket, until: Instant) -> Result<bool> {
    let mut buffer = [0; 2048];
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        socket.set_read_timeout(Some(left)).map_err(Error::system("can't wait for an answer"))?;
        match socket.recv(&mut buffer) {
            Ok(length) if is_negotiation(&buffer[..length]) => return Ok(true),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::thread::park_timeout(left),
            _ => {}
        }
    }
    Ok(false)
}

/// A packet with a long header of a version that is reserved for this (RFC 9000, section 15), two empty
/// connection IDs, and the least length of a first packet (section 14.1).
fn unknown_version() -> [u8; 1200] {
    let mut packet = [0; 1200];
    packet[..7].copy_from_slice(&[0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 0, 0]);
    packet
}

/// Whether it is a Version Negotiation packet (RFC 8999, section 6): a long header with version 0.
fn is_negotiation(packet: &[u8]) -> bool {
    matches!(packet, [first, 0, 0, 0, 0, ..] if first & 0x80 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_version_negotiation_is_an_answer() {
        let packet = unknown_version();
        assert!(!is_negotiation(&packet) && packet.len() == 1200);
        assert!(is_negotiation(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]));
        assert!(!is_negotiation(&[0x40, 0, 0, 0, 0]) && !is_negotiation(&[0x80, 0, 0, 0]));
    }

    #[test]
    fn a_server_is_waited_for_until_it_answers() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = server.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut packet = [0; 2048];
                for answer in [&b"no answer"[..], &[0x80, 0, 0, 0, 0, 0, 0]] {
                    let (_, client) = server.recv_from(&mut packet).unwrap();
                    server.send_to(answer, client).unwrap();
                }
            });
            assert!(wait_for_server(address, Duration::from_secs(60)).unwrap());
        });
        drop(server);
        assert!(!wait_for_server(address, Duration::from_millis(1)).unwrap());
    }
}
