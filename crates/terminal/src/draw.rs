//! The screen: header, tables' names, the open table, the selected object, the log, and a line for keys.

use crate::app::{App, InstanceOwner, Mode, Tab};
use crate::columns::{self, GAP, ShownRow, fitting};
use crate::detail;
use crate::help;
use crate::input::Edit;
use crate::text::{self, clock, count, lines, parts, put, sentence, width};
use crate::theme::{Mood, Theme};
use longwire_control::{LoggedEvent, Summary};
use longwire_report::{printable, shown};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Modifier, Style};
use serde_json::Value;

/// The least that the view needs.
pub(crate) const LEAST: (u16, u16) = (60, 15);
/// Lines of the header: the title, the totals, the tables' names.
const HEADER: u16 = 3;
/// Lines of a panel that is worth its place.
const PANEL: u16 = 5;
/// Where the panel is beside the table instead of below it.
const WIDE: u16 = 140;

/// Draws everything.
pub(crate) fn draw(app: &mut App, theme: Theme, frame: &mut Frame<'_>) {
    let area = frame.area();
    let cursor = draw_all(app, theme, area, frame.buffer_mut());
    if let Some(cursor) = cursor {
        frame.set_cursor_position(cursor);
    }
}

/// Draws into a buffer, and answers where the cursor is, if somebody types.
fn draw_all(app: &mut App, theme: Theme, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    if area.width < LEAST.0 || area.height < LEAST.1 {
        draw_too_small(area, buffer);
        return None;
    }
    draw_header(app, theme, Rect { height: HEADER, ..area }, buffer);
    let bottom = bottom_lines(app);
    let body = Rect { y: area.y + HEADER, height: area.height - HEADER - bottom, ..area };
    let below = Rect { y: body.bottom(), height: bottom, ..area };
    match app.mode {
        Mode::Help(first) => {
            let first = draw_help(first, theme, body, buffer);
            app.mode = Mode::Help(first);
        }
        _ => draw_body(app, theme, body, buffer),
    }
    draw_bottom(app, theme, below, buffer)
}

fn draw_too_small(area: Rect, buffer: &mut Buffer) {
    let (width, height) = LEAST;
    let said = format!(
        "The terminal has {}x{} characters; the view needs {width}x{height}. Make it larger, or q.",
        area.width, area.height
    );
    for (line, text) in lines(&said, area.width.into(), area.height.into()).iter().enumerate() {
        buffer.set_stringn(area.x, area.y + line as u16, text, area.width.into(), Style::new());
    }
}

fn draw_header(app: &mut App, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let room = usize::from(area.width);
    let (title, faults, totals, (said, mood)) = match app.summary() {
        Some(summary) => {
            let faults = text::name(&summary.faults.join("; "), room);
            let totals = parts(&totals(app, summary), "  ", room.saturating_sub(behind(&faults)));
            (title(app, summary), faults, totals, verdict(summary, room.saturating_sub(30)))
        }
        None => {
            let name = printable(&app.name).to_string();
            (vec![name], String::new(), sentence(&waiting(app), room), (String::new(), Mood::Plain))
        }
    };
    let left = parts(&title, "  ", room.saturating_sub(width(&said) + 2));
    put(&left, theme.style(Mood::Title), area, 0, buffer);
    let at = Rect { x: area.right() - width(&said) as u16, width: width(&said) as u16, ..area };
    put(&said, theme.style(mood), at, 0, buffer);
    put(&faults, theme.style(Mood::Bad), area, 1, buffer);
    if !totals.is_empty() {
        let at = Rect { x: area.x + behind(&faults) as u16, ..area };
        put(&totals, Style::new(), at, 1, buffer);
    }
    draw_tabs(app, theme, Rect { y: area.y + 2, height: 1, ..area }, buffer);
}

/// The column behind a text.
fn behind(text: &str) -> usize {
    if text.is_empty() { 0 } else { width(text) + 2 }
}

/// Why there are no numbers yet.
fn waiting(app: &App) -> String {
    match (&app.trouble, app.too_many) {
        (Some(trouble), _) => trouble.clone(),
        (None, Some(links)) => format!(
            "{} links: counting them takes the workers a moment. Space counts once, p goes on doing so",
            count(links as u64)
        ),
        (None, None) => "waiting for its counters".into(),
    }
}

