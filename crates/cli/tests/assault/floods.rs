//! A flood on one link, and a victim on another: in virtual time, where expectations are exact, and in real
//! time, where none of the victim's packets may be lost.

use super::support::lab::RunningLab;
use super::support::{Folder, json, longwire, row};
use super::{PATIENCE, times};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// The flood offers a hundred times the capacity of its link, to an unknown station; the victim has its own
/// links.
fn scenario(flood: &str) -> String {
    let host =
        |name: &str, number: u8| format!("[[host]]\nname = \"{name}\"\naddress = \"10.0.0.{number}/24\"\n");
    let link = |name: &str, from: &str, to: &str, keys: &str| {
        format!("[[link]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{keys}\n")
    };
    [
        host("attacker", 1),
        host("victim", 2),
        host("server", 3),
        link("flooded", "attacker", "server", "rate = \"10 Mbit/s\"\nqueue = \"100 packets\""),
        link("victims", "victim", "server", "rate = \"10 Mbit/s\"\ndelay = \"20 ms\""),
        "[[source]]\nname = \"voice\"\nfrom = \"victim\"\nto = \"server\"\nsize = \"200 B\"\n\
         rate = \"80 kbit/s\"\nfor = \"2 s\"\n"
            .into(),
        flood.into(),
    ]
    .concat()
}

#[test]
fn a_flood_does_not_touch_its_neighbour() {
    let folder = Folder::new("floods");
    let flood = "[[source]]\nname = \"flood\"\nfrom = \"attacker\"\nto = \"server\"\nsize = \"60 B\"\n\
        rate = \"1 Gbit/s\"\nfor = \"2 s\"\n";
    let voice = |flood: &str| {
        let file = folder.write("flood.toml", scenario(flood));
        let report = json(&longwire(&["run", &file, "--virtual", "--json"]), 0);
        let voice = row(&report, "source voice");
        let times = ["lost", "delay_ns_min", "delay_ns_mean", "delay_ns_max"].map(|key| voice[key].clone());
        (voice["measured"].clone(), times, row(&report, "link flooded")["stats"].clone())
    };
    let (alone, beside) = (voice(""), voice(flood));
    assert_eq!((&alone.0, &alone.1), (&beside.0, &beside.1));
    assert_eq!(alone.0, 100);
}

/// Packets of the victim, and their spacing.
const VOICE: (u64, Duration) = (100, Duration::from_millis(20));
/// Packets of a burst: three times the queue's capacity, however fast they come.
const EACH: u64 = 300;

#[test]
fn a_flood_in_real_time_takes_nothing_of_its_neighbours() {
    let folder = Folder::new("flooded");
    let file = folder.write("flood.toml", scenario("").split("[[source]]").next().unwrap());
    let Some(lab) = RunningLab::of_file("flood", &file) else { return };
    let open = longwire_lab::Lab::open(&lab.name).unwrap();
    let host = |name| open.host(name).unwrap();
    let bind = |name, address: &'static str| host(name).run(|| UdpSocket::bind(address)).unwrap().unwrap();
    let (server, sink) = (bind("server", "10.0.0.3:7"), bind("server", "10.0.0.3:9"));
    let (victim, attacker) = (bind("victim", "10.0.0.2:0"), bind("attacker", "10.0.0.1:0"));
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let (count, apart) = (VOICE.0 * times(1, 10), VOICE.1);
    let begin = Instant::now();
    let due = |packet: u64| begin + apart * packet as u32;
    let until = |time: Instant| std::thread::park_timeout(time.saturating_duration_since(Instant::now()));
    std::thread::scope(|scope| {
        // As long as the victim sends.
        scope.spawn(|| {
            let mut sent = 0;
            while Instant::now() < due(count) {
                for _ in 0..EACH {
                    // Its own queue is full now and then: the host's capacity limits the flood.
                    sent += u64::from(attacker.send_to(&[7; 100], "10.0.0.3:9").is_ok());
                }
                until(Instant::now() + Duration::from_millis(5));
            }
            assert!(sent > 0);
        });
        scope.spawn(|| {
            for packet in 0..count {
                until(due(packet));
                victim.send_to(&packet.to_be_bytes(), "10.0.0.3:7").unwrap();
            }
        });
        for packet in 0..count {
            let mut bytes = [0; 8];
            assert_eq!(server.recv(&mut bytes).unwrap(), 8);
            assert_eq!(u64::from_be_bytes(bytes), packet, "one is lost or overtaken");
        }
    });
    drop(sink);
    let stats = json(&longwire(&["ctl", "stats", &lab.name, "--json"]), 0);
    let (flooded, voice) = (row(&stats, "link flooded"), row(&stats, "link victims"));
    assert!(flooded["dropped"]["queue-full"].as_u64() > Some(0), "{flooded:#}");
    assert_eq!(voice["dropped"], serde_json::json!({}), "{voice:#}");
    assert!(voice["out_packets"].as_u64() >= Some(count), "{voice:#}");
    assert_eq!(row(&stats, "packets accounted for")["pass"], true, "{stats:#}");
}
