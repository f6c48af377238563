//! Time series of links: arrivals, departures and backlog at regular times, as CSV or JSON lines.

use crate::link_pattern::LinkPattern;
use crate::rotation::FileMaker;
use crate::threads::lock;
use anyhow::{Context, bail};
use longwire_engine::Sampler;
use longwire_link::LinkStats;
use longwire_scenario::Plan;
use longwire_units::Nanos;
use serde_json::json;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What to sample.
#[derive(Debug, Clone)]
pub struct SeriesOptions {
    /// The file: `.csv` or `.jsonl`.
    pub file: PathBuf,
    /// The interval.
    pub every: Nanos,
    /// The sampled links; default: all.
    pub links: Option<LinkPattern>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    JsonLines,
}

/// The columns, as in CSV.
const COLUMNS: &str = "time_ns,link,in_packets,in_bytes,out_packets,out_bytes,dropped_packets,\
    marked_packets,in_bit_s,out_bit_s,queue_packets,queue_bytes,travelling_packets";

/// Counters of a link at its last sample.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct PreviousSample {
    time: Nanos,
    /// Packets and bytes in, packets and bytes out, dropped and marked packets.
    counts: [u64; 6],
}

/// The file of a time series.
#[derive(Debug)]
pub struct SeriesFile {
    path: PathBuf,
    out: BufWriter<File>,
    /// Bytes of the file.
    written: u64,
    maker: FileMaker,
    format: Format,
    /// The sampled links; all if there is no pattern.
    chosen: Option<LinkPattern>,
    /// By a link's name.
    links: HashMap<Box<str>, PreviousSample>,
    /// Times of this sample and of the one before.
    times: [Nanos; 2],
    rows: u64,
    /// The first write error.
    error: Option<String>,
}

impl SeriesFile {
    /// Creates the file, with a header if it is CSV.
    ///
    /// # Errors
    /// If the extension is unknown, no link matches, or it can't be written.
    pub fn create(options: &SeriesOptions, maker: &FileMaker, plan: &Plan) -> anyhow::Result<Self> {
        let path = options.file.clone();
        let format = format(&path)?;
        if let Some(pattern) = &options.links {
            pattern.places(plan)?;
        }
        let what = || format!("can't write the time series {}", path.display());
        let (out, written) = maker.create(&path).and_then(|file| begin(file, format)).with_context(what)?;
        let (chosen, links, times) = (options.links.clone(), HashMap::new(), [Nanos::ZERO; 2]);
        let maker = maker.clone();
        let mut made = Self { path, out, written, maker, format, chosen, links, times, rows: 0, error: None };
        // The header is there from the start; a disk that is full does not keep the run from starting.
        made.flush();
        Ok(made)
    }

    /// Writes a row of a link if it is sampled.
    pub(crate) fn add(&mut self, time: Nanos, name: &str, stats: &LinkStats) {
        if !self.takes(name) {
            return;
        }
        if time != self.times[0] {
            self.times = [time, self.times[0]];
        }
        // A link that is new, or was added during the run, has none.
        let first = PreviousSample { time: self.times[1], ..PreviousSample::default() };
        let before = self.links.get(name).copied().unwrap_or(first);
        let now = PreviousSample { time, counts: counts_of(stats) };
        match self.links.get_mut(name) {
            Some(known) => *known = now,
            None => _ = self.links.insert(name.into(), now),
        }
        self.add_row(name, (&before, &now), stats);
    }

    /// Writes the last row of a link that is removed at `time`, if it is sampled and there is anything in it.
    /// Another one may have its name afterwards.
    pub(crate) fn add_last(&mut self, time: Nanos, name: &str, stats: &LinkStats) {
        if !self.takes(name) {
            return;
        }
        let first = PreviousSample { time: self.times[0], ..PreviousSample::default() };
        let before = self.links.remove(name).unwrap_or(first);
        let now = PreviousSample { time, counts: counts_of(stats) };
        if now != before {
            self.add_row(name, (&before, &now), stats);
        }
    }

    fn add_row(&mut self, name: &str, (before, now): (&PreviousSample, &PreviousSample), stats: &LinkStats) {
        let fresh: [u64; 6] = std::array::from_fn(|at| now.counts[at].saturating_sub(before.counts[at]));
        let nanos = u128::from(now.time.since(before.time).0.max(1));
        let rate = |bytes: u64| u64::try_from(u128::from(bytes) * 8_000_000_000 / nanos).unwrap_or(u64::MAX);
        let held = [stats.queued_packets, stats.queued_bytes, stats.travelling_packets];
        let rates = [rate(fresh[1]), rate(fresh[3])];
        let numbers = [&fresh[..], &rates, &held].concat();
        let row = match self.format {
            Format::Csv => csv((now.time, name), &numbers),
            Format::JsonLines => {
                let mut row = json!({ "time_ns": now.time.0, "link": name });
                for (column, number) in COLUMNS.split(',').skip(2).zip(numbers) {
                    row[column] = number.into();
                }
                format!("{row}\n")
            }
        };
        let written = self.write(&row);
        self.rows += u64::from(self.note(written));
    }

