"""Scenarios, built in Python and written as TOML."""

from __future__ import annotations

import ipaddress
import json
import numbers
import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._program import Pathlike
from .errors import BUILT

#: What a setting can be given as: texts as in a scenario ("10mbit", "20 ms"), numbers, truth values, times
#: (timedelta), lists and tables, and objects with a name. Keys in tables are those of scenarios: "bit-error".
Value = Any

_PLAIN = re.compile(r"[A-Za-z0-9_-]+\Z")


def name_of(thing: Any) -> str:
    """The name of a host, link or other object; a text is a name already."""
    return thing if isinstance(thing, str) else str(thing.name)


def key_of(word: str) -> str:
    """The key of a keyword argument: `bit_error` is `bit-error`, `from_` is `from`."""
    return word.rstrip("_").replace("_", "-")


def toml(value: Value) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    # Numbers of other kinds, such as those of numpy, have other representations.
    if isinstance(value, numbers.Integral):
        return repr(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    if isinstance(value, Mapping):
        pairs = (f"{_toml_key(key)} = {toml(one)}" for key, one in value.items() if one is not None)
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml(one) for one in value) + "]"
    return _quoted(text(value))


def text(value: Value) -> str:
    """A value as text, as a change of a running object takes it; None is the empty text, which removes."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, timedelta):
        # Exact: a timedelta is a whole number of microseconds.
        return f"{value // timedelta(microseconds=1)} us"
    if isinstance(value, (numbers.Real, Mapping, list, tuple)):
        return toml(value)
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "name"):
        return name_of(value)
    return str(value)


def _quoted(value: str) -> str:
    # JSON escapes the same characters as TOML, except for one.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml_key(key: str) -> str:
    parts = key.split(".")
    return ".".join(part if _PLAIN.match(part) else _quoted(part) for part in parts)


def overrides(seed: Optional[int], settings: Optional[Mapping[str, Value]]) -> List[str]:
    """The options of `longwire run` for another seed and other settings than the scenario's."""
    # Each as one word, since a negative number would be an option of its own.
    options = [] if seed is None else [f"--seed={seed}"]
    options += (f"--set={setting}={text(value)}" for setting, value in (settings or {}).items())
    return options


def section(word: str, keys: Mapping[str, Value]) -> str:
    """A section of a scenario's file: `[[word]]` and its keys. A key whose value is None is left out."""
    lines = [f"[[{word}]]"]
    given = ((key_of(key), value) for key, value in keys.items() if value is not None)
    lines += (f"{_toml_key(key)} = {toml(value)}" for key, value in given)
    return "\n".join(lines) + "\n"


