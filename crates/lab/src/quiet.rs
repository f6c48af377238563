//! Settings of a new namespace that keep the kernel's own traffic off the lab's wires.

use std::fs;
use std::path::Path;

/// Settings are written from inside the namespace. One that can't be written (a container may mount
/// `/proc/sys` read-only) is left: the lab works all the same, with a few packets of the kernel's own.
fn set(path: &str, value: &str) {
    let _ = fs::write(Path::new("/proc/sys/net").join(path), value);
}

/// For interfaces made here from now on: no IPv6 at all, so none of its own packets either.
pub fn without_ipv6() {
    set("ipv6/conf/default/disable_ipv6", "1");
}

/// Turns IPv6 off on one interface that exists and is not yet up.
pub fn without_ipv6_on(interface: &str) {
    set(&format!("ipv6/conf/{interface}/disable_ipv6"), "1");
}

/// For interfaces made here from now on: IPv6 with the addresses they are given, without asking for routers
/// and without probing for duplicates.
pub fn with_fixed_ipv6() {
    fixed_ipv6("default");
}

/// For interfaces made here from now on: as [`with_fixed_ipv6`], and without a packet of the kernel's own.
pub fn with_silent_ipv6() {
    silent_ipv6_on("default");
}

/// IPv6 on one interface that exists and is not yet up: as [`with_fixed_ipv6`], without an address within the
/// link and without the groups of routers, both of which hosts report to their link. (Whether packets are
/// forwarded is another setting.)
pub fn silent_ipv6_on(interface: &str) {
    fixed_ipv6(interface);
    set(&format!("ipv6/conf/{interface}/addr_gen_mode"), "1");
    set(&format!("ipv6/conf/{interface}/forwarding"), "0");
}

fn fixed_ipv6(interface: &str) {
    for (setting, value) in [
        ("disable_ipv6", "0"),
        ("accept_ra", "0"),
        ("autoconf", "0"),
        ("router_solicitations", "0"),
        ("accept_dad", "0"),
    ] {
        set(&format!("ipv6/conf/{interface}/{setting}"), value);
    }
}

/// Lets every user of the host ping without privileges.
pub fn ping_for_all() {
    set("ipv4/ping_group_range", "0 2147483647");
    // Inside a user namespace only the groups that are mapped into it may be named.
    if fs::read_to_string("/proc/sys/net/ipv4/ping_group_range").is_ok_and(|r| r.starts_with('1')) {
        set("ipv4/ping_group_range", "0 0");
    }
}

/// For interfaces made here from now on: what a router's are set to, whose packets come and go by other ways
/// than the kernel's tables say. IPv6 with the address of the hardware's number within the link, as
/// Longwire's routers have it.
pub fn as_router() {
    with_fixed_ipv6();
    set("ipv6/conf/default/addr_gen_mode", "0");
    for which in ["all", "default"] {
        set(&format!("ipv4/conf/{which}/rp_filter"), "0");
    }
    // An address of another interface is that interface's to answer for.
    set("ipv4/conf/default/arp_ignore", "1");
}

/// Lets packets from and to the loopback's addresses leave and come in by an interface, which translation
/// gives other addresses.
pub fn with_loopback_by(interface: &str) {
    set(&format!("ipv4/conf/{interface}/route_localnet"), "1");
}
