//! Section `[[at]]`: its plan, and changes that happen at their nanosecond without loss.

use crate::support::{PacketView, count, memory_ports, simulate};
use longwire_assemble::TO_THE_END;
use longwire_block::change::Ramp;
use longwire_block::{Spec, Stamp, Values};
use longwire_engine::Report;
use longwire_scenario::{Plan, parse};
use longwire_units::Nanos;

/// Two ports and one link from the first to the second; `text` has the link's blocks and the events.
fn plan(text: &str) -> Result<Plan, String> {
    let ports = "[[port]]\nname = \"a\"\ndriver = \"memory\"\naddresses = \"10.0.0.1/32\"\n\
        [[port]]\nname = \"b\"\ndriver = \"memory\"\naddresses = \"10.0.0.2/32\"\n\
        [[link]]\nname = \"up\"\nfrom = \"a\"\nto = \"b\"\nframing = \"ip\"\n";
    parse("events.toml", &format!("{ports}{text}")).map_err(|error| error.to_string())
}

/// An IPv4 frame of 1014 bytes, so that its packet is 8000 bits long, from a to b.
fn frame(plan: &Plan, number: u8) -> Vec<u8> {
    let mut frame = crate::support::frame(plan, 0, 1, 1014);
    frame[20] = number;
    frame
}

/// Departure times (µs) and numbers of frames that arrive at `arrivals` (µs).
fn leaves(text: &str, arrivals: &[u64]) -> (Vec<(u64, u8)>, Report) {
    let plan = plan(text).unwrap_or_else(|error| panic!("{error}"));
    let (ports, mut ends) = memory_ports(&plan, Stamp::Source);
    // The bridge learns b's port before the run's first event.
    let mut greeting = crate::support::frame(&plan, 1, 0, 1014);
    greeting[20] = 255;
    assert!(ends[1].push_at(Nanos::ZERO, &greeting));
    for (number, &at) in arrivals.iter().enumerate() {
        assert!(ends[0].push_at(Nanos::from_micros(at), &frame(&plan, number as u8)));
    }
    let look = |view: &PacketView<'_>| view.left.then(|| (view.time / 1000, view.frame[20]));
    let (mut left, report) = simulate(&plan, ports, TO_THE_END, look);
    left.retain(|(_, number)| *number != 255);
    (left, report)
}

#[test]
fn a_rate_applies_to_every_bit_not_yet_sent() {
    // 8000 bits at 8 Mbit/s take 1 ms. At 1.5 ms half of the second one is sent; the rest takes 5 ms at 0.8
    // Mbit/s, and the third 10 ms.
    let text = "rate = \"8 Mbit/s\"\n[[at]]\ntime = \"1500 us\"\nlink = \"up\"\nrate = \"800 kbit/s\"\n";
    assert_eq!(leaves(text, &[0, 0, 0]).0, [(1000, 0), (6500, 1), (16_500, 2)]);
}

#[test]
fn an_event_comes_before_arrivals_at_its_time() {
    let text = "delay = \"5 ms\"\n[[at]]\ntime = \"2 ms\"\nlink = \"up\"\ndelay = \"9 ms\"\n";
    assert_eq!(leaves(text, &[1999, 2000]).0, [(6999, 0), (11_000, 1)]);
    // A smaller delay does not allow overtaking.
    let text = "delay = \"9 ms\"\n[[at]]\ntime = \"2 ms\"\nlink = \"up\"\ndelay = \"5 ms\"\n";
    assert_eq!(leaves(text, &[1999, 2000, 9000]).0, [(10_999, 0), (10_999, 1), (14_000, 2)]);
}

#[test]
fn an_outage_holds_packets_until_it_ends() {
    let text = "rate = \"8 Mbit/s\"\n[[at]]\ntime = \"500 us\"\nlink = \"up\"\nrate = \"0\"\n\
        [[at]]\ntime = \"1 s\"\nlink = \"up\"\nrate = \"8 Mbit/s\"\n";
    assert_eq!(leaves(text, &[0, 100]).0, [(1_000_500, 0), (1_001_500, 1)]);
    // An outage without end is not waited for, whatever other changes repeat.
    let text = "rate = \"8 Mbit/s\"\n[[at]]\ntime = \"500 us\"\nlink = \"up\"\nrate = \"0\"\n\
        [[at]]\ntime = \"1 s\"\nlink = \"up\"\nevery = \"1 ms\"\nloss = \"1 %\"\n";
    let (left, report) = leaves(text, &[0, 100]);
    assert!(left.is_empty() && report.flow.taken == 3, "{left:?}");
    // A repeating event may end it too, however late it begins.
    let text = "rate = \"8 Mbit/s\"\n[[at]]\ntime = \"500 us\"\nlink = \"up\"\nrate = \"0\"\n\
        [[at]]\ntime = \"1 s\"\nlink = \"up\"\nevery = \"5 ms\"\nrate = \"8 Mbit/s\"\n";
    assert_eq!(leaves(text, &[0, 100]).0, [(1_000_500, 0), (1_001_500, 1)]);
}

