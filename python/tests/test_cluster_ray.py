"""A cluster on Ray: nodes of it in namespaces, which a switch joins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Dict, Iterator, List, Tuple

import pytest
from machines import Process, ping, until, why_not

from longwire import LongwireError, Scenario
from longwire.cluster import Underlay, on_ray

#: The coordinator, and what it does to an agent meanwhile.
SCRIPT = """
import json, os, signal, sys, time
import ray
from longwire import Scenario
from longwire.cluster import Underlay, on_ray

net = Scenario()
net.host("a")
net.host("b")
net.link("a", "b", "wan", delay="20 ms")
ray.init(address="192.0.2.1:6399", _node_ip_address="192.0.2.1", log_to_driver=False)
placed = on_ray(net, Underlay("500 us", "100 us"), nodes=[["a"], ["b"]], name=sys.argv[1], state="ray.json")
with placed as wan:
    wan.wait_connected(timeout=60)
    print("connected", file=sys.stderr, flush=True)
    sys.stdin.readline()
    pid = ray.get(placed.actors[1].about.remote())["pid"]
    os.kill(pid, signal.SIGKILL)
    assert wan.wait(lambda one: bool(one.losses), timeout=60)
    print("lost", file=sys.stderr, flush=True)
    assert wan.wait(lambda one: one.nodes["m1"].is_running, timeout=60)
    wan.wait_connected(timeout=60)
    # Ray starts an actor that has died again; the agent of the dead one has ended with it.
    ray.kill(placed.actors[0], no_restart=False)
    assert wan.wait(lambda one: len(one.losses) == 2 and one.nodes["m0"].is_running, timeout=60)
    wan.wait_connected(timeout=60)
    print("returned", file=sys.stderr, flush=True)
    sys.stdin.readline()
with open("report.json", "w") as file:
    json.dump(wan.report, file)
"""


#: The coordinator of three nodes, one of which is lost.
THREE = """
import json, sys
import ray
from longwire import Scenario
from longwire.cluster import Underlay, on_ray

net = Scenario()
for host, bridge in zip("abc", ("left", "middle", "right")):
    net.bridge(bridge)
    net.host(host, bridge=bridge)
net.link("left", "middle", "west", delay="20 ms")
net.link("middle", "right", "east", delay="10 ms")
ray.init(address="192.0.2.1:6399", _node_ip_address="192.0.2.1", log_to_driver=False)
bridges = [["left"], ["middle"], ["right"]]
placed = on_ray(
    net, Underlay("500 us", "100 us"), machines=3, nodes=bridges, name=sys.argv[1], state="ray.json"
)
with placed as wan:
    wan.wait_connected(timeout=60)
    about = ray.get([actor.about.remote() for actor in placed.actors])
    print("connected:", json.dumps([one["address"] for one in about]), file=sys.stderr, flush=True)
    assert wan.wait(lambda one: bool(one.losses), timeout=60)
    print("lost", file=sys.stderr, flush=True)
    assert wan.wait(lambda one: all(node.is_running for node in one.nodes.values()), timeout=120)
    wan.wait_connected(timeout=60)
    print("returned", file=sys.stderr, flush=True)
    sys.stdin.readline()
with open("report.json", "w") as file:
    json.dump(wan.report, file)
