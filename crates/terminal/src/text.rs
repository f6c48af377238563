//! Text that fits. Numbers are shown whole or not at all.

use longwire_report::{printable, shown};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

/// A line of text, as far as it fits.
pub(crate) fn put(text: &str, style: Style, area: Rect, line: u16, buffer: &mut Buffer) {
    if line < area.height {
        buffer.set_stringn(area.x, area.y + line, text, area.width.into(), style);
    }
}

/// Columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// A name or text of foreign origin, in at most `room` columns: a long one is cut in its middle, because
/// names often differ at the end; the direction of a duplex link is kept.
pub(crate) fn name(name: &str, room: usize) -> String {
    let name = printable(name).to_string();
    if width(&name) <= room {
        return name;
    }
    let tail = [".forward", ".backward"].into_iter().find(|tail| name.ends_with(tail));
    let tail = tail.filter(|tail| tail.len() + 4 <= room).unwrap_or_default();
    let (name, room) = (&name[..name.len() - tail.len()], room.saturating_sub(tail.len() + 1));
    format!("{}…{}{tail}", start(name, room / 2), end(name, room - room / 2))
}

/// As many characters as fit.
fn start(text: &str, room: usize) -> String {
    let mut taken = String::new();
    for char in text.chars() {
        taken.push(char);
        if width(&taken) > room {
            taken.pop();
            break;
        }
    }
    taken
}

/// As many of the last characters as fit.
fn end(text: &str, room: usize) -> &str {
    let starts = text.char_indices().map(|(at, _)| at);
    starts.map(|at| &text[at..]).find(|end| width(end) <= room).unwrap_or_default()
}

/// A sentence in at most `room` columns, cut between words.
pub(crate) fn sentence(text: &str, room: usize) -> String {
    let text = printable(text).to_string();
    if width(&text) <= room {
        return text;
    }
    let mut taken = String::new();
    for word in text.split(' ') {
        if width(&taken) + width(word) + 2 > room {
            break;
        }
        taken += word;
        taken.push(' ');
    }
    if room == 0 { String::new() } else { format!("{}…", taken.trim_end()) }
}

/// A sentence as lines of at most `room` columns, cut between words; at most `most` lines.
pub(crate) fn lines(text: &str, room: usize, most: usize) -> Vec<String> {
    let mut rest = printable(text).to_string();
    let mut lines = Vec::new();
    while !rest.is_empty() && lines.len() < most {
        let whole = sentence(&rest, room);
        let taken = whole.trim_end_matches('…');
        if lines.len() + 1 == most || whole == rest || taken.is_empty() {
            lines.push(whole);
            break;
        }
        rest = rest[taken.len()..].trim_start().to_owned();
        lines.push(taken.to_owned());
    }
    lines
}

/// The parts that fit, the first ones first.
pub(crate) fn parts(parts: &[String], between: &str, room: usize) -> String {
    let mut line = String::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let gap = if line.is_empty() { "" } else { between };
        if width(&line) + width(gap) + width(part) <= room {
            line += gap;
            line += part;
        }
    }
    line
}

/// A count in at most nine columns.
pub(crate) fn count(count: u64) -> String {
    if count < 1_000_000 {
        return shown::count(count);
    }
    let scales = [(1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")];
    let number = count as f64;
    let (size, letter) = scales.into_iter().find(|(size, _)| number >= *size).unwrap_or((1.0, ""));
    format!("{:.2} {letter}", number / size)
}

/// A time of the run: `1:15`, `2:00:07`.
pub(crate) fn clock(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit() {
        assert_eq!(name("up.forward", 10), "up.forward");
        assert_eq!(name("subscriber-17.forward", 14), "su…-17.forward");
        assert_eq!(name("subscriber-17", 8), "sub…r-17");
        let alike = ["67", "89"].map(|end| name(&format!("customer-berlin-house-12345{end}.forward"), 24));
        assert_eq!(alike, ["custome…-1234567.forward", "custome…-1234589.forward"]);
        assert_eq!(name("a\u{1b}[2J", 20), "a\\u001b[2J");
        assert_eq!(sentence("late by 12.5 ms at most", 12), "late by…");
        assert_eq!(sentence("12345678", 4), "…");
        assert_eq!(lines("late by 12.5 ms at most", 9, 3), ["late by", "12.5 ms", "at most"]);
        assert_eq!(lines("late by 12.5 ms at most", 9, 2), ["late by", "12.5 ms…"]);
        let of = |room| parts(&["12 ms".into(), "3 packets".into(), "4".into()], ", ", room);
        assert_eq!((of(20), of(12), of(2)), ("12 ms, 3 packets, 4".into(), "12 ms, 4".into(), "4".into()));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(count(999_999), "999\u{a0}999");
        assert_eq!(count(12_345_678), "12.35 M");
        assert_eq!(count(u64::MAX), "18.45 E");
        assert_eq!(clock(75_000_000_000), "1:15");
        assert_eq!(clock(7_207_000_000_000), "2:00:07");
    }
}
