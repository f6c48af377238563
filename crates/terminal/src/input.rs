//! The line in which settings of an object are changed: `rate=5mbit delay=40ms`.

use crate::fields::Field;
use crate::line_edit::LineEdit;
use longwire_control::Kind;
use ratatui::crossterm::event::KeyEvent;
use std::collections::BTreeMap;

/// A change that is being written.
#[derive(Debug, Clone)]
pub(crate) struct Edit {
    pub(crate) kind: Kind,
    /// The object; a duplex link's name means both directions.
    pub(crate) target: String,
    pub(crate) line: LineEdit,
    /// Why the instance refused it, or it can't be read.
    pub(crate) error: Option<String>,
    /// Whether the instance has it, and has not answered.
    pub(crate) sent: bool,
    fields: Vec<Field>,
    /// How the object is set.
    settings: BTreeMap<String, String>,
    offered: Option<Completions>,
}

/// Completions, of which one is in the line.
#[derive(Debug, Clone)]
struct Completions {
    texts: Vec<String>,
    at: usize,
}

/// What is being written at the cursor.
enum Place<'a> {
    /// A setting's name, as far as it is written.
    Key(&'a str),
    /// A setting's value, as far as it is written.
    Value(&'a str, &'a str),
}

impl Edit {
    pub(crate) fn new(
        (kind, target): (Kind, String),
        fields: Vec<Field>,
        settings: BTreeMap<String, String>,
    ) -> Self {
        let (line, error, sent, offered) = (LineEdit::default(), None, false, None);
        Self { kind, target, line, error, sent, fields, settings, offered }
    }

    /// Takes a key that edits the line.
    pub(crate) fn key(&mut self, key: KeyEvent) {
        if self.line.key(key) {
            (self.offered, self.error) = (None, None);
        }
    }

    /// Inserts what was pasted.
    pub(crate) fn paste(&mut self, text: &str) {
        self.line.paste(text);
        (self.offered, self.error) = (None, None);
    }

    /// The settings that the line changes.
    ///
    /// # Errors
    /// If it is not settings with values.
    pub(crate) fn pairs(&self) -> Result<Vec<(String, String)>, String> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for Word { text, equals } in words(&self.line.text())? {
            match (equals, pairs.last_mut()) {
                (Some(at), _) => pairs.push((text[..at].into(), text[at + 1..].into())),
                (None, Some((_, value))) if value.is_empty() => *value = text,
                // 5 Mbit/s
                (None, Some((_, value))) => *value = format!("{value} {text}"),
                (None, None) => return Err(format!("\"{text}\": write setting=value, such as rate=5mbit")),
            }
        }
        if pairs.is_empty() { Err("write setting=value, such as rate=5mbit".into()) } else { Ok(pairs) }
    }

    /// Completes what is at the cursor: as far as that is clear, then each possibility in turn.
    pub(crate) fn complete(&mut self) {
        if let Some(Completions { texts, at }) = &mut self.offered {
            let before = texts[*at].chars().count();
            *at = (*at + 1) % texts.len();
            return self.line.replace_before(before, &texts[*at]);
        }
        let before = self.line.before();
        let (written, texts) = match place(&before) {
            Place::Key(written) => {
                (written, self.keys(written).map(|field| with_equals(&field.key)).collect())
            }
            Place::Value(key, written) => (written, self.values(key, written)),
        };
        let (length, common) = (written.chars().count(), common_start(&texts));
        match texts.len() {
            0 => {}
            1 => self.line.replace_before(length, &texts[0]),
            _ if common.chars().count() > length => self.line.replace_before(length, &common),
            _ => {
                self.line.replace_before(length, &texts[0]);
                self.offered = Some(Completions { texts, at: 0 });
            }
        }
    }

    /// What can be written at the cursor.
    pub(crate) fn hint(&self) -> String {
        let before = self.line.before();
        match place(&before) {
            Place::Key(written) => {
                let keys: Vec<_> = self.keys(written).map(|field| field.key.as_str()).collect();
                match keys.is_empty() {
                    true if self.fields.is_empty() => String::new(),
                    true => format!("a {} has no setting that begins so", self.kind.word()),
                    false => format!("Tab: {}", keys.join(" ")),
                }
            }
            Place::Value(key, _) => {
                let about =
                    self.fields.iter().find(|field| fits(field, key)).map(|field| field.about.as_str());
                let now = self.settings.get(key).map(|value| format!(", now {value}")).unwrap_or_default();
                about.map_or_else(String::new, |about| format!("{key}{now}: {about}"))
            }
        }
    }

    /// Settings whose names begin so: those that the object has first.
    fn keys<'e>(&'e self, written: &'e str) -> impl Iterator<Item = &'e Field> {
        let fitting = move |own: bool| {
            let is_own = move |field: &&Field| self.settings.contains_key(&field.key) == own;
            self.fields.iter().filter(move |field| field.key.starts_with(written)).filter(is_own)
        };
        fitting(true).chain(fitting(false))
    }

    /// Values that begin so: the present one, and words.
    fn values(&self, key: &str, written: &str) -> Vec<String> {
        let words = self.fields.iter().filter(|field| fits(field, key)).flat_map(|field| &field.words);
        let mut all: Vec<String> = Vec::new();
        for value in self.settings.get(key).into_iter().chain(words) {
            if value.starts_with(written) && !all.contains(value) {
                all.push(value.clone());
            }
        }
        all
    }
}

