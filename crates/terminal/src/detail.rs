//! The panel of the selected object: curves of rate and queue, its counters and its settings.

use crate::app::App;
use crate::history::Track;
use crate::text::{count, parts, put, sentence, width};
use crate::theme::{Mood, Theme};
use longwire_control::{Kind, Object};
use longwire_report::shown;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{RenderDirection, Sparkline, Widget};

/// What is shown of a link's settings first.
const FIRST: [&str; 6] = ["rate", "delay", "loss", "jitter", "queue", "state"];
/// Widest column of settings.
const SETTING_ROOM: u16 = 44;

/// Draws the panel.
pub(crate) fn draw(app: &mut App, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let Some(object) = app.selected().cloned() else { return };
    let facts = facts(app, &object);
    let settings = settings(&object);
    let track = app.history.of(&object);
    let curves = track.filter(|track| object.kind == Kind::Link && track.samples().len() > 0);
    match curves {
        Some(track) if area.width >= 100 || area.height <= 12 => {
            // Side by side: curves to the right.
            let left = (area.width / 2).min(SETTING_ROOM + 16);
            let right = Rect { x: area.x + left + 2, width: area.width - left - 2, ..area };
            draw_texts(&facts, &settings, theme, Rect { width: left, ..area }, buffer);
            draw_curves(track, theme, right, buffer);
        }
        Some(track) => {
            let height = (area.height / 2).min(14);
            draw_curves(track, theme, Rect { height, ..area }, buffer);
            let below = Rect { y: area.y + height, height: area.height - height, ..area };
            draw_texts(&facts, &settings, theme, below, buffer);
        }
        None => draw_texts(&facts, &settings, theme, area, buffer),
    }
}

fn draw_texts(facts: &[String], settings: &[String], theme: Theme, area: Rect, buffer: &mut Buffer) {
    let room = usize::from(area.width);
    let mut line = 0;
    // Two lines of facts, where there is room for settings as well.
    let mut left: Vec<String> = facts.to_vec();
    let most = if area.height > 4 { 3 } else { 1 };
    while line < most && !left.is_empty() {
        let shown = parts(&left, "  ", room);
        if shown.is_empty() {
            break;
        }
        left.retain(|fact| !shown.contains(fact.as_str()));
        put(&shown, Style::new(), area, line, buffer);
        line += 1;
    }
    let columns = (area.width / SETTING_ROOM).max(1);
    let wide = (area.width / columns).saturating_sub(2);
    let rows = area.height.saturating_sub(line);
    let places = usize::from(rows) * usize::from(columns);
    let (shown, left) = match settings.len() > places {
        true => (places.saturating_sub(1), settings.len() - places.saturating_sub(1)),
        false => (settings.len(), 0),
    };
    let more = (left > 0 && places > 0).then(|| format!("and {left} more: e, then Tab"));
    for (at, text) in settings.iter().take(shown).chain(&more).enumerate() {
        let (column, row) = (at as u16 % columns, at as u16 / columns);
        let cell = Rect { x: area.x + column * (wide + 2), y: area.y + line + row, width: wide, height: 1 };
        let (key, value) = text.split_once('\t').unwrap_or((text, ""));
        buffer.set_stringn(cell.x, cell.y, key, wide.into(), theme.style(Mood::Faint));
        let taken = width(key) as u16 + 1;
        if taken < wide {
            let value = sentence(value, usize::from(wide - taken));
            buffer.set_stringn(cell.x + taken, cell.y, value, usize::from(wide - taken), Style::new());
        }
    }
}

/// Settings with their values behind a tab, those that matter most first.
fn settings(object: &Object) -> Vec<String> {
    let rank = |key: &str| FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len());
    let mut all: Vec<_> = object.settings.iter().collect();
    all.sort_by_key(|(key, _)| rank(key));
    all.into_iter().map(|(key, value)| format!("{key}\t{value}")).collect()
}