/// 1 ms of transmission, of which 100 µs pass before the outage, and 10 µs every 100 ms: after 90 of these it
/// is sent, at the end of the last.
#[test]
fn what_an_outage_interrupts_again_and_again_is_sent_in_the_end() {
    let text = "rate = \"8 Mbit/s\"\n[[at]]\ntime = \"100 us\"\nlink = \"up\"\nevery = \"100 ms\"\n\
        rate = \"0\"\n\
        [[at]]\ntime = \"90 us\"\nlink = \"up\"\nevery = \"100 ms\"\nrate = \"8 Mbit/s\"\n";
    assert_eq!(leaves(text, &[0]).0, [(9_000_100, 0)]);
}

#[test]
fn a_ramp_moves_in_exact_steps() {
    // From 10 to 20 ms over 10 ms in steps of 2 ms: 12 ms of delay from 2 ms on, and so on; then 20.
    let text = "delay = \"10 ms\"\n[[at]]\ntime = \"0 ms\"\nlink = \"up\"\nramp = \"10 ms\"\n\
        step = \"2 ms\"\ndelay = \"20 ms\"\n";
    let arrivals = [0, 1999, 2000, 4000, 9999, 10_000, 50_000];
    let delays = [10_000, 10_000, 12_000, 14_000, 18_000, 20_000, 20_000];
    let wanted: Vec<_> = (0..).zip(arrivals).zip(delays).map(|((n, at), delay)| (at + delay, n)).collect();
    assert_eq!(leaves(text, &arrivals).0, wanted);
    assert_eq!(Ramp::new(Nanos::from_secs(20)).steps(), 200);
    assert_eq!(Ramp::new(Nanos::from_secs(1)).steps(), 50);
}

#[test]
fn repetitions_come_as_often_as_they_say() {
    let text = "[[at]]\ntime = \"1 ms\"\nlink = \"up\"\nevery = \"2 ms\"\ntimes = 2\ndelay = \"7 ms\"\n\
        [[at]]\ntime = \"2 ms\"\nlink = \"up\"\nevery = \"2 ms\"\ntimes = 2\ndelay = \"7 us\"\n";
    let arrivals = [500, 10_000, 12_000];
    assert_eq!(leaves(text, &arrivals).0, [(500, 0), (10_007, 1), (12_007, 2)]);
}

#[test]
fn what_waits_stays_in_its_order_whatever_changes() {
    // 40 packets of 1 ms each wait; the limit falls below them, then they move through other disciplines.
    let registry = longwire_link::registry();
    let whole = |spec: &&&Spec| spec.key == "queue" && Values::read(spec, &[]).is_ok();
    let kinds: Vec<_> = registry.iter().filter(whole).map(|spec| spec.kind).chain(["tail-drop"]).collect();
    let mut text = String::from("rate = \"8 Mbit/s\"\nqueue = \"100 packets\"\n");
    text += "[[at]]\ntime = \"1 ms\"\nlink = \"up\"\nqueue = \"5 packets\"\n";
    for (place, kind) in kinds.iter().enumerate() {
        text += &format!(
            "[[at]]\ntime = \"{} us\"\nlink = \"up\"\nqueue = {{ kind = \"{kind}\" }}\n",
            2300 + place * 700
        );
    }
    text += "[[at]]\ntime = \"20 ms\"\nlink = \"up\"\nrate = \"80 Mbit/s\"\n";
    let (left, report) = leaves(&text, &[0; 40]);
    let numbers: Vec<_> = left.iter().map(|(_, number)| *number).collect();
    let dropped: u64 = report.links[0].stats.dropped();
    assert!(numbers.is_sorted(), "{numbers:?}");
    assert_eq!(numbers.len() as u64 + dropped, 40);
    // CoDel and PIE may drop by their own law, but not for lack of room.
    let full = report.links[0].stats.drops.iter().any(|(reason, _)| *reason == "queue-full");
    assert!(!full, "{:?}", report.links[0].stats.drops);
}

