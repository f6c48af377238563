//! A router that follows a namespace of this machine. Without the right to make one the tests are skipped
//! with a message.

use longwire_lab::{Namespace, abilities};
use longwire_mirror::{
    Change, Destination, HopSpec, Mirror, Pair, PortSpec, RouteSpec, Target, configure, routes_of,
};
use longwire_netlink::{Message, Socket, interface_index};
use longwire_router::{Member, NextHop, RouteHops, Router, RouterConfig, RouterPort};
use longwire_units::Nanos;
use std::net::IpAddr;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longest wait for expected events: other tests may use the processors.
const PATIENCE: Duration = Duration::from_secs(120);
const PLACE: u16 = 10;

/// A namespace with two interfaces, `p0` and `other`, for the router's ports at [`PLACE`] and after it, and
/// the router that follows it.
struct FollowedNamespace {
    name: String,
    namespace: Namespace,
    router: Arc<Mutex<Router>>,
    mirror: Mirror,
    told: Receiver<Event>,
}

struct Direct {
    router: Arc<Mutex<Router>>,
    told: Sender<Event>,
}

/// Actions of the mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// The mirror waits to update the router.
    Waits,
    /// It has updated the router.
    Told,
}

impl Target for Direct {
    fn routes(&mut self) -> Option<Vec<(Destination, RouteHops)>> {
        Some(routes_of(&self.router.lock().unwrap()))
    }

    fn apply(&mut self, changes: Vec<Change>) -> Option<Vec<bool>> {
        // The test may have ended.
        let _ = self.told.send(Event::Waits);
        let mut router = self.router.lock().unwrap();
        let done: Vec<bool> =
            changes.into_iter().map(|change| change.carry_out(&mut router, Nanos::ZERO)).collect();
        let _ = self.told.send(Event::Told);
        Some(done)
    }
}

impl FollowedNamespace {
    fn new(test: &str) -> Option<Self> {
        Self::with_room(test, None)
    }

    /// With this receive buffer of the mirror, in bytes.
    fn with_room(test: &str, room: Option<usize>) -> Option<Self> {
        let can = abilities();
        for ability in [&can.root, &can.namespaces] {
            if !ability.available {
                println!("skipped {test}: {}", ability.reason);
                return None;
            }
        }
        let name = format!("lw-mirror-{}-{test}", std::process::id());
        let namespace = Namespace::create(&name).unwrap();
        sh(
            &namespace,
            "ip link add p0 type veth peer name p1 && ip link set p1 up && ip link add other type veth peer \
             name far",
        );
        let port = PortSpec { name: "p0".into(), addresses: vec!["10.0.0.1/24".parse().unwrap()] };
        let route = |to: &str, hops: &[(Option<&str>, u16)]| {
            let hop = |&(via, weight): &(Option<&str>, u16)| HopSpec {
                via: via.map(|via| via.parse().unwrap()),
                port: "p0".into(),
                weight,
            };
            RouteSpec { to: to.parse().unwrap(), hops: hops.iter().map(hop).collect() }
        };
        let routes = [
            route("10.1.0.0/16", &[(Some("10.0.0.2"), 1)]),
            route("10.2.0.0/16", &[]),
            route("10.3.0.0/16", &[(Some("10.0.0.2"), 3), (Some("10.0.0.3"), 1)]),
            route("fd03::/16", &[(Some("fe80::2"), 1), (Some("fe80::3"), 256)]),
            route("fd02::/16", &[(None, 1)]),
        ];
        let index = namespace.run(|| configure(&[port], &routes)).unwrap().unwrap()[0];
        let config =
            RouterConfig { ports: [PLACE, PLACE + 1].map(port_at).into(), ..RouterConfig::default() };
        let mut router = Router::new(config).unwrap();
        // The namespace does not have it, so it is removed.
        router.add_route_v4("10.99.0.0/16".parse().unwrap(), NextHop::Direct { port: PLACE }).unwrap();
        let router = Arc::new(Mutex::new(router));
        let (sender, told) = channel();
        let target = Direct { router: Arc::clone(&router), told: sender };
        let other = namespace.run(|| interface_index("other")).unwrap().unwrap();
        let pairs = [Pair { index, port: PLACE }, Pair { index: other, port: PLACE + 1 }];
        let target = Box::new(target);
        let mirror = match room {
            None => Mirror::start(&namespace, &pairs, target),
            Some(room) => Mirror::with_room(&namespace, &pairs, target, room),
        };
        let mirror = mirror.unwrap();
        Some(Self { name, namespace, router, mirror, told })
    }

