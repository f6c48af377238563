//! A flood on one link, and a victim on another: in virtual time, where what is due is exact.

use super::support::{Folder, json, longwire, row};

/// The flood offers a hundred times what its link carries, to a station that nobody knows; the victim has links of its own.
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
        "[[source]]\nname = \"voice\"\nfrom = \"victim\"\nto = \"server\"\nsize = \"200 B\"\nrate = \"80 kbit/s\"\nfor = \"2 s\"\n".into(),
        flood.into(),
    ]
    .concat()
}

#[test]
fn a_flood_does_not_touch_its_neighbour() {
    let folder = Folder::new("floods");
    let flood = "[[source]]\nname = \"flood\"\nfrom = \"attacker\"\nto = \"server\"\nsize = \"60 B\"\nrate = \"1 Gbit/s\"\nfor = \"2 s\"\n";
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
