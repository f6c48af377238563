//! Writer of scenario text, for people to edit further.

use super::stage::Stage;
use super::{ImportError, Note, Result, Source, shortened, shown};
use longwire_scenario::quoted;
use longwire_units::Nanos;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// Most lines of the source that are quoted.
const MOST_QUOTED: usize = 40;
/// Most characters of a quoted line.
const LONGEST_QUOTED: usize = 160;

/// Duration in seconds of the traffic shown in virtual time, after the last change.
const SHOWN: u64 = 5;
/// Longest duration.
const LONGEST_SHOWN: u64 = 600;

/// The scenario to be written.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    /// Description in one sentence.
    pub(super) title: String,
    /// Lines of the source.
    quoted: Vec<String>,
    pub(super) seed: Option<u64>,
    /// Whether alternative paths exist.
    pub(super) shortest: bool,
    pub(super) bridges: Vec<String>,
    pub(super) hosts: Vec<Host>,
    pub(super) links: Vec<Link>,
    pub(super) events: Vec<Event>,
    /// The hosts between which traffic is shown; the first and the last unless they are named.
    pub(super) shown: Option<(String, String)>,
}

/// A host.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) bridge: Option<String>,
}

/// A link.
#[derive(Debug, Default)]
pub(super) struct Link {
    pub(super) name: String,
    pub(super) ends: (String, String),
    pub(super) duplex: bool,
    pub(super) matches: Vec<(IpAddr, IpAddr)>,
    /// Settings of both directions, or of the only one.
    pub(super) stage: Stage,
    /// Differences of the directions of a duplex link.
    pub(super) forward: Stage,
    pub(super) backward: Stage,
}

/// A change at a time.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) time: Nanos,
    /// Period, and number of repetitions, if limited.
    pub(super) every: Option<(Nanos, Option<u64>)>,
    pub(super) link: String,
    /// Keys and their values as TOML.
    pub(super) settings: Vec<(&'static str, String)>,
}

impl Event {
    /// The last time at which it happens; the first if it is repeated without end.
    fn last(&self) -> Nanos {
        let Some((every, Some(times))) = self.every else { return self.time };
        self.time + Nanos(every.0.saturating_mul(times.saturating_sub(1)))
    }
}

impl Link {
    /// A simplex link.
    pub(super) fn simplex(name: String, from: &str, to: &str, stage: Stage) -> Self {
        Self { name, ends: (from.into(), to.into()), stage, ..Self::default() }
    }

    /// A duplex link, whose directions have settings of their own if they differ.
    pub(super) fn duplex(name: String, from: &str, to: &str, there: Stage, back: Stage) -> Self {
        let link = Self { duplex: true, ..Self::simplex(name, from, to, Stage::default()) };
        if there == back {
            Self { stage: there, ..link }
        } else {
            Self { forward: there, backward: back, ..link }
        }
    }
}

impl Sheet {
    /// A scenario with this description.
    pub(super) fn new(title: &str) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Adds a host with an address of 10.0.0.0/24.
    pub(super) fn host(&mut self, name: &str) {
        let address = format!("10.0.0.{}/24", self.hosts.len() + 1);
        self.hosts.push(Host { name: name.into(), address, bridge: None });
    }

    /// Quotes the imported text in a comment.
    pub(super) fn quote(&mut self, sources: &[Source]) {
        for source in sources {
            if source.file.is_some() {
                self.quoted.push(shortened(&shown(source)));
                continue;
            }
            for line in source.text.lines().filter(|line| !line.trim().is_empty()).take(MOST_QUOTED) {
                let plain = line.chars().map(|c| if c.is_control() { ' ' } else { c });
                self.quoted.push(plain.take(LONGEST_QUOTED).collect());
            }
        }
    }

    /// Two chains of links between two hosts, one for each direction.
    ///
    /// The links of both directions share the bridges between them; the shorter chain gets links without
    /// effect where bridges must be joined.
    pub(super) fn chain(
        &mut self,
        hosts: (&str, &str),
        names: (&str, &str),
        there: Vec<Stage>,
        back: Vec<Stage>,
    ) {
        let length = there.len().max(back.len());
        let mut places = vec![hosts.0.to_owned()];
        for number in 1..length {
            let name = if length == 2 { "wire".to_owned() } else { format!("wire{number}") };
            self.bridges.push(name.clone());
            places.push(name);
        }
        places.push(hosts.1.to_owned());
        self.way(&places, names.0, there);
        places.reverse();
        self.way(&places, names.1, back);
    }