    fn sh(&self, script: &str) {
        sh(&self.namespace, script);
    }

    fn way(&self, to: &str) -> Option<RouteHops> {
        let routes = routes_of(&self.router.lock().unwrap());
        routes.into_iter().find(|(known, _)| known.to_string() == to).map(|(_, way)| way)
    }

    /// The next hop of a route that has only one.
    fn hop(&self, to: &str) -> Option<NextHop> {
        match self.way(to) {
            Some(RouteHops::One(hop)) => Some(hop),
            _ => None,
        }
    }

    fn routes(&self) -> usize {
        self.router.lock().unwrap().routes_v4().count()
    }

    /// Waits until an update of the router makes `is` true.
    fn until(&self, what: &str, is: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is(self) {
            let rest = end.saturating_duration_since(Instant::now());
            assert!(self.told.recv_timeout(rest).is_ok(), "{what}: {:?}", self.mirror.stats());
            // What came meanwhile is in the router too: to look after each of many updates takes long.
            self.told.try_iter().for_each(drop);
        }
    }
}

impl Drop for FollowedNamespace {
    fn drop(&mut self) {
        // Only the name is left, which would be noticed.
        let _ = Namespace::remove(&self.name);
    }
}

/// A port of the router.
fn port_at(place: u16) -> RouterPort {
    RouterPort { place, mac: [2, 0, 0, 0, 0, place as u8], mtu: 1500, v4: vec![], v6: vec![] }
}

fn sh(namespace: &Namespace, script: &str) {
    let done = namespace.run(|| Command::new("sh").args(["-ec", script]).output()).unwrap().unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
}

fn via(last: u8) -> Option<NextHop> {
    Some(NextHop::via(PLACE, IpAddr::from([10, 0, 0, last])))
}

#[test]
fn what_is_there_then_what_changes() {
    let Some(world) = FollowedNamespace::new("follow") else { return };
    let direct = Some(NextHop::Direct { port: PLACE });
    world.until("the first dump", |w| w.hop("fd02::/16") == direct && w.hop("10.99.0.0/16").is_none());
    for (to, hop) in [
        ("10.0.0.0/24", direct),
        ("10.0.0.1/32", Some(NextHop::Local)),
        ("10.0.0.255/32", Some(NextHop::Broadcast)),
        ("10.1.0.0/16", via(2)),
        ("10.2.0.0/16", Some(NextHop::Discard)),
        ("127.0.0.0/8", None),
    ] {
        assert_eq!(world.hop(to), hop, "{to}");
    }
    world.sh("ip route replace 10.1.0.0/16 via 10.0.0.3");
    world.until("another gateway", |w| w.hop("10.1.0.0/16") == via(3));
    world.sh("ip route add 10.1.0.0/16 via 10.0.0.4 metric 7; ip route del 10.1.0.0/16 via 10.0.0.3");
    world.until("the route of the higher metric", |w| w.hop("10.1.0.0/16") == via(4));
    world.sh("ip neigh replace 10.0.0.9 lladdr 02:00:00:00:00:09 dev p0 nud permanent");
    world.until("a neighbour", |w| w.router.lock().unwrap().stats().neighbours == 1);
    world.sh("ip neigh del 10.0.0.9 dev p0");
    world.until("no neighbour", |w| w.router.lock().unwrap().stats().neighbours == 0);
    // The kernel does not announce that IPv4 routes are removed with an address, or with an interface that is
    // set down.
    world.sh("ip addr add 10.7.0.1/16 dev p0; ip route add 10.8.0.0/16 via 10.0.0.9 src 10.7.0.1");
    world.until("more addresses", |w| {
        w.hop("10.8.0.0/16").is_some() && w.hop("10.7.0.1/32") == Some(NextHop::Local)
    });
    world.sh("ip addr del 10.7.0.1/16 dev p0");
    world.until("fewer addresses", |w| w.hop("10.8.0.0/16").is_none() && w.hop("10.7.0.1/32").is_none());
    world.sh("ip link set p0 down");
    world.until("a port that is down", |w| w.hop("10.1.0.0/16").is_none() && w.hop("10.0.0.0/24").is_none());
    world.sh("ip link set p0 up; ip route add 10.1.0.0/16 via 10.0.0.5");
    world.until("up again", |w| w.hop("10.1.0.0/16") == via(5));
    let stats = world.mirror.stats();
    assert_eq!((stats.malformed, stats.refused, stats.foreign), (0, 0, 0), "{stats:?}");
}

