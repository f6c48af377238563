//! What is asked for: the file of a constellation.

use crate::earth::{Place, elevation_degrees};
use crate::sky::Sky;
use crate::tle::MOST_SATELLITES;
use crate::vector::Vector;
use crate::walker::{Pattern, Walker};
use crate::{Fault, ensure};
use longwire_units::{Nanos, Rate};
use serde::Deserialize;
use std::fs::File;
use std::io::Read;
use std::path::{Path as FilePath, PathBuf};
use thiserror::Error;

/// Most stations: each has a network of its own, 10.N.0.0/24.
const MOST_STATIONS: usize = 100;
/// Most paths: each has two addresses of 10.200.0.0/16, and a number in the names of its ports.
const MOST_PATHS: usize = 999;
/// Longest name of a station: with the number of a path it is the name of an interface, at most 15.
const LONGEST_NAME: usize = 11;
/// Longest duration.
const LONGEST: Nanos = Nanos::from_secs(7 * 86_400);
/// Most satellites of which an epoch draws one.
const MOST_CANDIDATES: usize = 100;
/// Most steps of all traces.
const MOST_STEPS: u64 = 20_000_000;
/// Most positions of satellites: of each one at the start of each epoch.
const MOST_POSITIONS: u64 = 2_000_000_000;
/// Longest file of elements in bytes.
const LONGEST_ELEMENTS: u64 = 16 << 20;

/// Where the keys are described.
const KEYS_ARE: &str = "docs/book/constellations.md lists the keys";

/// A constellation, stations, paths between them, and times.
#[derive(Debug, Clone)]
pub struct Request {
    /// The satellites.
    pub sky: Sky,
    /// The file of two-line elements, if the satellites are from one.
    pub elements: Option<PathBuf>,
    /// The ground stations: at least two.
    pub stations: Vec<Station>,
    /// The paths, in the file's order: at least one.
    pub paths: Vec<Path>,
    /// How long the traces are.
    pub duration: Nanos,
    /// Time from one value of a trace to the next.
    pub step: Nanos,
    /// Time for which satellites keep serving a path: only at its multiples others take over.
    pub epoch: Nanos,
    /// Satellites with the least delay of which each epoch of a bent pipe draws one.
    pub candidates: usize,
    /// How long a path is down when another satellite takes over.
    pub handover_outage: Nanos,
    /// Whether traces start again at their end; otherwise their last value stays.
    pub repeats: bool,
    /// Whether routers have control planes instead of static routes.
    pub control_plane: bool,
}

/// A ground station.
#[derive(Debug, Clone, PartialEq)]
pub struct Station {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// Lowest elevation of a satellite that it can use, in degrees.
    pub minimum_elevation: f64,
}

impl Station {
    /// Whether it can use a satellite there.
    pub(crate) fn sees(&self, position: Vector) -> bool {
        elevation_degrees(&self.place, position) >= self.minimum_elevation
    }

    /// The name of its router.
    pub(crate) fn router_name(&self) -> String {
        format!("{}-router", self.name)
    }

    /// The name of its router's port on the path with this number, from 0.
    pub(crate) fn port_name(&self, path: usize) -> String {
        format!("{}-{}", self.name, path + 1)
    }
}

/// A path between two stations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Places of its two stations in the request.
    pub ends: [usize; 2],
    /// What it leads through.
    pub via: Medium,
    /// Rate of its link, if it has one.
    pub rate: Option<Rate>,
}

/// What a path leads through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// One satellite that both ends see.
    BentPipe,
    /// Satellites with links between them.
    Lasers,
    /// The ground, with a constant delay.
    Ground(Nanos),
}

