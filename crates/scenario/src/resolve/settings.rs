//! Reading of declared settings; sections `[engine]`, `[fidelity]` and `[nesp]`.

use super::{Entry, Resolver};
use crate::file::{self, File};
use crate::link_edit::{bare, near};
use crate::plan::{EngineSettings, Fidelity, Nesp};
use crate::row::{Row, SettingText, WithSettings};
use crate::settings::{Mapping, NespSettings};
use crate::written::{Text, Whole, Written};
use longwire_block::{Settings, Spec, Values};
use longwire_nesp::{Key, PORT};
use longwire_rundir::read_key_file;
use longwire_units::counted;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

const MOST_CPUS: u32 = 1 << 16;

impl Resolver<'_, '_> {
    /// How the engine runs. None after an error.
    pub(super) fn engine(&mut self, file: &File) -> Option<EngineSettings> {
        let none = file::Engine::default();
        let written = file.engine.as_ref().unwrap_or(&none);
        let entry = Entry { section: "engine", ..Entry::root() };
        let mut engine: EngineSettings = self.row(&entry, written)?;
        match (engine.workers, engine.mapping, written.span("mapping")) {
            (2.., _, None) => engine.mapping = Mapping::Parallel,
            (workers @ 2.., Mapping::Single, Some(span)) => {
                let what = format!("the mapping \"single\" has one worker, but workers = {workers}");
                self.error(span, &entry, "mapping", what, "write mapping = \"parallel\", or leave it out");
            }
            (1, Mapping::Pipeline, Some(span)) => {
                let what = "a pipeline has two workers or more, but workers = 1";
                self.error(span, &entry, "mapping", what, "write workers = 2, or more");
            }
            _ => {}
        }
        engine.pool_given = written.span("pool").is_some();
        engine.cpus = self.cpus(&entry, &written.cpus.0, engine.workers)?;
        Some(engine)
    }

    /// Reads the settings of an entry, with templates expanded. None after an error.
    pub(super) fn row<T, S: Settings>(
        &mut self,
        entry: &Entry<'_>,
        written: &WithSettings<T, S>,
    ) -> Option<S> {
        self.values(entry, "", &S::SPEC, &written.row).map(|values| S::of(&values))
    }

    /// Reads the settings of an optional table within an entry. None after an error.
    pub(super) fn subtable<T, S: Settings>(
        &mut self,
        entry: &Entry<'_>,
        table: &str,
        written: Option<&WithSettings<T, S>>,
    ) -> Option<S> {
        let row = written.map_or(&[][..], |written| &written.row);
        self.values(entry, &format!("{table}."), &S::SPEC, row).map(|values| S::of(&values))
    }

    /// Reads the values of a spec, with templates expanded. None after an error.
    pub(super) fn values(
        &mut self,
        entry: &Entry<'_>,
        table: &str,
        spec: &Spec,
        row: &[SettingText],
    ) -> Option<Values> {
        let mut given = Vec::new();
        for (name, text, span) in row {
            let param = spec.params.iter().find(|param| param.name == *name)?;
            let key = format!("{table}{name}");
            let text = self.expanded(entry, &key, text, span)?;
            match param.read_in(&text, &self.folder) {
                Ok(_) => given.push((*name, text)),
                Err(error) => self.error(span, entry, &key, bare(&error), near(param, &text)),
            }
        }
        let pairs: Vec<_> = given.iter().map(|(name, text)| (*name, &**text)).collect();
        let values = Values::read_in(spec, &pairs, &self.folder).ok();
        values.filter(|_| given.len() == row.len())
    }

    fn cpus(&mut self, entry: &Entry<'_>, list: &[Written<Whole>], workers: u32) -> Option<Vec<u32>> {
        let mut cpus = Vec::with_capacity(list.len());
        for written in list {
            let Whole(given) = self.term(entry, "cpus", written)?;
            let Some(cpu) = u32::try_from(given).ok().filter(|cpu| *cpu <= MOST_CPUS) else {
                let what = format!("{given} is out of range: 0 to {MOST_CPUS}");
                return self.refuse(&written.span, entry, "cpus", what, "");
            };
            if cpus.contains(&cpu) {
                let what = format!("processor {cpu} is given twice");
                self.error(&written.span, entry, "cpus", what, "give each worker a processor of its own");
            }
            cpus.push(cpu);
        }
        if let Some(last) = list.last()
            && cpus.len() != workers as usize
        {
            let what =
                format!("{} for {}", counted(cpus.len() as u64, "processor"), counted(workers, "worker"));
            self.error(&last.span, entry, "cpus", what, "give one for each worker, or leave cpus out");
        }
        Some(cpus)
    }

    /// When a run is faithful. None after an error.
    pub(super) fn fidelity(&mut self, file: &File) -> Option<Fidelity> {
        let entry = Entry { section: "fidelity", ..Entry::root() };
        self.row(&entry, file.fidelity.as_ref().unwrap_or(&Row::default()))
    }

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