/// Name, scenario, time, rate: the first ones matter most.
fn title(app: &App, summary: &Summary) -> Vec<String> {
    let name = printable(&app.name).to_string();
    let scenario = printable(&summary.scenario).to_string();
    let file = scenario.rsplit('/').next().unwrap_or_default();
    let same = file.strip_suffix(".toml") == Some(&name);
    vec![
        name,
        clock(summary.elapsed_ns),
        app.pace
            .map(|(packets, _)| format!("{} packets/s", count(packets.round() as u64)))
            .unwrap_or_default(),
        if app.paused { "[paused]".into() } else { String::new() },
        if same { String::new() } else { scenario },
    ]
}

fn totals(app: &App, summary: &Summary) -> Vec<String> {
    let dropped: u64 = summary.dropped.values().sum();
    let pool = summary.pool;
    let memory =
        format!("memory {} of {}", shown::bytes(pool.used_bytes as f64), shown::bytes(pool.bytes as f64));
    vec![
        app.pace.map(|(_, bits)| format!("out {}", shown::rate(bits))).unwrap_or_default(),
        format!("{} held", count(summary.held)),
        format!("{} dropped", count(dropped)),
        memory,
        app.dashboard.as_ref().map(|address| format!("dashboard {address}")).unwrap_or_default(),
    ]
}

/// The verdict on the whole run, and on the last moments; without causes where there is no room for them.
fn verdict(summary: &Summary, room: usize) -> (String, Mood) {
    let (word, cause, good) = verdict_on(&summary.fidelity);
    let last = &summary.window["last"]["fidelity"];
    let length = summary.window["length_ns"].as_u64().filter(|_| !last.is_null());
    let (mut long, mut short, mut mood) =
        (format!("{word}{cause}"), word.to_owned(), if good { Mood::Good } else { Mood::Bad });
    if let Some(length) = length {
        let (lately, cause, lately_good) = verdict_on(last);
        let seconds = length / 1_000_000_000;
        long += &format!("; last {seconds} s: {lately}{cause}");
        short += &format!("; last {seconds} s: {lately}");
        mood = match (good, lately_good) {
            (true, true) => Mood::Good,
            (false, true) => Mood::Warn,
            (_, false) => Mood::Bad,
        };
    }
    (if width(&long) <= room { long } else { short }, mood)
}

/// A verdict in a few words, its cause, and whether it is good.
fn verdict_on(fidelity: &Value) -> (&'static str, String, bool) {
    match (fidelity["faithful"].as_bool(), fidelity["packets"].as_u64().unwrap_or(0)) {
        (None, _) => ("", String::new(), true),
        (Some(true), 0) => ("no packets", String::new(), true),
        (Some(true), _) => ("faithful", String::new(), true),
        (Some(false), _) => {
            let cause = fidelity["brief"].as_str().unwrap_or_default();
            ("not faithful", format!(": {}", printable(cause)), false)
        }
    }
}

fn draw_tabs(app: &mut App, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let mut x = area.x;
    for (tab, number) in app.tabs() {
        let text = format!(" {} {} ", tab.word(), count(number as u64));
        if x + width(&text) as u16 > area.right() {
            break;
        }
        let style = theme.style(if tab == app.tab { Mood::Chosen } else { Mood::Plain });
        x = buffer.set_stringn(x, area.y, &text, area.width.into(), style).0 + 1;
    }
    let list = app.list();
    let (_, index) = list.place();
    let total = list.total();
    let search = list.search.trim();
    let found = if search.is_empty() { String::new() } else { format!("/{}", printable(search)) };
    let rows = if total == 0 { String::new() } else { format!("{} of {}", index + 1, count(total as u64)) };
    let said = [found, rows].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ");
    let room = area.right().saturating_sub(x);
    if width(&said) < usize::from(room) {
        let x = area.right() - width(&said) as u16;
        buffer.set_stringn(x, area.y, &said, room.into(), theme.style(Mood::Faint));
    }
}

