//! Mistakes of links.

use super::{HOSTS, check, mistakes};

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
