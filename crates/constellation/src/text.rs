//! Writer of the scenario and its traces.

use crate::GeneratedFile;
use crate::request::{Medium, Path, Request};
use crate::schedule::Schedule;
use longwire_units::Nanos;
use std::collections::VecDeque;
use std::fmt::Write;

/// Name of the scenario.
const SCENARIO: &str = "constellation.toml";

/// The scenario, and two traces for each path through the sky.
pub(crate) fn files(request: &Request, schedules: &[Option<Schedule>]) -> Vec<GeneratedFile> {
    let mut files = vec![GeneratedFile { name: SCENARIO.into(), text: scenario(request) }];
    for (number, schedule) in schedules.iter().enumerate() {
        let Some(schedule) = schedule else { continue };
        let name = request.link_name(number);
        let word = |is_up: &bool| if *is_up { "up" } else { "down" };
        let delays = trace(&schedule.delays, Nanos::to_string, request.duration);
        let states = trace(&schedule.states, |is_up| word(is_up).to_owned(), request.duration);
        files.push(GeneratedFile { name: format!("{name}.delay"), text: delays });
        files.push(GeneratedFile { name: format!("{name}.state"), text: states });
    }
    files
}

/// A list of times and values, with its end.
fn trace<T>(steps: &[(Nanos, T)], show: impl Fn(&T) -> String, end: Nanos) -> String {
    let mut text = String::new();
    for (time, value) in steps {
        // Writing to a text can't fail.
        let _ = writeln!(text, "{time}, {}", show(value));
    }
    let _ = writeln!(text, "{end}, end");
    text
}

/// The port of a path's end.
fn port(request: &Request, number: usize, end: usize) -> String {
    request.stations[request.paths[number].ends[end]].port_name(number)
}

/// The address of a path's end, of 10.200.0.0/16: each path has four addresses.
fn address(number: usize, end: usize) -> String {
    let host = number * 4 + 1 + end;
    format!("10.{}.{}.{}", 200 + (host >> 16), (host >> 8) & 255, host & 255)
}

fn scenario(request: &Request) -> String {
    let mut text = format!(
        "# {}, for {}.\n# Written by \"longwire constellation\"; the traces are beside it.\n",
        request.sky.description(),
        request.duration
    );
    for (at, station) in request.stations.iter().enumerate() {
        let name = &station.name;
        let network = at + 1;
        let _ = write!(
            text,
            "\n[[host]]\nname = \"{name}\"\naddress = \"10.{network}.0.2/24\"\n\n\
             [[router]]\nname = \"{}\"\n",
            station.router_name()
        );
        if request.control_plane {
            text.push_str("control-plane = \"netns\"\n");
        }
        let _ =
            writeln!(text, "ports = [\n    {{ port = \"{name}\", addresses = \"10.{network}.0.1/24\" }},");
        for (number, end) in own_ends(request, at) {
            let (port, address) = (port(request, number, end), address(number, end));
            let _ = writeln!(text, "    {{ port = \"{port}\", addresses = \"{address}/30\" }},");
        }
        text.push_str("]\n");
        let routes = if request.control_plane { Vec::new() } else { routes(request, at) };
        if !routes.is_empty() {
            let _ = writeln!(text, "routes = [");
            for (to, via) in routes {
                let _ = writeln!(text, "    {{ to = \"10.{}.0.0/24\", via = \"{via}\" }},", to + 1);
            }
            text.push_str("]\n");
        }
    }
    for (number, path) in request.paths.iter().enumerate() {
        link(&mut text, request, number, path);
    }
    traffic(&mut text, request);
    text
}

fn link(text: &mut String, request: &Request, number: usize, path: &Path) {
    let name = request.link_name(number);
    let (one, other) = (port(request, number, 0), port(request, number, 1));
    let _ = write!(text, "\n[[link]]\nname = \"{name}\"\nbetween = [\"{one}\", \"{other}\"]\n");
    if let Some(rate) = path.rate {
        let _ = writeln!(text, "rate = \"{rate}\"");
    }
    let end = if request.repeats { "loop" } else { "hold" };
    let _ = match path.via {
        Medium::Ground(delay) => writeln!(text, "delay = \"{delay}\""),
        Medium::BentPipe | Medium::Lasers => write!(
            text,
            "delay = {{ kind = \"trace\", file = \"{name}.delay\", end = \"{end}\" }}\n\
             state = {{ kind = \"trace\", file = \"{name}.state\", end = \"{end}\" }}\n"
        ),
    };
}

