//! Ordinary users.

use crate::services::{Loopback, asking, assert_asked};
use crate::support::started::Started;
use crate::support::{Folder, has_verdict, row, stderr, stdout};
use crate::{LONGWIRE, Machine, NOBODY, least_rtt};
use longwire_lab::{Lab, abilities};
use std::net::UdpSocket;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::process::{Command, Output};

/// An ordinary user of a machine that lets users make TAP devices, with a program that carries packets out.
struct Ordinary {
    machine: Machine,
    folder: Folder,
    carrier: &'static str,
}

impl Ordinary {
    /// With pasta; skips the test with a message if something is missing.
    fn new(test: &str) -> Option<Self> {
        Self::with(test, "pasta")
    }

    fn with(test: &str, carrier: &'static str) -> Option<Self> {
        let missing = [carrier, "setpriv", "mknod", "pgrep"].into_iter().find(|program| {
            let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
            !found.is_ok_and(|found| found.status.success())
        });
        if let Some(program) = missing {
            println!("skipped {test}: there is no {program}");
            return None;
        }
        let machine = Machine::new(test)?;
        let folder = Folder::new(test);
        std::fs::copy(LONGWIRE, folder.path("longwire")).unwrap();
        std::fs::DirBuilder::new().mode(0o700).create(folder.path("run")).unwrap();
        chown(folder.path("run"), Some(NOBODY), Some(NOBODY)).unwrap();
        Some(Self { machine, folder, carrier })
    }

    /// The program, where the user may run it.
    fn program(&self) -> String {
        self.folder.text("longwire")
    }

    /// Runs a script on the machine in which `$run` is `longwire exec` as the user, whose folder is
    /// the current one.
    fn sh(&self, script: &str) -> Output {
        let (program, device, run_dir) = (self.program(), self.folder.text("tun"), self.folder.text("run"));
        // It is preferred where it is a program.
        let hide = "pasta=$(command -v pasta) && mount --bind /dev/null $pasta";
        let hide = if self.carrier == "pasta" { "" } else { hide };
        let script = format!(
            "ip route add default via 10.77.0.2; mknod {device} c 10 200; chmod 666 {device}
            mount --bind {device} /dev/net/tun; cd {run_dir}; export LONGWIRE_RUN_DIR={run_dir}
            {hide}
            run='setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups {program} exec'
            {script}"
        );
        let ran = self.machine.sh_alone(&script);
        self.machine.sh(&format!("ip route del default via 10.77.0.2; rm -f {device}"));
        ran
    }
}

#[test]
fn without_root_packets_leave_by_a_network_of_the_user_s() {
    let Some(user) = Ordinary::new("pasta") else { return };
    let mut server = Command::new(LONGWIRE);
    let receive = ["--", LONGWIRE, "traffic", "receive", "--count", "1"];
    server.args(["lab", "exec", &user.machine.name, "b"]).args(receive);
    let (server, _) = Started::ready(&mut server, "listening on ");
    let inner = format!(
        "id -u; id -g; : > mine; ping -q -c 3 -i 0.2 10.77.0.2
        {} traffic send tcp 10.77.0.2 --bytes 100kB >/dev/null && echo carried",
        user.program()
    );
    let ran = user.sh(&format!(
        "$run --delay 15ms -- sh -c '{inner}' & run=$!
        wait $run; echo ended $?; pgrep -af \"[/]proc/$run/ns/net\"; true"
    ));
    let (said, noted) = (stdout(&ran), stderr(&ran));
    assert!(said.starts_with("65534\n65534\n"), "{said}{noted}");
    assert!((30.0..90.0).contains(&least_rtt(&said)), "{said}{noted}");
    // None of its processes is left.
    assert!(said.ends_with("carried\nended 0\n"), "{said}{noted}");
    assert_eq!(server.wait().code, Some(0));
    let mine = std::fs::metadata(user.folder.path("run").join("mine")).unwrap();
    assert_eq!((mine.uid(), mine.gid()), (NOBODY, NOBODY));
}

