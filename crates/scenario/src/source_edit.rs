//! What new settings mean for a traffic source as it is: in the scenario's events and at the control socket alike.

use crate::resolve::bare;
use longwire_block::{Spec, SpecError, Value, Values};
use longwire_engine::{Blocks, Edit};
use longwire_random::process;
use longwire_units::{Bytes, Rate};
use std::net::IpAddr;
use std::path::Path;
use thiserror::Error;

/// The key that names a source's model.
pub(crate) const MODEL: &str = "model";
/// The shortest frames of IPv4 and IPv6: headers and what tells the packets of a source apart.
const SHORTEST: [Bytes; 2] = [Bytes(60), Bytes(80)];
/// The longest frame: the longest IPv4 packet.
pub(crate) const LONGEST_FRAME: Bytes = Bytes(65_549);

/// A setting that a source can't have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what}{}{mend}", if mend.is_empty() { "" } else { "; " })]
pub struct SourceFault {
    /// The setting.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What would do.
    pub mend: String,
}

impl SourceFault {
    fn new(key: &str, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { key: key.into(), what: what.into(), mend: mend.into() }
    }

    /// A key that a model has not.
    pub(crate) fn no_such_key(model: &str, key: &str) -> Self {
        let having = |spec: &&Spec| spec.params.iter().any(|param| param.name == key);
        let kinds: Vec<_> = process::SPECS.iter().filter(having).map(|spec| spec.kind).collect();
        let mend = match kinds.is_empty() {
            true => format!("there are {}", source_keys().join(", ")),
            false => format!("remove it, or write model = \"{}\"", kinds.join("\" or \"")),
        };
        Self::new(key, format!("the model {model} has no {key}"), mend)
    }

    /// A rate that a source can't send at, if it is one.
    pub(crate) fn of_rate(rate: Rate) -> Option<Self> {
        let can_not = rate == Rate::UNLIMITED || rate == Rate::STALLED;
        can_not.then(|| Self::new("rate", format!("a source can't send at {rate}"), "write \"10 Mbit/s\""))
    }
}

/// The shortest frame of a source with this address.
pub(crate) fn shortest_frame(address: IpAddr) -> Bytes {
    SHORTEST[usize::from(address.is_ipv6())]
}

/// The keys of a traffic source that say how its packets come.
pub(crate) fn source_keys() -> Vec<&'static str> {
    let mut keys = vec![MODEL];
    for param in process::SPECS.iter().flat_map(|spec| spec.params) {
        if !keys.contains(&param.name) {
            keys.push(param.name);
        }
    }
    keys
}

/// What `pairs` of key and text mean for a source that is made of `now` and whose frames have `shortest` bytes at least. The
/// key `model` is another model, which keeps what both have; files are looked for in `folder`.
///
/// # Errors
/// The setting that can't be.
pub fn source_edit(
    now: &Blocks,
    pairs: &[(&str, &str)],
    shortest: Bytes,
    folder: &Path,
) -> Result<Edit, SourceFault> {
    let (own, values) = now.first().ok_or_else(|| SourceFault::new(MODEL, "the source has no model", ""))?;
    let spec = match pairs.iter().find(|(key, _)| *key == MODEL) {
        Some((_, model)) => model_of(model)?,
        None => own,
    };
    let (mut given, mut texts) = (Vec::new(), Vec::new());
    for &(key, text) in pairs.iter().filter(|(key, _)| *key != MODEL) {
        let at = place_of(spec, key).ok_or_else(|| SourceFault::no_such_key(spec.kind, key))?;
        let wrong = |error: SpecError| SourceFault::new(key, bare(&error), "");
        let value = spec.params[at].read_in(text, folder).map_err(wrong)?;
        check(key, &value, shortest)?;
        given.push((at, value));
        texts.push((spec.params[at].name, text.to_owned()));
    }
    if !spec.is(own) {
        for (at, param) in spec.params.iter().enumerate() {
            let kept = place_of(own, param.name).map(|of_own| values.at(of_own));
            if let Some(kept) = kept.filter(|_| given.iter().all(|(other, _)| *other != at)) {
                texts.push((param.name, kept.print(param.kind)));
                given.push((at, kept));
            }
        }
    }
    let texts: Vec<_> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let fresh = Values::read_in(spec, &texts, folder);
    let edit = Edit { spec, given, fresh: fresh.as_ref().ok().cloned() };
    match fresh {
        Err(error) if edit.of_same_kind(now).is_none() => Err(missing(&error)),
        _ => Ok(edit),
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

/// What another model needs.
fn missing(error: &SpecError) -> SourceFault {
    match error {
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
