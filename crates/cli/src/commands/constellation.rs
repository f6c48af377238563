//! `longwire constellation`

use crate::inputs::keep_inputs;
use crate::{Json, Outcome, outcome};
use anyhow::{Context, anyhow, ensure};
use longwire_constellation::{Request, generate};
use longwire_report::Report;
use longwire_scenario::quoted;
use longwire_units::Nanos;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longest file of a constellation, in bytes.
const LONGEST: u64 = 1 << 20;

/// Make a scenario of satellite links: delays and outages over time, from orbits and ground stations
///
/// Reads a file with satellites (a Walker constellation, or two-line elements), ground stations, and paths
/// between them; or takes these from options. Writes constellation.toml into a folder, and beside it for each
/// path a trace of its delay and one of its state: links follow them without events. Satellites change every
/// 15 seconds at most, as Starlink's do. Prints for each path its delays beside those that geometry allows,
/// its outages and handovers, for how long satellites serve, and how high they are.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire constellation scenarios/constellation/starlink.toml --output sky
  longwire constellation --walker delta:53:1584/72/39:550km --station a:60:11 --station b:42:12 --output sky
  longwire constellation --tle starlink.tle --station a:47.6:-122.3 --station b:45.5:-122.7:30 --output sky
  longwire run sky/constellation.toml --virtual

docs/book/constellations.md has the keys of the file, the models and their errors.")]
pub struct Args {
    /// The file of the constellation.
    #[arg(required_unless_present_any = ["walker", "tle"], conflicts_with_all = ["walker", "tle"])]
    file: Option<PathBuf>,

    /// Satellites of a Walker constellation: delta or star, inclination in degrees, satellites / planes /
    /// phasing, and altitude, as in delta:53:1584/72/39:550km.
    #[arg(long, value_name = "SPEC", requires = "station", conflicts_with = "tle")]
    #[arg(value_parser = walker_keys)]
    walker: Option<String>,

    /// Satellites of a file of two-line elements.
    #[arg(long, value_name = "FILE", requires = "station")]
    tle: Option<PathBuf>,

    /// A ground station, repeatable: its name, its latitude and longitude in degrees, and the lowest
    /// elevation of a satellite in degrees (25), as in oslo:59.91:10.75. A path leads from the first one to
    /// each other.
    #[arg(long, value_name = "NAME:LATITUDE:LONGITUDE", conflicts_with = "file", value_parser = station_keys)]
    station: Vec<StationKeys>,

    /// When the traces begin, for two-line elements. Default: the newest of their epochs.
    #[arg(long, value_name = "TIME", requires = "tle")]
    start: Option<String>,

    /// How long the traces are. Default: 10min.
    #[arg(long, value_name = "TIME", conflicts_with = "file")]
    duration: Option<Nanos>,

    /// Paths lead over links between satellites, not down at the first one.
    #[arg(long, conflicts_with_all = ["file", "tle"])]
    lasers: bool,

    /// The folder to write into.
    #[arg(long, short, value_name = "FOLDER")]
    output: PathBuf,

    #[command(flatten)]
    json: Json,
}

/// A station as its name, and keys of the file.
#[derive(Debug, Clone)]
struct StationKeys {
    name: String,
    keys: String,
}

/// A Walker constellation as keys of the file.
fn walker_keys(text: &str) -> Result<String, String> {
    let keys = || {
        let parts: Vec<&str> = text.split([':', '/']).collect();
        let [pattern @ ("delta" | "star"), inclination, satellites, planes, phasing, altitude] = parts[..]
        else {
            return None;
        };
        let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
        let whole = |text: &str| text.parse::<u32>().ok();
        Some(format!(
            "[walker]\npattern = \"{pattern}\"\ninclination = {:?}\nsatellites = {}\nplanes = {}\n\
             phasing = {}\naltitude-km = {:?}\n",
            number(inclination)?,
            whole(satellites)?,
            whole(planes)?,
            whole(phasing)?,
            number(altitude.strip_suffix("km").unwrap_or(altitude))?
        ))
    };
    keys().ok_or_else(|| "write it as delta:53:1584/72/39:550km".to_owned())
}

fn station_keys(text: &str) -> Result<StationKeys, String> {
    let wrong = || "write it as oslo:59.91:10.75".to_owned();
    let (name, rest) = text.split_once(':').ok_or_else(wrong)?;
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let numbers: Result<Vec<f64>, _> = rest.split(':').map(str::parse::<f64>).collect();
    let numbers = numbers.map_err(|_| wrong())?;
    if name.is_empty() || !name.chars().all(good) || !(2..=3).contains(&numbers.len()) {
        return Err(wrong());
    }
    let mut keys = format!(
        "[[station]]\nname = \"{name}\"\nlatitude = {:?}\nlongitude = {:?}\n",
        numbers[0], numbers[1]
    );
    if let Some(elevation) = numbers.get(2) {
        keys.push_str(&format!("minimum-elevation = {elevation:?}\n"));
    }
    Ok(StationKeys { name: name.into(), keys })
}

