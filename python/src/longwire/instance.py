"""Running instances and their objects, by the API."""

from __future__ import annotations

import time
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
    cast,
)

from ._api import SCENARIO_TIME, Api, listens, segment, sockets
from .control import Control
from .errors import LongwireError, NoAnswer
from .records import LinkCounters, Verdict
from .scenario import Value, key_of, text

if TYPE_CHECKING:
    from . import _types

#: Most objects that one answer has.
_PAGE = 10_000


class Instance:
    """A running instance. Each call is a request; an error of it is raised as `Refused`, and changes
    nothing."""

    def __init__(self, api: Union[Path, Api]) -> None:
        self.api = api if isinstance(api, Api) else Api(api)

    def info(self) -> "_types.Info":
        """Name, process and version."""
        return cast("_types.Info", self.api.ask("GET", "/v1/instance"))

    def summary(self) -> "_types.Summary":
        """The totals, however many links there are."""
        return cast("_types.Summary", self.api.ask("GET", "/v1/summary"))

    @property
    def verdict(self) -> Optional[Verdict]:
        """The verdict so far; None before the first packet was judged."""
        return Verdict.of_json(cast(Any, self.summary().get("fidelity")))

    def stats(
        self,
        name: Optional[str] = None,
        *,
        kind: Optional[str] = None,
        sort: Optional[str] = None,
        limit: Optional[int] = None,
        after: Optional[str] = None,
    ) -> Dict[str, Any]:
        """The report so far, with the rows of the objects that fit the pattern `name`."""
        query = {"name": name, "kind": kind, "sort": sort, "limit": limit, "after": after}
        return cast(Dict[str, Any], self.api.ask("GET", "/v1/stats", query=query))

    def topology(self) -> "_types.Topology":
        """Hosts, ports, bridges, routers, and the links between them."""
        return cast("_types.Topology", self.api.ask("GET", "/v1/topology"))

    def events(self, after: int = 0, *, planned: bool = False) -> "_types.EventPage":
        """What has happened behind the entry of the log with the number `after`, and what is planned."""
        query = {"after": after, "planned": planned}
        return cast("_types.EventPage", self.api.ask("GET", "/v1/events", query=query))

    def link(self, name: str) -> "Link":
        """The link of this name; of a duplex link, both directions."""
        return Link(lambda: self, name)

    def links(self, pattern: str = "*") -> List["Link"]:
        """The links that fit the pattern. A duplex link is two, NAME.forward and NAME.backward."""
        return [self.link(one["name"]) for _, one in self._pages("links", pattern)]

    def source(self, name: str) -> "Source":
        """The traffic source of this name."""
        return Source(lambda: self, name)

    def medium(self, name: str) -> "Medium":
        """The shared medium of this name."""
        return Medium(lambda: self, name)

    def router(self, name: str) -> "Router":
        """The router of this name."""
        return Router(lambda: self, name)

    def port(self, name: str) -> "Port":
        """The port of this name, or that of a host."""
        return Port(lambda: self, name)

    def counters(self, links: str = "*") -> List[LinkCounters]:
        """The counters of the links that fit the pattern, at most 0.2 s old (0.1 ms more for each link)."""
        found = self._pages("links", links)
        return [LinkCounters.of_json(counted, one["name"], one["stats"]) for counted, one in found]

    def watch(
        self, links: str = "*", *, every: float = 0.2, count: Optional[int] = None
    ) -> Iterator[List[LinkCounters]]:
        """Yields the counters every so many seconds, `count` times, or until the instance ends."""
        if every <= 0:
            raise ValueError("every is the time between two lists in seconds; give more than 0")
        due, seen = time.monotonic(), 0
        while count is None or seen < count:
            try:
                yield self.counters(links)
            except NoAnswer:
                if self.is_running():
                    raise
                return
            seen += 1
            if seen == count:
                return
            due += every
            time.sleep(max(0.0, due - time.monotonic()))

    def _pages(self, collection: str, pattern: str) -> List[Tuple[int, Dict[str, Any]]]:
        """All objects, each with the time at which it was counted: that of its page."""
        objects: List[Tuple[int, Dict[str, Any]]] = []
        while True:
            query = {"name": pattern, "from": len(objects), "count": _PAGE}
            page = self.api.ask("GET", f"/v1/{collection}", query=query)
            objects += ((page["counted_ns"], one) for one in page["objects"])
            if not page["objects"] or len(objects) >= page["total"]:
                return objects

    def add(self, sections: str) -> "_types.RewireResponse":
        """Adds links, hosts, ports, bridges, routers and sources, written as TOML, at one instant or none."""
        body = {"add": sections}
        return cast("_types.RewireResponse", self._about_scenario("PATCH", "/v1/scenario", body))

    def remove(self, *names: str, drain: bool = False) -> "_types.RewireResponse":
        """Removes links, hosts, ports, bridges, routers and sources, all at one instant or none.

        With `drain`, links send the packets that they hold, instead of dropping them.
        """
        body = {"remove": list(names), "drain": drain}
        return cast("_types.RewireResponse", self._about_scenario("PATCH", "/v1/scenario", body))

    def scenario(self) -> str:
        """The scenario that runs, as TOML."""
        return str(self.api.ask("GET", "/v1/scenario")["toml"])

    def compare(self, toml: str) -> "_types.Comparison":
        """What `apply` would change."""
        body = {"toml": toml}
        return cast("_types.Comparison", self._about_scenario("POST", "/v1/scenario/differences", body))

    def apply(self, toml: str, *, partial: bool = False) -> "_types.Comparison":
        """Makes what runs equal to this scenario, and returns the changes."""
        body = {"toml": toml, "partial": partial}
        return cast("_types.Comparison", self._about_scenario("PUT", "/v1/scenario", body))

    def _about_scenario(self, method: str, path: str, body: Dict[str, Any]) -> Any:
        return self.api.ask(method, path, body, timeout=SCENARIO_TIME)

    def is_running(self) -> bool:
        """Whether somebody listens at its socket."""
        return self.api.listens()

    def stop(self) -> None:
        """Asks it to end, and does not wait."""
        self.api.ask("DELETE", "/v1/instance")


