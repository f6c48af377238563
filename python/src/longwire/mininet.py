"""Mininet with links that Longwire emulates.

    from longwire.mininet import LongwireLink as TCLink

is the line to change in a script that uses TCLink: `bw`, `delay`, `jitter`, `loss` and `max_queue_size` keep
their meaning, for each direction, and so does `intf.config(...)` while packets flow. `LongwireNet` is a
`Mininet` whose links are `LongwireLink` by default, and which has a verdict at its end:

    net = LongwireNet(topo=topo)
    net.start()
    net.pingAll()
    net.stop()
    print(net.verdict)

A link is a veth pair for each end. Their other ends are in a namespace without addresses, where one process
carries the packets of all links of a network.
"""

from __future__ import annotations

import atexit
import fcntl
import itertools
import os
import re
import subprocess
from typing import Any, Dict, List, Mapping, Optional, Tuple

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import UserSwitch
from mininet.util import ensureRoot

from .errors import LongwireError
from .instance import Link as RunningLink
from .lab import Lab
from .records import Verdict
from .scenario import Value, section

_numbers = itertools.count(1)
#: Where `ip netns` keeps namespaces.
_NAMESPACES = "/run/netns"

#: The settings of a direction for which nothing is given, by block.
_DEFAULTS: Mapping[str, Dict[str, Value]] = {
    "rate": {"rate": "unlimited"},
    "bytes": {"framing": "ethernet", "overhead": 0},
    "loss": {"loss": None},
    "delay": {"delay.kind": "constant", "delay.delay": "0 ms"},
    "queue": {"queue.kind": "tail-drop", "queue.limit": "1000 packets"},
    # Only `longwire` sets these, and what is set once is not to stay.
    "bit-error": {"bit-error": None},
    "duplicate": {"duplicate": None},
    "reorder": {"reorder": None},
    "filter": {"filter": None},
    "mtu": {"mtu": None},
    "background": {"background": None},
}

#: Parameters of TCLink that choose how tc limits a rate. Longwire needs no such choice.
_ACCEPTED = ("speedup", "use_hfsc", "use_tbf")


def link_settings(
    bw: Optional[float] = None,
    delay: Any = None,
    jitter: Any = None,
    loss: Optional[float] = None,
    max_queue_size: Optional[int] = None,
    latency_ms: Optional[float] = None,
    enable_ecn: bool = False,
    enable_red: bool = False,
    longwire: Optional[Mapping[str, Value]] = None,
) -> Dict[str, Value]:
    """The settings of one direction of a link for the parameters of TCLink.

    `bw` is in Mbit/s, `loss` in per cent, `max_queue_size` in packets; a `delay` or `jitter` without a unit
    is in microseconds, as for tc. `longwire` has further settings of a link: {"queue.kind": "codel"}.
    """
    given: Dict[str, Dict[str, Value]] = {}
    if bw is not None:
        given["rate"] = {"rate": f"{bw} Mbit/s"}
    if loss:
        given["loss"] = {"loss": f"{loss} %"}
    if jitter is not None:
        kind = {"delay.kind": "jitter", "delay.distribution": "uniform"}
        given["delay"] = {**kind, "delay.delay": _time(delay), "delay.jitter": _time(jitter)}
    elif delay is not None:
        given["delay"] = {"delay.kind": "constant", "delay.delay": _time(delay)}
    if enable_ecn or enable_red:
        # The thresholds of TCLink, 30000 and 35000 bytes, in packets.
        limits = {"queue.limit": "1 MB", "queue.min": 20, "queue.max": 23, "queue.max-p": "100 %"}
        given["queue"] = {"queue.kind": "red", **limits, "queue.ecn": "yes" if enable_ecn else "no"}
    elif max_queue_size is not None:
        given["queue"] = {"queue.kind": "tail-drop", "queue.limit": f"{max_queue_size} packets"}
    elif latency_ms is not None:
        given["queue"] = {"queue.kind": "tail-drop", "queue.limit": f"{latency_ms} ms"}
    own = dict(longwire or {})
    # Settings of one's own take the place of a whole block, a profile that of all defaults.
    blocks = {} if "profile" in own else dict(_DEFAULTS)
    blocks.update(given)
    replaced = {key.partition(".")[0] for key in own}
    if "rate" in replaced:
        # Each kind of rate counts bytes in its own way.
        replaced.add("bytes")
    settings: Dict[str, Value] = {}
    for block, keys in blocks.items():
        if block not in replaced:
            settings.update(keys)
    return {**settings, **own}


