//! Processors that flows share: settings and warnings.

use longwire_scenario::{parse, plan_of};

/// Two hosts and a router with more `keys`.
pub fn shared(keys: &str) -> String {
    format!(
        "[[host]]\nname = \"a\"\naddress = \"10.0.1.9/24\"\n[[host]]\nname = \"b\"\n\
         address = \"10.0.2.9/24\"\n\
         [[router]]\nname = \"r\"\nports = [{{ port = \"a\", addresses = \"10.0.1.1/24\" }}, \
         {{ port = \"b\", addresses = \"10.0.2.1/24\" }}]\n{keys}\n"
    )
}

#[test]
fn processors_are_read() {
    let text = shared(
        "scheduler = \"cbcs\"\nprocessors = 4\nclock = \"600 MHz\"\ncycles = \"2400..3600\"\n\
         port-rate = \"50 Mbit/s\"\n\
         byte-charge = \"80 ns\"\nflow-key = [\"source\", \"protocol\"]\nflow-limit = 7\nflow-table = 9\n\
         packets = 50\n\
         estimator = \"ses 0.25\"\nrings = { ready = 3 }\n\
         flows = [{ name = \"x\", key = { destination-port = 53 }, weight = 3, cycles = \"100 + 2/byte\" }]",
    );
    let plan = plan_of(&text);
    let sharing = plan.routers[0].sharing.as_ref().unwrap();
    let settings = &sharing.settings;
    assert_eq!((&*sharing.scheduler, settings.processors, settings.clock_mhz), ("cbcs", 4, 600));
    assert_eq!((settings.flow_limit, settings.flows, settings.packets, sharing.rings.ready), (7, 9, 50, 3));
    assert_eq!((settings.port.bytes(100), settings.charged.bytes(100)), (16_000, 8000));
    assert!(sharing.fields.source && sharing.fields.protocol && !sharing.fields.destination);
    assert_eq!((&*sharing.flows[0].name, sharing.flows[0].weight.number()), ("x", 3));
    // The largest cost: 3600 cycles are 6000 ns, and 1514 bytes 121120 ns.
    assert_eq!((settings.quantum.0, plan.notes.len()), (127_120, 0));
    // A router without a scheduler has none of these.
    assert!(plan_of(&shared("")).routers[0].sharing.is_none());
}

#[test]
fn processors_that_cannot_be_are_refused() {
    let flow = |weight: &str| {
        format!(
            "scheduler = \"gmr3\"\nflows = [{{ name = \"x\", key = {{ protocol = \"udp\" }}, weight = \
             {weight} }}]"
        )
    };
    for (keys, part) in [
        (flow("0"), "flows.weight: \"0\" is out of range; write a whole number from 1 to 65535"),
        (flow("-3"), "flows.weight: \"-3\" is out of range"),
        ("scheduler = \"gmr\"".into(), "did you mean \"gmr3\"?"),
        ("processors = 2".into(), "there is no scheduler"),
        ("rings = {}".into(), "there is no scheduler"),
        ("scheduler = \"gmr3\"\nprocessors = 0".into(), "1 to 256"),
        (
            "scheduler = \"gmr3\"\nquantum = \"0 ns\"".into(),
            "11:11: router \"r\", quantum: \"0 ns\" is out of range; write a time from 1 ns to 4.29 s",
        ),
        (
            "scheduler = \"gmr3\"\nquantum = \"5 s\"".into(),
            "11:11: router \"r\", quantum: \"5 s\" is out of range",
        ),
        (
            "scheduler = \"cbcs\"\nbyte-charge = \"5 s\"".into(),
            "11:15: router \"r\", byte-charge: \"5 s\" is out of range; write at most 4.29 s",
        ),
        ("scheduler = \"gmr3\"\nport-rate = \"0\"".into(), "sends nothing"),
        (
            "scheduler = \"gmr3\"\nprocessors = -1".into(),
            "\"-1\" is out of range; write a whole number from 1 to 256",
        ),
        ("scheduler = \"gmr3\"\nprocessors = \"two\"".into(), "\"two\" is not a whole number"),
        ("scheduler = \"gmr3\"\nrings = 5".into(), "a table such as { input = 128 }"),
        ("scheduler = \"gmr3\"\nclock = \"0 MHz\"".into(), "is not a clock"),
        ("scheduler = \"gmr3\"\ncycles = \"5..1\"".into(), "write the fewest first"),
        ("scheduler = \"gmr3\"\nestimator = \"ses 2\"".into(), "out of range"),
        ("scheduler = \"gmr3\"\nflow-key = \"colour\"".into(), "packets have no \"colour\""),
        (format!("{}\nflow-table = 2", flow("1")), "give 3 or more"),
        ("scheduler = \"gmr3\"\nbudget = 10\nfirst-estimate = 11".into(), "0 to 10"),
    ] {
        let error = parse("s.toml", &shared(&keys)).unwrap_err().to_string();
        assert!(error.contains(part), "{keys}: {error}");
    }
}

