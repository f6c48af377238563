//! Section `[[at]]` of traffic sources: frames come at their exact nanosecond, whatever the number of
//! workers.

use crate::support::{PacketView, simulate, source_ports};
use longwire_assemble::TO_THE_END;
use longwire_engine::Report;
use longwire_scenario::{Plan, parse};

/// A departure: port, time (ns), and bytes.
type Departure = (u16, u64, usize);

/// Two networks of two ports each, so that two workers have ports; `text` has the sources and events.
fn plan(text: &str, workers: u32) -> Result<Plan, String> {
    let mut all = String::from(text);
    for (place, name) in ["a", "b", "c", "d"].iter().enumerate() {
        all += &format!(
            "\n[[port]]\nname = \"{name}\"\ndriver = \"source\"\nbridge = \"{}\"\n\
             addresses = [\"10.0.0.{}/32\"]\n",
            if place < 2 { "left" } else { "right" },
            place + 1
        );
    }
    all += "[[bridge]]\nname = \"left\"\n[[bridge]]\nname = \"right\"\n";
    all += "[[link]]\nname = \"ab\"\nfrom = \"a\"\nto = \"b\"\ndelay = \"5 ms\"\n";
    all += "[[link]]\nname = \"cd\"\nfrom = \"c\"\nto = \"d\"\ndelay = \"7 ms\"\n";
    all += &format!("[engine]\nworkers = {workers}\npool = \"8 MiB\"\n");
    parse("sources.toml", &all).map_err(|error| error.to_string())
}

fn run(text: &str, workers: u32) -> (Vec<Departure>, Report) {
    let plan = plan(text, workers).unwrap_or_else(|error| panic!("{error}"));
    let look = |view: &PacketView<'_>| view.left.then_some((view.meta.out_port, view.time, view.frame.len()));
    let (mut seen, report) = simulate(&plan, source_ports(&plan), TO_THE_END, look);
    seen.sort_by_key(|&(port, ..)| port);
    (seen, report)
}

/// Arrival times (µs) and lengths of the frames of `text`'s sources: those from a, then those from c; checked
/// to be the same with one worker and with two.
fn comes(text: &str) -> [Vec<(u64, usize)>; 2] {
    let (one, report) = run(text, 1);
    for workers in [2, 3] {
        let (other, others) = run(text, workers);
        assert_eq!(one, other, "{workers} workers");
        assert_eq!(report.flow.taken, others.flow.taken);
    }
    [(1, 5_000_000), (3, 7_000_000)].map(|(port, delay)| {
        let own = one.iter().filter(|(out, ..)| *out == port);
        own.map(|&(_, leave, bytes)| ((leave - delay) / 1000, bytes)).collect()
    })
}

/// 1000 bytes at 8 Mbit/s: a frame a millisecond.
const SOURCE: &str = "[[source]]\nname = \"s\"\nfrom = \"a\"\nto = \"b\"\nrate = \"8 Mbit/s\"\n";

fn times(frames: &[(u64, usize)]) -> Vec<u64> {
    frames.iter().map(|(time, _)| *time).collect()
}

#[test]
fn a_rate_that_doubles_halves_what_is_left_of_a_gap() {
    // At 2.5 ms half of a gap has passed; half of the new one, 0.25 ms, remains.
    let text =
        format!("{SOURCE}packets = 7\n[[at]]\ntime = \"2500 us\"\nsource = \"s\"\nrate = \"16 Mbit/s\"\n");
    assert_eq!(times(&comes(&text)[0]), [0, 1000, 2000, 2750, 3250, 3750, 4250]);
    // At the exact time of a frame: it comes, and the next half a millisecond later.
    let text =
        format!("{SOURCE}packets = 1003\n[[at]]\ntime = \"1 s\"\nsource = \"s\"\nrate = \"16 Mbit/s\"\n");
    let all = times(&comes(&text)[0]);
    assert_eq!(all[998..], [998_000, 999_000, 1_000_000, 1_000_500, 1_001_000]);
}

