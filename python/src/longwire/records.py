"""Records of runs: verdicts, packet events, time series, counters. Times are integers of nanoseconds."""

from __future__ import annotations

import csv
import dataclasses
import subprocess
import tempfile
from dataclasses import dataclass
from typing import (
    Any,
    Callable,
    Dict,
    Generic,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Type,
    TypeVar,
    Union,
    cast,
    get_type_hints,
    overload,
)

from ._program import Pathlike, fault_in, program
from .errors import LongwireError

Row = TypeVar("Row")


@dataclass(frozen=True)
class Verdict:
    """Whether packets left when they should have. It is true in a condition if they did."""

    faithful: bool
    #: Why not; the most important cause first.
    causes: Tuple[str, ...]
    #: Packets that were judged, and those that were late.
    packets: int
    late: int
    #: How late they were: p50, p99, p999 and max.
    lateness_ns: Mapping[str, int]
    #: The first cause in a few words.
    brief: Optional[str] = None

    def __bool__(self) -> bool:
        return self.faithful

    def __str__(self) -> str:
        if self.packets == 0:
            return "no packet left" if self.faithful else f"not faithful: {self.reason}"
        return f"faithful ({self.packets} packets)" if self.faithful else f"not faithful: {self.reason}"

    @property
    def reason(self) -> str:
        """The first cause."""
        return self.brief or (self.causes[0] if self.causes else "no cause is known")

    @classmethod
    def of_json(cls, fidelity: Optional[Mapping[str, Any]]) -> Optional["Verdict"]:
        """The verdict of a report or summary; None if there is none yet."""
        if fidelity is None:
            return None
        return cls(
            faithful=fidelity["faithful"],
            causes=tuple(fidelity["causes"]),
            packets=fidelity["packets"],
            late=fidelity["late"],
            lateness_ns=fidelity["lateness_ns"],
            brief=fidelity.get("brief"),
        )


@dataclass(frozen=True)
class PacketEvent:
    """What happened to a packet at a link: arrive, leave, drop, mark, steer; or lost: events are missing
    before it."""

    time_ns: int
    event: str
    #: None if it was dropped outside links.
    link: Optional[str]
    #: The packet's number, from link to link; of "lost" the number of lost events.
    id: int
    #: Bytes of the frame.
    length: int
    segments: int
    reason: Optional[str]
    arrival_ns: Optional[int]
    leave_ns: Optional[int]
    #: Bytes in the queue when it arrived.
    queue_bytes: int


@dataclass(frozen=True)
class Packet:
    """A packet that crossed a link."""

    id: int
    link: str
    length: int
    segments: int
    arrival_ns: int
    leave_ns: int
    #: From arrival to leaving: queue, transmission and propagation.
    delay_ns: int


@dataclass(frozen=True)
class Sample:
    """A link in an interval that ends at `time_ns`: what came and left in it, what waits at its end."""

    time_ns: int
    link: str
    in_packets: int
    in_bytes: int
    out_packets: int
    out_bytes: int
    dropped_packets: int
    marked_packets: int
    in_bit_s: int
    out_bit_s: int
    queue_packets: int
    queue_bytes: int
    travelling_packets: int


@dataclass(frozen=True)
class LinkCounters:
    """The counters of a link since the start of the run, as of `time_ns`."""

    time_ns: int
    link: str
    in_packets: int
    in_bytes: int
    out_packets: int
    out_bytes: int
    marked_packets: int
    #: By reason.
    dropped: Mapping[str, int]
    queued_packets: int
    queued_bytes: int
    travelling_packets: int
    late_packets: int
    max_late_ns: int

    @property
    def dropped_packets(self) -> int:
        """For all reasons together."""
        return sum(self.dropped.values())

    @classmethod
    def of_json(cls, time_ns: int, name: str, stats: Mapping[str, Any]) -> "LinkCounters":
        """Those of a link as the API shows it."""
        others = ("time_ns", "link", "dropped")
        own = [field.name for field in dataclasses.fields(cls) if field.name not in others]
        return cls(time_ns, name, dropped=dict(stats["drops"]), **{key: stats[key] for key in own})