impl Args {
    /// Writes the scenario, and prints what its paths do.
    ///
    /// # Errors
    /// The mistake in the file or the options, or what can't be written: an input never is.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let request = self.request()?;
        let generated = generate(&request);
        let inputs: Vec<&Path> =
            self.file.as_deref().into_iter().chain(request.elements.as_deref()).collect();
        keep_inputs(generated.files.iter().map(|file| self.output.join(&file.name)), &inputs)?;
        std::fs::create_dir_all(&self.output)
            .with_context(|| format!("{} can't be made", self.output.display()))?;
        let mut files = Vec::new();
        for file in &generated.files {
            let path = self.output.join(&file.name);
            std::fs::write(&path, &file.text)
                .with_context(|| format!("{} can't be written", path.display()))?;
            files.push(path.display().to_string());
        }
        let report = Report::new("constellation").with("constellation", request.sky.description());
        let report = report.with("files", files.clone()).with_rows(generated.rows(&request));
        let printed = outcome::print_report(&report, self.json.on)?;
        if !self.json.on {
            outcome::note(&format!("written: {}, and {} traces", files[0], files.len() - 1));
        }
        Ok(printed)
    }

    fn request(&self) -> anyhow::Result<Request> {
        match &self.file {
            Some(file) => Ok(Request::read(&file.display().to_string(), &read(file)?)?),
            None => Ok(Request::read("the options", &self.text()?)?),
        }
    }

    /// The options as a file.
    fn text(&self) -> anyhow::Result<String> {
        let mut text = String::new();
        if let Some(duration) = self.duration {
            text.push_str(&format!("duration = \"{duration}\"\n"));
        }
        if let Some(start) = &self.start {
            text.push_str(&format!("start = {}\n", quoted(start)));
        }
        if let Some(tle) = &self.tle {
            let path = std::path::absolute(tle).context("the file of elements has no path")?;
            let path = path.to_str().ok_or_else(|| anyhow!("the path of {} is not a text", tle.display()))?;
            text.push_str(&format!("tle = {}\n", quoted(path)));
        }
        text += self.walker.as_deref().unwrap_or_default();
        self.station.iter().for_each(|station| text.push_str(&station.keys));
        ensure!(self.station.len() > 1, "a path needs two stations; write --station twice");
        let via = if self.lasers { "lasers" } else { "bent-pipe" };
        for other in &self.station[1..] {
            let (from, to) = (&self.station[0].name, &other.name);
            text.push_str(&format!("[[path]]\nbetween = [\"{from}\", \"{to}\"]\nvia = \"{via}\"\n"));
        }
        Ok(text)
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    let file = path.display().to_string();
    let mut text = String::new();
    // One byte above the limit, so that a longer file is refused instead of cut.
    File::open(path)
        .and_then(|opened| opened.take(LONGEST + 1).read_to_string(&mut text))
        .with_context(|| format!("{file} can't be read; name a file of a constellation"))?;
    ensure!(text.len() as u64 <= LONGEST, "{file} is longer than 1 MiB; name a file of a constellation");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_long_is_refused() {
        let file = std::env::temp_dir().join(format!("longwire-constellation-{}", std::process::id()));
        for (length, is_read) in [(LONGEST, true), (LONGEST + 1, false)] {
            std::fs::write(&file, "#".repeat(length as usize)).unwrap();
            assert_eq!(read(&file).is_ok(), is_read, "{length}");
        }
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn options_become_keys() {
        let keys = walker_keys("star:86.4:66/6/2:780km").unwrap();
        assert!(keys.contains("inclination = 86.4\nsatellites = 66\nplanes = 6\nphasing = 2\n"), "{keys}");
        assert!(keys.contains("altitude-km = 780.0\n"), "{keys}");
        for wrong in
            ["", "delta", "ring:53:4/2/1:550", "delta:x:4/2/1:550", "delta:53:4/2:550", "delta:inf:4/2/1:5"]
        {
            assert!(walker_keys(wrong).is_err(), "{wrong}");
        }
        let station = station_keys("oslo:59.91:10.75:30").unwrap();
        assert!(station.keys.ends_with("longitude = 10.75\nminimum-elevation = 30.0\n"), "{}", station.keys);
        for wrong in ["oslo", "oslo:1", "oslo:1:2:3:4", "o\"slo:1:2", ":1:2", "oslo:north:2"] {
            assert!(station_keys(wrong).is_err(), "{wrong}");
        }
    }
}
