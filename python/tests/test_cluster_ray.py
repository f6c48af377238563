"""A cluster on Ray: two nodes of it in two namespaces, which a cable joins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Dict, Iterator, List

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
json.dump(wan.report, sys.stdout)
"""


def space(number: int) -> str:
    return f"lwray{os.getpid()}-{number}"


def call(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Path]:
    """Two nodes of Ray, each in a namespace, and a folder."""
    pytest.importorskip("ray", reason="Ray is not installed")
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    ray = str(Path(sys.executable).with_name("ray"))
    started = []
    for number in (1, 2):
        call("ip", "netns", "add", space(number))
    call("ip", "-n", space(1), "link", "add", "eth", "type", "veth", "peer", "name", "eth", "netns", space(2))
    for number in (1, 2):
        call("ip", "-n", space(number), "link", "set", "lo", "up")
        call("ip", "-n", space(number), "address", "add", f"192.0.2.{number}/24", "dev", "eth")
        call("ip", "-n", space(number), "link", "set", "eth", "up")
    # Ray's sockets have long names below this folder.
    folder = Path(f"/tmp/lwray{os.getpid()}")
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    common = ["--num-cpus=1", "--object-store-memory=100000000", "--block"]
    head = ["--head", "--port=6399", "--include-dashboard=false", f"--temp-dir={folder}"]
    try:
        for number, own in ((1, head), (2, ["--address=192.0.2.1:6399"])):
            command = [ray, "start", f"--node-ip-address=192.0.2.{number}", *own, *common]
            inside = ["nsenter", f"--net=/run/netns/{space(number)}", *command]
            with open(tmp_path / f"ray{number}", "w") as log:
                started.append(subprocess.Popen(inside, stdout=log, stderr=log, env=environment))
            text = "Ray runtime started"
            assert until(lambda: text in (tmp_path / f"ray{number}").read_text()), number
        yield tmp_path
    finally:
        for node in started:
            node.terminate()
        for node in started:
            node.wait(60)
        # Also that of a node that was not started, because the first one was not ready in time.
        for number in (1, 2):
            # What Ray has left of its own processes.
            assert until(lambda: ended(space(number))), space(number)
            call("ip", "netns", "del", space(number))
        call("rm", "-rf", str(folder))


def ended(name: str) -> bool:
    """Ends what runs in a namespace. Returns whether nothing does any more."""
    processes = call("ip", "netns", "pids", name).split()
    subprocess.run(["kill", "-9", *processes], check=False, capture_output=True)
    return processes == []


def test_agents_are_placed_supervised_and_reached(nodes: Path) -> None:
    (nodes / "script.py").write_text(textwrap.dedent(SCRIPT))
    name = f"r{os.getpid()}"
    inside = ["nsenter", f"--net=/run/netns/{space(1)}", sys.executable, "script.py", name]
    read, write = os.pipe()
    coordinator = Process(inside, cwd=nodes, stdin=read)
    os.close(read)
    coordinator.line("connected")
    assert ping(f"{name}-m0", "a", "10.0.0.2", "-c", "2").returncode == 0
    os.write(write, b"\n")
    coordinator.line("lost")
    coordinator.line("returned")
    assert until(lambda: ping(f"{name}-m0", "a", "10.0.0.2", "-c", "1").returncode == 0)
    os.write(write, b"\n")
    os.close(write)
    assert coordinator.child.stdout is not None
    found = json.loads(coordinator.child.stdout.read())
    coordinator.child.wait(60)
    assert found["pass"], found
    for node, cause in zip(("m1", "m0"), found["fidelity"]["causes"]):
        assert cause.startswith(f"node {node} was lost for"), found["fidelity"]
    assert [node["name"] for node in found["nodes"]] == ["m0", "m1"]
    for node in found["nodes"]:
        assert [loss["noticed_within_ns"] > 0 for loss in node["losses"]] == [True], node


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
