//! Adds hosts to a lab that is up, and removes them.

use longwire_netlink::link;

use super::{Lab, host_state, make_namespace, open_host, wire_up, write_hosts_file};
use crate::address::mac_of_place;
use crate::namespace::Namespace;
use crate::processes;
use crate::state::{LabLock, LabState};
use crate::{HostSpec, LabError, Result};

impl Lab {
    /// Adds a host to a lab that is up, as [`Lab::create`] does.
    ///
    /// # Errors
    /// If the name is taken, a field is invalid, or the kernel refuses; then nothing is left behind.
    pub fn add(&mut self, spec: &HostSpec) -> Result<()> {
        spec.check()?;
        if self.hosts.iter().any(|host| host.name() == spec.name) {
            let reason = "a host has this name; choose another".to_owned();
            return Err(LabError::Host { host: spec.name.clone(), field: "name", reason });
        }
        let guard = LabLock::acquire()?;
        // Hosts wired by TAP have no port, only the address of their place.
        let taken = |number: &u32| {
            let (port, mac) = (format!("port{number}"), Some(mac_of_place(number + 1)));
            self.state.hosts.iter().any(|host| host.port.as_deref() == Some(&port) || host.spec.mac == mac)
        };
        let number = (self.hosts.len() as u32..).find(|number| !taken(number)).unwrap_or_default();
        let host = host_state(&self.state.instance, number, spec);
        if let Some(name) = host.namespace.as_deref().filter(|name| Namespace::exists(name)) {
            return Err(LabError::NamespaceExists(name.to_owned()));
        }
        self.state.hosts.push(host.clone());
        self.state.write(&guard)?;
        let made = write_hosts_file(&self.state).and_then(|()| {
            make_namespace(&host)?;
            let host = open_host(&self.state, &host)?;
            wire_up(&self.core, &host)?;
            Ok(host)
        });
        match made {
            Ok(host) => self.hosts.push(host),
            Err(error) => {
                // The first error is reported; a later sweep finds what can't be removed now.
                let _ = self.forget(&spec.name, &guard);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Removes a host of a lab that is up: ends the programs inside it, and removes its namespace.
    ///
    /// # Errors
    /// If there is no such host, or something can't be removed.
    pub fn remove(&mut self, name: &str) -> Result<()> {
        self.host(name)?;
        let guard = LabLock::acquire_to_remove()?;
        self.forget(name, &guard)
    }

    fn forget(&mut self, name: &str, guard: &LabLock) -> Result<()> {
        self.hosts.retain(|host| host.name() != name);
        let gone: Vec<_> = self.state.hosts.extract_if(.., |host| host.spec.name == name).collect();
        processes::end_all_in(gone.iter().filter_map(|host| host.namespace.as_deref()));
        let mut result = Ok(());
        for host in &gone {
            if let Some(port) = &host.port {
                let doing = LabError::system(format!("removing the wire of host {name}"));
                let removed = self.core.run(|| link::remove(port));
                result = result.and(removed.and_then(|removed| removed.map_err(doing)));
            }
            if let Some(namespace) = &host.namespace {
                result = result.and(Namespace::remove(namespace));
            }
        }
        if result.is_err() {
            // A later sweep tries again.
            self.state.hosts.extend(gone);
        }
        result.and(self.state.write(guard)).and(write_hosts_file(&self.state))
    }

    /// The current state: another handle of this lab may have added and removed hosts.
    pub(super) fn state_now(&self) -> LabState {
        LabState::read(&self.state.instance).ok().flatten().unwrap_or_else(|| self.state.clone())
    }
}
