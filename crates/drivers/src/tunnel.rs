//! Tunnels to other instances.

use crate::driver::prices;
use crate::interface::{NETNS, Netns};
use crate::{Backend, Driver};
use longwire_settings::{Grammar, Reading, Settings};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A tunnel to another instance, over UDP. Packets arrive at the times at which they left there.
#[derive(Debug, Settings)]
#[settings(key = "port", kind = "tunnel", source = "Longwire's own")]
pub struct Tunnel {
    /// Address and UDP port of this end.
    #[setting(grammar = ADDRESS)]
    pub listen: Arc<SocketAddr>,
    /// Address and UDP port of the other end.
    #[setting(grammar = ADDRESS)]
    pub peer: Arc<SocketAddr>,
    /// File with the key that both ends share, for its owner only; longwire tunnel key FILE makes one.
    #[setting(grammar = KEY)]
    pub key: Arc<PathBuf>,
    /// Network namespace of the UDP socket: a name (`ip netns`), the number of a process in it, or a path.
    /// Default: Longwire's own.
    #[setting(like = NETNS)]
    pub netns: Arc<Netns>,
}

const ADDRESS: Grammar = Grammar {
    wanted: "an address and a UDP port",
    read: read_address,
    examples: &["10.0.0.1:7000", "[fd00::1]:7000"],
    form: None,
};

const KEY: Grammar =
    Grammar { wanted: "the name of a key file", read: read_key, examples: &["tunnel.key"], form: None };

fn read_address(text: &str, _folder: &Path) -> Reading {
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() != 0 => Ok(Arc::new(address)),
        Ok(_) => Err(format!("\"{text}\" has the port 0; write one from 1 to 65535")),
        Err(_) => Err(format!(
            "\"{text}\" is not an address with a port; write it as 10.0.0.1:7000 or [fd00::1]:7000"
        )),
    }
}

fn read_key(text: &str, folder: &Path) -> Reading {
    Ok(Arc::new(folder.join(text)))
}

/// Its row.
pub const DRIVER: Driver = Driver {
    spec: Tunnel::SPEC,
    backend: Backend::Peer,
    host: None,
    prices: prices!("tunnel", receive: 900_000 + 500 a byte, transmit: 1_200_000 + 500 a byte),
    lighter: None,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_ports() {
        let read = |text| read_address(text, Path::new(".")).map(|_| ());
        for good in ADDRESS.examples {
            assert_eq!(read(good), Ok(()), "{good}");
        }
        for (bad, what) in
            [("10.0.0.1", "with a port"), ("10.0.0.1:0", "the port 0"), ("far:7000", "10.0.0.1:7000")]
        {
            assert!(read(bad).unwrap_err().contains(what), "{bad}");
        }
    }
}