/// A name server on the machine's loopback, which the command can't reach itself, knows host b by a name.
fn names_resolve_and_packets_leave(test: &str, carrier: &'static str, its_server: &str) {
    let Some(user) = Ordinary::with(test, carrier) else { return };
    let lab = Lab::open(&user.machine.name).unwrap();
    let names = lab.host("a").unwrap().run(|| UdpSocket::bind("127.0.0.1:53").unwrap()).unwrap();
    let asked = names.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut query = [0; 512];
        while let Ok((length, from)) = asked.recv_from(&mut query) {
            asked.send_to(&answer(&query[..length]), from).unwrap();
        }
    });
    let mut server = Command::new(LONGWIRE);
    server.args(["lab", "exec", &user.machine.name, "b"]);
    server.args(["--", LONGWIRE, "traffic", "receive", "--count", "1"]);
    let (server, _) = Started::ready(&mut server, "listening on ");
    let inner = format!(
        "cat /etc/resolv.conf; at=$(getent ahostsv4 server.test); echo ${{at%% *}}
        {} traffic send tcp ${{at%% *}} --bytes 100kB > /dev/null && echo carried",
        user.program()
    );
    let ran = user.sh(&format!(
        "echo nameserver 127.0.0.1 > names; mount --bind names /etc/resolv.conf
        $run -q --delay 15ms -- sh -c '{inner}' & run=$!
        wait $run; echo ended $?
        pgrep -af \"[/]proc/$run/ns/net\"; true"
    ));
    let expected = format!("nameserver {its_server}\n10.77.0.2\ncarried\nended 0\n");
    assert_eq!(stdout(&ran), expected, "{}", stderr(&ran));
    assert_eq!(server.wait().code, Some(0));
}

/// 10.77.0.2 for every query of an IPv4 address, nothing for others (RFC 1035 section 4).
fn answer(query: &[u8]) -> Vec<u8> {
    // One question, whose name ends with a zero byte; type and class follow. Further records are ignored.
    let end = 12 + query[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
    let is_v4 = query[end - 4..end - 2] == [0, 1];
    let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 77, 0, 2];
    let counts = [0, 1, 0, u8::from(is_v4), 0, 0, 0, 0];
    let record = if is_v4 { &record[..] } else { &[] };
    [&query[..2], &[0x81, 0x80], &counts, &query[12..end], record].concat()
}

#[test]
fn without_root_names_resolve_and_packets_leave_by_pasta() {
    names_resolve_and_packets_leave("pastadns", "pasta", "169.254.1.1");
}

#[test]
fn without_root_names_resolve_and_packets_leave_by_slirp4netns() {
    names_resolve_and_packets_leave("slirpdns", "slirp4netns", "10.0.2.3");
}