class Object:
    """An object of an instance, by its name. It need not be there yet: each use is a request."""

    #: The collection of the API that has such objects.
    collection = ""

    def __init__(self, instance: Callable[[], Instance], name: str) -> None:
        self._instance = instance
        self.name = name

    @property
    def _path(self) -> str:
        return f"/v1/{self.collection}/{segment(self.name)}"

    def show(self) -> "_types.Object":
        """The object with its settings and counters; of a duplex link also its `members`."""
        return cast("_types.Object", self._instance().api.ask("GET", self._path))

    @property
    def settings(self) -> Dict[str, str]:
        """Its settings, as text that could be set."""
        return dict(self.show()["settings"])

    @property
    def stats(self) -> Dict[str, Any]:
        """Its counters."""
        return dict(cast(Any, self.show().get("stats")) or {})

    def _change(self, changes: Optional[Mapping[str, Value]], words: Mapping[str, Value]) -> Dict[str, str]:
        body = {**(changes or {}), **{key_of(word): value for word, value in words.items()}}
        given = {key: text(value) for key, value in body.items()}
        return dict(self._instance().api.ask("PATCH", self._path, given)["settings"])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class _Ramped(Object):
    def set(
        self,
        changes: Optional[Mapping[str, Value]] = None,
        *,
        ramp: Value = None,
        step: Value = None,
        **settings: Value,
    ) -> Dict[str, str]:
        """Changes settings at one instant, all or none, and returns the settings after that.

        Settings are keyword arguments, `rate="5mbit"`, with `_` for `-`, or in `changes` if they have a dot:
        `{"queue.kind": "red"}`. None removes what it names, such as the loss. With `ramp`, a time, the values
        move from the present ones in steps of `step`.
        """
        if ramp is not None:
            settings["ramp"] = ramp
        if step is not None:
            settings["ramp.step"] = step
        return self._change(changes, settings)