/// The notes about a router with these `keys`.
fn notes(keys: &str) -> Vec<String> {
    plan_of(&shared(keys)).notes.iter().map(ToString::to_string).collect()
}

#[test]
fn a_quantum_below_what_a_packet_may_cost_is_warned_about() {
    const FLOW: &str = "flows = [{ name = \"x\", key = { protocol = \"udp\" }, cycles = 50_000 }]";
    for (scheduler, keys, part) in [
        ("gmr3", "quantum = \"3 us\"\ncycles = 3000", None),
        (
            "gmr3",
            "quantum = \"2999 ns\"\ncycles = 3000",
            Some("quantum: 2.999 us is below what a packet may cost, 3 us"),
        ),
        // Only the router's own work is known: 30 ns to classify, 95 ns to forward.
        ("gmr3", "quantum = \"125 ns\"", None),
        ("gmr3", "quantum = \"1 ns\"", Some("give 125 ns or more")),
        ("cbcs", "quantum = \"1 ns\"", Some("give 125 ns or more")),
        ("separate-drr", "quantum = \"1 ns\"", Some("give 125 ns or more")),
        // 1514 bytes at 50 Mbit/s.
        ("gmr3", "quantum = \"1 ns\"\nport-rate = \"50 Mbit/s\"", Some("give 242.24 us or more")),
        ("gmr3", &format!("quantum = \"20 us\"\n{FLOW}"), Some("give 50 us or more")),
        ("separate-drr", "quantum-bytes = 1514", None),
        (
            "separate-drr",
            "quantum-bytes = 1",
            Some("10:17: router \"r\", quantum-bytes: 1 byte is below what a packet may cost, 1514 bytes"),
        ),
        // Schedulers that have none.
        ("mr3", "quantum = \"1 ns\"\nquantum-bytes = 1", None),
    ] {
        let told = notes(&format!("{keys}\nscheduler = \"{scheduler}\""));
        match part {
            Some(part) => assert!(told.len() == 1 && told[0].contains(part), "{scheduler}, {keys}: {told:?}"),
            None => assert!(told.is_empty(), "{scheduler}, {keys}: {told:?}"),
        }
    }
}

#[test]
fn a_quantum_that_is_not_given_is_large_enough() {
    for (keys, quantum, bytes) in [
        ("scheduler = \"gmr3\"", 20_000, 1518),
        ("scheduler = \"gmr3\"\ncycles = 3000", 3000, 1518),
        ("scheduler = \"gmr3\"\nport-rate = \"50 Mbit/s\"", 242_240, 1518),
        ("scheduler = \"cbcs\"\nport-rate = \"50 Mbit/s\"", 242_240 + 125, 1518),
        ("scheduler = \"separate-drr\"\nbudget = 7000", 7000, 1518),
    ] {
        let plan = plan_of(&shared(keys));
        let settings = &plan.routers[0].sharing.as_ref().unwrap().settings;
        assert_eq!((settings.quantum.0, settings.quantum_bytes), (quantum, bytes), "{keys}");
        assert!(plan.notes.is_empty(), "{keys}");
    }
    let long =
        shared("scheduler = \"separate-drr\"").replace("10.0.2.1/24\" }", "10.0.2.1/24\", mtu = 9000 }");
    assert_eq!(plan_of(&long).routers[0].sharing.as_ref().unwrap().settings.quantum_bytes, 9014);
}

