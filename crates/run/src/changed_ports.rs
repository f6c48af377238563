//! Test hosts and declared ports that are added to a running instance and removed from it.

use crate::open_ports::open_added;
use crate::test_hosts::{TestHosts, host_spec};
use anyhow::Context;
use longwire_assemble::Rewired;
use longwire_block::Port;
use longwire_control::SetError;
use longwire_lab::Lab;
use longwire_scenario::{Host, Plan};

/// Hosts that are made already, open ports, and hosts that are to go. If it is dropped before the engine has
/// taken the ports, what was made is removed.
pub(crate) struct ChangedPorts {
    /// The lab, if any hosts change.
    lab: Option<TestHosts>,
    made: Vec<String>,
    ports: Vec<Box<dyn Port>>,
    leaving: Vec<String>,
}

impl ChangedPorts {
    /// Makes the new hosts of the instance called `name`, and opens the new ports.
    ///
    /// # Errors
    /// If the instance has no hosts of its own, an interface can't be used, or the system does not allow it.
    pub(crate) fn open(name: &str, old: &Plan, new: &Plan, made: &Rewired) -> Result<Self, SetError> {
        let refused = |error: anyhow::Error| SetError::Refused(format!("{error:#}"));
        let leaving = hosts_at(old, &made.old_ports).map(|host| host.name.to_string()).collect();
        let mut ports = Self { lab: None, made: Vec::new(), ports: Vec::new(), leaving };
        let joining: Vec<&Host> = hosts_at(new, &made.new_ports).collect();
        if !joining.is_empty() || !ports.leaving.is_empty() {
            ports.make(name, &joining).map_err(refused)?;
        }
        ports.ports = open_added(new, &made.new_ports, ports.lab.as_mut()).map_err(refused)?;
        Ok(ports)
    }

    fn make(&mut self, name: &str, joining: &[&Host]) -> anyhow::Result<()> {
        let lab =
            Lab::open(name).context("this run has no hosts of its own, beside which others could be")?;
        let TestHosts::Lab(lab) = self.lab.insert(TestHosts::Lab(lab)) else { return Ok(()) };
        for host in joining {
            lab.add(&host_spec(host)?).with_context(|| format!("making the host {}", host.name))?;
            self.made.push(host.name.to_string());
        }
        Ok(())
    }

    /// The new ports, by place.
    pub(crate) fn take_ports(&mut self) -> Vec<Box<dyn Port>> {
        std::mem::take(&mut self.ports)
    }

    /// The engine has the ports: the new hosts stay from now on.
    pub(crate) fn keep(&mut self) {
        self.made.clear();
    }

    /// Removes the hosts to be removed.
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

impl Drop for ChangedPorts {
    fn drop(&mut self) {
        self.ports.clear();
        for name in std::mem::take(&mut self.made) {
            // The first error is reported.
            let _ = self.remove(&name);
        }
    }
}
