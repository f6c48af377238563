"""Mininet with links of Longwire. Mininet is a package of the system's Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import List

import pytest

pytestmark = pytest.mark.usefixtures("labs")

SYSTEM = "/usr/bin/python3"


def python(repository: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Runs the system's Python with this package and Mininet, in a network of its own: a plain `Mininet` sets
    buffer sizes of the machine, and leaves them so."""
    there = subprocess.run([SYSTEM, "-c", "import mininet"], capture_output=True, check=False)
    if there.returncode != 0:
        pytest.skip("Mininet is not installed (apt-get install mininet)")
    source = str(repository / "python" / "src")
    environment = {**os.environ, "PYTHONPATH": source, "PYTHONDONTWRITEBYTECODE": "1"}
    command = ["unshare", "--net", SYSTEM, *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)


def left() -> List[str]:
    """Namespaces of networks."""
    folder = Path("/run/netns")
    return [name for name in os.listdir(folder) if name.startswith("lw-mn")] if folder.exists() else []


def test_a_tree_pings_and_carries(repository: Path) -> None:
    done = python(repository, str(repository / "python" / "examples" / "tree.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    before, after = (
        [float(part.split()[0]) for part in lines[when].split(", ")] for when in ("before", "after")
    )
    # h1, s1, s2, h3 and back: 2 * (1 + 5 + 1) ms, then 2 * (1 + 25 + 1) ms with a jitter of 1 ms.
    assert before[0] >= 14 and after[0] >= 52, done.stdout
    # No more than the link's rate.
    assert 1 < before[1] <= 20 and 0.5 < after[1] <= 5, done.stdout
    assert left() == []


#: The lines of the example that a script with TCLink has otherwise.
CHANGED = {
    "from longwire.mininet import LongwireLink as TCLink": "from mininet.link import TCLink",
    "from longwire.mininet import LongwireNet as Mininet": "from mininet.net import Mininet",
}


def test_the_tree_is_a_script_with_tclink_but_for_two_lines(repository: Path, tmp_path: Path) -> None:
    text = (repository / "python" / "examples" / "tree.py").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert [line for line in lines if "import" in line and "longwire" in line] == list(CHANGED)
    plain = [CHANGED.get(line, line) for line in lines]
    assert sum(one != other for one, other in zip(lines, plain)) == 2
    script = tmp_path / "tree.py"
    script.write_text("\n".join(plain) + "\n", encoding="utf-8")
    done = python(repository, str(script))
    # Where the kernel has no netem, tc's errors are printed, and the links have no delay: what is shown is
    # that the script has nothing that Mininet lacks, not what tc emulates.
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [
        "lost",
        "before",
        "after",
        "verdict",
    ]
    assert done.stdout.endswith("verdict: None\n"), "Mininet has none"


IN_PLACE = """
from longwire.mininet import LongwireLink as TCLink
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge

net = Mininet(link=TCLink, switch=LinuxBridge, controller=None)
h1, h2, h3 = (net.addHost(f"h{n}") for n in (1, 2, 3))
s1 = net.addSwitch("s1")
link = net.addLink(h1, s1, delay="10ms", loss=0, longwire={"queue.kind": "codel"})
net.addLink(h2, s1, cls=TCLink, params1={"delay": "3ms"})
net.start()
shown = link.emulated.forward.settings
assert shown["queue.kind"] == "codel" and shown["delay"] == "10 ms", shown
assert link.emulated.backward.settings["delay"] == "10 ms"
assert net.pingAll() > 0
# Another link joins while packets flow.
net.addLink(h3, s1, delay=2000).intf1.config(ip="10.0.0.3/8")
s1.attach(s1.intfNames()[-1]) if hasattr(s1, "attach") else s1.cmd("brctl addif s1", s1.intfNames()[-1])
assert net.ping([h1, h3]) == 0
link.intf1.config(bw=1, longwire={"duplicate": "1 %", "overhead": 4})
assert "duplicate" in link.emulated.forward.settings
link.intf1.config(bw=1, delay="20ms")
assert link.emulated.forward.settings["rate"] == "1 Mbit/s"
assert link.emulated.forward.settings["overhead"] == "0"
assert "duplicate" not in link.emulated.forward.settings
assert link.emulated.backward.settings["delay"] == "10 ms"
net.stop()
print("done")
"""


def test_the_link_alone_takes_the_place_of_tclink(repository: Path) -> None:
    done = python(repository, "-c", IN_PLACE)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr
    assert left() == []


ACTS = """
import re
from longwire.mininet import LongwireNet

net = LongwireNet(controller=None, autoStaticArp=True)
h1, h2 = (net.addHost(f"h{n}") for n in (1, 2))
link = net.addLink(h1, h2, delay="1ms")
net.start()
for host in (h1, h2):
    # Its kernel sends nothing of its own then.
    host.cmd("sysctl -qw net.ipv6.conf.all.disable_ipv6=1")

def lost(count, options):
    text = h1.cmd(f"ping -q -c {count} -W 2 {options} {h2.IP()}")
    return count - int(re.search("([0-9]+) received", text).group(1))

def dropped(direction):
    return direction.counters().dropped

assert lost(200, "-i 0.005") == 0
link.intf1.config(delay="3msec")
assert link.emulated.forward.settings["delay"] == "3 ms"
link.intf1.config(delay="1ms", loss=30)
by_chance = lost(200, "-i 0.005")
# Ten standard deviations of 6.5 on either side of 60.
assert 0 < by_chance < 125, by_chance
assert dropped(link.emulated.forward) == {"loss": by_chance}, dropped(link.emulated.forward)
assert dropped(link.emulated.backward) == {}
link.intf1.config(delay="1ms", loss=100)
assert lost(5, "-i 0.005") == 5
link.intf1.config(delay="1ms", bw=1, max_queue_size=10)
# All at once, 11.6 ms each: as many pass as wait, and one more for each that has been sent meanwhile.
overflow = lost(60, "-l 60 -s 1400")
assert 25 < overflow <= 50, overflow
assert dropped(link.emulated.forward)["queue-full"] == overflow, dropped(link.emulated.forward)
link.intf1.config(delay="1ms", bw=1, max_queue_size=60)
assert lost(60, "-l 60 -s 1400") == 0
net.stop()
print("done")
"""


def test_losses_and_limits_of_queues_act_on_packets(repository: Path) -> None:
    done = python(repository, "-c", ACTS)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr
    assert left() == []


OPEN_VSWITCH = """
import os, re, subprocess, sys
from functools import partial
from longwire.mininet import LongwireNet
from mininet.node import OVSSwitch
from mininet.topo import Topo

class Pair(Topo):
    def build(self):
        s1, s2 = self.addSwitch("s1"), self.addSwitch("s2")
        self.addLink(s1, s2, bw=20, delay="5ms", max_queue_size=200)
        for host, switch in (("h1", s1), ("h2", s1), ("h3", s2)):
            self.addLink(self.addHost(host), switch, delay="1ms")

def measure(net):
    ping = net["h1"].cmd(f"ping -q -c 5 -i 0.1 {net['h3'].IP()}")
    server = net["h3"].popen(["iperf3", "-s", "-1", "--forceflush"], stdout=subprocess.PIPE, text=True)
    try:
        while "listening" not in server.stdout.readline():
            assert server.poll() is None
        tcp = net["h1"].cmd(f"iperf3 -c {net['h3'].IP()} -t 3 -f m")
    finally:
        server.terminate()
        server.wait()
    print(re.search("= ([0-9.]+)/", ping).group(1), re.search("([0-9.]+) Mbits/sec.*receiver", tcp).group(1))

folder = sys.argv[1]
os.environ.update(dict.fromkeys(("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"), folder))
quiet = ["-vconsole:off", "-vsyslog:off"]
base = f"{folder}/conf.db"
subprocess.run(["ovsdb-tool", "create", base, "/usr/share/openvswitch/vswitch.ovsschema"], check=True)
daemons = [subprocess.Popen(["ovsdb-server", base, f"--remote=punix:{folder}/db.sock", *quiet])]
try:
    subprocess.run(["ovs-vsctl", "--retry", "--timeout=30", "--no-wait", "init"], check=True)
    daemons.append(subprocess.Popen(["ovs-vswitchd", *quiet]))
    switch = partial(OVSSwitch, datapath="user", failMode="standalone")
    net = LongwireNet(topo=Pair(), switch=switch, controller=None)
    net.start()
    try:
        assert net.pingAll() == 0
        measure(net)
        net.linksBetween(net["s1"], net["s2"])[0].config(bw=5, delay="25ms")
        measure(net)
    finally:
        net.stop()
finally:
    for daemon in reversed(daemons):
        daemon.terminate()
        daemon.wait()
"""


def test_open_vswitch_forwards_in_user_space(repository: Path, tmp_path: Path) -> None:
    if shutil.which("ovs-vswitchd", path="/usr/sbin:/usr/bin") is None:
        pytest.skip("Open vSwitch is not installed (apt-get install openvswitch-switch)")
    done = python(repository, "-c", OPEN_VSWITCH, str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    before, after = ([float(word) for word in line.split()] for line in done.stdout.splitlines())
    # h1, s1, s2, h3 and back: 2 * (1 + 5 + 1) ms, then 2 * (1 + 25 + 1) ms.
    assert before[0] >= 14 and after[0] >= 54, done.stdout
    # TCP passes, and no faster than the link.
    assert 1 < before[1] <= 20 and 0.5 < after[1] <= 5, done.stdout
    assert left() == []


KILLED = """
import os, signal
from longwire.mininet import LongwireNet

net = LongwireNet(controller=None)
net.addLink(net.addHost("h1"), net.addHost("h2"), delay="1ms")
net.start()
print(net.carrier.namespace, flush=True)
if {kill}:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()
assert net.ping() == 0
net.stop()
"""


def test_what_a_killed_network_left_is_removed_by_the_next(repository: Path) -> None:
    killed = python(repository, "-c", KILLED.format(kill=True))
    assert killed.returncode == -9 and left() == [killed.stdout.strip()], killed.stderr
    done = python(repository, "-c", KILLED.format(kill=False))
    assert done.returncode == 0 and left() == [], done.stderr


SETTINGS = """
from longwire.mininet import link_settings
plain = {
    "rate": "unlimited", "framing": "ethernet", "overhead": 0, "loss": None,
    "delay.kind": "constant", "delay.delay": "0 ms",
    "queue.kind": "tail-drop", "queue.limit": "1000 packets",
    "bit-error": None, "duplicate": None, "reorder": None, "filter": None, "mtu": None, "background": None,
}
assert link_settings() == plain
given = link_settings(bw=2.5, delay=1000, loss=1, max_queue_size=7)
changed = {"rate": "2.5 Mbit/s", "delay.delay": "1000 us", "loss": "1 %", "queue.limit": "7 packets"}
assert given == {**plain, **changed}
assert link_settings(jitter="2ms")["delay.kind"] == "jitter"
assert link_settings(enable_ecn=True)["queue.ecn"] == "yes"
assert link_settings(longwire={"profile": "lte"}) == {"profile": "lte"}
assert link_settings(bw=5, longwire={"profile": "adsl"}) == {"rate": "5 Mbit/s", "profile": "adsl"}
assert not {"framing", "overhead"} & link_settings(longwire={"rate.kind": "slotted"}).keys()
replaced = {"queue.kind", "queue.limit"}
assert link_settings(delay="1ms", longwire={"queue": "codel"}).keys() == plain.keys() - replaced | {"queue"}
assert link_settings(bw=1, longwire={"overhead": 4, "mtu": 900}) == {
    **plain, "rate": "1 Mbit/s", "overhead": 4, "mtu": 900
}
"""


def test_parameters_become_settings(repository: Path) -> None:
    done = python(repository, "-c", SETTINGS)
    assert done.returncode == 0, done.stderr