def _time(value: Any) -> str:
    if value is None:
        return "0 ms"
    text = str(value)
    # tc also knows sec and secs, msec, usecs.
    return f"{text} us" if text.replace(".", "", 1).isdigit() else re.sub(r"secs?$", "s", text)


class LongwireIntf(Intf):  # type: ignore[misc]
    """An end of a link; its settings are those of the direction in which it sends."""

    def config(
        self,
        bw: Optional[float] = None,
        delay: Any = None,
        jitter: Any = None,
        loss: Optional[float] = None,
        max_queue_size: Optional[int] = None,
        latency_ms: Optional[float] = None,
        enable_ecn: bool = False,
        enable_red: bool = False,
        longwire: Optional[Mapping[str, Value]] = None,
        **params: Any,
    ) -> Any:
        """Configures the interface, and the direction in which it sends.

        As with TCLink, what is not named goes back to its default, unless nothing is named.
        """
        for word in _ACCEPTED:
            params.pop(word, None)
        result = super().config(**params)
        given = (bw, delay, jitter, loss, max_queue_size, latency_ms, longwire)
        if all(value is None for value in given) and not enable_ecn and not enable_red:
            return result
        self.settings = link_settings(
            bw, delay, jitter, loss, max_queue_size, latency_ms, enable_ecn, enable_red, longwire
        )
        self.link.apply(self)
        return result


class LongwireLink(Link):  # type: ignore[misc]
    """A link like TCLink, emulated by Longwire. Parameters are those of both directions; `params1` and
    `params2` have what differs in the direction in which the first and the second node send.
    """

    def __init__(
        self,
        node1: Any,
        node2: Any,
        port1: Optional[int] = None,
        port2: Optional[int] = None,
        intfName1: Optional[str] = None,
        intfName2: Optional[str] = None,
        addr1: Optional[str] = None,
        addr2: Optional[str] = None,
        params1: Optional[Mapping[str, Any]] = None,
        params2: Optional[Mapping[str, Any]] = None,
        **params: Any,
    ) -> None:
        for word in ("intf", "cls1", "cls2", "fast"):
            params.pop(word, None)
        self.carrier = Carrier.current()
        self.wire = self.carrier.new_wire()
        #: The object in Longwire, once it is there.
        self.emulated: Optional[RunningLink] = None
        super().__init__(
            node1,
            node2,
            port1=port1,
            port2=port2,
            intfName1=intfName1,
            intfName2=intfName2,
            addr1=addr1,
            addr2=addr2,
            cls1=LongwireIntf,
            cls2=LongwireIntf,
            params1={**params, **(params1 or {})},
            params2={**params, **(params2 or {})},
        )
        self.carrier.add(self)

    def makeIntfPair(
        self,
        intfname1: str,
        intfname2: str,
        addr1: Optional[str] = None,
        addr2: Optional[str] = None,
        node1: Any = None,
        node2: Any = None,
        deleteIntfs: bool = True,
    ) -> Tuple[str, str]:
        """Makes the interfaces of both nodes, each with its other end at Longwire."""
        ends = [(intfname1, addr1, node1), (intfname2, addr2, node2)]
        for (name, address, node), port in zip(ends, self.wire):
            self.carrier.make_end(name, address, node.pid, port)
        for (name, _, node), far in zip(ends, (node2, node1)):
            if _forwards_in_user_space(far):
                _complete_checksums(name, node.pid)
        return intfname1, intfname2

    @property
    def name(self) -> str:
        """Its name in Longwire; the directions are NAME.forward, from the first node, and NAME.backward."""
        return f"{self.intf1.name}-{self.intf2.name}"

    def sections(self) -> str:
        """Its sections in a scenario."""
        bridge = f"wire-{self.name}"
        parts = [section("bridge", {"name": bridge, "wire": True})]
        port = {"driver": "af_packet", "netns": self.carrier.namespace, "bridge": bridge}
        for intf, own in zip((self.intf1, self.intf2), self.wire):
            parts.append(section("port", {"name": intf.name, "interface": own, **port}))
        keys: Dict[str, Value] = {"name": self.name, "between": [self.intf1.name, self.intf2.name]}
        for direction, intf in (("forward", self.intf1), ("backward", self.intf2)):
            settings: Dict[str, Value] = getattr(intf, "settings", {})
            keys.update({f"{direction}.{key}": value for key, value in settings.items()})
        parts.append(section("link", keys))
        return "\n".join(parts)

    def names(self) -> List[str]:
        """The names of its sections, the link first."""
        return [self.name, self.intf1.name, self.intf2.name, f"wire-{self.name}"]

    def apply(self, intf: LongwireIntf) -> None:
        """Sets the direction in which an interface sends, if packets flow already."""
        if self.emulated is None:
            return
        direction = self.emulated.forward if intf is self.intf1 else self.emulated.backward
        direction.set(intf.settings)

    def config(self, **params: Any) -> None:
        """Configures both directions."""
        self.intf1.config(**params)
        self.intf2.config(**params)

    def delete(self) -> None:
        """Removes the link and its interfaces."""
        self.carrier.remove(self)
        self.intf1.delete()
        self.intf2.delete()


