//! Routers beside a link through the sky: what follows its state takes another path while it is down.

use crate::RoutedLab;
use crate::support::lab::{RunningLab, are_available};
use crate::support::{Folder, longwire, stderr, stdout};
use longwire_lab::abilities;

/// A satellite for ten seconds; when another takes over, five seconds without. The traces repeat, so that
/// both states come again however long this test takes to see them.
const SKY: &str = r#"
duration = "30 s"
epoch = "10 s"
handover-outage = "5 s"
minimum-elevation = 40
repeats = true
control-plane = true

[walker]
pattern = "delta"
inclination = 53
satellites = 1584
planes = 72
phasing = 39
altitude-km = 550

[[station]]
name = "user"
latitude = 47.6
longitude = -122.3

[[station]]
name = "gate"
latitude = 47.5
longitude = -122

[[path]]
between = ["user", "gate"]
via = "bent-pipe"

[[path]]
between = ["user", "gate"]
via = "ground"
delay = "30 ms"
"#;

#[test]
fn a_handover_moves_the_route_to_the_ground_and_back() {
    let test = "handover";
    if !are_available(test, &[&abilities().tap]) {
        return;
    }
    let folder = Folder::new(test);
    let (file, sky) = (folder.write("sky.toml", SKY), folder.text("sky"));
    let made = longwire(&["constellation", &file, "--output", &sky]);
    assert!(made.status.success(), "{}", stderr(&made));
    let states = std::fs::read_to_string(folder.path("sky/user--gate.state")).unwrap();
    assert!(states.contains(", up\n") && states.contains(", down\n"), "{states}");
    let Some(lab) = RunningLab::of_file(test, &format!("{sky}/constellation.toml")) else { return };
    let lab = RoutedLab(lab);
    // Routes as a routing daemon would write them: the sky is better while it has a carrier.
    for (router, script) in [
        (
            "user-router",
            "ip route add 10.2.0.0/24 via 10.200.0.2 metric 10
             ip route add 10.2.0.0/24 via 10.200.0.6 metric 20
             echo 1 > /proc/sys/net/ipv4/conf/user-1/ignore_routes_with_linkdown",
        ),
        (
            "gate-router",
            "ip route add 10.1.0.0/24 via 10.200.0.1 metric 10
             ip route add 10.1.0.0/24 via 10.200.0.5 metric 20
             echo 1 > /proc/sys/net/ipv4/conf/gate-1/ignore_routes_with_linkdown",
        ),
    ] {
        let done = lab.sh(router, &format!("set -e\n{script}"));
        assert!(done.status.success(), "{router}: {}{}", stdout(&done), stderr(&done));
    }
    let (by_sky, by_ground) = ("via 10.200.0.2 dev user-1", "via 10.200.0.6 dev user-2");
    for way in [by_sky, by_ground, by_sky, by_ground] {
        lab.until_routes("user-router", &[&format!("10.2.0.0/24 {way}")]);
    }
    lab.until("user", "ping -c 1 -W 2 10.2.0.2", &["ttl=62"]);
    lab.until("user-router", "ip -o link show user-1", &["NO-CARRIER"]);
    lab.until("user-router", "ip -o link show user-1", &["LOWER_UP"]);
}
