//! Opens the scenario's ports on packet sockets.

use super::{AfPacket, AfPacketOptions};
use crate::driver::open::{HostEnd, Open, OpenFault, PortRequest, boxed};
use crate::driver::reopening::Reopening;
use longwire_block::Port;

/// Opens packet sockets.
pub struct Opener;

impl Open for Opener {
    fn ports(&self, wanted: &[PortRequest<'_>]) -> Result<Vec<Vec<Box<dyn Port>>>, OpenFault> {
        let open = |wanted: &PortRequest<'_>| {
            let (name, interface, queues) =
                (wanted.name.to_owned(), wanted.interface.to_owned(), wanted.queues);
            let open = move || AfPacket::open_queues(&name, &interface, &AfPacketOptions::default(), queues);
            Ok(boxed(Reopening::queues(wanted.netns, open()?, move || open().ok())))
        };
        wanted.iter().map(open).collect()
    }

    fn hosts(&self, ends: &[HostEnd<'_>]) -> Result<Vec<Box<dyn Port>>, OpenFault> {
        let open = |end: &HostEnd<'_>| {
            let port = AfPacket::open(end.name, &end.interface, &AfPacketOptions::default())?;
            Ok(Box::new(port) as Box<dyn Port>)
        };
        ends.iter().map(open).collect()
    }
}
