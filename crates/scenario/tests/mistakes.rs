//! Invalid scenarios and their errors: place, fault and fix.

use longwire_scenario::{ScenarioError, parse, plan_of};
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

/// Each queue has its own worker with its own node, and only a relay between two ports works the same at
/// several.
#[test]
fn queues_need_workers_and_a_node_that_needs_no_others_frames() {
    let port = |name: &str, rest: &str| format!("[[port]]\nname = \"{name}\"\ndriver = \"tap\"\n{rest}\n");
    let two = "queues = 2";
    let pair = port("p", two) + &port("q", two);
    let field = "port \"p\", queues: ";
    let workers = |count: u32| format!("engine = {{ workers = {count} }}\n");
    check("", &pair, "4:10", field, &["[engine] has 1 worker\n", "workers = 2 in [engine]"]);
    check("", &port("p", "queues = 64"), "4:10", field, &["has 1 worker", "workers = 64"]);
    let pipeline = "engine = { workers = 4, mapping = \"pipeline\" }\n";
    check(pipeline, &pair, "5:10", field, &["of a pipeline", "mapping = \"parallel\""]);
    let three = pair.clone() + &port("r", "");
    check(&workers(2), &three, "5:10", field, &["its bridge has 3 ports", "a bridge of their own"]);
    check(&workers(2), &port("p", two), "5:10", field, &["the only port of its bridge", "one other port"]);
    let unlike = port("p", two) + &port("q", "queues = 3");
    check(&workers(3), &unlike, "5:10", field, &["\"q\", has 3", "as many queues"]);
    check(&workers(2), &(port("p", two) + &port("q", "")), "5:10", field, &["\"q\", has 1"]);
    let router = port("p", two)
        + "[[router]]\nname = \"r\"\nports = [{ port = \"p\", addresses = \"10.0.0.254/24\" }]\n";
    check(&workers(2), &router, "5:10", field, &["of the router \"r\"", "write queues = 1"]);
    plan_of(&(workers(2) + &pair));
    plan_of(&(port("p", "queues = 1") + &port("q", "")));
}

