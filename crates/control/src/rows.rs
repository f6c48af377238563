//! Selection of rows of counters: by name and kind, sorted, in pages.

use crate::object::fits;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use utoipa::IntoParams;

/// Selects rows; by default all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct RowFilter {
    /// A name, or a pattern such as dsl*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// One kind: link, port, source, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// A field with a number, the highest first; drops is the sum of dropped packets. Default: the scenario's
    /// order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sort: Option<String>,
    /// Most rows: at most 10000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// The last row of the previous page: NAME, or KIND/NAME if another kind has the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// The sum of a row's dropped packets, as a field.
const DROPS: &str = "drops";

/// The kinds of rows.
const KINDS: [&str; 8] = ["link", "port", "source", "router", "program", "level", "control-plane", "nesp"];

/// Most rows of a page.
const MOST_ROWS: usize = 10_000;

/// A row that may be selected.
pub trait SelectableRow {
    /// Its kind, or nothing.
    fn kind(&self) -> &str;

    /// Its name.
    fn name(&self) -> &str;

    /// The number in a field; `drops` is the sum of its dropped packets.
    fn number(&self, field: &str) -> Option<f64>;

    /// Its fields with numbers.
    fn numbers(&self) -> Vec<String>;
}

impl SelectableRow for Value {
    fn kind(&self) -> &str {
        self["kind"].as_str().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self["name"].as_str().unwrap_or_default()
    }

    fn number(&self, field: &str) -> Option<f64> {
        if field == DROPS {
            let reasons = self["dropped"].as_object()?;
            return Some(reasons.values().filter_map(Value::as_f64).sum());
        }
        self[field].as_f64()
    }

    fn numbers(&self) -> Vec<String> {
        let fields = self.as_object().into_iter().flatten();
        fields.filter(|(_, value)| value.is_number()).map(|(field, _)| field.clone()).collect()
    }
}

impl RowFilter {
    /// Selects rows, and returns the number of those after them.
    ///
    /// # Errors
    /// If it names an unknown kind, field or row.
    pub fn select<R: SelectableRow>(&self, mut rows: Vec<R>) -> Result<(Vec<R>, usize), Box<Problem>> {
        self.kind.as_deref().map_or(Ok(()), check_kind)?;
        rows.retain(|row| {
            let is_kind = self.kind.as_ref().is_none_or(|kind| row.kind() == *kind);
            is_kind && self.name.as_ref().is_none_or(|pattern| fits(row.name(), pattern))
        });
        if let Some(field) = &self.sort {
            check_field(&rows, field)?;
            // Rows with equal numbers keep their order.
            rows.sort_by(|a, b| descending(a.number(field), b.number(field)));
        }
        if let Some(after) = &self.after {
            rows.drain(..=place_of(&rows, after)?);
        }
        let all = rows.len();
        rows.truncate(self.limit.unwrap_or(MOST_ROWS).min(MOST_ROWS));
        let left = all - rows.len();
        Ok((rows, left))
    }
}

/// The place of the row of this kind and name, written KIND/NAME, or else of the only one of this name.
fn place_of<R: SelectableRow>(rows: &[R], after: &str) -> Result<usize, Box<Problem>> {
    if let Some((kind, name)) = after.split_once('/')
        && let Some(at) = rows.iter().position(|row| row.kind() == kind && row.name() == name)
    {
        return Ok(at);
    }
    let found: Vec<usize> = (0..rows.len()).filter(|&at| rows[at].name() == after).collect();
    let what = match found[..] {
        [at] => return Ok(at),
        [] => format!("there is no row \"{after}\" among the selected ones"),
        _ => {
            let each: Vec<_> = found.iter().map(|&at| format!("{}/{after}", rows[at].kind())).collect();
            format!("several rows are named \"{after}\"; write {}", each.join(" or "))
        }
    };
    Err(Box::new(Problem::of_value("after", &what)))
}

/// The highest first, and rows without the field last.
fn descending(a: Option<f64>, b: Option<f64>) -> Ordering {
    b.partial_cmp(&a).unwrap_or(Ordering::Equal)
}

fn check_kind(kind: &str) -> Result<(), Box<Problem>> {
    if KINDS.contains(&kind) {
        return Ok(());
    }
    let what = format!("no row is of the kind \"{kind}\"; there are {}", KINDS.join(", "));
    Err(Box::new(Problem::of_value("kind", &what).suggest(kind, &KINDS.map(String::from))))
}

