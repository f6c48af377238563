//! `longwire partition`: what is cut, what is refused, and that the parts do what the whole does.

#[path = "../support/mod.rs"]
mod support;

mod agreement;
mod network;
mod split;

use serde_json::Value;
use std::fmt::Write;
use support::{Folder, json, longwire, repository, row, stderr, stdout};

const MACHINES: &str = "latency = \"150 us\"\nclock-error = \"30 us\"\nkey = \"tunnel.key\"\n";

/// Three bridges.
const THREE_BRIDGES: &str = r#"
[[bridge]]
name = "left"
[[bridge]]
name = "middle"
[[bridge]]
name = "right"
"#;

/// A file of machines, each with the nodes that must be there.
fn machines(nodes: &[(&str, &[&str])]) -> String {
    let mut text = MACHINES.to_owned();
    for (number, (name, nodes)) in nodes.iter().enumerate() {
        let address = format!("192.0.2.{}", number + 1);
        write!(text, "\n[[machine]]\nname = \"{name}\"\naddress = \"{address}\"\nnodes = {nodes:?}\n")
            .unwrap();
    }
    text
}

/// Where nodes name nothing, the heuristic spreads the work, and says why it cuts and where.
#[test]
fn the_cut_is_explained() {
    let folder = Folder::new("explained");
    let side = |name: &str, net: u8| {
        format!(
            "[[bridge]]\nname = \"{name}\"\n[[host]]\nname = \"{name}{{n}}\"\ncount = 3\n\
             address = \"{{10.0.{net}.0 + n}}/16\"\n[[link]]\nname = \"{name}-cable{{n}}\"\ncount = 3\n\
             between = [\"{name}{{n}}\", \"{name}\"]\nrate = \"100 Mbit/s\"\n"
        )
    };
    let wan = "[[link]]\nname = \"wan\"\nbetween = [\"left\", \"right\"]\nrate = \"2 Mbit/s\"\n\
        delay = \"20 ms\"\n";
    let scenario = folder.write("whole.toml", format!("{}{}{wan}", side("left", 1), side("right", 2)));
    let cluster = folder.write("machines.toml", machines(&[("one", &[]), ("two", &[])]));
    let report = json(&longwire(&["partition", &scenario, "--machines", &cluster, "--json"]), 0);
    let rows = report["rows"].as_array().unwrap();
    let of_kind = |kind: &str| rows.iter().filter(move |row| row["kind"] == kind).collect::<Vec<_>>();
    let loads: Vec<u64> = of_kind("machine").iter().map(|row| row["load_ppm"].as_u64().unwrap()).collect();
    assert!(loads.len() == 2 && loads.iter().all(|load| *load > 0), "{report:#}");
    let cuts = of_kind("cut");
    assert_eq!(cuts.len(), 1, "{report:#}");
    for cut in &cuts {
        let note = cut["notes"][0].as_str().unwrap();
        assert!(note.ends_with("≥ latency 150 us + clock error 30 us"), "{note}");
        assert!(cut["delay_ns"].as_u64() >= Some(180_000), "{cut:#}");
    }
    assert_eq!(of_kind("node").len(), 8, "six hosts and two bridges: {report:#}");
    let text = longwire(&["partition", &scenario, "--machines", &cluster]);
    assert!(stdout(&text).contains("≥ latency 150 us + clock error 30 us"), "{}", stdout(&text));
    // Workers take what the load is, or all of a core if they spin.
    let taken = |report: &Value| -> Vec<u64> {
        let rows = report["rows"].as_array().unwrap().iter();
        rows.filter_map(|row| row["taken_ppm"].as_u64()).collect()
    };
    assert_eq!(taken(&report), loads);
    let whole = std::fs::read_to_string(&scenario).unwrap();
    let spinning = folder.write("spinning.toml", format!("[engine]\nwait = \"spin\"\n{whole}"));
    let report = json(&longwire(&["partition", &spinning, "--machines", &cluster, "--json"]), 0);
    assert_eq!(taken(&report), [1_000_000; 2]);
}