    /// Keeps the first error, and returns whether this write succeeded.
    fn note(&mut self, written: io::Result<()>) -> bool {
        let done = written.is_ok();
        if let Some(error) = written.err().filter(|_| self.error.is_none()) {
            let fault = format!("the time series {} is incomplete: {error}", self.path.display());
            self.maker.faults.note(fault.clone());
            self.error = Some(fault);
        }
        done
    }

    /// Writes a row, into a new file if this one is full.
    fn write(&mut self, row: &str) -> io::Result<()> {
        if let Some(rotation) = self.maker.full(self.written) {
            // If this fails, it is not tried again: each attempt moves the older files on.
            self.maker.rotation = None;
            self.out.flush()?;
            (self.out, self.written) = begin(self.maker.next(rotation, &self.path)?, self.format)?;
            self.maker.rotation = Some(rotation);
        }
        self.written += row.len() as u64;
        self.out.write_all(row.as_bytes())
    }

    /// The names of a plan's links, without those that are not sampled.
    fn names(&self, plan: &Plan) -> Vec<Option<Box<str>>> {
        plan.links.iter().map(|link| self.takes(&link.name).then(|| (*link.name).into())).collect()
    }

    fn takes(&self, name: &str) -> bool {
        self.chosen.as_ref().is_none_or(|pattern| pattern.fits(name))
    }

    /// Flushes the buffer.
    pub(crate) fn flush(&mut self) {
        let flushed = self.out.flush();
        self.note(flushed);
    }

    /// Flushes the buffer at the end; returns the number of rows.
    ///
    /// # Errors
    /// The first write error.
    pub(crate) fn finish(&mut self) -> anyhow::Result<u64> {
        self.flush();
        self.error.take().map_or(Ok(self.rows), |error| bail!(error))
    }
}

fn format(path: &Path) -> anyhow::Result<Format> {
    let extension = path.extension().map(|text| text.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("csv") => Ok(Format::Csv),
        Some("jsonl" | "ndjson") => Ok(Format::JsonLines),
        _ => bail!("{}: name the time series .csv, or .jsonl for a JSON object per line", path.display()),
    }
}

/// Begins an empty file, and returns its length: CSV has a header.
fn begin(file: File, format: Format) -> io::Result<(BufWriter<File>, u64)> {
    let mut out = BufWriter::new(file);
    if format == Format::JsonLines {
        return Ok((out, 0));
    }
    writeln!(out, "{COLUMNS}")?;
    Ok((out, COLUMNS.len() as u64 + 1))
}

/// What a [`PreviousSample`] has of a link's counters.
fn counts_of(stats: &LinkStats) -> [u64; 6] {
    let &LinkStats { in_packets, in_bytes, out_packets, out_bytes, marked_packets, .. } = stats;
    [in_packets, in_bytes, out_packets, out_bytes, stats.dropped(), marked_packets]
}

fn csv((time, name): (Nanos, &str), numbers: &[u64]) -> String {
    let numbers: String = numbers.iter().map(|number| format!(",{number}")).collect();
    format!("{},{}{numbers}\n", time.0, csv_text(name))
}

