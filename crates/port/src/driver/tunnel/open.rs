//! Opens the scenario's tunnels.

use super::TunnelPort;
use crate::driver::open::{Open, OpenFault, PortRequest};
use longwire_block::{Port, Settings};
use longwire_drivers::tunnel::Tunnel;
use longwire_nesp::Key;
use longwire_rundir::read_key_file;
use std::path::Path;

/// Opens tunnels.
pub struct Opener;

/// The key in a file that only its owner can access.
///
/// # Errors
/// The fault and its fix.
pub fn read_key(path: &Path) -> Result<Key, String> {
    let text = read_key_file(path)?;
    Key::read(&text).map_err(|error| format!("{}: {error}", path.display()))
}

impl Open for Opener {
    fn ports(&self, wanted: &[PortRequest<'_>]) -> Result<Vec<Vec<Box<dyn Port>>>, OpenFault> {
        let open = |wanted: &PortRequest<'_>| {
            let Tunnel { listen, peer, key, .. } = Tunnel::of(wanted.values);
            let port = read_key(&key).and_then(|key| TunnelPort::open(wanted.name, (*listen, *peer), key));
            let port = port.map_err(|fault| format!("port {}: {fault}", wanted.name))?;
            Ok(vec![Box::new(port) as Box<dyn Port>])
        };
        wanted.iter().map(open).collect()
    }
}
