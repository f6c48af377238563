//! Packets that leave a link before its end: steered to another link, or replied to.

use crate::support::{memory_ports, simulate};
use longwire_assemble::TO_THE_END;
use longwire_block::Stamp;
use longwire_engine::Report;
use longwire_scenario::{Plan, parse, plan_of};
use longwire_units::Nanos;

const PORTS: &str = "[[port]]\nname = \"a\"\ndriver = \"memory\"\naddresses = \"10.0.0.1/32\"\n\
    [[port]]\nname = \"b\"\ndriver = \"memory\"\naddresses = \"10.0.0.2/32\"\n";

/// An IPv4 UDP packet from a to b, to this UDP port, with DF set.
fn frame(plan: &Plan, to: u16, length: usize) -> Vec<u8> {
    let mut frame = crate::support::frame(plan, 0, 1, length);
    frame[20] = 0x40;
    frame[36..38].copy_from_slice(&to.to_be_bytes());
    frame
}

/// Frames with their departure times, in µs.
type Frames = Vec<(u64, Vec<u8>)>;

/// Sends frames from a to b, 1 ms apart from 1 ms on; returns the output of both ports with times.
fn run(plan: &Plan, frames: &[Vec<u8>]) -> ([Frames; 2], Report) {
    run_apart(plan, frames, Nanos::from_millis(1))
}

/// Sends frames at this interval; see [`run`].
fn run_apart(plan: &Plan, frames: &[Vec<u8>], gap: Nanos) -> ([Frames; 2], Report) {
    let (ports, mut ends) = memory_ports(plan, Stamp::Source);
    // The bridge learns b's port from a frame that b sends to itself.
    assert!(ends[1].push_at(Nanos::ZERO, &crate::support::frame(plan, 1, 1, 60)));
    let mut time = Nanos::from_millis(1);
    for frame in frames {
        assert!(ends[0].push_at(time, frame));
        time += gap;
    }
    let (_, report) = simulate::<()>(plan, ports, TO_THE_END, |_| None);
    let mut out = [Vec::new(), Vec::new()];
    for (list, end) in out.iter_mut().zip(&mut ends) {
        while let Some(frame) = end.take() {
            list.push((frame.facts.time.0 / 1000, frame.bytes));
        }
    }
    (out, report)
}

/// Packets to port 443 take the second link, over one hop and over two.
#[test]
fn steered_packets_take_the_other_link() {
    let one = "[[link]]\nname = \"up\"\nfrom = \"a\"\nto = \"b\"\ndelay = \"10 ms\"\n\
        filter = [\"steer sky if udp dst port 443\"]\n\
        [[link]]\nname = \"sky\"\nfrom = \"a\"\nto = \"b\"\ndelay = \"300 ms\"\n";
    let two = "[[bridge]]\nname = \"x\"\n[[bridge]]\nname = \"y\"\n\
        [[link]]\nname = \"in\"\nfrom = \"a\"\nto = \"x\"\ndelay = \"1 ms\"\n\
        [[link]]\nname = \"up\"\nfrom = \"x\"\nto = \"y\"\ndelay = \"10 ms\"\n\
        filter = [\"steer sky if udp dst port 443\"]\n\
        [[link]]\nname = \"sky\"\nfrom = \"x\"\nto = \"y\"\ndelay = \"300 ms\"\n\
        [[link]]\nname = \"out\"\nfrom = \"y\"\nto = \"b\"\ndelay = \"2 ms\"\n";
    for (links, more) in [(one, 0), (two, 3000)] {
        for workers in [1, 2] {
            let text = format!("[engine]\nworkers = {workers}\n{PORTS}{links}");
            let plan = plan_of(&text);
            let frames: Vec<_> = [80, 443, 80, 443].map(|port| frame(&plan, port, 200)).into();
            let ([_, out], report) = run(&plan, &frames);
            let mut times: Vec<u64> = out.iter().map(|(time, _)| time - more).collect();
            times.sort_unstable();
            assert_eq!(times, [11_000, 13_000, 302_000, 304_000], "{workers} workers");
            let steered: u64 = report.links.iter().map(|link| link.stats.steered_packets).sum();
            assert_eq!(steered, 2);
        }
    }
}

