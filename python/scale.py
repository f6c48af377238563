"""The scale on paper: what 1000 machines with 100 million links need, computed from measured constants.

Prints the table of docs/book/scale.md; --write replaces it there. A test compares them.
"""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "book" / "scale.md"
BEGIN, END = "<!-- scale -->\n", "<!-- end of scale -->\n"

MACHINES = 1000
LINKS = 100_000_000

# Assumed.
CORES = 32
#: Mean rate of a link over time, the frames on it, and the share of links that are cut.
LINK_BIT_PER_S = 10_000
FRAME_BYTES = 700
CUT_SHARE = 0.02
#: The network between machines: what each has, and the time from one to another through three switches.
UNDERLAY_BIT_PER_S = 25e9
ONE_WAY_NS = 30_000
#: Mean of the exponential wait in each of the queues on one way.
QUEUES, WAIT_NS = 3, 5_000
#: Bytes that cross for a question to an agent: most are the certificates of both.
QUESTION_BYTES = 4_500
#: Both ends, for what is longer than the frames of the measurement: the prices of `longwire check` without a
#: calibration.
TUNNEL_NS_PER_BYTE = 2 * 0.5

#: Processor time of the coordinator for a question with mutual TLS: the mean of 600, written down, because no
#: bench repeats it.
QUESTION_S = 0.003
QUESTION_SOURCE = "measured by b4393c0d, AMD EPYC"

# By definition (docs/book/tunnels.md, python/src/longwire/cluster/_run.py).
TUNNEL_BYTES = 68
PROBES_PER_S, DRIFT_PPM = 40, 100
EVERY_S, ASK_S, PATIENCE_S = 0.4, 0.9, 1.5

MEASURED = {
    "memory of a link, bytes": ("bench", "engine: memory of one of them, resident while all are used"),
    "packets/s of a core, random links": (
        "bench",
        "engine: 1 000 000 links, 100 Gbit/s and 10 ms each, random order",
    ),
    "seconds to load a million links": ("bench", "engine: a scenario of 1000000 links, time to load"),
    "packets/s between two ports": ("bench", "ports: af_xdp, engine, 64 bytes"),
    "packets/s of a tunnel, a thread at each end": ("tunnel", "tunnel: 64 bytes"),
}
#: Frames of the last one.
TUNNEL_FRAME_BYTES = 64


class Line(NamedTuple):
    """A row of the table."""

    what: str
    value: str
    source: str


def measured() -> Dict[str, float]:
    """The constants, from docs/results."""
    found = {}
    for name, (file, row) in MEASURED.items():
        report = json.loads((REPOSITORY / "docs" / "results" / f"{file}.json").read_text(encoding="utf-8"))
        found[name] = next(float(one["measured"]) for one in report["rows"] if one["name"] == row)
    return found


def lines() -> Iterator[Line]:
    """The rows."""
    constants = measured()
    for name, (file, _) in MEASURED.items():
        yield Line(name, short(constants[name]), f"measured: {file}.json")
    question = f"{QUESTION_S * 1e3:g} ms"
    yield Line("processor time of a question to an agent", question, QUESTION_SOURCE)
    yield from assumed()
    tunnel_ns = tunnel_price(constants)
    what = f"a packet of {TUNNEL_FRAME_BYTES} bytes through a tunnel, both ends, at most"
    yield Line(what, f"{tunnel_ns / 1e3:.1f} us", "computed")
    yield from machine(constants, tunnel_ns)
    yield from clocks()
    yield from coordinator()


def assumed() -> Iterator[Line]:
    """What is not measured."""
    yield Line("cores of a machine", str(CORES), "assumed")
    rate = f"{short(LINK_BIT_PER_S)}bit/s, {FRAME_BYTES}"
    yield Line("mean rate of a link, bytes of a frame", rate, "assumed")
    yield Line("links that are cut", f"{CUT_SHARE:.0%}", "assumed")
    yield Line("underlay of a machine", f"{short(UNDERLAY_BIT_PER_S)}bit/s", "assumed")
    wait = f"{ONE_WAY_NS / 1e3:g} us and {QUEUES} queues of {WAIT_NS / 1e3:g} us each, exponential"
    yield Line("one way through the underlay", wait, "assumed")
    price = f"{TUNNEL_NS_PER_BYTE:g} ns"
    yield Line("each further byte through a tunnel, both ends", price, "assumed: prices of `check`")
    yield Line("bytes of a question to an agent, with its TLS handshake", str(QUESTION_BYTES), "assumed")


def tunnel_price(constants: Dict[str, float]) -> float:
    """Processor time of both ends for a packet. At most, as if both threads had been busy all the time."""
    return 2e9 / constants["packets/s of a tunnel, a thread at each end"]


