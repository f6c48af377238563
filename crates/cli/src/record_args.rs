//! Options of commands that run links: the packet log, the time series and the capture.

use anyhow::{Context, ensure};
use longwire_run::link_pattern::LinkPattern;
use longwire_run::packet_log::LogOptions;
use longwire_run::packet_log::file::Format;
use longwire_run::records::RecordOptions;
use longwire_run::rotation::{FileMaker, Rotation};
use longwire_run::series::SeriesOptions;
use longwire_units::{Bytes, Nanos};
use std::path::PathBuf;

/// The least size of a file, so that it holds more than its header.
const LEAST_SIZE: Bytes = Bytes(64 * 1024);

/// What to record.
#[derive(Debug, Clone, clap::Args)]
#[command(group = clap::ArgGroup::new("records").args(["log", "series", "record"]).multiple(true))]
pub struct RecordArgs {
    /// Log the events of each packet at each link (arrive, mark, drop with the reason, leave): FILE.pcapng
    /// for Wireshark, FILE.lwlog for longwire log.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Log only links with these names; * and ? are wildcards, commas separate names.
    #[arg(long, value_name = "NAMES", requires = "log")]
    log_links: Option<LinkPattern>,

    /// Write a time series of each link (rates, drops, queue): FILE.csv, or FILE.jsonl for JSON lines.
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,

    /// The interval of the time series.
    #[arg(long, value_name = "TIME", requires = "series", default_value = "100 ms", value_parser = interval)]
    every: Nanos,

    /// Write only links with these names into the time series.
    #[arg(long, value_name = "NAMES", requires = "series")]
    series_links: Option<LinkPattern>,

    /// Write all that arrives to FILE.pcapng, from which a run in virtual time can repeat this one.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Begin another file of the log, the time series and captures when it has this size; older ones are
    /// FILE.1 and so on, before the extension. Captures of ports without interfaces are one file each.
    #[arg(long, value_name = "SIZE", requires = "records", value_parser = size)]
    file_size: Option<Bytes>,

    /// Keep this many files of each, including the current one.
    #[arg(long, value_name = "NUMBER", requires = "file_size", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    file_count: u32,
}

impl RecordArgs {
    /// The files to be written.
    pub const fn files(&self) -> [&Option<PathBuf>; 3] {
        [&self.log, &self.series, &self.record]
    }

    /// The options.
    ///
    /// # Errors
    /// If a file's name is not that of its format.
    pub fn options(&self) -> anyhow::Result<RecordOptions> {
        let log = self.log.clone().map(|file| LogOptions { file, links: self.log_links.clone() });
        if let Some(log) = &log {
            Format::of(&log.file).context("--log")?;
        }
        if let Some(file) = &self.record {
            let is_pcapng = file.extension().is_some_and(|text| text.eq_ignore_ascii_case("pcapng"));
            ensure!(is_pcapng, "--record: {}: name the capture .pcapng, which it is", file.display());
        }
        let (every, links) = (self.every, self.series_links.clone());
        let series = self.series.clone().map(|file| SeriesOptions { file, every, links });
        let rotation = self.file_size.map(|size| Rotation { size: size.0, files: self.file_count });
        Ok(RecordOptions {
            record: self.record.clone(),
            log,
            series,
            maker: FileMaker { rotation, ..FileMaker::default() },
        })
    }
}

fn size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error: longwire_units::UnitError| error.to_string())?;
    if size >= LEAST_SIZE { Ok(size) } else { Err(format!("it is too small; write at least {LEAST_SIZE}")) }
}

fn interval(text: &str) -> Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|error: longwire_units::UnitError| error.to_string())?;
    let least = Nanos::from_micros(10);
    if time >= least { Ok(time) } else { Err(format!("it is too short; write at least {least}")) }
}
