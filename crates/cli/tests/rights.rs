//! What instances may do: of root's rights, those that they need until their end.

mod support;

use longwire_lab::Lab;
use std::fs;
use std::process::Command;
use support::lab::can_make_labs;
use support::started::Started;
use support::{Folder, longwire, stderr, stdout};

const LONGWIRE: &str = env!("CARGO_BIN_EXE_longwire");

const HOSTS: &str = "\
[[host]]
name = \"a\"
address = \"10.79.0.1/24\"
[[host]]
name = \"b\"
address = \"10.79.0.2/24\"
";

/// Numbers of capabilities (linux/capability.h): dac_override, kill, net_bind_service, net_admin, net_raw,
/// ipc_lock, sys_ptrace, sys_admin, sys_resource.
const CARRIES: &[u32] = &[1, 5, 10, 12, 13, 14, 19, 21, 24];
/// chown.
const GROUP: u32 = 0;
/// chown, setgid, setuid.
const USERS: [u32; 3] = [GROUP, 6, 7];

/// Each thread's effective and permitted capabilities, and whether it can get no others.
fn rights(pid: u32) -> Vec<(u64, u64, bool)> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |thread: fs::DirEntry| {
        // A thread may end at any time.
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("{name} in {status}")).trim().to_owned()
        };
        let set = |name| u64::from_str_radix(&field(name), 16).unwrap();
        Some((set("CapEff:"), set("CapPrm:"), field("NoNewPrivs:") == "1"))
    };
    threads.map(Result::unwrap).filter_map(of).collect()
}

/// Asserts that no thread has more than these.
fn assert_rights(what: &str, pid: u32, extra: &[u32], fixed: bool) {
    let allowed = CARRIES.iter().chain(extra).fold(0, |set, bit| set | 1u64 << bit);
    let found = rights(pid);
    assert!(!found.is_empty());
    for (effective, permitted, is_fixed) in found {
        assert_eq!(
            (effective & !allowed, permitted & !allowed),
            (0, 0),
            "{what}: {effective:x} {permitted:x}"
        );
        assert_eq!(is_fixed, fixed, "{what}");
    }
}

#[test]
fn an_instance_has_no_rights_that_it_does_not_need() {
    let test = "an_instance_has_no_rights_that_it_does_not_need";
    if !can_make_labs(test) {
        return;
    }
    let folder = Folder::new("rights");
    let file = folder.write("hosts.toml", HOSTS);
    let name = |what: &str| format!("t{}-{what}", std::process::id());
    let start = |args: &[&str], words| Started::ready(Command::new(LONGWIRE).args(args), words).0;
    let run = start(&["run", &file, "--name", &name("run")], "running as");
    assert_rights("run", run.child.id(), &[], true);
    let named = format!("{}={file}", name("serve"));
    let serve = start(&["serve", &named, "--group", "4242"], "ready");
    assert_rights("serve", serve.child.id(), &[GROUP], true);
    let space = format!("lw-{}-a", name("run"));
    let attach = start(&["attach", "--netns", &space, "--delay", "1ms"], "round trips grow by");
    assert_rights("attach", attach.child.id(), &[], true);
    assert_eq!(attach.end().code, Some(0));
    let proxy = start(&["proxy", "--listen", "0", "--to", "127.0.0.1:9"], "leads to");
    assert_rights("proxy", proxy.child.id(), &[], true);
    assert_eq!(proxy.end().code, Some(0));
    // What is added later takes rights, too, and so does what ends the hosts of others' programs.
    let added =
        ["ctl", "add", "host", "c", "address=10.79.0.3/24", "--link", "a", "--instance", &name("run")];
    let added = longwire(&added);
    assert!(added.status.success(), "{}", stderr(&added));
    let lab = Lab::open(&name("run")).unwrap();
    let mut ping = lab.host("c").unwrap().command("ping").unwrap();
    let ping = ping.args(["-c", "1", "a"]).output().unwrap();
    assert!(ping.status.success(), "{}", stdout(&ping));
    let mut other = lab.host("c").unwrap().command("setpriv").unwrap();
    let mut other = other.args(["--reuid=65534", "--clear-groups", "sleep", "600"]).spawn().unwrap();
    assert_eq!(run.end().code, Some(0));
    assert!(!other.wait().unwrap().success(), "it was ended with its host");
    assert_eq!(serve.end().code, Some(0));
}

/// `exec` keeps what it takes to start a program, which has all that its caller has.
#[test]
fn a_command_has_its_caller_s_rights() {
    let test = "a_command_has_its_caller_s_rights";
    if !can_make_labs(test) {
        return;
    }
    let folder = Folder::new("rights");
    let up = folder.text("up");
    let script = format!("cp /proc/self/status {up}.new; mv {up}.new {up}; echo up >&2; exec sleep 60");
    let mut command = Command::new(LONGWIRE);
    command.args(["exec", "-q", "--private", "--delay", "1ms", "--", "sh", "-c", &script]);
    let (exec, _) = Started::ready(&mut command, "up");
    assert_rights("exec", exec.child.id(), &USERS, false);
    let line = |text: &str| text.lines().find(|line| line.starts_with("CapEff:")).map(str::to_owned);
    let [own, commands] = ["/proc/self/status", &up].map(|file| line(&fs::read_to_string(file).unwrap()));
    assert_eq!(own, commands);
    exec.end();
}
