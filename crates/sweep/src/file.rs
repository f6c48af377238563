//! The file of a sweep: its scenario, settings and axes.

use crate::axis::{Axis, AxisSetting, fixed, in_order, scalar, settings};
use crate::fault::Fault;
use longwire_scenario::name_hint;
use longwire_units::Nanos;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The keys of the file.
const KEYS: [&str; 7] = ["scenario", "for", "seeds", "columns", "set", "axes", "zip"];
/// Most seeds.
const MOST_SEEDS: u64 = 1_000_000;
/// The longest run: 100 years, as of a single one.
const LONGEST: Nanos = Nanos::from_secs(100 * 365 * 86_400);

/// The file of a sweep, as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SweepFile {
    /// The scenario, relative to the file's folder, and its place in the file.
    pub(crate) scenario: (String, Range<usize>),
    /// Duration of each run.
    pub(crate) time: Option<Nanos>,
    /// Seeds; empty for the scenario's own.
    pub(crate) seeds: Vec<u64>,
    /// Patterns of the columns to keep; empty for all.
    pub(crate) columns: Vec<String>,
    /// Settings of all tasks.
    pub(crate) fixed: Vec<AxisSetting>,
    /// Axes in the file's order: the last changes fastest.
    pub(crate) axes: Vec<Axis>,
}

impl SweepFile {
    /// Reads the text.
    ///
    /// # Errors
    /// The first mistake.
    pub(crate) fn read(text: &str) -> Result<Self, Fault> {
        let (root, errors) = DeTable::parse_recoverable(text);
        if let Some(error) = errors.first() {
            let fix = "write texts in quotes, lists in brackets, and each key on a line of its own";
            let what = format!("not TOML: {}", error.message());
            return Err(Fault::new(error.span().unwrap_or(0..0), "", what, fix));
        }
        let mut file = Self::default();
        for (key, value) in in_order(root.get_ref()) {
            match key.get_ref().as_ref() {
                "scenario" => file.scenario = (text_of("scenario", value)?, value.span()),
                "for" => file.time = Some(time(value)?),
                "seeds" => file.seeds = seeds(value)?,
                "columns" => file.columns = columns(value)?,
                "set" => file.fixed = fixed("set", table_of("set", value)?)?,
                "axes" => {
                    let each = settings("axes", table_of("axes", value)?)?.into_iter();
                    file.axes.extend(each.map(|setting| Axis { settings: vec![setting] }));
                }
                "zip" => file.axes.extend(zipped(value)?),
                other => {
                    let what = format!("there is no key \"{}\"", other.escape_debug());
                    return Err(Fault::new(key.span(), "", what, name_hint(other, &KEYS)));
                }
            }
        }
        if file.scenario.0.is_empty() {
            return Err(Fault::new(0..0, "", "\"scenario\" is missing", "add scenario = \"net.toml\""));
        }
        file.each_once()?;
        Ok(file)
    }

    /// All settings.
    pub(crate) fn settings(&self) -> impl Iterator<Item = &AxisSetting> {
        self.fixed.iter().chain(self.axes.iter().flat_map(|axis| &axis.settings))
    }

    fn each_once(&self) -> Result<(), Fault> {
        let mut known: Vec<&AxisSetting> = self.settings().collect();
        known.sort_by(|one, other| (&one.target, one.span.start).cmp(&(&other.target, other.span.start)));
        match known.windows(2).find(|pair| pair[0].target == pair[1].target) {
            None => Ok(()),
            Some(pair) => {
                let what = format!("\"{}\" is set twice", pair[1].target);
                Err(Fault::new(pair[1].span.clone(), "", what, "remove one of the two"))
            }
        }
    }
}

fn text_of(field: &str, value: &Spanned<DeValue<'_>>) -> Result<String, Fault> {
    match value.get_ref() {
        DeValue::String(text) if !text.is_empty() => Ok(text.to_string()),
        _ => Err(Fault::new(value.span(), field, "it is no text", format!("write {field} = \"…\""))),
    }
}

fn table_of<'t, 'i>(field: &str, value: &'t Spanned<DeValue<'i>>) -> Result<&'t DeTable<'i>, Fault> {
    match value.get_ref() {
        DeValue::Table(table) => Ok(table),
        _ => Err(Fault::new(value.span(), field, "it is no table", format!("write it as [{field}]"))),
    }
}

fn time(value: &Spanned<DeValue<'_>>) -> Result<Nanos, Fault> {
    let time = text_of("for", value)?.parse::<Nanos>();
    let time = time.map_err(|error| Fault::new(value.span(), "for", error.to_string(), ""))?;
    if time <= LONGEST {
        return Ok(time);
    }
    Err(Fault::new(value.span(), "for", "it is out of range", format!("write at most {LONGEST} (100 years)")))
}

/// A number of seeds from 1 on, or a list of seeds.
fn seeds(value: &Spanned<DeValue<'_>>) -> Result<Vec<u64>, Fault> {
    let whole = |value: &DeValue<'_>| match value {
        DeValue::Integer(_) => scalar(value)?.parse::<u64>().ok(),
        _ => None,
    };
    let fix = format!("write a number of seeds, 1 to {MOST_SEEDS}, or a list such as [1, 2, 7]");
    let seeds = match value.get_ref() {
        DeValue::Array(list) => list.iter().map(|item| whole(item.get_ref())).collect::<Option<Vec<_>>>(),
        number => whole(number).filter(|count| *count <= MOST_SEEDS).map(|count| (1..=count).collect()),
    };
    match seeds {
        Some(seeds) if !seeds.is_empty() => Ok(seeds),
        _ => Err(Fault::new(value.span(), "seeds", "these are no seeds", fix)),
    }
}