/// Counters in words.
fn facts(app: &App, object: &Object) -> Vec<String> {
    let stats = &object.stats;
    let number = |field: &str| stats[field].as_u64();
    match object.kind {
        Kind::Link => {
            let reasons = stats["drops"].as_array().into_iter().flatten();
            let reasons = reasons.filter_map(|reason| Some((reason[0].as_str()?, reason[1].as_u64()?)));
            let drops: Vec<String> =
                reasons.map(|(reason, packets)| format!("{} {reason}", count(packets))).collect();
            let mut facts = vec![
                format!("in {} packets", count(number("in_packets").unwrap_or(0))),
                format!("out {}", count(number("out_packets").unwrap_or(0))),
                match drops.is_empty() {
                    true => "none dropped".into(),
                    false => format!("dropped: {}", drops.join(", ")),
                },
                format!("queue {}", shown::bytes(number("queued_bytes").unwrap_or(0) as f64)),
                format!("{} on their way", count(number("travelling_packets").unwrap_or(0))),
            ];
            if let Some((median, high)) = app.history.of(object).and_then(Track::delays) {
                let time = |ns: u64| shown::time(ns as f64);
                facts.push(format!("delay p50 {}, p99 {}", time(median), time(high)));
            }
            facts.push(format!("max late {}", shown::time(number("max_late_ns").unwrap_or(0) as f64)));
            facts
        }
        Kind::Router | Kind::Forwarder => program_facts(app, object),
        _ => {
            let notes = stats["notes"].as_array().into_iter().flatten();
            let fault = stats["fault"].as_str().into_iter();
            notes.filter_map(|note| note.as_str()).chain(fault).map(str::to_owned).collect()
        }
    }
}

fn program_facts(app: &App, object: &Object) -> Vec<String> {
    let Some(program) = app.program(object) else { return Vec::new() };
    let mut facts = Vec::new();
    if let Some(programs) = program["programs"].as_u64() {
        facts.push(format!("{programs} {}", if programs == 1 { "program" } else { "programs" }));
    }
    if let Some(share) = program["budget_share"].as_f64() {
        facts.push(format!("at worst {:.1} % of a packet's budget", share * 100.0));
    }
    for field in ["passed", "transmitted", "redirected", "dropped", "aborted", "marked"] {
        if let Some(packets) = program[field].as_u64().filter(|packets| *packets > 0) {
            facts.push(format!("{} {field}", count(packets)));
        }
    }
    facts
}

fn draw_curves(track: &Track, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let each = area.height / 2;
    let last = track.samples().next_back();
    let out: Vec<u64> = track.samples().map(|sample| sample.out as u64).collect();
    let queue: Vec<u64> = track.samples().map(|sample| sample.queued_bytes).collect();
    let now = last.map_or(0.0, |sample| sample.out);
    let most = out.iter().copied().max().unwrap_or(0) as f64;
    let title = [format!("out {}", shown::rate(now)), format!("at most {}", shown::rate(most))];
    curve(&title, &out, theme, Rect { height: each, ..area }, buffer);
    let most = queue.iter().copied().max().unwrap_or(0) as f64;
    let now = last.map_or(0, |sample| sample.queued_bytes) as f64;
    let title = [format!("queue {}", shown::bytes(now)), format!("at most {}", shown::bytes(most))];
    curve(&title, &queue, theme, Rect { y: area.y + each, height: area.height - each, ..area }, buffer);
}

/// A title and a curve below it, the latest at the right.
fn curve(title: &[String], data: &[u64], theme: Theme, area: Rect, buffer: &mut Buffer) {
    put(&parts(title, ", ", area.width.into()), theme.style(Mood::Title), area, 0, buffer);
    if area.height < 2 {
        return;
    }
    let below = Rect { y: area.y + 1, height: area.height - 1, ..area };
    // The latest first: that is where the curve begins.
    let latest = data.iter().rev().copied().take(below.width.into());
    Sparkline::default()
        .data(latest.collect::<Vec<u64>>())
        .direction(RenderDirection::RightToLeft)
        .style(theme.style(Mood::Curve))
        .render(below, buffer);
}