/// The table, the selected object, and the log.
fn draw_body(app: &mut App, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if app.tab == Tab::EVENTS {
        return draw_events(app, theme, area, buffer);
    }
    let total = u16::try_from(app.list().total()).unwrap_or(u16::MAX).saturating_add(1);
    if area.width >= WIDE {
        let log = if area.height >= 20 { (area.height / 5).max(4) } else { 0 };
        let left = Rect { width: (area.width * 3 / 5).max(WIDE * 3 / 5), height: area.height - log, ..area };
        let right = Rect { x: left.right() + 2, width: area.width - left.width - 2, ..left };
        draw_table(app, theme, left, buffer);
        draw_panel(app, theme, right, buffer);
        return draw_log(app, theme, Rect { y: left.bottom(), height: log, ..area }, buffer);
    }
    // The table has what it needs, and leaves room for a panel; what is left over is the log's.
    let log = if area.height >= 20 { 4 } else { u16::from(area.height >= 16) * 2 };
    let panel = if area.height >= 14 { PANEL + (area.height - 14) / 3 } else { 0 };
    let table = total.clamp(4, (area.height - log - panel).max(4));
    let left = area.height - log - table;
    draw_table(app, theme, Rect { height: table, ..area }, buffer);
    let (panel, log) = if left >= 26 { (left - 8, log + 8) } else { (left, log) };
    draw_panel(app, theme, Rect { y: area.y + table, height: panel, ..area }, buffer);
    draw_log(app, theme, Rect { y: area.y + table + panel, height: log, ..area }, buffer);
}

fn draw_table(app: &mut App, theme: Theme, area: Rect, buffer: &mut Buffer) {
    app.list().resize(usize::from(area.height.saturating_sub(1)));
    let Some(kind) = app.tab.kind else { return };
    let all = columns::of_kind(kind);
    let (sort, reverse) = (app.list().sort, app.list().reverse);
    let selected = app.list().selected().map(str::to_owned);
    let (top, index) = app.list().place();
    let Some(page) = app.page() else { return };
    let from = page.from;
    // Only the rows that are on the screen.
    let end = (top + usize::from(area.height)).saturating_sub(from + 1);
    let rows: Vec<_> = page.objects.iter().take(end).skip(top.saturating_sub(from)).collect();
    let programs: Vec<_> = rows.iter().map(|object| app.program(object)).collect();
    let cells: Vec<Vec<(String, Mood)>> = rows
        .iter()
        .zip(&programs)
        .map(|(&object, program)| {
            let seen = ShownRow { object, track: app.history.of(object), program: program.as_ref() };
            all.iter().map(|column| (column.cell)(&seen)).collect()
        })
        .collect();
    let chosen = fitting(all, &cells, (area.width.into(), sort));
    let mut x = area.x;
    for &(at, wide) in &chosen {
        let column = &all[at];
        let is_sorted = column.sort.is_some() && column.sort == sort;
        let mark = match (is_sorted, reverse) {
            (false, _) => "",
            (true, false) => "▼",
            (true, true) => "▲",
        };
        let style = theme.style(if is_sorted { Mood::Chosen } else { Mood::Title });
        set(&format!("{}{mark}", column.title), (x, area.y), wide, at > 0, style, buffer);
        x += (wide + GAP) as u16;
    }
    for (row, own) in cells.iter().enumerate() {
        let y = area.y + 1 + row as u16;
        let is_selected = match &selected {
            Some(name) => rows[row].name == *name,
            None => from + row == index,
        };
        let mut x = area.x;
        for &(at, wide) in &chosen {
            let (text, mood) = &own[at];
            let text = if at == 0 { text::name(text, wide) } else { printable(text).to_string() };
            set(&text, (x, y), wide, at > 0, theme.style(*mood), buffer);
            x += (wide + GAP) as u16;
        }
        if is_selected {
            buffer.set_style(Rect { y, height: 1, ..area }, theme.selected());
        }
    }
    if rows.is_empty() {
        let said = if app.list().search.trim().is_empty() { "none" } else { "no name fits; Esc shows all" };
        put(said, theme.style(Mood::Faint), area, 1, buffer);
    }
}

