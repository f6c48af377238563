//! Traffic sources of the checked plan, and their changes from text: for events, the command line and the API
//! alike.

use crate::address::Mac;
use crate::finding::name_hint;
use crate::link_edit::{all_or_faults, bare};
use crate::plan_nodes::{Places, Port};
use longwire_block::change::{Blocks, Edit};
use longwire_block::flow::{Aim, Course, FLOW};
use longwire_block::{ParamKind, Parsed, Spec, SpecError, Value, Values};
use longwire_random::process::{self, Model};
use longwire_units::{Bytes, Nanos, Rate};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// A traffic source: UDP datagrams that enter by a port.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its name.
    pub name: Box<str>,
    /// Its number in the run, which no other source has had there, except one of its name.
    pub number: u16,
    /// Place of the input port.
    pub in_port: u16,
    /// Place of the destination port.
    pub out_port: u16,
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same family.
    pub destination: IpAddr,
    /// Destination hardware address of its frames: the destination port's, or the first router's.
    pub mac: Mac,
    /// Its model: one of [`longwire_random::process::SPECS`].
    pub spec: &'static Spec,
    /// The model's settings; in `cbr` and `poisson` the (mean) interval replaces the rate if it was given.
    pub values: Values,
    /// Start time.
    pub start: Nanos,
    /// Number of packets; none for no limit.
    pub count: Option<u64>,
    /// Duration from the start; none until the end of the run.
    pub duration: Option<Nanos>,
    /// Whether it sends from its start, rather than when a change enables it.
    pub up: bool,
}

impl Source {
    /// Its model.
    pub fn model(&self) -> Model {
        Model::read(self.spec, &self.values)
    }

    /// Its settings as blocks, for edits: model and flow. `ports` are the plan's.
    pub fn blocks(&self, ports: &[Port]) -> Blocks {
        let port = &ports[usize::from(self.out_port)];
        let course = Course {
            aim: Aim { port: self.out_port, mac: self.mac.0 },
            destination: self.destination,
            packets: self.count.unwrap_or(u64::MAX),
            duration: self.duration.unwrap_or(Nanos::NEVER),
            up: self.up,
        };
        vec![(self.spec, self.values.clone()), (&FLOW, course.values(&port.name))]
    }

    /// Size of its largest frame in bytes, with the Ethernet header, without FCS.
    pub fn size(&self) -> u32 {
        self.model().largest()
    }

    /// Its rate, if it has one, all the time or while on; that of an interval is rounded down.
    pub fn rate(&self) -> Option<Rate> {
        match self.values.at(0) {
            Value::Rate(rate) => Some(rate),
            Value::Time(interval) => {
                let rate = u64::from(self.size()) * 8_000_000_000 / interval.0.max(1);
                Some(Rate(rate.clamp(Rate::MIN.0, Rate::MAX.0)))
            }
            _ => None,
        }
    }

    /// Its packets a second, if it has a rate, while it is on and at its highest; rounded up.
    pub fn packets_per_second(&self) -> Option<u64> {
        let at = |rate: Rate, size: u32| rate.0.div_ceil(u64::from(size.max(1)) * 8);
        if let Value::Time(interval) = self.values.at(0) {
            return Some(1_000_000_000_u64.div_ceil(interval.0.max(1)));
        }
        match (self.model(), self.rate()) {
            (Model::Mmpp { rates, size, .. }, _) => rates.iter().max().map(|&rate| at(rate, size)),
            (_, Some(rate)) if rate != Rate::UNLIMITED => Some(at(rate, self.size())),
            _ => None,
        }
    }
}

/// The key that names a source's model.
pub(crate) const MODEL: &str = "model";
/// The key that may replace the rate.
pub(crate) const INTERVAL: &str = "interval";
/// The parameter that it replaces.
const RATE: &str = "rate";
/// The shortest frames of IPv4 and IPv6: headers and the payload that identifies packets.
const SHORTEST: [Bytes; 2] = [Bytes(60), Bytes(80)];
/// The longest frame: the longest IPv4 packet.
const LONGEST_FRAME: Bytes = Bytes(65_549);