/// A mistake in a request.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}: {what}; {fix}")]
pub struct ConstellationError {
    /// The file, or what has the mistake instead.
    pub file: String,
    /// The fault.
    pub what: String,
    /// The fix.
    pub fix: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RequestKeys {
    walker: Option<WalkerKeys>,
    tle: Option<String>,
    start: Option<String>,
    #[serde(default = "ten_minutes")]
    duration: Nanos,
    #[serde(default = "one_second")]
    step: Nanos,
    #[serde(default = "fifteen_seconds")]
    epoch: Nanos,
    #[serde(default = "three")]
    candidates: usize,
    #[serde(default)]
    handover_outage: Nanos,
    #[serde(default = "starlinks_elevation")]
    minimum_elevation: f64,
    #[serde(default)]
    repeats: bool,
    #[serde(default)]
    control_plane: bool,
    station: Vec<StationKeys>,
    path: Vec<PathKeys>,
}

const fn ten_minutes() -> Nanos {
    Nanos::from_secs(600)
}

const fn one_second() -> Nanos {
    Nanos::from_secs(1)
}

/// Starlink's scheduler assigns satellites every 15 s: see the book.
const fn fifteen_seconds() -> Nanos {
    Nanos::from_secs(15)
}

/// The number with which satellites serve for as long as Starlink's: see the book.
const fn three() -> usize {
    3
}

const fn starlinks_elevation() -> f64 {
    25.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WalkerKeys {
    pattern: Pattern,
    inclination: f64,
    satellites: u32,
    planes: u32,
    phasing: u32,
    altitude_km: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct StationKeys {
    name: String,
    latitude: f64,
    longitude: f64,
    #[serde(default)]
    altitude_m: f64,
    minimum_elevation: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PathKeys {
    between: [String; 2],
    via: Via,
    delay: Option<Nanos>,
    rate: Option<Rate>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Via {
    BentPipe,
    Lasers,
    Ground,
}

impl Request {
    /// Reads a file's text. Errors call it `file`; a file of elements is relative to its folder.
    ///
    /// # Errors
    /// The first mistake.
    pub fn read(file: &str, text: &str) -> Result<Self, ConstellationError> {
        let keys = toml::from_str::<RequestKeys>(text)
            .map_err(|error| (error.to_string().trim_end().to_owned(), KEYS_ARE.to_owned()));
        let folder = FilePath::new(file).parent().unwrap_or(FilePath::new(""));
        let named = |(what, fix)| ConstellationError { file: file.into(), what, fix };
        keys.and_then(|keys| keys.checked(folder)).map_err(named)
    }

    /// The name of a path's link: its stations, and its number if several join the same two.
    pub(crate) fn link_name(&self, number: usize) -> String {
        let path = &self.paths[number];
        let [one, other] = path.ends.map(|end| &*self.stations[end].name);
        let same = |before: &&Path| before.ends == path.ends || before.ends == [path.ends[1], path.ends[0]];
        match self.paths[..number].iter().filter(same).count() {
            0 => format!("{one}--{other}"),
            more => format!("{one}--{other}--{}", more + 1),
        }
    }
}

fn fault<T>(what: &str, fix: &str) -> Result<T, Fault> {
    Err((what.into(), fix.into()))
}

impl RequestKeys {
    fn checked(self, folder: &FilePath) -> Result<Request, Fault> {
        self.check_schedule()?;
        let (range, fix) = (0.0..=90.0, "write 0 to 90 degrees");
        ensure(range.contains(&self.minimum_elevation), "minimum-elevation is out of range", fix)?;
        let file = self.tle.as_ref().map(|name| folder.join(name));
        let lasers = self.path.iter().any(|path| path.via == Via::Lasers);
        let sky = match (self.walker, self.tle) {
            (Some(_), Some(_)) | (None, None) => {
                let fix = "write a section [walker], or the key tle";
                return fault("it has no satellites, or two kinds", fix);
            }
            (Some(_), None) if self.start.is_some() => {
                let fix = "leave it out: at the start the first satellite is at longitude 0";
                return fault("start is a time for two-line elements", fix);
            }
            (Some(keys), None) => Sky::of_walker(keys.checked()?),
            (None, Some(_)) if lasers => {
                let fix = "use a section [walker], whose planes say which satellites are neighbours";
                return fault("paths over lasers need the planes of the satellites", fix);
            }
            (None, Some(name)) => {
                let text = elements(&folder.join(&name))?;
                let named = |(what, fix)| (format!("{name}: {what}"), fix);
                Sky::of_elements(&text, self.start.as_deref()).map_err(named)?
            }
        };
        check_positions(&sky, self.duration, self.epoch)?;
        let mut stations: Vec<Station> = Vec::new();
        for keys in self.station {
            let station = keys.checked(self.minimum_elevation)?;
            let what = format!("two stations are called \"{}\"", station.name);
            ensure(stations.iter().all(|other| other.name != station.name), what, "rename one")?;
            stations.push(station);
        }
        for (section, count, least, most) in
            [("station", stations.len(), 2, MOST_STATIONS), ("path", self.path.len(), 1, MOST_PATHS)]
        {
            let what = format!("the number of {section}s is {count}");
            let fix = format!("write {least} to {most} sections [[{section}]]");
            ensure((least..=most).contains(&count), what, fix)?;
        }
        let steps = (self.duration.0 / self.step.0).saturating_mul(self.path.len() as u64);
        let fix = format!("raise the step, so that there are at most {MOST_STEPS}");
        ensure(steps <= MOST_STEPS, format!("the traces have {steps} values"), fix)?;
        let paths: Vec<Path> =
            self.path.into_iter().map(|keys| keys.checked(&stations)).collect::<Result<_, _>>()?;
        check_generated_names(&stations, &paths)?;
        Ok(Request {
            sky,
            elements: file,
            stations,
            paths,
            duration: self.duration,
            step: self.step,
            epoch: self.epoch,
            candidates: self.candidates,
            handover_outage: self.handover_outage,
            repeats: self.repeats,
            control_plane: self.control_plane,
        })
    }

    fn check_schedule(&self) -> Result<(), Fault> {
        let Self { duration, step, epoch, handover_outage: outage, candidates, .. } = *self;
        let least = Nanos::from_millis(1);
        for (key, value, is_good, fix) in [
            ("duration", duration, (least..=LONGEST).contains(&duration), format!("1 ms to {LONGEST}")),
            ("step", step, (least..=epoch).contains(&step), format!("1 ms to the epoch, {epoch}")),
            ("epoch", epoch, epoch <= LONGEST, format!("at most {LONGEST}")),
            ("handover-outage", outage, outage < epoch, format!("less than the epoch, {epoch}")),
        ] {
            ensure(is_good, format!("{key} is {value}"), format!("write {fix}"))?;
        }
        let (range, fix) = (1..=MOST_CANDIDATES, format!("write 1 to {MOST_CANDIDATES}"));
        ensure(range.contains(&candidates), format!("candidates is {candidates}"), fix)
    }
}

/// Checks that there are not too many epochs for so many satellites.
fn check_positions(sky: &Sky, duration: Nanos, epoch: Nanos) -> Result<(), Fault> {
    let positions = (duration.0 / epoch.0).saturating_mul(sky.satellites() as u64);
    let what = format!("the epochs have {positions} positions of satellites");
    let fix = format!("raise the epoch, so that there are at most {MOST_POSITIONS}");
    ensure(positions <= MOST_POSITIONS, what, fix)
}

/// Checks that no station has the name of another one's router, or of a port of that router: in a scenario
/// hosts, routers and ports share a namespace.
fn check_generated_names(stations: &[Station], paths: &[Path]) -> Result<(), Fault> {
    let routers = stations.iter().map(|station| (station, "the router", station.router_name()));
    let ports = paths.iter().enumerate().flat_map(|(number, path)| {
        path.ends.map(|end| (&stations[end], "a port", stations[end].port_name(number)))
    });
    for (owner, what, name) in routers.chain(ports) {
        let what = format!("station \"{name}\" has the name of {what} of \"{}\"", owner.name);
        ensure(stations.iter().all(|station| station.name != name), what, "rename one")?;
    }
    Ok(())
}

/// The text of a file of elements.
fn elements(path: &FilePath) -> Result<String, Fault> {
    let failed = |why: String| {
        (format!("tle: {}: {why}", path.display()), "name a file of two-line elements".to_owned())
    };
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST_ELEMENTS + 1).read_to_string(&mut text));
    match read {
        Err(error) => Err(failed(error.to_string())),
        Ok(length) if length as u64 > LONGEST_ELEMENTS => {
            Err(failed(format!("it is longer than {LONGEST_ELEMENTS} bytes")))
        }
        Ok(_) => Ok(text),
    }
}

impl WalkerKeys {
    fn checked(self) -> Result<Walker, Fault> {
        let Self { pattern, inclination, satellites, planes, phasing, altitude_km } = self;
        for (key, value, range, fix) in [
            ("inclination", inclination, 0.0..=180.0, "write 0 to 180 degrees"),
            ("altitude-km", altitude_km, 160.0..=36_000.0, "write 160 to 36000"),
        ] {
            ensure(range.contains(&value), format!("walker: {key} is out of range"), fix)?;
        }
        let (count, fix) = (satellites as usize, format!("write 1 to {MOST_SATELLITES}"));
        let what = format!("walker: satellites is {satellites}");
        ensure((1..=MOST_SATELLITES).contains(&count), what, fix)?;
        let what = format!("walker: {satellites} satellites can't be spread evenly over {planes} planes");
        let fix = "write a number of planes that divides the number of satellites";
        ensure(planes != 0 && satellites % planes == 0, what, fix)?;
        let fix = format!("write 0 to {}: less than the planes", planes - 1);
        ensure(phasing < planes, format!("walker: phasing is {phasing}"), fix)?;
        Ok(Walker { pattern, inclination_degrees: inclination, satellites, planes, phasing, altitude_km })
    }
}

impl StationKeys {
    fn checked(self, usual_elevation: f64) -> Result<Station, Fault> {
        let Self { name, latitude, longitude, altitude_m, minimum_elevation } = self;
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let begins_well = name.starts_with(|c: char| c.is_ascii_lowercase());
        // Two in a row are between the stations of a link's name.
        let is_good =
            begins_well && name.len() <= LONGEST_NAME && name.chars().all(good) && !name.contains("--");
        let letters = format!("1 to {LONGEST_NAME} small letters, digits and -, beginning with a letter");
        let fix = format!("write {letters}, no two - in a row");
        ensure(is_good, format!("{name:?} can't be a station's name"), fix)?;
        let minimum_elevation = minimum_elevation.unwrap_or(usual_elevation);
        for (key, value, least, most) in [
            ("latitude", latitude, -90.0, 90.0),
            ("longitude", longitude, -180.0, 360.0),
            ("altitude-m", altitude_m, -500.0, 9000.0),
            ("minimum-elevation", minimum_elevation, 0.0, 90.0),
        ] {
            let what = format!("station \"{name}\": {key} is out of range");
            ensure((least..=most).contains(&value), what, format!("write {least} to {most}"))?;
        }
        Ok(Station { name, place: Place::new(latitude, longitude, altitude_m / 1000.0), minimum_elevation })
    }
}

impl PathKeys {
    fn checked(self, stations: &[Station]) -> Result<Path, Fault> {
        let known = |name: &String| stations.iter().position(|station| station.name == *name);
        let [Some(one), Some(other)] = [0, 1].map(|at| known(&self.between[at])) else {
            let names: Vec<_> = stations.iter().map(|station| &*station.name).collect();
            let what = format!("there is no station of one of the names {:?}", self.between);
            return fault(&what, &format!("there are {}", names.join(", ")));
        };
        let what = format!("a path leads from \"{}\" to itself", self.between[0]);
        ensure(one != other, what, "name two stations")?;
        let via = match (self.via, self.delay) {
            (Via::BentPipe, None) => Medium::BentPipe,
            (Via::Lasers, None) => Medium::Lasers,
            (Via::Ground, Some(delay)) if delay <= Nanos::from_secs(100) => Medium::Ground(delay),
            (Via::Ground, _) => {
                let path = format!("the path on the ground between {:?}", self.between);
                return fault(&(path + " has no delay up to 100 s"), "write delay = \"30 ms\"");
            }
            (_, Some(_)) => {
                let what = format!("the path between {:?} has a delay of its own", self.between);
                return fault(&what, "leave it out: the orbits set it");
            }
        };
        Ok(Path { ends: [one, other], via, rate: self.rate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = r#"
duration = "60 s"

[walker]
pattern = "delta"
inclination = 53
satellites = 1584
planes = 72
phasing = 39
altitude-km = 550

[[station]]
name = "oslo"
latitude = 59.91
longitude = 10.75

[[station]]
name = "rome"
latitude = 41.9
longitude = 12.5
altitude-m = 21
minimum-elevation = 40

[[path]]
between = ["oslo", "rome"]
via = "bent-pipe"
rate = "50 Mbit/s"
"#;

    #[test]
    fn what_is_not_said_is_usual() {
        let request = Request::read("c.toml", FILE).unwrap();
        assert_eq!((request.sky.satellites(), request.sky.name(23)), (1584, "1-1".to_owned()));
        assert_eq!((request.epoch, request.step), (Nanos::from_secs(15), Nanos::from_secs(1)));
        assert_eq!((request.candidates, request.handover_outage), (3, Nanos::ZERO));
        let elevations: Vec<f64> = request.stations.iter().map(|one| one.minimum_elevation).collect();
        assert_eq!(elevations, [25.0, 40.0]);
        assert_eq!(request.paths[0].ends, [0, 1]);
    }

    #[test]
    fn mistakes_are_named_with_their_fix() {
        for (from, to, wanted) in [
            ("planes = 72", "planes = 71", "can't be spread evenly over 71 planes"),
            ("planes = 72", "planes = 0", "over 0 planes"),
            ("phasing = 39", "phasing = 72", "phasing is 72"),
            ("satellites = 1584", "satellites = 1584000", "write 1 to 20000"),
            ("inclination = 53", "inclination = nan", "inclination is out of range"),
            ("altitude-km = 550", "altitude-km = 5", "altitude-km is out of range"),
            ("altitude-km = 550", "altitude-km = 550\ncolour = 1", "unknown field `colour`"),
            ("\"oslo\", \"rome\"", "\"oslo\", \"oslo\"", "to itself"),
            ("\"oslo\", \"rome\"", "\"oslo\", \"paris\"", "there are oslo, rome"),
            ("name = \"rome\"", "name = \"oslo\"", "two stations are called"),
            ("name = \"rome\"", "name = \"../rome\"", "can't be a station's name"),
            ("name = \"rome\"", "name = \"a-very-long-name\"", "can't be a station's name"),
            ("name = \"rome\"", "name = \"rome--b\"", "beginning with a letter, no two - in a row"),
            ("latitude = 41.9", "latitude = 91", "latitude is out of range; write -90 to 90"),
            ("bent-pipe\"", "bent-pipe\"\ndelay = \"3 ms\"", "a delay of its own"),
            ("bent-pipe\"", "ground\"", "has no delay"),
            ("bent-pipe\"", "tunnel\"", "unknown variant"),
            ("duration = \"60 s\"", "duration = \"0 s\"", "duration is 0 ms"),
            ("duration = \"60 s\"", "duration = \"7 s\"\nstep = \"20 s\"", "step is 20 s"),
            ("duration = \"60 s\"", "duration = \"168 h\"\nstep = \"1 ms\"", "raise the step"),
            ("duration = \"60 s\"", "handover-outage = \"15 s\"", "less than the epoch"),
            ("duration = \"60 s\"", "candidates = 0", "candidates is 0; write 1 to 100"),
            ("duration = \"60 s\"", "start = \"2026-11-26T12:00:00Z\"", "leave it out"),
            ("duration = \"60 s\"", "tle = \"x\"", "two kinds"),
        ] {
            assert!(FILE.contains(from), "{from}");
            let error = Request::read("c.toml", &FILE.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.starts_with("c.toml: ") && error.contains(wanted), "{to}: {error}");
        }
        let elements = FILE.split("[walker]").next().unwrap().to_owned() + "tle = \"missing.tle\"\n";
        let rest = &FILE[FILE.find("[[station]]").unwrap()..];
        let error = Request::read("c.toml", &(elements.clone() + rest)).unwrap_err().to_string();
        assert!(error.contains("missing.tle: No such file"), "{error}");
        let lasers = rest.replace("bent-pipe", "lasers");
        let error = Request::read("c.toml", &(elements + &lasers)).unwrap_err().to_string();
        assert!(error.contains("need the planes"), "{error}");
    }

    #[test]
    fn stations_and_what_is_made_from_them_have_different_names() {
        for (name, wanted) in [
            ("oslo-router", "\"oslo-router\" has the name of the router of \"oslo\"; rename one"),
            ("oslo-1", "\"oslo-1\" has the name of a port of \"oslo\"; rename one"),
        ] {
            let error = Request::read("c.toml", &FILE.replace("rome", name)).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
        // There is no path with that number.
        assert!(Request::read("c.toml", &FILE.replace("rome", "oslo-2")).is_ok());
    }

    /// Few satellites can have epochs as short as the least step.
    #[test]
    fn the_work_is_bounded() {
        let often = FILE.replace("\"60 s\"", "\"5 h\"\nstep = \"1 ms\"\nepoch = \"1 ms\"");
        let many = often.replace("satellites = 1584\nplanes = 72", "satellites = 20000\nplanes = 80");
        let error = Request::read("c.toml", &many).unwrap_err().to_string();
        assert!(error.contains("360000000000 positions of satellites; raise the epoch"), "{error}");
        let few = often.replace("satellites = 1584\nplanes = 72", "satellites = 80\nplanes = 40");
        assert!(Request::read("c.toml", &few).is_ok());
    }

    proptest! {
        #[test]
        fn hostile_files_never_panic(at in any::<prop::sample::Index>(), with in "\\PC{0,4}|[-0-9.e]{1,12}") {
            let mut text = FILE.to_owned();
            let start = text.floor_char_boundary(at.index(text.len()));
            let end = (start + with.chars().count()).min(text.len());
            text.replace_range(start..text.floor_char_boundary(end).max(start), &with);
            let _ = Request::read("c.toml", &text);
        }
    }
}
