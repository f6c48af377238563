//! Invalid scenarios and their errors: place, fault and fix.

mod engine;
mod links;
mod nodes;
mod notes;

use longwire_scenario::{ScenarioError, parse};
use proptest::prelude::*;

/// Two hosts on lines 1 and 2, for snippets about something else.
const HOSTS: &str =
    "host = [{ name = \"a\", address = \"10.0.0.1/24\" },\n{ name = \"b\", address = \"10.0.0.2/24\" }]\n";

/// Two hosts on two bridges on lines 1 to 3.
const BRIDGES: &str = "host = [{ name = \"a\", address = \"10.0.0.1/24\", bridge = \"x\" },\n\
    { name = \"b\", address = \"10.0.0.2/24\", bridge = \"y\" }]\n\
    bridge = [{ name = \"x\" }, { name = \"y\" }, { name = \"z\" }]\n";

fn mistakes(text: &str) -> ScenarioError {
    match parse("s.toml", text) {
        Ok(_) => panic!("no mistake found in:\n{text}"),
        Err(error) => error,
    }
}

/// Checks that the first error is at `place` (line:column), begins with `field` and contains each of
/// `wanted`.
fn check(before: &str, snippet: &str, place: &str, field: &str, wanted: &[&str]) {
    let text = format!("{before}{snippet}");
    let error = mistakes(&text);
    let told = error.findings[0].to_string();
    let head = format!("s.toml:{place}: {field}");
    assert!(told.starts_with(&head), "wanted {head}\n{told}\nin:\n{text}");
    for wanted in wanted {
        assert!(told.contains(wanted), "wanted {wanted}\n{told}\nin:\n{text}");
    }
    assert!(told.contains('^'), "{told}");
}

#[test]
fn toml_and_keys() {
    let table = [
        ("seed = ", "1:8", "", &["not TOML"][..]),
        ("seed = 1\nseed = 2", "2:1", "", &["duplicate key", "give each key once"]),
        ("sead = 1", "1:1", "", &["no section \"sead\"", "did you mean \"seed\"?"]),
        ("[link]\nname = \"a\"", "1:1", "link: ", &["list of entries", "[[link]]"]),
        ("seed = true", "1:8", "seed: ", &["wrong type", "a whole number"]),
        ("seed = -1", "1:8", "seed: ", &["\"-1\" is out of range", "0 or more"]),
        ("[engine]\nworker = 2", "2:1", "engine: ", &["no key \"worker\"", "did you mean \"workers\"?"]),
        (
            "[[host]]\nname = \"a\"",
            "1:1",
            "host \"a\": ",
            &["\"address\" is missing", "address = \"10.0.0.1/24\""],
        ),
        (
            "[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\nmut = 9000",
            "4:1",
            "host \"a\": ",
            &["\"mtu\"?"],
        ),
        ("[[host]]\nname = \"a b\"\naddress = \"10.0.0.1/24\"", "2:8", "host \"a b\", name: ", &["letters"]),
        (
            "[[port]]\nname = \"p\"\ndriver = \"afpacket\"",
            "3:10",
            "port \"p\", driver: ",
            &["mean \"af_packet\"?"],
        ),
        ("", "1:1", "", &["no host and no port", "[[host]]"]),
    ];
    for (snippet, place, field, wanted) in table {
        check("", snippet, place, field, wanted);
    }
}

#[test]
fn other_files_of_longwire_are_recognized() {
    let sky = "duration = \"1 min\"\n[walker]\nplanes = 1\n[[station]]\nname = \"a\"\n[[path]]\n\
        via = \"lasers\"\n";
    let machines = "latency = \"1 ms\"\n[[machine]]\nname = \"one\"\n";
    for (text, wanted) in [
        ("scenario = \"x.toml\"\n[axes]\nup.rate = [\"1 Mbit/s\"]\n", "longwire sweep run s.toml"),
        (sky, "longwire constellation s.toml --output FOLDER"),
        ("tle = \"x.tle\"\n", "longwire constellation s.toml --output FOLDER"),
        (machines, "longwire partition SCENARIO --machines s.toml"),
    ] {
        let error = mistakes(text);
        assert_eq!(error.findings.len(), 1, "{error}");
        assert!(error.to_string().contains(wanted), "{error}");
    }
    // Among the sections of a scenario it is a mistake like others.
    let error = mistakes(&format!("{HOSTS}[[station]]\nname = \"a\"\n"));
    assert!(error.to_string().contains("no section \"station\""), "{error}");
}

#[test]
fn files_without_end_are_refused() {
    let error = longwire_scenario::load("/dev/zero".as_ref()).unwrap_err().to_string();
    assert!(error.contains("longer than 67108864 bytes") && error.contains("count"), "{error}");
}