#[test]
fn room_for_fewer_packets_than_flows_need_is_noted() {
    let few = |packets: u32, flows: u32| {
        Some(format!("room for {packets} packets is not enough for {flows} flows (flow-table)"))
    };
    for (keys, packets, part) in [
        ("scheduler = \"gmr3\"", 4096, None),
        ("scheduler = \"gmr3\"\npackets = 2048", 2048, None),
        ("scheduler = \"gmr3\"\npackets = 2047", 2047, few(2047, 1024)),
        ("scheduler = \"gmr3\"\npackets = 64\nflow-table = 32", 64, None),
        // Four each by default, up to half of the packet memory.
        ("scheduler = \"gmr3\"\nflow-table = 10_000", 40_000, None),
        ("scheduler = \"gmr3\"\nflow-table = 100_000", 65_536, few(65_536, 100_000)),
        // One queue for all, first come first served.
        ("scheduler = \"fifo\"\npackets = 64", 64, None),
    ] {
        let plan = plan_of(&shared(keys));
        assert_eq!(plan.routers[0].sharing.as_ref().unwrap().settings.packets, packets, "{keys}");
        let told: Vec<_> = plan.notes.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), usize::from(part.is_some()), "{keys}: {told:?}");
        assert!(part.is_none_or(|part| told[0].contains(&part)), "{keys}: {told:?}");
    }
    let told = notes("scheduler = \"gmr3\"\npackets = 100");
    assert!(told[0].contains("give packets = 2048 or more, or flow-table = 50 or less"), "{told:?}");
}

#[test]
fn a_budget_below_what_each_packet_takes_is_noted() {
    let flow = |cycles: &str| {
        format!("flows = [{{ name = \"x\", key = {{ protocol = \"udp\" }}, cycles = {cycles} }}]")
    };
    for (keys, part) in [
        ("cycles = 3000\nbudget = 3000".into(), None),
        (
            "cycles = 3000\nbudget = 2999".into(),
            Some("cycles: each packet of a flow without cycles of its own takes at least 3000 cycles"),
        ),
        // 100 us.
        (
            flow("100_001"),
            Some(
                "flow \"x\" takes at least 100001 cycles in virtual time, and is stopped and lost after \
                 100000 (budget)",
            ),
        ),
        (flow("\"100_001..200_000\""), Some("give budget = 100001 or more, or fewer cycles")),
        // Some of its packets pass.
        (flow("\"1000..200_000\""), None),
        (flow("\"1000 + 200/byte\""), None),
        // An endless program is allowed there.
        (flow("\"endless\""), None),
    ] {
        for scheduler in ["gmr3", "mr3"] {
            let told = notes(&format!("{keys}\nscheduler = \"{scheduler}\""));
            let is_told = |part| told.len() == 1 && told[0].contains(part);
            assert!(part.map_or(told.is_empty(), is_told), "{keys}: {told:?}");
        }
    }
}

#[test]
fn fewer_waiting_than_a_turn_may_send_is_noted() {
    let heavy = |weight: u32| {
        format!(
            "cycles = 100\nflows = [{{ name = \"heavy\", key = {{ protocol = \"tcp\" }}, cycles = 5000 }}, \
             {{ name = \"x\", key = {{ protocol = \"udp\" }}, weight = {weight} }}]"
        )
    };
    let told_of = |lacks: &str| Some(lacks.to_owned());
    for (scheduler, keys, part) in [
        // The quantum is the 5 us of the expensive flow: 50 packets of 100 ns for each unit of weight.
        ("separate-drr", heavy(5), None),
        (
            "separate-drr",
            heavy(6),
            told_of(
                "256 packets of flow \"x\" may wait (flow-limit), and in a turn its weight lets it send 300",
            ),
        ),
        ("cbcs", heavy(6), told_of("give flow-limit = 300 or more")),
        ("cbcs", format!("flow-limit = 300\n{}", heavy(6)), None),
        (
            "cbcs",
            format!("packets = 2048\nflow-limit = 299\n{}", heavy(6)),
            told_of("give flow-limit = 300 or more"),
        ),
        // Three flows and one more, of weights 1 + 6 + 1 + 1: 300 places are half of a quarter and of two
        // thirds.
        (
            "cbcs",
            format!("packets = 600\nflow-table = 9\n{}", heavy(6)),
            told_of("give flow-limit = 300 or more, and packets = 660 or more"),
        ),
        ("cbcs", heavy(65_535), told_of("make its weight, or the quantum, smaller")),
        // Heavy flows have more turns there, of up to two quanta.
        ("gmr3", heavy(65_535), None),
        ("gmr3", format!("flow-limit = 74\n{}", heavy(6)), told_of("lets it send 75")),
        // Processors and their shortage: a packet takes 50 ns of two.
        (
            "cbcs-normalised",
            format!("processors = 2\nquantum = \"5 us\"\n{}", heavy(3)),
            told_of("lets it send 300"),
        ),
        (
            "gmr3",
            "cycles = 100\nquantum = \"25700 ns\"".into(),
            told_of("of a flow without cycles of its own may wait"),
        ),
        ("gmr3", "quantum = \"25700 ns\"".into(), None),
        ("mr3", heavy(60), None),
        ("fifo", heavy(60), None),
    ] {
        let told = notes(&format!("{keys}\nscheduler = \"{scheduler}\""));
        let is_told = |part: &String| told.len() == 1 && told[0].contains(part);
        assert!(part.as_ref().map_or(told.is_empty(), is_told), "{scheduler}, {keys}: {told:?}");
    }
}

