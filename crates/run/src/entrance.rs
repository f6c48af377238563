//! A socket that the clients of a proxy reach, and the relays behind it.

use crate::real_run::RealRun;
use crate::test_hosts::TestHosts;
use anyhow::{Context, bail};
use longwire_lab::{PortRelay, SocketNetwork, allow_open_files_if_possible};
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;

/// A socket that clients reach.
#[derive(Debug)]
pub enum Entrance {
    /// For connections.
    Tcp(TcpListener),
    /// For datagrams.
    Udp(UdpSocket),
}

impl Entrance {
    /// Opens it, for UDP or for TCP.
    ///
    /// # Errors
    /// If nobody can listen there.
    pub fn open(udp: bool, at: SocketAddr) -> io::Result<Self> {
        if udp { UdpSocket::bind(at).map(Self::Udp) } else { TcpListener::bind(at).map(Self::Tcp) }
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr(),
            Self::Udp(socket) => socket.local_addr(),
        }
    }

    /// The relays: from the clients to the near end of `run` and across the link, and from the far end to the
    /// service, which is reached from `outside`.
    ///
    /// # Errors
    /// If the two ends are not up, or the system refuses.
    pub fn relays(
        self,
        run: &RealRun,
        outside: SocketNetwork,
        service: &[SocketAddr],
    ) -> anyhow::Result<[PortRelay; 2]> {
        let Some(TestHosts::Exec(net)) = run.hosts() else { bail!("the two ends are not up") };
        // Both relays', and what else the process opens.
        allow_open_files_if_possible(2 * PortRelay::MOST_FILES + 256);
        let across = SocketAddr::new(net.far_address(), service[0].port());
        let is_udp = matches!(self, Self::Udp(_));
        let exit = net.far().run(|| Self::open(is_udp, across))?.context("listening at the far end")?;
        let near = SocketNetwork::inside(net.near().namespace())?;
        Ok([exit.relay(outside, service)?, self.relay(near, &[across])?])
    }

    fn relay(self, dial: SocketNetwork, to: &[SocketAddr]) -> io::Result<PortRelay> {
        match self {
            Self::Tcp(listener) => PortRelay::tcp(listener, Arc::new(dial), to.to_vec()),
            Self::Udp(socket) => PortRelay::udp(socket, Arc::new(dial), vec![to[0]]),
        }
    }
}

/// Whether what listens at `at` is reached by `to`: at all addresses of this machine, if at an unspecified
/// one.
pub fn is_at(at: SocketAddr, to: SocketAddr) -> bool {
    let (own, other) = (at.ip().to_canonical(), to.ip().to_canonical());
    let is_own = || UdpSocket::bind((other, 0)).is_ok();
    at.port() == to.port() && (own == other || own.is_unspecified() && is_own())
}
