//! The captures named by `--input PORT=FILE` and `--output PORT=FILE`, and their common epoch.

use crate::named_files::{named_files, quoted};
use crate::rotation::{Rotation, older};
use anyhow::{Context, bail, ensure};
use longwire_drivers::pcap::Capture;
use longwire_port::driver::pcap::{Select, interfaces, start_of};
use longwire_scenario::{Plan, Port};
use longwire_units::Nanos;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// A port and a file: `PORT=FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortFile {
    /// The port's name, or its host's.
    pub port: String,
    /// The file.
    pub file: PathBuf,
}

impl FromStr for PortFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((_, "-")) => {
                Err("name a file: - is not standard input or output here, ./- is a file of that name".into())
            }
            Some((port, file)) if !port.is_empty() && !file.is_empty() => {
                Ok(Self { port: port.into(), file: file.into() })
            }
            _ => Err("write PORT=FILE, such as a=in.pcap".into()),
        }
    }
}

/// The captures of one port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captures {
    /// The source of its frames.
    pub input: Option<PathBuf>,
    /// The interface in the input file.
    pub interface: Option<Select>,
    /// The destination of frames sent to it.
    pub output: Option<PathBuf>,
}

impl Captures {
    /// Those that the scenario names for a port.
    pub(crate) fn of_scenario(port: &Port) -> Self {
        let written = |name| port.attachment.driven()?.setting::<Arc<Capture>>(name)?.0.clone();
        Self { input: written("input"), interface: None, output: written("output") }
    }
}

/// The captures of all ports, and their epoch.
#[derive(Debug, Clone)]
pub struct PortFiles {
    /// By the port's place in the plan.
    pub captures: Vec<Captures>,
    /// When the earliest of all inputs begins (since 1970); none if no input has a frame, or a start.
    pub epoch: Option<Nanos>,
}

impl PortFiles {
    /// Combines the files named in the scenario with those given, which take precedence.
    ///
    /// # Errors
    /// A port does not exist, has two files, or has both traffic sources and an input; a file is not a
    /// capture, is used twice, or would be written over the scenario or a file that it names.
    pub fn new(plan: &Plan, inputs: &[PortFile], outputs: &[PortFile]) -> anyhow::Result<Self> {
        let mut captures = vec![Captures::default(); plan.ports.len()];
        for given in inputs {
            let place = place_of(plan, &given.port)?;
            let old = captures[place].input.replace(given.file.clone());
            ensure!(old.is_none(), "port \"{}\" has two inputs; join them with mergecap", given.port);
        }
        for given in outputs {
            let old = captures[place_of(plan, &given.port)?].output.replace(given.file.clone());
            ensure!(old.is_none(), "port \"{}\" has two outputs; give it one", given.port);
        }
        for (port, own) in plan.ports.iter().zip(&mut captures) {
            let Captures { input, output, .. } = Captures::of_scenario(port);
            own.input = own.input.take().or(input);
            own.output = own.output.take().or(output);
        }
        check_sources(plan, &captures)?;
        let mut files = Self { captures, epoch: None };
        files.check_written(plan, [])?;
        files.look_into_inputs(plan)?;
        Ok(files)
    }

    /// The files that the scenario names for the ports at `places`, which are added to a run that reads and
    /// writes these files already. Other ports have none here.
    ///
    /// # Errors
    /// As [`PortFiles::new`].
    pub(crate) fn of_added(
        plan: &Plan,
        places: &[u16],
        (read, written): (&[&Path], &[&Path]),
    ) -> anyhow::Result<Self> {
        let mut captures = vec![Captures::default(); plan.ports.len()];
        for place in places.iter().map(|&place| usize::from(place)) {
            captures[place] = Captures::of_scenario(&plan.ports[place]);
        }
        check_sources(plan, &captures)?;
        let mut files = Self { captures, epoch: None };
        let parts = if files.outputs().next().is_some() { scenario_files(plan) } else { Vec::new() };
        let read = read.iter().copied().chain(parts.iter().map(PathBuf::as_path));
        check_apart(read.chain(files.inputs()), written.iter().copied().chain(files.outputs()))?;
        files.look_into_inputs(plan)?;
        Ok(files)
    }

    /// Finds the ports' interfaces in their inputs, and the earliest start.
    fn look_into_inputs(&mut self, plan: &Plan) -> anyhow::Result<()> {
        for (port, own) in plan.ports.iter().zip(&mut self.captures) {
            let Some(input) = &own.input else { continue };
            let is_stream = std::fs::metadata(input).is_ok_and(|found| !found.is_file() && !found.is_dir());
            ensure!(
                !is_stream,
                "{} is no file, and an input is read more than once; write it to a file first",
                input.display()
            );
            own.interface = interface_of(input, &port.name)?;
            let start = start_of(input, own.interface.clone())?;
            self.epoch = [self.epoch, start].into_iter().flatten().min();
        }
        Ok(())
    }

    fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.captures.iter().filter_map(|own| own.input.as_deref())
    }

    fn outputs(&self) -> impl Iterator<Item = &Path> {
        self.captures.iter().filter_map(|own| own.output.as_deref())
    }

    /// The files of what ports with interfaces send.
    pub(crate) fn sent_outside<'f>(&'f self, plan: &'f Plan) -> impl Iterator<Item = &'f Path> {
        let own = self.captures.iter().zip(&plan.ports);
        let outside = own.filter(move |(_, port)| plan.leads_outside(port));
        outside.filter_map(|(own, _)| own.output.as_deref())
    }

    /// Checks that no file is written by two ports, or both read and written, that none of them is one of the
    /// `records`, which differ from each other, and that nothing is written over a part of the scenario.
    ///
    /// # Errors
    /// If a file is named twice.
    pub fn check_written<'f>(
        &'f self,
        plan: &Plan,
        records: impl IntoIterator<Item = &'f Path>,
    ) -> anyhow::Result<()> {
        let written: Vec<&Path> = self.outputs().chain(records).collect();
        // Tasks of a sweep write nothing, and there are many of them.
        let parts = if written.is_empty() { Vec::new() } else { scenario_files(plan) };
        check_apart(parts.iter().map(PathBuf::as_path).chain(self.inputs()), written.into_iter())
    }

    /// Checks that rotation gives no part of the `rotated` files the name of a file that the scenario is made
    /// of, or that the run reads, or writes itself.
    ///
    /// # Errors
    /// If it would replace such a file.
    pub(crate) fn check_rotated<'f>(
        &'f self,
        plan: &Plan,
        rotation: Option<Rotation>,
        rotated: impl Iterator<Item = &'f Path>,
    ) -> anyhow::Result<()> {
        let Some(rotation) = rotation else { return Ok(()) };
        let (rotated, parts): (Vec<&Path>, _) = (rotated.collect(), scenario_files(plan));
        let named = parts.iter().map(PathBuf::as_path).chain(self.inputs()).chain(self.outputs());
        let named: HashSet<PathBuf> = named.chain(rotated.iter().copied()).map(full).collect();
        for file in rotated {
            let mut names = (1..rotation.files).map(|number| older(file, number));
            if let Some(name) = names.find(|name| named.contains(&full(name))) {
                bail!(
                    "{} is a file of this run, and what --file-size calls an older part of {}: name another \
                     file",
                    name.display(),
                    file.display()
                );
            }
        }
        Ok(())
    }
}

/// The scenario's file, and those that it names except for what its ports write.
fn scenario_files(plan: &Plan) -> Vec<PathBuf> {
    let stages = plan.stages.iter().map(|stage| &*stage.plan);
    let ports: Vec<&Port> = std::iter::once(plan).chain(stages).flat_map(|plan| &plan.ports).collect();
    let names: HashSet<&str> = ports.iter().map(|port| &*port.name).collect();
    let outputs = ports.iter().filter_map(|port| Captures::of_scenario(port).output);
    let outputs: HashSet<PathBuf> = outputs.map(|output| full(&output)).collect();
    let lines = plan.text.lines().filter(|line| !line.trim_start().starts_with('#'));
    // A port is in quotes, too: what it sends may be in a file of its name.
    let mut files = named_files(plan.folder(), lines.flat_map(quoted).filter(|name| !names.contains(name)));
    files.retain(|file| !outputs.contains(&full(file)));
    files.extend(Some(PathBuf::from(&plan.file)).filter(|file| file.is_file()));
    files
}

/// Checks that no file is written twice, or both read and written. Devices such as /dev/null may be.
///
/// # Errors
/// If a file is named twice.
pub fn check_apart<'f>(
    read: impl Iterator<Item = &'f Path>,
    written: impl Iterator<Item = &'f Path>,
) -> anyhow::Result<()> {
    let mut known: Vec<_> = read.map(full).collect();
    for file in written {
        let path = full(file);
        // In /dev/shm there are files.
        let is_device = path.starts_with("/dev") && std::fs::metadata(&path).is_ok_and(|it| !it.is_file());
        if known.contains(&path) && !is_device {
            bail!("{} is named twice, once as an output; name another file", file.display());
        }
        known.push(path);
    }
    Ok(())
}