/// Patterns of columns: one, or a list.
fn columns(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Fault> {
    match value.get_ref() {
        DeValue::Array(list) => list.iter().map(|item| text_of("columns", item)).collect(),
        _ => Ok(vec![text_of("columns", value)?]),
    }
}

/// Axes whose settings change together.
fn zipped(value: &Spanned<DeValue<'_>>) -> Result<Vec<Axis>, Fault> {
    let DeValue::Array(list) = value.get_ref() else {
        return Err(Fault::new(value.span(), "zip", "zip is a list of entries", "write it as [[zip]]"));
    };
    let axis = |item: &Spanned<DeValue<'_>>| {
        let settings = settings("zip", table_of("zip", item)?)?;
        let Some(first) = settings.first() else {
            return Err(Fault::new(item.span(), "zip", "it has no settings", "give it two or more"));
        };
        let count = first.values.len();
        if let Some(other) = settings.iter().find(|setting| setting.values.len() != count) {
            let (more, target) = (other.values.len(), &other.target);
            let what = format!("values of {target}: {more}, of {}: {count}", first.target);
            return Err(Fault::new(other.span.clone(), "zip", what, "give all of them as many"));
        }
        Ok(Axis { settings })
    };
    list.iter().map(axis).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        let Fault { field, what, fix, .. } = SweepFile::read(text).unwrap_err();
        format!("{field}: {what}; {fix}")
    }

    #[test]
    fn a_file_has_axes_in_its_order() {
        let file = SweepFile::read(
            "scenario = \"net.toml\"\nfor = \"10s\"\nseeds = 3\ncolumns = \"link.*\"\n\
             [set]\nup.mtu = 1500\n\
             [axes]\n\"up.rate\" = [\"1mbit\", \"2mbit\"]\n\
             up.delay = { from = \"5ms\", to = \"15ms\", step = \"5ms\" }\n\
             flow.to = [\"a\", \"b\"]\n\
             [[zip]]\nx.rate = [1, 2]\ny.loss = [0.5, 1.5]\n",
        );
        let file = file.unwrap();
        assert_eq!((file.seeds.as_slice(), file.time), (&[1, 2, 3][..], Some(Nanos::from_secs(10))));
        let axes = file.axes.iter().map(|axis| {
            let each = axis.settings.iter().map(|one| format!("{}={}", one.target, one.values.join("|")));
            each.collect::<Vec<_>>().join(" ")
        });
        assert_eq!(
            axes.collect::<Vec<_>>(),
            ["up.rate=1mbit|2mbit", "up.delay=5ms|10ms|15ms", "flow.to=a|b", "x.rate=1|2 y.loss=0.5|1.5"]
        );
        assert_eq!((file.fixed[0].target.as_str(), file.fixed[0].values[0].as_str()), ("up.mtu", "1500"));
        assert_eq!(SweepFile::read("scenario = \"a\"\nseeds = [7, 9]\n").unwrap().seeds, [7, 9]);
    }

    #[test]
    fn mistakes_are_named_with_their_fix() {
        let with = |text: &str| fault(&format!("scenario = \"a\"\n{text}\n"));
        assert!(fault("").contains("\"scenario\" is missing"));
        assert!(fault("scenario = 1").contains("it is no text"));
        assert!(with("axis = 1").contains("did you mean \"axes\"?"));
        assert!(with("[axes]\na.rate = \"1mbit\"").contains("axes, a.rate: a string is no list"));
        assert!(with("[axes]\na.rate = []").contains("the list is empty"));
        assert!(with("[axes]\na.rate = [[1]]").contains("an array is no value"));
        assert!(with("[set]\na.rate = [1]").contains("set, a.rate: an array is not allowed here"));
        assert!(with("[axes]\na.x = { from = 1, to = 2 }").contains("a range has one spacing"));
        assert!(with("[axes]\na.x = { from = 1, to = 2, by = 1 }").contains("a range has no key \"by\""));
        assert!(with("[axes]\na.x = [1]\n\"a.x\" = [2]").contains("\"a.x\" is set twice"));
        assert!(with("[set]\na.x = 1\n[axes]\na.x = [2]").contains("\"a.x\" is set twice"));
        assert!(with("[[zip]]\na.x = [1]\nb.x = [1, 2]").contains("values of b.x: 2, of a.x: 1"));
        assert!(with("zip = 1").contains("write it as [[zip]]"));
        for seeds in ["0", "-1", "[]", "[-1]", "\"x\"", "1000001", "[1.5]"] {
            assert!(with(&format!("seeds = {seeds}")).contains("these are no seeds"), "{seeds}");
        }
        assert!(with("for = \"10\"").starts_with("for: "));
        assert!(with("for = \"1e9 h\"").contains("out of range"));
        assert!(fault("[[").contains("not TOML"));
    }
}
