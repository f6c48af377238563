//! Turns off a host's checksum and segmentation offloads through the kernel's ethtool interface.
#![allow(unsafe_code)]

use std::io;

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl};

/// `struct ethtool_value` of linux/ethtool.h.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Set commands of linux/ethtool.h, in an order that keeps dependent features consistent.
const SETTINGS: [u32; 5] = [
    0x1f, // ETHTOOL_STSO, segmentation of TCP
    0x24, // ETHTOOL_SGSO, segmentation in software just before the driver
    0x2c, // ETHTOOL_SGRO, merging on receive
    0x17, // ETHTOOL_STXCSUM, checksums on transmit
    0x15, // ETHTOOL_SRXCSUM, trusting the sender's mark that a checksum is good
];

const ETHTOOL: Opcode = libc::SIOCETHTOOL as Opcode;

/// Makes an interface send only complete packets: with checksums, and no larger than the MTU.
pub fn turn_off(interface: &str) -> io::Result<()> {
    // Any socket carries interface requests.
    let socket = std::net::UdpSocket::bind(("127.0.0.1", 0))?;
    for command in SETTINGS {
        let mut value = EthtoolValue { command, data: 0 };
        // SAFETY: an all-zero ifreq is valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(interface.bytes()) {
            *to = from.cast_signed();
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: the request and its value outlive the call and have the layout that the kernel expects.
        let result = unsafe { ioctl(&socket, Updater::<ETHTOOL, libc::ifreq>::new(&mut request)) };
        match result {
            // A feature the driver doesn't have is off.
            Err(Errno::OPNOTSUPP) => {}
            other => other?,
        }
    }
    Ok(())
}
