"""How soon a coordinator notices that a node is lost, measured with agents in network namespaces.

A run on two machines loses one of them again and again, at random moments: its agent is killed, its agent
hangs, its link to the others goes down. Printed is the time from there until `python -m longwire.cluster`
says so. With --busy, loops use the processors meanwhile; --watch first counts the nodes that are called lost
although nothing happens to them. Needs root, and the program that LONGWIRE names.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

sys.path.insert(0, str(Path(__file__).parent / "tests"))

from machines import TWO_HOSTS, Machines, Process, why_not  # noqa: E402

from longwire.cluster._run import EVERY, own_version  # noqa: E402

#: Most seconds until a loss is noticed.
MOST_S = 3.0
#: The machine that is lost.
LOST = "two"
SCENARIO = TWO_HOSTS + 'delay = "20 ms"\n'


class Fault(NamedTuple):
    """A way to lose a machine, and to get it back."""

    name: str
    begin: Callable[[Machines], None]
    end: Callable[[Machines], None]


def kill(machines: Machines) -> None:
    machines.agents[LOST].child.kill()


def restart(machines: Machines) -> None:
    machines.agents[LOST].end()
    machines.start(LOST)


def hang(machines: Machines) -> None:
    machines.agents[LOST].child.send_signal(signal.SIGSTOP)


def go_on(machines: Machines) -> None:
    machines.agents[LOST].child.send_signal(signal.SIGCONT)


FAULTS = (
    Fault("agent killed", kill, restart),
    Fault("agent hangs", hang, go_on),
    Fault("link down", lambda made: made.link(LOST, "down"), lambda made: made.link(LOST, "up")),
)


@contextlib.contextmanager
def coordinated(folder: Path) -> Iterator[tuple[Machines, Process]]:
    """Two machines, and a coordinator whose tunnels are connected."""
    machines = Machines(folder, 2)
    try:
        (folder / "wan.toml").write_text(SCENARIO, encoding="utf-8")
        hosts = machines.write_hosts(f"l{os.getpid()}", {"one": "a", LOST: "b"})
        coordinator = machines.coordinate("run", "wan.toml", "--hosts", hosts, "--state", "wan.json")
        coordinator.line("connected")
        yield machines, coordinator
    finally:
        machines.close()


@contextlib.contextmanager
def busy(loops: int) -> Iterator[None]:
    """Endless loops on the processors."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for loop in started:
            loop.kill()
            loop.wait()


def losses(coordinator: Process) -> int:
    """The losses that a coordinator has noticed."""
    return sum(" is lost: " in line for line in coordinator.lines)


def noticed(machines: Machines, coordinator: Process, fault: Fault) -> float:
    """The seconds until a fault is noticed. Afterwards the machine is back."""
    seen = len(coordinator.lines)
    begin = time.monotonic()
    fault.begin(machines)
    try:
        coordinator.line(f"node {LOST} is lost: ", seen)
        took = time.monotonic() - begin
    finally:
        fault.end(machines)
    coordinator.line(f"node {LOST} runs again", seen)
    return took


def measure(options: argparse.Namespace) -> Iterator[Dict[str, Any]]:
    """The rows: false losses, and the times of each fault."""
    moments = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="longwire-loss-") as folder, busy(options.busy):
        with coordinated(Path(folder)) as (machines, coordinator):
            if options.watch:
                time.sleep(options.watch)
                count = losses(coordinator)
                name = f"nodes called lost within {options.watch:g} s without a fault"
                yield {"name": name, "unit": "count", "measured": count, "expected": 0, "pass": count == 0}
            for fault in FAULTS:
                times: List[float] = []
                for _ in range(options.times):
                    # Questions come at equal distances: any moment between two is as likely.
                    time.sleep(moments.uniform(0, EVERY))
                    times.append(noticed(machines, coordinator, fault))
                yield {
                    "name": f"{fault.name}: time until the loss is noticed",
                    "unit": "s",
                    "measured": round(statistics.median(times), 3),
                    "least": round(min(times), 3),
                    "most": round(max(times), 3),
                    "times": len(times),
                    "expected": MOST_S,
                    "pass": max(times) <= MOST_S,
                }


def shown(row: Dict[str, Any]) -> str:
    """A row for people."""
    verdict = "ok" if row["pass"] else "FAILED"
    if row["unit"] == "count":
        return f"{row['name']}: {row['measured']}  {verdict}"
    spread = f"{row['least']:.2f} to {row['most']:.2f} s, {row['times']} times"
    return f"{row['name']}: {row['measured']:.2f} s (median; {spread})  {verdict}"


def main(arguments: Optional[List[str]] = None) -> int:
    """Measures, and prints; the exit status is 1 if a loss was noticed too late, or none was one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10, help="how often each fault happens; default: 10")
    parser.add_argument("--watch", type=float, default=0.0, metavar="SECONDS", help="look for false losses")
    parser.add_argument("--busy", type=int, default=0, metavar="LOOPS", help="loops that use processors")
    parser.add_argument("--json", action="store_true", help="print a report in JSON")
    options = parser.parse_args(arguments)
    if options.times < 1:
        parser.error("--times is 1 or more")
    reason = why_not()
    if reason is not None:
        print(f"error: {reason}", file=sys.stderr)
        return 2
    rows = []
    for row in measure(options):
        rows.append(row)
        if not options.json:
            print(shown(row), flush=True)
    passed = all(row["pass"] for row in rows)
    if options.json:
        head = {"command": "node_loss", "version": own_version(), "machine": {"cores": os.cpu_count()}}
        json.dump({**head, "busy": options.busy, "rows": rows, "pass": passed}, sys.stdout, indent=2)
        print()
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