/// However it ends: the program that carries its packets out ends with it.
#[test]
fn a_killed_run_leaves_no_program_of_its_network() {
    let Some(user) = Ordinary::new("killed") else { return };
    let ran = user.sh("mkfifo -m 666 up
        $run -q --delay 5ms -- sh -c 'echo $$ > up; exec sleep 1000' & run=$!
        read -r inner < up
        pgrep -f \"[/]proc/$run/ns/net\" > /dev/null && echo there
        kill -KILL $run; wait $run; kill $inner
        for look in $(seq 1000); do
            pgrep -f \"[/]proc/$run/ns/net\" > /dev/null || { echo gone; break; }
            sleep 0.1
        done");
    assert_eq!(stdout(&ran), "there\ngone\n", "{}", stderr(&ran));
}

/// In a user namespace too, localhost is the machine's, in both directions.
#[test]
fn without_root_services_of_the_loopback_are_reached() {
    let Some(user) = Ordinary::new("loopback") else { return };
    for (option, host) in [("--localhost", "127.0.0.1"), ("--localhost=LISTED", "::1")] {
        let service = Loopback::start(&user.machine);
        let option = option.replace("LISTED", &service.port.to_string());
        user.folder.write("run/ask", asking(host, service.port));
        let ran = user.sh(&format!("$run -q --delay 20ms {option} -- bash ask"));
        assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
        assert_asked(&stdout(&ran), [80, 40]);
        service.join();
    }
    let ran = user.sh(&format!(
        "mkfifo -m 666 up; $run -q --delay 20ms --publish 7005 -- sh -c '{0} traffic receive --count 1 \
            --bind 127.0.0.1 --port 7005 2>&1 > /dev/null | {{ read line; echo > up; cat > /dev/null; }}' &
        run=$!; read line < up
        {0} traffic send tcp 127.0.0.1 --port 7005 --bytes 1kB > /dev/null
        wait $run; echo ended $?",
        user.program()
    ));
    assert_eq!(stdout(&ran), "ended 0\n", "{}", stderr(&ran));
}

/// The machine's default gateway is host b, over a link with an MTU of 1400.
#[test]
fn packets_are_as_long_as_the_way_out_lets_through() {
    let Some(machine) = Machine::new("mtu") else { return };
    let way_out = machine.sh("ip link set eth0 mtu 1400 && ip route add default via 10.77.0.2");
    assert!(way_out.status.success(), "{}", stderr(&way_out));
    let shown = machine.exec(&["-q", "--", "cat", "/sys/class/net/eth0/mtu"]);
    assert_eq!(stdout(&shown).trim(), "1400", "{}", stderr(&shown));
    let shown = machine.exec(&["-q", "--mtu", "1300", "--", "cat", "/sys/class/net/eth0/mtu"]);
    assert_eq!(stdout(&shown).trim(), "1300", "{}", stderr(&shown));
    // Without a default route for IPv4, that for IPv6 counts.
    let by_ipv6 = "ip route del default && echo 0 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6 && \
                   ip -6 address add fd77::1/64 dev eth0 nodad && ip -6 route add default via fd77::2";
    let way_out = machine.sh(by_ipv6);
    assert!(way_out.status.success(), "{}", stderr(&way_out));
    let shown = machine.exec(&["-q", "--", "cat", "/sys/class/net/eth0/mtu"]);
    assert_eq!(stdout(&shown).trim(), "1400", "{}", stderr(&shown));
}

#[test]
fn without_privileges_services_at_the_far_end_are_reached() {
    let test = "without_privileges_services_at_the_far_end_are_reached";
    let can = abilities();
    if !can.user_namespaces.available {
        return println!("skipped {test}: {}", can.user_namespaces.reason);
    }
    let folder = Folder::new("rootless");
    let program = folder.text("longwire");
    std::fs::copy(LONGWIRE, &program).unwrap();
    std::fs::DirBuilder::new().mode(0o700).create(folder.path("run")).unwrap();
    let mut command = if can.root.available {
        chown(folder.path("run"), Some(NOBODY), Some(NOBODY)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", &program]);
        command
    } else {
        Command::new(&program)
    };
    let serve = format!("exec {program} traffic receive");
    let script =
        format!("ping -q -c 2 far && exec {program} traffic send tcp $LONGWIRE_FAR --bytes 100kB --json");
    command.env("LONGWIRE_RUN_DIR", folder.path("run"));
    command
        .args(["exec", "--delay", "10ms", "--rate", "20mbit", "--serve", &serve, "--", "sh", "-c", &script]);
    let output = match command.current_dir("/").output() {
        Err(error) => return println!("skipped {test}: setpriv can't be run: {error}"),
        Ok(output) => output,
    };
    let (text, said) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{text}{said}");
    assert!((20.0..60.0).contains(&least_rtt(&text)), "{text}");
    let report: serde_json::Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    assert_eq!(row(&report, "goodput")["bytes"], 100_000);
    assert!(has_verdict(&said), "{said}");
}