#[test]
fn sources_at_ports_of_two_workers_change_each_at_its_time() {
    // On the right 500 bytes at 4 Mbit/s: also a frame per millisecond. At 3 ms both change.
    let text = format!(
        "{SOURCE}packets = 6\n[[source]]\nname = \"t\"\nfrom = \"c\"\nto = \"d\"\nsize = \"500 B\"\n\
         rate = \"4 Mbit/s\"\npackets = 6\n\
         [[at]]\ntime = \"1500 us\"\nsource = \"t\"\nsize = \"250 B\"\n\
         [[at]]\ntime = \"3 ms\"\nsource = [\"s\", \"t\"]\nrate = \"2 Mbit/s\"\n"
    );
    let [left, right] = comes(&text);
    assert_eq!(left, [0, 1000, 2000, 3000, 7000, 11_000].map(|at| (at, 1000)));
    // A gap of 250 bytes at 4 Mbit/s is 0.5 ms long; at 1.5 ms and at 3 ms half of one is left, which is 0.5
    // ms at 2 Mbit/s.
    let wanted = [(0, 500), (1000, 500), (1750, 250), (2250, 250), (2750, 250), (3500, 250)];
    assert_eq!(right, wanted);
}

#[test]
fn a_ramp_of_a_rate_moves_in_exact_steps() {
    // 8, then 12 Mbit/s from 2 ms on, then 16 from 4 ms on: 3 frames in the 2 ms between.
    let text = format!(
        "{SOURCE}packets = 8\n[[at]]\ntime = \"0 ms\"\nsource = \"s\"\nramp = \"4 ms\"\nstep = \"2 ms\"\n\
         rate = \"16 Mbit/s\"\n"
    );
    assert_eq!(times(&comes(&text)[0]), [0, 1000, 2000, 2666, 3333, 4000, 4500, 5000]);
}

#[test]
fn another_model_begins_anew_and_sends_again_where_nothing_was_left() {
    // The capture ends at 3.5 ms; only the events are left.
    let text = format!(
        "{SOURCE}packets = 8\n[[at]]\ntime = \"2500 us\"\nsource = \"s\"\nmodel = \"replay\"\n\
         file = \"0 ms 500 B, 1 ms 300 B\"\n\
         [[at]]\ntime = \"10 ms\"\nsource = \"s\"\nmodel = \"cbr\"\nsize = \"100 B\"\nrate = \"800 kbit/s\"\n"
    );
    let wanted = [
        (0, 1000),
        (1000, 1000),
        (2000, 1000),
        (2500, 500),
        (3500, 300),
        (10_000, 100),
        (11_000, 100),
        (12_000, 100),
    ];
    assert_eq!(comes(&text)[0], wanted);
    // A repeating event does not keep a run alive whose sources have ended.
    let text = format!(
        "{SOURCE}packets = 3\n[[at]]\ntime = \"5 ms\"\nevery = \"1 ms\"\nsource = \"s\"\n\
         rate = \"1 Mbit/s\"\n"
    );
    assert_eq!(times(&comes(&text)[0]), [0, 1000, 2000]);
}

#[test]
fn repetitions_come_as_often_as_they_say() {
    // 1 ms apart until 2.5 ms, then slow (10 ms) and fast in turns of 2 ms: a quarter of a gap in each slow
    // part.
    let text = format!(
        "{SOURCE}packets = 7\n\
         [[at]]\ntime = \"2 ms\"\nevery = \"4 ms\"\ntimes = 2\nsource = \"s\"\nrate = \"1 Mbit/s\"\n\
         [[at]]\ntime = \"4 ms\"\nevery = \"4 ms\"\ntimes = 2\nsource = \"s\"\nrate = \"8 Mbit/s\"\n"
    );
    // A quarter of a gap from 2 to 4 ms, a whole one and the three quarters before it until 5.75; a quarter
    // again until 6 ms, then a quarter until 8 ms, and half of one is left.
    assert_eq!(times(&comes(&text)[0]), [0, 1000, 2000, 4750, 5750, 8500, 9500]);
}

