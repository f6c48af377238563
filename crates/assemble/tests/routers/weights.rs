//! Weights of flows that change.

use super::processors::shared;
use crate::support::count;
use longwire_scenario::{parse, plan_of};
use longwire_units::Nanos;

#[test]
fn a_change_of_a_flow_that_names_no_router_is_reported_which_there_are() {
    let two = "\n[[host]]\nname = \"c\"\naddress = \"10.0.3.9/24\"\n[[router]]\nname = \"s\"\n\
        ports = [{ port = \"c\", addresses = \"10.0.3.1/24\" }]\n";
    for (more, fix) in [
        ("", "add router = \"r\", or leave it out"),
        (two, "add router = \"…\" (there are r, s), or leave it out"),
    ] {
        let change = "[[at]]\ntime = \"1 s\"\nflow = \"x\"\nweight = 2\n";
        let error = parse("s.toml", &shared(&format!("scheduler = \"gmr3\"\n{more}{change}")))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("flow is about a router, and none is named") && error.contains(fix),
            "{error}"
        );
        assert!(!error.contains("no link"), "{error}");
    }
}

#[test]
fn weights_change_at_their_time() {
    let flows = "scheduler = \"drfq\"\ncycles = 1000\nflow-limit = 4096\nestimator = \"exact\"\nflows = [\
        { name = \"x\", key = { source = \"10.0.1.9\" } }, { name = \"y\", key = { source = \"10.0.1.8\" } \
        }]\n";
    let source = |host: u8| {
        format!(
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nname = \"s{host}\"\nsource = \"10.0.1.{host}\"\n\
             interval = \"1 us\"\nfor = \"2 ms\"\n"
        )
    };
    let event = "[[at]]\ntime = \"1 ms\"\nrouter = \"r\"\nflow = \"x\"\nweight = 3\n";
    let text = shared(&format!("{flows}{}{}{event}", source(9), source(8)));
    let text = text.replacen("\"10.0.1.9/24\"", "[\"10.0.1.9/24\", \"10.0.1.8/24\"]", 1);
    let plan = plan_of(&text);
    assert_eq!(plan.router_events[0].describe(&plan.routers), "router r: flow x weighs 3");
    let sent = |until: u64| {
        let report = count(&plan, Nanos::from_micros(until));
        let flows = &report.nodes[0].stats.processors.as_ref().unwrap().flows;
        ["x", "y"].map(|name| {
            flows.iter().filter(|flow| flow.flow == name).map(|flow| flow.out_packets).sum::<u64>()
        })
    };
    // A packet per microsecond: half each, then three of four for x.
    let ([x, y], [late_x, late_y]) = (sent(1000), sent(2000));
    assert!(x.abs_diff(500) < 3 && y.abs_diff(500) < 3, "{x} {y}");
    assert!((late_x - x).abs_diff(750) < 5 && (late_y - y).abs_diff(250) < 5, "{late_x} {late_y}");
}

#[test]
fn weights_that_cannot_be_are_refused() {
    let at = |keys: &str| {
        let router = "scheduler = \"gmr3\"\nflows = [{ name = \"voice\", key = { protocol = \"udp\" } }]";
        shared(&format!("{router}\n[[at]]\ntime = \"1 s\"\n{keys}"))
    };
    for (keys, part) in [
        ("router = \"r\"\nflow = \"vioce\"\nweight = 2", "did you mean \"voice\"?"),
        ("router = \"r\"\nflow = \"voice\"\nweight = 0", "write a whole number from 1 to 65535"),
        ("router = \"r\"\nflow = \"voice\"", "its weight is missing"),
        ("router = \"r\"\nweight = 2", "it does not say of which flow"),
        ("flow = \"voice\"\nweight = 2", "add router = "),
        ("add-route = \"blackhole 10.9.0.0/16\"", "add router = "),
    ] {
        let error = parse("s.toml", &at(keys)).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(part), "{keys}: {error}");
    }
}