"""


def space(number: int) -> str:
    return f"lwray{os.getpid()}-{number}"


def call(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class RayNodes:
    """Nodes of Ray, numbered from 1, each in a namespace. The switch is in that of the first, the head."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self._numbers = range(1, count + 1)
        self._started: Dict[int, subprocess.Popen[bytes]] = {}
        # Ray's sockets have long names below this folder.
        self._ray = Path(f"/tmp/lwray{os.getpid()}")
        for number in self._numbers:
            call("ip", "netns", "add", space(number))
            call("ip", "-n", space(number), "link", "set", "lo", "up")
        call("ip", "-n", space(1), "link", "add", "name", "eth", "type", "bridge")
        for number in self._numbers[1:]:
            peer = ["peer", "name", "eth", "netns", space(number)]
            call("ip", "-n", space(1), "link", "add", f"to{number}", "type", "veth", *peer)
            call("ip", "-n", space(1), "link", "set", f"to{number}", "master", "eth", "up")
        for number in self._numbers:
            call("ip", "-n", space(number), "address", "add", f"192.0.2.{number}/24", "dev", "eth")
            call("ip", "-n", space(number), "link", "set", "eth", "up")

    def start(self, number: int) -> None:
        """Starts a node, and waits until it has joined."""
        command = [str(Path(sys.executable).with_name("ray")), "start", f"--node-ip-address=192.0.2.{number}"]
        head = ["--head", "--port=6399", "--include-dashboard=false", f"--temp-dir={self._ray}"]
        command += head if number == 1 else ["--address=192.0.2.1:6399"]
        command += ["--num-cpus=1", "--object-store-memory=100000000", "--block"]
        inside = ["nsenter", f"--net=/run/netns/{space(number)}", *command]
        environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
        log = self.folder / f"ray{number}"
        with open(log, "w") as file:
            self._started[number] = subprocess.Popen(inside, stdout=file, stderr=file, env=environment)
        assert until(lambda: "Ray runtime started" in log.read_text()), number

    def kill(self, number: int) -> None:
        """Ends all that runs on a node at once, as if it lost its power."""
        assert until(lambda: ended(space(number))), number
        self._started.pop(number).wait(60)

    def coordinate(self, script: str, name: str) -> Tuple[Process, int]:
        """Starts a script on the head, and returns it with the standard input that it reads."""
        (self.folder / "script.py").write_text(textwrap.dedent(script))
        inside = ["nsenter", f"--net=/run/netns/{space(1)}", sys.executable, "script.py", name]
        read, write = os.pipe()
        coordinator = Process(inside, cwd=self.folder, stdin=read)
        os.close(read)
        return coordinator, write

    def report(self, coordinator: Process, stdin: int) -> Any:
        """Ends a coordinator by the end of its input, and returns its report. Ray prints, too."""
        os.close(stdin)
        assert coordinator.child.wait(60) == 0, coordinator.lines
        found = json.loads((self.folder / "report.json").read_text())
        assert found["pass"], found
        return found

    def close(self) -> None:
        """Ends the nodes, also after a failure, and removes the namespaces."""
        for node in self._started.values():
            node.terminate()
        for node in self._started.values():
            node.wait(60)
        for number in self._numbers:
            # What Ray has left of its own processes.
            assert until(lambda: ended(space(number))), space(number)
            call("ip", "netns", "del", space(number))
        call("rm", "-rf", str(self._ray))


@pytest.fixture
def nodes(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RayNodes]:
    pytest.importorskip("ray", reason="Ray is not installed")
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    made = RayNodes(tmp_path, request.param)
    try:
        for number in range(1, request.param + 1):
            made.start(number)
        yield made
    finally:
        made.close()


def ended(name: str) -> bool:
    """Ends what runs in a namespace. Returns whether nothing does any more."""
    processes = call("ip", "netns", "pids", name).split()
    subprocess.run(["kill", "-9", *processes], check=False, capture_output=True)
    return processes == []


@pytest.mark.parametrize("nodes", [2], indirect=True)
def test_agents_are_placed_supervised_and_reached(nodes: RayNodes) -> None:
    name = f"r{os.getpid()}"
    coordinator, stdin = nodes.coordinate(SCRIPT, name)
    coordinator.line("connected")
    assert ping(f"{name}-m0", "a", "10.0.0.2", "-c", "2").returncode == 0
    os.write(stdin, b"\n")
    coordinator.line("lost")
    coordinator.line("returned")
    assert until(lambda: ping(f"{name}-m0", "a", "10.0.0.2", "-c", "1").returncode == 0)
    found = nodes.report(coordinator, stdin)
    for node, cause in zip(("m1", "m0"), found["fidelity"]["causes"]):
        assert cause.startswith(f"node {node} was lost for"), found["fidelity"]
    assert [node["name"] for node in found["nodes"]] == ["m0", "m1"]
    for node in found["nodes"]:
        assert [loss["noticed_within_ns"] > 0 for loss in node["losses"]] == [True], node


