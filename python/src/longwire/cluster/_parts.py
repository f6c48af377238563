"""Hosts of a cluster, and the parts of a scenario for them."""

from __future__ import annotations

import itertools
import re
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .._program import Pathlike, call
from ..errors import BUILT, LongwireError
from ..scenario import Scenario, Value, as_input, section, toml

#: Most hosts: a core of the coordinator asks 133 of them 2.5 times a second (docs/book/scale.md).
MOST_HOSTS = 100
#: Longest name of a part at its agent.
_LONGEST_PART = 32
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_KEY = re.compile(r'^key = "(tunnel-[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.key)"$', re.MULTILINE)


@dataclass(frozen=True)
class Host:
    """A machine with an agent."""

    name: str
    #: The address at which the other machines reach it, for tunnels.
    address: str
    #: The URL of its agent: `https://HOST:PORT`.
    agent: str = ""
    #: Hosts, ports, bridges and routers that must be there.
    nodes: Tuple[str, ...] = ()
    #: How many cores its part may use. Default: as many workers as the scenario has.
    cores: Optional[int] = None
    #: A file that `longwire calibrate` wrote there. Default: assumed prices.
    prices: Optional[Pathlike] = None

    @classmethod
    def of_json(cls, keys: Any) -> "Host":
        """The host that a file describes."""
        wrong = cls._wrong(keys)
        if wrong is not None:
            raise LongwireError(
                f"a host of the cluster is wrong: {wrong}",
                fix="it has name, address, agent, nodes, cores and prices",
            )
        return cls(**{**keys, "nodes": tuple(keys.get("nodes", ()))})

    @staticmethod
    def _wrong(keys: Any) -> Optional[str]:
        """What is wrong with the keys of a host in a file."""
        if not isinstance(keys, dict):
            return f"{keys!r} is no object"
        unknown = sorted(set(keys) - {"name", "address", "agent", "nodes", "cores", "prices"})
        if unknown:
            return f'there is no "{unknown[0]}"'
        if not all(isinstance(keys.get(key), str) for key in ("name", "address")):
            return "name or address is missing"
        nodes = keys.get("nodes", [])
        if not isinstance(nodes, (list, tuple)) or not all(isinstance(node, str) for node in nodes):
            return "nodes is no list of names"
        if type(keys.get("cores", 1)) is not int:
            return "cores is no whole number"
        texts = [key for key in ("agent", "prices") if not isinstance(keys.get(key, ""), str)]
        return f"{texts[0]} is no text" if texts else None

    def to_json(self) -> Dict[str, Any]:
        """As a file describes it."""
        keys = {"name": self.name, "address": self.address, "agent": self.agent, "nodes": list(self.nodes)}
        rest = {"cores": self.cores, "prices": None if self.prices is None else str(self.prices)}
        return {**keys, **{key: value for key, value in rest.items() if value is not None}}


@dataclass(frozen=True)
class Underlay:
    """The network between any two hosts."""

    #: The longest time of a packet from one to the other.
    latency: Value
    #: The largest error of the offset between their clocks.
    clock_error: Value
    #: The first UDP port of tunnels.
    first_port: int = 7000


@dataclass(frozen=True)
class Part:
    """A scenario for one host, and the files that it names, in hexadecimal digits."""

    toml: str
    files: Mapping[str, str]
    #: What it takes of its host's processors, in millionths of one, by the host's prices.
    load_ppm: int


def part_name(cluster: str, host: str) -> str:
    """The name of a cluster's part at the agent of a host. It differs from host to host, because one
    machine can have several agents."""
    return f"{cluster}-{host}"


