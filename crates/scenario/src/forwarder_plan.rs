//! Programs on routers: in a checked plan, and as written.

use crate::address::Network;
use crate::finding::name_hint;
use crate::level_plan::{AboveRequest, Receiver};
use crate::link_edit::bare;
use crate::router_plan::Router;
use crate::settings::{ForwarderSettings, Level, UnansweredPackets};
use crate::written::{Name, Term};
use longwire_block::Settings;
use longwire_program::{Program, ProgramState, assemble};
use longwire_punt::Request;
use longwire_punt::services::Native;
use longwire_router::{
    FlowKey, Forwarder, Installation, Key, KeyAddress, LinkChoice, NextHop, PrepareError, RouterPrices,
    SharingConfig,
};
use longwire_units::{Bytes, counted};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

/// Longest name of a process.
const LONGEST_NAME: usize = 32;

/// A program installed on a router at the start.
#[derive(Debug, Clone)]
pub struct PlannedForwarder {
    /// Index of its router.
    pub router: u32,
    /// The installation.
    pub request: ForwarderRequest,
}

/// A program to install, and how.
#[derive(Debug, Clone)]
pub struct ForwarderRequest {
    /// The program.
    pub program: Arc<Program>,
    /// Its packets, state and next hop.
    pub installation: Installation,
    /// Initial state; none for zeros.
    pub data: Option<Box<[u8]>>,
    /// Who receives the packets that it passes. `installation.above` is set once the attachment is known.
    pub above: Option<AboveRequest>,
}

/// A forwarder as written: every value is text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WrittenForwarder {
    /// The name of one shipped with Longwire, such as "syn-monitor", or of an object file. Empty for one that
    /// passes all packets up.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// The function in the object, if it has several programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Values for constants (`const volatile`) of its object, by name; for an array, with commas.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub constants: BTreeMap<String, String>,
    /// Sizes of its object's maps, by name, or the programs they hold. Default: as in the source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub maps: BTreeMap<String, String>,
    /// The programs of its object that entries of devmaps and cpumaps may name, by number from 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exits: Vec<String>,
    /// Its name. Default: the program's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The packets it receives. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<WrittenKey>,
    /// Size of its state, such as "24 B". Default: as much as it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Initial state in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The output port of its packets, instead of by the routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// The gateway of its packets, instead of by the routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The output queue of its packets, 0 to 254.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The links that the program may choose, by number from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// The level its packets go to: "data-path", "slow-path", "control".
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The service on the slow path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Packets per second guaranteed above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<String>,
    /// Cycles for each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<String>,
    /// Its share of the capacity that is not guaranteed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<String>,
    /// The mark of packets that go up. Default: all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// Time limit for answers to packets that went up. Default: 20 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// Treatment of packets without an answer: "pass" or "drop".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<String>,
}

/// The fields of a key; an omitted one matches all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WrittenKey {
    /// The source address, or a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The source port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_port: Option<String>,
    /// The destination address, or a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// The destination port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_port: Option<String>,
    /// "tcp", "udp", or a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}

/// A fault of a written forwarder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct ForwarderFault {
    /// The key of the entry.
    pub field: &'static str,
    /// The fault and its fix.
    pub why: String,
}

pub(crate) fn fault(field: &'static str, why: impl Into<String>) -> ForwarderFault {
    ForwarderFault { field, why: why.into() }
}

/// The first key of `written` that a replacement program can't have: it keeps those of the program it
/// replaces.
pub fn fields_of_programs(written: &WrittenForwarder) -> Option<&'static str> {
    let WrittenForwarder { key, data, port, via, links, service, .. } = written;
    let fields = [
        ("key", key.is_some()),
        ("data", data.is_some()),
        ("port", port.is_some()),
        ("via", via.is_some()),
        ("links", !links.is_empty()),
        ("service", service.is_some()),
    ];
    // The size of its state belongs to the program.
    let settings = written.given().into_iter().filter(|(field, _)| *field != "state");
    let settings = settings.map(|(field, text)| (field, text.is_some()));
    fields.into_iter().chain(settings).find(|(_, is_there)| *is_there).map(|(field, _)| field)
}