    fn way(&mut self, places: &[String], name: &str, stages: Vec<Stage>) {
        let several = stages.len() > 1;
        let mut stages = stages.into_iter();
        for (at, ends) in places.windows(2).enumerate() {
            let between = at > 0 && at + 2 < places.len();
            let stage = match stages.next() {
                Some(stage) => stage,
                None if between => Stage::named("Only joins two bridges."),
                None => continue,
            };
            let name = if at == 0 && !several { name.to_owned() } else { format!("{name}-{}", at + 1) };
            self.links.push(Link::simplex(name, &ends[0], &ends[1], stage));
        }
    }

    /// The scenario's text.
    pub(super) fn text(&self, notes: &[Note]) -> String {
        let mut text = format!("# {}\n", self.title);
        if !self.quoted.is_empty() {
            text += "#\n# Imported from:\n";
            for line in &self.quoted {
                text += format!("#   {line}").trim_end();
                text.push('\n');
            }
        }
        if !notes.is_empty() {
            text += "#\n# Not carried over, or not exactly:\n";
            notes.iter().for_each(|note| text += &format!("# - {note}\n"));
        }
        if self.seed.is_some() || self.shortest {
            text.push('\n');
        }
        if let Some(seed) = self.seed {
            text += &format!("seed = {seed}\n");
        }
        if self.shortest {
            text += "routing = \"shortest-delay\"\n";
        }
        text += &self.network();
        for event in &self.events {
            let (time, link) = (quoted(&event.time.to_string()), quoted(&event.link));
            text += &format!("\n[[at]]\ntime = {time}\nlink = {link}\n");
            if let Some((every, times)) = event.every {
                text += &format!("every = {}\n", quoted(&every.to_string()));
                text += &times.map_or(String::new(), |times| format!("times = {times}\n"));
            }
            event.settings.iter().for_each(|(key, value)| text += &format!("{key} = {value}\n"));
        }
        self.traffic(&mut text);
        text
    }

    /// The bridges, hosts and links.
    pub(super) fn network(&self) -> String {
        let mut text = String::new();
        self.nodes(&mut text);
        self.links.iter().for_each(|link| link.write(&mut text));
        text
    }

    fn nodes(&self, text: &mut String) {
        for name in &self.bridges {
            *text += &format!("\n[[bridge]]\nname = {}\n", quoted(name));
        }
        for host in &self.hosts {
            *text +=
                &format!("\n[[host]]\nname = {}\naddress = {}\n", quoted(&host.name), quoted(&host.address));
            if let Some(bridge) = &host.bridge {
                *text += &format!("bridge = {}\n", quoted(bridge));
            }
        }
    }

    /// Traffic for virtual time, where there are no programs.
    fn traffic(&self, text: &mut String) {
        let ends = || Some((&*self.hosts.first()?.name, &*self.hosts.last()?.name));
        let named = self.shown.as_ref().map(|(first, last)| (&**first, &**last));
        let Some((first, last)) = named.or_else(ends).filter(|(first, last)| first != last) else { return };
        *text += "\n# Traffic in virtual time, where there are no programs: adapt it to your needs.\n";
        *text += &format!("[[source]]\nfrom = {}\nto = {}\n", quoted(first), quoted(last));
        // Until all changes have happened, plus the duration without changes.
        let last = self.events.iter().map(Event::last).max().unwrap_or(Nanos::ZERO);
        let seconds = (last.0.div_ceil(1_000_000_000) + SHOWN).min(LONGEST_SHOWN);
        *text += &format!("size = \"1000 B\"\nrate = \"1 Mbit/s\"\nfor = \"{seconds} s\"\n");
    }
}

impl Link {
    fn write(&self, text: &mut String) {
        text.push('\n');
        if !self.stage.comment.is_empty() {
            *text += &format!("# {}\n", self.stage.comment);
        }
        *text += &format!("[[link]]\nname = {}\n", quoted(&self.name));
        let (from, to) = (quoted(&self.ends.0), quoted(&self.ends.1));
        if self.duplex {
            *text += &format!("between = [{from}, {to}]\n");
        } else {
            *text += &format!("from = {from}\nto = {to}\n");
        }
        if !self.matches.is_empty() {
            let pairs =
                self.matches.iter().map(|(s, d)| format!("{{ source = \"{s}\", destination = \"{d}\" }}"));
            *text += &format!("match = [{}]\n", pairs.collect::<Vec<_>>().join(", "));
        }
        self.stage.settings.iter().for_each(|(key, value)| *text += &format!("{key} = {value}\n"));
        for (way, stage) in [("forward", &self.forward), ("backward", &self.backward)] {
            if !stage.is_empty() {
                let settings = stage.settings.iter().map(|(key, value)| format!("{key} = {value}"));
                *text += &format!("{way} = {{ {} }}\n", settings.collect::<Vec<_>>().join(", "));
            }
        }
    }
}

