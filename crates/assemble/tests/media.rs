//! Scenarios with shared media: plans, errors, and runs in virtual time.

use crate::support::{PacketView, simulate, source_ports};
use longwire_assemble::{Calibration, TO_THE_END, price};
use longwire_block::DropReason;
use longwire_engine::Report;
use longwire_scenario::{Plan, load, parse, plan_of};
use longwire_units::{Nanos, Rate};
use std::path::Path;

/// Departures: time, port, number of source and sequence.
type Trace = Vec<(u64, u16, Vec<u8>)>;

fn run(plan: &Plan, until: Nanos) -> (Trace, Report) {
    let look =
        |view: &PacketView<'_>| view.left.then(|| (view.time, view.meta.out_port, view.frame[..60].to_vec()));
    let (mut trace, report) = simulate(plan, source_ports(plan), until, look);
    trace.sort();
    (trace, report)
}

fn example(name: &str) -> Plan {
    load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The cell's channel is full: 1500-byte packets at 11 Mbit/s need 1314 µs on the air, 1.7 ms with all
/// overhead.
#[test]
fn a_wifi_cell() {
    let plan = example("wifi-cell.toml");
    assert_eq!((plan.media.len(), plan.media[0].links.len(), plan.links.len()), (1, 6, 6));
    let rate = longwire_link::medium_rate(&plan.media[0].values);
    assert_eq!((rate, plan.profile(0).rate()), (Rate(11_000_000), Rate::UNLIMITED));
    let (_, report) = run(&plan, Nanos::from_secs(1));
    let out: u64 = report.links.iter().map(|link| link.stats.out_packets).sum();
    let collisions: u64 = report.links.iter().map(|link| link.stats.collisions).sum();
    assert!((450..640).contains(&out) && collisions > 50, "{out} {collisions}");
}

#[test]
fn an_ethernet_lan() {
    let plan = example("ethernet-lan.toml");
    assert_eq!(plan.media[0].links.len(), 10);
    let (_, report) = run(&plan, Nanos::from_secs(1));
    // 1004 bytes, preamble and gap are 819.2 µs: at most 1220 fit a second, and back-off takes less than a
    // fifth.
    let out: u64 = report.links.iter().map(|link| link.stats.out_packets).sum();
    assert!((976..1221).contains(&out), "{out}");
}

/// Two cells of two bridges, joined by a link: their stations' decisions are the same for any number of
/// workers.
#[test]
fn the_trace_does_not_depend_on_the_number_of_workers() {
    let text = |workers: u32| {
        let mut text = format!("seed = 5\n[engine]\nworkers = {workers}\n");
        text += "[[medium]]\nname = \"m0\"\nkind = \"dcf\"\nattempts = 2\nwindow = 4\n";
        text += "[[medium]]\nname = \"m1\"\nkind = \"csma-cd\"\n[[medium]]\nname = \"m2\"\n\
            kind = \"half-duplex\"\n";
        text += "[[bridge]]\nname = \"b0\"\n[[bridge]]\nname = \"b1\"\n";
        text += "[[link]]\nname = \"trunk\"\nbetween = [\"b0\", \"b1\"]\nmedium = \"m2\"\ndelay = \"2 ms\"\n";
        for port in 0..8 {
            let side = port % 2;
            text += &format!(
                "[[port]]\nname = \"p{port}\"\ndriver = \"source\"\nbridge = \"b{side}\"\n\
                 addresses = \"10.0.0.{}/32\"\n\
                 [[link]]\nname = \"l{port}\"\nfrom = \"p{port}\"\nto = \"b{side}\"\nmedium = \"m{side}\"\n\
                 delay = \"{} us\"\nqueue = \"5 packets\"\n",
                port + 1,
                [0, 200][port / 2 % 2],
            );
        }
        for port in 0..8 {
            text += &format!(
                "[[source]]\nname = \"s{port}\"\nfrom = \"p{port}\"\nto = \"p{}\"\nmodel = \"poisson\"\n\
                 rate = \"{} kbit/s\"\nsize = \"400 B\"\nfor = \"1 s\"\n",
                (port + 3) % 8,
                [250, 3000][port % 2],
            );
        }
        text
    };
    let traces = [1, 2, 3].map(|workers| {
        let plan = plan_of(&text(workers));
        let (trace, report) = run(&plan, TO_THE_END);
        let links: Vec<_> = report.links.iter().map(|link| link.stats.clone()).collect();
        (trace, links)
    });
    assert!(traces[0].0.len() > 1000, "{}", traces[0].0.len());
    let given_up = |link: &longwire_link::LinkStats| {
        link.drops.iter().any(|(reason, _)| *reason == DropReason::Collisions.name())
    };
    assert!(traces[0].1.iter().any(given_up), "some collide too often");
    assert!(traces[0] == traces[1] && traces[0] == traces[2]);
}

/// 1000 bytes at 8 Mbit/s need a millisecond. At 2.25 ms three quarters of the third are left, and are sent
/// at 4 Mbit/s; the fourth and the fifth at the rates of a ramp to 8 Mbit/s.
#[test]
fn the_rate_of_a_medium_changes_at_its_time() {
    let text = |workers: u32| {
        let mut text = format!("[engine]\nworkers = {workers}\n");
        text += "[[medium]]\nname = \"m\"\nkind = \"half-duplex\"\nrate = \"8 Mbit/s\"\nframing = \"ip\"\n";
        for (place, name) in ["a", "b", "c", "d"].iter().enumerate() {
            text += &format!(
                "[[port]]\nname = \"{name}\"\ndriver = \"source\"\naddresses = \"10.0.0.{}/32\"\n",
                place + 1
            );
        }
        for (from, to) in [("a", "b"), ("c", "d")] {
            text += &format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\nmedium = \"m\"\n");
            text += &format!(
                "[[source]]\nfrom = \"{from}\"\nto = \"{to}\"\nsize = \"1014 B\"\ninterval = \"100 us\"\n\
                 packets = 3\n"
            );
        }
        text + "[[at]]\ntime = \"2250 us\"\nmedium = \"m\"\nrate = \"4 Mbit/s\"\n\
                [[at]]\ntime = \"4 ms\"\nmedium = \"m\"\nrate = \"8 Mbit/s\"\nramp = \"1 ms\"\n\
                step = \"500 us\"\n"
    };
    let traces = [1, 2, 3].map(|workers| {
        let plan = plan_of(&text(workers));
        assert_eq!(plan.events[0].describe(&plan), "m: rate 4 Mbit/s");
        run(&plan, TO_THE_END).0
    });
    let times: Vec<_> = traces[0].iter().map(|(leave, ..)| *leave / 1000).collect();
    // 0.75 ms · 8/4 = 1.5 ms until 3.75. Until 4 ms 1000 bits of the next are sent, until 4.5 ms 2000, until
    // 5 ms 3000 (6 Mbit/s); 2000 more at 8 Mbit/s take 0.25 ms, and the last two a millisecond each.
    assert_eq!(times, [1000, 2000, 3750, 5250, 6250, 7250]);
    assert!(traces[0] == traces[1] && traces[0] == traces[2]);
}

