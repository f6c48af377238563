//! Events of a run that are over: they do not keep the objects that they changed.

use longwire_scenario::{Plan, ScenarioError, advanced, parse, parse_after};
use longwire_units::Nanos;

/// Three hosts, and duplex links from the first to the others.
const LINKS: &str = "\
    [[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n\n\
    [[host]]\nname = \"b\"\naddress = \"10.0.0.2/24\"\n\n\
    [[host]]\nname = \"c\"\naddress = \"10.0.0.3/24\"\n\n\
    [[link]]\nname = \"wan\"\nbetween = [\"a\", \"b\"]\ndelay = \"9 ms\"\n\n\
    [[link]]\nname = \"lan\"\nbetween = [\"a\", \"c\"]\ndelay = \"9 ms\"\n\n";

/// A change of these links from 1 s to 2 s.
fn change(links: &str, more: &str) -> String {
    format!("# Slower.\n[[at]]\ntime = \"1 s\"\nlink = {links}\nramp = \"1 s\"\ndelay = \"40 ms\"\n{more}\n")
}

fn removal(time: &str, name: &str) -> String {
    format!("[[at]]\ntime = \"{time}\"\nremove = \"{name}\"\n")
}

fn plan(text: &str) -> Plan {
    parse("s.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

/// The scenario of a run that has lasted for so long.
fn after(text: &str, time: Nanos) -> Result<Plan, ScenarioError> {
    parse_after(&plan(text), &advanced(text, time).unwrap(), time)
}

fn changed(plan: &Plan) -> Vec<Vec<&str>> {
    let names = |places: &[u32]| places.iter().map(|place| &*plan.links[*place as usize].name).collect();
    plan.events.iter().map(|event| names(&event.links)).collect()
}

#[test]
fn what_they_changed_can_be_removed() {
    let time = Nanos::from_millis(2500);
    for (links, left) in [
        ("\"wan\"", None),
        ("[\"wan.forward\", \"wan\"]", None),
        ("[\"wan\", \"lan\"]", Some("link = [\"lan\"]")),
        ("[\"lan\", # It stays.\n    \"wan\"]", Some("It stays")),
        ("[\n    \"lan\", # It stays.\n    \"wan.backward\",\n    \"wan\",\n]", Some("It stays")),
    ] {
        let text = format!("{LINKS}{}{}", change(links, ""), removal("2.5 s", "wan"));
        // As it is planned, and as a run comes to it.
        let (first, later) = (plan(&text), after(&text, time).unwrap());
        for then in [&*first.stages[0].plan, &later] {
            let all = if left.is_some() { vec![vec!["lan.forward", "lan.backward"]] } else { Vec::new() };
            assert_eq!(changed(then), all, "{links}");
            assert_eq!(then.text.contains("# Slower."), left.is_some(), "{}", then.text);
            assert!(then.text.contains(left.unwrap_or_default()), "{}", then.text);
        }
        // It is a scenario of its own.
        assert_eq!(changed(&plan(&later.text)), changed(&later), "{}", later.text);
        assert_eq!(changed(&first).len(), 1);
    }
}

#[test]
fn what_is_still_to_be_changed_can_not_be_removed() {
    let error = |more: &str, time: &str| {
        let text = format!("{LINKS}{}{}", change("[\"lan\", \"wan\"]", more), removal(time, "wan"));
        parse("s.toml", &text).map(drop).map_err(|error| error.to_string())
    };
    for (more, time) in [
        ("", "0.5 s"),
        ("", "1.999 s"),
        ("every = \"2 s\"", "100 s"),
        ("every = \"1.5 s\"\ntimes = 2", "3.499 s"),
    ] {
        let error = error(more, time).unwrap_err();
        let wanted = "from then on, at \"1 s\", link: it changes \"wan\", which would not be there any more";
        assert!(error.contains(wanted) && error.contains("take that event away first"), "{error}");
    }
    for (more, time) in [("", "2 s"), ("every = \"1.5 s\"\ntimes = 2", "3.5 s")] {
        assert_eq!(error(more, time), Ok(()));
    }
    // What was never there is a mistake at any time.
    let text = format!("{LINKS}{}", change("\"wna\"", ""));
    let error = parse_after(&plan(LINKS), &text, Nanos::from_secs(9)).unwrap_err().to_string();
    assert!(error.contains("there is no link \"wna\""), "{error}");
}

#[test]
fn entries_with_a_count_are_left_out_as_a_whole() {
    let counted = "[[at]]\ntime = \"{n} s\"\ncount = 2\nlink = [\"wan\", \"lan\"]\nloss = \"1 %\"\n\n";
    let both = format!("{LINKS}{counted}{}{}", removal("3 s", "wan"), removal("4 s", "lan"));
    let error = parse("s.toml", &both).unwrap_err().to_string();
    assert!(error.contains("\"wan\" is one of several that an entry with a count changes"), "{error}");
    let one = format!("{LINKS}{}{}", counted.replace(", \"lan\"", ""), removal("3 s", "wan"));
    let later = after(&one, Nanos::from_secs(3)).unwrap();
    assert!(later.events.is_empty() && !later.text.contains("[[at]]"), "{}", later.text);
}

#[test]
fn sources_and_routers_go_like_links() {
    let source = "[[source]]\nname = \"s\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\n\n\
        [[at]]\ntime = \"1 s\"\nsource = \"s\"\nrate = \"2 Mbit/s\"\n\n";
    let text = format!("{LINKS}{source}{}", removal("2 s", "s"));
    assert!(plan(&text).stages[0].plan.events.is_empty());
    assert!(!after(&text, Nanos::from_secs(2)).unwrap().text.contains("2 Mbit/s"));

    let routed = "[[host]]\nname = \"a\"\naddress = \"10.0.1.9/24\"\n\n\
        [[host]]\nname = \"b\"\naddress = \"10.0.2.9/24\"\n\n\
        [[router]]\nname = \"r\"\nports = [{ port = \"a\", addresses = \"10.0.1.1/24\" }, \
        { port = \"b\", addresses = \"10.0.2.1/24\" }]\n\n\
        [[at]]\ntime = \"1 s\"\nrouter = \"r\"\nadd-route = \"192.0.2.0/24 via 10.0.2.9\"\n";
    let (first, other) = (plan(routed), routed.replacen("name = \"r\"", "name = \"other\"", 1));
    let read = |seconds| parse_after(&first, &other, Nanos::from_secs(seconds));
    let later = read(1).unwrap();
    assert!(later.router_events.is_empty() && !later.text.contains("add-route"), "{}", later.text);
    let error = read(0).unwrap_err().to_string();
    assert!(error.contains("it changes \"r\", which would not be there any more"), "{error}");
}

#[test]
fn what_an_event_adds_no_other_changes() {
    let added = "[[at]]\ntime = \"3 s\"\nadd = { link = { name = \"backup\", between = [\"b\", \"c\"] } }\n";
    for name in ["backup", "backup.forward"] {
        let text = format!("{LINKS}{added}[[at]]\ntime = \"4 s\"\nlink = \"{name}\"\nloss = \"1 %\"\n");
        let error = parse("s.toml", &text).unwrap_err().to_string();
        assert!(error.contains(&format!("\"{name}\" is added while it runs")), "{error}");
        assert!(error.contains("where it is added"), "{error}");
    }
}
