//! Colours, or other emphasis where colours are not wanted.

use longwire_report::output::allows_colours;
use ratatui::style::{Color, Modifier, Style};

/// What a piece of text says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mood {
    /// Nothing special.
    #[default]
    Plain,
    /// It is in order.
    Good,
    /// It deserves a look.
    Warn,
    /// It is bad.
    Bad,
    /// It is less important.
    Faint,
    /// It is a title.
    Title,
    /// It is the title by which rows are sorted, or the table that is open.
    Chosen,
    /// It is a curve.
    Curve,
}

/// How moods look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Theme {
    colours: bool,
}

impl Theme {
    /// The theme with or without colours.
    pub(crate) const fn new(colours: bool) -> Self {
        Self { colours }
    }

    /// As the environment wants it.
    pub(crate) fn of_environment() -> Self {
        Self::new(allows_colours())
    }

    pub(crate) const fn style(self, mood: Mood) -> Style {
        let plain = Style::new();
        match (mood, self.colours) {
            (Mood::Plain, _) | (Mood::Good | Mood::Curve, false) => plain,
            (Mood::Good, true) => plain.fg(Color::Green),
            (Mood::Warn, true) => plain.fg(Color::Yellow),
            (Mood::Bad, true) => plain.fg(Color::Red).add_modifier(Modifier::BOLD),
            (Mood::Curve, true) => plain.fg(Color::Cyan),
            (Mood::Warn, false) => plain.add_modifier(Modifier::UNDERLINED),
            (Mood::Bad | Mood::Title, false) | (Mood::Title, true) => plain.add_modifier(Modifier::BOLD),
            (Mood::Faint, _) => plain.add_modifier(Modifier::DIM),
            (Mood::Chosen, _) => plain.add_modifier(Modifier::BOLD).add_modifier(Modifier::REVERSED),
        }
    }

    /// The selected row.
    pub(crate) const fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