const PORTS: &str =
    "[[port]]\nname = \"a\"\ndriver = \"memory\"\n[[port]]\nname = \"b\"\ndriver = \"memory\"\n";

#[test]
fn mistakes_are_reported() {
    let link = "[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nmedium = \"m\"\n";
    let medium = "[[medium]]\nname = \"m\"\nkind = \"dcf\"\n";
    for (text, wanted) in [
        (link.to_string(), "there is no medium \"m\""),
        (medium.to_string(), "0 links share it"),
        (format!("{link}rate = \"1 Mbit/s\"\n{medium}"), "its medium decides its rate"),
        (format!("{link}{medium}{medium}"), "two media named \"m\""),
        (format!("{link}[[medium]]\nname = \"m\"\nkind = \"dfc\"\n"), "did you mean \"dcf\"?"),
        (format!("{link}{medium}profile = \"802.11x\"\n"), "there are fhss, 802.11b"),
        (format!("{link}{medium}propogation = \"1 us\"\n"), "did you mean \"propagation\"?"),
        (format!("{link}{medium}slot = \"0 us\"\n"), "a slot takes no time"),
        (format!("{link}{medium}rate = \"unlimited\"\n"), "can't be shared"),
        (
            format!("{link}[[medium]]\nname = \"m\"\nkind = \"csma-cd\"\nsifs = \"1 us\"\n"),
            "no parameter \"sifs\"",
        ),
        (
            format!("{link}{medium}[[at]]\ntime = \"1 s\"\nlink = \"l\"\nrate = \"1 Mbit/s\"\n"),
            "write medium = \"m\" instead of the link",
        ),
        (
            format!("{link}{medium}[[at]]\ntime = \"1 s\"\nmedium = \"n\"\nrate = \"1 Mbit/s\"\n"),
            "there is no medium \"n\"",
        ),
        (format!("{link}{medium}[[at]]\ntime = \"1 s\"\nmedium = \"m\"\nrate = \"0\"\n"), "can't be shared"),
        (
            format!("{link}{medium}[[at]]\ntime = \"1 s\"\nmedium = \"m\"\nframing = \"ip\"\n"),
            "medium (dcf) has no parameter \"framing\"; there are rate, slot",
        ),
        (
            format!("{link}{medium}[[at]]\ntime = \"1 s\"\nmedium = \"m\"\n"),
            "add settings of a medium, such as",
        ),
        (
            format!(
                "{link}{medium}[[at]]\ntime = \"1 s\"\nmedium = \"m\"\nrate = \"2 Mbit/s\"\nramp = \"2 s\"\n\
                 [[at]]\ntime = \"2 s\"\nmedium = \"m\"\nrate = \"3 Mbit/s\"\n"
            ),
            "is still changing rate",
        ),
    ] {
        let error = parse("mistakes.toml", &format!("{PORTS}{text}")).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}\ndoes not say: {wanted}");
    }
}

/// A shared rate is priced once, but every queue is.
#[test]
fn a_medium_is_priced_once() {
    let plan = |stations: u32| {
        let mut text = String::from(
            "[[medium]]\nname = \"m\"\nkind = \"half-duplex\"\nrate = \"12.112 Mbit/s\"\n[[bridge]]\n\
             name = \"x\"\n",
        );
        for n in 0..=stations {
            text += &format!("[[port]]\nname = \"p{n}\"\ndriver = \"memory\"\nbridge = \"x\"\n");
        }
        for n in 0..stations {
            text +=
                &format!("[[link]]\nfrom = \"p{n}\"\nto = \"x\"\nmedium = \"m\"\nqueue = \"100 packets\"\n");
        }
        plan_of(&text)
    };
    let [one, ten] = [1, 10].map(|stations| price(&plan(stations), &Calibration::default()));
    assert_eq!((one.demand, ten.demand), (Some(1000), Some(1000)));
    assert_eq!(ten.queues.unwrap().0, 10 * one.queues.unwrap().0);
}
