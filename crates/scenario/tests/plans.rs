//! Plans of scenarios: defaults, places, names, routes.

use longwire_block::Value;
use longwire_drivers::pcap::Capture;
use longwire_drivers::{HostDriver, tap};
use longwire_random::process::{Interval, Model, Packets, Speed};
use longwire_scenario::{
    BetweenWorkers, End, EngineSettings, Mapping, Plan, Routing, Segment, Wait, load, parse, parse_after,
};
use longwire_units::{Bytes, Nanos, Rate};
use std::path::Path;
use std::sync::Arc;

fn plan(text: &str) -> Plan {
    parse("folder/s.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

/// A host for each `(name, bridge)`, on 10.0.0.1 and so on.
fn hosts(list: &[(&str, &str)]) -> String {
    let host = |(index, (name, bridge)): (usize, &(&str, &str))| {
        format!("[[host]]\nname = \"{name}\"\naddress = \"10.0.0.{}/24\"\nbridge = \"{bridge}\"\n", index + 1)
    };
    list.iter().enumerate().map(host).collect()
}

fn bridges(names: &[&str]) -> String {
    names.iter().map(|name| format!("[[bridge]]\nname = \"{name}\"\n")).collect()
}

fn names<'p>(plan: &'p Plan, links: &[u32]) -> Vec<&'p str> {
    links.iter().map(|place| &*plan.links[*place as usize].name).collect()
}

#[test]
fn defaults() {
    let plan =
        plan("[[host]]\nname = \"a\"\naddress = \"fd00::1/64\"\n[[port]]\nname = \"p\"\ndriver = \"tap\"\n");
    assert_eq!((plan.seed, plan.routing), (1, Routing::Tree));
    let pool = Bytes(256 << 20);
    let engine = EngineSettings {
        workers: 1,
        mapping: Mapping::Single,
        wait: Wait::SleepThenSpin,
        between: BetweenWorkers::Private,
        pool,
        pool_given: false,
        cpus: vec![],
        train_spread: Nanos::from_micros(10),
        tick: Nanos::ZERO,
    };
    assert_eq!(plan.engine, engine);
    assert_eq!(
        (plan.fidelity.within, plan.fidelity.share.to_string()),
        (Nanos::from_micros(100), "99 %".into())
    );
    let host = &plan.hosts[0];
    assert_eq!(
        (host.driver, host.mtu, host.port, host.mac.to_string()),
        (HostDriver::TAP, 1500, 0, "02:4c:57:00:00:00".into())
    );
    let driven = plan.ports[1].attachment.driven().unwrap();
    assert_eq!((driven.driver, driven.interface()), (&tap::DRIVER, Some("p".into())));
    assert_eq!(
        (&*plan.bridges[0].name, plan.bridges[0].ageing, plan.bridges[0].table),
        ("bridge", Nanos::from_secs(300), 4096)
    );
    assert_eq!(
        plan.segments,
        [Segment {
            router: None,
            bridges: vec![0],
            ports: vec![0, 1],
            ageing: Nanos::from_secs(300),
            table: 4096,
            wire: false
        }]
    );
    assert!(plan.notes[0].what.contains("no link"));
}

#[test]
fn settings() {
    let plan = plan(
        "seed = 7\n[engine]\nworkers = 2\nwait = \"spin\"\nbetween-workers = \"shared\"\ncpus = [1, 0]\n\
         pool = \"1 GiB\"\ntrain-spread = \"0 us\"\n\
         [[port]]\nname = \"p\"\ndriver = \"pcap\"\ninput = \"in.pcap\"\noutput = \"/tmp/out.pcap\"\n",
    );
    assert_eq!((plan.seed, plan.engine.mapping, plan.engine.wait), (7, Mapping::Parallel, Wait::Spin));
    assert_eq!(plan.engine.between, BetweenWorkers::Shared);
    assert_eq!(
        (&plan.engine.cpus[..], plan.engine.pool, plan.engine.train_spread),
        (&[1, 0][..], Bytes(1 << 30), Nanos::ZERO)
    );
    let driven = plan.ports[0].attachment.driven().unwrap();
    let file = |name| driven.setting::<Arc<Capture>>(name).unwrap().0.clone();
    assert_eq!(file("input"), Some("folder/in.pcap".into()));
    assert_eq!(file("output"), Some("/tmp/out.pcap".into()));
}