impl WrittenForwarder {
    /// The fault if it can't be prepared: names the key at fault, or the object.
    pub fn refused(&self, error: &PrepareError) -> ForwarderFault {
        match *error {
            PrepareError::State { size, used } if self.state.is_none() && self.data.is_some() => {
                let why = format!(
                    "it is {}, which is then the size of the state; the program uses {} of it: write all of \
                     them, {} at most",
                    counted(size, "byte"),
                    counted(used, "byte"),
                    ProgramState::MAX
                );
                fault("data", why)
            }
            PrepareError::State { .. } => fault("state", error.to_string()),
            PrepareError::Links { .. } => fault("links", error.to_string()),
            PrepareError::Key(_) => fault("key", error.to_string()),
            PrepareError::Way(_) => fault("port", error.to_string()),
            _ if self.program.is_empty() => fault("program", error.to_string()),
            _ => fault("program", format!("{}: {error}", self.program)),
        }
    }

    /// Its settings as written.
    pub(crate) fn given(&self) -> [(&'static str, &Option<String>); 9] {
        [
            ("queue", &self.queue),
            ("where", &self.level),
            ("packets", &self.packets),
            ("cycles", &self.cycles),
            ("share", &self.share),
            ("mark", &self.mark),
            ("within", &self.within),
            ("otherwise", &self.otherwise),
            ("state", &self.state),
        ]
    }

    /// Its settings.
    fn settings(&self) -> Result<ForwarderSettings, ForwarderFault> {
        let given = self.given();
        let given: Vec<_> = given.iter().filter_map(|(name, text)| Some((*name, text.as_deref()?))).collect();
        for param in ForwarderSettings::SPEC.params {
            if let Some((_, text)) = given.iter().find(|(name, _)| *name == param.name) {
                param.read(text).map_err(|error| fault(param.name, bare(&error)))?;
            }
        }
        ForwarderSettings::read(&given).map_err(|error| fault("program", error.to_string()))
    }

    /// Reads it for installation on `router`.
    ///
    /// # Errors
    /// The key at fault.
    pub fn read(&self, router: &Router, object: &[u8]) -> Result<ForwarderRequest, ForwarderFault> {
        let settings = self.settings()?;
        let above = self.above(&settings)?;
        let code = if self.lets_all_pass() { Self::all_pass()? } else { self.program(object)? };
        let data = self.data.as_deref().map(hexadecimal).transpose()?;
        let state = match settings.state {
            Some(Bytes(size)) => Some(size as u32),
            None => data.as_ref().map(|data| data.len() as u32),
        };
        if let (Some(size), Some(data)) = (state, &data)
            && size as usize != data.len()
        {
            let bytes = counted(data.len() as u64, "byte");
            return Err(fault("data", format!("it has {bytes}, and the state {size}")));
        }
        let name = match &above {
            Some(above) => &above.name,
            None => self.name.as_deref().unwrap_or_else(|| stem(&self.program)),
        };
        let Name(name) = Name::read(name).map_err(|why| match self.name {
            Some(_) => fault("name", why),
            None => fault("name", format!("{why}; the file's name is none: write another")),
        })?;
        let key = self.key.as_ref().map_or(Ok(Key::All), |key| key.read().map(Key::Flow))?;
        let (way, queue, mark) = (self.way(router)?, settings.queue, settings.mark);
        let threads = router.sharing.as_ref().map_or(1, SharingConfig::threads);
        let (links, program) = (self.links(router)?, stem(&self.program).into());
        let installation =
            Installation { name, program, key, state, way, queue, above: None, mark, links, threads };
        Ok(ForwarderRequest { program: Arc::new(code), installation, data: data.map(Into::into), above })
    }

    /// The links it may choose.
    fn links(&self, router: &Router) -> Result<Box<[LinkChoice]>, ForwarderFault> {
        let unknown = |name: &str| {
            let names: Vec<&str> = router.links.iter().map(|link| &*link.name).take(16).collect();
            let known = if names.is_empty() { "none".into() } else { names.join(", ") };
            let why = format!(
                "no link \"{}\" that programs may name begins at a port of \"{}\": there are {known}",
                name.escape_debug(),
                router.name
            );
            fault("links", why)
        };
        self.links.iter().map(|name| router.link(name).cloned().ok_or_else(|| unknown(name))).collect()
    }

    /// The next hop of its packets.
    fn way(&self, router: &Router) -> Result<Option<NextHop>, ForwarderFault> {
        let no_port = |name: &str| {
            let names: Vec<&str> = router.ports.iter().map(|port| &*port.name).collect();
            let fix = name_hint(name, &names);
            fault("port", format!("the router has no port \"{}\": {fix}", name.escape_debug()))
        };
        let port =
            self.port.as_ref().map(|name| router.port(name).ok_or_else(|| no_port(name))).transpose()?;
        let Some(text) = &self.via else { return Ok(port.map(|port| NextHop::Direct { port: port.place })) };
        let via: IpAddr = text.parse().map_err(|_| fault("via", format!("\"{text}\" is not an address")))?;
        let port = router.port_of_gateway(via, port).map_err(|why| fault("via", why))?;
        Ok(Some(NextHop::via(port.place, via)))
    }

    /// What it asks for above; none for a program of the data path only.
    fn above(&self, settings: &ForwarderSettings) -> Result<Option<AboveRequest>, ForwarderFault> {
        let receiver = match settings.level {
            Level::DataPath => return self.nobody_above(),
            Level::SlowPath => Receiver::Service(self.native()?),
            Level::Control => Receiver::Process,
        };
        let name = match (self.name.as_deref(), receiver) {
            (Some(name), Receiver::Process) if name.is_empty() || name.len() > LONGEST_NAME => {
                return Err(fault("name", format!("it has 1 to {LONGEST_NAME} bytes")));
            }
            (Some(name), _) => name,
            (None, Receiver::Service(native)) => native.name,
            (None, Receiver::Process) => {
                let why = "a control process attaches by its name: write one, such as \"monitor\"";
                return Err(fault("name", why));
            }
        };
        if let (Some(_), Receiver::Process) = (&self.service, receiver) {
            let why = "a control process is another program, not a service: leave it out, or write where = \
                \"slow-path\"";
            return Err(fault("service", why));
        }
        let missing = |field, what| fault(field, format!("the number of {what} is missing"));
        let packets =
            settings.packets.ok_or_else(|| missing("packets", "packets per second to guarantee"))?;
        let cycles = settings.cycles.ok_or_else(|| missing("cycles", "cycles per packet"))?;
        Ok(Some(AboveRequest {
            receiver,
            name: name.into(),
            request: Request { packets, cycles },
            share: settings.share,
            within: settings.within,
            drops: settings.otherwise == UnansweredPackets::Drop,
        }))
    }

    fn nobody_above(&self) -> Result<Option<AboveRequest>, ForwarderFault> {
        // Settings of packets that go up.
        let above = ["packets", "cycles", "share", "mark", "within", "otherwise"];
        let given = self.given().into_iter().filter(|(field, _)| above.contains(field));
        match [("service", &self.service)].into_iter().chain(given).find(|(_, value)| value.is_some()) {
            Some((field, _)) => {
                let why = "the data path has no such setting: write where = \"slow-path\" or \"control\"";
                Err(fault(field, why))
            }
            None => Ok(None),
        }
    }

    fn native(&self) -> Result<&'static Native, ForwarderFault> {
        let known = || Native::ALL.iter().map(|native| native.name).collect::<Vec<_>>().join(", ");
        let Some(name) = &self.service else {
            return Err(fault("service", format!("no service is named: there are {}", known())));
        };
        let none = || fault("service", format!("there is no service \"{name}\"; there are {}", known()));
        Native::named(name).ok_or_else(none)
    }