def machine(constants: Dict[str, float], tunnel_ns: float) -> Iterator[Line]:
    """Load and bandwidth of a machine."""
    links = LINKS // MACHINES
    packets = links * LINK_BIT_PER_S / 8 / FRAME_BYTES
    crossing = packets * CUT_SHARE
    core = packets / constants["packets/s of a core, random links"]
    longer = FRAME_BYTES - TUNNEL_FRAME_BYTES
    tunnels = crossing * (tunnel_ns + TUNNEL_NS_PER_BYTE * longer) / 1e9
    ports = packets * (1 - CUT_SHARE) / constants["packets/s between two ports"]
    memory = links * constants["memory of a link, bytes"]
    loading = constants["seconds to load a million links"] * links / 1e6
    bandwidth = crossing * (FRAME_BYTES + TUNNEL_BYTES) * 8
    fragments = 1500 - TUNNEL_BYTES
    yield Line("**links of a machine**", short(links), "computed")
    yield Line("packets/s of a machine", short(packets), "computed")
    yield Line("**cores for links, tunnels, ports**", f"{core:.2f}, {tunnels:.2f}, {ports:.2f}", "computed")
    yield Line("memory for links", f"{short(memory)}B", "computed")
    yield Line("time to load a part", f"{loading:.2f} s", "computed")
    share = bandwidth / UNDERLAY_BIT_PER_S
    crossing_text = f"{short(bandwidth)}bit/s ({share:.2%})"
    yield Line("**bandwidth of its tunnels, each way**", crossing_text, "computed")
    yield Line("longest frame without fragments, MTU 1500", f"{fragments} bytes", "computed")
    pairs = MACHINES * (MACHINES - 1) // 2
    yield Line("pairs of machines, if all have tunnels", short(pairs), "computed")
    probes = (MACHINES - 1) * PROBES_PER_S * 2
    yield Line("probes and echoes/s of a machine with tunnels to all", short(probes), "computed")
    yield Line("cores for these", f"{probes * tunnel_ns / 1e9:.2f}", "computed")


def clocks(draws: int = 20_000) -> Iterator[Line]:
    """The bound of the clock's error, simulated: probes through queues, the tightest exchange counts."""
    random_of = random.Random(1)

    def way() -> float:
        return ONE_WAY_NS + sum(random_of.expovariate(1 / WAIT_NS) for _ in range(QUEUES))

    period = 1e9 / PROBES_PER_S
    bounds: List[float] = []
    best = math.inf
    for _ in range(draws):
        # The bound of an earlier exchange has grown with its age.
        best = min(best + period * DRIFT_PPM / 1e6, (way() + way()) / 2)
        bounds.append(best)
    bounds.sort()
    for share, name in ((0.5, "median"), (0.99, "99 %"), (1.0, "at most")):
        value = bounds[min(len(bounds) - 1, int(len(bounds) * share))]
        yield Line(f"**bound of the clocks' error, {name}**", f"{value / 1e3:.1f} us", "simulated, seed 1")
    needed = ONE_WAY_NS + 3 * QUEUES * WAIT_NS + bounds[-1]
    source = "computed: one way, three times the queues, bound"
    yield Line("delay that a cut link needs", f"{needed / 1e3:.0f} us", source)


def coordinator(draws: int = 20_000) -> Iterator[Line]:
    """What a coordinator does, and when it notices that a node is silent."""
    questions = MACHINES / EVERY_S
    yield Line("questions/s of a coordinator", short(questions), "computed")
    yield Line("**cores for these**", f"{questions * QUESTION_S:.1f}", "computed")
    traffic = questions * QUESTION_BYTES * 8
    yield Line("its traffic", f"{short(traffic)}bit/s", "computed")
    most = int(EVERY_S / QUESTION_S)
    yield Line("machines of a coordinator with one core", str(most), "computed")
    random_of = random.Random(1)
    times = sorted(noticed(random_of.uniform(0, EVERY_S)) for _ in range(draws))
    yield Line("**a silent node is noticed after, mean**", f"{sum(times) / draws:.2f} s", "simulated, seed 1")
    yield Line("… at most", f"{times[-1]:.2f} s", "simulated, seed 1")


def noticed(since_answer: float) -> float:
    """When the loss of a node that falls silent so long after its last answer is noticed."""
    # Questions follow their predecessor's end; each waits for its answer in vain.
    now = EVERY_S
    while True:
        now += ASK_S
        if now > PATIENCE_S:
            return now - since_answer
        now += EVERY_S


def short(value: float) -> str:
    """A number with three digits and a prefix, followed by a space before a unit."""
    for size, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {prefix}"
    return f"{value:.3g} "


def table() -> str:
    """The table in Markdown."""
    rows = [f"| {line.what} | {line.value.strip()} | {line.source} |" for line in lines()]
    return "\n".join(["| quantity | value | from |", "|---|---|---|", *rows]) + "\n"


def page(text: str) -> str:
    """The page with this table."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table(), end="")
