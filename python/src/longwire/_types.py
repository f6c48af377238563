"""Types of the API's answers, made from /v1/openapi.json by generate_types.py."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union


class _ComparisonRequired(TypedDict):
    changes: List[ObjectDifference]
    refused: List[RefusedDifference]


class Comparison(_ComparisonRequired, total=False):
    """Differences between the running instance and a scenario."""

    added: List[RewiredObject]
    paths: bool
    removed: List[RewiredObject]


class EventPage(TypedDict):
    """Scheduled changes and past events."""

    last: int
    log: List[LoggedEvent]
    planned: List[PlannedEvent]


class FlowSettings(TypedDict, total=False):
    """Settings of a flow that can change while it runs, each as text."""

    weight: str


#: Settings of a forwarder that can change while it runs, each as text.
ForwarderSettings = TypedDict(
    "ForwarderSettings",
    {
        "data": str,
        "key.destination": str,
        "key.destination-port": str,
        "key.protocol": str,
        "key.source": str,
        "key.source-port": str,
        "port": str,
        "program": str,
        "queue": str,
        "state": str,
        "via": str,
    },
    total=False,
)


class Info(TypedDict):
    """Identity of an instance."""

    links: int
    name: str
    pid: int
    version: str


class Keys(TypedDict):
    """Keys of a map."""

    keys: List[str]


#: The kind of an object.
Kind = Literal["link", "source", "medium", "port", "router", "flow", "forwarder"]


class Leases(TypedDict):
    """Programs whose leases begin again."""

    fids: List[int]


#: Settings of a link that can change while it runs, each as text.
LinkSettings = TypedDict(
    "LinkSettings",
    {
        "action": str,
        "alpha": str,
        "background": str,
        "background.file": str,
        "background.kind": str,
        "bands": str,
        "before": str,
        "beta": str,
        "bit-error": str,
        "bit-error.correlation": str,
        "bit-error.kind": str,
        "bit-error.probability": str,
        "bit-error.where": str,
        "bits": str,
        "by": str,
        "bytes": str,
        "classes": str,
        "coupling": str,
        "default": str,
        "delay": str,
        "delay.correlation": str,
        "delay.distribution": str,
        "delay.end": str,
        "delay.file": str,
        "delay.kind": str,
        "down": str,
        "duplicate": str,
        "duplicate.correlation": str,
        "duplicate.delay": str,
        "duplicate.where": str,
        "dwell": str,
        "every": str,
        "filter": str,
        "flows": str,
        "framing": str,
        "gap": str,
        "gentle": str,
        "h": str,
        "headers": str,
        "in": str,
        "in-max": str,
        "in-max-p": str,
        "in-min": str,
        "interval": str,
        "jitter": str,
        "k": str,
        "list": str,
        "loss": str,
        "loss.burst": str,
        "loss.correlation": str,
        "loss.distribution": str,
        "loss.ecn": str,
        "loss.end": str,
        "loss.file": str,
        "loss.kind": str,
        "loss.loss": str,
        "loss.where": str,
        "max-p": str,
        "mean-packet": str,
        "memory": str,
        "min-q": str,
        "most": str,
        "mtu": str,
        "mtu.kind": str,
        "off": str,
        "on": str,
        "order": str,
        "out-max": str,
        "out-max-p": str,
        "out-min": str,
        "overhead": str,
        "p": str,
        "p13": str,
        "p14": str,
        "p23": str,
        "p31": str,
        "p32": str,
        "packets": str,
        "past": str,
        "peak": str,
        "profile": str,
        "protection": str,
        "quantum": str,
        "queue": str,
        "queue.burst": str,
        "queue.ecn": str,
        "queue.kind": str,
        "queue.max": str,
        "queue.min": str,
        "r": str,
        "ramp": str,
        "ramp.step": str,
        "rate": str,
        "rate.burst": str,
        "rate.end": str,
        "rate.file": str,
        "rate.kind": str,
        "rate.max": str,
        "rate.min": str,
        "rates": str,
        "reorder": str,
        "reorder.correlation": str,
        "replace": str,
        "shape": str,
        "size": str,
        "speed": str,
        "start": str,
        "state": str,
        "state.end": str,
        "state.file": str,
        "state.kind": str,
        "step": str,
        "target": str,
        "unit": str,
        "up": str,
        "update": str,
        "weight": str,
        "zombies": str,
    },
    total=False,
)


class LoggedEvent(TypedDict):
    """A past event."""

    at_ns: int
    kind: str
    number: int
    what: str


class MapChange(TypedDict, total=False):
    """Entries of a map that go, and some that come."""

    remove: List[str]
    write: List[List[str]]


#: Settings of a medium that can change while it runs, each as text.
MediumSettings = TypedDict(
    "MediumSettings",
    {
        "ack": str,
        "attempts": str,
        "cts": str,
        "difs": str,
        "eifs": str,
        "framing": str,
        "header": str,
        "overhead": str,
        "preamble": str,
        "propagation": str,
        "ramp": str,
        "ramp.step": str,
        "rate": str,
        "rts": str,
        "sifs": str,
        "slot": str,
        "symbol": str,
        "window": str,
        "window-max": str,
    },
    total=False,
)


class _NewForwarderRequired(TypedDict):
    forwarder: Dict[str, Any]


class NewForwarder(_NewForwarderRequired, total=False):
    """A program to be installed."""

    lease: Optional[str]
    object: Optional[str]


class _NewStateRequired(TypedDict):
    data: str


class NewState(_NewStateRequired, total=False):
    """A program's new state."""

    type: Optional[str]


