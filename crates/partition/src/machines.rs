//! The file of machines: addresses, cores, prices, and the network between them.

use longwire_document::finding::Findings;
use longwire_prices::{MachinePrices, prices_of};
use longwire_scenario::ScenarioError;
use longwire_units::Nanos;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read;
use std::net::IpAddr;
use std::ops::Range;
use std::path::Path;
use thiserror::Error;
use toml::Spanned;

/// Most machines.
const MOST_MACHINES: usize = 1000;
/// Most cores of a machine: an engine has no more workers.
const MOST_CORES: u32 = 64;
/// Longest file of machines, in bytes.
const LONGEST_FILE: u64 = 1 << 20;
/// Longest name of a machine.
const LONGEST_NAME: usize = 40;

/// The machines of a cluster.
#[derive(Debug, Clone)]
pub struct Machines {
    /// The machines, in the file's order.
    pub list: Vec<Machine>,
    /// The first UDP port of tunnels.
    pub first_port: u16,
    /// The network between any two machines that have no entry of their own.
    usual: Link,
    /// By the two machines, the lower first.
    between: HashMap<(usize, usize), Link>,
}

/// A machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// The address of its tunnels.
    pub address: IpAddr,
    /// How many cores its part may use; none for as many workers as the scenario has.
    pub cores: Option<u32>,
    /// What packets cost there.
    pub prices: MachinePrices,
    /// The network namespace of its tunnels' sockets.
    pub netns: Option<String>,
    /// Hosts, ports, bridges and routers that must be there.
    pub nodes: Vec<String>,
}

/// What two machines have between them.
#[derive(Debug, Clone)]
struct Link {
    underlay: Underlay,
    key: String,
}

/// The network between two machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Underlay {
    /// Longest time of a packet from one to the other.
    pub latency: Nanos,
    /// Largest error of the offset between their clocks.
    pub clock_error: Nanos,
}

impl Underlay {
    /// The delay that a link between the two must have.
    pub fn needed(self) -> Nanos {
        self.latency + self.clock_error
    }
}

