//! Opens the scenario's ports on TAP devices.

use super::{Tap, TapOptions};
use crate::driver::open::{HostEnd, Open, OpenFault, PortRequest, boxed};
use longwire_block::Port;

/// Opens TAP devices.
pub struct Opener;

impl Open for Opener {
    fn ports(&self, wanted: &[PortRequest<'_>]) -> Result<Vec<Vec<Box<dyn Port>>>, OpenFault> {
        let open = |wanted: &PortRequest<'_>| {
            let options = TapOptions { up: true, ..TapOptions::default() };
            Ok(boxed(Tap::reopening(wanted.name, wanted.interface, wanted.netns, &options, wanted.queues)?))
        };
        wanted.iter().map(open).collect()
    }

    fn hosts(&self, ends: &[HostEnd<'_>]) -> Result<Vec<Box<dyn Port>>, OpenFault> {
        let open = |end: &HostEnd<'_>| {
            let options = TapOptions { mac: Some(end.mac), mtu: end.mtu, ..TapOptions::default() };
            Ok(Box::new(Tap::create(end.name, &end.interface, &options)?) as Box<dyn Port>)
        };
        ends.iter().map(open).collect()
    }
}