/// A setting that a traffic source or a medium can't have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what}{}{fix}", if fix.is_empty() { "" } else { "; " })]
pub struct KeyFault {
    /// The setting.
    pub key: String,
    /// The fault.
    pub what: String,
    /// The fix.
    pub fix: String,
}

impl KeyFault {
    pub(crate) fn new(key: &str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { key: key.into(), what: what.into(), fix: fix.into() }
    }

    /// A key that a model does not have.
    fn no_such_key(model: &str, key: &str) -> Self {
        let having = |spec: &&Spec| spec.params.iter().any(|param| param.name == key);
        let kinds: Vec<_> = process::SPECS.iter().filter(having).map(|spec| spec.kind).collect();
        let fix = match kinds.is_empty() {
            true => name_hint(key, &source_keys()),
            false => format!("remove it, or write model = \"{}\"", kinds.join("\" or \"")),
        };
        Self::new(key, format!("the model {model} has no {key}"), fix)
    }
}

/// The shortest frame of a source with this address.
pub(crate) fn shortest_frame(address: IpAddr) -> Bytes {
    SHORTEST[usize::from(address.is_ipv6())]
}

/// The specs of a traffic source's changeable settings: its models, and what every source has.
pub fn source_rows() -> impl Iterator<Item = &'static Spec> {
    process::SPECS.iter().chain([&FLOW])
}

/// The changeable keys of a traffic source: model, destination, number of packets.
pub(crate) fn source_keys() -> Vec<&'static str> {
    let mut keys = vec![MODEL, INTERVAL];
    for param in source_rows().flat_map(|spec| spec.params) {
        if !keys.contains(&param.name) {
            keys.push(param.name);
        }
    }
    keys
}

/// A source's surroundings, against which its changes are checked.
#[derive(Debug, Clone, Copy)]
pub struct SourceSite<'p> {
    places: Places<'p>,
    /// Place of the input port.
    from: u16,
    /// Its own address.
    address: IpAddr,
}

impl<'p> SourceSite<'p> {
    /// The surroundings of `source` in a plan.
    pub const fn of(source: &Source, places: Places<'p>) -> Self {
        Self { places, from: source.in_port, address: source.source }
    }

    /// The aim at the host or port of this name, and the destination address: `given`, or its first of the
    /// family.
    fn aim(&self, name: &str, given: Option<IpAddr>) -> Result<(Value, IpAddr), KeyFault> {
        let ports = self.places.ports;
        let Some(place) = ports.iter().position(|port| &*port.name == name) else {
            let names: Vec<_> = ports.iter().map(|port| &*port.name).take(20).collect();
            let what = format!("there is no host or port \"{}\"", name.escape_debug());
            return Err(KeyFault::new("to", what, format!("there are {}", names.join(", "))));
        };
        let (own, port) = (&ports[usize::from(self.from)], &ports[place]);
        let apart = own.segment != port.segment && self.places.routers.is_empty();
        let first =
            port.addresses.iter().map(|net| net.address).find(|to| to.is_ipv4() == self.address.is_ipv4());
        let none = || KeyFault::new("to", "it has no address of the source's family", "add destination");
        if place == usize::from(self.from) || apart {
            let what = format!("nothing leads from \"{}\" to \"{name}\"", own.name);
            return Err(KeyFault::new("to", what, "name one that bridges and links join to it"));
        }
        let address = given.or(first).ok_or_else(none)?;
        let mac = self.places.first_hop((self.from, place as u16), address).ok_or_else(|| {
            KeyFault::new("to", "its first hop is not clear: there is no router, or there are several", "")
        })?;
        Ok((Aim { port: place as u16, mac: mac.0 }.value(name), address))
    }
}