class Carrier:
    """The process that carries the packets of links, and the namespace with its ends of their interfaces."""

    _current: "Optional[Carrier]" = None

    def __init__(self, *, waits: bool = False) -> None:
        """With `waits`, it starts when it is told to, else with the first link."""
        self.namespace = f"lw-mn{os.getpid()}-{next(_numbers)}"
        self.lab: Optional[Lab] = None
        self.links: List[LongwireLink] = []
        self.verdict: Optional[Verdict] = None
        self._wires = itertools.count(1)
        self._waits = waits
        self._made = False
        self._lock: Optional[int] = None

    @classmethod
    def current(cls) -> "Carrier":
        """The carrier of links that are made now: that of the `LongwireNet` that was made last, if it still
        is."""
        if cls._current is None:
            cls._current = cls()
        return cls._current

    def new_wire(self) -> Tuple[str, str]:
        """The names of two interfaces."""
        number = next(self._wires)
        return f"w{number}a", f"w{number}b"

    def make_end(self, name: str, address: Optional[str], pid: int, port: str) -> None:
        """Makes the interface of a node, and its other end in the namespace of this carrier."""
        if not self._made:
            remove_left()
            _run("ip", "netns", "add", self.namespace)
            self._made = True
            # Held as long as this process lives.
            self._lock = _locked(self.namespace)
            atexit.register(self.end)
            # Its kernel is to send nothing of its own.
            quiet = "for one in all default; do echo 1 >/proc/sys/net/ipv6/conf/$one/disable_ipv6; done"
            if os.path.isdir("/proc/sys/net/ipv6"):
                _run("ip", "netns", "exec", self.namespace, "sh", "-c", quiet)
        own = ["address", address] if address else []
        words = ["name", name, "netns", str(pid), *own, "type", "veth"]
        _run("ip", "link", "add", *words, "peer", "name", port, "netns", self.namespace)
        _run("ip", "-n", self.namespace, "link", "set", port, "up")

    def add(self, link: LongwireLink) -> None:
        """Adds a link, at once if packets flow already."""
        self.links.append(link)
        if self.lab is not None:
            self.lab.instance.add(link.sections())
            link.emulated = self.lab.instance.link(link.name)
        elif not self._waits:
            self.start()

    def start(self) -> None:
        """Lets packets flow."""
        if self.lab is not None or not self.links:
            return
        self._waits = False
        lab = Lab(name=self.namespace[len("lw-") :])
        for link in self.links:
            lab.add(link.sections())
        lab.start()
        self.lab = lab
        for link in self.links:
            link.emulated = lab.instance.link(link.name)

    def remove(self, link: LongwireLink) -> None:
        """Removes a link; with the last one, the carrier ends."""
        if link not in self.links:
            return
        self.links.remove(link)
        if self.lab is not None and self.links:
            self.lab.remove(*link.names())
        link.emulated = None
        if not self.links:
            self.end()

    def end(self) -> None:
        """Ends the process, keeps its verdict, and removes the namespace."""
        if Carrier._current is self:
            Carrier._current = None
        lab, self.lab = self.lab, None
        for link in self.links:
            link.emulated = None
        self.links.clear()
        try:
            if lab is not None:
                lab.stop()
                self.verdict = lab.verdict
        finally:
            if self._made:
                self._made = False
                atexit.unregister(self.end)
                _run("ip", "netns", "del", self.namespace)
                if self._lock is not None:
                    os.close(self._lock)


