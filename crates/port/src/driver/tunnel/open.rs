//! Opens the scenario's tunnels.

use super::TunnelPort;
use crate::driver::open::{Open, OpenFault, PortRequest};
use longwire_block::{Port, Settings};
use longwire_drivers::tunnel::Tunnel;
use longwire_nesp::Key;
use longwire_rundir::read_key_file;

/// Opens tunnels.
pub struct Opener;

impl Open for Opener {
    fn ports(&self, wanted: &[PortRequest<'_>]) -> Result<Vec<Vec<Box<dyn Port>>>, OpenFault> {
        let open = |wanted: &PortRequest<'_>| {
            let Tunnel { listen, peer, key, .. } = Tunnel::of(wanted.values);
            let key = read_key_file(&key)
                .and_then(|text| Key::read(&text).map_err(|error| format!("{}: {error}", key.display())));
            let port = key.and_then(|key| TunnelPort::open(wanted.name, (*listen, *peer), key));
            let port = port.map_err(|fault| format!("port {}: {fault}", wanted.name))?;
            Ok(vec![Box::new(port) as Box<dyn Port>])
        };
        wanted.iter().map(open).collect()
    }
}
