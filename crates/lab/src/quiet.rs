//! Settings of a new namespace that suppress the kernel's own traffic on the lab's wires.

use std::fs;
use std::path::Path;

/// Writes a setting from inside the namespace. Failure (a container may mount `/proc/sys` read-only) is
/// ignored: the lab still works, with a few packets of the kernel's own.
fn set(path: &str, value: &str) {
    let _ = fs::write(Path::new("/proc/sys/net").join(path), value);
}

/// Names interfaces created here from now on; any other name is that of an interface that exists and is not
/// yet up.
pub const NEW: &str = "default";

/// Turns IPv6 off.
pub fn without_ipv6(interface: &str) {
    set(&format!("ipv6/conf/{interface}/disable_ipv6"), "1");
}

/// As [`fixed_ipv6`], without any packet of the kernel's own: without a link-local address and without the
/// router groups, both of which cause reports. (Forwarding is another setting.)
pub fn silent_ipv6(interface: &str) {
    fixed_ipv6(interface);
    set(&format!("ipv6/conf/{interface}/addr_gen_mode"), "1");
    set(&format!("ipv6/conf/{interface}/forwarding"), "0");
}

/// IPv6 with configured addresses only, without router solicitation and duplicate address detection.
pub fn fixed_ipv6(interface: &str) {
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
    // Inside a user namespace only mapped groups may be named.
    let range = fs::read_to_string("/proc/sys/net/ipv4/ping_group_range");
    if range.is_ok_and(|range| !range.trim_end().ends_with("2147483647")) {
        set("ipv4/ping_group_range", "0 0");
    }
}

/// For interfaces created here from now on: settings of a router, whose packets don't follow the kernel's
/// tables. IPv6 has the link-local address derived from the hardware address, as in Longwire's routers.
pub fn as_router() {
    fixed_ipv6(NEW);
    set("ipv6/conf/default/addr_gen_mode", "0");
    for which in ["all", "default"] {
        set(&format!("ipv4/conf/{which}/rp_filter"), "0");
    }
    // Only the interface with an address answers for it.
    set("ipv4/conf/default/arp_ignore", "1");
}

/// Lets packets with loopback addresses, which are translated, leave and arrive by an interface.
pub fn with_loopback_by(interface: &str) {
    set(&format!("ipv4/conf/{interface}/route_localnet"), "1");
}