#[test]
fn a_source_pauses_and_goes_on() {
    // At 2.25 ms a quarter of a gap has passed; the rest of it, 0.75 ms, passes when the rate comes back.
    let at = |time: &str, what: &str| format!("[[at]]\ntime = \"{time}\"\nsource = \"s\"\n{what}\n");
    let wanted = [0, 1000, 2000, 10_750, 11_750];
    for (pause, resume) in [("rate = \"0\"", "rate = \"8 Mbit/s\""), ("state = \"down\"", "state = \"up\"")] {
        let text = format!("{SOURCE}packets = 5\n{}{}", at("2250 us", pause), at("10 ms", resume));
        assert_eq!(times(&comes(&text)[0]), wanted, "{pause}");
    }
    // A source that is down at the start begins when it comes up, and a ramp from zero begins with nothing.
    let text = format!("{SOURCE}packets = 3\nstate = \"down\"\n{}", at("7500 us", "state = \"up\""));
    assert_eq!(times(&comes(&text)[0]), [7500, 8500, 9500]);
    let from_zero = SOURCE.replace("8 Mbit/s", "0");
    let ramp = at("0 ms", "rate = \"16 Mbit/s\"\nramp = \"4 ms\"\nstep = \"2 ms\"");
    // The first comes with the first bit; 8 Mbit/s from 2 ms on, 16 from 4 ms on.
    assert_eq!(times(&comes(&format!("{from_zero}packets = 5\n{ramp}"))[0]), [2000, 3000, 4000, 4500, 5000]);
}

#[test]
fn an_interval_replaces_a_rate_and_stays_when_the_size_changes() {
    let at = |time: &str, what: &str| format!("[[at]]\ntime = \"{time}\"\nsource = \"s\"\n{what}\n");
    // Half of a gap is left at 2.5 ms: 1.5 ms of 3; a smaller frame comes at the same times.
    let text = format!(
        "{SOURCE}packets = 7\n{}{}{}",
        at("2500 us", "interval = \"3 ms\""),
        at("5 ms", "size = \"500 B\""),
        at("11 ms", "rate = \"8 Mbit/s\"")
    );
    let wanted =
        [(0, 1000), (1000, 1000), (2000, 1000), (4000, 1000), (7000, 500), (10_000, 500), (11_333, 500)];
    assert_eq!(comes(&text)[0], wanted);
    // A ramp from 1 ms to 3 ms: from 2 ms on they are 2 ms apart, from 4 ms on 3 ms.
    let source = SOURCE.replace("rate = \"8 Mbit/s\"", "interval = \"1 ms\"");
    let ramp = at("0 ms", "interval = \"3 ms\"\nramp = \"4 ms\"\nstep = \"2 ms\"");
    assert_eq!(
        times(&comes(&format!("{source}packets = 6\n{ramp}"))[0]),
        [0, 1000, 2000, 4000, 7000, 10_000]
    );
}

#[test]
fn the_number_of_packets_and_the_time_to_send_can_change() {
    let at = |time: &str, what: &str| format!("[[at]]\ntime = \"{time}\"\nsource = \"s\"\n{what}\n");
    // It has ended after three: three more follow at once. Then its limit is lowered to what it has sent.
    let text = format!("{SOURCE}packets = 3\n{}", at("20 ms", "packets = 6"));
    assert_eq!(times(&comes(&text)[0]), [0, 1000, 2000, 20_000, 21_000, 22_000]);
    let text = format!("{SOURCE}packets = 30\n{}", at("2500 us", "packets = 2"));
    assert_eq!(times(&comes(&text)[0]), [0, 1000, 2000]);
    let text = format!("{SOURCE}for = \"2500 us\"\n{}", at("9 ms", "for = \"11 ms\""));
    assert_eq!(times(&comes(&text)[0]), [0, 1000, 2000, 9000, 10_000]);
    let text = format!("{SOURCE}{}", at("1500 us", "packets = \"unlimited\"\nfor = \"3 ms\""));
    assert_eq!(times(&comes(&text)[0]), [0, 1000, 2000]);
}

#[test]
fn a_source_turns_to_another_port() {
    let text = format!(
        "{SOURCE}packets = 5\n[[at]]\ntime = \"1500 us\"\nsource = \"s\"\nto = \"e\"\n\
         [[at]]\ntime = \"3 ms\"\nsource = \"s\"\nto = \"b\"\ndestination = \"10.0.0.99\"\n\
         [[port]]\nname = \"e\"\ndriver = \"source\"\nbridge = \"left\"\naddresses = [\"10.0.0.7/32\"]\n\
         [[link]]\nname = \"ae\"\nfrom = \"a\"\nto = \"e\"\ndelay = \"2 ms\"\n"
    );
    let (one, _) = run(&text, 1);
    // The fourth is due at the exact time of the change, and comes after it.
    let ports = plan(&text, 1).unwrap().ports;
    let wanted = [("e", 4000), ("b", 5000), ("b", 6000), ("b", 8000), ("b", 9000)];
    let named = |(port, leave, _): &(u16, u64, usize)| (&*ports[usize::from(*port)].name, *leave / 1000);
    let mut seen: Vec<_> = one.iter().map(named).collect();
    seen.sort_by_key(|(_, leave)| *leave);
    assert_eq!(seen, wanted);
    for workers in [2, 3] {
        assert_eq!(one, run(&text, workers).0, "{workers} workers");
    }
}