fn ways(members: &[(&str, u16)]) -> Option<RouteHops> {
    let member =
        |&(via, weight): &(&str, u16)| Member { hop: NextHop::via(PLACE, via.parse().unwrap()), weight };
    RouteHops::among(members.iter().map(member)).ok()
}

#[test]
fn routes_to_several_next_hops() {
    let Some(world) = FollowedNamespace::new("several") else { return };
    let (a, b, c) = ("10.0.0.2", "10.0.0.3", "10.0.0.4");
    world.until("the first dump", |w| {
        w.way("10.3.0.0/16") == ways(&[(a, 3), (b, 1)])
            && w.way("fd03::/16") == ways(&[("fe80::2", 1), ("fe80::3", 256)])
    });
    world.sh("ip route replace 10.3.0.0/16 nexthop via 10.0.0.3 weight 2 nexthop via 10.0.0.4 weight 5");
    world.until("others", |w| w.way("10.3.0.0/16") == ways(&[(b, 2), (c, 5)]));
    world.sh("ip route replace 10.3.0.0/16 via 10.0.0.4");
    world.until("one", |w| w.way("10.3.0.0/16") == ways(&[(c, 1)]));
    // IPv6 next hops come and go separately.
    world.sh("ip -6 addr add fd00::1/64 dev p0 nodad; ip -6 route add fd07::/16 via fd00::2 metric 7");
    world.until("one of IPv6", |w| w.way("fd07::/16") == ways(&[("fd00::2", 1)]));
    world.sh("ip -6 route append fd07::/16 via fd00::3 metric 7; ip -6 route append fd07::/16 via fd00::4 \
        metric 7");
    let all = ways(&[("fd00::2", 1), ("fd00::3", 1), ("fd00::4", 1)]);
    world.until("three of IPv6", |w| w.way("fd07::/16") == all);
    world.sh("ip -6 route del fd07::/16 via fd00::3 metric 7");
    world.until("two of IPv6", |w| w.way("fd07::/16") == ways(&[("fd00::2", 1), ("fd00::4", 1)]));
    // Next-hop objects.
    world.sh("ip nexthop add id 2 via 10.0.0.2 dev p0; ip nexthop add id 3 via 10.0.0.3 dev p0; ip nexthop \
        add id 9 group 2,4/3");
    world.sh("ip route add 10.9.0.0/16 nhid 9");
    world.until("a group", |w| w.way("10.9.0.0/16") == ways(&[(a, 4), (b, 1)]));
    world.sh("ip nexthop replace id 9 group 2/3,7");
    world.until("other weights", |w| w.way("10.9.0.0/16") == ways(&[(a, 1), (b, 7)]));
    world.sh("ip nexthop del id 9");
    world.until("no group", |w| w.way("10.9.0.0/16").is_none());
    let stats = world.mirror.stats();
    assert_eq!((stats.malformed, stats.refused, stats.foreign), (0, 0, 0), "{stats:?}");
}

