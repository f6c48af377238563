//! What keys do.

use crate::app::{App, InstanceOwner, Mode, Tab};
use crate::asking::Ask;
use crate::columns;
use crate::line_edit::LineEdit;
use crate::list::Move;
use longwire_control::Sort;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// What a key asks of whoever shows the view.
#[derive(Debug)]
pub(crate) enum Action {
    /// Nothing.
    None,
    /// A question to the instance.
    Ask(Ask),
    /// The view ends, and the run with it.
    End,
    /// The view ends, and the run goes on.
    Detach,
    /// What Ctrl-C does.
    Interrupt,
    /// What Ctrl-Z does.
    Suspend,
}

/// Takes a key.
pub(crate) fn key(app: &mut App, key: KeyEvent) -> Action {
    if key.kind == KeyEventKind::Release {
        return Action::None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        match key.code {
            KeyCode::Char('c') => return Action::Interrupt,
            KeyCode::Char('z') => return Action::Suspend,
            _ => {}
        }
    }
    match &mut app.mode {
        Mode::Watch => watch(app, key),
        Mode::Search(_) => search(app, key),
        Mode::Edit(_) => edit(app, key),
        Mode::Help(line) => {
            match key.code {
                KeyCode::Down | KeyCode::Char('j') => *line += 1,
                KeyCode::Up | KeyCode::Char('k') => *line = line.saturating_sub(1),
                _ => app.mode = Mode::Watch,
            }
            Action::None
        }
        Mode::Leave => leave(app, key),
    }
}

/// Takes what was pasted.
pub(crate) fn paste(app: &mut App, text: &str) {
    match &mut app.mode {
        Mode::Edit(edit) if !edit.sent => edit.paste(text),
        Mode::Search(line) => {
            line.paste(text);
            searched(app);
        }
        _ => {}
    }
}

fn watch(app: &mut App, key: KeyEvent) -> Action {
    app.done = None;
    match key.code {
        KeyCode::Char('q') if app.owner == InstanceOwner::OtherProcess => return Action::End,
        KeyCode::Char('q') => app.mode = Mode::Leave,
        KeyCode::Char('?' | 'h') | KeyCode::F(1) => app.mode = Mode::Help(0),
        KeyCode::Char('p') => app.paused = !app.paused,
        KeyCode::Char(' ') => app.refresh = true,
        KeyCode::Tab => app.turn(true),
        KeyCode::BackTab => app.turn(false),
        KeyCode::Char('/') if app.tab != Tab::EVENTS => {
            let search = app.list().search.clone();
            app.mode = Mode::Search(LineEdit::new(&search));
        }
        KeyCode::Esc => find(app, String::new()),
        KeyCode::Enter | KeyCode::Char('e') => begin_edit(app, false),
        KeyCode::Char('b') => begin_edit(app, true),
        KeyCode::Right | KeyCode::Char('>' | 'l') => sort_by(app, true),
        KeyCode::Left | KeyCode::Char('<') => sort_by(app, false),
        KeyCode::Char('r') => {
            let list = app.list();
            list.reverse = !list.reverse;
            list.restart();
        }
        code => moves(app, code),
    }
    Action::None
}

fn moves(app: &mut App, code: KeyCode) {
    let by = match code {
        KeyCode::Up | KeyCode::Char('k') => Move::Up,
        KeyCode::Down | KeyCode::Char('j') => Move::Down,
        KeyCode::PageUp => Move::PageUp,
        KeyCode::PageDown => Move::PageDown,
        KeyCode::Home | KeyCode::Char('g') => Move::First,
        KeyCode::End | KeyCode::Char('G') => Move::Last,
        _ => return,
    };
    let page = app.page().cloned();
    app.list().go(by, page.as_ref());
}

fn begin_edit(app: &mut App, both: bool) {
    if let Some(edit) = app.edit(both) {
        app.mode = Mode::Edit(Box::new(edit));
    }
}

/// Sorts by the next column that can be sorted by; before the first one is the order of the scenario.
fn sort_by(app: &mut App, forward: bool) {
    let Some(kind) = app.tab.kind else { return };
    let sorts = columns::of_kind(kind).iter().filter_map(|column| column.sort);
    let all: Vec<Option<Sort>> = std::iter::once(None).chain(sorts.map(Some)).collect();
    let list = app.list();
    let at = all.iter().position(|sort| *sort == list.sort).unwrap_or(0);
    let step = if forward { 1 } else { all.len() - 1 };
    list.sort = all[(at + step) % all.len()];
    list.restart();
}

fn find(app: &mut App, text: String) {
    let list = app.list();
    if list.search != text {
        list.search = text;
        list.restart();
    }
}

fn searched(app: &mut App) {
    if let Mode::Search(line) = &app.mode {
        let text = line.text();
        find(app, text);
    }
}

fn search(app: &mut App, key: KeyEvent) -> Action {
    match key.code {
        KeyCode::Enter => app.mode = Mode::Watch,
        KeyCode::Esc => {
            find(app, String::new());
            app.mode = Mode::Watch;
        }
        KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown => moves(app, key.code),
        _ => {
            if let Mode::Search(line) = &mut app.mode {
                line.key(key);
            }
            searched(app);
        }
    }
    Action::None
}

fn edit(app: &mut App, key: KeyEvent) -> Action {
    let Mode::Edit(edit) = &mut app.mode else { return Action::None };
    match key.code {
        KeyCode::Esc => app.mode = Mode::Watch,
        // The answer comes at once, or says why not.
        _ if edit.sent => {}
        KeyCode::Enter if edit.line.text().trim().is_empty() => app.mode = Mode::Watch,
        KeyCode::Enter => return App::change(edit).map_or(Action::None, Action::Ask),
        KeyCode::Tab => edit.complete(),
        _ => edit.key(key),
    }
    Action::None
}

/// The run of this process ends only if that is wanted.
fn leave(app: &mut App, key: KeyEvent) -> Action {
    match key.code {
        KeyCode::Char('y' | 'q') => return Action::End,
        KeyCode::Char('d') => return Action::Detach,
        _ => app.mode = Mode::Watch,
    }
    Action::None
}
