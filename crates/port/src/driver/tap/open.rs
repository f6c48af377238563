//! Ports of the scenario on TAP devices.

use super::{Tap, TapOptions};
use crate::driver::open::{HostEnd, HostPort, Open, OpenFault, Wanted, boxed};
use longwire_block::Port;

/// Makes TAP devices.
pub struct Opener;

impl Open for Opener {
    fn ports(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Vec<Box<dyn Port>>>, OpenFault> {
        let open = |wanted: &Wanted<'_>| {
            let options = TapOptions { up: true, ..TapOptions::default() };
            Ok(boxed(Tap::reopening(wanted.name, wanted.interface, wanted.netns, &options, wanted.queues)?))
        };
        wanted.iter().map(open).collect()
    }

    fn hosts(&self, ends: &[HostEnd<'_>]) -> Result<Vec<HostPort>, OpenFault> {
        let open = |end: &HostEnd<'_>| {
            let options = TapOptions { mac: Some(end.mac), mtu: end.mtu, ..TapOptions::default() };
            let tap = Tap::create(end.name, &end.interface, &options)?;
            Ok(HostPort { device: Some(tap.interface_name().into()), port: Box::new(tap) })
        };
        ends.iter().map(open).collect()
    }
}