class Sections:
    """Methods that add sections to a scenario; `section` receives all of them."""

    def __init__(self) -> None:
        self._hosts = 0

    def section(self, word: str, /, **keys: Value) -> None:
        """Adds the section `[[word]]` with these keys, as on the page *Scenario files* of the book."""
        raise NotImplementedError

    def host(self, name: str, address: Value = None, **keys: Value) -> str:
        """Adds a test host, and returns its name.

        An address is a text or an `ipaddress.ip_interface`; several are a list. Without one, hosts get
        10.0.0.1/24 and fd00::1/64, 10.0.0.2/24 and fd00::2/64, and so on, in the order in which they are
        added.
        """
        self._hosts += 1
        if address is None:
            address = host_addresses(self._hosts)
        self.section("host", name=name, address=address, **keys)
        return name

    def port(self, name: str, driver: str, **keys: Value) -> str:
        """Adds another place where packets enter and leave, and returns its name."""
        self.section("port", name=name, driver=driver, **keys)
        return name

    def bridge(self, name: str, **keys: Value) -> str:
        """Adds a learning bridge, and returns its name."""
        self.section("bridge", name=name, **keys)
        return name

    def router(self, name: str, ports: Sequence[Mapping[str, Value]], **keys: Value) -> str:
        """Adds a router with these ports, tables such as `{"port": "a", "addresses": "10.0.1.1/24"}`."""
        self.section("router", name=name, ports=list(ports), **keys)
        return name

    def link(self, a: Any, b: Any, name: Optional[str] = None, *, duplex: bool = True, **keys: Value) -> str:
        """Adds a link between two hosts, ports, bridges or ports of routers, and returns its name.

        A duplex link is two links, NAME.forward from a to b and NAME.backward; `forward` and `backward` are
        tables with what differs. Without a name it is called A-B. Keys are those of a link: `rate="10mbit"`,
        `delay="20 ms"`, `loss="1%"`, `queue="100 packets"`, `profile="lte"`, ...
        """
        ends = [name_of(a), name_of(b)]
        if name is None:
            name = "-".join(ends)
        if duplex:
            self.section("link", name=name, between=ends, **keys)
        else:
            self.section("link", name=name, from_=ends[0], to=ends[1], **keys)
        return name

    def medium(self, name: str, kind: str, **keys: Value) -> str:
        """Adds a medium that links share by `medium=NAME`, and returns its name."""
        self.section("medium", name=name, kind=kind, **keys)
        return name

    def source(self, from_: Any, to: Any, name: Optional[str] = None, **keys: Value) -> str:
        """Adds a traffic source, and returns its name; without one it is called FROM-TO.

        Sources run in virtual time, and in real time on ports with the driver "source".
        """
        ends = (name_of(from_), name_of(to))
        if name is None:
            name = "-".join(ends)
        self.section("source", name=name, from_=ends[0], to=ends[1], **keys)
        return name

    def path(self, from_: Any, to: Any, links: Sequence[Any], **keys: Value) -> None:
        """Adds an explicit path."""
        names = [name_of(link) for link in links]
        self.section("path", from_=name_of(from_), to=name_of(to), links=names, **keys)

    def at(self, time: Value, **keys: Value) -> None:
        """Adds a change at a time of the run: `at("5 s", link="wan", rate="1mbit", ramp="2 s")`."""
        self.section("at", time=time, **keys)


def host_addresses(number: int) -> List[str]:
    """The addresses of the host with this number, counted from 1."""
    if number > 254:
        raise ValueError("there are addresses for 254 hosts; give further ones an address of their own")
    four = ipaddress.IPv4Address("10.0.0.0") + number
    six = ipaddress.IPv6Address("fd00::") + number
    return [f"{four}/24", f"{six}/64"]


class Scenario(Sections):
    """A scenario that is built section by section.

    `engine` and `fidelity` are the tables of these names. All else has a method, or is added by `section`:

        net = Scenario(seed=7)
        net.host("a")
        net.host("b")
        net.link("a", "b", "wan", rate="10mbit", delay="20 ms", queue="codel")
        net.source("a", "b", rate="12mbit", for_="10 s")
        print(net.toml())
    """

    def __init__(
        self,
        *,
        seed: Optional[int] = None,
        routing: Optional[str] = None,
        engine: Optional[Mapping[str, Value]] = None,
        fidelity: Optional[Mapping[str, Value]] = None,
    ) -> None:
        super().__init__()
        tables: Dict[str, Optional[Mapping[str, Value]]] = {"engine": engine, "fidelity": fidelity}
        top = {"seed": seed, "routing": routing, **tables}
        self._parts = [f"{key} = {toml(value)}\n" for key, value in top.items() if value is not None]

    def section(self, word: str, /, **keys: Value) -> None:
        self._parts.append("\n" + section(word, keys))

    def add_text(self, sections: str) -> None:
        """Adds sections that are written as TOML."""
        self._parts.append("\n" + sections.rstrip("\n") + "\n")

    def toml(self) -> str:
        """The scenario's text."""
        return "".join(self._parts)

    def save(self, file: Union[str, Path]) -> None:
        """Writes it to a file."""
        Path(file).write_text(self.toml(), encoding="utf-8")


def as_input(scenario: Union[Scenario, Pathlike]) -> Tuple[str, Optional[str]]:
    """How a command takes a scenario: the name of its file, and what it reads from standard input."""
    if isinstance(scenario, Scenario):
        return BUILT, scenario.toml()
    return os.fspath(scenario), None