#[test]
fn the_plan_says_what_changes() {
    let text = "rate = \"8 Mbit/s\"\n[[at]]\ntime = \"4 s\"\nlink = \"up\"\nramp = \"5 s\"\n\
        rate = \"1 Mbit/s\"\nloss = \"2 %\"\n\
        every = \"10 s\"\ntimes = 3\n";
    let plan = plan(text).unwrap();
    let said = plan.events[0].describe(&plan);
    assert_eq!(said, "up: loss 2 %, rate 1 Mbit/s, over 5 s in 50 steps, every 10 s (3 times)");
    let next = |at| plan.events[0].next_after(Nanos::from_secs(at)).map(|time| time.0 / 1_000_000_000);
    assert_eq!([next(0), next(4), next(14), next(24)], [Some(4), Some(14), Some(24), None]);
}

#[test]
fn mistakes_are_named_with_their_fix() {
    let at = "[[at]]\ntime = \"1 s\"\nlink = \"up\"\n";
    let table = [
        ("[[at]]\ntime = \"1 s\"\nlink = \"uq\"\nrate = \"0\"\n".to_string(), "did you mean \"up\"?"),
        (format!("{at}rat = \"0\"\n"), "did you mean \"rate\"?"),
        (
            format!("{at}burst = \"5\"\n"),
            "it belongs to loss, queue or rate: write rate = { burst = \"…\" }, for example",
        ),
        (format!("{at}jitter = \"5 ms\"\n"), "it belongs to delay: write delay = { jitter = \"…\" }"),
        (at.to_string(), "nothing changes"),
        (format!("{at}rate = \"fast\"\n"), "at \"1 s\", rate"),
        ("[[at]]\nlink = \"up\"\nrate = \"0\"\n".to_string(), "add time = \"12 s\""),
        ("[[at]]\ntime = \"1 s\"\nrate = \"0\"\n".to_string(), "it names no link"),
        (format!("{at}rate = \"0\"\nstep = \"1 s\"\n"), "step has no meaning without ramp"),
        (format!("{at}rate = \"0\"\ntimes = 2\n"), "times has no meaning without every"),
        (format!("{at}rate = \"0\"\nevery = \"999 us\"\n"), "write every = \"1 ms\" or more"),
        (format!("{at}rate = \"0\"\nevery = \"1 ns\"\ntimes = 1001\n"), "leave no time for packets"),
        (format!("{at}rate = \"0\"\nramp = \"0 s\"\n"), "a time of 1 ns or more"),
        (format!("{at}rate = \"1 kbit/s\"\nramp = \"1 s\"\n"), "no ramp from \"unlimited\" to \"1 kbit/s\""),
        (format!("{at}queue = \"9 packets\"\nramp = \"1 s\"\n"), "queue has no ramp"),
        (format!("{at}delay = \"9 ms\"\nramp = \"2 s\"\nstep = \"1 us\"\n"), "write step = \"2 us\" or more"),
        (
            format!(
                "{at}delay = {{ kind = \"jitter\", delay = \"9 ms\", jitter = \"1 ms\" }}\nramp = \"1 s\"\n"
            ),
            "of another kind",
        ),
        (
            format!(
                "{at}delay = \"9 ms\"\nramp = \"2 s\"\n[[at]]\ntime = \"2 s\"\nlink = \"up\"\n\
                 delay = \"1 ms\"\n"
            ),
            "begin at 3 s or later",
        ),
        (format!("{at}delay = \"9 ms\"\nramp = \"2 s\"\nevery = \"1 s\"\n"), "is still changing delay"),
    ];
    for (text, wanted) in table {
        let error = plan(&text).unwrap_err();
        assert!(error.contains(wanted), "{text}\n{error}");
    }
}

#[test]
fn packets_are_steered_only_where_a_way_was_planned() {
    let other = "[[link]]\nname = \"other\"\nfrom = \"a\"\nto = \"b\"\nframing = \"ip\"\n";
    let at = "[[at]]\ntime = \"1 ms\"\nlink = \"up\"\nfilter = \"steer other if greater 1000\"\n";
    let error =
        plan(&format!("{other}match = [{{ source = \"10.0.0.9\", destination = \"10.0.0.2\" }}]\n{at}"));
    let error = error.unwrap_err();
    assert!(
        error.contains("its filter steers to \"other\", where the link's own filter does not"),
        "{error}"
    );
    // With the path planned: 1 ms over the link itself, and nothing over the other one from the change on.
    let text = format!("rate = \"8 Mbit/s\"\nfilter = \"steer other if less 100\"\n{other}{at}");
    assert_eq!(leaves(&text, &[0, 2000]).0, [(1000, 0), (2000, 1)]);
}