class LongwireNet(Mininet):  # type: ignore[misc]
    """A `Mininet` with links that Longwire emulates, and a verdict at its end."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.carrier = Carrier(waits=True)
        Carrier._current = self.carrier
        options.setdefault("link", LongwireLink)
        # Otherwise Mininet raises buffer sizes and other limits of the whole machine, and leaves them so.
        ensureRoot()
        Mininet.inited = True
        super().__init__(*arguments, **options)

    def addLink(self, *arguments: Any, **options: Any) -> Any:
        """Adds a link, while packets flow if the network has started."""
        Carrier._current = self.carrier
        return super().addLink(*arguments, **options)

    def start(self) -> None:
        """Lets packets flow, and starts controllers and switches."""
        if not self.built:
            self.build()
        self.carrier.start()
        super().start()

    def stop(self) -> None:
        """Ends the network."""
        # Before the interfaces go, which would be faults.
        self.carrier.end()
        super().stop()

    @property
    def lab(self) -> Lab:
        """The lab behind the links, while it runs: `net.lab.counters()`."""
        if self.carrier.lab is None:
            raise LongwireError("the network does not run", fix="start() it first")
        return self.carrier.lab

    @property
    def verdict(self) -> Optional[Verdict]:
        """Whether the emulation was faithful; of a running network, so far."""
        return self.carrier.lab.verdict if self.carrier.lab is not None else self.carrier.verdict


def _forwards_in_user_space(node: Any) -> bool:
    """Whether a node is a switch whose process reads frames, and sends the same bytes."""
    return isinstance(node, UserSwitch) or getattr(node, "datapath", None) == "user"


def _complete_checksums(interface: str, pid: int) -> None:
    """Has the kernel compute checksums before frames leave by an interface of a node, which between veth
    pairs it omits: a process that reads them would send on what is not computed."""
    _run("nsenter", "-t", str(pid), "-n", "ethtool", "-K", interface, "tx", "off")


def remove_left() -> None:
    """Removes the namespaces of networks whose process was killed, with the interfaces in them."""
    names = os.listdir(_NAMESPACES) if os.path.isdir(_NAMESPACES) else []
    for name in names:
        owner = re.fullmatch(r"lw-mn([0-9]+)-[0-9]+", name)
        if owner is None or os.path.exists(f"/proc/{owner.group(1)}"):
            continue
        # A process of another container is not below /proc, but it holds its lock.
        lock = _locked(name)
        if lock is not None:
            os.close(lock)
            _run("ip", "netns", "del", name)


def _locked(namespace: str) -> Optional[int]:
    """The lock of a namespace, unless another process holds it, or it is gone."""
    try:
        file = os.open(os.path.join(_NAMESPACES, namespace), os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file


def _run(*words: str) -> None:
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LongwireError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
