//! Figures, and their rendering as SVG.
//!
//! Colours are CSS variables with fallbacks, so that a figure is readable on light and on dark backgrounds.

mod axis;
mod svg;

use axis::Axis;

/// Style of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Points joined by a line.
    Line,
    /// A dashed line without marks: a reference.
    Reference,
    /// Points alone.
    Scatter,
    /// Steps: a cumulative distribution.
    Steps,
    /// A bar at each point, beside those of other series.
    Bars,
}

/// A series of points.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How they are drawn.
    pub style: Style,
    /// The points. Those that are not finite, or at or below 0 on a logarithmic axis, are left out.
    pub points: Vec<(f64, f64)>,
}

/// A figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// Its title.
    pub title: String,
    /// Label of the horizontal axis, with its unit.
    pub x: String,
    /// Label of the vertical axis, with its unit.
    pub y: String,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// Whether the vertical axis is logarithmic.
    pub log_y: bool,
    /// The series, in drawing order.
    pub series: Vec<Series>,
}

impl Plot {
    /// An empty figure with linear axes.
    pub fn new(title: impl Into<String>, x: impl Into<String>, y: impl Into<String>) -> Self {
        Self { title: title.into(), x: x.into(), y: y.into(), log_x: false, log_y: false, series: Vec::new() }
    }

    /// Makes the horizontal axis logarithmic.
    pub fn log_x(self) -> Self {
        Self { log_x: true, ..self }
    }

    /// Makes the vertical axis logarithmic.
    pub fn log_y(self) -> Self {
        Self { log_y: true, ..self }
    }

    /// Adds a series, unless it has no points.
    pub fn with(mut self, name: impl Into<String>, style: Style, points: Vec<(f64, f64)>) -> Self {
        if !points.is_empty() {
            self.series.push(Series { name: name.into(), style, points });
        }
        self
    }

    /// Whether any series is more than a reference.
    pub fn shows_a_measurement(&self) -> bool {
        self.series.iter().any(|series| series.style != Style::Reference)
    }

    /// The figure as an SVG element, 640 by 400.
    pub fn to_svg(&self) -> String {
        svg::render(self)
    }

    /// Points that can be drawn.
    fn drawable<'a>(&'a self, series: &'a Series) -> impl Iterator<Item = (f64, f64)> + 'a {
        let fits = |value: f64, log: bool| value.is_finite() && !(log && value <= 0.0);
        series.points.iter().copied().filter(move |(x, y)| fits(*x, self.log_x) && fits(*y, self.log_y))
    }

    fn axes(&self) -> (Axis, Axis) {
        let points = || self.series.iter().flat_map(|series| self.drawable(series));
        let bars = self.series.iter().any(|series| series.style == Style::Bars);
        let x = Axis::over(points().map(|(x, _)| x), self.log_x, false);
        // A bar's length is its value, so the axis begins at 0.
        let y = Axis::over(points().map(|(_, y)| y), self.log_y, bars);
        (x, y)
    }
}

/// The cumulative distribution of sorted values, in at most `most` points.
pub fn cumulative(sorted: &[f64], most: usize) -> Vec<(f64, f64)> {
    let count = sorted.len();
    let step = count.div_ceil(most.max(1)).max(1);
    let picked = (0..count).filter(|at| at % step == 0 || at + 1 == count);
    picked.map(|at| (sorted[at], (at + 1) as f64 / count as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cumulative_distributions_end_at_one() {
        assert_eq!(cumulative(&[1.0, 2.0, 4.0, 8.0], 10), [(1.0, 0.25), (2.0, 0.5), (4.0, 0.75), (8.0, 1.0)]);
        assert_eq!(cumulative(&[1.0, 2.0, 4.0, 8.0], 2), [(1.0, 0.25), (4.0, 0.75), (8.0, 1.0)]);
        assert_eq!(cumulative(&[], 2), []);
    }

    #[test]
    fn a_figure_of_references_alone_shows_nothing() {
        let plot = Plot::new("t", "x", "y").with("ideal", Style::Reference, vec![(1.0, 1.0)]);
        assert!(!plot.shows_a_measurement());
        assert!(plot.with("ours", Style::Line, vec![(1.0, 1.0)]).shows_a_measurement());
    }
}