#[test]
fn next_hops_that_were_dead_come_back() {
    let Some(world) = FollowedNamespace::new("dead") else { return };
    let (near, far) = (
        NextHop::via(PLACE, IpAddr::from([10, 0, 0, 2])),
        NextHop::via(PLACE + 1, IpAddr::from([10, 5, 0, 2])),
    );
    let both = RouteHops::among([near, far].map(|hop| Member { hop, weight: 1 })).ok();
    let one = Some(RouteHops::One(near));
    world.sh("ip link set far up; ip link set other up; ip addr add 10.5.0.1/24 dev other");
    world.sh("ip route add 10.6.0.0/16 nexthop via 10.0.0.2 nexthop via 10.5.0.2; ip route add 10.7.0.0/16 \
        via 10.5.0.2");
    world.until("two next hops", |w| w.way("10.6.0.0/16") == both);
    // The kernel keeps the route without a message; single next hops are removed.
    world.sh("ip link set other down");
    world.until("one is dead", |w| w.way("10.6.0.0/16") == one && w.way("10.7.0.0/16").is_none());
    world.sh("ip link set other up");
    world.until("it is back", |w| w.way("10.6.0.0/16") == both);
    // A next hop without a carrier is used, unless that is disabled.
    world.sh("echo 1 > /proc/sys/net/ipv4/conf/other/ignore_routes_with_linkdown; ip route add 10.7.0.0/16 \
        via 10.5.0.2");
    world.until("a single next hop", |w| w.way("10.7.0.0/16") == Some(RouteHops::One(far)));
    world.sh("ip link set far down");
    world.until("no carrier", |w| w.way("10.6.0.0/16") == one && w.way("10.7.0.0/16").is_none());
    world.sh("ip link set far up");
    world.until("a carrier", |w| {
        w.way("10.6.0.0/16") == both && w.way("10.7.0.0/16") == Some(RouteHops::One(far))
    });
    let stats = world.mirror.stats();
    assert_eq!((stats.malformed, stats.refused, stats.foreign), (0, 0, 0), "{stats:?}");
}

#[test]
fn a_hundred_thousand_routes_at_once() {
    let Some(world) = FollowedNamespace::new("flood") else { return };
    world.until("the first dump", |w| w.hop("10.1.0.0/16") == via(2));
    let before = world.routes();
    let most = 100_000;
    // While the router does not answer, messages are lost, whatever the size of the buffer.
    let busy = world.router.lock().unwrap();
    flood(&world.namespace, most);
    drop(busy);
    world.until("all routes", |w| w.routes() == before + most as usize);
    assert_eq!(world.hop("20.0.77.0/24"), via(2));
    world.sh("ip route flush proto 99");
    world.until("none of them", |w| w.routes() == before);
    let stats = world.mirror.stats();
    assert!(
        stats.dumps > stats.overflows,
        "a dump for the first time, and whenever messages were lost: {stats:?}"
    );
    assert_eq!((stats.malformed, stats.refused), (0, 0), "{stats:?}");
}

#[test]
fn what_was_lost_is_asked_for_anew() {
    const MOST: u32 = 2000;
    let Some(world) = FollowedNamespace::with_room("overflow", Some(4096)) else { return };
    world.until("the first dump", |w| w.hop("10.1.0.0/16") == via(2));
    let before = world.routes();
    let busy = world.router.lock().unwrap();
    // The mirror waits to send one route, and does not read while the router does not answer.
    world.sh("ip route add 10.77.0.0/16 via 10.0.0.7");
    let mut last = world.told.try_iter().last();
    while last != Some(Event::Waits) {
        last = Some(world.told.recv_timeout(PATIENCE).unwrap());
    }
    flood(&world.namespace, MOST);
    let lost = world.mirror.stats();
    drop(busy);
    world.until("all routes", |w| w.routes() == before + 1 + MOST as usize);
    assert_eq!((world.hop("20.0.77.0/24"), world.hop("10.77.0.0/16")), (via(2), via(7)));
    let stats = world.mirror.stats();
    assert!(stats.overflows > lost.overflows && stats.dumps > lost.dumps, "{lost:?}, then {stats:?}");
    assert_eq!((stats.malformed, stats.refused), (0, 0), "{stats:?}");
}

/// Routes to up to `most` /24 networks from 20.0.0.0 on.
fn flood(namespace: &Namespace, most: u32) {
    let add = || {
        let index = interface_index("p0").unwrap();
        let request = |number: u32| {
            let to = (20 << 24 | number << 8).to_be_bytes();
            let mut m = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE);
            m.bytes(&[libc::AF_INET as u8, 24, 0, 0]);
            m.bytes(&[libc::RT_TABLE_MAIN, 99, libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST, 0, 0, 0, 0]);
            m.attribute(libc::RTA_DST, &to);
            m.attribute(libc::RTA_GATEWAY, &[10, 0, 0, 2]);
            m.attribute(libc::RTA_OIF, &index.to_ne_bytes());
            m
        };
        let ends = Socket::route().unwrap().requests((0..most).map(request).collect()).unwrap();
        assert!(ends.iter().all(Option::is_none), "{:?}", ends.iter().flatten().next());
    };
    namespace.run(add).unwrap();
}