    /// The program that passes every packet: then the key alone decides what goes up.
    fn all_pass() -> Result<Program, ForwarderFault> {
        const PASS: &str = "r0 = 2\nexit";
        let code = assemble(PASS).map_err(|error| fault("program", error.to_string()))?;
        Ok(Program::new("pass", code, []))
    }
}

impl WrittenKey {
    pub(crate) fn read(&self) -> Result<FlowKey, ForwarderFault> {
        type Read<T> = Result<Option<T>, ForwarderFault>;
        fn one<T: FromStr>(field: &'static str, text: &Option<String>, wanted: &str) -> Read<T> {
            let wrong = |text: &str| fault(field, format!("\"{text}\" is not a {wanted}"));
            text.as_ref().map(|text| text.parse().map_err(|_| wrong(text))).transpose()
        }
        fn address(field: &'static str, text: &Option<String>) -> Read<KeyAddress> {
            let Some(text) = text else { return Ok(None) };
            let network: Network = text.parse().map_err(|why: String| fault(field, why))?;
            let none = || fault(field, "it has all addresses: leave it out");
            KeyAddress::new(network.address, network.prefix).map(Some).ok_or_else(none)
        }
        let protocol = match self.protocol.as_deref() {
            Some("tcp") => Some(6),
            Some("udp") => Some(17),
            Some("icmp") => Some(1),
            Some("icmpv6") => Some(58),
            _ => {
                let wanted = "protocol: write tcp, udp, icmp, icmpv6, or a number";
                one("key.protocol", &self.protocol, wanted)?
            }
        };
        let key = FlowKey {
            source: address("key.source", &self.source)?,
            source_port: one("key.source-port", &self.source_port, "port")?,
            destination: address("key.destination", &self.destination)?,
            destination_port: one("key.destination-port", &self.destination_port, "port")?,
            protocol,
        };
        key.check().map(|()| key).map_err(|error| fault("key", error.to_string()))
    }
}