#[test]
fn directions_override_what_they_name() {
    let plan = plan(
        &(hosts(&[("a", "x"), ("b", "x")])
            + &bridges(&["x"])
            + r#"
        [[link]]
        between = ["a", "b"]
        rate = "10 Mbit/s"
        framing = "ip"
        delay = "5 ms"
        histogram = true
        backward = { rate = "1 Mbit/s", histogram = false }
    "#),
    );
    assert_eq!([&*plan.links[0].name, &*plan.links[1].name], ["a-b", "b-a"]);
    assert_eq!((plan.links[1].from, plan.links[1].to), (End::Port(1), End::Port(0)));
    let (forward, backward) = (plan.profile(0), plan.profile(1));
    assert_eq!((forward.rate(), backward.rate()), (Rate(10_000_000), Rate(1_000_000)));
    assert_eq!((forward.histogram, backward.histogram), (true, false));
    for profile in [forward, backward] {
        assert_eq!(
            (profile.delays.least, profile.value("delay")),
            (Nanos::from_millis(5), Some(Value::Time(Nanos::from_millis(5))))
        );
        let rate = &profile.blocks.iter().find(|(spec, _)| spec.key == "rate").unwrap().1;
        assert_eq!(rate.at(1), Value::Choice(1), "framing stands beside rate and goes with it");
    }
}

#[test]
fn ties_go_to_fewer_links_then_to_the_first() {
    let nodes = hosts(&[("a", "x"), ("b", "z")]) + &bridges(&["x", "y", "z"]);
    let link = |name: &str, from: &str, to: &str, delay: u32| {
        format!("[[link]]\nname = \"{name}\"\nbetween = [\"{from}\", \"{to}\"]\ndelay = \"{delay} ms\"\n")
    };
    let way = |links: &str| {
        let plan = plan(&format!("routing = \"shortest-delay\"\n{nodes}{links}"));
        names(&plan, plan.pair_route(0, 1).unwrap()).join(" ")
    };
    let around = link("xy", "x", "y", 5) + &link("yz", "y", "z", 5);
    assert_eq!(way(&(around.clone() + &link("xz", "x", "z", 11))), "xy.forward yz.forward");
    assert_eq!(way(&(around.clone() + &link("xz", "x", "z", 10))), "xz.forward");
    let two = around.clone() + &link("xz", "x", "z", 10) + &link("second", "x", "z", 10);
    assert_eq!(way(&two), "xz.forward");
    // Varying delays are weighted by their means, which packets that overtake don't shorten.
    for longer in [
        "delay = { delay = \"250 ms\", jitter = \"240 ms\" }",
        "delay = { kind = \"distribution\", distribution = \"1 ms; 40 ms\" }",
        "delay = { kind = \"trace\", file = \"0 s 1 ms; 1 s 30 ms; 3 s 30 ms\" }",
        "delay = \"250 ms\"\nreorder = { probability = \"1 %\", by = \"1 ms\" }",
    ] {
        let far = format!("[[link]]\nname = \"far\"\nbetween = [\"x\", \"z\"]\n{longer}\n");
        assert_eq!(way(&(around.clone() + &far)), "xy.forward yz.forward", "{longer}");
    }
}

#[test]
fn links_chosen_by_addresses_between_bridges_take_the_cables_along() {
    let plan = plan(
        &(bridges(&["x", "y"])
            + r#"
        [[port]]
        name = "in"
        driver = "memory"
        addresses = ["10.1.0.0/16", "fd01::/64"]

        [[port]]
        name = "out"
        driver = "memory"
        addresses = ["10.2.0.0/16", "fd02::/64"]

        [[link]]
        name = "cable"
        from = "in"
        to = "x"

        [[link]]
        name = "back"
        from = "out"
        to = "y"

        [[link]]
        name = "trunk{n}"
        count = 2
        between = ["x", "y"]
        match = [
            { source = "{10.1.0.0 + n}", destination = "10.2.0.1" },
            { source = "fd01::{n}", destination = "fd02::1" },
        ]
    "#),
    );
    let found: Vec<_> = plan
        .address_rules
        .iter()
        .map(|rule| {
            format!(
                "{}>{}: {}",
                rule.source,
                rule.destination,
                names(&plan, plan.routes.links(&rule.route)).join(" ")
            )
        })
        .collect();
    assert_eq!(
        found[..4],
        [
            "10.1.0.1>10.2.0.1: cable trunk1.forward",
            "fd01::1>fd02::1: cable trunk1.forward",
            "10.2.0.1>10.1.0.1: back trunk1.backward",
            "fd02::1>fd01::1: back trunk1.backward",
        ]
    );
    // Packets for which neither trunk is chosen cross between the bridges, but pass the cables.
    assert_eq!(names(&plan, plan.pair_route(0, 1).unwrap()), ["cable"]);
    assert_eq!(plan.segments.len(), 1);
}

#[test]
fn bridges_without_links_between_them_are_apart() {
    let plan = plan(
        &(hosts(&[("a", "x"), ("b", "x"), ("c", "y"), ("d", "y")])
            + &bridges(&["x", "y"])
            + r#"
        [[link]]
        between = ["a", "b"]

        [[link]]
        between = ["c", "y"]
    "#),
    );
    assert_eq!(
        plan.segments.iter().map(|segment| segment.ports.clone()).collect::<Vec<_>>(),
        [[0, 1], [2, 3]]
    );
    assert_eq!(
        plan.pair_rules.iter().map(|rule| (rule.in_port, rule.out_port)).collect::<Vec<_>>(),
        [(0, 1), (1, 0), (2, 3), (3, 2)]
    );
    assert_eq!(names(&plan, plan.pair_route(3, 2).unwrap()), ["y-c"]);
}

#[test]
fn paths_may_be_for_some_addresses_only() {
    let plan = plan(
        &(String::from("routing = \"shortest-delay\"\n")
            + &hosts(&[("a", "x"), ("b", "y")])
            + &bridges(&["x", "y"])
            + r#"
        [[link]]
        name = "fast"
        between = ["x", "y"]

        [[link]]
        name = "slow"
        from = "x"
        to = "y"
        delay = "1 s"

        [[path]]
        from = "a"
        to = "b"
        links = "slow"
        match = [{ source = "192.0.2.1", destination = "10.0.0.2" }]
    "#),
    );
    assert_eq!(names(&plan, plan.pair_route(0, 1).unwrap()), ["fast.forward"]);
    assert_eq!(plan.address_rules.len(), 1);
    assert_eq!(names(&plan, plan.routes.links(&plan.address_rules[0].route)), ["slow"]);
}

#[test]
fn sources_take_their_ends_addresses() {
    let plan = plan(
        &(hosts(&[("a", "x"), ("b", "x")])
            + &bridges(&["x"])
            + r#"
        [[source]]
        name = "s{n}"
        count = 3
        first = 5
        from = "a"
        to = "b"
        interval = "{n} ms"
        start = "{n * 10} ms"
        packets = 4
        poisson = true
    "#),
    );
    let last = &plan.sources[2];
    assert_eq!(
        (&*last.name, last.values.at(0), last.start),
        ("s7", Value::Time(Nanos::from_millis(7)), Nanos::from_millis(70))
    );
    assert_eq!(
        (last.source.to_string(), last.destination.to_string()),
        ("10.0.0.1".into(), "10.0.0.2".into())
    );
    let every = Interval::of(Nanos::from_millis(7)).unwrap();
    assert_eq!(last.model(), Model::Poisson { every, size: 1000 });
    assert_eq!((last.size(), last.count, last.duration), (1000, Some(4), None));
    // 1000 bytes every 7 ms: 1 142 857.1 bit/s.
    assert_eq!(last.rate(), Some(Rate(1_142_857)));
}

#[test]
fn a_kind_without_settings_is_in_the_schedule() {
    let text = hosts(&[("a", "x"), ("b", "x")])
        + &bridges(&["x"])
        + "[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\n\
           [[at]]\ntime = \"1 s\"\nlink = \"l\"\nqueue = \"codel\"\nrate = \"2 Mbit/s\"\nloss = []\n";
    let plan = plan(&text);
    assert_eq!(plan.events[0].describe(&plan), "l: loss none, queue codel, rate 2 Mbit/s");
}

#[test]
fn namespaces_have_the_names_of_numbered_routers() {
    let text = "[[host]]\nname = \"h{n}\"\ncount = 2\naddress = \"10.{n}.0.2/24\"\n\
        [[router]]\nname = \"r{n + 1}\"\ncount = 2\ncontrol-plane = \"netns\"\n\
        ports = [{ port = \"h{n}\", addresses = \"10.{n}.0.1/24\" }]\n";
    let plan = plan(text);
    let named: Vec<_> = plan.control_planes().map(|router| &*router.name).collect();
    assert_eq!(named, ["r2", "r3"]);
}

#[test]
fn sources_have_models() {
    let text = hosts(&[("a", "x"), ("b", "x")])
        + &bridges(&["x"])
        + r#"
        [[source]]
        name = "s{n}"
        count = 2
        from = "a"
        to = "b"
        model = "pareto-on-off"
        rate = "{n} Mbit/s"
        on = "{n * 10} ms"
        off = "30 ms"
        shape = 1.5
        size = "100 B"
        [[source]]
        from = "b"
        to = "a"
        model = "replay"
        file = "0 ms 1000 B, 5 ms 200 B"
        speed = "1/2"
    "#;
    let plan = plan(&text);
    let means = [Nanos::from_millis(20), Nanos::from_millis(30)];
    let second = Model::OnOff { peak: Rate(2_000_000), means, shape: Some(1_500_000), size: 100 };
    assert_eq!(plan.sources[1].model(), second);
    let packets = Packets::new(vec![(Nanos::ZERO, 1000), (Nanos::from_millis(5), 200)]);
    let replay = Model::Replay { packets: packets.into(), speed: Speed::ratio(1, 2).unwrap() };
    assert_eq!((plan.sources[2].model(), plan.sources[2].size()), (replay, 1000));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = load(Path::new("no/such.toml")).unwrap_err().to_string();
    assert!(error.contains("no/such.toml") && error.contains("name a scenario file"), "{error}");
}

/// Hosts a and b, and sources from each to the other by name and end.
fn with_sources(list: &[(&str, &str)]) -> String {
    let source = |(name, from): &(&str, &str)| {
        let to = if *from == "a" { "b" } else { "a" };
        format!("[[source]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"1 Mbit/s\"\n")
    };
    hosts(&[("a", "x"), ("b", "x")]) + &bridges(&["x"]) + &list.iter().map(source).collect::<String>()
}

#[test]
fn a_source_keeps_its_number_and_no_other_gets_it() {
    let numbers = |plan: &Plan| -> Vec<_> { plan.sources.iter().map(|source| source.number).collect() };
    let first = plan(&with_sources(&[("s", "a"), ("t", "b")]));
    assert_eq!(numbers(&first), [0, 1]);
    let second = parse_after(&first, &with_sources(&[("t", "b"), ("u", "a")]), Nanos::ZERO).unwrap();
    assert_eq!(numbers(&second), [1, 2]);
    let third = parse_after(&second, &with_sources(&[("s", "a"), ("t", "b")]), Nanos::ZERO).unwrap();
    assert_eq!((numbers(&third), third.source_numbers), (vec![3, 1], 4));
}

#[test]
fn a_silent_port_stays_silent() {
    let names = |plan: &Plan| -> Vec<_> { plan.sources.iter().map(|source| source.name.clone()).collect() };
    let event = "[[at]]\ntime = \"1 s\"\nsource = \"t\"\nrate = \"2 Mbit/s\"\n\
        [[at]]\ntime = \"2 s\"\n[at.add.source]\nname = \"u\"\nfrom = \"a\"\nto = \"b\"\n\
        rate = \"1 Mbit/s\"\n";
    let text = with_sources(&[("s", "a"), ("t", "b")]) + event;
    let mut silent = plan(&text);
    assert_eq!(*silent.events[0].sources, [1]);
    assert_eq!(silent.silence(vec!["a".into()]), [(Box::from("s"), Box::from("a"))]);
    // Events name the sources that are left, and what is added later is silent, too.
    assert_eq!((names(&silent), &*silent.events[0].sources), (vec![Box::from("t")], &[0][..]));
    assert_eq!(names(&silent.stages[0].plan), [Box::from("t")]);
    let text = with_sources(&[("s", "a"), ("t", "b"), ("v", "b")]);
    let later = parse_after(&silent, &text, Nanos::ZERO).unwrap();
    assert_eq!(names(&later), ["t", "v"].map(Box::from));
}
