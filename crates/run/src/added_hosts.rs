//! Adds test hosts to a running instance, and removes them.

use crate::open_ports::open_added;
use crate::test_hosts::{TestHosts, host_spec};
use anyhow::Context;
use longwire_assemble::Rewired;
use longwire_block::Port;
use longwire_control::SetError;
use longwire_lab::Lab;
use longwire_scenario::{Host, Plan};

/// New hosts with their open ports, and hosts to be removed. If this is dropped before the engine has taken
/// the ports, the new hosts are removed.
pub(crate) struct ChangedHosts {
    /// The lab, if any hosts change.
    lab: Option<TestHosts>,
    made: Vec<String>,
    ports: Vec<Box<dyn Port>>,
    leaving: Vec<String>,
}

impl ChangedHosts {
    /// Creates the new hosts of the instance `name`.
    ///
    /// # Errors
    /// If the instance has no hosts of its own, or the system refuses.
    pub(crate) fn open(name: &str, old: &Plan, new: &Plan, made: &Rewired) -> Result<Self, SetError> {
        let refused = |error: anyhow::Error| SetError::Refused(format!("{error:#}"));
        let (joining, leaving) = (&new.hosts[made.new_hosts.clone()], &old.hosts[made.old_hosts.clone()]);
        let mut hosts = Self { lab: None, made: Vec::new(), ports: Vec::new(), leaving: Vec::new() };
        if joining.is_empty() && leaving.is_empty() {
            return Ok(hosts);
        }
        hosts.leaving = leaving.iter().map(|host| host.name.to_string()).collect();
        hosts.make(name, new, joining).map_err(refused)?;
        Ok(hosts)
    }

    fn make(&mut self, name: &str, plan: &Plan, joining: &[Host]) -> anyhow::Result<()> {
        let mut lab =
            Lab::open(name).context("this run has no hosts of its own, beside which others could be")?;
        let mut places = Vec::new();
        for host in joining {
            anyhow::ensure!(
                !self.leaving.iter().any(|name| **name == *host.name),
                "host \"{}\" differs: remove it first, and then add it",
                host.name
            );
            if let Err(error) = lab.add(&host_spec(host)?) {
                self.lab = Some(TestHosts::Lab(lab));
                return Err(error).with_context(|| format!("making the host {}", host.name));
            }
            self.made.push(host.name.to_string());
            places.push(host.port);
        }
        let lab = self.lab.insert(TestHosts::Lab(lab));
        self.ports = open_added(plan, &places, lab)?;
        Ok(())
    }

    /// Takes the ports of the new hosts, which stay from now on.
    pub(crate) fn take_ports(&mut self) -> Vec<Box<dyn Port>> {
        self.made.clear();
        std::mem::take(&mut self.ports)
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

impl Drop for ChangedHosts {
    fn drop(&mut self) {
        self.ports.clear();
        for name in std::mem::take(&mut self.made) {
            // The first error is reported.
            let _ = self.remove(&name);
        }
    }
}
