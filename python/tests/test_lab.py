"""Labs in real time: hosts, commands, changes, records, and what is left of them."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from datetime import timedelta
from ipaddress import ip_interface
from pathlib import Path
from typing import List

import pytest

from longwire import Lab, LongwireError, NotFaithful, Refused, Scenario, connect, instances

pytestmark = pytest.mark.usefixtures("labs")


def left(lab: Lab) -> List[str]:
    """What there is of a lab on the machine."""
    folder = Path("/run/netns")
    names = os.listdir(folder) if folder.exists() else []
    return [name for name in names if name.startswith(f"lw-{lab.name}-")] + [
        name for name in instances() if name == lab.name
    ]


def test_the_first_example() -> None:
    with Lab() as lab:
        a, b = lab.host("a"), lab.host("b")
        wan = lab.link(a, b, rate="10mbit", delay="20ms")
        assert (a.address, b.addresses) == ("10.0.0.1", ["10.0.0.2", "fd00::2"])
        ping = a.run("ping -4 -q -c 3 -i 0.1 b", capture_output=True, text=True)
        least = re.search(r"min/avg/max/mdev = ([0-9.]+)/", ping.stdout)
        assert least is not None and float(least.group(1)) >= 40, ping.stdout
        assert wan.settings["delay"] == "20 ms" and wan.forward.settings["rate"] == "10 Mbit/s"
        assert wan.forward.counters().out_packets >= 3
        assert lab.name in instances() and connect(lab.name).info()["name"] == lab.name
        assert left(lab)
    assert left(lab) == []
    assert lab.verdict is not None and lab.verdict.packets >= 6
    assert lab.report is not None and lab.report["mode"] == "real"
    assert {row["name"] for row in lab.rows("link")} == {"a-b.forward", "a-b.backward"}


def test_seed_and_settings_replace_those_of_the_scenario(tmp_path: Path) -> None:
    net = Scenario(seed=7)
    net.host("a")
    net.host("b")
    net.link("a", "b", "wan", rate="1mbit", delay="20 ms", loss="1%")
    file = tmp_path / "net.toml"
    net.save(file)
    settings = {"wan.rate": "5mbit", "wan.forward.delay": timedelta(milliseconds=7), "wan.loss": None}
    for lab in (Lab(net, seed=8, settings=settings), Lab.load(file, seed=8, settings=settings)):
        with lab:
            forward = lab.start().instance.link("wan.forward").settings
            assert (forward["rate"], forward["delay"]) == ("5 Mbit/s", "7 ms") and "loss" not in forward
            assert lab.instance.link("wan.backward").settings["delay"] == "20 ms"
            assert lab.instance.api.ask("GET", "/v1/scenario")["toml"].startswith("seed = 8\n")
    with pytest.raises(LongwireError, match='a link has no "dealy"') as raised:
        Lab(net, settings={"wan.dealy": "1 ms"}).start()
    assert raised.value.suggestion == "delay"


def test_addresses_are_texts_or_those_of_ipaddress() -> None:
    six = ip_interface("fd00::9/64")
    lab = Lab()
    assert lab.host("a", ip_interface("10.9.0.1/24")).address == "10.9.0.1"
    assert lab.host("b", ["10.9.0.2/24", six]).addresses == ["10.9.0.2", "fd00::9"]


def test_what_is_no_host_is_an_error_that_leads_to_links() -> None:
    with Lab() as lab:
        lab.link(lab.host("a"), lab.host("b"), "wan", delay="1 ms")
        wanted = r'no host "wan"; there are a, b; a link is lab\.instance\.link\("wan"\)'
        with pytest.raises(KeyError, match=wanted):
            lab["wan"].run("true")
        assert lab.instance.link("wan").forward.settings["delay"] == "1 ms"


def test_commands_are_processes() -> None:
    with Lab() as lab:
        a, b = lab.host("a"), lab.host("b")
        lab.link(a, b, delay="1 ms")
        echo = a.popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert echo.communicate("there and back")[0] == "there and back" and echo.returncode == 0
        assert a.run(["sh", "-c", "exit 7"], check=False).returncode == 7
        with pytest.raises(subprocess.CalledProcessError):
            a.run("false")
        assert a.run("cat", input=b"bytes", capture_output=True).stdout == b"bytes"
        assert a.run(["no-such-program"], check=False, capture_output=True).returncode == 127
        with pytest.raises(subprocess.TimeoutExpired):
            a.run(["sleep", "1000"], timeout=0.2)
        killed = a.popen(["sleep", "1000"])
        killed.kill()
        assert killed.wait() == -signal.SIGKILL
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        ended = a.popen("trap 'exit 3' TERM; echo on; cat", **pipes)
        # The shell waits for cat, and runs its trap when cat has read the end.
        assert ended.stdout is not None and ended.stdout.readline() == b"on\n"
        ended.terminate()
        ended.communicate()
        assert ended.returncode == 3
        lasting = b.popen("echo on; exec sleep 1000", stdout=subprocess.PIPE)
        assert lasting.stdout is not None and lasting.stdout.readline() == b"on\n"
    assert lasting.returncode is not None and lasting.returncode < 0


def test_links_change_while_packets_flow() -> None:
    with Lab() as lab:
        wan = lab.link(lab.host("a"), lab.host("b"), "wan", rate="10mbit", delay="20ms", loss="50%")
        assert wan.set(loss="1%", queue=50)["loss"] == "1 %"
        assert "loss" not in wan.set(loss=None)
        assert wan.set({"queue.kind": "red"}, queue="200 packets")["queue.kind"] == "red"
        wan.forward.set(delay="40ms", ramp="100 ms", step="50 ms")
        changed = [event["what"] for event in lab.instance.events()["log"]]
        assert any("delay" in what for what in changed), changed
        with pytest.raises(Refused) as refused:
            wan.set(dealy="1ms")
        problem = refused.value
        assert (problem.status, problem.field, problem.suggestion) == (422, "dealy", "delay")
        with pytest.raises(Refused) as refused:
            lab.instance.link("wam").set(delay="1ms")
        assert (refused.value.status, refused.value.suggestion) == (404, "wan")
        assert [link.name for link in lab.instance.links("wan*")] == ["wan.forward", "wan.backward"]


def test_hosts_and_links_join_and_leave() -> None:
    with Lab() as lab:
        a, b = lab.host("a"), lab.host("b")
        lab.link(a, b, delay="1 ms")
        lab.start()
        c = lab.host("c")
        spare = lab.link(a, c, "spare", delay="2 ms")
        assert c.address == "10.0.0.3"
        a.run(f"ping -4 -q -c 1 -W 5 {c.address}", stdout=subprocess.DEVNULL)
        assert spare.forward.counters().out_packets > 0
        assert {host.name for host in lab.hosts} == {"a", "b", "c"}
        spare.remove(drain=True)
        with pytest.raises(Refused):
            spare.show()
        lab.remove(c)
        assert [host.name for host in lab.hosts] == ["a", "b"]
        with pytest.raises(Refused):
            lab.link(a, "nobody")


def test_logs_and_series_are_tables(tmp_path: Path) -> None:
    capture = tmp_path / "arrivals.pcapng"
    with Lab(log=True, log_links="wan.*", series=True, every="20 ms", record=capture) as lab:
        a, b = lab.host("a"), lab.host("b")
        lab.link(a, b, "wan", delay="5 ms")
        a.run(f"ping -q -c 5 -i 0.05 {b.address}", stdout=subprocess.DEVNULL)
        seen = next(lab.watch("wan.forward"))
        assert [counters.link for counters in seen] == ["wan.forward"]
        with pytest.raises(LongwireError, match="complete"):
            lab.log()
    log = lab.log(event=["arrive", "leave"], link="wan.forward")
    assert set(log["event"]) == {"arrive", "leave"} and set(log["link"]) == {"wan.forward"}
    gone = log.where(event="leave")
    assert len(gone) >= 5
    assert all(e.arrival_ns is not None and e.time_ns - e.arrival_ns >= 5_000_000 for e in gone)
    series = lab.series().where(link="wan.forward")
    assert sum(series["out_packets"]) == len(gone)
    assert capture.stat().st_size > 0
    # Who reads only the beginning leaves nothing running.
    events = lab.events()
    assert next(events).time_ns >= 0
    events.close()


def test_events_come_while_the_lab_runs() -> None:
    with Lab(log=True) as lab:
        a, b = lab.host("a"), lab.host("b")
        lab.link(a, b, "wan", delay="5 ms")
        events = lab.events(event="leave", link="wan.forward")
        seen = []
        for _ in range(2):
            a.run(f"ping -4 -q -c 1 -W 5 {b.address}", stdout=subprocess.DEVNULL)
            seen.append(next(events))
        assert seen[1].time_ns > seen[0].time_ns and lab.name in instances()
        with pytest.raises(LongwireError, match="complete.*events()"):
            lab.log()
        # Who wants no more leaves nothing running.
        others = lab.events()
        next(others)
        others.close()
    seen += events
    assert seen == list(lab.log(event="leave", link="wan.forward"))
    assert len(seen) >= 2 and list(lab.events(event="leave", link="wan.forward")) == seen


def test_a_scenario_is_loaded(repository: Path) -> None:
    with Lab.load(repository / "scenarios" / "two-hosts.toml") as lab:
        assert lab["a"].address == "10.0.0.1" and lab["b"].addresses == ["10.0.0.2", "fd00::2"]
        up = lab.instance.link("up")
        assert up.settings["loss"] == "2 %"
        with pytest.raises(KeyError):
            lab["c"]
        assert 'name = "up"' in lab.instance.scenario()
        assert lab.instance.compare(lab.instance.scenario())["changes"] == []


def test_mistakes_are_raised_and_leave_nothing() -> None:
    lab = Lab()
    lab.host("a")
    lab.link("a", "b", rate="10 Mbitt")
    with pytest.raises(LongwireError) as raised:
        lab.start()
    assert raised.value.file == "-" and raised.value.line is not None
    assert left(lab) == [] and repr(lab) == f"<Lab {lab.name}, not started>"
    for name in ("no/such name", "-x"):
        with pytest.raises(LongwireError, match=f'lab name "{name}"'):
            with Lab(name=name) as wrong:
                wrong.host("a")
                wrong.start()


def test_an_error_in_the_block_ends_the_lab() -> None:
    with pytest.raises(ZeroDivisionError):
        with Lab() as lab:
            lab.link(lab.host("a"), lab.host("b"))
            lab.start()
            1 / 0
    assert left(lab) == [] and lab.report is not None
    with pytest.raises(LongwireError, match="has ended"):
        lab.start()


def test_a_run_that_was_not_faithful_is_raised() -> None:
    # No packet leaves within a nanosecond of its time.
    scenario = Scenario(fidelity={"within": "1 ns"})
    with pytest.raises(NotFaithful) as raised:
        with Lab(scenario, require_faithful=True) as lab:
            a, b = lab.host("a"), lab.host("b")
            lab.link(a, b, delay="1 ms")
            a.run(f"ping -q -c 3 -i 0.05 {b.address}", stdout=subprocess.DEVNULL)
    assert not raised.value.verdict and raised.value.verdict.causes


def test_a_killed_lab_is_named() -> None:
    lab = Lab()
    lab.host("a")
    lab.start()
    os.kill(lab.instance.info()["pid"], signal.SIGKILL)
    # Counters come until it has ended, and then no more.
    for _ in lab.watch(every=0.01):
        pass
    with pytest.raises(LongwireError, match="ended by signal 9"):
        lab.stop()
    # The next lab removes what it left.
    with Lab() as other:
        other.host("a")
        other.start()
    assert left(lab) == []


KILLED = """
import sys
from longwire import Lab
lab = Lab(name=sys.argv[1])
lab.link(lab.host("a"), lab.host("b"))
lab.start()
print(lab.instance.info()["pid"], flush=True)
sys.stdin.read()
"""


def test_a_lab_ends_with_its_process() -> None:
    name = f"killed{os.getpid()}"
    command = [sys.executable, "-c", KILLED, name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        run = os.pidfd_open(int(owner.stdout.readline()))
        owner.kill()
        ready, _, _ = select.select([run], [], [], 60)
        os.close(run)
    assert ready, "it goes on without its owner"
    assert left(Lab(name=name)) == []