impl ForwarderRequest {
    /// Verifies and compiles it, and makes its state and maps.
    ///
    /// # Errors
    /// A fault of the program, its maps or its state.
    pub fn prepare(&self, prices: &RouterPrices, seed: u64) -> Result<Forwarder, PrepareError> {
        let program = Program::clone(&self.program);
        let forwarder = Forwarder::prepare(program, self.installation.clone(), prices, seed)?;
        if let Some(data) = &self.data
            && !forwarder.state().set(data)
        {
            let (size, used) = (data.len() as u32, forwarder.verified().state_size());
            return Err(PrepareError::State { size, used });
        }
        Ok(forwarder)
    }

    /// Prepares it as a replacement: with key, path and links of the installed one, and as much of its maps
    /// and state as fits.
    ///
    /// # Errors
    /// As [`ForwarderRequest::prepare`].
    pub fn prepare_instead(
        &self,
        before: &Forwarder,
        prices: &RouterPrices,
        seed: u64,
    ) -> Result<Forwarder, PrepareError> {
        let Installation { name, program, state, .. } = self.installation.clone();
        let installation = Installation { name, program, state, ..before.installation().clone() };
        before.prepare_instead(Program::clone(&self.program), installation, prices, seed)
    }
}

/// A file's name without folder and extension.
fn stem(path: &str) -> &str {
    Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or(path)
}

/// Bytes as pairs of hexadecimal digits: what [`hexadecimal`] reads.
pub fn digits(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a text takes all");
    }
    text
}

