//! What is odd, but no mistake.

use super::{BRIDGES, HOSTS, mistakes};
use longwire_scenario::plan_of;

#[test]
fn notes_tell_what_is_odd() {
    let table = [
        ("mtu = 576", "drops packets above 576 bytes"),
        ("queue = 0", "drops everything"),
        ("queue = \"1 kB\"", "no room for one frame"),
        ("queue = \"5 ms\"", "never fills"),
        ("queue = \"5 ms\"\nrate = \"1 Mbit/s\"", "takes longer to send"),
        ("delay = { kind = \"jitter\", delay = \"1 ms\", jitter = \"2 ms\" }", "can't vary by 2 ms"),
        ("queue = { kind = \"red\", min = 15, max = 15 }", "max is not above its min"),
        (
            "rate = { kind = \"token-bucket\", rate = \"2 Mbit/s\", burst = \"9 kB\", peak = \"1 Mbit/s\" }",
            "its peak of 1 Mbit/s",
        ),
        ("loss = { kind = \"pattern\" }", "never drops anything"),
        ("delay = { delay = \"5 ms\", before = \"queue\" }\nreorder = \"1 %\"", "and there is none"),
        (
            "rate = { kind = \"slotted\", min = \"10 ms\", bytes = 3000 }\nqueue = \"50 ms\"",
            "for slots limited in bytes is an estimate",
        ),
    ];
    for (snippet, wanted) in table {
        let text = format!("{HOSTS}[[link]]\nbetween = [\"a\", \"b\"]\n{snippet}");
        let plan = plan_of(&text);
        assert_eq!(plan.notes.len(), 1, "{snippet}");
        assert!(plan.notes[0].to_string().contains(wanted), "{}", plan.notes[0]);
    }
    for (kind, queue, noted) in [
        ("csma-cd", "\"50 ms\"", true),
        ("dcf", "\"pie\"", true),
        ("dcf", "\"50 packets\"", false),
        ("half-duplex", "\"50 ms\"", false),
    ] {
        let text = format!(
            "{HOSTS}[[medium]]\nname = \"m\"\nkind = \"{kind}\"\n[[link]]\nbetween = [\"a\", \"b\"]\n\
             medium = \"m\"\nqueue = {queue}"
        );
        let plan = plan_of(&text);
        let wanted = format!("on the {kind} \"m\" is an estimate");
        assert_eq!(plan.notes.iter().any(|note| note.what.contains(&wanted)), noted, "{kind} {queue}");
    }
    let exact = "rate = { kind = \"slotted\", min = \"10 ms\", packets = 3 }\nqueue = \"50 ms\"";
    let text = format!("{HOSTS}[[link]]\nbetween = [\"a\", \"b\"]\n{exact}");
    assert_eq!(plan_of(&text).notes, []);
    let one_way = format!("{BRIDGES}[[link]]\nfrom = \"x\"\nto = \"y\"");
    let plan = plan_of(&one_way);
    assert!(plan.notes[0].what.contains("there is no path from here to \"a\""), "{}", plan.notes[0]);
    assert_eq!((plan.pair_route(0, 1), plan.pair_route(1, 0)), (Some(&[0][..]), None));
}

#[test]
fn hosts_that_nothing_joins_are_noted() {
    let hosts = |third: &str| {
        let host = |(name, n): (&str, &str)| format!("[[host]]\nname = \"{name}\"\naddress = \"{n}/24\"\n");
        [("a", "10.0.0.1"), ("b", "10.0.0.2"), ("c", third)].map(host).concat()
    };
    let notes = |third: &str| {
        let text = hosts(third) + "[[link]]\nbetween = [\"a\", \"b\"]\n";
        let notes = plan_of(&text).notes;
        notes.iter().map(|note| note.to_string()).collect::<Vec<_>>()
    };
    let unlinked = notes("10.0.0.3");
    assert!(unlinked.len() == 1 && unlinked[0].contains("no link leads to it"), "{unlinked:?}");
    let elsewhere = notes("10.0.9.3");
    assert!(elsewhere.iter().any(|note| note.contains("no router joins them")), "{elsewhere:?}");
    let error = mistakes(&hosts("10.0.0.2")).to_string();
    assert!(error.contains("overlaps what lies behind \"b\" (line 5)"), "{error}");
}