/// Excessive counts are refused before anything is made.
#[test]
fn too_many_links_are_refused_at_once() {
    let link = "[[link]]\nname = \"l{n}\"\nbetween = [\"a\", \"b\"]\ncount = ";
    let (head, wanted) = ("link \"l{n}\", count: ", "there are 16777218 links, and 16777216 is the limit");
    check(HOSTS, &format!("{link}8_388_609"), "6:9", head, &[wanted, "make fewer"]);
    check(
        HOSTS,
        &format!("{link}8388608\n[[link]]\nfrom = \"a\"\nto = \"b\""),
        "7:1",
        "link",
        &["there are 16777217 links"],
    );
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
fn what_links_are_made_of() {
    let table = [
        (
            "name = \"up\"\nratee = \"1 Mbit/s\"",
            "5:1",
            "link \"up\": ",
            &["\"ratee\"", "did you mean \"rate\"?"][..],
        ),
        ("bandwidth = \"1 Mbit/s\"", "4:1", "link \"a-b\": ", &["did you mean \"rate\"?"]),
        ("latency = \"1 ms\"", "4:1", "link \"a-b\": ", &["did you mean \"delay\"?"]),
        ("rate = \"10Mbps\"", "4:8", "link \"a-b\", rate: ", &["did you mean \"Mbit/s\"?"]),
        ("delay = \"3 msec\"", "4:9", "link \"a-b\", delay: ", &["did you mean \"ms\"?"]),
        (
            "name = \"up\"\nrate = \"10 Mbitt\"",
            "5:8",
            "link \"up\", rate: ",
            &["unknown unit \"Mbitt\"", "Mbit/s"],
        ),
        ("rate = \"200 bit/s\"", "4:8", "link \"a-b\", rate: ", &["out of range"]),
        ("delay = 20", "4:9", "link \"a-b\", delay: ", &["no unit", "25 ms"]),
        ("delay = \"101 s\"", "4:9", "link \"a-b\", delay: ", &["at most 100 s"]),
        ("loss = \"200 %\"", "4:8", "link \"a-b\", loss: ", &["0 % to 100 %"]),
        ("queue = \"many\"", "4:9", "link \"a-b\", queue: ", &["100 packets"]),
        ("mtu = 67", "4:7", "link \"a-b\", mtu: ", &["from 68 to 65535"]),
        ("framing = \"ethernot\"", "4:11", "link \"a-b\", rate.framing: ", &["ethernet, ip, wire"]),
        (
            "framing = \"ip\"\nrate = { rate = \"1 Mbit/s\", framing = \"ip\" }",
            "4:11",
            "link",
            &["remove one"],
        ),
        (
            "loss = { kind = \"indepndent\" }",
            "4:17",
            "link",
            &["no loss of the kind", "did you mean \"independent\"?"],
        ),
        (
            "rate = { rte = \"1 Mbit/s\" }",
            "4:16",
            "link",
            &["no parameter \"rte\"", "did you mean \"rate\"?"],
        ),
        ("loss = {}", "4:8", "link", &["needs \"probability\""]),
        ("rate = [1]", "4:8", "link", &["array is not allowed here"]),
        (
            "forward = { ratte = \"1 Mbit/s\" }",
            "4:13",
            "link \"a-b\", forward: ",
            &["did you mean \"rate\"?"],
        ),
        ("histogram = 1", "4:13", "link \"a-b\", histogram: ", &["boolean"]),
    ];
    for (snippet, place, field, wanted) in table {
        check_link(snippet, place, field, wanted);
    }
}

/// Checks a link from a to b.
fn check_link(snippet: &str, place: &str, field: &str, wanted: &[&str]) {
    let ends = if snippet.starts_with("between") { "from = \"a\"" } else { "from = \"a\"\nto = \"b\"" };
    check(HOSTS, &format!("[[link]]\n{snippet}\n{ends}\n"), place, field, wanted);
}

#[test]
fn where_links_lead() {
    let table = [
        (
            "between = [\"a\", \"b\"]",
            "3:1",
            "link",
            &["either from and to (simplex), or between (duplex)"][..],
        ),
        ("forward = { rate = \"1 Mbit/s\" }", "3:1", "link", &["belong to a duplex link"]),
        ("first = 3", "4:9", "link", &["no meaning without count"]),
        (
            "name = \"l\"\ncount = 2",
            "4:8",
            "link \"l\", name: ",
            &["two links named \"l\"", "put {n} into the name"],
        ),
        ("name = \"l{n}\"", "4:8", "link \"l{n}\", name: ", &["no count"]),
        ("name = \"l{n}\"\ncount = 0", "5:9", "link", &["a whole number from 1 to"]),
        ("name = \"l{n}\"\ncount = 2\nrate = \"{n} bit\"", "6:8", "link", &["out of range"]),
        (
            "match = [{ source = \"10.0.0.2\", destination = \"10.0.0.1\" }]",
            "4:21",
            "link",
            &["10.0.0.2 lies behind \"b\""],
        ),
        (
            "match = [{ source = \"10.0.0.1\", destination = \"fd00::1\" }]",
            "4:47",
            "link",
            &["different families"],
        ),
        (
            "match = [{ source = \"10.0.0.1\" }]",
            "4:10",
            "link \"a-b\", match: ",
            &["\"destination\" is missing"],
        ),
    ];
    for (snippet, place, field, wanted) in table {
        check_link(snippet, place, field, wanted);
    }
    let twice = "[[link]]\nfrom = \"a\"\nto = \"b\"\n[[link]]\nname = \"second\"\nfrom = \"a\"\nto = \"b\"";
    check(HOSTS, twice, "7:8", "link \"second\": ", &["\"a-b\" has the same ends", "match"]);
    check(
        HOSTS,
        "[[link]]\nfrom = \"a\"\nto = \"c\"",
        "5:6",
        "link \"a-c\", to: ",
        &["no host, port or bridge \"c\""],
    );
    check(HOSTS, "[[link]]\nfrom = \"a\"\nto = \"a\"", "3:1", "link", &["begins and ends at the same place"]);
    check(HOSTS, "[[link]]\nbetween = [\"a\"]", "4:12", "link", &["names 1 ends"]);
}

#[test]
fn hosts() {
    let host = |name: &str, rest: &str| format!("[[host]]\nname = \"{name}\"\n{rest}\n");
    let a = host("a", "address = \"10.0.0.1/24\"");
    let table = [
        (
            host("b", "address = \"10.0.0.300/24\""),
            "6:11",
            "host \"b\", address: ",
            &["is not an address"][..],
        ),
        (
            host("b", "address = \"10.0.0.2\""),
            "6:11",
            "host \"b\", address: ",
            &["prefix length", "10.0.0.2/24"],
        ),
        (host("b", "address = []"), "5:8", "host \"b\", address: ", &["needs an address"]),
        (host("b", "address = \"10.0.0.1/16\""), "5:8", "host \"b\", address: ", &["overlaps", "\"a\""]),
        (host("a", "address = \"10.0.0.2/24\""), "5:8", "host \"a\", name: ", &["two nodes named \"a\""]),
        (host("b", "address = \"10.0.0.2/24\"\nmtu = 60"), "7:7", "host \"b\", mtu: ", &["68 to 65535"]),
        (
            host("b", "address = \"10.0.0.2/24\"\nmac = \"01:0:0:0:0:1\""),
            "7:7",
            "host \"b\", mac: ",
            &["even first byte"],
        ),
        (
            host("b", "address = \"10.0.0.2/24\"\nmac = \"02:4c:57:00:00:00\""),
            "7:7",
            "host",
            &["address of \"a\""],
        ),
        (
            host("b", "address = \"10.0.0.2/24\"\ngateway = \"10.0.1.1\""),
            "7:11",
            "host",
            &["none of the host's networks"],
        ),
        (
            host("b", "address = \"10.0.0.2/24\"\nbridge = \"sw\""),
            "7:10",
            "host",
            &["no bridge \"sw\"", "[[bridge]]"],
        ),
    ];
    for (snippet, place, field, wanted) in table {
        check(&a, &snippet, place, field, wanted);
    }
}

#[test]
fn ports() {
    let port = |rest: &str| format!("[[port]]\nname = \"p\"\n{rest}");
    let table = [
        (
            port("driver = \"af_xdp\"\ninterface = \"a-very-long-interface\""),
            "4:13",
            "port",
            &["1 to 15 characters"][..],
        ),
        (port("driver = \"memory\"\ninterface = \"eth1\""), "4:13", "port", &["has no interface"]),
        (port("driver = \"memory\"\nqueues = 2"), "4:10", "port", &["has no queues"]),
        (port("driver = \"tap\"\nqueues = 65"), "4:10", "port", &["1 to 64"]),
        (
            port("driver = \"tap\"\n")
                + &port("driver = \"af_xdp\"\ninterface = \"p\"").replace("\"p\"\nd", "\"q\"\nd"),
            "7:13",
            "port \"q\", interface: ",
            &["belongs to the port \"p\""],
        ),
        (port("driver = \"pcap\"\ninput = \"\""), "4:9", "port", &["empty"]),
    ];
    for (snippet, place, field, wanted) in table {
        check("", &snippet, place, field, wanted);
    }
}

#[test]
fn bridges_and_paths() {
    let link = |ends: &str| {
        format!("[[link]]\nname = \"{}\"\nbetween = {ends}\n", ends.replace(['[', ']', '"', ',', ' '], ""))
    };
    let ring = link("[\"x\", \"y\"]") + &link("[\"y\", \"z\"]") + &link("[\"z\", \"x\"]");
    let wanted = ["loop of bridges: z – y – x – z", "routing = \"shortest-delay\""];
    check(BRIDGES, &ring, "11:8", "link \"zx.forward\": ", &wanted);
    let double = link("[\"x\", \"y\"]") + "[[link]]\nfrom = \"x\"\nto = \"y\"\n";
    check(BRIDGES, &double, "7:1", "link \"x-y\": ", &["loop of bridges: x – y – x"]);
    let two = link("[\"a\", \"y\"]");
    check(BRIDGES, &two, "5:8", "link \"ay.forward\": ", &["\"a\" is attached to \"x\"", "one cable"]);
    check(
        BRIDGES,
        &link("[\"a\", \"b\"]"),
        "5:8",
        "link \"ab.forward\": ",
        &["its ends are on bridges that no link joins"],
    );
    check(
        &BRIDGES.replace(", bridge = \"x\"", ""),
        "",
        "1:18",
        "host \"a\": ",
        &["it names no bridge; there are x, y, z", "bridge = \"x\""],
    );

    let chain = BRIDGES.to_string() + &link("[\"x\", \"y\"]") + &link("[\"y\", \"z\"]");
    let path = |links: &str| format!("[[path]]\nfrom = \"a\"\nto = \"b\"\nlinks = {links}");
    let table = [
        ("[\"xy\"]", "13:10", &["no link \"xy\"", "\"xy.forward\" or \"xy.backward\""][..]),
        ("[\"xy.forwards\"]", "13:10", &["did you mean \"xy.forward\"?"]),
        ("[\"yz.forward\"]", "13:10", &["\"yz.forward\" begins at \"y\", but the path is at \"a\""]),
        ("[\"xy.forward\", \"yz.forward\"]", "12:6", &["the path ends at \"z\" instead of \"b\""]),
        ("[]", "12:6", &["the path ends at \"x\""]),
    ];
    for (links, place, wanted) in table {
        check(&chain, &path(links), place, "path \"a-b\", links: ", wanted);
    }
    check(&chain, "[[path]]\nfrom = \"a\"\nto = \"x\"\nlinks = []", "12:6", "path", &["\"x\" is a bridge"]);
    let twice = path("[\"xy.forward\"]") + "\n" + &path("[\"xy.forward\"]");
    check(&chain, &twice, "15:8", "path \"a-b\": ", &["a path from \"a\" to \"b\" already"]);
}

#[test]
fn engine_and_sources() {
    let table = [
        ("[engine]\nworkers = 65", "4:11", "engine, workers: ", &["1 to 64"][..]),
        ("[engine]\nworkers = 2\nmapping = \"single\"", "5:11", "engine, mapping: ", &["\"parallel\""]),
        ("[engine]\nmapping = \"pipeline\"", "4:11", "engine, mapping: ", &["two workers", "workers = 2"]),
        ("[engine]\nmapping = \"paralel\"", "4:11", "engine, mapping: ", &["did you mean \"parallel\"?"]),
        (
            "[engine]\nbetween-workers = \"share\"",
            "4:19",
            "engine, between-workers: ",
            &["did you mean \"shared\"?"],
        ),
        ("[engine]\npool = \"1 kB\"", "4:8", "engine, pool: ", &["out of range", "from 1 MiB to 256 GiB"]),
        ("[engine]\npool = \"1 gib\"", "4:8", "engine, pool: ", &["unknown unit"]),
        ("[engine]\ncpus = [0, 1]", "4:12", "engine, cpus: ", &["2 processors for 1 worker"]),
        ("[engine]\nworkers = 2\ncpus = [3, 3]", "5:12", "engine, cpus: ", &["is given twice"]),
        ("[fidelity]\nshare = \"110 %\"", "4:9", "fidelity, share: ", &["out of range"]),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"",
            "4:8",
            "source \"a-b\", rate: ",
            &["either a rate or an interval"],
        ),
        ("[[source]]\nfrom = \"a\"\nto = \"a\"\nrate = \"1 Mbit/s\"", "5:6", "source", &["nothing leads"]),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nrate = \"unlimited\"",
            "6:8",
            "source",
            &["can't send at unlimited"],
        ),
        ("[[source]]\nfrom = \"a\"\nto = \"b\"\ninterval = \"0 ms\"", "6:12", "source", &["0 apart"]),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\nsize = \"9 B\"",
            "7:8",
            "source",
            &["60 B to"],
        ),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\ncount = 2\nrate = \"1 Mbit/s\"",
            "4:8",
            "source",
            &["two sources"],
        ),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nsource = \"::1\"\nrate = \"1 Mbit/s\"",
            "5:6",
            "source",
            &["families"],
        ),
    ];
    for (snippet, place, field, wanted) in table {
        check(HOSTS, snippet, place, field, wanted);
    }
}