#[test]
fn what_can_not_be_cut_is_refused_with_the_arithmetic() {
    let folder = Folder::new("refused");
    let run = |scenario: &str, cluster: &str| {
        let scenario = folder.write("whole.toml", scenario);
        let cluster = folder.write("machines.toml", cluster);
        longwire(&["partition", &scenario, "--machines", &cluster, "--write", &folder.text("parts")])
    };
    let two = machines(&[("one", &[]), ("two", &[])]);
    let host =
        |name: &str, number: u8| format!("[[host]]\nname = \"{name}\"\naddress = \"10.0.0.{number}/24\"\n");
    let hosts = format!("{}{}", host("a", 1), host("b", 2));
    let link = |delay: &str| {
        format!("{hosts}[[link]]\nname = \"wan\"\nbetween = [\"a\", \"b\"]\ndelay = \"{delay}\"\n")
    };
    let short = run(&link("100 us"), &two);
    assert_eq!(short.status.code(), Some(1));
    let said = stdout(&short);
    assert!(said.contains("delay 100 us < latency 150 us + clock error 30 us"), "{said}");
    assert!(said.contains("raise the delay to 180 us or more"), "{said}");
    assert!(!folder.path("parts").exists(), "nothing is written");

    let pinned = run(&link("100 us"), &machines(&[("one", &["a"]), ("two", &["b"])]));
    let said = stdout(&pinned);
    assert!(said.contains("b is to be on two, but") && said.contains("put them together"), "{said}");

    // One link is long enough for the first two machines, not for the third.
    let far = "\n[[between]]\nmachines = [\"one\", \"two\"]\nlatency = \"5 ms\"\n";
    let slow = run(&link("2 ms"), &format!("{}{far}", machines(&[("one", &["a"]), ("two", &["b"])])));
    let said = stdout(&slow);
    assert!(said.contains("delay 2 ms < latency 5 ms + clock error 30 us"), "{said}");

    let three = run(&link("2 ms"), &machines(&[("one", &[]), ("two", &[]), ("three", &[])]));
    let said = stdout(&three);
    assert!(said.contains("only 2 groups can be separated, and there are 3 machines"), "{said}");

    let one_way = run(&format!("{hosts}[[link]]\nfrom = \"a\"\nto = \"b\"\ndelay = \"9 ms\"\n"), &two);
    let said = stdout(&one_way);
    assert!(one_way.status.code() == Some(1) && said.contains("nothing can be cut"), "{said}");

    let later = run(&format!("{}[[at]]\ntime = \"1 s\"\nlink = \"wan\"\nmtu = 1280\n", link("9 ms")), &two);
    let said = stdout(&later);
    assert!(later.status.code() == Some(1) && said.contains("nothing can be cut"), "{said}");

    let unknown = run(&link("2 ms"), &machines(&[("one", &["x"]), ("two", &[])]));
    assert!(
        unknown.status.code() == Some(2)
            && stderr(&unknown).contains("no host, port, bridge or router \"x\"")
    );
    let wrong = run(&link("2 ms"), "latency = 1\n");
    assert!(wrong.status.code() == Some(2) && stderr(&wrong).contains("machines.toml"), "{}", stderr(&wrong));
}

/// Machines are called as the scenario, and as the file of machines.
#[test]
fn inputs_are_kept() {
    let folder = Folder::new("kept");
    let host =
        |name: &str, number: u8| format!("[[host]]\nname = \"{name}\"\naddress = \"10.0.0.{number}/24\"\n");
    let link = "[[link]]\nname = \"line\"\nbetween = [\"a\", \"b\"]\ndelay = \"9 ms\"\n";
    let text = format!("{}{}{link}", host("a", 1), host("b", 2));
    let scenario = folder.write("wan.toml", &text);
    for (one, other) in [("wan", "two"), ("one", "machines")] {
        let of_machines = machines(&[(one, &["a"]), (other, &["b"])]);
        let cluster = folder.write("machines.toml", &of_machines);
        let write = |target: &str| {
            longwire(&["partition", &scenario, "--machines", &cluster, "--write", &folder.text(target)])
        };
        let cut = write("");
        assert_eq!(cut.status.code(), Some(2), "{}{}", stdout(&cut), stderr(&cut));
        assert!(stderr(&cut).contains("would be overwritten; name another place"), "{}", stderr(&cut));
        assert_eq!(std::fs::read_to_string(&scenario).unwrap(), text);
        assert_eq!(std::fs::read_to_string(&cluster).unwrap(), of_machines);
        assert!(!folder.path("two.toml").exists() && !folder.path("one.toml").exists());
        // A link to an input is that input.
        std::fs::create_dir_all(folder.path("parts")).unwrap();
        let target = folder.path(&format!("parts/{one}.toml"));
        std::os::unix::fs::symlink(&scenario, &target).unwrap();
        assert_eq!(write("parts").status.code(), Some(2));
        assert_eq!(std::fs::read_to_string(&scenario).unwrap(), text);
    }
}