/// A cell: numbers end at the right.
fn set(text: &str, (x, y): (u16, u16), wide: usize, to_the_right: bool, style: Style, buffer: &mut Buffer) {
    let own = width(text);
    if own > wide {
        return;
    }
    let x = if to_the_right { x + (wide - own) as u16 } else { x };
    buffer.set_stringn(x, y, text, wide, style);
}

/// A line with a title.
fn rule(title: &str, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let room = usize::from(area.width);
    put(&"─".repeat(room), theme.style(Mood::Faint), area, 0, buffer);
    let title = format!("─ {} ", sentence(title, room.saturating_sub(4)));
    put(&title, theme.style(Mood::Title), area, 0, buffer);
}

fn draw_panel(app: &mut App, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if area.height < 2 {
        return;
    }
    let title = app.selected().map(|object| object.name.clone()).unwrap_or_default();
    rule(&title, theme, area, buffer);
    detail::draw(app, theme, Rect { y: area.y + 1, height: area.height - 1, ..area }, buffer);
}

/// The last entries of the log, and what comes next.
fn draw_log(app: &App, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if area.height < 2 {
        return;
    }
    let next = next_event(app).map(|next| format!("next: {next}"));
    rule(&next.unwrap_or_else(|| "events".into()), theme, area, buffer);
    let rows = usize::from(area.height) - 1;
    let first = app.log.len().saturating_sub(rows);
    for (line, event) in app.log.iter().skip(first).enumerate() {
        put_event(event, theme, area, line as u16 + 1, buffer);
    }
}

fn put_event(event: &LoggedEvent, theme: Theme, area: Rect, line: u16, buffer: &mut Buffer) {
    let mood = match event.kind.as_str() {
        "unfaithful" | "fault" => Mood::Bad,
        "faithful" => Mood::Good,
        _ => Mood::Plain,
    };
    let text = format!("{:>8}  {}", clock(event.at_ns), event.what);
    put(&sentence(&text, area.width.into()), theme.style(mood), area, line, buffer);
}

/// What changes next, and when.
fn next_event(app: &App) -> Option<String> {
    let look = app.look.as_ref()?;
    let now = look.summary.elapsed_ns;
    let coming = |event: &longwire_control::PlannedEvent| {
        let Some(every) = event.every_ns.filter(|every| *every > 0 && event.at_ns <= now) else {
            return (event.at_ns > now).then_some(event.at_ns);
        };
        let passed = (now - event.at_ns) / every + 1;
        event.times.is_none_or(|times| passed < times).then(|| event.at_ns + passed * every)
    };
    let planned = look.events.planned.iter().filter_map(|event| Some((coming(event)?, &event.what)));
    let (at, what) = planned.min_by_key(|(at, _)| *at)?;
    Some(format!("at {}: {what}", clock(at)))
}

fn draw_events(app: &mut App, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let next = next_event(app).map_or_else(|| "nothing is scheduled".into(), |next| format!("next: {next}"));
    rule(&next, theme, area, buffer);
    let rows = usize::from(area.height) - 1;
    app.list().resize(rows);
    let (top, index) = app.list().place();
    if app.log.is_empty() {
        put("nothing has happened yet", theme.style(Mood::Faint), area, 1, buffer);
    }
    // The latest first.
    for (line, event) in app.log.iter().rev().skip(top).take(rows).enumerate() {
        put_event(event, theme, area, line as u16 + 1, buffer);
        if top + line == index {
            buffer.set_style(Rect { y: area.y + line as u16 + 1, height: 1, ..area }, theme.selected());
        }
    }
}

