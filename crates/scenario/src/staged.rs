//! A scenario's text at a time of its run: what events (`[[at]]`) have added is in it, what they have removed
//! is not, and these events are not either, since they have happened.

use crate::edit::{EditError, edited, header, sections_of, without_lines};
use crate::resolve::LeftOut;
use longwire_units::Nanos;
use std::cmp::Reverse;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An event that adds or removes something.
struct StagedEvent {
    /// Its place among the events.
    index: usize,
    time: Nanos,
    add: String,
    remove: Vec<String>,
    drain: bool,
}

/// What an event that adds or removes something makes of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStage {
    /// The text, in which the event is not any more.
    pub text: String,
    /// Whether removed links send what they hold.
    pub drain: bool,
}

impl StagedEvent {
    fn of(index: usize, entry: &DeValue<'_>) -> Option<Self> {
        let DeValue::Table(table) = entry else { return None };
        let value = |key: &str| table.get(key).map(Spanned::get_ref);
        value("add").or_else(|| value("remove"))?;
        let time = value("time")?.as_str()?.parse().ok()?;
        let add = match value("add") {
            Some(DeValue::Table(sections)) => sections_of(sections),
            Some(DeValue::String(text)) => text.to_string(),
            _ => String::new(),
        };
        let remove = match value("remove") {
            Some(DeValue::Array(names)) => {
                names.iter().filter_map(|name| name.get_ref().as_str().map(String::from)).collect()
            }
            Some(DeValue::String(name)) => vec![name.to_string()],
            _ => Vec::new(),
        };
        let drain = match value("drain") {
            Some(DeValue::Boolean(drain)) => *drain,
            Some(DeValue::String(word)) => word.trim() == "yes",
            _ => false,
        };
        Some(Self { index, time, add, remove, drain })
    }
}

/// The first event of a scenario that adds or removes something.
fn first(text: &str) -> Option<StagedEvent> {
    let (root, _) = DeTable::parse_recoverable(text);
    let DeValue::Array(entries) = root.get_ref().get("at")?.get_ref() else { return None };
    let all = entries.iter().enumerate().filter_map(|(index, entry)| StagedEvent::of(index, entry.get_ref()));
    all.min_by_key(|staged| staged.time)
}

/// What the first event that adds or removes something makes of a scenario, if it is due at `time`.
///
/// # Errors
/// If something that is to be removed is not there.
pub fn next_stage(text: &str, time: Nanos) -> Result<Option<NextStage>, EditError> {
    let Some(staged) = first(text).filter(|staged| staged.time <= time) else { return Ok(None) };
    let lines = header(text, "at", staged.index).ok_or_else(|| EditError::Inline("at".into()))?;
    let text = edited(&without_lines(text, lines), &staged.add, &staged.remove)?;
    Ok(Some(NextStage { text, drain: staged.drain }))
}

/// The text of a scenario that has been running for `time`.
///
/// # Errors
/// As [`next_stage`].
pub fn advanced(text: &str, time: Nanos) -> Result<String, EditError> {
    let mut text = text.to_owned();
    while let Some(next) = next_stage(&text, time)? {
        text = next.text;
    }
    Ok(text)
}

/// The text of a scenario without what is left out of its events.
///
/// # Errors
/// If the events are written as an inline list.
pub(crate) fn without_past(text: &str, mut left_out: Vec<LeftOut>) -> Result<String, EditError> {
    let mut text = text.to_owned();
    // From the end on, so that places before stay.
    left_out.sort_by_key(|out| Reverse(out.index));
    for LeftOut { index, names, .. } in left_out {
        if names.is_empty() {
            let lines = header(&text, "at", index).ok_or_else(|| EditError::Inline("at".into()))?;
            text = without_lines(&text, lines);
        }
        text = names.into_iter().rev().fold(text, |text, name| without_item(&text, name));
    }
    Ok(text)
}

/// The text without an item of a list that has others. A comma may stay before the end of the list: what is
/// before the last item may be a comment.
fn without_item(text: &str, item: Range<usize>) -> String {
    let (before, after) = (&text[..item.start], &text[item.end..]);
    match after.trim_start().strip_prefix(',') {
        Some(rest) => format!("{before}{}", rest.trim_start()),
        None => format!("{before}{after}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_events_add_and_remove_is_in_the_text_and_they_are_not() {
        let text = "[[link]]\nname = \"a\"\n\n# Later.\n[[at]]\ntime = \"2 s\"\nremove = [\"b\"]\n\n\
            [[at]]\ntime = \"1 s\"\nremove = \"a\"\n[at.add.link]\nname = \"b\"\nfrom = \"x\"\n\n\
            [[at]]\ntime = \"1 s\"\nlink = \"c\"\nloss = \"1 %\"\n";
        assert_eq!(advanced(text, Nanos::from_millis(999)).unwrap(), text);
        let one = advanced(text, Nanos::from_secs(1)).unwrap();
        assert!(
            !one.contains("name = \"a\"") && one.contains("[[link]]\nfrom = \"x\"\nname = \"b\""),
            "{one}"
        );
        assert!(
            one.contains("# Later.") && one.contains("loss") && one.matches("[[at]]").count() == 2,
            "{one}"
        );
        let two = advanced(&one, Nanos::from_secs(2)).unwrap();
        assert!(!two.contains("\"b\"") && !two.contains("# Later") && two.contains("loss"), "{two}");
        assert_eq!(advanced(text, Nanos::from_secs(9)).unwrap(), two);
        assert!(advanced("[[at]]\ntime = \"1 s\"\nremove = \"a\"\n", Nanos::from_secs(1)).is_err());
    }

    #[test]
    fn events_at_one_time_come_one_after_the_other() {
        let link = "[[link]]\nname = \"a\"\nfrom = \"x\"\nto = \"y\"\n";
        let at = "[[at]]\ntime = \"1 s\"\n";
        let text = format!(
            "{link}\n{at}remove = \"a\"\ndrain = \"yes\"\n\n{at}add = {{ link = {{ name = \"a\" }} }}\n\n\
             {at}remove = \"a\"\ndrain = true\n"
        );
        let (mut text, mut all) = (text, Vec::new());
        while let Some(next) = next_stage(&text, Nanos::from_secs(1)).unwrap() {
            all.push((next.text.contains("[[link]]"), next.drain));
            text = next.text;
        }
        assert_eq!(all, [(false, true), (true, false), (false, true)]);
        assert_eq!(next_stage(link, Nanos::NEVER), Ok(None));
    }
}