#[test]
fn models_of_sources() {
    let table = [
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nmodel = \"pareto\"\nrate = \"1 Mbit/s\"",
            "6:9",
            "source \"a-b\", model: ",
            &["pareto-on-off"][..],
        ),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nmodel = \"on-off\"\nrate = \"1 Mbit/s\"\non = \"1 s\"",
            "4:8",
            "source \"a-b\", off: ",
            &["on-off needs it", "Mean time off"],
        ),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\nshape = 1.4",
            "7:9",
            "source \"a-b\", shape: ",
            &["the model cbr has no shape", "model = \"pareto-on-off\""],
        ),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nmodel = \"mmpp\"\ninterval = \"1 ms\"",
            "7:12",
            "source \"a-b\", interval: ",
            &["the model mmpp has no interval"],
        ),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nmodel = \"mmpp\"\nrates = \"1 Mbit/s, fast\"",
            "7:9",
            "source \"a-b\", rates: ",
            &["fast"],
        ),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nmodel = \"replay\"\nfile = \"no.pcap\"",
            "7:8",
            "source \"a-b\", file: ",
            &["no.pcap: "],
        ),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nmodel = \"cbr\"\npoisson = true\nrate = \"1 Mbit/s\"",
            "6:9",
            "source \"a-b\", model: ",
            &["poisson contradicts"],
        ),
    ];
    for (snippet, place, field, wanted) in table {
        check(HOSTS, snippet, place, field, wanted);
    }
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
    let many = "[[bridge]]\nname = \"/\"\n".repeat(100);
    assert!(mistakes(&many).more);
}

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