/// Draws the help from this line on, or from the last one that fills the screen.
fn draw_help(first: usize, theme: Theme, area: Rect, buffer: &mut Buffer) -> usize {
    let keys = help::LINES.iter().map(|(keys, _)| width(keys)).max().unwrap_or(0) + 2;
    let room = usize::from(area.width).saturating_sub(keys);
    // What is drawn at the left, what beside it; a title has no such text.
    let mut all: Vec<(&str, Option<String>)> = Vec::new();
    for &(key, what) in help::LINES {
        if key.is_empty() {
            all.push((what, None));
        } else {
            let named = std::iter::once(key).chain(std::iter::repeat(""));
            all.extend(named.zip(lines(what, room, 3).into_iter().map(Some)));
        }
    }
    let rows = usize::from(area.height);
    let first = first.min(all.len().saturating_sub(rows));
    for (line, (key, what)) in all.iter().skip(first).take(rows).enumerate() {
        let Some(what) = what else {
            put(key, theme.style(Mood::Title), area, line as u16, buffer);
            continue;
        };
        put(key, theme.style(Mood::Plain).add_modifier(Modifier::BOLD), area, line as u16, buffer);
        let right = Rect { x: area.x + keys as u16, width: room as u16, ..area };
        put(what, Style::new(), right, line as u16, buffer);
    }
    first
}

/// Lines that the bottom takes.
fn bottom_lines(app: &App) -> u16 {
    match app.mode {
        Mode::Edit(_) => 3,
        _ => 1,
    }
}

const KEYS: [&str; 8] =
    ["? help", "q leave", "e change", "/ search", "Tab table", "←→ sort", "p pause", "r reverse"];

fn draw_bottom(app: &App, theme: Theme, area: Rect, buffer: &mut Buffer) -> Option<Position> {
    let room = usize::from(area.width);
    match &app.mode {
        Mode::Edit(edit) => return Some(draw_edit(edit, theme, area, buffer)),
        Mode::Search(line) => {
            let before = format!("/{}", line.before());
            put(&format!("/{}", line.text()), Style::new(), area, 0, buffer);
            let x = width(&before).min(room.saturating_sub(1));
            return Some(Position { x: area.x + x as u16, y: area.y });
        }
        Mode::Leave => {
            let said = "End the run? y ends it, d leaves the view only, else back";
            put(&sentence(said, room), theme.style(Mood::Chosen), area, 0, buffer);
        }
        Mode::Help(_) => put("↑↓ scroll, any other key goes back", theme.style(Mood::Faint), area, 0, buffer),
        Mode::Watch => match (&app.trouble, &app.done) {
            (Some(trouble), _) => put(&sentence(trouble, room), theme.style(Mood::Bad), area, 0, buffer),
            (None, Some(Ok(done))) => put(&sentence(done, room), theme.style(Mood::Good), area, 0, buffer),
            (None, Some(Err(why))) => put(&sentence(why, room), theme.style(Mood::Bad), area, 0, buffer),
            (None, None) => {
                let leave =
                    if app.owner == InstanceOwner::ThisProcess { "q leave or end" } else { "q leave" };
                let keys = KEYS.map(|key| if key == "q leave" { leave.to_owned() } else { key.to_owned() });
                put(&parts(&keys, "  ", room), theme.style(Mood::Faint), area, 0, buffer);
            }
        },
    }
    None
}

/// The line of a change, with what is wrong or what can be written below it.
fn draw_edit(edit: &Edit, theme: Theme, area: Rect, buffer: &mut Buffer) -> Position {
    let room = usize::from(area.width);
    let target = text::name(&edit.target, room / 3);
    let prompt = format!("{target}: ");
    put(&prompt, theme.style(Mood::Title), area, 0, buffer);
    let inner = Rect { x: area.x + width(&prompt) as u16, width: area.width - width(&prompt) as u16, ..area };
    // A long line is shown around its cursor.
    let (before, all) = (edit.line.before(), edit.line.text());
    let space = usize::from(inner.width).saturating_sub(1).max(1);
    let hidden = width(&before).saturating_sub(space);
    let shown: String = all.chars().skip(hidden).collect();
    put(&shown, Style::new(), inner, 0, buffer);
    let (said, mood) = match (&edit.error, edit.sent) {
        (Some(error), _) => (error.clone(), Mood::Bad),
        (None, true) => ("changing it".into(), Mood::Faint),
        (None, false) => (edit.hint(), Mood::Faint),
    };
    for (line, text) in lines(&said, room, 2).iter().enumerate() {
        put(text, theme.style(mood), area, line as u16 + 1, buffer);
    }
    Position { x: inner.x + (width(&before) - hidden) as u16, y: area.y }
}