/// A packet every 100 ms over the first path, so that a run in virtual time shows something.
fn traffic(text: &mut String, request: &Request) {
    let [one, other] = request.paths[0].ends.map(|end| &*request.stations[end].name);
    if request.control_plane {
        return;
    }
    let _ = write!(
        text,
        "\n[[source]]\nname = \"probe\"\nfrom = \"{one}\"\nto = \"{other}\"\nsize = \"200 B\"\n\
         interval = \"100 ms\"\nfor = \"{}\"\n",
        request.duration
    );
}

/// The paths that begin or end at a station: their numbers, and which of their ends it is.
fn own_ends(request: &Request, station: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
    let ends = move |(number, path): (usize, &Path)| {
        path.ends.iter().position(|end| *end == station).map(|end| (number, end))
    };
    request.paths.iter().enumerate().filter_map(ends)
}

/// Routes of a station to the others: over the fewest paths, of several the first in the file.
fn routes(request: &Request, from: usize) -> Vec<(usize, String)> {
    let mut gateways: Vec<Option<String>> = vec![None; request.stations.len()];
    let mut is_known = vec![false; request.stations.len()];
    is_known[from] = true;
    let mut next = VecDeque::from([from]);
    while let Some(station) = next.pop_front() {
        for (number, end) in own_ends(request, station) {
            let other = request.paths[number].ends[1 - end];
            if !is_known[other] {
                is_known[other] = true;
                gateways[other] = gateways[station].clone().or_else(|| Some(address(number, 1 - end)));
                next.push_back(other);
            }
        }
    }
    gateways.into_iter().enumerate().filter_map(|(to, via)| Some((to, via?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
duration = "2 s"

[walker]
pattern = "star"
inclination = 87.9
satellites = 648
planes = 18
phasing = 1
altitude-km = 1200

[[station]]
name = "one"
latitude = 50
longitude = 8

[[station]]
name = "two"
latitude = 48
longitude = 11

[[station]]
name = "three"
latitude = 52
longitude = 13

[[path]]
between = ["one", "two"]
via = "bent-pipe"
rate = "50 Mbit/s"

[[path]]
between = ["two", "one"]
via = "ground"
delay = "9 ms"

[[path]]
between = ["two", "three"]
via = "lasers"
"#;

    fn generated(text: &str) -> Vec<GeneratedFile> {
        crate::generate(&Request::read("c.toml", text).unwrap()).files
    }

    #[test]
    fn a_path_has_its_link_and_its_traces() {
        let files = generated(FILE);
        let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
        let wanted = ["one--two.delay", "one--two.state", "two--three.delay", "two--three.state"];
        assert_eq!(names[0], SCENARIO);
        assert_eq!(names[1..], wanted);
        for wanted in [
            "name = \"one--two\"\nbetween = [\"one-1\", \"two-1\"]\nrate = \"50 Mbit/s\"\n",
            "delay = { kind = \"trace\", file = \"one--two.delay\", end = \"hold\" }\n",
            "name = \"two--one--2\"\nbetween = [\"two-2\", \"one-2\"]\ndelay = \"9 ms\"\n",
            // From three to one through two, over the first of the two paths.
            "    { to = \"10.1.0.0/24\", via = \"10.200.0.9\" },\n",
            "    { to = \"10.1.0.0/24\", via = \"10.200.0.1\" },\n",
        ] {
            assert!(files[0].text.contains(wanted), "{wanted}: {}", files[0].text);
        }
        assert!(
            files[1].text.starts_with("0 ms, ") && files[1].text.ends_with("2 s, end\n"),
            "{}",
            files[1].text
        );
        assert_eq!(files[2].text, "0 ms, up\n2 s, end\n");
    }

    #[test]
    fn routers_with_control_planes_have_no_routes() {
        let text = format!("control-plane = true\nrepeats = true\n{FILE}");
        let scenario = &generated(&text)[0].text;
        assert_eq!(scenario.matches("control-plane = \"netns\"").count(), 3);
        assert!(!scenario.contains("routes") && !scenario.contains("[[source]]"), "{scenario}");
        assert!(scenario.contains("end = \"loop\""), "{scenario}");
    }

    #[test]
    fn the_last_path_has_addresses_of_its_own() {
        assert_eq!((address(0, 0), address(998, 1)), ("10.200.0.1".into(), "10.200.15.154".into()));
    }
}