fn check_field<R: SelectableRow>(rows: &[R], field: &str) -> Result<(), Box<Problem>> {
    if rows.is_empty() || rows.iter().any(|row| row.number(field).is_some()) {
        return Ok(());
    }
    let fields = rows.iter().flat_map(SelectableRow::numbers).chain([DROPS.into()]);
    let known: Vec<String> = fields.collect::<BTreeSet<_>>().into_iter().collect();
    let what = format!("no row has a number \"{field}\"; there are {}", known.join(", "));
    Err(Box::new(Problem::of_value("sort", &what).suggest(field, &known)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(filter: &RowFilter) -> Result<(Vec<String>, usize), String> {
        let row = |name: &str, kind: &str, packets: u64, loss: u64| {
            let dropped = json!({ "loss": loss, "aqm": 1 });
            json!({ "name": name, "kind": kind, "in_packets": packets, "dropped": dropped })
        };
        let rows = vec![
            row("dsl1", "link", 5, 1),
            row("dsl2", "link", 9, 0),
            row("dsl3", "link", 7, 4),
            row("core", "link", 8, 2),
            json!({ "name": "dsl1", "kind": "port" }),
        ];
        let (rows, left) = filter.select(rows).map_err(|problem| problem.detail)?;
        Ok((rows.iter().map(|row| row.name().to_owned()).collect(), left))
    }

    #[test]
    fn rows_are_chosen_sorted_and_paged() {
        let all = RowFilter::default();
        assert_eq!(names(&all).unwrap().0.len(), 5);
        let text = |text: &str| Some(text.to_owned());
        let links = RowFilter { name: text("dsl*"), kind: text("link"), ..all.clone() };
        assert_eq!(names(&links).unwrap().0, ["dsl1", "dsl2", "dsl3"]);
        let worst = RowFilter { sort: text("drops"), limit: Some(2), ..links.clone() };
        assert_eq!(names(&worst).unwrap(), (vec!["dsl3".into(), "dsl1".into()], 1));
        let next = RowFilter { after: text("dsl1"), ..worst };
        assert_eq!(names(&next).unwrap(), (vec!["dsl2".into()], 0));
        let by_packets = RowFilter { sort: text("in_packets"), ..all.clone() };
        assert_eq!(names(&by_packets).unwrap().0, ["dsl2", "core", "dsl3", "dsl1", "dsl1"]);
        let error = names(&RowFilter { sort: text("in_packet"), ..all.clone() }).unwrap_err();
        let expected = "sort: no row has a number \"in_packet\"; there are drops, in_packets; did you mean \
            \"in_packets\"?";
        assert_eq!(error, expected);
        let none = RowFilter { kind: text("router"), ..all.clone() };
        assert_eq!(names(&none).unwrap(), (Vec::new(), 0));
        let error = names(&RowFilter { kind: text("prot"), ..all.clone() }).unwrap_err();
        assert!(error.starts_with("kind: no row is of the kind \"prot\"; there are link, port,"), "{error}");
        assert!(error.ends_with("; did you mean \"port\"?"), "{error}");
        let error = names(&RowFilter { after: text("x"), ..all }).unwrap_err();
        assert!(error.starts_with("after: there is no row \"x\""), "{error}");
    }

    /// Every row is on a page, however many there are.
    #[test]
    fn pages_of_many_rows_lead_to_the_last() {
        let rows =
            || (0..MOST_ROWS + 3).map(|at| json!({ "name": format!("d{at}"), "kind": "link" })).collect();
        let all = RowFilter { name: Some("d*".into()), ..RowFilter::default() };
        let (page, left) = all.select(rows()).unwrap();
        assert_eq!((page.len(), left), (MOST_ROWS, 3));
        let next = RowFilter { after: Some("d9999".into()), ..all };
        let (page, left): (Vec<Value>, _) = next.select(rows()).unwrap();
        assert_eq!((page[0].name(), page.len(), left), ("d10000", 3, 0));
    }

    /// A page leads to the next one, also if rows of two kinds have one name.
    #[test]
    fn rows_of_one_name_have_different_kinds() {
        let after = |after: &str| names(&RowFilter { after: Some(after.into()), ..RowFilter::default() });
        let error = after("dsl1").unwrap_err();
        assert_eq!(error, "after: several rows are named \"dsl1\"; write link/dsl1 or port/dsl1");
        assert_eq!(after("link/dsl1").unwrap().0, ["dsl2", "dsl3", "core", "dsl1"]);
        assert_eq!(after("port/dsl1").unwrap(), (Vec::new(), 0));
        assert_eq!(after("core").unwrap().0, ["dsl1"]);
    }
}
