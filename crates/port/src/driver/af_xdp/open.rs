//! Opens the scenario's ports on AF_XDP sockets. Those of a worker share their memory.

use super::{AfXdpPlan, AfXdpPort, FarEnd};
use crate::driver::open::{HostEnd, Open, OpenFault, PortRequest, boxed};
use crate::driver::reopening::Reopening;
use longwire_block::Port;

/// Opens AF_XDP sockets.
pub struct Opener;

impl Open for Opener {
    fn ports(&self, wanted: &[PortRequest<'_>]) -> Result<Vec<Vec<Box<dyn Port>>>, OpenFault> {
        let plan = |wanted: &PortRequest<'_>| {
            let (name, interface, queues) =
                (wanted.name.to_owned(), wanted.interface.to_owned(), wanted.queues);
            move || AfXdpPlan { name: name.clone(), queues, ..AfXdpPlan::on(&interface) }
        };
        let plans: Vec<_> = wanted.iter().map(plan).collect();
        let shared: Vec<_> = plans.iter().map(|plan| plan()).filter(|plan| plan.queues == 1).collect();
        let sharing = if shared.is_empty() { Vec::new() } else { AfXdpPort::open_all(shared)? };
        let mut sharing = sharing.into_iter();
        let mut ports = Vec::with_capacity(plans.len());
        for (wanted, plan) in wanted.iter().zip(plans) {
            let shares = plan().queues == 1;
            // A reopened port has its own memory, because the others still use the shared one.
            let own = move || AfXdpPort::open_all(vec![plan()]);
            let opened = if shares { sharing.next().into_iter().collect() } else { own()? };
            ports.push(boxed(Reopening::queues(wanted.netns, opened, move || own().ok())));
        }
        Ok(ports)
    }

    fn hosts(&self, ends: &[HostEnd<'_>]) -> Result<Vec<Box<dyn Port>>, OpenFault> {
        // The lab has turned off the offloads of its hosts.
        let plan = |end: &HostEnd<'_>| AfXdpPlan {
            name: end.name.into(),
            far_end: FarEnd::Trusted,
            ..AfXdpPlan::on(&end.interface)
        };
        Ok(boxed(AfXdpPort::open_all(ends.iter().map(plan).collect())?))
    }
}
