//! Matrices of delays, and the topologies of containerlab and Docker Compose: the examples of the book.

use crate::{file, from, has, lines, plan, refused, silent, tells, way};
use longwire_import::{Format, ImportedScenario, import};

/// An example of `scenarios/import`.
fn example(name: &str) -> String {
    let path = format!("{}/../../scenarios/import/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn matrices_of_each_shape() {
    for (name, hosts, links) in [
        ("regions.csv", 5, 20),
        ("regions-list.csv", 3, 6),
        ("regions.md", 3, 6),
        ("regions-azure.csv", 9, 72),
        ("regions-ibm.csv", 12, 132),
    ] {
        let imported = from(Format::Matrix, &example(name));
        let plan = plan(&imported);
        assert!(plan.notes.is_empty(), "{name}: {}", plan.notes[0]);
        assert_eq!((plan.hosts.len(), plan.links.len()), (hosts, links), "{name}");
        tells(&imported, &["each direction takes half"]);
        assert_eq!(imported.notes.len(), 1, "{:?}", imported.notes);
    }
    let imported = from(Format::Matrix, &example("regions.csv"));
    has(&imported, &["name = \"eu-west--us-east\"", "delay = \"37.5 ms\""]);
    has(&imported, &["forward = { delay = \"61 ms\" }", "backward = { delay = \"60.5 ms\" }"]);
    let imported = from(Format::Matrix, &example("regions-azure.csv"));
    has(&imported, &["forward = { delay = \"44.5 ms\" }", "backward = { delay = \"45.5 ms\" }"]);
    let imported = from(Format::Matrix, &example("regions-ibm.csv"));
    has(&imported, &["name = \"Frankfurt--London\"", "delay = \"6.5 ms\""]);
    let imported = from(Format::Matrix, &example("regions-list.csv"));
    has(&imported, &["delay = \"50.6 ms\"", "forward = { delay = \"76.2 ms\" }"]);
}

fn containerlab(script: Option<&str>) -> ImportedScenario {
    let mut sources = vec![file("lab.clab.yml", &example("leaf-spine.clab.yml"))];
    sources.extend(script.map(|script| file("impair.sh", script)));
    import(Format::Containerlab, &sources).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn containerlab_with_its_impairments() {
    let imported = containerlab(Some(&example("leaf-spine.sh")));
    has(
        &imported,
        &[
            "between = [\"spine\", \"leaf2\"]",
            // As netem: packets overtake each other.
            "forward = { loss = \"0.5 %\", delay = { kind = \"jitter\", delay = \"40 ms\", \
             jitter = \"5 ms\", distribution = \"uniform\", order = \"reorder\" } }",
            // Both ways, by vars of the link: netem delays before it sends.
            "delay = { kind = \"constant\", delay = \"5 ms\", before = \"queue\" }",
            "rate = \"100 Mbit/s\"",
            "framing = \"ip\"",
            "overhead = \"14\"",
            "queue = \"10000 packets\"",
            "forward = { rate = \"20 Mbit/s\", framing = \"ip\", overhead = \"14\", \
             queue = \"10000 packets\" }",
        ],
    );
    tells(
        &imported,
        &[
            "leaf1, leaf2, spine: nodes with several links are bridges",
            "limit 10000: it counts packets on their way through the delay there",
        ],
    );
    let plan = plan(&imported);
    assert_eq!(plan.hosts.len(), 2);
    let there = [
        "client1--leaf1.forward",
        "spine--leaf1.backward",
        "spine--leaf2.forward",
        "client2--leaf2.backward",
    ];
    assert_eq!(way(&plan, 0, 1), there);
}

/// With a rate netem keeps packets in order, and says so here as for tc.
#[test]
fn containerlab_delays_before_it_sends() {
    let imported = containerlab(Some(
        "clab tools netem set -n spine -i eth2 --delay 10ms --jitter 2ms --rate 1000 --corruption 1\n\
         clab tools netem set -n spine -i eth1 --jitter 2ms --loss 0 --rate 0\n",
    ));
    has(
        &imported,
        &["forward = { bit-error = { kind = \"per-packet\", probability = \"1 %\" }, \
           delay = { kind = \"jitter\", delay = \"10 ms\", jitter = \"2 ms\", distribution = \"uniform\", \
           order = \"keep\", before = \"queue\" }, rate = \"1 Mbit/s\", framing = \"ip\", overhead = \"14\", \
           queue = \"10000 packets\" }"],
    );
    tells(
        &imported,
        &[
            "delay … JITTER with rate: with a rate netem keeps packets in order",
            "line 2: jitter 2 ms: without",
        ],
    );
    assert!(
        !imported.scenario.contains("between = [\"spine\", \"leaf1\"]\nforward"),
        "{}",
        imported.scenario
    );
}

/// A node's kind is its own, its group's, that of the usual group, or the usual one.
#[test]
fn containerlab_knows_the_kinds_of_groups() {
    for (more, node, is_bridge) in [
        ("groups: {core: {kind: ovs-bridge}}, ", "group: core", true),
        ("groups: {core: {kind: Bridge}}, ", "group: core", true),
        (
            "groups: {core: {}, usual: {kind: bridge}}, defaults: {group: usual, kind: linux}, ",
            "group: core",
            true,
        ),
        ("defaults: {kind: bridge}, ", "group: core", true),
        ("groups: {core: {kind: linux}}, defaults: {kind: bridge}, ", "group: core", false),
        ("groups: {core: {kind: bridge}}, ", "group: core, kind: linux", false),
        ("", "group: core", false),
    ] {
        let nodes = format!("nodes: {{a: {{{node}}}, b: {{kind: linux}}, c: {{kind: linux}}}}");
        let links = "links: [{endpoints: [\"a:1\", \"b:1\"]}, {endpoints: [\"a:2\", \"c:1\"]}]";
        let imported = from(Format::Containerlab, &format!("topology: {{{more}{nodes}, {links}}}"));
        let mut notes = imported.notes.iter().map(ToString::to_string);
        let is_router = notes.any(|note| note.contains("a: nodes with several links are bridges"));
        assert_eq!(is_router, !is_bridge, "{more}{node}");
    }
}

/// The names of containers, and options without a value.
#[test]
fn containerlab_finds_nodes_by_their_containers() {
    let topology = "topology: {nodes: {a: {}, b: {}}, links: [{endpoints: [\"a:eth1\", \"b:eth1\"], \
        vars: {delay: [5ms], loss: 1}}]}";
    for (head, container) in [
        ("name: x", "clab-x-a"),
        ("name: x\nprefix: my", "my-x-a"),
        ("name: x\nprefix: \"\"", "a"),
        ("name: x\nprefix: __lab-name", "x-a"),
    ] {
        let text = format!("{head}\n{topology}\n");
        let script = format!("containerlab tools netem set --debug -n {container} -d -i eth1 --delay 7ms");
        let sources = [file("lab.clab.yml", &text), file("impair.sh", &script)];
        let imported =
            import(Format::Containerlab, &sources).unwrap_or_else(|error| panic!("{head}: {error}"));
        has(&imported, &["forward = { delay = \"7 ms\" }", "backward = { loss = \"1 %\" }"]);
        tells(&imported, &["vars: delay: it is not a text, and is left out"]);
    }
}

/// A bridge of the lab may be called as one that a pair of hosts gets.
#[test]
fn bridges_of_pairs_have_names_of_their_own() {
    let text = "topology: {nodes: {a: {}, b: {}, c: {}, d: {}, a-net: {kind: bridge}}, links: [\
        {endpoints: [\"a:1\", \"b:1\"]}, {endpoints: [\"c:1\", \"a-net:1\"]}, \
        {endpoints: [\"d:1\", \"a-net:2\"]}]}";
    let imported = from(Format::Containerlab, text);
    has(&imported, &["name = \"a-net\"", "name = \"a-net-2\"", "bridge = \"a-net-2\""]);
    assert_eq!(plan(&imported).hosts.len(), 4);
}

#[test]
fn containerlab_without_impairments_and_mistakes() {
    assert!(!lines(&containerlab(None)).iter().any(|line| line.contains("jitter")));
    let sources =
        |script: &str| [file("lab.clab.yml", &example("leaf-spine.clab.yml")), file("impair.sh", script)];
    for (script, what) in [
        ("containerlab tools netem set -n leaf1 -i eth9 --delay 1ms", "line 1: no link of the topology ends"),
        ("\nclab tools netem set -n leaf1 -i eth1 --delay soon", "line 2: delay can't be \"soon\""),
        ("clab tools netem set -n leaf1 -i eth1 --loss 101", "loss can't be \"101\""),
    ] {
        let error = import(Format::Containerlab, &sources(script)).unwrap_err().to_string();
        assert!(error.contains(what), "{script}: {error}");
    }
    for (text, what) in [
        ("topology: [1", "line 1: this is not YAML"),
        ("just text", "its top level is not a map"),
        ("name: x", "there is no topology"),
        (
            "topology: {nodes: {a: {}}, links: [{endpoints: [\"a:1\", \"b:1\"]}]}",
            "\"b\", which is not a node",
        ),
        ("topology: {nodes: {a: {}}, links: [{endpoints: [\"a:1\"]}]}", "a link has 1 endpoints"),
        ("topology: {nodes: {a: {}, b: {}}, links: [{type: dummy}]}", "no link between two nodes"),
    ] {
        refused(Format::Containerlab, text, what);
    }
    // Two nodes and a cable need no bridge; the link to the host of the lab is left out.
    let text = "topology:\n  nodes: {a: {}, b: {}}\n  links:\n    - endpoints: [\"a:1\", \"b:1\"]\n    \
                - endpoints: [\"a:2\", \"host:x\"]\n";
    let imported = from(Format::Containerlab, text);
    tells(&imported, &["host:x: links that leave the lab"]);
    assert_eq!(way(&plan(&imported), 0, 1), ["a--b.forward"]);
    // A ring has loops, and each of its nodes gets a host.
    let ring = "topology: {nodes: {a: {}, b: {}, c: {}}, links: [{endpoints: [\"a:1\", \"b:1\"]}, \
                {endpoints: [\"b:2\", \"c:1\"]}, {endpoints: [\"c:2\", \"a:2\"]}]}";
    let imported = from(Format::Containerlab, ring);
    assert_eq!(plan(&imported).hosts.len(), 3);
    has(&imported, &["routing = \"shortest-delay\""]);
}

#[test]
fn compose_files() {
    let imported = from(Format::Compose, &example("compose.yaml"));
    has(
        &imported,
        &[
            "forward = { delay = \"40 ms\" }",
            "backward = { rate = \"20 Mbit/s\" }",
            "forward = { rate = \"1 Gbit/s\", delay = \"1 ms\" }",
            "forward = { rate = \"1 Gbit/s\" }",
        ],
    );
    tells(&imported, &["web: a host has one interface here"]);
    let plan = plan(&imported);
    let names: Vec<_> = plan.hosts.iter().map(|host| &*host.name).collect();
    assert_eq!(names, ["database", "web", "browser", "web-front"]);
    // Of each network, what the one sends and the other receives.
    assert_eq!(way(&plan, 2, 3), ["browser--front.forward", "web-front--front.backward"]);
    for (text, what) in [
        ("services: {a: {}}", "no network in it has two services"),
        ("services: {a: {x-longwire: {delay: soon}}, b: {}}", "the result is not valid"),
        ("services: {a: {x-longwire: {delay: [1]}}, b: {}}", "delay is not a text"),
        ("services: {a: {x-longwire: {dealy: 1 ms}}, b: {}}", "the result is not valid"),
        (
            "services: {a: {labels: {longwire.dealy: 5 ms}}, b: {labels: {longwire.profile: lte}}}",
            "there is no key \"dealy\"",
        ),
        ("services: {a: {x-longwire: {profile: ltee}}, b: {}}", "there is no profile \"ltee\""),
        ("services: {a: {x-longwire: [delay: 5 ms]}, b: {}}", "x-longwire is not a map"),
        ("services: {a: {x-longwire: delay 5 ms}, b: {}}", "x-longwire is not a map"),
        ("services: {a: {networks: [1]}, b: {networks: [1]}}", "a: 1 is not the name of a network"),
        ("services: {a: {networks: [true]}, b: {}}", "a: true is not the name of a network"),
        ("services: {a: {networks: front}, b: {}}", "a: its networks are no list"),
    ] {
        refused(Format::Compose, text, what);
    }
    let imported =
        from(Format::Compose, "services: {a: {}, b: {network_mode: host}, c: {labels: [longwire.loss=1 %]}}");
    tells(&imported, &["b: network_mode: host"]);
    has(&imported, &["forward = { loss = \"1 %\" }"]);
    // A profile's file need not exist yet.
    let imported = from(
        Format::Compose,
        "services: {a: {scale: 3, x-longwire: {profile: own/line.toml}}, b: {x-longwire: }}",
    );
    has(&imported, &["forward = { profile = \"own/line.toml\" }"]);
    tells(&imported, &["a: scale: it is not carried over"]);
}

#[test]
fn networks_of_compose_may_have_names_that_once_were_booleans() {
    for name in ["n", "y", "no", "yes", "on", "off"] {
        let text = format!("services: {{a: {{networks: [{name}]}}, b: {{networks: [{name}]}}}}");
        let imported = from(Format::Compose, &text);
        assert_eq!(plan(&imported).hosts.len(), 2, "{name}");
    }
    // Without a value it is the default one.
    let imported = from(Format::Compose, "services: {a: {networks: }, b: {}}");
    assert_eq!(plan(&imported).hosts.len(), 2);
}

#[test]
fn containerlab_resets_impairments() {
    let set = "containerlab tools netem set -n spine -i eth2 --delay 40ms\n";
    let of = |more: &str| containerlab(Some(&format!("{set}{more}")));
    has(&of(""), &["forward = { delay = \"40 ms\" }"]);
    let reset = of("containerlab tools netem show -n spine\nclab tools netem reset -n spine -i eth2\n");
    assert_eq!(lines(&reset), lines(&containerlab(None)));
    silent(&reset, &["show", "reset", "has no command"]);
    let other = of("docker exec clab-leaf-spine-spine tc qdisc add dev eth2 root netem delay 10ms\n\
                    clab tools netem pause -n spine\n");
    has(&other, &["forward = { delay = \"40 ms\" }"]);
    tells(
        &other,
        &[
            "line 2: docker exec clab-leaf-spine-spine tc qdisc add dev eth2 root netem delay 10ms: only \
             containerlab tools netem is read here",
            "line 3: clab tools netem pause -n spine: only set and reset",
        ],
    );
}

/// A small file can't become a large value.
#[test]
fn aliases_are_bounded() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        text += &format!("a{level}: &a{level} [{}]\n", before.trim_end_matches(", "));
    }
    text += "services: {a: {labels: *a11}, b: {}}\n";
    refused(Format::Compose, &text, "this is not YAML");
    let deep = format!("services: {}", "[".repeat(100_000));
    refused(Format::Compose, &deep, "this is not YAML");
}