/// Bytes from hexadecimal digits; white space is ignored.
///
/// # Errors
/// If there are other characters, or half a byte.
pub fn hexadecimal(text: &str) -> Result<Vec<u8>, ForwarderFault> {
    let digits = text.chars().filter(|char| !char.is_ascii_whitespace());
    let digits = digits.map(|char| char.to_digit(16).map(|digit| digit as u8));
    match digits.collect::<Option<Vec<u8>>>() {
        Some(digits) if digits.len() % 2 == 0 => {
            Ok(digits.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect())
        }
        _ => Err(fault("data", "write bytes as pairs of hexadecimal digits, such as \"00 2e\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Mac;
    use crate::router_plan::RouterPort;

    fn router() -> Router {
        let port = |name: &str, place: u16| RouterPort {
            name: name.into(),
            place,
            mac: Mac::of_router(place),
            mtu: 1500,
            addresses: vec![format!("10.0.{place}.1/24").parse().unwrap()],
            control: None,
        };
        Router { name: "r".into(), ports: vec![port("west", 0), port("east", 1)], ..Router::default() }
    }

    fn read(written: WrittenForwarder) -> Result<ForwarderRequest, String> {
        let object = written.object(Path::new("/nowhere")).map_err(|fault| fault.to_string())?;
        written.read(&router(), &object).map_err(|fault| fault.to_string())
    }

    fn monitor() -> WrittenForwarder {
        WrittenForwarder { program: "syn-monitor".into(), ..WrittenForwarder::default() }
    }

    /// One whose packets go up to a process.
    fn process() -> WrittenForwarder {
        let text = |text: &str| Some(text.to_owned());
        let (packets, cycles) = (text("10"), text("10"));
        WrittenForwarder { level: text("control"), name: text("nat"), packets, cycles, ..monitor() }
    }

    #[test]
    fn what_goes_up_can_be_less_and_need_not_go_on() {
        let text = |text: &str| Some(text.to_owned());
        let (within, otherwise) = (text("2 s"), text("drop"));
        let request = read(WrittenForwarder { mark: text("7"), within, otherwise, ..process() }).unwrap();
        assert_eq!(request.installation.mark, Some(7));
        let limits = request.above.unwrap().limits();
        let (second, four) = (longwire_units::Nanos::from_secs(2), longwire_units::Nanos::from_secs(4));
        assert_eq!((limits.answer_within, limits.patience, limits.drops), (second, four, true));
        let usual = read(process()).unwrap().above.unwrap().limits();
        // Ten packets a second, there and back at 400 ns each, are set aside for it.
        assert_eq!(usual, longwire_punt::Limits { reserved: 4000, ..Default::default() });
    }

    #[test]
    fn omitted_fields_have_defaults() {
        let request = read(monitor()).unwrap();
        let [name, program] = ["syn-monitor".into(), "syn-monitor".into()];
        let expected = Installation { name, program, threads: 1, ..Installation::default() };
        assert_eq!((request.installation, request.data), (expected, None));
    }

    #[test]
    fn every_field_is_read() {
        let text = |text: &str| Some(text.to_owned());
        let key = WrittenKey {
            source: text("10.9.9.9/8"),
            destination: text("10.0.1.9"),
            destination_port: text("80"),
            protocol: text("tcp"),
            ..WrittenKey::default()
        };
        let written = WrittenForwarder {
            name: text("web"),
            key: Some(key),
            state: text("12 B"),
            data: text("00000000 05000000 00000000"),
            via: text("10.0.1.7"),
            queue: text("3"),
            level: text("data-path"),
            ..monitor()
        };
        let request = read(written).unwrap();
        assert_eq!(request.installation.key.to_string(), "10.0.0.0/8 > 10.0.1.9:80 tcp");
        assert_eq!(request.installation.way, Some(NextHop::via(1, [10, 0, 1, 7].into())));
        assert_eq!((request.installation.state, request.installation.queue), (Some(12), Some(3)));
        let forwarder = request.prepare(&RouterPrices::default(), 1).unwrap();
        assert_eq!(forwarder.state().get(), [0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn names_are_safe_everywhere() {
        let named = |name: &str| read(WrittenForwarder { name: Some(name.into()), ..monitor() });
        assert_eq!(&*named("syn:80.b_c-d").unwrap().installation.name, "syn:80.b_c-d");
        for bad in ["", "a\nb", "a\u{1b}[31mb", "a b", "-a", &"x".repeat(65)] {
            let error = named(bad).unwrap_err();
            assert!(error.starts_with("name: \"") && !error.contains(char::is_control), "{error:?}");
        }
        let up = |name: &str| {
            let text = |text: &str| Some(text.to_owned());
            let (level, packets, cycles) = (text("control"), text("1"), text("1"));
            read(WrittenForwarder { name: text(name), level, packets, cycles, ..WrittenForwarder::default() })
        };
        assert_eq!(&*up("monitor").unwrap().installation.name, "monitor");
        for bad in ["", "a\nb", "a\u{1b}b", &"x".repeat(33)] {
            assert!(up(bad).unwrap_err().starts_with("name: "), "{bad:?}");
        }
    }

    #[test]
    fn the_programs_of_arrays_are_named_when_a_program_is_installed() {
        let object = include_bytes!("../../program/tests/xdp/chain.o");
        let with = |maps: &[(&str, &str)]| {
            let maps = maps.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
            let (program, function) = ("chain.o".to_owned(), Some("first".to_owned()));
            let written = WrittenForwarder { program, function, maps, ..WrittenForwarder::default() };
            let made = written.program(object).map_err(|fault| fault.to_string())?;
            let reached = made.code.programs().filter_map(|(_, start)| made.function(start));
            Ok::<_, String>(reached.map(|function| function.name.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(with(&[]).unwrap(), ["version4", "version6", "again"]);
        assert_eq!(with(&[("parsers", ",, again")]).unwrap(), ["again"]);
        for (maps, wanted) in [
            (&[("parsers", "again,other")][..], "there is no program other; there are version4, version6"),
            (&[("counts", "again")], "maps: \"again\" is not a number of entries"),
            (&[("parsers", ",,,,,,,,again")], "map parsers: entry 8 is beyond its last"),
        ] {
            let message = with(maps).unwrap_err();
            assert!(message.contains(wanted), "{message}");
        }
    }

    #[test]
    fn the_entries_of_maps_are_named_when_a_program_is_installed() {
        let object = include_bytes!("../../program/tests/objects/unsized.o");
        let with = |maps: &[(&str, &str)]| {
            let maps = maps.iter().map(|&(name, entries)| (name.to_owned(), entries.to_owned())).collect();
            let program = "unsized.o".to_owned();
            let written = WrittenForwarder { program, maps, ..WrittenForwarder::default() };
            let made = written.program(object).map_err(|fault| fault.to_string())?;
            Ok::<_, String>(made.maps.iter().map(|map| map.max_entries).collect::<Vec<_>>())
        };
        assert_eq!(with(&[("counts", "64"), ("cpus", "0x8")]).unwrap(), [64, 8, 0]);
        for (maps, wanted) in [
            (&[("cpus", "8")][..], "map counts has no max_entries: say how many entries it has"),
            (&[("counts", "64"), ("cpus", "0")], "map cpus has no max_entries"),
            (&[("counts", "some")], "maps: \"some\" is not a number of entries"),
            (&[("counts", "-1")], "maps: \"-1\" is not a number of entries"),
            (
                &[("counts", "999999999")],
                "maps: map counts: max_entries is 999999999; it has to be 1 to 134217728",
            ),
            (
                &[("count", "8")],
                "maps: there is no map count whose number of entries can be set; there are counts, cpus",
            ),
        ] {
            let error = with(maps).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn entries_of_devmaps_lead_through_programs_that_are_named() {
        let object = include_bytes!("../../program/tests/objects/exits.o");
        let with = |exits: &[&str], map: &str, text: &str| {
            let (program, function) = ("exits.o".to_owned(), Some("redirect".to_owned()));
            let exits = exits.iter().map(|&name| name.to_owned()).collect();
            let maps = [(map.to_owned(), text.to_owned())].into();
            let written = WrittenForwarder { program, function, exits, maps, ..WrittenForwarder::default() };
            let program = written.program(object).map_err(|fault| fault.to_string())?;
            let forwarder =
                Forwarder::prepare(program, Installation::default(), &RouterPrices::default(), 1).unwrap();
            let map = forwarder.maps().named(map).unwrap();
            let lead =
                |key| map.target(key).map(|target| (target.first, map.exit_of(target).map(str::to_owned)));
            Ok::<_, String>((0..3).filter_map(lead).collect::<Vec<_>>())
        };
        let to = |first, exit: &str| (first, Some(exit.to_owned()).filter(|exit| !exit.is_empty()));
        let exits = ["refuse", "onward", "stamp"];
        assert_eq!(with(&exits, "ports", "0:, 2:stamp").unwrap(), [to(0, ""), to(2, "stamp")]);
        assert_eq!(with(&exits, "processors", "192:onward").unwrap(), [to(192, "onward")]);
        assert_eq!(with(&[], "plain", "3:,2,1:").unwrap(), [to(3, ""), to(2, ""), to(1, "")]);
        for (exits, map, text, wanted) in [
            (
                &exits[..],
                "ports",
                "1:onward",
                "maps: an entry of map ports can't lead through program onward",
            ),
            (&exits, "plain", "1:stamp", "maps: an entry of map plain can't lead through program stamp"),
            (&exits, "ports", "x:stamp", "maps: \"x:stamp\" leads nowhere: write NUMBER:PROGRAM"),
            (&exits, "ports", "1:,1:,1:,1:,1:", "map ports: entry 4 is beyond its last"),
            (&exits, "stamp", "1:", "maps: stamp is no map whose entries lead somewhere"),
            (&["redirect"], "ports", "1:", "exits: program redirect of section xdp is none that an entry"),
        ] {
            let error = with(exits, map, text).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn constants_are_set_before_a_program_is_verified() {
        let object = include_bytes!("../../program/tests/objects/constants.o");
        let with = |name: &str, value: &str| {
            let constants = [(name.to_owned(), value.to_owned())].into();
            let function = Some("counted".to_owned());
            let program = "constants.o".to_owned();
            let written = WrittenForwarder { program, function, constants, ..WrittenForwarder::default() };
            let request = written.read(&router(), object).map_err(|fault| fault.to_string())?;
            let refused = |error| written.refused(&error).to_string();
            let forwarder = request.prepare(&RouterPrices::default(), 1).map_err(refused)?;
            Ok::<_, String>(forwarder.maps().named(".rodata").unwrap().get(&[0; 4], 0).unwrap())
        };
        assert_eq!(with("chosen", "7").unwrap()[..4], [7, 0, 0, 0]);
        assert_eq!(with("chosen", "0x2").unwrap()[..4], [2, 0, 0, 0]);
        assert_eq!(with("before", "-5").unwrap()[4..6], [0xfb, 0xff]);
        assert_eq!(with("steps", "1, 0x202,-1").unwrap()[8..14], [1, 0, 2, 2, 0xff, 0xff]);
        // Beyond the array; a branch that is taken now; what can't be.
        assert!(with("chosen", "8").unwrap_err().contains("constants.o: program counted, instruction "));
        assert!(with("beyond", "1").unwrap_err().contains("constants.o: program counted, instruction "));
        for (name, value, wanted) in [
            ("chosen", "many", "constants: \"many\" is not a whole number"),
            (
                "chosen",
                "4294967296",
                "constants: constant chosen is from -2147483648 to 4294967295, not 4294967296",
            ),
            (
                "chosn",
                "1",
                "constants: there is no constant chosn that could be set (const volatile, a whole number or \
                 an array of up to 256); there are before, beyond, chosen, steps",
            ),
            ("counts", "1", "constants: there is no constant counts"),
            ("pair", "1,2", "constants: there is no constant pair"),
            ("chosen", "1,2", "constants: constant chosen is 1 whole number, not 2: write as many"),
            ("steps", "1,2", "constants: constant steps is 3 whole numbers, not 2: write as many"),
            ("steps", "1,2,70000", "constants: constant steps is from -32768 to 65535, not 70000"),
            ("steps", "1,,3", "constants: \"\" is not a whole number"),
        ] {
            let error = with(name, value).unwrap_err();
            assert!(error.starts_with(wanted), "{error}");
        }
    }

    #[test]
    fn preparation_errors_name_the_key() {
        let refused = |written: WrittenForwarder| {
            let request = read(written.clone()).unwrap();
            written.refused(&request.prepare(&RouterPrices::default(), 1).unwrap_err()).to_string()
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            refused(WrittenForwarder { data: text("ffff"), ..monitor() }),
            "data: it is 2 bytes, which is then the size of the state; the program uses 4 bytes of it: write \
             all of them, 4096 at most"
        );
        assert_eq!(
            refused(WrittenForwarder { state: text("2 B"), ..monitor() }),
            "state: the state is 2 bytes; the program uses 4, and 4096 are the most"
        );
        // A program that the verifier refuses is named by its object.
        let mut request = read(monitor()).unwrap();
        let code = assemble("r0 = *(u8 *)(r1 + 0)\nexit").unwrap();
        request.program = Arc::new(Program::new("peek", code, []));
        let written = WrittenForwarder { program: "build/mine.o".into(), ..WrittenForwarder::default() };
        let told = written.refused(&request.prepare(&RouterPrices::default(), 1).unwrap_err()).to_string();
        assert!(told.starts_with("program: build/mine.o: program peek, instruction 0"), "{told}");
    }

    #[test]
    fn errors_name_the_field() {
        let text = |text: &str| Some(text.to_owned());
        for (written, wanted) in [
            (
                WrittenForwarder { program: "none.o".into(), ..monitor() },
                "program: /nowhere/none.o: No such file",
            ),
            (
                WrittenForwarder { program: "syn-montor".into(), ..monitor() },
                "program: /nowhere/syn-montor: No such file or directory (os error 2); did you mean \
                 \"syn-monitor\"? Or name",
            ),
            (WrittenForwarder { function: text("filter"), ..monitor() }, "program: syn-monitor: "),
            (
                WrittenForwarder { level: text("pentium"), ..monitor() },
                "where: \"pentium\" is not one of data-path, slow-path, control",
            ),
            (WrittenForwarder { state: text("many"), ..monitor() }, "state: "),
            (WrittenForwarder { data: text("0"), ..monitor() }, "data: write bytes as pairs"),
            (
                WrittenForwarder { data: text("00"), state: text("12 B"), ..monitor() },
                "data: it has 1 byte, and",
            ),
            (
                WrittenForwarder { port: text("south"), ..monitor() },
                "port: the router has no port \"south\": there are west, east",
            ),
            (
                WrittenForwarder { port: text("wset"), ..monitor() },
                "port: the router has no port \"wset\": did you mean \"west\"?",
            ),
            (
                WrittenForwarder { links: vec!["wire".into()], ..monitor() },
                "links: no link \"wire\" that programs may name begins at a port of \"r\": there are none",
            ),
            (WrittenForwarder { via: text("10.9.0.1"), ..monitor() }, "via: 10.9.0.1 is in none of"),
            (
                WrittenForwarder { via: text("10.0.1.1"), ..monitor() },
                "via: 10.0.1.1 is the router's own address at",
            ),
            (
                WrittenForwarder { via: text("10.0.1.1"), port: text("west"), ..monitor() },
                "via: 10.0.1.1 is the router's own address at",
            ),
            (
                WrittenForwarder { queue: text("255"), ..monitor() },
                "queue: \"255\" is out of range; write a whole number from 0 to 254",
            ),
            (WrittenForwarder { mark: text("5"), ..monitor() }, "mark: the data path has no such setting"),
            (
                WrittenForwarder { mark: text("-1"), ..process() },
                "mark: \"-1\" is out of range; write a whole number from 0 to",
            ),
            (
                WrittenForwarder { within: text("1 us"), ..process() },
                "within: \"1 us\" is out of range; write a time from 1 ms to 10 s",
            ),
            (
                WrittenForwarder { otherwise: text("keep"), ..process() },
                "otherwise: \"keep\" is not one of pass, drop",
            ),
        ] {
            let error = read(written).unwrap_err();
            assert!(error.starts_with(wanted), "{error}");
        }
    }

    #[test]
    fn errors_name_the_field_of_a_key() {
        let text = |text: &str| Some(text.to_owned());
        let key = |key: WrittenKey| WrittenForwarder { key: Some(key), ..monitor() };
        for (written, wanted) in [
            (
                key(WrittenKey { protocol: text("ftp"), ..WrittenKey::default() }),
                "key.protocol: \"ftp\" is not a protocol",
            ),
            (
                key(WrittenKey { source_port: text("70000"), ..WrittenKey::default() }),
                "key.source-port: \"70000\" is not a port",
            ),
            (
                key(WrittenKey { source: text("10.0.1.0/33"), ..WrittenKey::default() }),
                "key.source: \"10.0.1.0/33\" has no valid prefix length",
            ),
            (
                key(WrittenKey { destination: text("0.0.0.0/0"), ..WrittenKey::default() }),
                "key.destination: it has all addresses: leave it out",
            ),
            (
                key(WrittenKey { protocol: text("icmp"), source_port: text("7"), ..WrittenKey::default() }),
                "key: the key names a port, which protocol 1 has not",
            ),
        ] {
            let error = read(written).unwrap_err();
            assert!(error.starts_with(wanted), "{error}");
        }
    }
}
