//! Changes of a link's blocks, from text: for events, the command line and the API alike. What a bare setting
//! implies, hints about unreadable values, and links that filters steer packets to, whose paths are planned
//! before the run.

use crate::finding::{name_hint, suggestion};
use longwire_block::change::{Blocks, Edit};
use longwire_block::{Param, ParamKind, Settings, Spec, SpecError, Value, Values};
use longwire_link::filter::rules::RulesSettings;
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
    let given = all_or_faults(read)?;
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

/// All that was read, or all faults, if there are any.
pub(crate) fn all_or_faults<T, E>(read: impl Iterator<Item = Result<T, E>>) -> Result<Vec<T>, Vec<E>> {
    let (read, faults): (Vec<_>, Vec<_>) = read.partition(Result::is_ok);
    if faults.is_empty() {
        return Ok(read.into_iter().flatten().collect());
    }
    Err(faults.into_iter().filter_map(Result::err).collect())
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
    let is_given = |at: usize| given.iter().any(|(other, _)| *other == at);
    let all = spec.params.iter().enumerate();
    let needed = all.filter(|(at, param)| param.default.is_required() && !is_given(*at));
    let of_own = needed.filter_map(|(_, param)| {
        let at = own.place(param.name)?;
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

/// All blocks of a link with `blocks` in the scenario: each other key has its first kind, if that has no
/// required parameters.
pub fn with_defaults(blocks: &Blocks, registry: &[&'static Spec]) -> Blocks {
    let mut all = blocks.clone();
    for (place, spec) in registry.iter().enumerate() {
        let first = registry[..place].iter().all(|other| other.key != spec.key);
        if first
            && all.iter().all(|(other, _)| other.key != spec.key)
            && let Ok(values) = Values::read(spec, &[])
        {
            all.push((spec, values));
        }
    }
    all
}

/// The kind of `key` that a bare value names: `queue = "codel"`.
pub fn implied_kind(registry: &[&'static Spec], key: &str, value: &str) -> Option<&'static Spec> {
    let mut of_key = registry.iter().copied().filter(|spec| spec.key == key);
    let first = of_key.clone().next()?;
    let named = of_key.find(|spec| spec.kind == value.trim())?;
    first.params.first().is_none_or(|param| param.read(value).is_err()).then_some(named)
}

/// The spec that removes a link's block of `key`, if a bare value asks for that: `loss = "none"`, `loss =
/// ""`, and `loss=[]` as text.
pub fn implied_removal(key: &str, value: &str) -> Option<&'static Spec> {
    without(key).filter(|_| ["", "[]", NONE].contains(&value.trim()))
}

/// A hint for a bare value of `key` that can't be read: the kind that it resembles, or all kinds.
pub fn kind_hint(registry: &[&'static Spec], key: &str, value: &str) -> Option<String> {
    let value = value.trim();
    let kinds: Vec<&str> = registry.iter().filter(|spec| spec.key == key).map(|spec| spec.kind).collect();
    if value.is_empty() && !kinds.is_empty() {
        let neutral = match key {
            "rate" => "\"unlimited\"",
            "delay" => "\"0 ms\"",
            "queue" => "\"unlimited\", or how much may wait",
            "state" => "\"up\"",
            _ => return None,
        };
        return Some(format!("a link always has a {key}: write {neutral}"));
    }
    if kinds.len() < 2 || !value.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let hint = match suggestion(value, kinds.iter().copied()) {
        Some(near) => format!("did you mean the kind \"{near}\"?"),
        None => format!("it is not a kind either; there are {}", kinds.join(", ")),
    };
    Some(hint)
}

/// The spec that settings of `key` imply on a link whose present block is `block`: the present one if it has
/// all `named` parameters (none is the one that a bare value sets), else the key's first that has.
pub fn implied_block(
    registry: &[&'static Spec],
    block: Option<&'static Spec>,
    key: &str,
    named: &[Option<&str>],
) -> Option<&'static Spec> {
    let mut of_key = registry.iter().copied().filter(|spec| spec.key == key);
    let first = of_key.clone().next()?;
    let has_all =
        |spec: &&Spec| named.iter().all(|name| spec.place(name.unwrap_or(first.params[0].name)).is_some());
    block.filter(|own| has_all(own)).or_else(|| of_key.find(has_all)).or(Some(first))
}

/// The index of the parameter `name` in a spec; none is the one that a bare value of the key sets.
pub fn implied_param(registry: &[&'static Spec], spec: &Spec, name: Option<&str>) -> Option<usize> {
    if let Some(name) = name {
        return spec.place(name);
    }
    let first = registry.iter().find(|first| first.key == spec.key)?;
    spec.place(first.params[0].name).or(Some(0))
}

/// A suggestion for a text that is none of a setting's words.
pub(crate) fn near(param: &Param, text: &str) -> String {
    let ParamKind::Choice(words) = param.kind else { return String::new() };
    let near = suggestion(text, words.iter().copied());
    near.map(|near| format!("did you mean \"{near}\"?")).unwrap_or_default()
}

/// An error's text without the parameter's name, which the field shows already.
pub(crate) fn bare(error: &SpecError) -> String {
    match error {
        SpecError::Unit { source, .. } => source.to_string(),
        SpecError::Text { what, .. } => what.clone(),
        SpecError::Outside { text, wanted, .. } => {
            format!("\"{}\" is out of range; write {wanted}", text.escape_debug())
        }
        SpecError::Range { text, wanted, .. } => format!("\"{}\" is not {wanted}", text.escape_debug()),
        other => other.to_string(),
    }
}

/// The links that the filter among `blocks` names, each once, in order.
pub(crate) fn targets(blocks: &Blocks) -> Vec<String> {
    let filter = blocks.iter().find(|(spec, _)| (spec.key, spec.kind) == ("filter", "rules"));
    filter.map(|(_, values)| names(values)).unwrap_or_default()
}

/// The first link that an edit's filter steers to without a planned path, for a link whose scenario had the
/// blocks `planned`: targets must be the scenario's, at the same index.
pub fn unplanned_target(planned: &Blocks, edit: &Edit) -> Option<String> {
    if (edit.spec.key, edit.spec.kind) != ("filter", "rules") {
        return None;
    }
    let known = targets(planned);
    let named = edit.fresh.as_ref().map(names).unwrap_or_default();
    let mut each = named.into_iter().enumerate();
    each.find(|(place, name)| known.get(*place) != Some(name)).map(|(_, name)| name)
}

fn names(values: &Values) -> Vec<String> {
    RulesSettings::of(values).rules.targets().map(String::from).collect()
}