/// A filter's rules are removed, and a single word for a kind selects another queue, in links and in events
/// alike.
#[test]
fn no_rules_and_bare_kinds() {
    let text = |changes: &str| {
        format!(
            "[[port]]\nname = \"a\"\ndriver = \"source\"\naddresses = \"10.0.0.1\"\n\
             [[port]]\nname = \"b\"\ndriver = \"source\"\naddresses = \"10.0.0.2\"\n\
             [[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\nrate = \"8 Mbit/s\"\nqueue = \"codel\"\n\
             filter = \"drop if udp\"\n\
             [[source]]\nfrom = \"a\"\nto = \"b\"\ninterval = \"10 ms\"\npackets = 4\n{changes}"
        )
    };
    let read = |changes: &str| parse("kinds.toml", &text(changes)).map_err(|e| e.to_string());
    let plan = read("[[at]]\ntime = \"15 ms\"\nlink = \"l\"\nfilter = []\nqueue = \"fq-codel\"\n").unwrap();
    let kinds: Vec<_> = plan.profiles[0].blocks.iter().map(|(spec, _)| spec.kind).collect();
    assert!(kinds.contains(&"codel"), "{kinds:?}");
    assert!(plan.events[0].describe(&plan).contains("filter none"), "{}", plan.events[0].describe(&plan));
    let report = count(&plan, TO_THE_END);
    let link = &report.links[0];
    assert_eq!((link.stats.out_packets, link.stats.dropped()), (2, 2));
    let changed = link.changed.as_ref().unwrap();
    assert!(changed.iter().any(|(spec, _)| spec.kind == "fq-codel"));
    // Required parameters of a kind must be given; a word that is neither a value nor a kind is still an
    // error.
    assert!(
        read("[[at]]\ntime = \"1 s\"\nlink = \"l\"\nloss = \"gilbert-elliott\"\n")
            .unwrap_err()
            .contains("needs \"p\"")
    );
    assert!(
        read("[[at]]\ntime = \"1 s\"\nlink = \"l\"\nqueue = \"codle\"\n")
            .unwrap_err()
            .contains("\"codle\" is not a limit")
    );
}

/// An optional block is removed at run time and added again. Departures among two packets before, two without
/// it, and two afterwards.
#[test]
fn what_a_link_can_be_without_is_removed() {
    let cases = [
        ("loss", "\"100 %\"", vec![2, 3]),
        ("loss", "{ kind = \"independent\", probability = \"100 %\", where = \"wire\" }", vec![2, 3]),
        ("loss", "{ kind = \"pattern\", every = 1 }", vec![2, 3]),
        ("mtu", "500", vec![2, 3]),
        ("bit-error", "{ kind = \"rate\", rate = \"0.1\" }", vec![2, 3]),
        // Each twice, except without the block.
        ("duplicate", "\"100 %\"", vec![0, 0, 1, 1, 2, 3, 4, 4, 5, 5]),
        // Ahead of the previous packet, which is delayed by 5 ms, except without the block.
        ("reorder", "\"100 %\"", vec![0, 1, 2, 3, 4, 5]),
    ];
    for (key, value, leaving) in cases {
        for none in ["[]", "\"none\"", "\"\"", "{ kind = \"none\" }"] {
            let at =
                |time, value: &str| format!("[[at]]\ntime = \"{time} ms\"\nlink = \"up\"\n{key} = {value}\n");
            let text = format!("{key} = {value}\ndelay = \"5 ms\"\n{}{}", at(15, none), at(35, value));
            let (left, report) = leaves(&text, &[0, 10_000, 20_000, 30_000, 40_000, 50_000]);
            let numbers: Vec<u8> = left.iter().map(|(_, number)| *number).collect();
            assert_eq!(numbers, leaving, "{key} = {value}, then {none}");
            let stats = &report.links[0].stats;
            assert_eq!((stats.in_packets, stats.out_packets), (6, leaving.len() as u64), "{key}: {stats:?}");
            assert_eq!(6 + stats.made_packets, stats.out_packets + stats.dropped(), "{key}: {stats:?}");
        }
    }
    let reorder =
        "reorder = \"100 %\"\ndelay = \"5 ms\"\n[[at]]\ntime = \"15 ms\"\nlink = \"up\"\nreorder = []\n";
    // With it, a packet that may overtake has no delay; without it, it has the delay.
    assert_eq!(leaves(reorder, &[10_000, 20_000]).0, [(10_000, 0), (25_000, 1)]);
}

