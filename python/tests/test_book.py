"""The examples of the book's page about Python run as they are printed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from machines import TWO_HOSTS

from longwire import Lab
from longwire.control import Ended

#: Time limit for what must happen, in seconds.
TIME = 60.0

#: The file that an example sweeps.
NET = f"""{TWO_HOSTS}
[[source]]
from = "a"
to = "b"
rate = "1500 kbit/s"
"""


def examples(repository: Path) -> List[str]:
    """The page's blocks in Python."""
    page = (repository / "docs" / "book" / "python.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def example(repository: Path, word: str) -> str:
    """The only one that has this word."""
    (found,) = [block for block in examples(repository) if word in block]
    return found


def printed(script: str, folder: Path) -> str:
    """What a script prints."""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=TIME)
    assert done.returncode == 0, done.stderr
    return done.stdout


def until(wanted: Callable[[], bool]) -> None:
    """Asks until it is so."""
    end = time.monotonic() + TIME
    while not wanted():
        assert time.monotonic() < end, "it does not come about"


def test_every_example_has_a_test(repository: Path) -> None:
    tested = ("iperf3", "to_pandas", "pandas.DataFrame", "pytest.mark", "longwire.mininet", "router(")
    assert sorted(examples(repository)) == sorted(example(repository, word) for word in tested)


@pytest.mark.usefixtures("labs")
def test_a_lab(repository: Path, tmp_path: Path) -> None:
    if shutil.which("iperf3") is None:
        pytest.skip("iperf3 is not installed")
    lines = printed(example(repository, "iperf3"), tmp_path).splitlines()
    assert any("receiver" in line for line in lines), lines
    assert lines[-1].startswith(("faithful", "not faithful: ")), lines


def test_virtual_time(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    packets, drops, longest = map(int, printed(example(repository, "to_pandas"), tmp_path).split())
    # Ten seconds of 12 Mbit/s in packets of 1000 bytes, and more than the link carries.
    assert packets + drops == 15_000 and drops > 15_000 // 10 and longest > 20_800_000


def test_a_sweep(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    (tmp_path / "net.toml").write_text(NET)
    script = example(repository, "pandas.DataFrame") + "print(len(frame), set(frame['status']))\n"
    # Two rates, ten delays and three seeds.
    assert printed(script, tmp_path) == "60 {'ok'}\n"


@pytest.mark.usefixtures("labs")
def test_the_plugin(repository: Path, pytester: pytest.Pytester) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    pytester.makepyfile(example(repository, "pytest.mark"))
    pytester.runpytest("-o", "network_unfaithful=accept").assert_outcomes(passed=1)


def test_the_line_for_mininet(repository: Path) -> None:
    """The tests of Mininet run it in a script."""
    script = (repository / "python" / "examples" / "tree.py").read_text(encoding="utf-8")
    assert example(repository, "longwire.mininet") in script


@pytest.mark.usefixtures("labs")
def test_a_control_process(repository: Path) -> None:
    def serve(lab: Lab) -> None:
        with pytest.raises(Ended):
            exec(example(repository, "router("), {"lab": lab})

    def attachment() -> Dict[str, Any]:
        (found,) = lab.instance.router("r1").levels()["attachments"]
        return dict(found)

    with Lab() as lab:
        a = lab.host("a", "10.0.1.9/24")
        lab.host("b", "10.0.2.9/24")
        ports = [{"port": "a", "addresses": "10.0.1.1/24"}, {"port": "b", "addresses": "10.0.2.1/24"}]
        lab.router("r1", ports)
        key = {"destination": "10.0.2.9", "destination-port": 9, "protocol": "udp"}
        # A packet is not taken back before a process has had a processor.
        promise = {"where": "control", "name": "echo", "packets": 1000, "cycles": 50_000, "within": "1 s"}
        lab.section("forwarder", router="r1", key=key, **promise)
        lab.start()
        thread = threading.Thread(target=serve, args=(lab,))
        thread.start()
        until(lambda: bool(attachment()["there"]))
        send = "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('10.0.2.9', 9))"
        a.run(["python3", "-c", send])
        until(lambda: attachment()["verdicts"] == 1)
    thread.join()
