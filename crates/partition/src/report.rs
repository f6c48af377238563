//! The report on a partition, and the files of its parts.

use crate::parts::first_words;
use crate::result::{Cut, Joined, Node, Part, Partition, PartitionError, Share};
use longwire_report::{Report, Row};
use longwire_units::counted;
use std::path::{Path, PathBuf};

/// Most nodes, and most links that are not cut, of a report for people.
const MOST_LISTED: usize = 40;

/// Which rows a report has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportRows {
    /// All of them.
    All,
    /// Those of a table for people: at most 40 nodes, and of what is not cut what short links join.
    Table,
}

impl Partition {
    /// The report on the parts of `scenario`. It fails if they do not work.
    pub fn report(&self, scenario: &str, rows: ReportRows) -> Report {
        let all = rows == ReportRows::All;
        let most = if all { usize::MAX } else { MOST_LISTED };
        let mut report = Report::new("partition").with("scenario", scenario);
        report.extend(self.machines.iter().map(machine_row));
        report.extend(self.cuts.iter().map(|cut| self.cut_row(cut)));
        report.extend(self.nodes.iter().take(most).map(|node| self.node_row(node)));
        let kept = self.joined.iter().filter(|joined| all || joined.short_link.is_some());
        report.extend(kept.take(most).map(joined_row));
        report.set("sources_left_out", self.left_out.clone());
        report.set("unbounded", self.unbounded);
        for problem in &self.problems {
            report.fail(problem.as_str());
        }
        report
    }

    /// What is allowed, but may not be meant.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.left_out.is_empty() {
            let many = self.left_out.len();
            notes.push(format!("traffic sources that send in virtual time only are in no part: {many}"));
        }
        notes.extend(self.machines.iter().filter(|share| share.nodes == 0).map(|share| {
            format!(
                "nothing is on {}: tunnels to it would cost more than it would carry; name what must be \
                 there with nodes",
                share.name
            )
        }));
        if self.unbounded {
            notes.push("paths without a rate are assumed to carry 100000 packets a second".into());
        }
        notes
    }

    /// The file of each part in `folder`: MACHINE.toml.
    pub fn files(&self, folder: &Path) -> impl Iterator<Item = PathBuf> {
        self.parts.iter().map(move |part| folder.join(format!("{}.toml", self.machines[part.machine].name)))
    }

    /// The parts of an earlier cut in `folder`, of machines that have none now; none without parts.
    pub fn leftovers(&self, folder: &Path) -> Vec<PathBuf> {
        let unused = self.machines.iter().filter(|share| share.nodes == 0 && !self.parts.is_empty());
        let is_part = |name: &str, file: &Path| {
            std::fs::read_to_string(file).is_ok_and(|text| text.starts_with(&first_words(name)))
        };
        let files = unused.map(|share| (&*share.name, folder.join(format!("{}.toml", share.name))));
        files.filter(|(name, file)| is_part(name, file)).map(|(_, file)| file).collect()
    }

    /// Writes each part into its file, removes [leftovers](Self::leftovers), and returns the files written.
    /// Makes the folder; does nothing without parts.
    ///
    /// # Errors
    /// If a file can't be written or removed, or would be written over one that is no part of an earlier cut:
    /// then nothing is written.
    pub fn write(&self, folder: &Path) -> Result<Vec<String>, PartitionError> {
        let unwritable = |file: &Path, why: std::io::Error| PartitionError::Unwritable {
            file: file.display().to_string(),
            why: why.to_string(),
        };
        let names = self.parts.iter().map(|part| &*self.machines[part.machine].name);
        if let Some((_, file)) = names.zip(self.files(folder)).find(|(name, file)| is_own(name, file)) {
            let why = "it is no part of an earlier cut; name another folder, or remove it";
            return Err(PartitionError::Unwritable { file: file.display().to_string(), why: why.into() });
        }
        if !self.parts.is_empty() {
            std::fs::create_dir_all(folder).map_err(|why| unwritable(folder, why))?;
        }
        for file in self.leftovers(folder) {
            std::fs::remove_file(&file).map_err(|why| unwritable(&file, why))?;
        }
        let write = |(part, file): (&Part, PathBuf)| {
            std::fs::write(&file, &part.text).map_err(|why| unwritable(&file, why))?;
            Ok(file.display().to_string())
        };
        self.parts.iter().zip(self.files(folder)).map(write).collect()
    }

    fn cut_row(&self, cut: &Cut) -> Row {
        let [one, other] = cut.machines.map(|machine| &*self.machines[machine].name);
        let mbit = cut.tunnel_bit_per_second.map(|bits| bits as f64 / 1e6);
        Row::new(format!("cut {} and {}", cut.links[0], cut.links[1]), "")
            .measured(format!("{one} | {other}"))
            .extra("kind", "cut")
            .extra("links", cut.links.to_vec())
            .extra("machines", vec![one, other])
            .extra("delay_ns", cut.delay.0)
            .extra("latency_ns", cut.underlay.latency.0)
            .extra("clock_error_ns", cut.underlay.clock_error.0)
            .extra("packets_per_second", cut.packets_per_second.to_vec())
            .extra("tunnel_bit_per_second", cut.tunnel_bit_per_second.to_vec())
            .extra("udp_port", cut.udp_port)
            .note(cut.arithmetic())
            .note(format!("a tunnel at UDP port {}: {:.1} and {:.1} Mbit/s", cut.udp_port, mbit[0], mbit[1]))
    }

    fn node_row(&self, node: &Node) -> Row {
        let machine = &*self.machines[node.machine].name;
        Row::new(format!("{} {}", node.kind, node.name), "")
            .measured(machine)
            .extra("kind", "node")
            .extra("machine", machine)
            .note(&*node.why)
    }
}

/// Whether a file is somebody's own: it is there, and neither a part for this machine nor empty, as an
/// interrupted cut may leave it.
fn is_own(machine: &str, file: &Path) -> bool {
    let is_part = |text: String| text.is_empty() || text.starts_with(&first_words(machine));
    file.exists() && !std::fs::read_to_string(file).is_ok_and(is_part)
}

fn machine_row(share: &Share) -> Row {
    let percent = |ppm: u64| (ppm as f64 / 1e4 / f64::from(share.cores) * 100.0).round() / 100.0;
    let (nodes, cores) = (counted(share.nodes as u64, "node"), counted(share.cores, "core"));
    Row::new(format!("machine {}, load of a core", share.name), "%")
        .measured(percent(share.load_ppm))
        .extra("kind", "machine")
        .extra("machine", &*share.name)
        .extra("cores", share.cores)
        .extra("nodes", share.nodes)
        .extra("load_ppm", share.load_ppm)
        .extra("tunnels_ppm", share.tunnels_ppm)
        .extra("taken_ppm", share.taken_ppm)
        .note(format!("{nodes}, {cores}; {} % for tunnels", percent(share.tunnels_ppm)))
}

fn joined_row(joined: &Joined) -> Row {
    Row::new(format!("not cut: {} and {}", joined.nodes[0], joined.nodes[1]), "")
        .extra("kind", "joined")
        .extra("nodes", joined.nodes.to_vec())
        .extra("short_link", joined.short_link.clone())
        .note(&*joined.why)
}
