"""The coordinator of a cluster, with agents of tests: what it starts, notices, reports and adopts."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import re
import stat
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

import pytest
from fake_agent import FakeAgent

from longwire import LongwireError, NotFaithful, Scenario
from longwire.cluster import Credentials, Host, RemoteApi, Underlay, adopt, parts_of, run
from longwire.cluster.__main__ import _KEYS, _hosts
from longwire.cluster._parts import _key_of
from longwire.cluster._ray import admit, demand
from longwire.cluster._report import merged
from longwire.cluster._run import ASK_TIME, EVERY, PATIENCE, own_version
from longwire.cluster._state import MOST_LOSSES, Loss, State

#: Time limit for what must happen, in seconds.
TIME = 60.0
UNDERLAY = Underlay("150 us", "30 us")


def wan(delay: str = "20 ms", rate: str = "10mbit") -> Scenario:
    net = Scenario()
    net.host("a")
    net.host("b")
    net.link("a", "b", "wan", rate=rate, delay=delay)
    return net


class Agents:
    """Two agents, and how to reach them."""

    def __init__(self, folder: Path) -> None:
        self.all: List[FakeAgent] = [FakeAgent(own_version()) for _ in range(2)]
        token = folder / "token"
        token.write_text(self.all[0].token)
        self.credentials = Credentials(token=token)
        self.state = folder / "wan.json"
        self.hosts = [
            Host(name, f"192.0.2.{number}", agent.url, nodes=(node,))
            for number, (name, node, agent) in enumerate(zip(("one", "two"), "ab", self.all), 1)
        ]

    def run(self, scenario: Optional[Scenario] = None, **options: Any) -> Any:
        own: Dict[str, Any] = {"name": "wan", "credentials": self.credentials, "state": self.state}
        return run(scenario or wan(), self.hosts, UNDERLAY, **own, **options)


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Agents]:
    made = Agents(tmp_path)
    yield made
    for agent in made.all:
        agent.kill()


def test_parts_have_the_keys_of_their_tunnels() -> None:
    hosts = [
        Host(name, f"192.0.2.{n}", nodes=nodes)
        for n, (name, nodes) in enumerate([("one", ("a",)), ("two", ("b",)), ("three", ("c",))], 1)
    ]
    net = Scenario()
    for name in ("left", "middle", "right"):
        net.bridge(name)
    for name, bridge in zip("abc", ("left", "middle", "right")):
        net.host(name, bridge=bridge)
    net.link("left", "middle", "west", rate="1mbit", delay="5 ms")
    net.link("middle", "right", "east", rate="1mbit", delay="5 ms")
    parts, report = parts_of(net, hosts, UNDERLAY)
    assert report["pass"] and sorted(parts) == ["one", "three", "two"]
    keys = {name: set(part.files) for name, part in parts.items()}
    assert keys["one"] == {"tunnel-one.two.key"} and keys["three"] == {"tunnel-two.three.key"}
    assert keys["two"] == keys["one"] | keys["three"]
    assert parts["one"].files["tunnel-one.two.key"] == parts["two"].files["tunnel-one.two.key"]
    assert len(set(parts["two"].files.values())) == 2, "each pair has a key of its own"
    again, _ = parts_of(net, hosts, UNDERLAY)
    assert again["one"].files != parts["one"].files, "and each run others"


def test_each_pair_has_a_key_of_its_own_whatever_the_names() -> None:
    pairs = itertools.combinations(["a-b", "c", "a", "b-c"], 2)
    assert len({_key_of(one, other) for one, other in pairs}) == 6


def test_tunnels_of_the_scenario_keep_their_keys() -> None:
    net = Scenario()
    for name, bridge in zip("ab", ("left", "right")):
        net.bridge(bridge)
        net.host(name, bridge=bridge)
    net.link("left", "right", "wan", rate="1mbit", delay="20 ms")
    ends = {"listen": "192.0.2.1:9000", "peer": "192.0.2.9:9000"}
    net.port("home", "tunnel", **ends, key="tunnel-my.home.key", bridge="left")
    hosts = [Host("one", "192.0.2.1", nodes=("a", "home")), Host("two", "192.0.2.2", nodes=("b",))]
    parts, _ = parts_of(net, hosts, UNDERLAY)
    assert 'key = "tunnel-my.home.key"' in parts["one"].toml
    assert list(parts["one"].files) == ["tunnel-one.two.key"]


def test_files_of_the_scenario_are_sent(tmp_path: Path) -> None:
    scenario = tmp_path / "wan.toml"
    wan().save(scenario)
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "lte.csv").write_bytes(b"\x00\xff")
    hosts = [Host("one", "192.0.2.1", nodes=("a",)), Host("two", "192.0.2.2", nodes=("b",))]
    parts, _ = parts_of(scenario, hosts, UNDERLAY, ["traces/lte.csv"])
    assert all(part.files["traces/lte.csv"] == "00ff" for part in parts.values())
    for name in ("../x", "/etc/passwd", "traces/none"):
        with pytest.raises(LongwireError, match="relative|can't be sent"):
            parts_of(scenario, hosts, UNDERLAY, [name])


def test_what_can_not_be_cut_says_the_arithmetic(agents: Agents) -> None:
    with pytest.raises(LongwireError, match="delay 100 us < latency 150 us \\+ clock error 30 us"):
        parts_of(wan("100 us"), agents.hosts, UNDERLAY)
    with pytest.raises(LongwireError, match="give 2 to 100"):
        run(wan(), agents.hosts[:1], UNDERLAY)
    with pytest.raises(LongwireError, match="can't be a name"):
        run(wan(), agents.hosts, UNDERLAY, name="../x")


def test_mistakes_in_hosts_name_what_was_written(agents: Agents, tmp_path: Path) -> None:
    with pytest.raises(LongwireError, match='^latency: "150" has no unit'):
        parts_of(wan(), agents.hosts, Underlay("150", "30 us"))
    with pytest.raises(LongwireError, match='^clock_error: "fast" does not begin with a number'):
        parts_of(wan(), agents.hosts, Underlay("150 us", "fast"))
    with pytest.raises(LongwireError, match='^hosts: "here" can\'t be the address of the machine two'):
        parts_of(wan(), [agents.hosts[0], Host("two", "here")], UNDERLAY)

    scenario, hosts = tmp_path / "wan.toml", tmp_path / "hosts.json"
    wan().save(scenario)
    listed = [host.to_json() for host in agents.hosts]
    hosts.write_text(json.dumps({"latency": "150", "clock_error": "30 us", "hosts": listed}))
    command = [sys.executable, "-m", "longwire.cluster", "run", str(scenario), "--hosts", str(hosts)]
    done = subprocess.run(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith(f'error: {hosts}: latency: "150" has no unit')


@pytest.mark.parametrize(
    "wrong, why",
    [
        (1, "1 is no object"),
        ({"delay": "1 ms"}, 'there is no "delay"'),
        ({"address": 1}, "name or address is missing"),
        ({"nodes": "uplink"}, "nodes is no list of names"),
        ({"cores": "2"}, "cores is no whole number"),
        ({"prices": 1}, "prices is no text"),
    ],
)
def test_mistakes_in_a_host_of_a_file_are_named(wrong: Any, why: str) -> None:
    right = Host("one", "192.0.2.1", "https://192.0.2.1:8399", ("a",), 2, "one.prices")
    assert Host.of_json(right.to_json()) == right
    given = {**right.to_json(), **wrong} if isinstance(wrong, dict) else wrong
    with pytest.raises(LongwireError, match=f"^a host of the cluster is wrong: {re.escape(why)}"):
        Host.of_json(given)


def test_a_file_of_hosts_is_read_where_it_lies(tmp_path: Path) -> None:
    file = tmp_path / "hosts.json"
    one = {"name": "one", "address": "192.0.2.1", "prices": "one.prices"}
    keys = {"latency": "1 ms", "clock_error": "1 us", "hosts": [one]}
    file.write_text(json.dumps(keys))
    assert _hosts(file)["hosts"][0].prices == tmp_path / "one.prices"
    for key, wrong in (("hosts", None), ("hosts", {}), ("files", 3)):
        file.write_text(json.dumps({**keys, key: wrong}))
        with pytest.raises(LongwireError, match=f"{key} is no list"):
            _hosts(file)


def test_the_book_lists_the_keys_of_a_file_of_hosts(repository: Path) -> None:
    page = (repository / "docs" / "book" / "cluster.md").read_text(encoding="utf-8")
    section = page.split("From a shell:")[1].split("## On Ray")[0]
    keys = _KEYS | {field.name for field in fields(Host)}
    assert [key for key in sorted(keys) if f'"{key}"' not in section and f"`{key}`" not in section] == []


def test_a_run_starts_and_ends_on_all_hosts(agents: Agents) -> None:
    with agents.run() as running:
        assert stat.S_IMODE(agents.state.stat().st_mode) == 0o600, "it has keys"
        running.wait_connected(timeout=TIME)
        sent = [agent.parts for agent in agents.all]
        assert [list(parts) for parts in sent] == [["wan-one"], ["wan-two"]]
        body = sent[0]["wan-one"]["body"]
        assert 'name = "a"' in body["toml"] and list(body["files"]) == ["tunnel-one.two.key"]
        assert running.verdict and running.stats()["conservation"] == {
            "come": 20,
            "gone": 20,
            "accounted": True,
        }
        with pytest.raises(LongwireError, match="another coordinator"):
            adopt(agents.state)
    report = running.report
    assert report["pass"] and report["fidelity"] == {"faithful": True, "causes": []}
    assert {row["node"] for row in report["rows"]} == {"one", "two"} and report["dropped"] == {"loss": 2}
    assert [agent.parts for agent in agents.all] == [{}, {}] and not agents.state.exists()
    running.require_faithful()


def test_unconnected_tunnels_are_named(agents: Agents) -> None:
    agents.all[1].connected = False
    with agents.run() as running, pytest.raises(LongwireError, match="cut0-x of node two"):
        running.wait_connected(timeout=0.0)


def test_another_version_is_refused_with_both(agents: Agents) -> None:
    agents.all[1].version = "0.0.9"
    with pytest.raises(
        LongwireError, match=f"node two: .* version 0.0.9, and the coordinator {own_version()}"
    ):
        agents.run()
    assert agents.all[0].parts == {} and not agents.state.exists(), "nothing was started"


def test_a_part_that_takes_more_than_its_agent_has_is_refused(agents: Agents) -> None:
    # The hosts are said to have 4 cores, and the agents have 2.
    agents.hosts = [replace(host, cores=4) for host in agents.hosts]
    parts, report = parts_of(wan(rate="5gbit"), agents.hosts, UNDERLAY)
    rows = {row["machine"]: row for row in report["rows"] if row.get("kind") == "machine"}
    assert {host: part.load_ppm for host, part in parts.items()} == {
        host: row["load_ppm"] for host, row in rows.items()
    }
    load = -(-rows["one"]["load_ppm"] // 10_000) / 100
    assert 2 < load < 4
    said = f"node one: its part takes {load:.2f} cores, and its agent has 2;"
    with pytest.raises(LongwireError, match=re.escape(said)):
        agents.run(wan(rate="5gbit"))
    assert [agent.parts for agent in agents.all] == [{}, {}] and not agents.state.exists()
    with agents.run(wan(rate="2gbit")):
        (sent,) = [part["load_ppm"] for part in agents.all[0].parts.values()]
        assert 0 < sent < 2_000_000, "others read there what it takes"


def test_parts_that_run_at_an_agent_already_take_their_load(agents: Agents) -> None:
    ended = {"run": "1", "condition": "ended", "load_ppm": 2_000_000}
    runs = dict(ended, condition="running")
    agents.all[1].parts.update(old=dict(ended), dns=dict(runs, load_ppm=600_000))
    # A dozen small ones have room on two cores.
    agents.all[1].parts.update({f"small{n}": dict(runs, load_ppm=50_000) for n in range(12)})
    agents.run().end()
    # One whose sender has not said what it takes may take a core.
    agents.all[1].parts["web"] = {"run": "1", "condition": "starting"}
    said = r"node two: its part takes 0.\d\d cores, .* takes 2.20 \(dns 0.60, .*, web 1.00\), .* has 2;"
    with pytest.raises(LongwireError, match=said):
        agents.run()
    assert agents.all[0].parts == {} and not agents.state.exists(), "nothing was started"


def test_an_agent_that_knows_no_such_token_is_named(agents: Agents) -> None:
    agents.all[1].token = "u" * 32
    with pytest.raises(LongwireError, match="node two: send a token"):
        agents.run()
    assert agents.all[0].parts == {} and not agents.state.exists(), "nothing was started"


def test_what_an_agent_refuses_ends_the_others(agents: Agents) -> None:
    agents.all[1].refuses = "seed: write a number"
    with pytest.raises(LongwireError, match="node two: seed: write a number"):
        agents.run()
    assert agents.all[0].parts == {} and not agents.state.exists()


def test_a_lost_node_is_named_and_gets_its_part_again(agents: Agents) -> None:
    events: List[Any] = []
    with agents.run(on_event=events.append) as running:
        run_id, port = running.id, agents.all[1].port
        agents.all[1].kill()
        assert running.wait(lambda one: bool(one.losses), timeout=TIME)
        assert not running.verdict and "node two was lost and has not returned" in running.verdict.causes[0]
        assert running.nodes["one"].is_running, "the rest goes on"
        agents.all[1] = FakeAgent(own_version(), port=port)
        assert running.wait(lambda one: one.nodes["two"].is_running, timeout=TIME)
        assert agents.all[1].parts["wan-two"]["run"] == run_id
        with pytest.raises(NotFaithful, match="node two was lost for"):
            running.require_faithful()
    assert not running.report["fidelity"]["faithful"] and running.report["nodes"][1]["losses"]
    own = [event.kind for event in events if event.node == "two"]
    assert own == ["started", "lost", "returned"], own


def test_a_node_without_an_answer_is_not_faithful(agents: Agents) -> None:
    with agents.run() as running:
        # It is not known yet that the node is lost.
        running._unwatch()
        running._stop.clear()
        agents.all[1].kill()
        assert running.verdict.causes == ("node two gave no report",)
        agents.all[1] = FakeAgent(own_version())


def test_a_loss_is_told_once_however_many_there_were(agents: Agents) -> None:
    events: List[Any] = []
    with agents.run(on_event=events.append) as running:
        running._unwatch()
        running._stop.clear()
        running._state.losses += [Loss("two", 1, 2, "often")] * MOST_LOSSES
        for _ in range(3):
            running._lose(running.nodes["two"], "again")
        assert [event.kind for event in events if event.node == "two"] == ["started", "lost"]


def test_a_silent_node_is_lost_and_the_report_says_how_soon(agents: Agents) -> None:
    events: List[Any] = []
    with agents.run(on_event=events.append) as running:
        agents.all[1].answers.clear()
        assert running.wait(lambda one: bool(one.losses), timeout=TIME)
        within = running.losses[0].noticed_within_ns
        assert within is not None and within > PATIENCE * 1e9, "one silent moment is no loss"
        agents.all[1].answers.set()
        assert running.wait(lambda one: one.nodes["two"].is_running, timeout=TIME)
    (loss,) = running.report["nodes"][1]["losses"]
    assert loss["noticed_within_ns"] == within and loss["to_ns"] > loss["from_ns"]
    said = f"(noticed within {within / 1e9:.1f} s)"
    (cause,) = running.report["fidelity"]["causes"]
    assert cause.startswith("node two was lost for ") and cause.endswith(said)
    assert [str(event) for event in events if event.kind == "lost"] == [
        f"node two is lost: {loss['reason']} {said}"
    ]


def test_one_silent_moment_after_a_long_start_is_no_loss(agents: Agents) -> None:
    with agents.run() as running:
        running._unwatch()
        running._stop.clear()
        running.nodes["two"].answered -= 60.0
        agents.all[1].answers.clear()
        begun = time.monotonic()
        running.watch()
        assert running.wait(lambda one: bool(one.losses), timeout=TIME)
        assert time.monotonic() - begun > PATIENCE
        agents.all[1].answers.set()


def test_watching_goes_on_whatever_receives_events(agents: Agents, capfd: pytest.CaptureFixture[str]) -> None:
    with agents.run(on_event=lambda event: 1 // 0) as running:
        agents.all[1].kill()
        assert running.wait(lambda one: bool(one.losses), timeout=TIME)
        agents.all[1] = FakeAgent(own_version(), port=agents.all[1].port)
        assert running.wait(lambda one: one.nodes["two"].is_running, timeout=TIME)
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_a_loss_before_the_coordinator_came_has_no_time(agents: Agents) -> None:
    agents.run().detach()
    del agents.all[1].parts["wan-two"]
    with adopt(agents.state) as second:
        assert second.wait(lambda one: bool(one.losses), timeout=TIME)
        assert second.losses[0].noticed_within_ns is None and "within" not in str(second.losses[0])


def test_a_part_that_an_agent_lost_is_sent_again(agents: Agents) -> None:
    with agents.run() as running:
        agents.all[0].parts["wan-one"].update(condition="failed", error="a worker has failed")
        assert running.wait(lambda one: bool(one.losses) and one.nodes["one"].is_running, timeout=TIME)
        assert "a worker has failed" in running.losses[0].reason
        agents.all[0].version = "0.0.9"
        assert running.wait(lambda one: len(one.losses) == 2, timeout=TIME)
        assert "version 0.0.9" in running.losses[1].reason


def test_a_new_coordinator_adopts_what_runs(agents: Agents) -> None:
    first = agents.run()
    run_id, bodies = first.id, [dict(agent.parts) for agent in agents.all]
    first.detach()
    del agents.all[1].parts["wan-two"]
    with adopt(agents.state) as second:
        assert second.id == run_id
        assert second.wait(lambda one: all(n.is_running for n in one.nodes.values()), timeout=TIME)
        assert agents.all[0].parts == bodies[0], "what runs goes on"
        assert agents.all[1].parts["wan-two"]["body"] == bodies[1]["wan-two"]["body"], "with the same key"
        assert not second.verdict, "it was away"
    assert not agents.state.exists()


def test_states_of_earlier_versions_are_read() -> None:
    old = {"node": "two", "from_ns": 1, "to_ns": 2_000_000_001, "reason": "gone"}
    about = {"cluster": "wan", "run": "1", "started_ns": 1, "hosts": [], "credentials": {}}
    parts = {"one": {"toml": "", "files": {}}, "two": {"toml": "", "files": {}, "cores": 3}}
    state = State.of_json({"format": 1, **about, "parts": parts, "losses": [old]})
    assert [part.load_ppm for part in state.parts.values()] == [1_000_000, 3_000_000]
    assert str(state.losses[0]) == "node two was lost for 2.0 s: gone"


def test_states_that_are_damaged_are_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    for text in ("", "{", "[]", "{}", json.dumps({"format": 2}), json.dumps({"format": 1, "parts": 3})):
        state.write_text(text)
        with pytest.raises(LongwireError, match="can't be read"):
            adopt(state)


def test_agents_are_reached_safely(tmp_path: Path) -> None:
    nobody = Credentials()
    for url in ("http://192.0.2.1:8399", "https://192.0.2.1:8399"):
        with pytest.raises(LongwireError, match="others could read|no authority"):
            RemoteApi(url, nobody)
    for url in (
        "",
        "192.0.2.1:8399",
        "ftp://x:1",
        "https://a@x:1",
        "https://x:1/v1",
        "http://localhost:99999",
    ):
        with pytest.raises(LongwireError, match="no address"):
            RemoteApi(url, nobody)
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(LongwireError, match="credentials"):
        RemoteApi("https://192.0.2.1:1", Credentials(ca=tmp_path / "ca.pem"))


def test_reports_of_nodes_become_one() -> None:
    def node(name: str, peer: str, sent: int, received: int, lost: int) -> Any:
        port = {
            "name": f"cut0-{peer}",
            "kind": "port",
            "out_frames": sent,
            "in_frames": received,
            "underlay": {"lost_messages": lost, "overdue_packets": 0, "clock_error_ns": 900},
        }
        return {
            "fidelity": None,
            "dropped": {},
            "rows": [port, {"name": "packets accounted for", "expected": 9, "measured": 9, "pass": True}],
        }

    reports = {"one": node("one", "two", 7, 3, 0), "two": node("two", "one", 3, 6, 1)}
    report = merged({}, reports, [])
    there, back = report["tunnels"]
    assert (there["from"], there["sent_packets"], there["received_packets"], there["lost_messages"]) == (
        "one",
        7,
        6,
        1,
    )
    assert back["sent_packets"] == back["received_packets"] == 3
    assert report["pass"] and report["fidelity"]["faithful"]
    lost = merged({}, {**reports, "two": None}, [Loss("two", 1, 2_000_000_001, "gone")])
    assert not lost["pass"] and lost["fidelity"]["causes"] == [
        "node two was lost for 2.0 s: gone",
        "node two gave no report",
    ]


def test_a_silent_node_is_noticed_within_three_seconds() -> None:
    # By the coordinator's clock: a busy machine adds to it. One question may fail.
    assert EVERY + ASK_TIME < PATIENCE < 2 * (EVERY + ASK_TIME) <= 3


def test_the_scale_on_paper_is_computed(repository: Path) -> None:
    spec = importlib.util.spec_from_file_location("scale", repository / "python" / "scale.py")
    assert spec is not None and spec.loader is not None
    scale = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scale)
    text = scale.PAGE.read_text(encoding="utf-8")
    assert scale.page(text) == text, "run python/scale.py --write"
    assert (scale.EVERY_S, scale.ASK_S, scale.PATIENCE_S) == (EVERY, ASK_TIME, PATIENCE)
    sources = [line.source.split(": ") for line in scale.lines()]
    files = [names[1] for names in sources if names[0] == "measured"]
    assert files and all((repository / "docs" / "results" / name).is_file() for name in files)


def test_admission_is_arithmetic() -> None:
    assert demand(wan()) == 1
    many = Scenario()
    for number in range(8):
        many.host(f"h{number}")
    for number in range(0, 8, 2):
        many.link(f"h{number}", f"h{number + 1}", rate="10gbit", delay="5 ms")
    assert demand(many) > 1
    admit(2, 2, 1, [1.0, 2.0])
    with pytest.raises(LongwireError, match="needs 3 cores, and 2 machines of 1 have 2"):
        admit(3, 2, 1, [4.0, 4.0])
    with pytest.raises(LongwireError, match=r"2 machines with 2 CPUs .* 1 of 2 .* \(4 \+ 1 CPUs\)"):
        admit(3, 2, 2, [4.0, 1.0])


def test_nothing_is_left(agents: Agents) -> None:
    agents.run().end()
    left = sorted(os.listdir(agents.state.parent))
    assert left == ["token", "wan.json.lock"]