class Link(_Ramped):
    """A link. The name of a duplex link means both directions."""

    collection = "links"

    @property
    def forward(self) -> "Link":
        """The first direction of a duplex link."""
        return Link(self._instance, f"{self.name}.forward")

    @property
    def backward(self) -> "Link":
        """Its other direction."""
        return Link(self._instance, f"{self.name}.backward")

    def counters(self) -> LinkCounters:
        """Its counters; of a duplex link, ask a direction."""
        found = self._instance().counters(self.name)
        if len(found) != 1:
            raise LongwireError(
                f'there is no single link "{self.name}"', fix="ask .forward or .backward of a duplex link"
            )
        return found[0]

    def remove(self, *, drain: bool = False) -> None:
        """Removes it from the running instance. With `drain`, it sends the packets that it holds."""
        self._instance().remove(self.name, drain=drain)


class Source(_Ramped):
    """A traffic source."""

    collection = "sources"


class Medium(_Ramped):
    """A shared medium."""

    collection = "media"


class Router(Object):
    """A router."""

    collection = "routers"

    def routes(self) -> List[str]:
        """Its routes, as `ip route` writes them; at most the first 2000."""
        return list(self._instance().api.ask("GET", f"{self._path}/routes")["routes"])

    def set_route(self, network: str, hop: Optional[str]) -> None:
        """Sets where a network is: "via 10.9.0.6", "dev east", "blackhole"; None removes the route."""
        self._change({f"route.{network}": hop}, {})

    def weigh(self, flow: str, weight: int) -> None:
        """Changes the weight of a flow that shares its processors."""
        path = f"/v1/flows/{segment(f'{self.name}/{flow}')}"
        self._instance().api.ask("PATCH", path, {"weight": str(weight)})

    def forwarders(self) -> List[Dict[str, Any]]:
        """Its programs: what they have done, and what a packet may need."""
        return list(self._instance().api.ask("GET", f"{self._path}/forwarders")["forwarders"])

    def levels(self) -> Dict[str, Any]:
        """The services and control processes above it: `attachments`, and the `socket` for processes."""
        return cast(Dict[str, Any], self._instance().api.ask("GET", f"{self._path}/levels"))

    def control(self, name: str, *, packets: int = 0, cycles: int = 0, share: int = 1) -> Control:
        """Makes this process the control process `name` above the router.

        The scenario has a forwarder of that name with `where = "control"`. It asks for so many packets a
        second, each of so many cycles; 0 means what the scenario promises.
        """
        path = self.levels()["socket"]
        if path is None:
            raise LongwireError(
                f"router {self.name} has no control level", fix='give it a forwarder with where="control"'
            )
        return Control(path, name, packets, cycles, share)


class Port(Object):
    """A port, that of a test host included."""

    collection = "ports"


def instances() -> List[str]:
    """The names of this user's running instances."""
    return [name for name, _, path in sockets() if listens(path)]


def connect(name: Union[None, str, int] = None) -> Instance:
    """The running instance of this name or process id; without one, the only one."""
    running = [(known, pid, path) for known, pid, path in sockets() if listens(path)]
    found = [one for one in running if name is None or name in one[:2]]
    if len(found) == 1:
        return Instance(found[0][2])
    names = ", ".join(f"{known} ({pid})" for known, pid, _ in found or running)
    if found:
        raise LongwireError(f"which instance? There are {names}", fix="give a name or a process id")
    wanted = "no instance" if name is None else f'no instance "{name}"'
    raise LongwireError(f"{wanted} is running" + (f"; there is {names}" if names else ""))


def socket_of(pid: int) -> Optional[Path]:
    """The socket of the instance that this process is, when it answers."""
    found: Sequence[Path] = [path for _, owner, path in sockets() if owner == pid]
    return found[0] if found else None
