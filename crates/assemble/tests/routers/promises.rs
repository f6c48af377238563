//! What programs and levels are promised.

use super::routes::ROW;
use super::{HOSTS, between, check, plan};
use longwire_scenario::{parse, plan_of};

/// A line rate to be guaranteed.
fn at_rate(rate: &str, more: &str) -> String {
    between(&format!("line-rate = \"{rate}\"\n{more}"))
}

#[test]
fn a_promise_that_can_t_be_held_is_none() {
    // Classifying takes 30 ns, minimal IP 95; 84 bytes at 10 Gbit/s 67.2 ns.
    check(
        &at_rate("10 Gbit/s", ""),
        "7:13: router \"r\", line-rate: ",
        "10 Gbit/s can't be held, without any program: classifier 30000 + minimal IP 95000 = 125000 \
         picoseconds, 67200 allowed",
    );
    check(&at_rate("10 Gbit/s", ""), "7:13", "write at most 5.376 Gbit/s");
    check(&at_rate("0 Mbit/s", ""), "7:13", "nothing is promised");
    check(&at_rate("unlimited", ""), "7:13", "leaves no time for a packet");
    assert!(parse("s.toml", &format!("{HOSTS}{}", at_rate("5376 Mbit/s", ""))).is_ok());
}

/// Time set aside for traffic upward is neither available to programs nor promised twice.
#[test]
fn time_reserved_for_other_levels_is_not_for_programs() {
    let tenth = "slow-path = { worker = \"4 %\" }\ncontrol = { worker = \"6 %\" }\n";
    // 134.4 ns at 5 Gbit/s, of which a tenth is set aside.
    check(&at_rate("5 Gbit/s", tenth), "7:13", "= 125000 picoseconds, 120960 allowed");
    check(&at_rate("5 Gbit/s", tenth), "7:13", "write at most 4.838 Gbit/s");
    assert!(parse("s.toml", &format!("{HOSTS}{}", at_rate("4838 Mbit/s", tenth))).is_ok());
    // The paper's four need 203 of 240 cycles: 216 are left, or 192.
    let four = |aside: &str| {
        let all = |name: &str| format!("[[forwarder]]\nrouter = \"r\"\nprogram = \"{name}\"\n");
        let splicer = all("tcp-splicer") + "key = { destination-port = 80, protocol = \"tcp\" }\n";
        let programs = [splicer, all("port-filter"), all("syn-monitor")].concat();
        parse("s.toml", &format!("{HOSTS}{}{programs}", between(&format!("profile = \"vrp\"\n{aside}"))))
    };
    let plan = four(tenth).unwrap();
    assert_eq!(plan.routers[0].levels.worker, [Some(40_000_000), Some(60_000_000)]);
    let fifth = four("control = { worker = \"20 %\" }\n").unwrap_err().to_string();
    assert!(fifth.contains("= 203 cycles, 192 allowed"), "{fifth}");
    // Nor are more packets promised than can be moved in that time: 400 ns each.
    assert_eq!(plan.routers[0].levels.control.packets, 150_000);
    let promised =
        |packets: &str| between(&format!("control = {{ worker = \"6 %\", packets = {packets} }}\n"));
    assert!(parse("s.toml", &format!("{HOSTS}{}", promised("150_000"))).is_ok());
    let what =
        "150001 packets/s of 400 ns take 60000 us of each second, and 60000 us of the worker are set aside";
    check(&promised("150_001"), "7:", what);
    check(&promised("150_001"), "7:", "write at most 150000, or set more aside");
    let none = between("slow-path = { worker = \"60 %\" }\ncontrol = { worker = \"40 %\" }\n");
    check(&none, "8:", "nothing of the worker is left for the data path");
}

#[test]
fn forwarders_without_a_name_have_none_in_errors() {
    check(&between("[[forwarder]]\nrouter = \"r\"\n"), "8:10: forwarder, program: ", "no program is named");
}

#[test]
fn a_queue_that_nobody_has_is_noted() {
    let notes = |queue: &str| {
        let forwarder = "[[forwarder]]\nrouter = \"r1\"\nprogram = \"syn-monitor\"\nqueue = 0\n";
        let row = ROW.replacen("delay = \"30 ms\"\n", &format!("delay = \"30 ms\"\n{queue}"), 1);
        let plan = plan_of(&format!("{HOSTS}{row}{forwarder}"));
        plan.notes.iter().map(ToString::to_string).filter(|note| note.contains("queue: ")).collect::<Vec<_>>()
    };
    let one = notes("");
    assert_eq!(one.len(), 1, "{one:?}");
    assert!(one[0].contains("no link that begins at \"r1\" has more than one queue"), "{one:?}");
    assert_eq!(notes("queue = { kind = \"priority\", bands = 3 }\n"), [""; 0]);
    // Nor where no link begins.
    let forwarder = "[[forwarder]]\nrouter = \"r\"\nprogram = \"syn-monitor\"\nqueue = 0\n";
    let plan = plan(&between(forwarder));
    let none: Vec<_> = plan.notes.iter().map(ToString::to_string).collect();
    assert!(
        none.len() == 1 && none[0].contains("no link begins at \"r\": there is no queue to choose"),
        "{none:?}"
    );
    // A link that begins at a bridge is entered first by packets from a port of that bridge.
    let bridged = |queue: &str| {
        let text = format!(
            "[[bridge]]\nname = \"x\"\n[[bridge]]\nname = \"y\"\n[[router]]\nname = \"r\"\n\
             ports = [{{ port = \"a\", addresses = \"10.0.1.1/24\" }}, {{ port = \"lan\", bridge = \"x\", \
             addresses = \"10.0.2.1/24\" }}]\n\
             [[link]]\nbetween = [\"x\", \"y\"]\n{queue}{forwarder}"
        );
        let hosts = HOSTS.replacen("\"fd02::9/64\"]", "\"fd02::9/64\"], bridge = \"y\"", 1);
        let plan = plan_of(&format!("{hosts}{text}"));
        plan.notes.iter().map(ToString::to_string).filter(|note| note.contains("queue: ")).collect::<Vec<_>>()
    };
    assert!(bridged("")[0].contains("has more than one queue"), "{:?}", bridged(""));
    assert_eq!(bridged("queue = { kind = \"priority\", bands = 3 }\n"), [""; 0]);
}
