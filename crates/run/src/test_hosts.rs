//! The test hosts of a plan: its own lab, or the two ends of `exec`.

use anyhow::Context;
use longwire_drivers::{HostDriver, Wire};
use longwire_lab::{
    Attachment, ExecNet, HostSpec, KernelTraffic, Lab, LabError, Route, Wiring, abilities,
    enter_user_namespace, may_make_hosts, taps,
};
use longwire_port::interface::clear_leftovers;
use longwire_scenario::{Host, Plan};
use std::path::PathBuf;

/// Hosts that are up. Dropping this takes them down.
#[derive(Debug)]
pub enum TestHosts {
    /// The hosts of a scenario.
    Lab(Lab),
    /// The ends of `exec`, which have the names of the plan's hosts.
    Exec(ExecNet),
    /// The ends of an attachment to an existing interface, which have the names of the plan's hosts.
    Attached(Attachment),
}

impl TestHosts {
    /// Creates the plan's hosts as the lab `name`; none if it has no hosts. What killed runs have left is
    /// removed first.
    ///
    /// # Errors
    /// If the system refuses; then nothing is left behind.
    pub fn make(name: &str, plan: &Plan) -> anyhow::Result<Option<Self>> {
        sweep()?;
        if !plan.has_lab() {
            return Ok(None);
        }
        let planes = plan.control_planes().map(crate::control_planes::host_spec);
        let specs: Vec<_> = plan.hosts.iter().map(host_spec).chain(planes).collect();
        Ok(Some(Self::Lab(Lab::create(name, &specs)?)))
    }

    /// The lab of the hosts.
    pub const fn lab(&self) -> &Lab {
        match self {
            Self::Lab(lab) => lab,
            Self::Exec(net) => net.lab(),
            Self::Attached(attachment) => attachment.lab(),
        }
    }

    /// Sets addresses and routes of a host's interface, which was created in the host.
    ///
    /// # Errors
    /// If there is no such host or interface, or the kernel refuses.
    pub fn configure(&mut self, host: &str) -> Result<(), LabError> {
        match self {
            Self::Lab(lab) => lab.configure(host),
            Self::Exec(net) => net.configure(host),
            Self::Attached(attachment) => attachment.lab().configure(host),
        }
    }

    /// Restores what the ends of `exec` changed in the machine's network, which takes the kernel a while:
    /// called when it is no longer needed, before the engine and the hosts end. [`TestHosts::down`] does the
    /// rest.
    pub fn close_way_out(&self) {
        if let Self::Exec(net) = self {
            // Failures are retried and reported when the hosts are taken down.
            let _ = net.close_way_out();
        }
    }

    /// Takes the hosts down and ends their processes.
    ///
    /// # Errors
    /// If something can't be removed; the rest is still removed.
    pub fn down(self) -> Result<(), LabError> {
        match self {
            Self::Lab(lab) => lab.down(),
            Self::Exec(net) => net.down(),
            Self::Attached(attachment) => attachment.down(),
        }
    }
}

/// Removes what killed runs have left: their hosts, logs and claims on interfaces, whose settings are
/// restored.
///
/// # Errors
/// If something can't be removed; the rest is still removed.
pub fn sweep() -> anyhow::Result<()> {
    clear_leftovers();
    let swept = longwire_lab::sweep().context("removing leftovers of killed runs")?;
    swept.iter().for_each(|name| remove_log(name));
    Ok(())
}

/// Removes the log of a lab, if it has one.
pub fn remove_log(lab: &str) {
    let _ = std::fs::remove_file(log_of(lab));
}

/// The log of a lab that is kept running.
pub fn log_of(lab: &str) -> PathBuf {
    longwire_control::directory().join(format!("{lab}.log"))
}

/// Ensures that the plan's hosts can be created: enters a user namespace if necessary, and uses veth instead
/// of TAP devices where those are impossible. Must be called before a second thread exists. Returns notes
/// about what was changed.
///
/// # Errors
/// If neither this user nor a user namespace may create hosts; the error says why and what to do.
pub fn gain_privileges(plan: &mut Plan) -> anyhow::Result<Vec<String>> {
    let mut notes = Vec::new();
    if !plan.has_lab() {
        return Ok(notes);
    }
    if !may_make_hosts() {
        let can = abilities();
        anyhow::ensure!(
            can.user_namespaces.available,
            "test hosts can't be made here: {}; {}. In virtual time no hosts are needed: add --virtual",
            can.namespaces.reason,
            can.user_namespaces.reason
        );
        enter_user_namespace()?;
    }
    let tap = taps();
    anyhow::ensure!(
        tap.available || plan.control_planes().next().is_none(),
        "routers' control planes need TAP devices, which are impossible here: {}",
        tap.reason
    );
    let wants_tap = plan.hosts.iter().any(|host| host.driver.wire == Wire::Tap);
    if wants_tap && !tap.available {
        notes.push(format!("hosts are wired by veth pairs instead of TAP devices: {}", tap.reason));
        for host in plan.hosts.iter_mut().filter(|host| host.driver.wire == Wire::Tap) {
            host.driver = HostDriver::VETH;
        }
    }
    Ok(notes)
}

/// What hosts are wired by: TAP devices where they are possible, else veth.
pub fn usual_driver() -> HostDriver {
    if taps().available { HostDriver::TAP } else { HostDriver::VETH }
}

/// The lab's specification of a plan's host.
pub fn host_spec(host: &Host) -> HostSpec {
    HostSpec {
        name: host.name.to_string(),
        addresses: host.addresses.clone(),
        mac: Some(host.mac),
        mtu: host.mtu,
        gateways: host.gateways.clone(),
        routes: host.routes.iter().map(|route| Route { to: route.to, via: Some(route.via) }).collect(),
        wiring: wiring(host.driver.wire),
        kernel_traffic: KernelTraffic::Usual,
    }
}

/// The lab's kind of a wire.
pub const fn wiring(wire: Wire) -> Wiring {
    match wire {
        Wire::Tap => Wiring::Tap,
        Wire::Veth { offload } => Wiring::Veth { offload },
    }
}
