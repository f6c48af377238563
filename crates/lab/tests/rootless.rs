//! Labs without privileges. Entering a user namespace changes the whole process, so this is a program of one
//! thread, not a set of test functions.
#![allow(unsafe_code)]

mod support;

use std::ffi::CStr;
use std::io;

use longwire_lab::{
    ExecNet, ExecSpec, FarEnd, HostSpec, Lab, Wiring, abilities, enter_user_namespace, join_user_namespace,
    private_labs,
};
use support::{Wire, output, unique};

const NOBODY: u32 = 65_534;

fn main() {
    let ability = abilities().user_namespaces;
    if !ability.available {
        println!("skipped rootless: {}", ability.reason);
        return;
    }
    give_up_root();
    let name = unique("rootless");
    let pipes = [pipe(), pipe()];
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        hold_a_lab(&name, pipes[0].1, pipes[1].0);
        return;
    }
    wait_for_byte(pipes[0].0);
    assert!(
        Lab::list().unwrap().iter().all(|l| l.instance != name),
        "a private lab is not seen from outside"
    );
    assert!(private_labs().iter().any(|l| l.instance == name && l.owner == Some(child.cast_unsigned())));
    assert!(!join_user_namespace("no-such-lab").unwrap());
    // Every user may be there, and it has a command.
    std::env::set_current_dir("/bin").unwrap();
    let folder = std::env::current_dir().unwrap();
    assert!(join_user_namespace(&name).unwrap());
    assert_eq!(std::env::current_dir().unwrap(), folder);
    let lab = Lab::open(&name).unwrap();
    output(lab.host("a").unwrap().command("./sh").unwrap().args(["-c", "test $(pwd) != /"]));
    output(lab.host("a").unwrap().command("ping").unwrap().args(["-c", "1", "-W", "5", "b"]));
    send_byte(pipes[1].1);
    let mut status = 0;
    // SAFETY: a live status.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
    println!("test rootless ... ok");
}

/// The child: two labs inside its own namespaces, one of them joined by the parent.
fn hold_a_lab(name: &str, ready: i32, end: i32) {
    enter_user_namespace().unwrap();
    let veth = Wiring::Veth { offload: false };
    let host =
        |name, address: &str| HostSpec { wiring: veth, ..HostSpec::new(name, address.parse().unwrap()) };
    let lab = Lab::create(name, &[host("a", "10.9.0.1/24"), host("b", "10.9.0.2/24")]).unwrap();
    let port = |name| lab.host(name).unwrap().port().unwrap();
    let wire = Wire::between(lab.core(), port("a"), port("b"));
    let spec = ExecSpec { far: FarEnd::Private, wiring: veth, mtu: 1500 };
    let net = ExecNet::create(&format!("{name}-x"), &spec).unwrap();
    let net_wire = Wire::between(net.lab().core(), net.near().port().unwrap(), net.far().port().unwrap());
    output(net.command("ping").unwrap().args(["-c", "1", "-W", "5", "far"]));
    // Nested: the outer near end is the inner one's machine, with a far end to reach through it.
    let spec = ExecSpec { far: FarEnd::Machine, ..spec };
    let inner = net.near().run(|| ExecNet::create(&format!("{name}-y"), &spec)).unwrap().unwrap();
    let core = inner.lab().core();
    let inner_wire = Wire::between(core, inner.near().port().unwrap(), inner.far().port().unwrap());
    let far = net.far_address().to_string();
    output(inner.command("ping").unwrap().args(["-c", "1", "-W", "5", &far]));
    drop((inner_wire, inner));
    let mut names = output(std::process::Command::new("ip").arg("netns"));
    assert!(names.contains(&format!("lw-{name}-a")), "{names}");
    send_byte(ready);
    wait_for_byte(end);
    drop((wire, net_wire, net));
    lab.down().unwrap();
    names = output(std::process::Command::new("ip").arg("netns"));
    assert_eq!(names.trim(), "");
}

/// Everything after this is done as an ordinary user.
fn give_up_root() {
    // SAFETY: no pointers other than an empty list; this process has one thread.
    unsafe {
        if libc::geteuid() == 0 {
            assert_eq!(libc::setgroups(0, std::ptr::null()), 0);
            assert_eq!(libc::setgid(NOBODY), 0);
            assert_eq!(libc::setuid(NOBODY), 0);
            // A program started by this user would have its own /proc entries; one that changed user does
            // not.
            assert_eq!(libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
        }
    }
}

fn pipe() -> (i32, i32) {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    (ends[0], ends[1])
}

fn send_byte(to: i32) {
    let byte: &CStr = c"x";
    // SAFETY: one live byte.
    assert_eq!(unsafe { libc::write(to, byte.as_ptr().cast(), 1) }, 1, "{}", io::Error::last_os_error());
}

fn wait_for_byte(from: i32) {
    let mut byte = 0u8;
    // SAFETY: room for one byte.
    assert_eq!(unsafe { libc::read(from, (&raw mut byte).cast(), 1) }, 1, "the other process ended early");
}