def check_names(cluster: str, hosts: Sequence[Host]) -> None:
    """Raises if a name can't be used."""
    if not 2 <= len(hosts) <= MOST_HOSTS:
        raise LongwireError(f"number of hosts: {len(hosts)}", fix=f"give 2 to {MOST_HOSTS}")
    for name in [cluster, *(host.name for host in hosts)]:
        if _NAME.fullmatch(name) is None:
            raise LongwireError(f'"{name}" can\'t be a name here', fix="use letters, digits, - and _")
    for host in hosts:
        if len(part_name(cluster, host.name)) > _LONGEST_PART:
            raise LongwireError(
                f'"{part_name(cluster, host.name)}" is too long',
                fix=f"the names of cluster and host may have {_LONGEST_PART - 1} characters together",
            )


def parts_of(
    scenario: Union[Scenario, Pathlike], hosts: Sequence[Host], underlay: Underlay, files: Sequence[str] = ()
) -> Tuple[Dict[str, Part], Dict[str, Any]]:
    """The parts of a scenario by host, and the report of `longwire partition`.

    Hosts on which nothing is have no part. `files` are those that the scenario names, relative to its
    folder; all hosts receive them. What can't be cut raises, with the arithmetic.
    """
    source, text = as_input(scenario)
    with tempfile.TemporaryDirectory(prefix="longwire-cluster-") as name:
        folder = Path(name)
        machines, written = folder / "machines.toml", folder / "parts"
        machines.write_text(_machines(hosts, underlay), encoding="utf-8")
        arguments = ["partition", source, "--machines", str(machines), "--write", str(written)]
        try:
            report = call(arguments, text)
        except LongwireError as error:
            if error.file == str(machines):
                # Nobody has written that file.
                error.file, error.field = BUILT, (error.field or "hosts").replace("-", "_")
            raise
        if not report["pass"]:
            raise LongwireError("the scenario can't be cut: " + "; ".join(problems(report)))
        texts = {Path(file).stem: Path(file).read_text(encoding="utf-8") for file in report["parts"]}
    common = {file: _read(Path(source).parent, file) for file in files}
    keys = {
        _key_of(one, other): (secrets.token_hex(32) + "\n").encode().hex()
        for one, other in itertools.combinations([host.name for host in hosts], 2)
    }
    loads = {row["machine"]: row["taken_ppm"] for row in report["rows"] if row.get("kind") == "machine"}
    parts = {}
    for host, text in texts.items():
        # The scenario's own tunnels have keys of its files.
        own = {key: keys[key] for key in _KEY.findall(text) if key in keys}
        parts[host] = Part(text, {**common, **own}, loads[host])
    return parts, report


def problems(report: Mapping[str, Any]) -> List[str]:
    """Why a report failed."""
    return [str(one) for one in report.get("failures", ["longwire partition gave no reason"])]


def _machines(hosts: Sequence[Host], underlay: Underlay) -> str:
    """The file of machines for `longwire partition`, with a key for each pair."""
    first = {"latency": underlay.latency, "clock-error": underlay.clock_error, "key": "tunnel.key"}
    lines = [f"{key} = {toml(value)}" for key, value in {**first, "first-port": underlay.first_port}.items()]
    for host in hosts:
        prices = None if host.prices is None else str(Path(host.prices).resolve())
        keys: Dict[str, Value] = {"name": host.name, "address": host.address, "cores": host.cores}
        lines.append(section("machine", {**keys, "prices": prices, "nodes": list(host.nodes)}))
    for one, other in itertools.combinations([host.name for host in hosts], 2):
        lines.append(section("between", {"machines": [one, other], "key": _key_of(one, other)}))
    return "\n".join(lines)


def _key_of(one: str, other: str) -> str:
    # No name has a dot, so that each pair has a file of its own.
    return f"tunnel-{one}.{other}.key"


def _read(folder: Path, name: str) -> str:
    path = Path(name)
    if path.is_absolute() or ".." in path.parts:
        raise LongwireError(f'"{name}" is not below the folder of the scenario', fix="give relative names")
    try:
        return (folder / path).read_bytes().hex()
    except OSError as error:
        raise LongwireError(f"{name} can't be sent to the hosts: {error}") from error