/// The port's interface in a recording of several ports; other files belong to one port as a whole.
fn interface_of(file: &Path, port: &str) -> anyhow::Result<Option<Select>> {
    let names = interfaces(file)?;
    Ok((names.len() > 1 && names.iter().any(|name| name == port)).then(|| Select::Name(port.into())))
}

fn place_of(plan: &Plan, name: &str) -> anyhow::Result<usize> {
    let place = plan.ports.iter().position(|port| &*port.name == name);
    place.with_context(|| {
        let names: Vec<_> = plan.ports.iter().map(|port| &*port.name).take(20).collect();
        format!("{} has no port \"{name}\"; it has {}", plan.file, names.join(", "))
    })
}

fn check_sources(plan: &Plan, captures: &[Captures]) -> anyhow::Result<()> {
    for source in &plan.sources {
        let place = usize::from(source.in_port);
        if captures[place].input.is_some() {
            bail!(
                "port \"{}\" has an input and the traffic source \"{}\"; remove one of them",
                plan.ports[place].name,
                source.name
            );
        }
    }
    Ok(())
}

/// The full path of a file that need not be there yet.
fn full(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
        let folder = absolute.parent().and_then(|folder| folder.canonicalize().ok());
        folder.zip(absolute.file_name()).map_or(absolute.clone(), |(folder, name)| folder.join(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_log::LogOptions;
    use crate::records::RecordOptions;

    fn plan() -> Plan {
        let text = "[[port]]\nname = \"a\"\ndriver = \"pcap\"\noutput = \"own.pcap\"\n[[port]]\n\
            name = \"b\"\n\
            driver = \"pcap\"\n[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\n";
        longwire_scenario::parse("/tmp/x.toml", text).unwrap()
    }

    fn given(texts: &[&str]) -> Vec<PortFile> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn what_is_given_goes_before_the_scenario() {
        let files = PortFiles::new(&plan(), &[], &given(&["b=x=y.pcap"])).unwrap();
        assert_eq!(files.captures[0].output.as_deref(), Some(Path::new("/tmp/own.pcap")));
        assert_eq!(files.captures[1].output.as_deref(), Some(Path::new("x=y.pcap")));
        let files = PortFiles::new(&plan(), &[], &given(&["a=z.pcap"])).unwrap();
        assert_eq!(files.captures[0].output.as_deref(), Some(Path::new("z.pcap")));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |inputs: &[&str], outputs: &[&str]| {
            PortFiles::new(&plan(), &given(inputs), &given(outputs)).unwrap_err().to_string()
        };
        assert!(error(&[], &["c=x"]).contains("no port \"c\"; it has a, b"));
        assert!(error(&[], &["a=x", "a=y"]).contains("two outputs"));
        assert!(error(&[], &["a=x", "b=x"]).contains("named twice"));
        assert!(error(&[], &["a=x", "b=./x"]).contains("named twice"));
        assert!(error(&["a=/nowhere/x.pcap"], &[]).contains("/nowhere/x.pcap"));
        assert!(error(&["a=/dev/null"], &[]).contains("/dev/null is no file"));
        assert!("a".parse::<PortFile>().is_err() && "=x".parse::<PortFile>().is_err());
        assert!("a=-".parse::<PortFile>().unwrap_err().contains("- is not standard input"));
    }

    #[test]
    fn added_ports_have_files_of_their_own() {
        let text = "[[port]]\nname = \"a\"\ndriver = \"pcap\"\ninput = \"missing.pcap\"\n[[port]]\n\
            name = \"b\"\ndriver = \"pcap\"\noutput = \"new.pcap\"\n[[link]]\nname = \"l\"\n\
            from = \"a\"\nto = \"b\"\n";
        let plan = longwire_scenario::parse("/nowhere/x.toml", text).unwrap();
        let added = |places: &[u16], read: &[&str], written: &[&str]| {
            let [read, written] =
                [read, written].map(|files| files.iter().map(Path::new).collect::<Vec<_>>());
            let files = PortFiles::of_added(&plan, places, (&read, &written));
            files.map(|files| files.captures).map_err(|error| error.to_string())
        };
        // Files of others are not looked into.
        let captures = added(&[1], &["/nowhere/missing.pcap"], &["/nowhere/log.pcapng"]).unwrap();
        assert_eq!(captures[1].output.as_deref(), Some(Path::new("/nowhere/new.pcap")));
        assert_eq!(captures[0], Captures::default());
        assert!(added(&[0], &[], &[]).unwrap_err().contains("missing.pcap"));
        assert!(added(&[1], &[], &["/nowhere/new.pcap"]).unwrap_err().contains("named twice"));
        assert!(added(&[1], &["/nowhere/new.pcap"], &[]).unwrap_err().contains("named twice"));
        assert!(added(&[0], &[], &["/nowhere/missing.pcap"]).unwrap_err().contains("named twice"));
    }

    #[test]
    fn devices_may_be_named_twice_and_files_beside_them_not() {
        let twice = |file: &Path| check_apart([file].into_iter(), [file].into_iter()).is_ok();
        assert!(twice(Path::new("/dev/null")));
        let file = PathBuf::from(format!("/dev/shm/longwire-{}.pcap", std::process::id()));
        assert!(!twice(&file), "it would be made");
        if std::fs::write(&file, "").is_ok() {
            let passes = twice(&file);
            std::fs::remove_file(&file).unwrap();
            assert!(!passes, "it would be overwritten");
        }
    }

    #[test]
    fn what_a_scenario_is_made_of_is_not_written() {
        let folder = std::env::temp_dir().join(format!("longwire-port-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        let text = "[[port]]\nname = \"a\"\ndriver = \"pcap\"\noutput = \"own.pcap\"\n[[port]]\n\
            name = \"b\"\ndriver = \"pcap\"\n[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\n\
            rate = { kind = \"trace\", file = \"up.trace\" }\n # --output \"b=x\", \"x\"\n";
        let trace = "0 s 20 Mbit/s\n12 s end\n";
        for name in ["own.pcap", "b", "x"] {
            std::fs::write(at(name), "").unwrap();
        }
        std::fs::write(at("net.toml"), text).unwrap();
        std::fs::write(at("up.trace"), trace).unwrap();
        std::os::unix::fs::symlink(at("net.toml"), at("link")).unwrap();
        let plan = longwire_scenario::parse(&at("net.toml").display().to_string(), text).unwrap();
        let written = |name: &str| {
            let output = PortFile { port: "b".into(), file: at(name) };
            PortFiles::new(&plan, &[], &[output]).map(|_| ()).map_err(|error| error.to_string())
        };
        let refused = ["net.toml", "link", "up.trace", "own.pcap"].map(written);
        let passed = ["x", "b", "new.pcap"].map(written);
        let again = PortFiles::new(&plan, &[], &[]).map(|_| ()).map_err(|error| error.to_string());
        std::fs::remove_dir_all(&folder).unwrap();
        for result in refused {
            assert!(result.as_ref().is_err_and(|why| why.contains("named twice")), "{result:?}");
        }
        assert_eq!((passed, again), ([Ok(()), Ok(()), Ok(())], Ok(())));
    }

    #[test]
    fn rotation_replaces_no_file_of_the_run() {
        let files = PortFiles::new(&plan(), &[], &given(&["b=x.2.pcapng"])).unwrap();
        let rotated = |names: &[&str], count| {
            let rotation = Some(Rotation { size: 1 << 20, files: count });
            let checked = files.check_rotated(&plan(), rotation, names.iter().map(Path::new));
            checked.map_err(|error| error.to_string())
        };
        assert!(rotated(&["./x.pcapng"], 3).unwrap_err().contains("x.2.pcapng is a file of this run"));
        assert!(rotated(&["log.pcapng", "log.1.pcapng"], 2).is_err());
        assert_eq!(rotated(&["x.pcapng", "log.lwlog", "log.1.pcapng"], 2), Ok(()));
        assert!(files.check_rotated(&plan(), None, [Path::new("x.pcapng")].into_iter()).is_ok());
    }

    #[test]
    fn records_are_files_of_their_own() {
        let files = PortFiles::new(&plan(), &[], &given(&["b=x.pcapng"])).unwrap();
        let records = |log: &str, record: &str| {
            let log = Some(LogOptions { file: log.into(), links: None });
            let records = RecordOptions { record: Some(record.into()), log, ..RecordOptions::default() };
            files.check_written(&plan(), records.files()).map_err(|error| error.to_string())
        };
        assert_eq!(records("log.pcapng", "all.pcapng"), Ok(()));
        assert_eq!(records("/dev/null", "/dev/null"), Ok(()));
        for (log, record) in
            [("q.pcapng", "./q.pcapng"), ("log.pcapng", "x.pcapng"), ("./x.pcapng", "y.pcapng")]
        {
            assert!(records(log, record).unwrap_err().contains("named twice"), "{log} {record}");
        }
        assert!(
            records("log.pcapng", "/tmp/own.pcap").unwrap_err().contains("named twice"),
            "the scenario's"
        );
    }
}