/// The edits that `pairs` of key and text make on a source with the blocks `now`. A new `model` keeps the
/// settings that both have; files are looked up in `folder`.
///
/// # Errors
/// The faulty settings, at least one.
pub fn source_edits(
    now: &Blocks,
    pairs: &[(&str, &str)],
    site: &SourceSite<'_>,
    folder: &Path,
) -> Result<Vec<Edit>, Vec<KeyFault>> {
    let (course, model): (Vec<_>, Vec<_>) =
        pairs.iter().partition(|(key, _)| FLOW.params.iter().any(|param| param.name == *key));
    let model = (!model.is_empty()).then(|| model_edit(now, &model, shortest_frame(site.address), folder));
    let course = (!course.is_empty()).then(|| course_edit(&course, site));
    all_or_faults(model.into_iter().chain(course)).map_err(|faults| faults.concat())
}

/// Edits of settings that every source has.
fn course_edit(pairs: &[(&str, &str)], site: &SourceSite<'_>) -> Result<Edit, Vec<KeyFault>> {
    let text_of = |key: &str| pairs.iter().find(|(other, _)| *other == key).map(|(_, text)| *text);
    let given = FLOW.params.iter().enumerate();
    let given = given.filter_map(|(at, param)| Some((at, param.name, text_of(param.name)?)));
    let read = given.map(|(at, key, text)| -> Result<Vec<(usize, Value)>, KeyFault> {
        if key != "to" {
            return Ok(vec![(at, course_value(key, text, site.address)?)]);
        }
        let destination = text_of("destination");
        let (aim, address) = site.aim(text, destination.and_then(|text| text.trim().parse().ok()))?;
        let mut given = vec![(at, aim)];
        if destination.is_none() {
            let address = Parsed { text: address.to_string().into(), value: Arc::new(address) };
            given.push((at + 1, Value::Parsed(address)));
        }
        Ok(given)
    });
    Ok(Edit { spec: &FLOW, given: all_or_faults(read)?.concat(), fresh: None })
}

/// The value of a key of [`FLOW`] except `to`, for a source with this address.
pub(crate) fn course_value(key: &str, text: &str, address: IpAddr) -> Result<Value, KeyFault> {
    let known = FLOW.params.iter().find(|param| param.name == key);
    let param = known.ok_or_else(|| KeyFault::new(key, "a source has no such key", ""))?;
    let value = param.read(text).map_err(|error| KeyFault::new(key, bare(&error), ""))?;
    let wrong = match (key, &value) {
        ("destination", Value::Parsed(parsed)) => {
            let to = parsed.value.downcast_ref::<IpAddr>();
            let same = to.is_some_and(|to| to.is_ipv4() == address.is_ipv4());
            (!same).then_some("it is of another family than the source's own")
        }
        ("packets", Value::Packets(1..)) | ("for", Value::Waiting(_) | Value::Packets(u64::MAX)) => None,
        ("packets", _) => Some("write a whole number, 1 or more, or \"unlimited\""),
        ("for", _) => Some("write a time such as \"10 s\", or \"unlimited\""),
        _ => None,
    };
    wrong.map_or(Ok(value), |what| Err(KeyFault::new(key, what, "")))
}

/// The edit of a model's settings, for a source with the blocks `now`, or a new one: its default is the first
/// model.
///
/// # Errors
/// The faults, at least one.
pub(crate) fn model_edit(
    now: &Blocks,
    pairs: &[(&str, &str)],
    shortest: Bytes,
    folder: &Path,
) -> Result<Edit, Vec<KeyFault>> {
    let own = now.first();
    let spec = match (pairs.iter().find(|(key, _)| *key == MODEL), own) {
        (Some((_, model)), _) => model_of(model).map_err(|fault| vec![fault])?,
        (None, Some((own, _))) => own,
        (None, None) => &process::SPECS[0],
    };
    let read = pairs.iter().filter(|(key, _)| *key != MODEL).map(|&(key, text)| {
        if key == INTERVAL {
            return interval(spec, text, pairs);
        }
        let at = spec.place(key).ok_or_else(|| KeyFault::no_such_key(spec.kind, key))?;
        let wrong = |error: SpecError| KeyFault::new(key, bare(&error), "");
        let value = spec.params[at].read_in(text, folder).map_err(wrong)?;
        check(key, &value, shortest)?;
        Ok((at, value))
    });
    let mut given = all_or_faults(read)?;
    if let Some((own, values)) = own.filter(|(own, _)| !spec.is(own)) {
        for (at, param) in spec.params.iter().enumerate() {
            let kept = own.place(param.name).map(|of_own| values.at(of_own));
            // Only some models have an interval.
            let kept = kept.filter(|kept| !is_interval(param.kind, kept) || has_interval(spec));
            if let Some(kept) = kept.filter(|_| given.iter().all(|(other, _)| *other != at)) {
                given.push((at, kept));
            }
        }
    }
    // Values without a text form are put in afterwards.
    let texts = given.iter().map(|(at, value)| {
        let param = &spec.params[*at];
        (param.name, if is_interval(param.kind, value) { "0".into() } else { value.print(param.kind) })
    });
    let texts: Vec<(&str, String)> = texts.collect();
    let texts: Vec<_> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let fresh = Values::read_in(spec, &texts, folder);
    let whole = fresh.as_ref().ok().map(|fresh| {
        given.iter().fold(fresh.clone(), |fresh, (at, value)| fresh.replaced(*at, value.clone()))
    });
    let edit = Edit { spec, given, fresh: whole };
    match fresh {
        Err(error) if edit.of_same_kind(now).is_none() => Err(vec![missing(&error)]),
        _ => Ok(edit),
    }
}