class _ObjectRequired(TypedDict):
    kind: Kind
    name: str
    settings: Dict[str, str]


class Object(_ObjectRequired, total=False):
    """An object with its settings and counters."""

    members: List[Object]
    notes: List[str]
    stats: Optional[Dict[str, Any]]


class ObjectDifference(TypedDict):
    """An object whose settings differ."""

    kind: Kind
    name: str
    settings: List[SettingDifference]


#: Some of the objects of one kind.
ObjectPage = TypedDict(
    "ObjectPage",
    {
        "counted_ns": int,
        "from": int,
        "objects": "List[Object]",
        "total": int,
    },
    total=False,
)


class _PlannedEventRequired(TypedDict):
    at_ns: int
    what: str


class PlannedEvent(_PlannedEventRequired, total=False):
    """A scheduled change."""

    every_ns: Optional[int]
    over_ns: Optional[int]
    times: Optional[int]


class PoolUse(TypedDict):
    """Use of packet memory."""

    bytes: int
    used_bytes: int


#: Settings of a port that can change while it runs, each as text.
PortSettings = Dict[str, Any]


class _ProblemRequired(TypedDict):
    detail: str
    status: int
    title: str
    type: str


class Problem(_ProblemRequired, total=False):
    """Reason why a request was refused (RFC 9457, media type `application/problem+json`)."""

    key: Optional[str]
    suggestion: Optional[str]


class RefusedDifference(TypedDict):
    """A difference that can't be removed in a run."""

    reason: str
    what: str


class RewireRequest(TypedDict, total=False):
    """Objects to add and remove at one instant."""

    add: str
    drain: bool
    remove: List[str]


class RewireResponse(TypedDict):
    """Added and removed objects; each direction of a duplex link is one."""

    added: List[RewiredObject]
    removed: List[RewiredObject]


class RewiredObject(TypedDict):
    """An added or removed object."""

    kind: str
    name: str


class Rings(TypedDict, total=False):
    """Which records are taken out."""

    map: Optional[str]
    type: Optional[str]


class RoutePage(TypedDict):
    """A router's routes, or the first of them."""

    more: bool
    routes: List[str]


#: Settings of a router that can change while it runs, each as text.
RouterSettings = Dict[str, Any]


class _ScenarioRequestRequired(TypedDict):
    toml: str


class ScenarioRequest(_ScenarioRequestRequired, total=False):
    """A scenario to apply."""

    partial: bool


class ScenarioText(TypedDict):
    """A scenario as text."""

    toml: str


class _SettingDifferenceRequired(TypedDict):
    key: str


class SettingDifference(_SettingDifferenceRequired, total=False):
    """A differing setting."""

    now: Optional[str]
    wanted: Optional[str]


#: Sort keys of links, the highest first; names in alphabetical order.
Sort = Literal["name", "in", "rate", "load", "carried", "queued", "delay", "dropped", "late"]


#: Settings of a source that can change while it runs, each as text.
SourceSettings = TypedDict(
    "SourceSettings",
    {
        "destination": str,
        "dwell": str,
        "file": str,
        "for": str,
        "interval": str,
        "model": str,
        "off": str,
        "on": str,
        "packets": str,
        "ramp": str,
        "ramp.step": str,
        "rate": str,
        "rates": str,
        "shape": str,
        "size": str,
        "speed": str,
        "state": str,
        "to": str,
    },
    total=False,
)


class _SummaryRequired(TypedDict):
    dropped: Dict[str, int]
    elapsed_ns: int
    faults: List[str]
    held: int
    in_packets: int
    objects: Dict[str, int]
    out_bytes: int
    out_packets: int
    pool: PoolUse
    scenario: str


class Summary(_SummaryRequired, total=False):
    """Totals of a run, of constant size."""

    fidelity: Optional[Dict[str, Any]]
    window: Optional[Dict[str, Any]]


class Topology(TypedDict):
    """The graph of a scenario."""

    links: List[TopologyLink]
    more: bool
    nodes: List[TopologyNode]
    wires: List[List[str]]


#: A link of the graph.
TopologyLink = TypedDict(
    "TopologyLink",
    {
        "from": str,
        "name": str,
        "to": str,
    },
    total=False,
)


class TopologyNode(TypedDict):
    """A node of the graph."""

    addresses: List[str]
    kind: str
    name: str
