//! `longwire partition`

use crate::{Json, Outcome, outcome};
use anyhow::Context;
use longwire_partition::{Cut, Joined, Machines, Node, Partition, Share, partition};
use longwire_report::{Report, Row};
use longwire_units::Bytes;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most nodes, and most links that are not cut, in the table; the JSON has all.
const MOST_LISTED: usize = 40;
/// Longest file of machines, in bytes.
const LONGEST: u64 = 1 << 20;

/// Cut a scenario into parts for several machines
///
/// Cuts links whose delay is at least the latency of the network between the machines plus the error of
/// their clocks, keeps all else together, and spreads it so that no core has more to do than others, at the
/// prices of "longwire check". Prints what is where and why, each cut with its arithmetic, and the load of
/// each machine. --write writes a scenario for each machine; their tunnels make one network of them.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire partition wan.toml --machines machines.toml
  longwire partition wan.toml --machines machines.toml --json
  longwire partition wan.toml --machines machines.toml --write parts

Exit status: 0 if it can be cut and fits, 1 if not, 2 if a file has mistakes.")]
pub struct Args {
    /// The scenario file, or - for standard input.
    scenario: PathBuf,

    /// The file of machines: see docs/book/cluster.md.
    #[arg(long, value_name = "FILE")]
    machines: PathBuf,

    /// Write a scenario for each machine into this folder, as MACHINE.toml.
    #[arg(long, value_name = "FOLDER")]
    write: Option<PathBuf>,

    /// Length of the frames that fill links, without FCS, 60 to 65535. Default: 1514.
    #[arg(long, value_name = "N", default_value_t = 1514, hide_default_value = true,
        value_parser = clap::value_parser!(u64).range(60..=65_535))]
    frame_bytes: u64,

    #[command(flatten)]
    json: Json,
}

impl Args {
    /// Cuts the scenario, prints the result, and writes the parts.
    ///
    /// # Errors
    /// The mistakes in the scenario or the file of machines, or what can't be written.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let machines = read_machines(&self.machines)?;
        let plan = longwire_scenario::load(&self.scenario)?;
        outcome::print_notes(&plan);
        let found = partition(&plan, &machines, Bytes(self.frame_bytes))?;
        let mut report = report(&plan.file, &found, self.json.on);
        if let Some(folder) = &self.write {
            report.set("parts", write_parts(folder, &found)?);
        }
        let printed = outcome::print_report(&report, self.json.on)?;
        if !self.json.on && !found.left_out.is_empty() {
            let many = found.left_out.len();
            outcome::note(&format!(
                "note: traffic sources that send in virtual time only are in no part: {many}"
            ));
        }
        for share in found.machines.iter().filter(|share| share.nodes == 0 && !self.json.on) {
            outcome::note(&format!(
                "note: nothing is on {}: tunnels to it would cost more than it would carry; name what must \
                 be there with nodes",
                share.name
            ));
        }
        if !self.json.on && found.unbounded {
            outcome::note("note: paths without a rate are assumed to carry 100000 packets a second");
        }
        Ok(printed)
    }
}

fn read_machines(path: &Path) -> anyhow::Result<Machines> {
    let file = path.display().to_string();
    let mut text = String::new();
    File::open(path)
        .and_then(|opened| opened.take(LONGEST).read_to_string(&mut text))
        .with_context(|| format!("{file} can't be read; name a file of machines"))?;
    Ok(Machines::read(&file, &text)?)
}

/// Writes the parts, and returns their files.
fn write_parts(folder: &Path, found: &Partition) -> anyhow::Result<Vec<String>> {
    if found.parts.is_empty() {
        return Ok(Vec::new());
    }
    let can_not = |what: &Path| format!("{} can't be written", what.display());
    std::fs::create_dir_all(folder).with_context(|| can_not(folder))?;
    let mut files = Vec::new();
    for part in &found.parts {
        let file = folder.join(format!("{}.toml", found.machines[part.machine].name));
        std::fs::write(&file, &part.text).with_context(|| can_not(&file))?;
        files.push(file.display().to_string());
    }
    Ok(files)
}

fn report(scenario: &str, found: &Partition, all: bool) -> Report {
    let mut report = Report::new("partition").with("scenario", scenario);
    report.extend(found.machines.iter().map(machine));
    report.extend(found.cuts.iter().map(|cut| cut_row(cut, found)));
    let most = if all { usize::MAX } else { MOST_LISTED };
    report.extend(found.nodes.iter().take(most).map(|node| node_row(node, found)));
    let kept = found.joined.iter().filter(|joined| all || joined.short_link.is_some());
    report.extend(kept.take(most).map(joined_row));
    report.set("sources_left_out", found.left_out.clone());
    report.set("unbounded", found.unbounded);
    for problem in &found.problems {
        report.fail(problem.as_str());
    }
    report
}

fn machine(share: &Share) -> Row {
    let percent = |ppm: u64| (ppm as f64 / 1e4 / f64::from(share.cores) * 100.0).round() / 100.0;
    let nodes = if share.nodes == 1 { "1 node".to_owned() } else { format!("{} nodes", share.nodes) };
    let cores = if share.cores == 1 { "1 core".to_owned() } else { format!("{} cores", share.cores) };
    Row::new(format!("machine {}, load of a core", share.name), "%")
        .measured(percent(share.load_ppm))
        .extra("kind", "machine")
        .extra("machine", &*share.name)
        .extra("cores", share.cores)
        .extra("nodes", share.nodes)
        .extra("load_ppm", share.load_ppm)
        .extra("tunnels_ppm", share.tunnels_ppm)
        .note(format!("{nodes}, {cores}; {} % for tunnels", percent(share.tunnels_ppm)))
}

fn cut_row(cut: &Cut, found: &Partition) -> Row {
    let [one, other] = cut.machines.map(|machine| &*found.machines[machine].name);
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

fn node_row(node: &Node, found: &Partition) -> Row {
    let machine = &*found.machines[node.machine].name;
    Row::new(format!("{} {}", node.kind, node.name), "")
        .measured(machine)
        .extra("kind", "node")
        .extra("machine", machine)
        .note(&*node.why)
}

fn joined_row(joined: &Joined) -> Row {
    Row::new(format!("not cut: {} and {}", joined.nodes[0], joined.nodes[1]), "")
        .extra("kind", "joined")
        .extra("nodes", joined.nodes.to_vec())
        .extra("short_link", joined.short_link.clone())
        .note(&*joined.why)
}
