//! Changes of a link's blocks, from text: for events, the command line and the API alike.

use crate::finding::name_hint;
use crate::implied::{bare, implied_block, implied_param, implied_removal, kind_hint, near};
use longwire_block::change::{Blocks, Edit};
use longwire_block::{Spec, SpecError, Value, Values};
use longwire_link::{NONE, without};
use std::path::Path;

/// New settings for the block of one key.
#[derive(Debug, Clone, Copy)]
pub struct BlockPatch<'a> {
    /// The key.
    pub key: &'a str,
    /// The requested kind of block, if given.
    pub kind: Option<&'a str>,
    /// Parameters (none for the one that a bare value sets) and texts.
    pub params: &'a [(Option<&'a str>, &'a str)],
}

/// Why a block can't be changed so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkFault {
    /// Where the fault is.
    pub place: FaultPlace,
    /// The fault.
    pub what: String,
    /// The fix; may be empty.
    pub fix: String,
}

/// Where a fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultPlace {
    /// The kind.
    Kind,
    /// The parameter at this index of the patch, and its name in errors: the key for the block's first, else
    /// `key.name`.
    Param(usize, &'static str, Option<&'static str>),
    /// The patch as a whole.
    Whole,
}

/// The edit that a patch makes on a link with the blocks `now`. A kind with a required setting that is not
/// given keeps the value of the link's present block, if that has one of the name: `jitter = "3 ms"` on a
/// link with a delay. Files are looked up in `folder`.
///
/// # Errors
/// The faults, at least one, each with its fix.
pub fn link_edit(
    registry: &[&'static Spec],
    now: &Blocks,
    patch: BlockPatch<'_>,
    folder: &Path,
) -> Result<Edit, Vec<LinkFault>> {
    let own = now.iter().find(|(spec, _)| spec.key == patch.key);
    let spec = match patch.kind {
        Some(kind) => of_kind(registry, patch.key, kind).map_err(|fault| vec![fault])?,
        None => {
            let names: Vec<_> = patch.params.iter().map(|(name, _)| *name).collect();
            let unknown = || vec![fault(FaultPlace::Whole, "no block is registered for it", "remove it")];
            implied_block(registry, own.map(|(spec, _)| *spec), patch.key, &names).ok_or_else(unknown)?
        }
    };
    let read = (0..patch.params.len()).map(|number| param_value(registry, spec, &patch, number, folder));
    let (read, faults): (Vec<_>, Vec<_>) = read.partition(Result::is_ok);
    if !faults.is_empty() {
        return Err(faults.into_iter().filter_map(Result::err).collect());
    }
    let given: Vec<(usize, Value)> = read.into_iter().flatten().collect();
    let texts = given.iter().zip(patch.params);
    let mut texts: Vec<_> =
        texts.map(|((at, _), (_, text))| (spec.params[*at].name, (*text).to_owned())).collect();
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
            Err(vec![fault(FaultPlace::Whole, error.to_string(), fix)])
        }
        _ => Ok(edit),
    }
}

/// The index in the spec, and the value, of the patch's parameter of this number.
fn param_value(
    registry: &[&'static Spec],
    spec: &Spec,
    patch: &BlockPatch<'_>,
    number: usize,
    folder: &Path,
) -> Result<(usize, Value), LinkFault> {
    let (name, text) = patch.params[number];
    let first = FaultPlace::Param(number, spec.key, None);
    if spec.params.is_empty() {
        let what = format!("\"none\" removes {} with all its parameters", patch.key);
        return Err(fault(first, what, "leave one of the two out"));
    }
    let at = implied_param(registry, spec, name).ok_or_else(|| {
        let (what, fix) = no_such_parameter(spec, name.unwrap_or(patch.key));
        fault(first, what, fix)
    })?;
    let param = &spec.params[at];
    let value = param.read_in(text, folder).map_err(|error| {
        let place = FaultPlace::Param(number, spec.key, (at > 0).then_some(param.name));
        let hint = name.is_none().then(|| kind_hint(registry, spec.key, text)).flatten();
        fault(place, bare(&error), hint.unwrap_or_else(|| near(param, text)))
    })?;
    Ok((at, value))
}

/// Required parameters that are not given, but that the link's block of another kind has.
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

/// The spec of a kind.
fn of_kind(registry: &[&'static Spec], key: &str, kind: &str) -> Result<&'static Spec, LinkFault> {
    let of_key = || registry.iter().copied().filter(|spec| spec.key == key);
    of_key().find(|spec| spec.kind == kind).or_else(|| implied_removal(key, kind)).ok_or_else(|| {
        let kinds: Vec<_> = of_key().map(|spec| spec.kind).chain(without(key).map(|_| NONE)).collect();
        let fix = name_hint(kind, &kinds);
        fault(FaultPlace::Kind, format!("there is no {key} of the kind \"{}\"", kind.escape_debug()), fix)
    })
}

/// The fault and fix of a parameter that a block does not have.
pub(crate) fn no_such_parameter(spec: &Spec, name: &str) -> (String, String) {
    let known: Vec<&str> = spec.params.iter().map(|param| param.name).collect();
    let what = format!("{} ({}) has no parameter \"{}\"", spec.key, spec.kind, name.escape_debug());
    (what, name_hint(name, &known))
}

fn fault(place: FaultPlace, what: impl Into<String>, fix: impl Into<String>) -> LinkFault {
    LinkFault { place, what: what.into(), fix: fix.into() }
}