class Table(Sequence[Row], Generic[Row]):
    """Records, kept as columns: a sequence of records, `table["column"]` is the list of a column's values."""

    def __init__(self, record: Type[Row], columns: Optional[Dict[str, List[Any]]] = None) -> None:
        names = [field.name for field in dataclasses.fields(cast(Any, record))]
        self._record: Callable[..., Row] = record
        self._type = record
        self.columns: Dict[str, List[Any]] = columns if columns is not None else {name: [] for name in names}

    @classmethod
    def of(cls, record: Type[Row], rows: Iterable[Row]) -> "Table[Row]":
        """A table of records."""
        table = cls(record)
        columns = list(table.columns.items())
        for row in rows:
            for name, column in columns:
                column.append(getattr(row, name))
        return table

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> "Table[Row]": ...

    @overload
    def __getitem__(self, index: str) -> List[Any]: ...

    def __getitem__(self, index: Union[int, slice, str]) -> Any:
        if isinstance(index, str):
            return self.columns[index]
        if isinstance(index, slice):
            return Table(self._type, {name: column[index] for name, column in self.columns.items()})
        return self._record(*(column[index] for column in self.columns.values()))

    def __iter__(self) -> Iterator[Row]:
        return (self._record(*values) for values in zip(*self.columns.values()))

    def where(self, **values: Any) -> "Table[Row]":
        """The records with these values: `table.where(link="wan.forward")`."""
        wanted = [(self.columns[name], value) for name, value in values.items()]
        chosen = [at for at in range(len(self)) if all(column[at] == value for column, value in wanted)]
        columns = {name: [column[at] for at in chosen] for name, column in self.columns.items()}
        return Table(self._type, columns)

    def to_pandas(self) -> Any:
        """The table as a pandas.DataFrame. Integers stay integers, also where some are missing."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas() needs pandas: pip install pandas") from error
        types = get_type_hints(self._type)
        # By itself, pandas makes floating-point numbers of those, which lose nanoseconds.
        optional = [name for name in self.columns if types[name] == Optional[int]]
        exact = {name: pandas.array(self.columns[name], dtype="Int64") for name in optional}
        return pandas.DataFrame({**self.columns, **exact})

    def __repr__(self) -> str:
        return f"<Table of {len(self)} {self._type.__name__}: {', '.join(self.columns)}>"


def read_series(file: Pathlike) -> Table[Sample]:
    """The time series in a file that `--series FILE.csv` wrote."""
    table: Table[Sample] = Table(Sample)
    columns = [(column, str if name == "link" else int) for name, column in table.columns.items()]
    with open(file, encoding="utf-8", newline="") as lines:
        rows = csv.reader(lines)
        header = next(rows, [])
        if header != list(table.columns):
            raise LongwireError(f"{file} is not a time series with the columns {', '.join(table.columns)}")
        for row in rows:
            for (column, kind), value in zip(columns, row):
                column.append(kind(value))
    return table


def read_log(
    file: Pathlike,
    *,
    link: Optional[str] = None,
    event: Union[None, str, Sequence[str]] = None,
    reason: Union[None, str, Sequence[str]] = None,
    id: Optional[int] = None,
    follow: bool = False,
) -> Iterator[PacketEvent]:
    """The events in a packet log that `--log FILE` wrote, one by one, as the program reads them.

    `link` is a name or a pattern with * and ?; `event` and `reason` choose events. With `follow`, what is
    added comes too, until the run ends.
    """
    arguments = [program(), "log", str(file), "--csv"]
    if follow:
        arguments.append("--follow")
    if link is not None:
        arguments += ["--link", link]
    for option, values in (("--event", event), ("--reason", reason)):
        for value in [values] if isinstance(values, str) else values or ():
            arguments += [option, value]
    if id is not None:
        arguments += ["--id", str(id)]
    with tempfile.TemporaryFile() as messages:
        reader = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages, encoding="utf-8"
        )
        assert reader.stdout is not None
        is_read = False
        try:
            rows = csv.reader(reader.stdout)
            next(rows, None)
            for row in rows:
                yield _event(row)
            is_read = True
        finally:
            if not is_read:
                # The caller wants no more.
                reader.terminate()
            reader.stdout.close()
            status = reader.wait()
        if status != 0:
            messages.seek(0)
            raise LongwireError(fault_in(messages.read().decode(errors="replace")))


def _event(row: Sequence[str]) -> PacketEvent:
    time, event, link, number, length, segments, reason, arrival, leave, queue = row
    return PacketEvent(
        int(time),
        event,
        link or None,
        int(number),
        int(length),
        int(segments),
        reason or None,
        int(arrival) if arrival else None,
        int(leave) if leave else None,
        int(queue),
    )


def crossings(events: Iterable[PacketEvent]) -> Table[Packet]:
    """The packets that left links, of a log's events."""
    left = (
        Packet(e.id, e.link, e.length, e.segments, e.arrival_ns, e.time_ns, e.time_ns - e.arrival_ns)
        for e in events
        if e.event == "leave" and e.link is not None and e.arrival_ns is not None
    )
    return Table.of(Packet, left)
