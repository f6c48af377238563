//! `longwire sweep plot`

use crate::inputs::keep_inputs;
use crate::{Json, Outcome, outcome};
use anyhow::Context;
use longwire_report::{Report, Row};
use longwire_sweep::{Curve, Curves, RowTable};
use longwire_units::counted;
use longwire_validate::plot::{Plot, Style};
use std::path::{Path, PathBuf};

/// Draw a figure of a sweep's rows: one column over another
///
/// Rows that differ only in the seed are one point, their mean. Each combination of the other axes is a line.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire sweep plot rows.jsonl --x bottleneck.rate --y source.flow1.delay_ns_p95 --output delay.svg
  longwire sweep plot rows.jsonl --x bottleneck.rate --y dropped --log-x --output drops.svg")]
pub struct Args {
    /// Files of rows, of one sweep.
    #[arg(required = true, value_name = "ROWS")]
    files: Vec<PathBuf>,

    /// The column of the horizontal axis: a setting, or a result.
    #[arg(long, value_name = "COLUMN")]
    x: String,

    /// The column of the vertical axis.
    #[arg(long, value_name = "COLUMN")]
    y: String,

    /// Make the horizontal axis logarithmic.
    #[arg(long)]
    log_x: bool,

    /// Make the vertical axis logarithmic.
    #[arg(long)]
    log_y: bool,

    /// The figure's file, in SVG.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    json: Json,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let inputs: Vec<&Path> = self.files.iter().map(PathBuf::as_path).collect();
        keep_inputs([&self.output], &inputs)?;
        let mut table = RowTable::default();
        self.files.iter().try_for_each(|file| table.read(file))?;
        let Curves { labels: [x, y], curves } = Curves::of(&table, &self.x, &self.y)?;
        let mut plot = Plot::new(format!("{} over {}", self.y, self.x), x, y);
        (plot.log_x, plot.log_y) = (self.log_x, self.log_y);
        for Curve { name, points } in &curves {
            plot = plot.with(name.as_str(), Style::Line, points.clone());
        }
        let name = self.output.display();
        std::fs::write(&self.output, plot.to_svg()).with_context(|| format!("writing {name}"))?;
        if self.json.on {
            let row = |curve: &Curve| Row::new(&*curve.name, "points").measured(curve.points.len());
            let report = Report::new("sweep plot").with("output", name.to_string());
            let report = report.with_rows(curves.iter().map(row));
            return outcome::print_report(&report, true);
        }
        let points: usize = curves.iter().map(|curve| curve.points.len()).sum();
        let (points, lines) = (counted(points as u64, "point"), counted(curves.len() as u64, "line"));
        outcome::print(&format!("{name}: {points} in {lines}"))
    }
}
