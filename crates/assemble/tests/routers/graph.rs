//! Where routers, their ports and routes lead, and what is wrong with them.

use super::routes::ROW;
use super::{HOSTS, between, check, plan};
use longwire_scenario::parse;
use std::path::PathBuf;

#[test]
fn a_router_sits_on_hosts() {
    let plan = plan(&between("routes = [{ to = \"192.0.2.0/24\", via = \"10.0.2.7\" }]\n"));
    let router = &plan.routers[0];
    assert_eq!(router.ports.iter().map(|port| port.place).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(router.ports[0].mac.to_string(), "02:4c:57:01:00:00");
    assert_eq!(router.written(&router.routes[0]), "192.0.2.0/24 via 10.0.2.7 dev b");
    let gateways: Vec<String> = plan.hosts[1].gateways.iter().map(ToString::to_string).collect();
    assert_eq!(gateways, ["10.0.2.1", "fd02::1"]);
    let segment = &plan.segments[plan.ports[0].segment as usize];
    assert_eq!((segment.router, &segment.ports[..]), (Some(0), &[0, 1][..]));
}

#[test]
fn ports_of_its_own_have_a_far_side() {
    let plan = plan(ROW);
    let place = |name: &str| plan.routers.iter().find_map(|router| router.port(name)).unwrap().place;
    let far = |place: u16| plan.ports[usize::from(place)].attachment.far().unwrap();
    assert_eq!((far(place("r1-wan")), far(place("r2-wan"))), (place("r2-wan"), place("r1-wan")));
    // A host's link to a router's port is on a bridge of the two.
    let lan = far(place("r1-lan"));
    assert_eq!((far(lan), plan.ports[usize::from(lan)].segment), (place("r1-lan"), plan.ports[0].segment));
    assert!(plan.pair_route(0, lan).is_some_and(|links| links == [0]));
    // Packets made by the router are sent over the link, too.
    let wan = place("r1-wan");
    assert!(
        plan.pair_route(wan, wan).is_some_and(|links| &*plan.links[links[0] as usize].name == "wan.forward")
    );
    assert_eq!(plan.hosts[0].gateways[0].to_string(), "10.0.1.1");
}

#[test]
fn mistakes_of_ports_are_reported_with_their_place_and_the_fix() {
    let two = |ports: &str| format!("[[router]]\nname = \"r\"\nports = [{ports}]\n");
    let table = [
        (two(""), "4:8: router \"r\", ports: ", "needs a port"),
        (two("{ port = \"aa\" }"), "5:19: router \"r\", ports.port: ", "did you mean \"a\"?"),
        (
            two("{ port = \"x\" }, { port = \"a\" }"),
            "5:19: router \"r\"",
            "no host or port \"x\", and no link",
        ),
        (two("{ port = \"a\" }, { port = \"a\" }"), "5:35: ", "a port of router \"this one\" already"),
        (two("{ port = \"a\", addresses = \"10.0.1.1\" }"), "5:36: ", "write \"10.0.1.1/24\""),
        (two("{ port = \"a\", addresses = \"10.0.1.0/24\" }"), "5:36: ", "can't be the address"),
        (two("{ port = \"a\", mtu = 1000 }"), "5:30: ", "1280 to 65535"),
        (
            two(
                "{ port = \"a\", addresses = \"10.0.0.1/8\" }, { port = \"b\", addresses = \"10.0.2.1/24\" }",
            ),
            "5:61: router \"r\", ports.addresses: ",
            "the networks of \"a\" and \"b\" overlap",
        ),
        (
            two("{ port = \"a\", adresses = \"10.0.1.1/24\" }"),
            "5:24: router \"r\", ports: ",
            "\"addresses\"?",
        ),
    ];
    for (text, place, wanted) in table {
        check(&text, place, wanted);
    }
}

#[test]
fn mistakes_of_routes_and_links_are_reported_with_their_place_and_the_fix() {
    let two = |ports: &str| format!("[[router]]\nname = \"r\"\nports = [{ports}]\n");
    let table = [
        (
            between("routes = [{ to = \"10.3.0.0/16\", via = \"10.4.0.1\" }]\n"),
            "7:18: ",
            "(10.0.1.1/24, fd01::1/64",
        ),
        (between("routes = [{ to = \"10.3.0.0/16\", port = \"c\" }]\n"), "7:40: ", "no port \"c\""),
        (
            between("routes = [{ to = \"10.3.0.0/16\", via = \"10.0.1.7\", port = \"b\" }]\n"),
            "7:18: router \"r\", routes: ",
            "10.0.1.7 is in the network of \"a\", not behind \"b\": name that port",
        ),
        (
            between(
                "[[forwarder]]\nrouter = \"r\"\nprogram = \"syn-monitor\"\nvia = \"fd02::7\"\nport = \"a\"\n",
            ),
            "10:7: forwarder \"syn-monitor\", via: ",
            "fd02::7 is in the network of \"b\", not behind \"a\"",
        ),
        (between("routes = [{ to = \"10.3.0.0/16\" }]\n"), "7:18: ", "name a gateway, a port, or discard it"),
        (
            between(
                "routes = [{ to = \"10.3.0.0/16\", port = \"a\" }, { to = \"10.3.0.0/16\", discard = true \
                 }]\n",
            ),
            "7:54: ",
            "a route to 10.3.0.0/16 already",
        ),
        (between("police = { errors = \"1000\" }\n"), "7:21: router \"r\", police.errors: ", "\"1000/s\""),
        (
            between("routes-file = \"none.txt\"\n"),
            "7:15: router \"r\", routes-file: ",
            "none.txt: No such file",
        ),
        (
            between("[[link]]\nbetween = [\"a\", \"r\"]\n"),
            "8:17: link \"a-r\", between: ",
            "\"r\" is a router",
        ),
        (
            between("[[bridge]]\nname = \"x\"\n[[link]]\nbetween = [\"a\", \"x\"]\n"),
            "9:1: link \"a-x\"",
            "is a port of router \"r\"",
        ),
        (between("[[router]]\nname = \"r\"\nports = [{ port = \"c\" }]\n"), "8:8: ", "two nodes named \"r\""),
        (two("{ port = \"a\" }"), "2:10: host \"b\": ", "it is not attached to anything"),
    ];
    for (text, place, wanted) in table {
        check(&text, place, wanted);
    }
}

#[test]
fn mistakes_of_paths_are_reported_with_their_place_and_the_fix() {
    let row = |change: (&str, &str)| ROW.replacen(change.0, change.1, 1);
    let table = [
        (
            between("[[path]]\nfrom = \"a\"\nto = \"b\"\nlinks = []\n"),
            "8:8: ",
            "a router is there, which chooses the path",
        ),
        (
            row(("\"b\", \"r2-lan\"", "\"b\", \"r1-lan\"")),
            "17:8: link \"lan2.forward\"",
            "joined to \"a\" already",
        ),
        (
            row(("delay = \"30 ms\"", "match = [{ source = \"10.0.1.9\", destination = \"10.0.2.9\" }]")),
            "21:8: ",
            "links are not chosen by addresses",
        ),
        (
            row((
                "delay = \"30 ms\"",
                "forward = { filter = \"steer aside if udp\" }\n\
                 [[link]]\nname = \"aside\"\nfrom = \"r1-wan\"\nto = \"r2-wan\"",
            )),
            "25:8: link \"aside\": ",
            "no filter steers to a link where routers have ports of their own",
        ),
    ];
    for (text, place, wanted) in table {
        check(&text, place, wanted);
    }
}

#[test]
fn mistakes_of_events_are_reported_with_their_place_and_the_fix() {
    let table = [
        (
            between("[[at]]\ntime = \"1 s\"\nrouter = \"q\"\nremove-route = \"10.0.0.0/8\"\n"),
            "9:10: at \"1 s\", router: ",
            "no router \"q\"",
        ),
        (
            between("[[at]]\ntime = \"1 s\"\nrouter = \"r\"\nrate = \"1 Mbit/s\"\n"),
            "7:1: ",
            "write an entry for each",
        ),
        (
            between("[[at]]\ntime = \"1 s\"\nrouter = \"r\"\nadd-route = \"10.4.0.0/16 via 10.5.0.1\"\n"),
            "10:13: at \"1 s\", add-route: ",
            "in none of the router's networks",
        ),
        (
            between("[[at]]\ntime = \"1 s\"\nrouter = \"r\"\nadd-route = \"10.4.0.0/16 via 10.0.2.1\"\n"),
            "10:13: at \"1 s\", add-route: ",
            "10.0.2.1 is the router's own address at \"b\"",
        ),
        (
            between(
                "[[at]]\ntime = \"1 s\"\nrouter = \"r\"\nadd-route = \"10.4.0.0/16 via 10.0.2.7 dev a\"\n",
            ),
            "10:13: at \"1 s\", add-route: ",
            "10.0.2.7 is in the network of \"b\", not behind \"a\"",
        ),
        (
            between("[[at]]\ntime = \"1 s\"\nrouter = \"r\"\nremove-route = \"10.0.2.1/32\"\n"),
            "10:16: at \"1 s\", remove-route: ",
            "10.0.2.1/32 is the router's own at \"b\"",
        ),
        (
            between(
                "[[at]]\ntime = \"1 s\"\nrouter = \"r\"\n\
                 remove-route = [\"10.7.0.0/16\", \"10.0.1.255/32\"]\n",
            ),
            "10:32: at \"1 s\", remove-route: ",
            "10.0.1.255/32 is the router's own at \"a\"",
        ),
        (
            between("[[at]]\ntime = \"1 s\"\nrouter = \"r\"\nadd-route = \"fd01::1/128 dev b\"\n"),
            "10:13: at \"1 s\", add-route: ",
            "fd01::1/128 is the router's own at \"a\"",
        ),
    ];
    for (text, place, wanted) in table {
        check(&text, place, wanted);
    }
}

#[test]
fn routes_by_which_nothing_goes_are_noted() {
    let told = |keys: &str| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let scenario = format!("{HOSTS}{}", between(keys));
        let plan = parse(&folder.join("s.toml").display().to_string(), &scenario).unwrap();
        plan.notes
            .iter()
            .map(|note| format!("{}: {} = {}", note.field, note.what, note.fix))
            .collect::<Vec<_>>()
    };
    for (net, what) in [
        ("224.0.0.0/4", "groups"),
        ("127.0.0.0/8", "loopback addresses"),
        ("169.254.0.0/16", "addresses within a link"),
        ("240.0.0.0/8", "reserved addresses"),
        ("ff00::/8", "groups"),
        ("fe80::/10", "addresses within a link"),
        ("::1/128", "the unspecified and the loopback address"),
    ] {
        let routes = format!(
            "routes = [{{ to = \"{net}\", port = \"b\" }}, {{ to = \"10.7.0.0/16\", port = \"b\" }}]\n"
        );
        let wanted = format!(
            "router \"r\", routes: the route to {net} is never used: nothing is forwarded to {what} = leave \
             it out"
        );
        assert_eq!(told(&routes), [wanted], "{net}");
    }
    let event = "[[at]]\ntime = \"1 s\"\nrouter = \"r\"\n\
        add-route = [\"10.7.0.0/16 dev b\", \"224.0.0.0/24 dev b\"]\n";
    let notes = told(event);
    assert!(
        notes.len() == 1 && notes[0].starts_with("at \"1 s\", add-route: the route to 224.0.0.0/24"),
        "{notes:?}"
    );
    // For a table they are reported once.
    let table =
        "10.7.0.0/16 dev b\nfe80::/64 dev a proto kernel\nfe80::/64 dev b proto kernel\nff02::/16 dev b\n";
    std::fs::write(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("unused.txt"), table).unwrap();
    let notes = told("routes-file = \"unused.txt\"\n");
    let wanted = "router \"r\", routes-file: unused.txt:2: the route to fe80::/64 is never used: nothing is \
        forwarded to addresses within a link = leave it out, and 2 more";
    assert_eq!(notes, [wanted]);
    // The default prefix is not among them.
    assert_eq!(
        told("routes = [{ to = \"0.0.0.0/0\", port = \"b\" }, { to = \"::/0\", discard = true }]\n"),
        [""; 0]
    );
}

#[test]
fn neighbours_that_are_none_are_noted() {
    for (address, what) in [
        ("10.0.1.1", Some("10.0.1.1 is the router's own address at \"a\"")),
        (
            "10.0.2.255",
            Some("10.0.2.255 is not a host's, but means all, or any router, in the network of \"b\""),
        ),
        ("fd01::", Some("fd01:: is not a host's")),
        ("10.0.1.2", None),
    ] {
        let keys = format!("neighbours = [{{ address = \"{address}\", mac = \"02:00:00:00:00:09\" }}]\n");
        let told: Vec<String> = plan(&between(&keys)).notes.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), usize::from(what.is_some()), "{address}: {told:?}");
        assert!(
            what.is_none_or(|what| told[0].starts_with("scenario.toml:7:27: ") && told[0].contains(what)),
            "{told:?}"
        );
    }
}