/// Three packets come to a link at one instant: one passes it, one is steered, one is too big. In a pipeline
/// "out" is at another worker than the links before it, so that the first makes the link due at once.
#[test]
fn what_leaves_a_due_link_before_its_end_does_not_depend_on_the_number_of_workers() {
    let links = "[[bridge]]\nname = \"x\"\n[[bridge]]\nname = \"y\"\n\
        [[link]]\nname = \"in\"\nfrom = \"a\"\nto = \"x\"\ndelay = \"1 ms\"\n\
        [[link]]\nname = \"out\"\nfrom = \"y\"\nto = \"b\"\ndelay = \"2 ms\"\n\
        [[link]]\nname = \"up\"\nfrom = \"x\"\nto = \"y\"\ndelay = \"1 ms\"\n\
        filter = [\"steer sky if udp dst port 443\"]\nmtu = { kind = \"too-big\", mtu = 1000 }\n\
        [[link]]\nname = \"sky\"\nfrom = \"x\"\nto = \"y\"\ndelay = \"5 ms\"\n";
    let pipeline = (2..=6).map(|workers| format!("workers = {workers}\nmapping = \"pipeline\""));
    for engine in ["workers = 1", "workers = 2"].map(String::from).into_iter().chain(pipeline) {
        let plan = plan_of(&format!("[engine]\n{engine}\npool = \"8 MiB\"\n{PORTS}{links}"));
        let frames = [(80, 200), (443, 200), (80, 1015)].map(|(port, length)| frame(&plan, port, length));
        let ([back, out], _) = run_apart(&plan, &frames, Nanos::ZERO);
        let times = |frames: &Frames| frames.iter().map(|(time, _)| *time).collect::<Vec<_>>();
        assert_eq!((times(&back), times(&out)), (vec![2000], vec![5000, 9000]), "{engine}");
    }
}