#[test]
fn the_plan_says_what_changes() {
    let at =
        |what: &str| plan(&format!("{SOURCE}[[at]]\ntime = \"4 s\"\nsource = \"s\"\n{what}\n"), 1).unwrap();
    for (what, said) in [
        (
            "to = \"b\"\npackets = 9\nstate = \"down\"",
            "s: to b, destination 10.0.0.2, packets 9 packets, state down",
        ),
        ("interval = \"2 ms\"", "s: model cbr, interval 2 ms"),
    ] {
        let plan = at(what);
        assert_eq!(plan.events[0].describe(&plan), said);
    }
    let text = format!("{SOURCE}[[at]]\ntime = \"4 s\"\nsource = \"s\"\nmodel = \"poisson\"\n");
    let plan = plan(&text, 1).unwrap();
    assert_eq!(plan.events[0].describe(&plan), "s: model poisson, rate 8 Mbit/s, size 1 kB");
}

#[test]
fn mistakes_are_named_with_their_fix() {
    let at = "[[at]]\ntime = \"1 s\"\nsource = \"s\"\n";
    let table = [
        ("[[at]]\ntime = \"1 s\"\nsource = \"z\"\nrate = \"1 Mbit/s\"\n".into(), "there is no source \"z\""),
        (at.to_string(), "add settings of a source, such as"),
        (format!("{at}delay = \"1 ms\"\n"), "there is no key \"delay\""),
        (format!("{at}on = \"1 s\"\n"), "at \"1 s\", on: the model cbr has no on"),
        (format!("{at}interval = \"0 ms\"\n"), "frames can't be 0 apart"),
        (format!("{at}interval = \"1 ms\"\nrate = \"1 Mbit/s\"\n"), "either a rate or an interval"),
        (format!("{at}model = \"mmpp\"\ninterval = \"1 ms\"\n"), "the model mmpp has no interval"),
        (format!("{at}to = \"z\"\n"), "at \"1 s\", to: there is no host or port \"z\""),
        (format!("{at}to = \"a\"\n"), "nothing leads from \"a\" to \"a\""),
        (format!("{at}to = \"c\"\n"), "nothing leads from \"a\" to \"c\""),
        (format!("{at}destination = \"fd00::1\"\n"), "another family"),
        (format!("{at}packets = 0\n"), "write a whole number, 1 or more"),
        (format!("{at}packets = \"10 ms\"\n"), "write a whole number, 1 or more"),
        (format!("{at}for = 10\n"), "write a time such as \"10 s\""),
        (format!("{at}state = \"off\"\n"), "one of up, down"),
        (
            format!("{at}packets = 5\nramp = \"1 s\"\n"),
            "packets has no ramp from \"unlimited\" to \"5 packets\"",
        ),
        (format!("{at}medium = \"m\"\nrate = \"1 Mbit/s\"\n"), "it names sources and mediums"),
        (format!("{at}rate = \"unlimited\"\n"), "a source can't send at unlimited"),
        (format!("{at}rate = \"fast\"\n"), "at \"1 s\", rate"),
        (format!("{at}size = \"20 B\"\n"), "at \"1 s\", size"),
        (format!("{at}model = \"burst\"\n"), "there is no model \"burst\""),
        (format!("{at}model = \"on-off\"\n"), "add on = \"…\""),
        (
            format!("{at}model = \"poisson\"\nramp = \"1 s\"\n"),
            "a ramp can't lead to a model of another kind",
        ),
        (format!("{at}link = \"ab\"\nrate = \"1 Mbit/s\"\n"), "it names links and sources"),
        (
            format!(
                "{at}rate = \"1 Mbit/s\"\nramp = \"2 s\"\n[[at]]\ntime = \"2 s\"\nsource = \"s\"\n\
                 rate = \"9 Mbit/s\"\n"
            ),
            "is still changing rate",
        ),
    ];
    for (text, wanted) in table {
        let error = plan(&format!("{SOURCE}{text}"), 1).unwrap_err();
        assert!(error.contains(wanted), "{text}\n{error}");
    }
}
