//! `longwire constellation`: what it writes, and that links of a run follow it.

mod support;

use serde_json::Value;
use support::{Folder, json, longwire, repository, row, stderr, stdout};

/// The example of NASA's page on the format.
const ELEMENTS: &str = "ISS (ZARYA)\n\
    1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927\n\
    2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537\n";

fn example() -> String {
    repository("scenarios/constellation/starlink.toml").display().to_string()
}

fn number(row: &Value, field: &str) -> u64 {
    row[field].as_u64().unwrap_or_else(|| panic!("no {field} in {row:#}"))
}

/// Published: a period of 95.6 minutes at 550 km; a bent pipe of 3.7 ms (2 · 550 km) and more; passes below
/// five minutes. That satellites change at multiples of 15 s is an input.
#[test]
fn the_example_agrees_with_what_is_published() {
    let folder = Folder::new("sky");
    let made = longwire(&["constellation", &example(), "--output", &folder.text("sky"), "--json"]);
    let report = json(&made, 0);
    assert_eq!(report["pass"], true, "{report:#}");
    let period = number(row(&report, "orbital period"), "measured");
    assert!((5_733_000_000_000..5_742_000_000_000).contains(&period), "{period}");
    let home = row(&report, "home to gateway");
    let [least, mean, most] =
        ["delay_least_ns", "measured", "delay_most_ns"].map(|field| number(home, field));
    assert!(3_669_205 <= least && least < mean && mean < most && most < 7_800_000, "{home:#}");
    let times = home["handover_times_ns"].as_array().unwrap();
    assert!(times.len() > 9, "{home:#}");
    assert!(times.iter().all(|time| time.as_u64().unwrap() % 15_000_000_000 == 0), "{home:#}");
    let outages = 20_000_000 * times.len() as u64;
    assert_eq!(number(home, "up_ns"), 600_000_000_000 - outages, "{home:#}");
    let pass = row(&report, "home, longest pass");
    assert!((200_000_000_000..=number(pass, "most_ns")).contains(&number(pass, "measured")), "{pass:#}");
    let far = row(&report, "london to new-york");
    let vacuum = 18_580_000;
    assert!(number(far, "delay_least_ns") > vacuum && number(far, "delay_most_ns") < 38_000_000, "{far:#}");
}