#[test]
fn several_mistakes_are_reported_at_once() {
    let text = "sead = 1\n[[host]]\nname = \"a\"\naddres = \"10.0.0.1/24\"\nmtuu = 3\n[[port]]\nname = true\n\
        driver = 5";
    let error = mistakes(text);
    let places: Vec<_> = error.findings.iter().map(|f| f.line).collect();
    assert_eq!(places, [1, 4, 5, 7], "{error}");
    // All of one block, of a source and of a medium.
    let block =
        "[[link]]\nfrom = \"a\"\nto = \"b\"\n[link.queue]\nkind = \"red\"\nmin = \"x\"\nmax = \"y\"\n";
    let source = "[[source]]\nfrom = \"a\"\nto = \"b\"\nrate = \"fast\"\nsize = \"1\"\n";
    let medium = "[[medium]]\nname = \"m\"\nkind = \"half-duplex\"\nrate = \"fast\"\noverhead = \"x\"\n";
    for (text, wanted) in [(block, [8, 9]), (source, [6, 7]), (medium, [6, 7])] {
        let error = mistakes(&format!("{HOSTS}{text}"));
        let places: Vec<_> = error.findings.iter().map(|f| f.line).collect();
        assert_eq!(places, wanted, "{error}");
    }
    // Of links, sources and media.
    let link = "[[link]]\nfrom = \"a\"\nto = \"bb\"\n";
    let [source, medium] =
        [source, medium].map(|text| &text[..text.rfind("size").or(text.rfind("over")).unwrap()]);
    let error = mistakes(&format!("{HOSTS}{link}{source}{medium}"));
    let places: Vec<_> = error.findings.iter().map(|f| f.line).collect();
    assert_eq!(places, [5, 9, 13], "{error}");
    // Of one link: its ends, addresses, settings, blocks of each direction, and medium.
    let ends = "[[link]]\nfrom = \"aa\"\nto = \"bb\"\ndelay = \"soon\"\n";
    let whole = "[[link]]\nbetween = [\"aa\", \"b\"]\nhistogram = \"maybe\"\nmedium = \"a b\"\n\
        match = [{ source = \"x\", destination = \"10.0.0.1\" }]\nforward = { rate = \"fast\" }\n\
        backward = { delay = \"soon\" }\n";
    let neither = "[[link]]\nfrom = \"a\"\ndelay = \"soon\"\nforward = { rate = \"fast\" }\n";
    let profile = "[[link]]\nbetween = [\"a\", \"b\"]\nprofile = \"let\"\noverhead = \"20 B\"\n\
        delay = \"soon\"\nbackward = { rate = \"fast\" }\n";
    let all =
        [(ends, &[4, 5, 6][..]), (whole, &[4, 5, 6, 7, 8, 9]), (neither, &[3, 5, 6]), (profile, &[5, 7, 8])];
    for (text, wanted) in all {
        let error = mistakes(&format!("{HOSTS}{text}"));
        let places: Vec<_> = error.findings.iter().map(|f| f.line).collect();
        assert_eq!(places, wanted, "{error}");
    }
    let many = "[[bridge]]\nname = \"/\"\n".repeat(100);
    assert!(mistakes(&many).more);
}

/// Valid and invalid fragments of scenarios.
const PIECES: &[&str] = &[
    "[[host]]\n",
    "[[port]]\n",
    "[[link]]\n",
    "[[bridge]]\n",
    "[[path]]\n",
    "[[source]]\n",
    "[engine]\n",
    "[link]\n",
    "name = \"a\"\n",
    "name = \"b{n}\"\n",
    "name = \"x\"\n",
    "address = \"10.0.0.1/24\"\n",
    "address = \"{10.0.0.0 + n}/8\"\n",
    "count = 3\n",
    "first = 0\n",
    "from = \"a\"\n",
    "to = \"b1\"\n",
    "to = \"x\"\n",
    "between = [\"a\", \"x\"]\n",
    "between = [\"b{n}\", \"b{n+1}\"]\n",
    "rate = \"1 Mbit/s\"\n",
    "rate = { kind = \"constant\" }\n",
    "loss = 0.5\n",
    "match = [{ source = \"10.0.0.1\", destination = \"10.0.0.{n}\" }]\n",
    "links = [\"a-x\"]\n",
    "links = []\n",
    "driver = \"source\"\n",
    "driver = \"tap\"\n",
    "bridge = \"x\"\n",
    "forward = { loss = 1 }\n",
    "framing = \"ip\"\n",
    "interval = \"1 ms\"\n",
    "routing = \"shortest-delay\"\n",
    "workers = 2\n",
    "\"",
    "= [[",
    "{",
    "# é\n",
    "\u{0}",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_answered(text in "\\PC{0,200}") {
        let _ = parse("s.toml", &text).map_err(|error| error.to_string());
    }

    #[test]
    fn any_order_of_pieces_is_answered(picks in prop::collection::vec(0..PIECES.len(), 0..40)) {
        let text: String = picks.into_iter().map(|pick| PIECES[pick]).collect();
        let _ = parse("s.toml", &text).map_err(|error| error.to_string());
    }
}
