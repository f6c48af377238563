//! The captures named by `--input PORT=FILE` and `--output PORT=FILE`, and their common epoch.

use anyhow::{Context, bail, ensure};
use longwire_drivers::pcap::Capture;
use longwire_port::driver::pcap::{Select, first_stamp, interfaces};
use longwire_scenario::{Plan, Port};
use longwire_units::Nanos;
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
    /// The earliest first timestamp of all inputs (since 1970); none if no input has a frame.
    pub epoch: Option<Nanos>,
}

impl PortFiles {
    /// Combines the files named in the scenario with those given, which take precedence.
    ///
    /// # Errors
    /// A port does not exist, has two files, or has both traffic sources and an input; a file is not a
    /// capture, or is used twice.
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
        files.check_written([])?;
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
        let (read, written) = (read.iter().copied(), written.iter().copied());
        check_apart(read.chain(files.inputs()), written.chain(files.outputs()))?;
        files.look_into_inputs(plan)?;
        Ok(files)
    }

    /// Finds the ports' interfaces in their inputs, and the first timestamp.
    fn look_into_inputs(&mut self, plan: &Plan) -> anyhow::Result<()> {
        for (port, own) in plan.ports.iter().zip(&mut self.captures) {
            let Some(input) = &own.input else { continue };
            own.interface = interface_of(input, &port.name)?;
            let first = first_stamp(input, own.interface.clone())?;
            self.epoch = [self.epoch, first].into_iter().flatten().min();
        }
        Ok(())
    }

    fn inputs(&self) -> impl Iterator<Item = &Path> {
        self.captures.iter().filter_map(|own| own.input.as_deref())
    }

    fn outputs(&self) -> impl Iterator<Item = &Path> {
        self.captures.iter().filter_map(|own| own.output.as_deref())
    }

    /// The files that a run writes until it ends, whichever ports leave it: the `records`, and what its ports
    /// with interfaces send.
    pub(crate) fn written_to_the_end<'f>(
        &'f self,
        plan: &Plan,
        records: impl Iterator<Item = &'f Path>,
    ) -> Arc<[PathBuf]> {
        let outside = plan.ports.iter().zip(&self.captures).filter(|(port, _)| plan.leads_outside(port));
        let sent = outside.filter_map(|(_, own)| own.output.as_deref());
        records.chain(sent).map(Path::to_path_buf).collect()
    }

    /// Checks that no file is written by two ports, or both read and written, and that none of them is one of
    /// the `records`, which differ from each other.
    ///
    /// # Errors
    /// If a file is named twice.
    pub fn check_written<'f>(&'f self, records: impl IntoIterator<Item = &'f Path>) -> anyhow::Result<()> {
        check_apart(self.inputs(), self.outputs().chain(records))
    }
}

/// Checks that no file is written twice, or both read and written.
fn check_apart<'f>(
    read: impl Iterator<Item = &'f Path>,
    written: impl Iterator<Item = &'f Path>,
) -> anyhow::Result<()> {
    let mut known: Vec<_> = read.map(full).collect();
    for file in written {
        let path = full(file);
        if known.contains(&path) && !path.starts_with("/dev") {
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
        assert!("a".parse::<PortFile>().is_err() && "=x".parse::<PortFile>().is_err());
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
    fn records_are_files_of_their_own() {
        let files = PortFiles::new(&plan(), &[], &given(&["b=x.pcapng"])).unwrap();
        let records = |log: &str, record: &str| {
            let log = Some(LogOptions { file: log.into(), links: None });
            let records = RecordOptions { record: Some(record.into()), log, ..RecordOptions::default() };
            files.check_written(records.files()).map_err(|error| error.to_string())
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
