//! Offload settings: turned off while needed, and restored exactly.

use crate::net::Net;
use longwire_port::driver::af_packet::{AfPacket, AfPacketOptions, Header};
use longwire_port::{Feature, Interface, OffloadGuard, OpenError};
use std::process::Command;

/// What `ethtool` shows, to compare with.
fn shown(interface: &str) -> String {
    let output = Command::new("ethtool").args(["-k", interface]).output().expect("ethtool is installed");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn turns_off_and_restores_only_what_was_on() {
    let Some(net) = Net::new() else { return };
    net.veth("left", "right");
    net.run(|| {
        let a = Interface::open("left").unwrap();
        let status =
            Command::new("ethtool").args(["-K", "left", "tx-tcp6-segmentation", "off"]).status().unwrap();
        assert!(status.success());
        let before = shown("left");
        let guard = OffloadGuard::turn_off(&a, &[Feature::Tso, Feature::TxChecksum]).unwrap();
        assert!(!guard.is_idle());
        let features = a.features().unwrap();
        assert!(!features.is_on(Feature::Tso) && !features.is_on(Feature::TxChecksum));
        assert!(shown("left").contains("tcp-segmentation-offload: off"));
        drop(guard);
        assert_eq!(shown("left"), before);
        assert!(a.features().unwrap().is_on(Feature::Tso));
    });
}

#[test]
fn a_port_without_header_turns_merging_off_while_it_is_open() {
    let Some(net) = Net::new() else { return };
    net.veth("left", "right");
    net.run(|| {
        assert!(Command::new("ethtool").args(["-K", "left", "gro", "on"]).status().unwrap().success());
        let before = shown("left");
        let options = AfPacketOptions { header: Header::Off, ..Default::default() };
        let port = AfPacket::open("left", "left", &options).unwrap();
        assert!(shown("left").contains("generic-receive-offload: off"));
        assert!(longwire_block::Port::describe(&port).contains("merging on receipt off"));
        drop(port);
        assert_eq!(shown("left"), before);
    });
}

#[test]
fn an_offload_that_stays_on_is_refused_with_the_fix() {
    let Some(_net) = Net::new() else { return };
    // The loopback's transmit checksum is fixed.
    let lo = Interface::open("lo").unwrap();
    let error = OffloadGuard::turn_off(&lo, &[Feature::TxChecksum]).unwrap_err();
    assert!(matches!(error, OpenError::Offload { feature: "tx", .. }), "{error}");
}

#[test]
fn settings_are_made_and_read_back() {
    let Some(net) = Net::new() else { return };
    net.veth("left", "right");
    net.run(|| {
        let a = Interface::open("left").unwrap();
        assert_eq!(a.driver().unwrap(), "veth");
        a.set_mac([2, 0, 0, 9, 9, 9]).unwrap();
        assert_eq!(a.mac().unwrap(), [2, 0, 0, 9, 9, 9]);
        a.set_mtu(9000).unwrap();
        assert_eq!(a.mtu().unwrap(), 9000);
        assert!(a.set_mtu(1 << 30).is_err());
        a.set_queue_length(77).unwrap();
        a.set_up(false).unwrap();
        assert!(shown_link("left").contains("state DOWN"), "{}", shown_link("left"));
        assert!(shown_link("left").contains("qlen 77"), "{}", shown_link("left"));
        // Found by index, so a new name does not matter.
        assert!(Command::new("ip").args(["link", "set", "left", "name", "c"]).status().unwrap().success());
        assert_eq!(a.mtu().unwrap(), 9000);
        assert!(Command::new("ip").args(["link", "del", "c"]).status().unwrap().success());
        assert!(matches!(a.mtu(), Err(OpenError::Missing { .. })));
    });
}

fn shown_link(interface: &str) -> String {
    let output = Command::new("ip").args(["link", "show", interface]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}
