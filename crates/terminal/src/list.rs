//! Which rows of a table are on the screen, and which one is selected.

use longwire_control::{ObjectPage, ObjectQuery, Sort, is_pattern};

/// The state of one table.
#[derive(Debug, Clone, Default)]
pub(crate) struct List {
    /// What was searched for.
    pub(crate) search: String,
    /// By what it is sorted.
    pub(crate) sort: Option<Sort>,
    /// Whether the order is turned round.
    pub(crate) reverse: bool,
    /// The rows there are, as of the last answer.
    total: usize,
    /// The selected row.
    index: usize,
    /// Its name; none until the instance has said it.
    name: Option<String>,
    /// The first row on the screen.
    top: usize,
    /// Rows that the screen has room for.
    height: usize,
}

/// Where a key moves the selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

impl List {
    /// The rows that are wanted.
    pub(crate) fn choice(&self) -> ObjectQuery {
        let text = self.search.trim();
        let name = match text {
            "" => None,
            pattern if is_pattern(pattern) => Some(pattern.to_owned()),
            part => Some(format!("*{part}*")),
        };
        let (sort, reverse) = (self.sort, self.reverse);
        ObjectQuery { name, sort, reverse, from: self.top, count: self.height.max(1) }
    }

    /// The name of the selected row.
    pub(crate) fn selected(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(crate) const fn total(&self) -> usize {
        self.total
    }

    /// The first row on the screen, and the selected one, from 0 on.
    pub(crate) const fn place(&self) -> (usize, usize) {
        (self.top, self.index)
    }

    /// Begins at the first row: the rows are others.
    pub(crate) fn restart(&mut self) {
        (self.index, self.top, self.name) = (0, 0, None);
    }

    /// The screen has room for this many rows.
    pub(crate) fn resize(&mut self, height: usize) {
        self.height = height;
        self.scroll();
    }

    /// Moves the selection. `page` has the rows that are known.
    pub(crate) fn go(&mut self, by: Move, page: Option<&ObjectPage>) {
        let last = self.total.saturating_sub(1);
        let screen = self.height.saturating_sub(1).max(1);
        self.index = match by {
            Move::Up => self.index.saturating_sub(1),
            Move::Down => (self.index + 1).min(last),
            Move::PageUp => self.index.saturating_sub(screen),
            Move::PageDown => (self.index + screen).min(last),
            Move::First => 0,
            Move::Last => last,
        };
        self.name = page.and_then(|page| self.named(page));
        self.scroll();
    }

    /// Takes the rows that the instance has answered. The selection stays with its object while that is on
    /// the screen, else with its row.
    pub(crate) fn take(&mut self, page: &ObjectPage) {
        self.total = page.total;
        self.index = self.index.min(self.total.saturating_sub(1));
        let own = |name: &String| page.objects.iter().position(|object| object.name == *name);
        match self.name.as_ref().and_then(own) {
            Some(at) => self.index = page.from + at,
            None => self.name = self.named(page),
        }
        self.scroll();
    }

    /// A table without objects has so many rows.
    pub(crate) fn set_total(&mut self, total: usize) {
        self.total = total;
        self.index = self.index.min(total.saturating_sub(1));
        self.scroll();
    }

    fn named(&self, page: &ObjectPage) -> Option<String> {
        let object = page.objects.get(self.index.checked_sub(page.from)?)?;
        Some(object.name.clone())
    }

    /// Keeps the selected row on the screen, and no room empty.
    fn scroll(&mut self) {
        let height = self.height.max(1);
        if self.index < self.top {
            self.top = self.index;
        } else if self.index >= self.top + height {
            self.top = self.index + 1 - height;
        }
        self.top = self.top.min(self.total.saturating_sub(height));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_control::{Kind, Object};
    use std::collections::BTreeMap;

    fn page(from: usize, total: usize, names: &[&str]) -> ObjectPage {
        let object = |name: &&str| Object {
            kind: Kind::Link,
            name: name.to_string(),
            settings: BTreeMap::new(),
            stats: serde_json::Value::Null,
            members: Vec::new(),
            notes: Vec::new(),
        };
        ObjectPage { total, from, counted_ns: 0, objects: names.iter().map(object).collect() }
    }

    #[test]
    fn the_selection_stays_with_its_object() {
        let mut list = List::default();
        list.resize(3);
        list.take(&page(0, 5, &["a", "b", "c"]));
        assert_eq!(list.selected(), Some("a"));
        list.go(Move::Down, Some(&page(0, 5, &["a", "b", "c"])));
        assert_eq!(list.selected(), Some("b"));
        // Sorted anew, it is still on the screen.
        list.take(&page(0, 5, &["c", "a", "b"]));
        assert_eq!((list.selected(), list.place()), (Some("b"), (0, 2)));
        // It is not any more: the row stays.
        list.take(&page(0, 5, &["c", "a", "d"]));
        assert_eq!((list.selected(), list.place()), (Some("d"), (0, 2)));
        // The name of a row that is not known yet comes with it.
        list.go(Move::Last, Some(&page(0, 5, &["c", "a", "d"])));
        assert_eq!((list.selected(), list.place()), (None, (2, 4)));
        list.take(&page(2, 5, &["d", "b", "e"]));
        assert_eq!(list.selected(), Some("e"));
        // Fewer rows fill the screen.
        list.take(&page(2, 2, &[]));
        assert_eq!((list.selected(), list.place()), (None, (0, 1)));
        list.take(&page(0, 2, &["d", "b"]));
        assert_eq!(list.selected(), Some("b"));
    }

    #[test]
    fn what_is_typed_is_looked_for_anywhere_in_a_name() {
        let of = |search: &str| List { search: search.into(), ..List::default() }.choice().name;
        assert_eq!(of(" "), None);
        assert_eq!(of("dsl"), Some("*dsl*".into()));
        assert_eq!(of("dsl*"), Some("dsl*".into()));
        assert_eq!(of("dsl?"), Some("dsl?".into()));
    }
}