fn fits(field: &Field, key: &str) -> bool {
    field.key == key || field.key.ends_with('.') && key.starts_with(&field.key)
}

/// A name that is to be continued has no value yet.
fn with_equals(key: &str) -> String {
    if key.ends_with('.') { key.into() } else { format!("{key}=") }
}

/// A word of a line, without quotes.
struct Word {
    text: String,
    /// Where its name ends, if it begins with one and `=`.
    equals: Option<usize>,
}

/// The words of a line: separated by spaces, but for those within quotes.
fn words(line: &str) -> Result<Vec<Word>, String> {
    let (mut all, mut word, mut quote): (Vec<Word>, Option<Word>, Option<char>) = (Vec::new(), None, None);
    for char in line.chars() {
        match (quote, char) {
            (Some(open), _) if open == char => quote = None,
            (None, '\'' | '"') => {
                quote = Some(char);
                word.get_or_insert(Word { text: String::new(), equals: None });
            }
            (None, ' ') => all.extend(word.take()),
            _ => {
                let word = word.get_or_insert(Word { text: String::new(), equals: None });
                if char == '=' && quote.is_none() && word.equals.is_none() && is_name(&word.text) {
                    word.equals = Some(word.text.len());
                }
                word.text.push(char);
            }
        }
    }
    match quote {
        Some(quote) => Err(format!("a quote is not closed: add {quote}")),
        None => Ok(all.into_iter().chain(word).collect()),
    }
}

/// Whether a text can be the name of a setting: `rate`, `queue.kind`, `route.10.0.0.0/8`.
fn is_name(text: &str) -> bool {
    let fits = |char: char| char.is_ascii_alphanumeric() || "._-/:".contains(char);
    !text.is_empty() && text.chars().all(fits)
}

/// What is being written at the end of a text.
fn place(before: &str) -> Place<'_> {
    let last = before.rfind(' ').map_or(0, |space| space + 1);
    let word = &before[last..];
    match word.split_once('=') {
        Some((key, value)) if is_name(key) => Place::Value(key, value),
        _ => Place::Key(word),
    }
}

/// What all begin with.
fn common_start(texts: &[String]) -> String {
    let Some((first, others)) = texts.split_first() else { return String::new() };
    let mut common = first.as_str();
    for other in others {
        while !other.starts_with(common) {
            let shorter = common.char_indices().next_back().map_or(0, |(at, _)| at);
            common = &common[..shorter];
        }
    }
    common.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{self, tests::description};

    fn edit(text: &str) -> Edit {
        let settings = [("rate", "10 Mbit/s"), ("delay", "20 ms")];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let fields = fields::of(&description(), Kind::Link);
        let mut edit = Edit::new((Kind::Link, "up".into()), fields, settings);
        edit.paste(text);
        edit
    }

    fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
        edit(text).pairs()
    }

    #[test]
    fn lines_are_settings_with_values() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(pairs("rate=5mbit"), Ok(vec![pair("rate", "5mbit")]));
        let two = Ok(vec![pair("rate", "5 Mbit/s"), pair("delay", "40 ms")]);
        assert_eq!(pairs("rate=5 Mbit/s  delay= 40 ms "), two);
        assert_eq!(pairs("filter="), Ok(vec![pair("filter", "")]));
        assert_eq!(
            pairs("filter='drop: tcp dst port=80'"),
            Ok(vec![pair("filter", "drop: tcp dst port=80")])
        );
        let route = Ok(vec![pair("route.10.1.0.0/16", "via 10.9.0.2")]);
        assert_eq!(pairs("route.10.1.0.0/16=via 10.9.0.2"), route);
        assert!(pairs("5mbit").unwrap_err().starts_with("\"5mbit\": write setting=value"));
        assert!(pairs("  ").unwrap_err().starts_with("write setting=value"));
        assert!(pairs("filter='x").unwrap_err().contains("not closed"));
    }

    fn completed(text: &str, times: usize) -> String {
        let mut edit = edit(text);
        (0..times).for_each(|_| edit.complete());
        edit.line.text()
    }

    #[test]
    fn tab_completes() {
        assert_eq!(completed("ra", 1), "rate=");
        assert_eq!(completed("rate=", 1), "rate=10 Mbit/s");
        assert_eq!(completed("loss=1% que", 1), "loss=1% queue");
        assert_eq!(completed("loss=1% queue", 1), "loss=1% queue=");
        assert_eq!(completed("loss=1% queue", 2), "loss=1% queue.kind=");
        assert_eq!(completed("loss=1% queue", 3), "loss=1% queue=");
        assert_eq!(completed("queue.kind=r", 1), "queue.kind=red");
        assert_eq!(completed("zzz", 2), "zzz");
        // Those that the link has come first.
        assert_eq!(completed("", 1), "delay=");
        assert_eq!(completed("", 2), "rate=");
    }

    #[test]
    fn hints_say_what_can_be_written() {
        assert_eq!(edit("").hint(), "Tab: delay rate queue queue.kind");
        assert_eq!(edit("x").hint(), "a link has no setting that begins so");
        assert_eq!(edit("rate=5").hint(), "rate, now 10 Mbit/s: the rate: a rate such as \"10 Mbit/s\"");
    }
}