/// A text as a field of CSV (RFC 4180).
pub fn csv_text(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

/// A series of a run in virtual time: exact, however long the run takes.
pub struct VirtualSeries {
    file: Arc<Mutex<SeriesFile>>,
    planned: Arc<Mutex<PlannedLinks>>,
}

/// The plans of coming rewirings in their order.
type PlannedLinks = VecDeque<Arc<Plan>>;

struct SeriesSampler {
    file: Arc<Mutex<SeriesFile>>,
    planned: Arc<Mutex<PlannedLinks>>,
    every: Nanos,
    /// Names of the links in the series, by their places in the plan.
    names: Vec<Option<Box<str>>>,
}

impl VirtualSeries {
    /// The series of a plan, and the sampler that writes it.
    ///
    /// # Errors
    /// See [`SeriesFile::create`].
    pub fn start(
        options: &SeriesOptions,
        maker: &FileMaker,
        plan: &Plan,
    ) -> anyhow::Result<(Self, Box<dyn Sampler>)> {
        let file = SeriesFile::create(options, maker, plan)?;
        let names = file.names(plan);
        let (file, planned) = (Arc::new(Mutex::new(file)), Arc::default());
        let series = Self { file: Arc::clone(&file), planned: Arc::clone(&planned) };
        Ok((series, Box::new(SeriesSampler { file, planned, every: options.every, names })))
    }

    /// Says which links there will be after the next planned rewiring.
    pub(crate) fn follow(&self, plan: &Arc<Plan>) {
        lock(&self.planned).push_back(Arc::clone(plan));
    }

    /// Flushes the buffer; returns the number of rows.
    ///
    /// # Errors
    /// If a write failed.
    pub fn finish(self) -> anyhow::Result<u64> {
        lock(&self.file).finish()
    }
}

impl Sampler for SeriesSampler {
    fn interval(&self) -> Nanos {
        self.every
    }

    fn sample(&mut self, time: Nanos, place: u32, stats: &LinkStats) {
        if let Some(Some(name)) = self.names.get(place as usize) {
            lock(&self.file).add(time, name, stats);
        }
    }

    fn samples(&self, place: u32) -> bool {
        self.names.get(place as usize).is_some_and(Option::is_some)
    }

    fn removed(&mut self, time: Nanos, place: u32, stats: &LinkStats) {
        if let Some(Some(name)) = self.names.get(place as usize) {
            lock(&self.file).add_last(time, name, stats);
        }
    }

    fn rewired(&mut self) {
        let Some(plan) = lock(&self.planned).pop_front() else { return };
        self.names = lock(&self.file).names(&plan);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rotation::Rotation;
    use longwire_scenario::plan_of;

    #[test]
    fn a_rotation_that_fails_is_not_tried_again() {
        let ports = ["a", "b"].map(|name| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n"));
        let plan = plan_of(&(ports.concat() + "[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\n"));
        let folder = std::env::temp_dir().join(format!("longwire-series-full-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("run.2.jsonl")).unwrap();
        std::fs::write(folder.join("run.1.jsonl"), "older").unwrap();
        let options =
            SeriesOptions { file: folder.join("run.jsonl"), every: Nanos::from_millis(1), links: None };
        let rotation = Some(Rotation { size: 1, files: 3 });
        let maker = FileMaker { rotation, ..FileMaker::default() };
        let mut file = SeriesFile::create(&options, &maker, &plan).unwrap();
        // The second can't be in a file of its own, since a folder has the name of the oldest.
        (1..=3).for_each(|time| file.add(Nanos::from_millis(time), "l", &LinkStats::default()));
        let rows = file.rows;
        let error = file.finish().unwrap_err().to_string();
        let text = std::fs::read_to_string(&options.file).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(error.contains("is incomplete"), "{error}");
        assert_eq!((rows, text.lines().count()), (2, 2), "{text}");
    }

    /// A removed link has a last row. If it is added again it counts from zero, and others change their
    /// places.
    #[test]
    fn a_link_of_the_same_name_is_another_one() {
        let ports = ["a", "b"].map(|name| format!("[[port]]\nname = \"{name}\"\ndriver = \"memory\"\n"));
        let link = |name: &str, ends: [&str; 2]| {
            format!("[[link]]\nname = \"{name}\"\nfrom = \"{}\"\nto = \"{}\"\n", ends[0], ends[1])
        };
        let plan = |links: &[String]| Arc::new(plan_of(&(ports.concat() + &links.concat())));
        let (up, down) = (link("up", ["a", "b"]), link("down", ["b", "a"]));
        let path = std::env::temp_dir().join(format!("longwire-series-{}.csv", std::process::id()));
        let options = SeriesOptions { file: path.clone(), every: Nanos::from_millis(1), links: None };
        let before = plan(&[up.clone(), down.clone()]);
        let (series, mut sampler) = VirtualSeries::start(&options, &FileMaker::default(), &before).unwrap();
        let sample = |sampler: &mut dyn Sampler, millis, place, in_packets| {
            let stats = LinkStats { in_packets, ..LinkStats::default() };
            sampler.sample(Nanos::from_millis(millis), place, &stats);
        };
        sample(&mut *sampler, 1, 0, 5);
        sample(&mut *sampler, 1, 1, 8);
        series.follow(&plan(&[down, up]));
        let last = LinkStats { in_packets: 6, drops: vec![("link-removed", 2)], ..LinkStats::default() };
        sampler.removed(Nanos::from_micros(1500), 0, &last);
        sampler.rewired();
        sample(&mut *sampler, 2, 0, 9);
        sample(&mut *sampler, 2, 1, 7);
        assert_eq!(series.finish().unwrap(), 5);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let rows: Vec<_> =
            text.lines().skip(1).map(|row| row.split(',').take(7).collect::<Vec<_>>()).collect();
        assert_eq!(
            rows,
            [
                ["1000000", "up", "5", "0", "0", "0", "0"],
                ["1000000", "down", "8", "0", "0", "0", "0"],
                ["1500000", "up", "1", "0", "0", "0", "2"],
                ["2000000", "down", "1", "0", "0", "0", "0"],
                ["2000000", "up", "7", "0", "0", "0", "0"]
            ]
        );
    }
}
