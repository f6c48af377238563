"""What a coordinator has to know of its run, in a file: another one goes on from there."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Dict, List, Optional

from .._program import Pathlike
from ..errors import LongwireError
from ._parts import Part

#: Version of the file's format.
FORMAT = 1
#: Most losses that are kept: a host that fails all day is not to fill the file.
MOST_LOSSES = 1000


@dataclass
class Loss:
    """A time in which a node did not run its part."""

    node: str
    #: Since 1970: when it was noticed, and when the part ran again; None as long as it does not.
    from_ns: int
    to_ns: Optional[int]
    reason: str
    #: The time since the last question to which its agent answered that the part runs: no more can have
    #: passed since the loss itself. None if this coordinator never saw it run.
    noticed_within_ns: Optional[int] = None

    @property
    def why(self) -> str:
        """The reason, and how soon it was noticed."""
        if self.noticed_within_ns is None:
            return self.reason
        return f"{self.reason} (noticed within {self.noticed_within_ns / 1e9:.1f} s)"

    def __str__(self) -> str:
        since = "and has not returned"
        if self.to_ns is not None:
            since = f"for {(self.to_ns - self.from_ns) / 1e9:.1f} s"
        return f"node {self.node} was lost {since}: {self.why}"


@dataclass
class State:
    """A run of a cluster."""

    cluster: str
    #: Which run it is: its parts at the agents have this, too.
    run: str
    started_ns: int
    #: How to reach each host's agent, as it was given.
    hosts: List[Dict[str, Any]]
    credentials: Dict[str, Optional[str]]
    parts: Dict[str, Part]
    losses: List[Loss] = field(default_factory=list)

    @classmethod
    def of_json(cls, read: Dict[str, Any]) -> "State":
        """What a file says."""
        if read.pop("format", None) != FORMAT:
            raise ValueError(f"it is not of format {FORMAT}")
        parts = {}
        for host, part in read.pop("parts").items():
            # Earlier versions have whole cores.
            part.setdefault("load_ppm", part.pop("cores", 1) * 1_000_000)
            parts[host] = Part(**part)
        losses = [Loss(**loss) for loss in read.pop("losses")]
        return cls(**read, parts=parts, losses=losses)


class StateFile:
    """The file of a state. Whoever has opened it is the only coordinator of its run."""

    def __init__(self, path: Pathlike) -> None:
        self.path = Path(path)
        self._lock: IO[str] = _locked(self.path)

    def read(self) -> State:
        """The state of a run that began earlier."""
        try:
            return State.of_json(json.loads(self.path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise LongwireError(f"the state in {self.path} can't be read: {error}") from error

    def write(self, state: State) -> None:
        """Replaces the state as a whole. It has keys: only its owner may read it."""
        new = self.path.with_name(self.path.name + ".new")
        text = json.dumps({"format": FORMAT, **asdict(state)})
        try:
            with open(new, "w", encoding="utf-8", opener=_private) as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self.path)
        except OSError as error:
            raise LongwireError(f"the state can't be written to {self.path}: {error}") from error

    def close(self, *, remove: bool = False) -> None:
        """Gives it up. With `remove`, the run is over."""
        if remove:
            self.path.unlink(missing_ok=True)
        self._lock.close()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _locked(path: Path) -> IO[str]:
    """The lock of a state, which is another file: the state itself is replaced."""
    lock = path.with_name(path.name + ".lock")
    try:
        opened = open(lock, "a", encoding="ascii", opener=_private)
    except OSError as error:
        raise LongwireError(f"the state can't be kept in {path}: {error}") from error
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        opened.close()
        raise LongwireError(f"another coordinator keeps {path}", fix="end that one first") from error
    return opened
