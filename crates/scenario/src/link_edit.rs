//! What new settings mean for a link as it is: in the scenario's events and at the control socket alike.

use crate::finding::suggestion;
use crate::meant::{bare, block_meant, kind_hint, near, param_meant, removal_meant};
use longwire_block::change::{Blocks, Edit};
use longwire_block::{Spec, SpecError, Value, Values};
use longwire_link::{NONE, without};
use std::path::Path;

/// What is asked of the block that a link has for a key.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The key.
    pub key: &'a str,
    /// The kind that the block is to be of, if that is said.
    pub kind: Option<&'a str>,
    /// Parameters, none for the one that a mere value sets, and texts.
    pub params: &'a [(Option<&'a str>, &'a str)],
}

/// Why a link's block can't be that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkFault {
    /// Its subject.
    pub about: About,
    /// The fault.
    pub what: String,
    /// The fix; may be empty.
    pub fix: String,
}

/// The subject of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// The kind.
    Kind,
    /// The parameter at this place of what is asked, and what it is called in errors: the key if the first of
    /// the block, else `key.name`.
    Param(usize, &'static str, Option<&'static str>),
    /// All of it.
    Whole,
}

/// What is asked of one block means this for a link that is made of `now`, with blocks of `registry`. A kind
/// that needs a setting which is not given keeps that of the link's own block, if that has one of the name:
/// `jitter = "3 ms"` on a link with a delay. Files are looked for in `folder`.
///
/// # Errors
/// What can't be, and the fix.
pub fn link_edit(
    registry: &[&'static Spec],
    now: &Blocks,
    asked: Asked<'_>,
    folder: &Path,
) -> Result<Edit, LinkFault> {
    let own = now.iter().find(|(spec, _)| spec.key == asked.key);
    let spec = match asked.kind {
        Some(kind) => of_kind(registry, asked.key, kind)?,
        None => {
            let names: Vec<_> = asked.params.iter().map(|(name, _)| *name).collect();
            let unknown = || fault(About::Whole, "no block is registered for it", "remove it");
            block_meant(registry, own.map(|(spec, _)| *spec), asked.key, &names).ok_or_else(unknown)?
        }
    };
    let (mut given, mut texts) = (Vec::new(), Vec::new());
    for (number, (name, text)) in asked.params.iter().enumerate() {
        if spec.params.is_empty() {
            let what = format!("\"none\" takes {} away, parameters and all", asked.key);
            return Err(fault(About::Param(number, spec.key, None), what, "leave one of the two out"));
        }
        let at = param_meant(registry, spec, *name).ok_or_else(|| {
            let (what, fix) = no_such_parameter(spec, name.unwrap_or(asked.key));
            fault(About::Param(number, spec.key, None), what, fix)
        })?;
        let param = &spec.params[at];
        let value = param.read_in(text, folder).map_err(|error| {
            let about = About::Param(number, spec.key, (at > 0).then_some(param.name));
            let hint = name.is_none().then(|| kind_hint(registry, spec.key, text)).flatten();
            fault(about, bare(&error), hint.unwrap_or_else(|| near(param, text)))
        })?;
        given.push((at, value));
        texts.push((param.name, (*text).to_owned()));
    }
    texts.extend(kept(spec, own, &given));
    let pairs: Vec<_> = texts.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let fresh = Values::read_in(spec, &pairs, folder);
    let edit = Edit { spec, given, fresh: fresh.as_ref().ok().cloned() };
    match fresh {
        Err(error) if edit.of_same_kind(now).is_none() => {
            let fix = match &error {
                SpecError::Missing { name, .. } => format!("give {}.{name}, too", spec.key),
                _ => String::new(),
            };
            Err(fault(About::Whole, error.to_string(), fix))
        }
        _ => Ok(edit),
    }
}

/// What a block has to be given, is not, and the link's own block of another kind has.
fn kept(
    spec: &Spec,
    own: Option<&(&'static Spec, Values)>,
    given: &[(usize, Value)],
) -> Vec<(&'static str, String)> {
    let Some((own, values)) = own.filter(|(own, _)| !own.is(spec)) else { return Vec::new() };
    let needed = spec
        .params
        .iter()
        .enumerate()
        .filter(|(at, param)| param.default.is_required() && given.iter().all(|(other, _)| other != at));
    let of_own = needed.filter_map(|(_, param)| {
        let at = own.params.iter().position(|other| other.name == param.name)?;
        let text = values.at(at).print(own.params[at].kind);
        param.read(&text).is_ok().then_some((param.name, text))
    });
    of_own.collect()
}

/// The row of a kind.
fn of_kind(registry: &[&'static Spec], key: &str, kind: &str) -> Result<&'static Spec, LinkFault> {
    let of_key = || registry.iter().copied().filter(|spec| spec.key == key);
    of_key().find(|spec| spec.kind == kind).or_else(|| removal_meant(key, kind)).ok_or_else(|| {
        let kinds: Vec<_> = of_key().map(|spec| spec.kind).chain(without(key).map(|_| NONE)).collect();
        let fix = match suggestion(kind, kinds.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("there are {}", kinds.join(", ")),
        };
        fault(About::Kind, format!("there is no {key} of the kind \"{}\"", kind.escape_debug()), fix)
    })
}

/// What is said of a parameter that a block has not, and the fix.
pub(crate) fn no_such_parameter(spec: &Spec, name: &str) -> (String, String) {
    let known = || spec.params.iter().map(|param| param.name);
    let what = format!("{} ({}) has no parameter \"{}\"", spec.key, spec.kind, name.escape_debug());
    let fix = match suggestion(name, known()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("there are {}", known().collect::<Vec<_>>().join(", ")),
    };
    (what, fix)
}

fn fault(about: About, what: impl Into<String>, fix: impl Into<String>) -> LinkFault {
    LinkFault { about, what: what.into(), fix: fix.into() }
}