/// Why a file of machines is of no use.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MachinesError {
    /// It can't be read.
    #[error("{file}: {what}; name a file of machines")]
    Unreadable {
        /// The file.
        file: String,
        /// Why not.
        what: String,
    },
    /// The first mistake in it.
    #[error(transparent)]
    Invalid(#[from] ScenarioError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    latency: Nanos,
    clock_error: Nanos,
    key: String,
    first_port: Option<u16>,
    machine: Vec<Spanned<MachineKeys>>,
    #[serde(default)]
    between: Vec<Spanned<BetweenKeys>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct MachineKeys {
    name: String,
    address: String,
    cores: Option<u32>,
    prices: Option<String>,
    netns: Option<String>,
    #[serde(default)]
    nodes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct BetweenKeys {
    machines: [String; 2],
    latency: Option<Nanos>,
    clock_error: Option<Nanos>,
    key: Option<String>,
}

impl Machines {
    /// Reads the file of machines at `path`.
    ///
    /// # Errors
    /// If it can't be read, or the first mistake.
    pub fn load(path: &Path) -> Result<Self, MachinesError> {
        let file = path.display().to_string();
        let fault = |what| MachinesError::Unreadable { file: file.clone(), what };
        let mut text = String::new();
        let opened = fs::File::open(path);
        // One byte more than the limit, so that endless input is refused like a file that is too long.
        opened
            .and_then(|opened| opened.take(LONGEST_FILE + 1).read_to_string(&mut text))
            .map_err(|error| fault(format!("it can't be read: {error}")))?;
        if text.len() as u64 > LONGEST_FILE {
            return Err(fault(format!("it is longer than {LONGEST_FILE} bytes")));
        }
        Ok(Self::read(&file, &text)?)
    }

    /// Reads a file of machines. Errors call it `file`; prices are relative to its folder.
    ///
    /// # Errors
    /// The first mistake.
    pub fn read(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let fault = |span: Range<usize>, field: &str, what: String, fix: &str| {
            let finding = Findings::new(file, text).finding(&span, field, what, fix.into());
            ScenarioError { findings: vec![finding], more: false }
        };
        let keys: File = toml::from_str(text).map_err(|error| {
            let span = error.span().unwrap_or_default();
            let key = key_before(text, span.start);
            fault(span, key, error.message().into(), "docs/book/cluster.md lists the keys")
        })?;
        if !(2..=MOST_MACHINES).contains(&keys.machine.len()) {
            let what = format!("the number of machines is {}", keys.machine.len());
            return Err(fault(0..0, "", what, "write 2 to 1000 sections [[machine]]"));
        }
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        let mut list: Vec<Machine> = Vec::new();
        let mut taken = HashSet::new();
        for machine in keys.machine {
            let span = machine.span();
            let fault = |what, fix| fault(span.clone(), "", what, fix);
            let machine = machine.into_inner().checked(folder).map_err(|(what, fix)| fault(what, fix))?;
            if list.iter().any(|other| other.name == machine.name) {
                return Err(fault(format!("two machines are called \"{}\"", machine.name), "rename one"));
            }
            if !taken.insert((machine.address, machine.netns.clone())) {
                let what = format!("{} is the address of another machine, too", machine.address);
                return Err(fault(what, "give each machine an address of its own"));
            }
            list.push(machine);
        }
        let usual = Link {
            underlay: Underlay { latency: keys.latency, clock_error: keys.clock_error },
            key: keys.key,
        };
        let mut between = HashMap::new();
        for keys in keys.between {
            let span = keys.span();
            let fault = |what, fix| fault(span.clone(), "", what, fix);
            let keys = keys.into_inner();
            let place = |name: &String| list.iter().position(|machine| machine.name == *name);
            let [Some(one), Some(other)] = [0, 1].map(|at| place(&keys.machines[at])) else {
                let what = format!("there is no machine of one of the names {:?}", keys.machines);
                return Err(fault(what, "name two of the machines"));
            };
            let underlay = Underlay {
                latency: keys.latency.unwrap_or(usual.underlay.latency),
                clock_error: keys.clock_error.unwrap_or(usual.underlay.clock_error),
            };
            let link = Link { underlay, key: keys.key.unwrap_or_else(|| usual.key.clone()) };
            if one == other || between.insert((one.min(other), one.max(other)), link).is_some() {
                let what =
                    format!("[[between]] {:?} is there twice, or names one machine twice", keys.machines);
                return Err(fault(what, "write each pair of different machines once"));
            }
        }
        Ok(Self { list, first_port: keys.first_port.unwrap_or(7000), usual, between })
    }

    fn link(&self, one: usize, other: usize) -> &Link {
        self.between.get(&(one.min(other), one.max(other))).unwrap_or(&self.usual)
    }

    /// The network between two machines.
    pub fn underlay(&self, one: usize, other: usize) -> Underlay {
        self.link(one, other).underlay
    }

    /// The key file of tunnels between two machines.
    pub fn key(&self, one: usize, other: usize) -> &str {
        &self.link(one, other).key
    }

    /// The two machines with the best network between them: the first such pair.
    pub fn nearest(&self) -> (usize, usize) {
        let pairs =
            (0..self.list.len()).flat_map(|one| (one + 1..self.list.len()).map(move |other| (one, other)));
        pairs.min_by_key(|&(one, other)| self.underlay(one, other).needed()).unwrap_or((0, 1))
    }
}

/// The key whose value is at this place of a file.
fn key_before(text: &str, place: usize) -> &str {
    let before = text.get(..place).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.split_once('=').map_or("", |(key, _)| key.trim())
}

impl MachineKeys {
    fn checked(self, folder: &Path) -> Result<Machine, (String, &'static str)> {
        let Self { name, address, cores, prices, netns, nodes } = self;
        let good = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(good) {
            let what = format!("{name:?} can't be a machine's name");
            return Err((what, "write 1 to 40 letters, digits and - _"));
        }
        if cores.is_some_and(|cores| !(1..=MOST_CORES).contains(&cores)) {
            return Err((format!("the machine {name} has {} cores", cores.unwrap_or(0)), "write 1 to 64"));
        }
        let usable = |address: &IpAddr| !address.is_unspecified() && !address.is_multicast();
        let Some(address) = address.parse().ok().filter(usable) else {
            let what = format!("{address:?} can't be the address of the machine {name}");
            return Err((what, "write the one at which the others reach it"));
        };
        let prices = match prices {
            None => MachinePrices::default(),
            Some(file) => prices_of(&file, folder).map_err(|why| {
                (format!("prices of the machine {name}: {why}"), "copy the file that calibrate wrote there")
            })?,
        };
        Ok(Machine { name, address, cores, prices, netns, nodes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "latency = \"150 us\"\nclock-error = \"30 us\"\nkey = \"k\"\n";
    const TWO: &str = "[[machine]]\nname = \"one\"\naddress = \"192.0.2.1\"\n\
        [[machine]]\nname = \"two\"\naddress = \"192.0.2.2\"\ncores = 2\n";

    #[test]
    fn pairs_have_their_own_network_or_the_usual_one() {
        let three = "[[machine]]\nname = \"three\"\naddress = \"192.0.2.3\"\n";
        let pair = "[[between]]\nmachines = [\"three\", \"one\"]\nlatency = \"1 ms\"\nkey = \"far\"\n";
        let machines = Machines::read("m.toml", &format!("{HEAD}{TWO}{three}{pair}")).unwrap();
        assert_eq!(machines.underlay(0, 1).needed(), Nanos::from_micros(180));
        assert_eq!(machines.underlay(0, 2).needed(), Nanos::from_micros(1030));
        assert_eq!((machines.key(1, 0), machines.key(2, 0)), ("k", "far"));
        assert_eq!(machines.nearest(), (0, 1));
        assert_eq!((machines.first_port, machines.list[1].cores), (7000, Some(2)));
    }

    #[test]
    fn mistakes_are_named() {
        let one = "[[machine]]\nname = \"one\"\naddress = \"192.0.2.1\"\n";
        for (text, wanted) in [
            (format!("{HEAD}{one}"), "number of machines is 1"),
            (format!("{HEAD}{one}{one}"), "two machines are called \"one\""),
            (format!("{HEAD}{TWO}").replace(".2\"", ".1\""), "address of another machine"),
            (format!("{HEAD}{TWO}").replace("two", "../two"), "can't be a machine's name"),
            (format!("{HEAD}{TWO}").replace("cores = 2", "cores = 0"), "0 cores"),
            (
                format!("{HEAD}{TWO}").replace("cores = 2", "prices = \"missing\""),
                "prices of the machine two",
            ),
            (format!("{HEAD}{TWO}").replace("192.0.2.2", "0.0.0.0"), "can't be the address"),
            (
                format!("{HEAD}{TWO}").replace("150 us", "150"),
                "m.toml:1:11: latency: \"150\" has no unit; use one of",
            ),
            (
                format!("{HEAD}{TWO}").replace("192.0.2.2", "192.0.2"),
                "m.toml:7:1: \"192.0.2\" can't be the address of the machine two",
            ),
            (format!("{HEAD}{TWO}color = 1\n"), "color"),
            (
                format!("{HEAD}{TWO}[[between]]\nmachines = [\"one\", \"ten\"]\n"),
                "no machine of one of the names",
            ),
            (format!("{HEAD}{TWO}[[between]]\nmachines = [\"one\", \"one\"]\n"), "names one machine twice"),
        ] {
            let error = Machines::read("m.toml", &text).unwrap_err().to_string();
            assert!(error.starts_with("m.toml:") && error.contains(wanted), "{text}: {error}");
        }
    }
}