#[test]
fn one_queue_for_all_has_no_limit_for_each_flow_unless_it_is_given() {
    for (keys, limit) in [
        ("scheduler = \"gmr3\"", 256),
        ("scheduler = \"fifo\"", 4096),
        ("scheduler = \"fifo\"\npackets = 64", 64),
        ("scheduler = \"fifo\"\nflow-limit = 7", 7),
    ] {
        let plan = plan_of(&shared(keys));
        assert_eq!(plan.routers[0].sharing.as_ref().unwrap().settings.flow_limit, limit, "{keys}");
    }
}

#[test]
fn one_of_a_thing_is_reported_as_one() {
    let told = notes("scheduler = \"gmr3\"\npackets = 1");
    assert!(told[0].contains("room for 1 packet is not enough for 1024 flows (flow-table)"), "{told:?}");
    // No flow table is small enough for it.
    assert!(
        told[0].contains("give packets = 2048 or more") && !told[0].contains("or flow-table"),
        "{told:?}"
    );
    let told = notes("scheduler = \"gmr3\"\npackets = 1\nflow-table = 1");
    assert!(told[0].contains("room for 1 packet is not enough for 1 flow (flow-table)"), "{told:?}");
    let flows =
        "scheduler = \"gmr3\"\nflow-table = 1\nflows = [{ name = \"x\", key = { protocol = \"udp\" } }]";
    let refused = parse("s.toml", &shared(flows)).unwrap_err().to_string();
    assert!(
        refused.contains(
            "there is room for 1 flow, and 1 flow has a name, with a place for every one of 2 ports: 2\n"
        ),
        "{refused}"
    );
    let two = flows
        .replace("key = { protocol = \"udp\" }", "key = { protocol = \"tcp\" } }, { name = \"y\", key = {}");
    let refused = parse("s.toml", &shared(&two)).unwrap_err().to_string();
    let multiplied = "2 flows have names, each with a place for every one of 2 ports: 4\n";
    assert!(refused.contains(multiplied) && refused.contains("give 5 or more"), "{refused}");
    let one = "[[host]]\nname = \"a\"\naddress = \"10.0.1.9/24\"\n[[router]]\nname = \"r\"\n\
        ports = [{ port = \"a\", addresses = \"10.0.1.1/24\" }]\n";
    let refused = parse("s.toml", &format!("{one}{flows}")).unwrap_err().to_string();
    assert!(refused.contains("there is room for 1 flow, and 1 flow has a name\n"), "{refused}");
}

#[test]
fn flows_of_one_key_are_noted() {
    let told = notes(
        "scheduler = \"gmr3\"\nflows = [{ name = \"x\", key = { protocol = \"udp\" } }, { name = \"y\", key \
         = { protocol = \"udp\" } }]",
    );
    assert!(told.len() == 1 && told[0].contains("flow \"y\" has the same key as flow \"x\""), "{told:?}");
}

#[test]
fn rings_that_are_too_long_for_threads_are_reported_with_their_place() {
    // 512 buffers: 4 · (127 + 1).
    for (processors, requests, most) in
        [(4, 127, None), (4, 128, Some(127)), (1, 60_000, None), (2, 300, Some(255))]
    {
        let keys =
            format!("scheduler = \"gmr3\"\nprocessors = {processors}\nrings = {{ requests = {requests} }}");
        let plan = plan_of(&shared(&keys));
        let told = plan.routers[0].not_in_real_time.as_ref().map(ToString::to_string);
        let Some(most) = most else {
            assert_eq!(told, None, "{keys}");
            continue;
        };
        let told = told.unwrap();
        assert!(
            told.starts_with("scenario.toml:12:22: router \"r\", rings.requests: ")
                && told.contains(&format!("give {most} or less")),
            "{told}"
        );
    }
}
