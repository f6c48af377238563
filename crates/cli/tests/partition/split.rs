//! A scenario and its parts: what leaves by each port, and what each link counts.

use super::machines;
use super::support::{Folder, Frame, json, longwire, pcap, read_pcap};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A scenario and its parts, with captures at ports.
pub struct Split {
    folder: Folder,
    pub whole: String,
    /// By machine: its part, and its tunnels with the machines to which they lead.
    pub parts: BTreeMap<String, (String, Vec<(String, String)>)>,
}

impl Split {
    pub fn new(what: &str, scenario: &str, nodes: &[(&str, &[&str])]) -> Self {
        let folder = Folder::new(what);
        let whole = folder.write("whole.toml", scenario);
        let cluster = folder.write("machines.toml", machines(nodes));
        let cut = longwire(&[
            "partition",
            &whole,
            "--machines",
            &cluster,
            "--write",
            &folder.text("parts"),
            "--json",
        ]);
        let report = json(&cut, 0);
        let mut parts = BTreeMap::new();
        for (name, _) in nodes {
            let part = folder.text(&format!("parts/{name}.toml"));
            let text = std::fs::read_to_string(&part).unwrap();
            let named = text.lines().filter_map(|line| line.strip_prefix("name = \"cut")?.strip_suffix('"'));
            let tunnels = named.filter(|name| !name.ends_with("wire")).map(|name| {
                let peer = name.split_once('-').unwrap().1;
                (format!("cut{name}"), peer.to_owned())
            });
            parts.insert((*name).to_owned(), (part, tunnels.collect()));
        }
        assert_eq!(report["parts"].as_array().unwrap().len(), nodes.len(), "{report:#}");
        Self { folder, whole, parts }
    }

    fn capture(&self, part: &str, port: &str, direction: &str) -> PathBuf {
        self.folder.path(&format!("{part}-{port}-{direction}.pcap"))
    }

    /// Runs a scenario in virtual time; the frames that leave by each of its ports, and the report.
    fn run(
        &self,
        name: &str,
        file: &str,
        arrivals: &BTreeMap<String, Vec<Frame>>,
    ) -> (BTreeMap<String, Vec<Frame>>, Value) {
        let mut arguments =
            vec!["run".to_owned(), file.to_owned(), "--virtual".to_owned(), "--json".to_owned()];
        for (port, frames) in arrivals {
            let [input, output] = ["in", "out"].map(|direction| self.capture(name, port, direction));
            std::fs::write(&input, pcap(frames)).unwrap();
            arguments.extend(["--input".to_owned(), format!("{port}={}", input.display())]);
            arguments.extend(["--output".to_owned(), format!("{port}={}", output.display())]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let report = json(&longwire(&arguments), 0);
        let out = arrivals.keys().map(|port| (port.clone(), read_pcap(&self.capture(name, port, "out"))));
        (out.collect(), report)
    }

    /// Runs the parts until what leaves by their tunnels is what the others' tunnels received: an ideal
    /// network, on which each frame arrives when it left. Since every cut link has a delay, there is one such
    /// state. The frames that leave by ports, and the links' rows.
    fn settle(
        &self,
        arrivals: &BTreeMap<String, Vec<Frame>>,
    ) -> (BTreeMap<String, Vec<Frame>>, BTreeMap<String, Value>) {
        let mut crossing: BTreeMap<(String, String), Vec<Frame>> = BTreeMap::new();
        for _ in 0..40 {
            let (mut out, mut links) = (BTreeMap::new(), BTreeMap::new());
            let mut next: BTreeMap<(String, String), Vec<Frame>> = BTreeMap::new();
            for (name, (file, tunnels)) in &self.parts {
                let text = std::fs::read_to_string(file).unwrap();
                let here = |port: &&String| text.contains(&format!("\nname = \"{port}\"\n"));
                let own = arrivals.keys().filter(here).map(|port| (port.clone(), arrivals[port].clone()));
                let mut inputs: BTreeMap<String, Vec<Frame>> = own.collect();
                for (tunnel, _) in tunnels {
                    let frames = crossing.get(&(name.clone(), tunnel.clone())).cloned().unwrap_or_default();
                    inputs.insert(tunnel.clone(), frames);
                }
                let (mut left, report) = self.run(name, file, &inputs);
                for (tunnel, peer) in tunnels {
                    let number = tunnel.split_once('-').unwrap().0;
                    next.insert((peer.clone(), format!("{number}-{name}")), left.remove(tunnel).unwrap());
                }
                out.extend(left);
                links.extend(link_rows(&report));
            }
            if next == crossing {
                return (out, links);
            }
            crossing = next;
        }
        panic!("the parts do not settle");
    }

    /// Asserts that the parts do what the whole does, frame by frame and link by link.
    pub fn agrees(&self, arrivals: &BTreeMap<String, Vec<Frame>>) {
        let (whole, report) = self.run("whole", &self.whole, arrivals);
        let (parts, links) = self.settle(arrivals);
        for (port, frames) in &whole {
            assert!(!frames.is_empty(), "nothing leaves by {port}");
            let differs = frames.iter().zip(&parts[port]).position(|(one, other)| one != other);
            assert_eq!(differs, None, "{port}: of {} and {} frames", frames.len(), parts[port].len());
            assert_eq!(frames.len(), parts[port].len(), "{port}");
        }
        for (name, link) in link_rows(&report) {
            assert_eq!(link, links[&name], "{name}");
        }
    }
}

/// The counters of each link.
fn link_rows(report: &Value) -> BTreeMap<String, Value> {
    let rows = report["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "link");
    let counters = rows.map(|row| {
        let each = row.as_object().unwrap().iter();
        let counted = each.filter(|(key, value)| value.is_u64() && !key.ends_with("_ns") && *key != "id");
        (
            row["name"].as_str().unwrap().to_owned(),
            counted.map(|(key, value)| (key.clone(), value.clone())).collect(),
        )
    });
    counters.collect()
}
