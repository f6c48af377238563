//! Changes of a traffic source, from text: for events, the command line and the API alike.

use crate::finding::name_hint;
use crate::implied::bare;
use crate::places::Places;
use crate::source::Source;
use longwire_block::Parsed;
use longwire_block::change::{Blocks, Edit};
use longwire_block::flow::{Aim, FLOW};
use longwire_block::{ParamKind, Spec, SpecError, Value, Values};
use longwire_random::process;
use longwire_units::{Bytes, Nanos, Rate};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

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

/// A setting that a source can't have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what}{}{fix}", if fix.is_empty() { "" } else { "; " })]
pub struct SourceFault {
    /// The setting.
    pub key: String,
    /// The fault.
    pub what: String,
    /// The fix.
    pub fix: String,
}

impl SourceFault {
    fn new(key: &str, what: impl Into<String>, fix: impl Into<String>) -> Self {
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

    /// The fault if a source can't send at this rate.
    fn of_rate(rate: Rate) -> Option<Self> {
        let can_not = rate == Rate::UNLIMITED;
        can_not.then(|| Self::new(RATE, format!("a source can't send at {rate}"), "write \"10 Mbit/s\""))
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
    fn aim(&self, name: &str, given: Option<IpAddr>) -> Result<(Value, IpAddr), SourceFault> {
        let ports = self.places.ports;
        let Some(place) = ports.iter().position(|port| &*port.name == name) else {
            let names: Vec<_> = ports.iter().map(|port| &*port.name).take(20).collect();
            let what = format!("there is no host or port \"{}\"", name.escape_debug());
            return Err(SourceFault::new("to", what, format!("there are {}", names.join(", "))));
        };
        let (own, port) = (&ports[usize::from(self.from)], &ports[place]);
        let apart = own.segment != port.segment && self.places.routers.is_empty();
        let first =
            port.addresses.iter().map(|net| net.address).find(|to| to.is_ipv4() == self.address.is_ipv4());
        let none = || SourceFault::new("to", "it has no address of the source's family", "add destination");
        if place == usize::from(self.from) || apart {
            let what = format!("nothing leads from \"{}\" to \"{name}\"", own.name);
            return Err(SourceFault::new("to", what, "name one that bridges and links join to it"));
        }
        let address = given.or(first).ok_or_else(none)?;
        let mac = self.places.first_hop((self.from, place as u16), address).ok_or_else(|| {
            SourceFault::new("to", "its first hop is not clear: there is no router, or there are several", "")
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
) -> Result<Vec<Edit>, Vec<SourceFault>> {
    let (course, model): (Vec<_>, Vec<_>) =
        pairs.iter().partition(|(key, _)| FLOW.params.iter().any(|param| param.name == *key));
    let model = (!model.is_empty()).then(|| model_edit(now, &model, shortest_frame(site.address), folder));
    let course = (!course.is_empty()).then(|| course_edit(&course, site));
    let (edits, faults): (Vec<_>, Vec<_>) = model.into_iter().chain(course).partition(Result::is_ok);
    if faults.is_empty() {
        return Ok(edits.into_iter().flatten().collect());
    }
    Err(faults.into_iter().filter_map(Result::err).flatten().collect())
}

/// Edits of settings that every source has.
fn course_edit(pairs: &[(&str, &str)], site: &SourceSite<'_>) -> Result<Edit, Vec<SourceFault>> {
    let mut given: Vec<(usize, Value)> = Vec::new();
    let mut faults = Vec::new();
    for (at, param) in FLOW.params.iter().enumerate() {
        let Some((key, text)) = pairs.iter().find(|(key, _)| *key == param.name) else { continue };
        if *key == "to" {
            let given_address = pairs.iter().find(|(key, _)| *key == "destination");
            match site.aim(text, given_address.and_then(|(_, text)| text.trim().parse().ok())) {
                Ok((aim, address)) => {
                    given.push((at, aim));
                    if given_address.is_none() {
                        let address = Parsed { text: address.to_string().into(), value: Arc::new(address) };
                        given.push((at + 1, Value::Parsed(address)));
                    }
                }
                Err(fault) => faults.push(fault),
            }
            continue;
        }
        match course_value(key, text, site.address) {
            Ok(value) => given.push((at, value)),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(Edit { spec: &FLOW, given, fresh: None }) } else { Err(faults) }
}

/// The value of a key of [`FLOW`] except `to`, for a source with this address.
pub(crate) fn course_value(key: &str, text: &str, address: IpAddr) -> Result<Value, SourceFault> {
    let known = FLOW.params.iter().find(|param| param.name == key);
    let param = known.ok_or_else(|| SourceFault::new(key, "a source has no such key", ""))?;
    let value = param.read(text).map_err(|error| SourceFault::new(key, bare(&error), ""))?;
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
    wrong.map_or(Ok(value), |what| Err(SourceFault::new(key, what, "")))
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
) -> Result<Edit, Vec<SourceFault>> {
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
        let at = place_of(spec, key).ok_or_else(|| SourceFault::no_such_key(spec.kind, key))?;
        let wrong = |error: SpecError| SourceFault::new(key, bare(&error), "");
        let value = spec.params[at].read_in(text, folder).map_err(wrong)?;
        check(key, &value, shortest)?;
        Ok((at, value))
    });
    let (read, faults): (Vec<_>, Vec<_>) = read.partition(Result::is_ok);
    if !faults.is_empty() {
        return Err(faults.into_iter().filter_map(Result::err).collect());
    }
    let mut given: Vec<(usize, Value)> = read.into_iter().flatten().collect();
    if let Some((own, values)) = own.filter(|(own, _)| !spec.is(own)) {
        for (at, param) in spec.params.iter().enumerate() {
            let kept = place_of(own, param.name).map(|of_own| values.at(of_own));
            // Only some models have an interval.
            let kept = kept.filter(|kept| !is_interval(param.kind, kept) || has_interval(spec));
            if let Some(kept) = kept.filter(|_| given.iter().all(|(other, _)| *other != at)) {
                given.push((at, kept));
            }
        }
    }
    // Values without a text form are put in afterwards.
    let texts: Vec<(&str, String)> = given
        .iter()
        .map(|(at, value)| {
            let param = &spec.params[*at];
            (param.name, if is_interval(param.kind, value) { "0".into() } else { value.print(param.kind) })
        })
        .collect();
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
fn interval(spec: &Spec, text: &str, pairs: &[(&str, &str)]) -> Result<(usize, Value), SourceFault> {
    let at = place_of(spec, RATE).filter(|_| has_interval(spec));
    let at = at.ok_or_else(|| {
        SourceFault::new(INTERVAL, format!("the model {} has no interval", spec.kind), "remove it")
    })?;
    if pairs.iter().any(|(key, _)| *key == RATE) {
        let what = "a source has either a rate or an interval";
        return Err(SourceFault::new(INTERVAL, what, "remove one of the two"));
    }
    match text.parse::<Nanos>() {
        Ok(time) if (1..1 << 63).contains(&time.0) => Ok((at, Value::Time(time))),
        Ok(_) => Err(SourceFault::new(INTERVAL, "frames can't be 0 apart", "write one such as \"1 ms\"")),
        Err(error) => Err(SourceFault::new(INTERVAL, error.to_string(), "")),
    }
}

fn check(key: &str, value: &Value, shortest: Bytes) -> Result<(), SourceFault> {
    match value {
        Value::Rate(rate) => SourceFault::of_rate(*rate).map_or(Ok(()), Err),
        Value::Bytes(size) if !(shortest..=LONGEST_FRAME).contains(size) => {
            let what = format!("{size} is out of range: {shortest} to {LONGEST_FRAME}");
            Err(SourceFault::new(key, what, ""))
        }
        _ => Ok(()),
    }
}

fn model_of(name: &str) -> Result<&'static Spec, SourceFault> {
    process::spec(name).ok_or_else(|| {
        let known: Vec<_> = process::SPECS.iter().map(|spec| spec.kind).collect();
        SourceFault::new(MODEL, format!("there is no model \"{}\"", name.escape_debug()), {
            format!("there are {}", known.join(", "))
        })
    })
}

/// The fault of a missing parameter of another model.
fn missing(error: &SpecError) -> SourceFault {
    match error {
        SpecError::Missing { kind, name: RATE, .. } if ["cbr", "poisson"].contains(kind) => SourceFault::new(
            RATE,
            "a source has either a rate or an interval",
            "write rate = \"10 Mbit/s\" or interval = \"1 ms\"",
        ),
        SpecError::Missing { kind, name, help, .. } => SourceFault::new(
            name,
            format!("the model {kind} needs it: {help}"),
            format!("add {name} = \"…\""),
        ),
        other => SourceFault::new(MODEL, other.to_string(), ""),
    }
}

fn place_of(spec: &Spec, key: &str) -> Option<usize> {
    spec.params.iter().position(|param| param.name == key)
}
