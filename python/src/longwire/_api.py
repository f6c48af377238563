"""HTTP over the Unix socket of a running instance."""

from __future__ import annotations

import http.client
import json
import os
import socket
import stat
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple
from urllib.parse import quote, urlencode

from .errors import LongwireError, NoAnswer, Refused

#: A body or a query.
Keys = Optional[Mapping[str, Any]]

#: Time limit of an answer, in seconds.
ANSWER_TIME = 15.0
#: The same for an answer about a whole scenario: reading a large one anew takes long.
SCENARIO_TIME = 300.0


def run_directory() -> Path:
    """The directory of this user's sockets."""
    named = os.environ.get("LONGWIRE_RUN_DIR")
    if named:
        return Path(named)
    if os.geteuid() == 0:
        return Path("/run/longwire")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "longwire"
    return Path(f"/tmp/longwire-{os.geteuid()}")


def sockets() -> Iterator[Tuple[str, int, Path]]:
    """Name, process id and socket of each instance of this user, running or killed.

    A directory that others could have filled is refused: they would receive this user's requests.
    """
    directory = run_directory()
    try:
        state = directory.stat()
        files = sorted(directory.iterdir())
    except (FileNotFoundError, PermissionError):
        return
    if state.st_uid not in (0, os.geteuid()) or stat.S_IMODE(state.st_mode) & 0o022:
        raise LongwireError(
            f"{directory} belongs to another user, or others may write to it",
            fix="remove it, or set LONGWIRE_RUN_DIR to another directory",
        )
    for path in files:
        name, dash, number = path.name[: -len(".sock")].rpartition("-")
        if path.suffix == ".sock" and dash and name and not name.startswith(".") and number.isdecimal():
            yield name, int(number), path


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("longwire", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Api:
    """The API behind one socket."""

    #: What precedes each path.
    prefix = ""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return f"the instance at {self.path}"

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        """A connection to it, which is not open yet."""
        return _Connection(self.path, timeout)

    def headers(self) -> Dict[str, str]:
        """What each request says of itself."""
        return {"Content-Type": "application/json"}

    def ask(
        self, method: str, path: str, body: Keys = None, query: Keys = None, *, timeout: float = ANSWER_TIME
    ) -> Any:
        """Sends a request and returns the parsed answer; None if it is empty."""
        given = {key: value for key, value in (query or {}).items() if value is not None}
        if given:
            path += "?" + urlencode({key: _query_text(value) for key, value in given.items()})
        text = None if body is None else json.dumps(body).encode()
        connection = self.connection(timeout)
        try:
            connection.request(method, self.prefix + path, body=text, headers=self.headers())
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise NoAnswer(f"{self} does not answer: {reason}") from error
        finally:
            connection.close()
        try:
            parsed = json.loads(data) if data else None
        except ValueError as error:
            raise NoAnswer(f"the answer of {self} to {path} can't be read: {error}") from error
        if answer.status >= 400:
            raise Refused(answer.status, parsed if isinstance(parsed, dict) else {})
        return parsed

    def listens(self) -> bool:
        """Whether somebody listens at it."""
        return listens(self.path)


def listens(path: Path) -> bool:
    """Whether somebody listens at a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
        try:
            tried.setblocking(False)
            tried.connect(str(path))
        except BlockingIOError:
            # A full queue of connections: it runs.
            return True
        except OSError:
            return False
    return True


def segment(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")


def _query_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
