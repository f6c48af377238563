//! Section `[nesp]`.

use super::{Entry, Resolver};
use crate::file::File;
use crate::nesp_plan::Nesp;
use crate::settings::NespSettings;
use crate::written::{Text, Written};
use longwire_nesp::{Key, PORT};
use longwire_rundir::read_key_file;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

impl Resolver<'_, '_> {
    /// Access to settings by frames. None without the section, and after an error.
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
            let fix = "name the hosts or ports that may, as in ports = [\"client\"]";
            self.error(&written.key_file.span, &entry, "ports", "no port allows it", fix);
        }
        let udp = self.udp_form(&entry, "udp", written.udp.as_ref(), |text| {
            let with = text.parse::<SocketAddrV4>().map(|both| (*both.ip(), both.port())).ok();
            let (ip, port) = with.or_else(|| Some((text.parse::<Ipv4Addr>().ok()?, PORT)))?;
            let nobodys = ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() || ip.is_loopback();
            (port != 0 && !nobodys).then_some((ip, port))
        });
        let udp6 = self.udp_form(&entry, "udp6", written.udp6.as_ref(), |text| {
            let with = text.parse::<SocketAddrV6>().map(|both| (*both.ip(), both.port())).ok();
            let (ip, port) = with.or_else(|| Some((text.parse::<Ipv6Addr>().ok()?, PORT)))?;
            let nobodys = ip.is_unspecified() || ip.is_multicast() || ip.is_loopback();
            (port != 0 && !nobodys && ip.to_ipv4_mapped().is_none()).then_some((ip, port))
        });
        let NespSettings { allow } = self.row(&entry, written)?;
        Some(Nesp { key_file: key_file?, ports, udp, udp6, allow })
    }

    /// The address and port of NESP over UDP, as parsed by `read`.
    fn udp_form<A>(
        &mut self,
        entry: &Entry<'_>,
        key: &'static str,
        written: Option<&Written<Text>>,
        read: impl Fn(&str) -> Option<A>,
    ) -> Option<A> {
        let written = written?;
        let text = self.term(entry, key, written)?.0;
        let found = read(&text);
        if found.is_none() {
            let (family, example, with_port) = match key {
                "udp6" => ("IPv6", "fd00::fe", "[fd00::fe]:8805"),
                _ => ("IPv4", "10.0.0.254", "10.0.0.254:8805"),
            };
            let what = format!("\"{text}\" is no {family} address of a host, with a port or without");
            let fix = format!("write one that no host has, such as \"{example}\" or \"{with_port}\"");
            self.error(&written.span, entry, key, what, fix);
        }
        found
    }
}