@pytest.mark.parametrize("nodes", [3], indirect=True)
def test_a_killed_node_of_three_is_lost_and_rejoins(nodes: RayNodes) -> None:
    name = f"r{os.getpid()}"
    coordinator, stdin = nodes.coordinate(THREE, name)
    addresses = json.loads(coordinator.line("connected: ").partition(": ")[2])
    assert sorted(addresses) == ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    # One end of the chain is not on the head, without which there is no cluster.
    lost, other = (2, 0) if addresses[2] != "192.0.2.1" else (0, 2)
    ends = {0: ("a", "10.0.0.1"), 2: ("c", "10.0.0.3")}
    from_other = (f"{name}-m{other}", ends[other][0])
    assert ping(*from_other, ends[lost][1], "-c", "2").returncode == 0
    number = int(addresses[lost].rpartition(".")[2])
    nodes.kill(number)
    coordinator.line("lost")
    assert ping(*from_other, "10.0.0.2", "-c", "2").returncode == 0, "the rest goes on"
    nodes.start(number)
    coordinator.line("returned")
    assert until(lambda: ping(*from_other, ends[lost][1], "-c", "1").returncode == 0)
    found = nodes.report(coordinator, stdin)
    assert not found["fidelity"]["faithful"], found["fidelity"]
    assert found["fidelity"]["causes"][0].startswith(f"node m{lost} was lost for "), found["fidelity"]
    assert [len(node["losses"]) for node in found["nodes"]] == [int(place == lost) for place in range(3)]


class FakeRay(ModuleType):
    """Ray with two nodes, of 1 and 4 CPUs, that other work has: it never places anything."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.asked: List[Any] = []
        self.util = SimpleNamespace(remove_placement_group=lambda group: None)

    def nodes(self) -> List[Any]:
        dead = {"Alive": False, "Resources": {"CPU": 9.0}}
        return [dead, *({"Alive": True, "Resources": {"CPU": cpus}} for cpus in (1.0, 4.0))]

    def cluster_resources(self) -> Dict[str, float]:
        return {"CPU": 5.0}

    def available_resources(self) -> Dict[str, float]:
        return {}

    def placement_group(self, bundles: Any, strategy: str) -> Any:
        self.asked.append((bundles, strategy))
        return SimpleNamespace(wait=lambda seconds: False)


@pytest.fixture
def fake_ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    ray = FakeRay()
    groups = SimpleNamespace(placement_group=ray.placement_group)
    for name, module in (("", ray), (".util.placement_group", groups), (".util.scheduling_strategies", ray)):
        monkeypatch.setitem(sys.modules, f"ray{name}", module)
    return ray


def wan(rate: str) -> Scenario:
    net = Scenario()
    net.host("a")
    net.host("b")
    net.link("a", "b", "wan", rate=rate, delay="20 ms")
    return net


def test_what_a_cluster_has_no_room_for_is_refused_at_once(fake_ray: FakeRay) -> None:
    underlay = Underlay("150 us", "30 us")
    with pytest.raises(LongwireError, match=r"2 machines with 2 CPUs .* 1 of 2 have as many \(1 \+ 4 CPUs\)"):
        on_ray(wan("10mbit"), underlay, cores=2)
    with pytest.raises(LongwireError, match=r"needs \d+ cores, and 2 machines of 1 have 2"):
        on_ray(wan("100gbit"), underlay)
    assert fake_ray.asked == [], "no machine was asked for"


def test_machines_that_other_work_has_are_waited_for(fake_ray: FakeRay) -> None:
    with pytest.raises(LongwireError, match="2 with 1 free CPUs are needed, and of its 5 CPUs 0 are free"):
        on_ray(wan("10mbit"), Underlay("150 us", "30 us"))
    assert fake_ray.asked == [([{"CPU": 1}] * 2, "STRICT_SPREAD")]


def test_without_ray_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(LongwireError, match="Ray is not installed; pip install ray"):
        on_ray("wan.toml", Underlay("150 us", "30 us"))