/// Beside what was measured, each within a fifth; the book has the sources. One way a leg takes 1.8 to 3.6
/// ms, and the round trip is usually under 10 ms. Of 7568 services 5164 were of one slot of 15 s. The median
/// of satellites that serve is 22.9° higher, and 80 % of them are above 45°, but 30 % of those in view.
#[test]
fn bent_pipes_agree_with_what_was_measured() {
    let folder = Folder::new("sky-measured");
    let file = repository("scenarios/constellation/measured.toml").display().to_string();
    let report = json(&longwire(&["constellation", &file, "--output", &folder.text("sky"), "--json"]), 0);
    let paths: Vec<&Value> =
        report["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "path").collect();
    assert_eq!(paths.len(), 4);
    for path in &paths {
        let [least, mean, most] =
            ["delay_least_ns", "measured", "delay_most_ns"].map(|field| number(path, field));
        assert!(2 * 1_800_000 <= least && most <= 2 * 3_600_000, "{path:#}");
        assert!(2 * mean < 10_000_000, "{path:#}");
    }
    let all = |field: &str| paths.iter().map(|path| number(path, field)).sum::<u64>() as f64;
    // The terminal is the first end.
    let at_terminals = |field: &str| paths.iter().map(|path| path[field][0].as_f64().unwrap()).sum::<f64>();
    let higher = at_terminals("serving_median_degrees") - at_terminals("in_view_median_degrees");
    for (what, found, published) in [
        ("services of one slot", all("services_of_one_epoch") / all("services"), 5164.0 / 7568.0),
        ("slots of a service", all("epochs_served") / all("services"), 1.49),
        ("how much higher those are that serve", higher / 4.0, 22.9),
        ("high ones of those that serve", at_terminals("serving_high") / at_terminals("serving"), 0.8),
        ("high ones of those in view", at_terminals("in_view_high") / at_terminals("in_view"), 0.3),
    ] {
        assert!((found / published - 1.0).abs() < 0.2, "{what}: {found}, published {published}");
    }
}

/// In virtual time each packet of the probe has the delay that the trace has when it is sent; in an outage it
/// is dropped as link-down.
#[test]
fn packets_follow_the_traces() {
    let folder = Folder::new("sky-run");
    let sky = folder.text("sky");
    let report = json(&longwire(&["constellation", &example(), "--output", &sky, "--json"]), 0);
    let home = row(&report, "home to gateway");
    let scenario = format!("{sky}/constellation.toml");
    let checked = longwire(&["check", &scenario]);
    assert!(checked.status.success(), "{}{}", stdout(&checked), stderr(&checked));
    let ran = json(&longwire(&["run", &scenario, "--virtual", "--json"]), 0);
    let probe = row(&ran, "source probe");
    // 200 bytes and the frame check sequence at 100 Mbit/s.
    let sent = 204 * 80;
    for (field, of) in [("delay_ns_min", "delay_least_ns"), ("delay_ns_max", "delay_most_ns")] {
        let (found, wanted) = (number(probe, field), number(home, of) + sent);
        assert!(found.abs_diff(wanted) < 60_000, "{field}: {found} instead of {wanted}");
    }
    // One packet of the 6000 meets each outage of 20 ms: they begin at multiples of 100 ms, as packets do.
    assert_eq!(number(probe, "lost"), number(home, "handovers"), "{probe:#}");
}

#[test]
fn the_books_file_makes_a_scenario() {
    let page = std::fs::read_to_string(repository("docs/book/constellations.md")).unwrap();
    let text = page.split("```text\n").find(|block| block.starts_with("duration = ")).unwrap();
    let folder = Folder::new("sky-book");
    let file = folder.write("sky.toml", text.split("```").next().unwrap());
    let report = json(&longwire(&["constellation", &file, "--output", &folder.text("sky"), "--json"]), 0);
    assert_eq!(report["pass"], true, "{report:#}");
    let checked = longwire(&["check", &folder.text("sky/constellation.toml")]);
    assert!(checked.status.success(), "{}", stderr(&checked));
}

#[test]
fn options_do_without_a_file() {
    let folder = Folder::new("sky-options");
    let stations = ["--station", "oslo:59.91:10.75", "--station", "rome:41.9:12.5"];
    let shell = ["constellation", "--walker", "star:86.4:66/6/2:780km", "--lasers", "--duration", "1min"];
    let out = ["--output", &folder.text("iridium")];
    let made = longwire(&[&shell[..], &stations[..], &out[..]].concat());
    assert!(made.status.success(), "{}", stderr(&made));
    assert!(stdout(&made).contains("oslo to rome"), "{}", stdout(&made));
    assert!(stderr(&made).contains("constellation.toml, and 2 traces"), "{}", stderr(&made));
    assert!(folder.path("iridium/oslo--rome.state").exists());

    let file = folder.write("iss.tle", ELEMENTS);
    let tle = ["constellation", "--tle", &file, "--start", "2008-09-20T12:25:40Z", "--json"];
    let report = json(&longwire(&[&tle[..], &stations[..], &["--output", &folder.text("iss")]].concat()), 0);
    assert_eq!(report["constellation"], "1 satellites by their two-line elements");
    assert_eq!(report["files"].as_array().unwrap().len(), 3);
}

/// The request is called as the scenario, and the elements as a trace.
#[test]
fn inputs_are_kept() {
    let folder = Folder::new("sky-kept");
    let stations = "[[station]]\nname = \"a\"\nlatitude = 1\nlongitude = 2\n\
        [[station]]\nname = \"b\"\nlatitude = 3\nlongitude = 4\n\
        [[path]]\nbetween = [\"a\", \"b\"]\nvia = \"bent-pipe\"\n";
    let walker = "[walker]\npattern = \"delta\"\ninclination = 53\nsatellites = 22\nplanes = 1\nphasing = 0\n\
        altitude-km = 550\n";
    let file = folder.write("constellation.toml", format!("{walker}{stations}"));
    let elements = folder.write("a--b.delay", ELEMENTS);
    let request = folder.write("sky.toml", format!("tle = \"a--b.delay\"\n{stations}"));
    let [one, other] = ["a:1:2", "b:3:4"];
    for (arguments, kept) in [
        (vec![&*file], &file),
        (vec![&*request], &elements),
        (vec!["--tle", &*elements, "--station", one, "--station", other], &elements),
    ] {
        let before = std::fs::read(kept).unwrap();
        let made = longwire(&[&["constellation", "--output", &*folder.text("")], &arguments[..]].concat());
        assert_eq!(made.status.code(), Some(2), "{arguments:?}: {}", stderr(&made));
        assert!(stderr(&made).contains("would be overwritten; name another place"), "{}", stderr(&made));
        assert_eq!(std::fs::read(kept).unwrap(), before, "{arguments:?}");
    }
}

#[test]
fn mistakes_are_named() {
    let folder = Folder::new("sky-wrong");
    let out = folder.text("out");
    let wrong = folder.write("wrong.toml", "duration = \"1 min\"\n");
    for (arguments, wanted) in [
        (vec!["missing.toml"], "missing.toml can't be read"),
        (vec![&*wrong], "missing field `station`"),
        (vec!["--walker", "delta:53:1584"], "write it as delta:53:1584/72/39:550km"),
        (vec!["--walker", "delta:53:22/1/0:550km", "--station", "a:1:2"], "write --station twice"),
        (
            vec!["--walker", "delta:53:22/5/0:550km", "--station", "a:1:2", "--station", "b:1:2"],
            "the options: walker: 22 satellites can't be spread evenly over 5 planes",
        ),
        (vec!["--tle", &*wrong, "--station", "a:1:2", "--station", "b:1:2"], "there are no elements in it"),
    ] {
        let made = longwire(&[&["constellation", "--output", &*out], &arguments[..]].concat());
        assert_eq!(made.status.code(), Some(2), "{arguments:?}: {}", stderr(&made));
        assert!(stderr(&made).contains(wanted), "{arguments:?}: {}", stderr(&made));
    }
    assert!(!folder.path("out").exists());
}