/// Where two hosts stay together, their tunnel would cost more than it carries.
#[test]
fn parts_of_an_earlier_cut_do_not_stay() {
    let folder = Folder::new("leftovers");
    let host =
        |name: &str, number: u8| format!("[[host]]\nname = \"{name}\"\naddress = \"10.0.0.{number}/24\"\n");
    let link = "[[link]]\nname = \"wan\"\nbetween = [\"a\", \"b\"]\ndelay = \"9 ms\"\n";
    let scenario = folder.write("wan.toml", format!("{}{}{link}", host("a", 1), host("b", 2)));
    let cut = |of_one: &[&str], of_two: &[&str]| {
        let cluster = folder.write("machines.toml", machines(&[("one", of_one), ("two", of_two)]));
        let parts = folder.text("parts");
        json(&longwire(&["partition", &scenario, "--machines", &cluster, "--write", &parts, "--json"]), 0)
    };
    assert_eq!(cut(&["a"], &["b"])["parts"].as_array().map(Vec::len), Some(2));
    assert!(folder.path("parts/one.toml").exists());
    let report = cut(&[], &["a", "b"]);
    assert!(!folder.path("parts/one.toml").exists() && folder.path("parts/two.toml").exists());
    let notes = report["notes"].to_string();
    assert!(notes.contains("nothing is on one") && notes.contains("one.toml: that machine"), "{notes}");
    // What is no part is somebody's.
    let own = folder.write("parts/one.toml", "# The part for nobody\n");
    assert!(!cut(&[], &["a", "b"])["notes"].to_string().contains("removed"));
    let cluster = folder.write("machines.toml", machines(&[("one", &["a"]), ("two", &["b"])]));
    let over = longwire(&["partition", &scenario, "--machines", &cluster, "--write", &folder.text("parts")]);
    assert_eq!(over.status.code(), Some(2), "{}{}", stdout(&over), stderr(&over));
    assert!(stderr(&over).contains("it is no part of an earlier cut"), "{}", stderr(&over));
    assert_eq!(std::fs::read_to_string(own).unwrap(), "# The part for nobody\n");
}

/// The book's file of machines, without the prices, which nobody has measured here.
#[test]
fn the_machines_of_the_book_are_read() {
    let page = std::fs::read_to_string(repository("docs/book/cluster.md")).unwrap();
    let text = page.split("```text\n").find(|block| block.contains("[[machine]]")).unwrap();
    let text = text.split("```").next().unwrap().replace("prices = \"two.prices\"\n", "");
    let folder = Folder::new("book");
    let cluster = folder.write("machines.toml", text);
    let host =
        |name: &str, number: u8| format!("[[host]]\nname = \"{name}\"\naddress = \"10.0.0.{number}/24\"\n");
    let link = "[[link]]\nname = \"wan\"\nbetween = [\"a\", \"uplink\"]\ndelay = \"300 us\"\n";
    let scenario = folder.write("whole.toml", format!("{}{}{link}", host("a", 1), host("uplink", 2)));
    let report = json(&longwire(&["partition", &scenario, "--machines", &cluster, "--json"]), 1);
    assert_eq!(row(&report, "host uplink")["machine"], "two", "{report:#}");
    let failures = report["failures"].to_string();
    assert!(failures.contains("delay 300 us < latency 400 us + clock error 30 us"), "{failures}");
}