/// 8 Mbit/s of background traffic fill the link: without it packets of 1 ms leave after 1 ms, and all
/// background packets are counted.
#[test]
fn background_traffic_is_removed() {
    let text = "rate = \"8 Mbit/s\"\nqueue = \"100 packets\"\n\
        background = { kind = \"cbr\", rate = \"16 Mbit/s\" }\n\
        [[at]]\ntime = \"20 ms\"\nlink = \"up\"\nbackground = []\n[[at]]\ntime = \"100 ms\"\nlink = \"up\"\n\
        background = \"16 Mbit/s\"\n\
        [[at]]\ntime = \"120 ms\"\nlink = \"up\"\nbackground = []\n";
    let (left, report) = leaves(text, &[60_000, 110_000, 200_000]);
    let [(first, 0), (second, 1), (third, 2)] = left[..] else { panic!("{left:?}") };
    assert_eq!((first, third), (61_000, 201_000));
    assert!(second > 115_000, "about ten packets wait before it: {second}");
    let stats = &report.links[0].stats;
    // 20 ms of 16 Mbit/s are 40 packets of 1000 bytes, twice; each is sent, which no trace shows, or dropped.
    assert!((78..=84).contains(&stats.made_packets), "{stats:?}");
    assert_eq!(stats.out_packets, 3, "{stats:?}");
}

/// Blocks from a profile can be removed from a link; rate, delay and queue are always present.
#[test]
fn none_is_a_value_of_a_link() {
    let without = plan("profile = \"wifi-lossy\"\nloss = []\n").unwrap();
    let keys: Vec<_> = without.profiles[0].blocks.iter().map(|(spec, _)| spec.key).collect();
    assert!(!keys.contains(&"loss") && keys.contains(&"rate"), "{keys:?}");
    let removal = plan("loss = \"1 %\"\n[[at]]\ntime = \"1 s\"\nlink = \"up\"\nloss = []\n").unwrap();
    assert_eq!(removal.events[0].describe(&removal), "up: loss none");
    for (key, value) in
        [("loss", "\"1 %\""), ("mtu", "1400"), ("filter", "\"drop if udp\""), ("duplicate", "\"1 %\"")]
    {
        for none in ["[]", "\"none\"", "\"\"", "{ kind = \"none\" }"] {
            let text = format!("{key} = {value}\n[[at]]\ntime = \"1 s\"\nlink = \"up\"\n{key} = {none}\n");
            let removal = plan(&text).unwrap();
            assert_eq!(removal.events[0].describe(&removal), format!("up: {key} none"), "{text}");
            assert!(
                plan(&format!("{key} = {none}\n")).unwrap().profiles[0]
                    .blocks
                    .iter()
                    .all(|(spec, _)| spec.key != key)
            );
        }
    }
    // The fix in the message about a ramp works.
    let ramped = "loss = \"1 %\"\n[[at]]\ntime = \"1 s\"\nlink = \"up\"\nloss = \"0 %\"\nramp = \"1 s\"\n\
        [[at]]\ntime = \"2 s\"\nlink = \"up\"\nloss = []\n";
    plan(ramped).unwrap();
    for (text, wanted) in [
        ("rate = []\n", "a link always has a rate: write \"unlimited\""),
        ("queue = \"codell\"\n", "did you mean the kind \"codel\"?"),
        ("queue = \"nonsense\"\n", "it is not a kind either; there are tail-drop, head-drop, red"),
        (
            "loss = { kind = \"none\", probability = \"1 %\" }\n",
            "\"none\" removes loss with all its parameters",
        ),
        ("[[at]]\ntime = \"1 s\"\nlink = \"up\"\nqueue = \"codell\"\n", "did you mean the kind \"codel\"?"),
        (
            "loss = \"1 %\"\n[[at]]\ntime = \"1 s\"\nlink = \"up\"\nloss = []\nramp = \"1 s\"\n",
            "= ramp to loss = \"0 %\", and write loss = [] without ramp in an entry for when that has ended",
        ),
        (
            "mtu = 1400\n[[at]]\ntime = \"1 s\"\nlink = \"up\"\nmtu = \"none\"\nramp = \"1 s\"\n",
            "= write mtu = [] without ramp, in an entry of its own",
        ),
    ] {
        let error = plan(text).unwrap_err();
        assert!(error.contains(wanted), "{text}\n{error}");
    }
}