/// The address of the host with this number, from 1: all are in one network, which is larger if there are
/// many hosts.
pub(super) fn host_address(number: usize, hosts: usize) -> String {
    const FEW: usize = 250;
    if hosts <= FEW {
        return format!("10.0.0.{number}/24");
    }
    format!("10.0.{}.{}/16", number / FEW, number % FEW + 1)
}

/// A file name valid in a scenario.
///
/// # Errors
/// If it is empty, or contains characters with a special meaning in a scenario.
pub(super) fn file_name(line: usize, name: &str) -> Result<String> {
    let is_good = !name.is_empty() && !name.contains(|c: char| "{}".contains(c) || c.is_control());
    let what = format!("\"{}\" can't be the name of a file in a scenario", name.escape_debug());
    ImportError::unless(is_good, line, what, "rename it, without braces")?;
    Ok(name.into())
}

/// Names that are taken.
#[derive(Debug, Default)]
pub(super) struct Taken {
    names: HashSet<String>,
    /// The last number behind each name that was wanted again: those up to it are taken.
    numbers: HashMap<String, u32>,
}

impl Taken {
    /// The wanted name, with a number behind it if it is taken.
    pub(super) fn fresh(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while !self.names.insert(name.clone()) {
            let number = self.numbers.entry(wanted.to_owned()).or_insert(1);
            *number += 1;
            name = format!("{wanted}-{number}");
        }
        name
    }

    /// A valid name made from any text, of at most `longest` characters before its number.
    pub(super) fn fresh_cleaned(&mut self, wanted: &str, longest: usize) -> String {
        self.fresh(cleaned(wanted, longest).trim_end_matches(['-', '.', ':']))
    }
}

/// A valid name made from any text.
pub(super) fn name_of(text: &str) -> String {
    cleaned(text, 40)
}

fn cleaned(text: &str, longest: usize) -> String {
    let good = |c: char| if c.is_ascii_alphanumeric() || "_-.:".contains(c) { c } else { '-' };
    let name: String = text.chars().map(good).take(longest).collect();
    let name = name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    if name.is_empty() { "x".into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe() {
        for (given, name) in [("eth0.5", "eth0.5"), ("a/b c", "a-b-c"), ("", "x"), ("--", "x"), ("(é)", "x")]
        {
            assert_eq!(name_of(given), name);
        }
        assert!(file_name(2, "a{n}").unwrap_err().to_string().contains("line 2"));
        assert_eq!(file_name(0, "up.trace").unwrap(), "up.trace");
    }

    #[test]
    fn names_of_files_stay_in_their_comment() {
        let mut sheet = Sheet::new("Test.");
        sheet.quote(&[Source { file: Some("a\n[[host]]".into()), text: String::new() }]);
        assert_eq!(sheet.text(&[]), "# Test.\n#\n# Imported from:\n#   a [[host]]\n");
    }

    #[test]
    fn equal_names_get_numbers() {
        let mut taken = Taken::default();
        assert_eq!(taken.fresh("n-3"), "n-3");
        let names: Vec<String> = (0..20_000).map(|_| taken.fresh("n")).collect();
        assert_eq!(names[..4], ["n", "n-2", "n-4", "n-5"]);
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), 20_000);
        // As many searches as names, and not all numbers for each of them.
        assert_eq!((taken.numbers["n"], &*names[19_999]), (20_001, "n-20001"));
        assert_eq!(taken.fresh_cleaned("n/../", 3), "n-20002");
    }

    #[test]
    fn paths_of_different_length_share_bridges() {
        let mut sheet = Sheet::new("Test.");
        sheet.host("a");
        sheet.host("b");
        let stage = |delay: &str| {
            let mut stage = Stage::default();
            stage.set("delay", delay);
            stage
        };
        let there = vec![stage("1 ms"), stage("2 ms"), stage("3 ms"), stage("4 ms")];
        sheet.chain(("a", "b"), ("up", "down"), there, vec![stage("5 ms")]);
        let names: Vec<_> = sheet.links.iter().map(|link| &*link.name).collect();
        assert_eq!(names, ["up-1", "up-2", "up-3", "up-4", "down", "down-2", "down-3"]);
        let plan = longwire_scenario::plan_of(&sheet.text(&[]));
        assert!(plan.notes.is_empty(), "{}", plan.notes[0]);
        let way = |from, to| -> Vec<&str> {
            plan.pair_route(from, to).unwrap().iter().map(|l| &*plan.links[*l as usize].name).collect()
        };
        assert_eq!(way(0, 1), ["up-1", "up-2", "up-3", "up-4"]);
        assert_eq!(way(1, 0), ["down", "down-2", "down-3"]);
    }
}
