//! Mistakes of hosts, ports, bridges and paths.

use super::{BRIDGES, check, mistakes};
use longwire_scenario::plan_of;

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
fn one_mistake_is_reported_once() {
    let host = |name: &str, rest: &str| format!("[[host]]\nname = \"{name}\"\n{rest}\n");
    let (wrong, good) = ("address = \"10.0.0.1/33\"", host("x", "address = \"10.0.0.9/24\""));
    let link = |from: &str, to: &str| format!("[[link]]\nbetween = [\"{from}\", \"{to}\"]\n");
    let many = "count = 3\nname = \"l{n}\"\n";
    let source =
        |from: &str, to: &str| format!("[[source]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1 Mbit/s\"\n");
    // Across a router, and across bridges that the wrong link joins.
    let far = host("y", "address = \"10.0.1.9/24\"");
    let routed = "[[router]]\nname = \"r\"\nports = [{ port = \"x\", addresses = \"10.0.0.1/24\" }, \
                  { port = \"y\", addresses = \"10.0.1.1/24\" }, { port = \"own\" }]\n";
    let apart = "[[bridge]]\nname = \"p\"\n[[bridge]]\nname = \"q\"\n".to_owned()
        + &host("x", "address = \"10.0.0.9/24\"\nbridge = \"p\"")
        + &host("y", "address = \"10.0.0.8/24\"\nbridge = \"q\"");
    let priced = routed.replace("ports", "line-rate = \"1 Gbit/s\"\nprices = \"none\"\nports");
    let wrong_delay = "delay = \"5 furlongs\"\n";
    let bridges = "[[bridge]]\nname = \"p\"\nageing = \"5\"\n[[bridge]]\nname = \"q\"\n";
    for (text, line) in [
        (host("a", wrong) + &good + &link("a", "x"), 3),
        (host("a", wrong) + &host("a", "address = \"10.0.0.2/24\"") + &good + &link("a", "x"), 3),
        (host("h{n}", &format!("{wrong}\ncount = 3")) + &good + &link("h{n}", "x") + many, 3),
        (host("h{n}", "address = \"10.0.0.{n}/24\"\ncount = 0") + &good + &link("h2", "x"), 4),
        (host("a", wrong) + "[[router]]\nname = \"r\"\nports = [{ port = \"a\" }]\n", 3),
        (good.clone() + bridges + &link("p", "q"), 6),
        (good.clone() + &far + routed + &link("x", "y") + wrong_delay + &source("x", "y"), 12),
        (good.clone() + &far + routed + &link("x", "y") + wrong_delay + &source("own", "y"), 12),
        (good.clone() + &far + &priced + &source("x", "y"), 10),
        (apart + &link("p", "q") + wrong_delay + &source("x", "y"), 15),
        (host("a", wrong) + &good + &link("a", "x") + &source("a", "x") + &source("x", "a"), 3),
    ] {
        let error = mistakes(&text);
        assert_eq!(error.findings[0].line, line, "{error}");
        let mut others = error.findings[1..].iter().map(|other| &other.what);
        assert!(others.all(|other| other.starts_with("there are two nodes")), "{error}\nin:\n{text}");
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
    let pair = |source: &str, destination: &str| {
        let pair = format!("{{ source = \"{source}\", destination = \"{destination}\" }}");
        path("[\"xy.forward\"]") + &format!("\nmatch = [{pair}]\n")
    };
    let wrong = [
        (pair("10.0.0.2", "10.0.0.1"), "10.0.0.2 lies behind \"b\", but the path begins at \"a\""),
        (pair("10.0.0.1", "10.0.0.1"), "10.0.0.1 lies behind \"a\", but the path ends at \"b\""),
    ];
    for (snippet, wanted) in &wrong {
        check(&chain, snippet, "14:21", "path \"a-b\", match: ", &[wanted]);
    }
    plan_of(&(chain.clone() + &pair("10.0.0.1", "192.0.2.1")));
    let routed = "[[router]]\nname = \"r\"\nports = [{ port = \"up\", bridge = \"z\" }]\n";
    let wanted = "paths are not chosen by addresses where routers have ports of their own";
    check(&chain, &(pair("10.0.0.1", "192.0.2.1") + routed), "14:21", "path \"a-b\", match: ", &[wanted]);
    let twice = path("[\"xy.forward\"]") + "\n" + &path("[\"xy.forward\"]");
    check(&chain, &twice, "15:8", "path \"a-b\": ", &["a path from \"a\" to \"b\" already"]);
}
