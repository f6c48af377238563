"""Longwire from Python: hosts behind emulated links, in real and in virtual time.

    from longwire import Lab

    with Lab() as lab:
        a, b = lab.host("a"), lab.host("b")
        wan = lab.link(a, b, rate="10mbit", delay="20ms")
        a.run(["ping", "-c", "3", "b"])
        wan.set(loss="1%", ramp="5 s")
    print(lab.verdict)

Values are texts as in a scenario; times in results are integers of nanoseconds, sizes bytes, rates bit/s.
"""

from ._program import call, program
from ._sweep_rows import SweepProgress
from .errors import LongwireError, NoAnswer, NotFaithful, ProgramNotFound, Refused
from .instance import Instance, Link, Medium, Port, Router, Source, connect, instances
from .lab import Host, Lab
from .records import LinkCounters, Packet, PacketEvent, Sample, Table, Verdict, read_log, read_series
from .scenario import Scenario
from .simulation import Simulation, simulate
from .sweeps import sweep

__all__ = [
    "Host",
    "Instance",
    "Lab",
    "Link",
    "LinkCounters",
    "LongwireError",
    "Medium",
    "NoAnswer",
    "NotFaithful",
    "Packet",
    "PacketEvent",
    "Port",
    "ProgramNotFound",
    "Refused",
    "Router",
    "Sample",
    "Scenario",
    "Simulation",
    "Source",
    "SweepProgress",
    "Table",
    "Verdict",
    "call",
    "connect",
    "instances",
    "program",
    "read_log",
    "read_series",
    "simulate",
    "sweep",
]
