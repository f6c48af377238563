//! A line of text that is being typed.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Longest line, in characters.
const LONGEST: usize = 1000;

/// The text and where the cursor is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LineEdit {
    chars: Vec<char>,
    at: usize,
}

impl LineEdit {
    pub(crate) fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        Self { at: chars.len(), chars }
    }

    pub(crate) fn text(&self) -> String {
        self.chars.iter().collect()
    }

    /// The text before the cursor.
    pub(crate) fn before(&self) -> String {
        self.chars[..self.at].iter().collect()
    }

    /// Puts `text` in the place of the last `chars` characters before the cursor.
    pub(crate) fn replace_before(&mut self, chars: usize, text: &str) {
        let from = self.at.saturating_sub(chars);
        self.chars.splice(from..self.at, text.chars());
        self.at = from + text.chars().count();
    }

    /// Takes a key; false if it means nothing to a line.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if control => self.at = 0,
            KeyCode::Char('e') if control => self.at = self.chars.len(),
            KeyCode::Char('u') if control => drop(self.chars.drain(..std::mem::take(&mut self.at))),
            KeyCode::Char('k') if control => self.chars.truncate(self.at),
            KeyCode::Char('w') if control => self.delete_word(),
            KeyCode::Char(_) if control => return false,
            KeyCode::Char(typed) => self.insert(typed),
            KeyCode::Backspace if self.at > 0 => {
                self.at -= 1;
                self.chars.remove(self.at);
            }
            KeyCode::Delete if self.at < self.chars.len() => drop(self.chars.remove(self.at)),
            KeyCode::Backspace | KeyCode::Delete => {}
            KeyCode::Left => self.at = self.at.saturating_sub(1),
            KeyCode::Right => self.at = (self.at + 1).min(self.chars.len()),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = self.chars.len(),
            _ => return false,
        }
        true
    }

    /// Inserts what was pasted.
    pub(crate) fn paste(&mut self, text: &str) {
        text.chars().filter(|char| !char.is_control()).for_each(|char| self.insert(char));
    }

    fn insert(&mut self, typed: char) {
        if self.chars.len() < LONGEST {
            self.chars.insert(self.at, typed);
            self.at += 1;
        }
    }

    fn delete_word(&mut self) {
        let before = &self.chars[..self.at];
        let word = before.iter().rposition(|char| *char != ' ').unwrap_or(0);
        let from = before[..word].iter().rposition(|char| *char == ' ').map_or(0, |space| space + 1);
        self.chars.drain(from..self.at);
        self.at = from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &mut LineEdit, keys: &[(KeyCode, KeyModifiers)]) {
        keys.iter().for_each(|&(code, modifiers)| assert!(line.key(KeyEvent::new(code, modifiers))));
    }

    #[test]
    fn lines_are_edited() {
        let (none, control) = (KeyModifiers::NONE, KeyModifiers::CONTROL);
        let mut line = LineEdit::new("rate=5 delay=1");
        typed(&mut line, &[(KeyCode::Char('w'), control)]);
        assert_eq!(line.text(), "rate=5 ");
        typed(
            &mut line,
            &[(KeyCode::Backspace, none), (KeyCode::Backspace, none), (KeyCode::Char('7'), none)],
        );
        assert_eq!(line.text(), "rate=7");
        typed(&mut line, &[(KeyCode::Home, none), (KeyCode::Delete, none), (KeyCode::Char('R'), none)]);
        assert_eq!((line.text().as_str(), line.before().as_str()), ("Rate=7", "R"));
        line.replace_before(1, "the-r");
        assert_eq!(line.text(), "the-rate=7");
        typed(
            &mut line,
            &[(KeyCode::Char('k'), control), (KeyCode::Left, none), (KeyCode::Char('u'), control)],
        );
        assert_eq!((line.text().as_str(), line.before().as_str()), ("r", ""));
        typed(&mut line, &[(KeyCode::Backspace, none), (KeyCode::Left, none), (KeyCode::End, none)]);
        line.paste("x\n\u{1b}y");
        assert_eq!(line.text(), "rxy");
        assert!(!line.key(KeyEvent::new(KeyCode::F(2), none)));
    }
}
