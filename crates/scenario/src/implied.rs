//! The block or parameter that a bare setting implies, and hints about unreadable values.

use crate::finding::suggestion;
use longwire_block::change::Blocks;
use longwire_block::{Param, ParamKind, Spec, SpecError, Values};
use longwire_link::{NONE, without};

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
    let has_all = |spec: &&Spec| {
        named.iter().all(|name| {
            let name = name.unwrap_or(first.params[0].name);
            spec.params.iter().any(|param| param.name == name)
        })
    };
    block.filter(|own| has_all(own)).or_else(|| of_key.find(has_all)).or(Some(first))
}

/// The index of the parameter `name` in a spec; none is the one that a bare value of the key sets.
pub fn implied_param(registry: &[&'static Spec], spec: &Spec, name: Option<&str>) -> Option<usize> {
    let place = |name: &str| spec.params.iter().position(|param| param.name == name);
    match name {
        Some(name) => place(name),
        None => {
            let first = registry.iter().find(|first| first.key == spec.key)?;
            place(first.params[0].name).or(Some(0))
        }
    }
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
