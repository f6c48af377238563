"""Runs in virtual time, with packets, drops and queues as columns."""

from __future__ import annotations

import os
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Union

from ._program import Pathlike, Report, call
from .errors import LongwireError
from .records import Packet, PacketEvent, Sample, Table, Verdict, crossings, read_log, read_series
from .scenario import Scenario, Value, as_input, overrides, text


class Simulation:
    """The result of a run in virtual time. Its files last as long as this object.

    Tables are read at their first use, and kept.
    """

    def __init__(
        self,
        report: Report,
        folder: "tempfile.TemporaryDirectory[str]",
        log: Optional[Path],
        series: Optional[Path],
    ) -> None:
        #: The report, as `longwire run --json` prints it.
        self.report = report
        self._folder = folder
        self._log = log
        self._series = series

    @property
    def elapsed_ns(self) -> int:
        """How long it ran, on its own clock."""
        return int(self.report["elapsed_ns"])

    @property
    def verdict(self) -> Optional[Verdict]:
        """The verdict; None if nothing was judged."""
        return Verdict.of_json(self.report.get("fidelity"))

    def rows(self, kind: str) -> List[Dict[str, Any]]:
        """The rows of the report with this kind: "link", "port", "source", "router"."""
        return [row for row in self.report["rows"] if row.get("kind") == kind]

    def events(self, **choice: Any) -> Iterator[PacketEvent]:
        """The events of the packet log, one by one: see `read_log`."""
        if self._log is None:
            raise LongwireError("the run has no packet log", fix="leave log=False out")
        return read_log(self._log, **choice)

    @cached_property
    def packets(self) -> Table[Packet]:
        """The packets that left links, a row for each link."""
        return crossings(self.events(event="leave"))

    @cached_property
    def drops(self) -> Table[PacketEvent]:
        """The dropped packets with their reasons."""
        return Table.of(PacketEvent, self.events(event="drop"))

    @cached_property
    def queues(self) -> Table[Sample]:
        """Rates, drops and queues of the links, a row for each link and interval."""
        if self._series is None:
            raise LongwireError("the run has no time series", fix='say how often: every="10 ms"')
        return read_series(self._series)

    def __repr__(self) -> str:
        return f"<Simulation of {self.elapsed_ns / 1e9} s: {self.verdict}>"


def simulate(
    scenario: Union[Scenario, Pathlike],
    *,
    time: Value = None,
    seed: Optional[int] = None,
    settings: Optional[Mapping[str, Value]] = None,
    inputs: Optional[Mapping[str, Pathlike]] = None,
    outputs: Optional[Mapping[str, Pathlike]] = None,
    log: bool = True,
    links: Optional[str] = None,
    every: Value = None,
) -> Simulation:
    """Runs a scenario in virtual time, which needs no privileges.

    - `scenario`: a `Scenario`, or the path of a file.
    - `time`: how long, "10 s"; else until nothing is left to happen.
    - `seed`: in the place of the scenario's seed.
    - `settings`: settings from the start in the place of the scenario's, such as
      `{"wan.rate": "10mbit"}`: the object, a dot, and its setting. None removes what it names,
      such as a loss.
    - `inputs`, `outputs`: captures by port, those that packets are taken from and those to write.
    - `log`: whether packets are logged; `packets`, `drops` and `events` need that.
    - `links`: a pattern of the links to log and to sample, "up.*"; else all.
    - `every`: the interval of the samples in `queues`, "10 ms"; without it there are none.
    """
    folder = tempfile.TemporaryDirectory(prefix="longwire-")
    file, built = as_input(scenario)
    arguments = ["run", file, "--virtual"]
    if time is not None:
        arguments += ["--for", text(time)]
    arguments += overrides(seed, settings)
    for option, files in (("--input", inputs), ("--output", outputs)):
        for port, capture in (files or {}).items():
            arguments += [option, f"{port}={os.fspath(capture)}"]
    log_file = series_file = None
    if log:
        log_file = Path(folder.name) / "run.lwlog"
        arguments += ["--log", str(log_file)]
        arguments += ["--log-links", links] if links is not None else []
    if every is not None:
        series_file = Path(folder.name) / "run.csv"
        arguments += ["--series", str(series_file), "--every", text(every)]
        arguments += ["--series-links", links] if links is not None else []
    return Simulation(call(arguments, built), folder, log_file, series_file)