#[test]
fn a_link_to_steer_to_must_be_there() {
    let text = |target: &str| {
        format!(
            "{PORTS}[[link]]\nname = \"up\"\nfrom = \"a\"\nto = \"b\"\nfilter = \"steer {target}\"\n\
             [[link]]\nname = \"back\"\nfrom = \"b\"\nto = \"a\"\n"
        )
    };
    for (target, wanted) in
        [("sky", "there is no such link"), ("back", "goes elsewhere"), ("up", "this link")]
    {
        let error = parse("steering.toml", &text(target)).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

fn link(name: &str, more: &str) -> String {
    format!("[[link]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\n{more}\n")
}

/// Frames to the addresses reserved for bridges: a cable between two ports carries them, a bridge does not.
#[test]
fn what_is_reserved_for_bridges_passes_a_cable() {
    let bridge = "[[bridge]]\nname = \"x\"\n";
    for (bridge, more, passed) in
        [("", "", 3), (bridge, "", 0), ("", "[[port]]\nname = \"c\"\ndriver = \"memory\"\n", 0)]
    {
        let plan = plan_of(&format!("{PORTS}{more}{bridge}{}", link("up", "delay = \"5 ms\"")));
        let frames = [0u8, 2, 0xe].map(|last| {
            let mut frame = frame(&plan, 80, 200);
            frame[..6].copy_from_slice(&[1, 0x80, 0xc2, 0, 0, last]);
            frame
        });
        let ([_, out], report) = run(&plan, &frames);
        let dropped = report.flow.dropped(longwire_block::DropReason::Reserved);
        assert_eq!((out.len() as u64, dropped), (passed, 3 - passed), "{bridge}{more}");
    }
}

/// Links that steer to each other are refused, with or without packets of their own, and whatever the
/// conditions: a change could make them overlap.
#[test]
fn steering_in_a_circle_is_refused() {
    let matched = "match = [{ source = \"10.0.0.1\", destination = \"10.0.0.2\" }]\n";
    let first = link("first", "filter = \"steer up if udp\"");
    for (first, matched) in [("", ""), (&first, ""), ("", matched)] {
        let up = link("up", &format!("filter = [\"drop if icmp\", \"steer sky if tcp\"]\n{matched}"));
        let sky = link("sky", "filter = \"steer low\"");
        let low = link("low", "filter = [\"steer end if ip\", \"steer up if udp\"]");
        let end = link("end", "");
        let error =
            parse("steering.toml", &format!("{PORTS}{first}{up}{sky}{low}{end}")).unwrap_err().to_string();
        let wanted = "steers in a circle: \"up\" → \"sky\" → \"low\" → \"up\"";
        assert!(error.contains(wanted) && error.contains("leave out one"), "{error}");
    }
}

/// Two paths that steer to one link are not a loop.
#[test]
fn steering_that_meets_again_is_allowed() {
    let up = link("up", "filter = [\"steer one if tcp\", \"steer two if udp\"]");
    let (one, two) =
        (link("one", "filter = \"steer end\""), link("two", "filter = [\"steer one if ip\", \"steer end\"]"));
    let plan = plan_of(&format!("{PORTS}{up}{one}{two}{}", link("end", "delay = \"5 ms\"")));
    let ([_, out], report) = run(&plan, &[frame(&plan, 443, 200)]);
    assert_eq!((out.len(), out[0].0), (1, 6000));
    let steered: u64 = report.links.iter().map(|link| link.stats.steered_packets).sum();
    assert_eq!(steered, 3, "up, two, one");
}

/// A chain of steering of the maximum length, and one more.
#[test]
fn a_long_row_of_steering_has_an_end() {
    let row = |count: usize| {
        let steer = |at| link(&format!("l{at}"), &format!("filter = \"steer l{}\"", at + 1));
        let links: String = (0..count).map(steer).collect();
        format!("{PORTS}{links}{}", link(&format!("l{count}"), "delay = \"5 ms\""))
    };
    let plan = plan_of(&row(256));
    let ([_, out], _) = run(&plan, &[frame(&plan, 443, 200)]);
    assert_eq!((out.len(), out[0].0), (1, 6000));
    let error = parse("steering.toml", &row(257)).unwrap_err().to_string();
    assert!(error.contains("more than 256 times in a row"), "{error}");
}

/// A plan that was not checked: packets steered in a loop are dropped with a reason of their own, and the run
/// continues.
#[test]
fn what_is_steered_in_a_circle_is_dropped() {
    let up = link("up", "filter = \"steer sky if udp\"");
    let mut plan = plan_of(&format!("{PORTS}{up}{}", link("sky", "")));
    plan.links[1].profile = plan.links[0].profile;
    plan.steers.push(longwire_scenario::Steer { link: 1, number: 0, target: 0 });
    let ([_, out], report) = run(&plan, &[frame(&plan, 443, 200), frame(&plan, 80, 200)]);
    assert!(out.is_empty());
    assert_eq!(report.flow.dropped(longwire_block::DropReason::Loop), 2);
}

/// A chain of 40 links that duplicate would make 2⁴⁰ packets from one at one moment: most are dropped, and
/// the run ends.
#[test]
fn links_that_duplicate_are_bounded() {
    let bridges: String = (0..41).map(|n| format!("[[bridge]]\nname = \"x{n}\"\n")).collect();
    let step = |n: usize| format!("[[link]]\nfrom = \"x{n}\"\nto = \"x{}\"\nduplicate = \"100 %\"\n", n + 1);
    let links: String = (0..40).map(step).collect();
    let at = |n: usize| format!("driver = \"memory\"\nbridge = \"x{n}\"\n");
    let ports = PORTS.replacen("driver = \"memory\"\n", &at(0), 1);
    let ports = ports.replacen("driver = \"memory\"\naddresses", &format!("{}addresses", at(40)), 1);
    let plan = plan_of(&format!("{ports}{bridges}{links}"));
    let (_, report) = run(&plan, &[frame(&plan, 80, 200)]);
    assert!(report.flow.dropped(longwire_block::DropReason::Loop) > 0 && report.flow.sent < 1 << 20);
}

/// A packet that crosses many links at one moment does not use the stack.
#[test]
fn forty_thousand_links_without_delay() {
    const BRIDGES: usize = 40_000;
    let bridges: String = (0..BRIDGES).map(|n| format!("[[bridge]]\nname = \"x{n}\"\n")).collect();
    let step = |n: usize| format!("[[link]]\nname = \"l{n}\"\nbetween = [\"x{n}\", \"x{}\"]\n", n + 1);
    let links: String = (0..BRIDGES - 1).map(step).collect();
    let at = |n: usize| format!("driver = \"memory\"\nbridge = \"x{n}\"\n");
    let ports = PORTS.replacen("driver = \"memory\"\n", &at(0), 1);
    let ports = ports.replacen("driver = \"memory\"\naddresses", &format!("{}addresses", at(BRIDGES - 1)), 1);
    let plan = plan_of(&format!("{ports}{bridges}{links}"));
    let ([_, out], _) = run(&plan, &[frame(&plan, 80, 200)]);
    assert_eq!(out.iter().map(|(time, _)| *time).collect::<Vec<_>>(), [1000]);
}

/// A packet that is too long is dropped, and its sender informed immediately, by its input port.
#[test]
fn senders_of_too_big_packets_are_notified() {
    let links = "[[link]]\nname = \"up\"\nfrom = \"a\"\nto = \"b\"\ndelay = \"10 ms\"\n\
        mtu = { kind = \"too-big\", mtu = 1000 }\n";
    let plan = plan_of(&format!("{PORTS}{links}"));
    let ([back, out], _) = run(&plan, &[frame(&plan, 80, 1015), frame(&plan, 80, 1014)]);
    assert_eq!(out.len(), 1);
    let [(time, answer)] = &back[..] else { panic!("{back:?}") };
    assert_eq!(*time, 1000);
    assert_eq!(answer[..12], [plan.ports[0].mac.0, plan.ports[1].mac.0].concat());
    assert_eq!((answer[34], answer[35], &answer[40..42]), (3, 4, &1000u16.to_be_bytes()[..]));
}
