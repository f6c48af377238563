//! A figure as an SVG element.

use super::axis::Axis;
use super::{Plot, Series, Style};
use crate::html::escaped;
use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
/// The plot area.
const LEFT: f64 = 72.0;
const RIGHT: f64 = 622.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 330.0;
/// Height of a legend line, and width of a character.
const LINE: f64 = 16.0;
const CHARACTER: f64 = 6.4;

/// Maximum number of decimals.
const MOST_DECIMALS: usize = 12;

/// Number of colours that are distinct on light and on dark backgrounds (Okabe and Ito's, without black and
/// yellow), as CSS classes.
const COLOURS: usize = 6;

/// Draws a figure.
pub(super) fn render(plot: &Plot) -> String {
    let (x, y) = plot.axes();
    let legend = legend(plot);
    let height = HEIGHT + legend.1;
    let title = escaped(&plot.title);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"{title}\" class=\"plot\">\n\
         <text class=\"title\" x=\"{LEFT}\" y=\"22\">{title}</text>\n"
    );
    frame(&mut out, plot, x, y);
    for (number, series) in plot.series.iter().enumerate() {
        draw(&mut out, plot, number, series, (x, y));
    }
    out + &legend.0 + "</svg>\n"
}

/// Writes a line of output. Writing to a String can't fail.
macro_rules! line {
    ($out:expr, $($text:tt)*) => { let _ = writeln!($out, $($text)*); };
}

fn across(axis: Axis, value: f64) -> f64 {
    LEFT + axis.place(value) * (RIGHT - LEFT)
}

fn up(axis: Axis, value: f64) -> f64 {
    BOTTOM - axis.place(value) * (BOTTOM - TOP)
}

/// Grid, labels of values, labels of axes.
fn frame(out: &mut String, plot: &Plot, x: Axis, y: Axis) {
    for (value, name) in x.ticks() {
        let at = across(x, value);
        line!(
            out,
            "<line class=\"grid\" x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{BOTTOM}\"/>\
             <text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
            BOTTOM + 16.0
        );
    }
    for (value, name) in y.ticks() {
        let at = up(y, value);
        line!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{RIGHT}\" y2=\"{at:.1}\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
            LEFT - 6.0,
            at + 4.0
        );
    }
    let (width, height) = (RIGHT - LEFT, BOTTOM - TOP);
    line!(out, "<rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{width}\" height=\"{height}\"/>");
    line!(
        out,
        "<text class=\"axis\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        f64::midpoint(LEFT, RIGHT),
        BOTTOM + 36.0,
        escaped(&plot.x)
    );
    let middle = f64::midpoint(TOP, BOTTOM);
    line!(
        out,
        "<text class=\"axis\" transform=\"translate(18 {middle:.1}) rotate(-90)\" \
         text-anchor=\"middle\">{}</text>",
        escaped(&plot.y)
    );
}

fn draw(out: &mut String, plot: &Plot, number: usize, series: &Series, (x, y): (Axis, Axis)) {
    let colour = number % COLOURS;
    let points: Vec<_> = plot.drawable(series).map(|point| (across(x, point.0), up(y, point.1))).collect();
    let values = plot.drawable(series);
    match series.style {
        Style::Line | Style::Reference | Style::Steps => {
            let class = if series.style == Style::Reference { "line reference" } else { "line" };
            let path = path(&points, series.style == Style::Steps);
            line!(out, "<path class=\"{class} c{colour}\" d=\"{path}\"/>");
        }
        Style::Bars => bars(out, plot, number, &points, y),
        Style::Scatter => {}
    }
    if matches!(series.style, Style::Line | Style::Scatter) {
        for (at, value) in points.iter().zip(values) {
            line!(
                out,
                "<circle class=\"mark c{colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"><title>{}: {}, \
                 {}</title></circle>",
                at.0,
                at.1,
                escaped(&series.name),
                short(value.0),
                short(value.1)
            );
        }
    }
}

/// A value in five digits, or all before the point: enough for a mark.
fn short(value: f64) -> String {
    let enough = |decimals: &usize| value.abs() * 10f64.powi(*decimals as i32) >= 10_000.0;
    let decimals = (0..=MOST_DECIMALS).find(enough).unwrap_or(MOST_DECIMALS);
    let text = format!("{value:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

fn path(points: &[(f64, f64)], steps: bool) -> String {
    let mut path = String::new();
    for (number, (x, y)) in points.iter().enumerate() {
        // A distribution keeps its share until the next value.
        if steps && number > 0 {
            let _ = write!(path, "H{x:.1} V{y:.1} ");
        } else {
            let _ = write!(path, "{}{x:.1} {y:.1} ", if number == 0 { 'M' } else { 'L' });
        }
    }
    path.trim_end().to_owned()
}

fn bars(out: &mut String, plot: &Plot, number: usize, points: &[(f64, f64)], y: Axis) {
    let groups = plot.series.iter().filter(|series| series.style == Style::Bars).count().max(1);
    let place = plot.series[..number].iter().filter(|series| series.style == Style::Bars).count();
    let width = (240.0 / (groups * points.len().max(1)) as f64).clamp(3.0, 28.0);
    let floor = BOTTOM - y.floor() * (BOTTOM - TOP);
    for (x, top) in points {
        let left = x + (place as f64 - groups as f64 / 2.0) * width;
        let (top, height) = (top.min(floor), (top - floor).abs());
        line!(
            out,
            "<rect class=\"bar c{}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>",
            number % COLOURS,
            width - 1.0
        );
    }
}

/// The legend below the figure, and how much it adds to its height.
fn legend(plot: &Plot) -> (String, f64) {
    let mut out = String::new();
    let (mut x, mut y) = (LEFT, BOTTOM + 58.0);
    for (number, series) in plot.series.iter().enumerate() {
        let width = 30.0 + series.name.chars().count() as f64 * CHARACTER + 14.0;
        if x + width > WIDTH && x > LEFT {
            (x, y) = (LEFT, y + LINE);
        }
        let colour = number % COLOURS;
        let class = if series.style == Style::Reference { "line reference" } else { "line" };
        line!(
            out,
            "<path class=\"{class} c{colour}\" d=\"M{x:.1} {:.1} h22\"/><text class=\"tick\" x=\"{:.1}\" \
             y=\"{y:.1}\">{}</text>",
            y - 4.0,
            x + 28.0,
            escaped(&series.name)
        );
        x += width;
    }
    (out, (y + 10.0 - HEIGHT).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_in_five_digits() {
        let table = [
            (0.1 + 0.2, "0.3"),
            (496.25, "496.25"),
            (1.0 / 3.0, "0.33333"),
            (2.0 / 3.0 * 1e-5, "0.0000066667"),
            (123_456.789, "123457"),
            (64_000.0, "64000"),
            (100.0, "100"),
            (-12.345_678, "-12.346"),
            (0.0, "0"),
            (-1e-15, "0"),
        ];
        for (value, text) in table {
            assert_eq!(short(value), text);
        }
    }
}
