//! Mistakes of links.

use super::{HOSTS, check, mistakes};
use longwire_scenario::plan_of;

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
    // A mistake among the others makes no room for them.
    check(HOSTS, &format!("{link}-2\n{link}8388609"), "10:9", head, &[wanted]);
}

#[test]
fn lists_are_counted_with_their_repetitions() {
    let ends = "from = \"a\"\nto = \"b\"\n";
    let pair = "{ source = \"10.0.0.1\", destination = \"10.0.0.2\" }";
    let table = [
        (
            format!("[[link]]\n{ends}match = [{pair}, {pair}, {pair}]\ncount = 8388608"),
            "7:9",
            "link, count: ",
            "there are 25165824 address pairs in match",
        ),
        (
            format!("[[path]]\n{ends}links = []\nmatch = [{pair}, {pair}]\ncount = 8388609"),
            "8:9",
            "path, count: ",
            "there are 16777218 paths",
        ),
        (
            format!("[[path]]\n{ends}links = [{}]\ncount = 16777216", ["\"l\""; 9].join(", ")),
            "7:9",
            "path, count: ",
            "there are 150994944 links in paths",
        ),
        (
            format!("[[source]]\n{ends}rate = \"1 Mbit/s\"\ncount = 65536"),
            "7:9",
            "source, count: ",
            "there are 65536 traffic sources, and 65535 is the limit",
        ),
        (
            "[[at]]\ntime = \"1 s\"\nlink = [\"l\", \"m\"]\nloss = \"1 %\"\ncount = 8388609".into(),
            "7:9",
            "at \"1 s\", count: ",
            "there are 16777218 names and routes in events",
        ),
        (
            "[[port]]\nname = \"p{n}\"\ndriver = \"memory\"\naddresses = [\"10.1.0.0/16\", \"10.2.0.0/16\"]\n\
             count = 8388609"
                .into(),
            "7:9",
            "port \"p{n}\", count: ",
            "there are 16777218 addresses",
        ),
        (
            "[[router]]\nname = \"r{n}\"\nports = [{ port = \"x{n}\" }, { port = \"y{n}\" }]\ncount = 8388609"
                .into(),
            "6:9",
            "router \"r{n}\", count: ",
            "there are 16777218 ports, routes",
        ),
    ];
    for (snippet, place, field, wanted) in &table {
        check(HOSTS, snippet, place, field, &[wanted]);
    }
}

/// Hosts at a router are on no bridge, so that links of bridges begin and end without them.
#[test]
fn links_between_bridges_are_not_for_hosts_of_a_router() {
    let hosts = "host = [{ name = \"a\", address = \"10.0.1.9/24\" }, \
        { name = \"b\", address = \"10.0.2.9/24\" },\n\
        { name = \"c\", address = \"10.0.3.1/24\", bridge = \"x\" },\n\
        { name = \"d\", address = \"10.0.3.2/24\", bridge = \"y\" }]\n\
        bridge = [{ name = \"x\" }, { name = \"y\" }]\n\
        [[router]]\nname = \"r\"\nports = [{ port = \"a\", addresses = \"10.0.1.1/24\" }, \
        { port = \"b\", addresses = \"10.0.2.1/24\" }]\n";
    let link = |source: &str, destination: &str| {
        let pair = format!("{{ source = \"{source}\", destination = \"{destination}\" }}");
        format!("[[link]]\nname = \"l\"\nfrom = \"x\"\nto = \"y\"\nmatch = [{pair}]\n")
    };
    for (source, destination) in [("10.0.1.9", "10.0.3.2"), ("10.0.3.1", "10.0.2.9")] {
        let wanted = format!("no links lead from {source} over this one to {destination}");
        check(hosts, &link(source, destination), "12:21", "link \"l\", match: ", &[&wanted]);
    }
    plan_of(&(hosts.to_owned() + &link("10.0.3.1", "10.0.3.2")));
}

/// A link between two hosts has a route for each pair of their addresses.
#[test]
fn hosts_of_many_addresses_are_not_linked_with_each_other() {
    let host = |name: &str, net: u32| {
        let all = (0..4097).map(|n| format!("\"10.{net}.{}.{}/8\"", n / 256, n % 256));
        format!("[[host]]\nname = \"{name}\"\naddress = [{}]\n", all.collect::<Vec<_>>().join(", "))
    };
    let hosts = host("a", 1) + &host("b", 2);
    let link = "[[link]]\nfrom = \"a\"\nto = \"b\"\n";
    check(&hosts, link, "2:8", "", &["more than 16777216 pairs of addresses", "fewer addresses"]);
    plan_of(&(hosts + "[[bridge]]\nname = \"x\"\n[[link]]\nfrom = \"a\"\nto = \"x\"\n"));
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

#[test]
fn all_wrong_blocks_of_a_link_are_reported() {
    let link = "[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"10Mbps\"\ndelay = \"5\"\n\
        backward = { loss = \"200 %\" }\n";
    let error = mistakes(&format!("{HOSTS}{link}"));
    let lines: Vec<_> = error.findings.iter().map(|finding| finding.line).collect();
    assert_eq!(lines, [5, 6, 7], "{error}");
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