/// Whether a value is an interval in place of a rate.
pub(crate) fn is_interval(kind: ParamKind, value: &Value) -> bool {
    matches!((kind, value), (ParamKind::Rate, Value::Time(_)))
}

fn has_interval(spec: &Spec) -> bool {
    ["cbr", "poisson"].contains(&spec.kind)
}

/// The interval, in the place of the rate.
fn interval(spec: &Spec, text: &str, pairs: &[(&str, &str)]) -> Result<(usize, Value), KeyFault> {
    let at = spec.place(RATE).filter(|_| has_interval(spec));
    let at = at.ok_or_else(|| {
        KeyFault::new(INTERVAL, format!("the model {} has no interval", spec.kind), "remove it")
    })?;
    if pairs.iter().any(|(key, _)| *key == RATE) {
        let what = "a source has either a rate or an interval";
        return Err(KeyFault::new(INTERVAL, what, "remove one of the two"));
    }
    match text.parse::<Nanos>() {
        Ok(time) if (1..1 << 63).contains(&time.0) => Ok((at, Value::Time(time))),
        Ok(_) => Err(KeyFault::new(INTERVAL, "frames can't be 0 apart", "write one such as \"1 ms\"")),
        Err(error) => Err(KeyFault::new(INTERVAL, error.to_string(), "")),
    }
}

fn check(key: &str, value: &Value, shortest: Bytes) -> Result<(), KeyFault> {
    match value {
        Value::Rate(Rate::UNLIMITED) => {
            Err(KeyFault::new(RATE, "a source can't send at unlimited", "write \"10 Mbit/s\""))
        }
        Value::Bytes(size) if !(shortest..=LONGEST_FRAME).contains(size) => {
            let what = format!("{size} is out of range: {shortest} to {LONGEST_FRAME}");
            Err(KeyFault::new(key, what, ""))
        }
        _ => Ok(()),
    }
}

fn model_of(name: &str) -> Result<&'static Spec, KeyFault> {
    process::spec(name).ok_or_else(|| {
        let known: Vec<_> = process::SPECS.iter().map(|spec| spec.kind).collect();
        let what = format!("there is no model \"{}\"", name.escape_debug());
        KeyFault::new(MODEL, what, format!("there are {}", known.join(", ")))
    })
}

/// The fault of a missing parameter of another model.
fn missing(error: &SpecError) -> KeyFault {
    match error {
        SpecError::Missing { kind, name: RATE, .. } if ["cbr", "poisson"].contains(kind) => KeyFault::new(
            RATE,
            "a source has either a rate or an interval",
            "write rate = \"10 Mbit/s\" or interval = \"1 ms\"",
        ),
        SpecError::Missing { kind, name, help, .. } => {
            KeyFault::new(name, format!("the model {kind} needs it: {help}"), format!("add {name} = \"…\""))
        }
        other => KeyFault::new(MODEL, other.to_string(), ""),
    }
}
