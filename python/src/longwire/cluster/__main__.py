"""`python -m longwire.cluster`: runs, adopts, shows and ends runs on several machines."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Dict, List, Optional

from ..errors import BUILT, LongwireError
from ._agent import Credentials
from ._node import Event
from ._parts import Host, Underlay
from ._run import ClusterRun, adopt, run

_KEYS = {
    "name",
    "latency",
    "clock_error",
    "first_port",
    "hosts",
    "ca",
    "certificate",
    "key",
    "token",
    "files",
}


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs the command; its exit status is 1 if the run was not faithful or its packets are not accounted
    for, 2 if something is wrong."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.act(options))
    except LongwireError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m longwire.cluster", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, act: Any, what: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=what, description=what)
        made.set_defaults(act=act)
        return made

    begun = command("run", _run, "cut a scenario, and run its parts on the hosts of a file")
    begun.add_argument("scenario", type=Path)
    begun.add_argument("--hosts", type=Path, required=True, help="the file of hosts, in JSON")
    begun.add_argument("--state", type=Path, help="default: NAME.cluster.json")
    adopted = command("adopt", _adopt, "go on as the coordinator of a run whose own one is gone")
    for made in (begun, adopted):
        made.add_argument("--for", dest="seconds", type=float, help="end after so many seconds")
        made.add_argument("--detach", action="store_true", help="leave it running; adopt it later")
    shown = command("show", _show, "show how a run does that has no coordinator")
    ended = command("end", _end, "end a run that has no coordinator, and print its report")
    for made in (adopted, shown, ended):
        made.add_argument("state", type=Path)
    return parser


def _hosts(file: Path) -> Dict[str, Any]:
    """The arguments of `run` in a file of hosts. Files in it are relative to its folder."""
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LongwireError(f"{file} can't be read: {error}", fix="name a file of hosts in JSON") from error
    unknown = sorted(set(read) - _KEYS) if isinstance(read, dict) else ["no object"]
    missing = [] if unknown else [key for key in ("latency", "clock_error", "hosts") if key not in read]
    if unknown or missing:
        wrong = f'there is no "{unknown[0]}"' if unknown else f"{missing[0]} is missing"
        raise LongwireError(f"{file}: {wrong}", fix="docs/book/cluster.md lists the keys")
    for key in ("hosts", "files"):
        if not isinstance(read.get(key, []), list):
            raise LongwireError(f"{file}: {key} is no list", fix="docs/book/cluster.md lists the keys")
    hosts = [Host.of_json(host) for host in read["hosts"]]
    paths = {key: file.parent / read[key] for key in ("ca", "certificate", "key", "token") if key in read}
    first = {"first_port": read["first_port"]} if "first_port" in read else {}
    return {
        "hosts": [
            replace(host, prices=file.parent / host.prices) if host.prices is not None else host
            for host in hosts
        ],
        "underlay": Underlay(read["latency"], read["clock_error"], **first),
        "name": read.get("name", "cluster"),
        "credentials": Credentials(**paths),
        "files": read.get("files", ()),
    }


def _say(event: Event) -> None:
    print(event, file=sys.stderr, flush=True)


def _run(options: argparse.Namespace) -> int:
    hosts = _hosts(options.hosts)
    try:
        begun = run(options.scenario, **hosts, state=options.state, on_event=_say)
    except LongwireError as error:
        if error.file != BUILT:
            raise
        raise LongwireError(f"{options.hosts}: {error}") from error
    return _stay(begun, options)


def _adopt(options: argparse.Namespace) -> int:
    return _stay(adopt(options.state, on_event=_say), options)


def _stay(begun: ClusterRun, options: argparse.Namespace) -> int:
    """Coordinates a run until its time or a signal comes, then ends it."""
    ended = threading.Event()

    def end(_signal: int, _frame: Optional[FrameType]) -> None:
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    if options.detach:
        begun.wait(lambda one: all(node.is_running for node in one.nodes.values()), timeout=10.0)
        begun.detach()
        return 0
    try:
        begun.wait_connected()
        print("connected", file=sys.stderr, flush=True)
    except LongwireError as error:
        print(f"note: {error}", file=sys.stderr, flush=True)
    ended.wait(options.seconds)
    return _print(begun.end())


def _show(options: argparse.Namespace) -> int:
    shown = adopt(options.state)
    try:
        shown.wait(lambda one: all(node.is_running for node in one.nodes.values()), timeout=3.0)
        return _print(shown.stats())
    finally:
        shown.detach()


def _end(options: argparse.Namespace) -> int:
    return _print(adopt(options.state).end())


def _print(report: Dict[str, Any]) -> int:
    try:
        print(json.dumps(report, indent=2), flush=True)
    except BrokenPipeError:
        # The reader has enough, such as `head`. Python would complain about the rest when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0 if report["pass"] and report["fidelity"]["faithful"] else 1


if __name__ == "__main__":
    sys.exit(main())
