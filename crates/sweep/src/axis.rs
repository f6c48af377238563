//! Axes: settings, and the values that a sweep gives them.

use crate::fault::Fault;
use crate::range::{Spacing, values};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// Settings that change together, each with a value for every step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) settings: Vec<AxisSetting>,
}

/// A setting with its values; a setting that does not change has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AxisSetting {
    /// The object and the setting, as in `bottleneck.rate`.
    pub(crate) target: String,
    pub(crate) values: Vec<String>,
    /// The place of its name in the file.
    pub(crate) span: Range<usize>,
}

impl Axis {
    /// Number of its steps.
    pub(crate) fn len(&self) -> usize {
        self.settings.first().map_or(0, |setting| setting.values.len())
    }
}

/// The keys of a table in the order in which they are written.
pub(crate) fn in_order<'t, 'i>(
    table: &'t DeTable<'i>,
) -> Vec<(&'t Spanned<DeString<'i>>, &'t Spanned<DeValue<'i>>)> {
    let mut all: Vec<_> = table.iter().collect();
    all.sort_by_key(|(key, _)| key.span().start);
    all
}

/// The settings of a table, each with its values: `"bottleneck.rate" = […]`, or `bottleneck.rate = […]`.
/// `section` is its name in errors.
///
/// # Errors
/// If a value is no list and no range.
pub(crate) fn settings(section: &str, table: &DeTable<'_>) -> Result<Vec<AxisSetting>, Fault> {
    read_settings((section, ""), table, &list)
}

/// The settings of a table, each with a single value.
///
/// # Errors
/// If a value is a list.
pub(crate) fn fixed(section: &str, table: &DeTable<'_>) -> Result<Vec<AxisSetting>, Fault> {
    read_settings((section, ""), table, &single)
}

/// The single value of a setting.
fn single(field: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault> {
    let text = scalar(value.get_ref()).ok_or_else(|| {
        let fix = "write one value here, and a list below [axes]";
        Fault::new(value.span(), field, format!("{} is not allowed here", kind(value.get_ref())), fix)
    })?;
    Ok(vec![text])
}

/// Reads the values of a setting; the first parameter is its field in errors.
type ReadValues<'r> = &'r dyn Fn(&str, &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault>;

fn read_settings(
    (section, prefix): (&str, &str),
    table: &DeTable<'_>,
    read: ReadValues<'_>,
) -> Result<Vec<AxisSetting>, Fault> {
    let mut all = Vec::new();
    for (key, value) in in_order(table) {
        let target = format!("{prefix}{}", key.get_ref());
        match value.get_ref() {
            DeValue::Table(inner) if !is_range(inner) => {
                all.extend(read_settings((section, &format!("{target}.")), inner, read)?);
            }
            _ => {
                let values = read(&format!("{section}, {target}"), value)?;
                all.push(AxisSetting { target, values, span: key.span() });
            }
        }
    }
    Ok(all)
}

/// Whether a table is a range rather than an object with settings: a source has a setting `to`, but that is a
/// list here.
fn is_range(table: &DeTable<'_>) -> bool {
    ["from", "to"].iter().all(|key| table.get(*key).is_some_and(|value| scalar(value.get_ref()).is_some()))
}

/// The values of a list or a range.
fn list(field: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault> {
    match value.get_ref() {
        DeValue::Array(items) => {
            let each = items.iter().map(|item| {
                let wrong = || {
                    let what = format!("{} is no value", kind(item.get_ref()));
                    let fix = "write texts or numbers, as in [\"5 ms\", \"10 ms\"]";
                    Fault::new(item.span(), field, what, fix)
                };
                scalar(item.get_ref()).ok_or_else(wrong)
            });
            let values: Vec<String> = each.collect::<Result<_, _>>()?;
            if values.is_empty() {
                return Err(Fault::new(value.span(), field, "the list is empty", "write one value or more"));
            }
            Ok(values)
        }
        DeValue::Table(range) => range_values(field, range, value.span()),
        other => {
            let fix = "write a list such as [\"5 ms\", \"10 ms\"], a range such as { from = \"5 ms\", to = \
                \"50 ms\", step = \"5 ms\" }, or one value below [set]";
            Err(Fault::new(value.span(), field, format!("{} is no list", kind(other)), fix))
        }
    }
}

fn range_values(field: &str, range: &DeTable<'_>, span: Range<usize>) -> Result<Vec<String>, Fault> {
    let text = |key: &str| range.get(key).and_then(|value| scalar(value.get_ref()));
    for (key, _) in in_order(range) {
        if !KEYS.contains(&key.get_ref().as_ref()) {
            let what = format!("a range has no key \"{}\"", key.get_ref().escape_debug());
            return Err(Fault::new(key.span(), field, what, format!("there are {}", KEYS.join(", "))));
        }
    }
    let points = text("points").map(|points| points.parse::<u64>().unwrap_or(0));
    let spacing = match (text("step"), text("factor"), points, text("log-points")) {
        (Some(step), None, None, None) => Spacing::Step(step),
        (None, Some(factor), None, None) => Spacing::Factor(factor),
        (None, None, Some(points), None) => Spacing::Points(points),
        (None, None, None, Some(points)) => Spacing::LogPoints(points.parse().unwrap_or(0)),
        _ => {
            let fix = "write step = \"5 ms\" or points = 10 for equal differences, factor = 2 or \
                log-points = 10 for equal ratios";
            return Err(Fault::new(span, field, "a range has one spacing", fix));
        }
    };
    let (from, to) = (text("from").unwrap_or_default(), text("to").unwrap_or_default());
    values(&from, &to, &spacing).map_err(|(what, fix)| Fault::new(span, field, what, fix))
}

/// The keys of a range.
const KEYS: [&str; 6] = ["from", "to", "step", "factor", "points", "log-points"];

/// A value as text.
pub(crate) fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().into()),
        DeValue::Float(number) => Some(number.as_str().into()),
        DeValue::Boolean(is) => Some(if *is { "yes" } else { "no" }.into()),
        _ => None,
    }
}

/// The type of a value with its article.
fn kind(value: &DeValue<'_>) -> String {
    let kind = value.type_str();
    format!("{} {kind}", if kind.starts_with(['a', 'i']) { "an" } else { "a" })
}
