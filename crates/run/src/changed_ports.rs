//! Test hosts, routers' namespaces and declared ports that are added to a running instance and removed from
//! it.

use crate::control_planes::{self, ConfiguredPlane};
use crate::open_ports::{AddedPorts, PortWatches, open_added};
use crate::test_hosts::{TestHosts, host_spec};
use anyhow::Context;
use longwire_assemble::PlanChange;
use longwire_control::SetError;
use longwire_lab::{HostSpec, Lab};
use longwire_scenario::{Host, Plan, Router};

/// Namespaces that are made already, open ports, and namespaces that are to go. If it is dropped before the
/// engine has taken the ports, what was made is removed.
pub(crate) struct ChangedPorts {
    /// The lab, if any namespaces change.
    lab: Option<TestHosts>,
    made: Vec<String>,
    /// The new ports, by place.
    pub(crate) added: AddedPorts,
    planes: Vec<ConfiguredPlane>,
    leaving: Vec<String>,
}

impl ChangedPorts {
    /// Makes the new hosts of the instance called `name`, and namespaces of its new routers, and opens the
    /// new ports beside those that are `staying`.
    ///
    /// # Errors
    /// If the instance has no hosts of its own, an interface can't be used, or the system does not allow it.
    pub(crate) fn open(
        name: &str,
        (old, new): (&Plan, &Plan),
        made: &PlanChange,
        staying: &PortWatches,
    ) -> Result<Self, SetError> {
        let refused = |error: anyhow::Error| SetError::Refused(format!("{error:#}"));
        let hosts = hosts_at(old, &made.old_ports).map(|host| host.name.to_string());
        let leaving = hosts.chain(planes_not_in(old, new).map(|router| router.name.to_string())).collect();
        let (made_hosts, planes, added) = (Vec::new(), Vec::new(), AddedPorts::default());
        let mut ports = Self { lab: None, made: made_hosts, added, planes, leaving };
        let hosts = hosts_at(new, &made.new_ports).map(host_spec);
        let planes: Vec<&Router> = planes_not_in(new, old).collect();
        let joining = hosts.chain(planes.iter().map(|router| control_planes::host_spec(router)));
        let joining: Vec<HostSpec> = joining.collect();
        if !joining.is_empty() || !ports.leaving.is_empty() {
            ports.make(name, &joining).map_err(refused)?;
        }
        ports.added = open_added(new, &made.new_ports, ports.lab.as_mut(), staying).map_err(refused)?;
        if let Some(lab) = ports.lab.as_ref().map(TestHosts::lab) {
            let configured = planes.into_iter().map(|router| ConfiguredPlane::of(router, lab));
            ports.planes = configured.collect::<Result<_, _>>().map_err(refused)?;
        }
        Ok(ports)
    }

    fn make(&mut self, name: &str, joining: &[HostSpec]) -> anyhow::Result<()> {
        let lab =
            Lab::open(name).context("this run has no hosts of its own, beside which others could be")?;
        let TestHosts::Lab(lab) = self.lab.insert(TestHosts::Lab(lab)) else { return Ok(()) };
        for host in joining {
            lab.add(host).with_context(|| format!("making the host {}", host.name))?;
            self.made.push(host.name.clone());
        }
        Ok(())
    }

    /// The new control planes, and the lab that has them.
    pub(crate) fn take_planes(&mut self) -> (Option<&Lab>, Vec<ConfiguredPlane>) {
        (self.lab.as_ref().map(TestHosts::lab), std::mem::take(&mut self.planes))
    }

    /// The engine has the ports: the new hosts stay from now on.
    pub(crate) fn keep(&mut self) {
        self.made.clear();
    }

    /// Removes the namespaces to be removed.
    ///
    /// # Errors
    /// If something can't be removed.
    pub(crate) fn close(mut self) -> Result<(), SetError> {
        let leaving = std::mem::take(&mut self.leaving);
        leaving.iter().try_for_each(|name| self.remove(name)).map_err(|error| {
            SetError::Unavailable(format!("it is no longer connected, and was not removed: {error}"))
        })
    }

    fn remove(&mut self, name: &str) -> Result<(), longwire_lab::LabError> {
        match &mut self.lab {
            Some(TestHosts::Lab(lab)) => lab.remove(name),
            _ => Ok(()),
        }
    }
}

/// The hosts at these places.
fn hosts_at<'p>(plan: &'p Plan, places: &'p [u16]) -> impl Iterator<Item = &'p Host> {
    places.iter().filter_map(|&place| plan.host_at(&plan.ports[usize::from(place)]))
}

/// The routers with control planes that `plan` has, and `other` has not.
fn planes_not_in<'p>(plan: &'p Plan, other: &'p Plan) -> impl Iterator<Item = &'p Router> {
    let is_there = move |router: &Router| other.control_planes().any(|known| known.name == router.name);
    plan.control_planes().filter(move |router| !is_there(router))
}

impl Drop for ChangedPorts {
    fn drop(&mut self) {
        self.added.ports.clear();
        self.planes.clear();
        for name in std::mem::take(&mut self.made) {
            // The first error is reported.
            let _ = self.remove(&name);
        }
    }
}
