//! Section `[nesp]`.

use super::{Desk, Entry};
use crate::file::File;
use crate::key_file::read_key_file;
use crate::nesp_plan::Nesp;
use crate::words::NespAllow;
use longwire_nesp::{Key, PORT};
use std::net::{Ipv4Addr, SocketAddrV4};

impl Desk<'_, '_> {
    /// Who may read and change settings by frames. None without the section, and after an error.
    pub(super) fn nesp(&mut self, file: &File) -> Option<Nesp> {
        let written = file.nesp.as_ref()?;
        let entry = Entry { section: "nesp", ..Entry::root() };
        let key_file = self.term(&entry, "key-file", &written.key_file);
        let key_file = key_file.map(|text| self.folder.join(text.0));
        if let Some(path) = &key_file {
            let key =
                read_key_file(path).and_then(|text| Key::read(&text).map_err(|error| error.to_string()));
            if let Err(what) = key {
                self.error(&written.key_file.span, &entry, "key-file", what, "");
            }
        }
        let mut ports = Vec::new();
        for name in &written.ports.0 {
            if let Some(port) = self.port(&entry, "ports", name)
                && !ports.contains(&port)
            {
                ports.push(port);
            }
        }
        if written.ports.0.is_empty() {
            let mend = "name the hosts or ports that may, as in ports = [\"client\"]";
            self.error(&written.key_file.span, &entry, "ports", "no port allows it", mend);
        }
        let udp = match &written.udp {
            None => None,
            Some(written) => {
                let text = self.term(&entry, "udp", written)?.0;
                let read =
                    text.parse().or_else(|_| text.parse().map(|ip: Ipv4Addr| SocketAddrV4::new(ip, PORT)));
                match read {
                    Ok(address) if is_usable(&address) => Some((*address.ip(), address.port())),
                    _ => {
                        let what = format!("\"{text}\" is no IPv4 address of a host, with a port or without");
                        let mend =
                            "write one that no host has, such as \"10.0.0.254\" or \"10.0.0.254:8805\"";
                        self.error(&written.span, &entry, "udp", what, mend);
                        None
                    }
                }
            }
        };
        let allow = self.term_or(&entry, "allow", written.allow.as_ref(), NespAllow::Set)?;
        Some(Nesp { key_file: key_file?, ports, udp, allow })
    }
}

fn is_usable(address: &SocketAddrV4) -> bool {
    let ip = address.ip();
    address.port() != 0
        && !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() || ip.is_loopback())
}
