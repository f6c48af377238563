//! The test hosts of a plan: a lab of its own, or the two ends of `exec`.

use anyhow::Context;
use longwire_drivers::{HostDriver, Wire};
use longwire_lab::{
    Attachment, Chatter, Cidr, ExecNet, HostSpec, Lab, LabError, Mac, Route, Wiring, abilities,
    enter_user_namespace, may_make_hosts, taps,
};
use longwire_scenario::{Host, Network, Plan};
use std::path::PathBuf;

/// Hosts that are up. They are taken down when this is dropped.
#[derive(Debug)]
pub enum TestHosts {
    /// The hosts of a scenario.
    Lab(Lab),
    /// The ends of `exec`: the plan's hosts have their names.
    Exec(ExecNet),
    /// The ends beside an interface that others have made: the plan's hosts have their names.
    Attached(Attachment),
}

impl TestHosts {
    /// Makes the plan's hosts as the lab `name`, or none if it has none; what killed runs left is removed
    /// first.
    ///
    /// # Errors
    /// If the system doesn't allow it; nothing is left behind.
    pub fn make(name: &str, plan: &Plan) -> anyhow::Result<Option<Self>> {
        if !plan.has_lab() {
            return Ok(None);
        }
        sweep()?;
        let planes = plan.control_planes().map(crate::control_planes::host_spec);
        let specs = plan.hosts.iter().map(host_spec).chain(planes).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Self::Lab(Lab::create(name, &specs)?)))
    }

    /// The lab that the hosts are in.
    pub const fn lab(&self) -> &Lab {
        match self {
            Self::Lab(lab) => lab,
            Self::Exec(net) => net.lab(),
            Self::Attached(attachment) => attachment.lab(),
        }
    }

    /// Gives a host's interface, which was made in the host, its addresses and routes.
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

    /// Puts back what the ends of `exec` changed in the machine's network, which takes the kernel a while:
    /// when nobody needs it any more, before the engine and the hosts end. [`TestHosts::down`] does what is
    /// left.
    pub fn close_way_out(&self) {
        if let Self::Exec(net) = self {
            // What fails is tried again, and reported, when the hosts are taken down.
            let _ = net.close_way_out();
        }
    }

    /// Takes the hosts down and ends what runs in them.
    ///
    /// # Errors
    /// If something can't be removed; the rest is removed all the same.
    pub fn down(self) -> Result<(), LabError> {
        match self {
            Self::Lab(lab) => lab.down(),
            Self::Exec(net) => net.down(),
            Self::Attached(attachment) => attachment.down(),
        }
    }
}

/// Removes what killed runs left: their hosts, and their logs.
///
/// # Errors
/// If something can't be removed; the rest is removed all the same.
pub fn sweep() -> anyhow::Result<()> {
    let swept = longwire_lab::sweep().context("removing what killed runs left")?;
    swept.iter().for_each(|name| remove_log(name));
    Ok(())
}

/// Removes the log of a lab, if it has one.
pub fn remove_log(lab: &str) {
    let _ = std::fs::remove_file(log_of(lab));
}

/// The log of a lab that is kept up.
pub fn log_of(lab: &str) -> PathBuf {
    longwire_control::directory().join(format!("{lab}.log"))
}

/// Makes sure that the plan's hosts can be made: enters a user namespace if only that allows it, and wires
/// hosts by veth where there can be no TAP devices. It has to come before any second thread. Says what was
/// done instead.
///
/// # Errors
/// If neither this user nor a user namespace may make hosts; the error says why and what would help.
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
        "routers' control planes are reached through TAP devices, and there can be none here: {}",
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

/// A plan's host as the lab makes it.
///
/// # Errors
/// If an address is none.
pub fn host_spec(host: &Host) -> Result<HostSpec, LabError> {
    let cidr = |network: &Network| Cidr::new(network.address, network.prefix);
    let routes = host.routes.iter().map(|route| Ok(Route { to: cidr(&route.to)?, via: Some(route.via) }));
    Ok(HostSpec {
        name: host.name.to_string(),
        addresses: host.addresses.iter().map(cidr).collect::<Result<_, _>>()?,
        mac: Some(Mac(host.mac.0)),
        mtu: host.mtu,
        gateways: host.gateways.clone(),
        routes: routes.collect::<Result<_, LabError>>()?,
        wiring: wiring(host.driver.wire),
        chatter: Chatter::Usual,
    })
}

/// A wire as the lab makes it.
pub const fn wiring(wire: Wire) -> Wiring {
    match wire {
        Wire::Tap => Wiring::Tap,
        Wire::Veth { offload } => Wiring::Veth { offload },
    }
}
