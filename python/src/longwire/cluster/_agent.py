"""Agents: `longwire serve --agent` on other machines, by their API."""

from __future__ import annotations

import http.client
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Optional, cast
from urllib.parse import urlsplit

from .._api import ANSWER_TIME, Api, Keys, segment
from .._program import Pathlike
from ..errors import LongwireError, NoAnswer, Refused
from ..instance import Instance
from ._parts import Part

#: Time limit for a part to be sent and read, in seconds.
SEND_TIME = 60.0


@dataclass(frozen=True)
class Credentials:
    """The files by which a coordinator and its agents prove who they are, as `longwire ctl --remote` takes
    them."""

    #: The authorities that signed the agents' certificates.
    ca: Optional[Pathlike] = None
    #: The coordinator's own certificate, and its key.
    certificate: Optional[Pathlike] = None
    key: Optional[Pathlike] = None
    #: A file with a token of the agents.
    token: Optional[Pathlike] = None

    def context(self) -> ssl.SSLContext:
        """How to speak TLS with agents."""
        if self.ca is None:
            raise LongwireError(
                "there is no authority for the agents' certificates", fix="give Credentials(ca=FILE)"
            )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        try:
            context.load_verify_locations(self.ca)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key)
        except OSError as error:
            raise LongwireError(f"the credentials can't be used: {error}") from error
        return context

    def bearer(self) -> Optional[str]:
        """The token."""
        if self.token is None:
            return None
        try:
            return Path(self.token).read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise LongwireError(f"the token in {self.token} can't be read: {error}") from error


class RemoteApi(Api):
    """The API at a URL, `https://HOST:PORT`, or `http://` on this machine."""

    def __init__(self, url: str, credentials: Credentials) -> None:
        parts = urlsplit(url)
        try:
            self._host, self._port = parts.hostname or "", parts.port or 0
        except ValueError:
            self._host, self._port = "", 0
        right = parts.scheme in ("http", "https") and self._host and self._port
        if not right or parts.path not in ("", "/") or parts.query or "@" in parts.netloc:
            raise LongwireError(f'"{url}" is no address of an agent', fix="write https://HOST:PORT")
        self._context: Optional[ssl.SSLContext] = None
        if parts.scheme == "https":
            self._context = credentials.context()
        elif not _is_here(self._host):
            raise LongwireError(
                f"others could read and change what is sent to {self._host}",
                fix="use https, or http only to 127.0.0.1 or localhost",
            )
        self._url = f"{parts.scheme}://{parts.netloc}"
        self._bearer = credentials.bearer()

    def __str__(self) -> str:
        return f"the agent at {self._url}"

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._context)

    def headers(self) -> Dict[str, str]:
        bearer = {} if self._bearer is None else {"Authorization": f"Bearer {self._bearer}"}
        return {**super().headers(), **bearer}

    def listens(self) -> bool:
        try:
            self.ask("GET", "/v1/instance")
        except NoAnswer:
            return False
        except Refused as refused:
            return refused.status != 404
        return True


class _PartApi(Api):
    """The API of a part, through that of its agent."""

    def __init__(self, agent: Api, name: str) -> None:
        self._agent = agent
        self._below = f"/parts/{segment(name)}"

    def __str__(self) -> str:
        return f"{self._below[1:]} of {self._agent}"

    def ask(
        self, method: str, path: str, body: Keys = None, query: Keys = None, *, timeout: float = ANSWER_TIME
    ) -> Any:
        return self._agent.ask(method, self._below + path, body, query, timeout=timeout)

    def listens(self) -> bool:
        try:
            self.ask("GET", "/v1/instance")
        except (NoAnswer, Refused):
            return False
        return True


class Agent:
    """An agent. Each call is a request."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def state(self, timeout: float) -> Dict[str, Any]:
        """Its version, its process, and the parts that it runs and has run."""
        return cast(Dict[str, Any], self.api.ask("GET", "/v1/agent", timeout=timeout))

    def part(self, name: str) -> Dict[str, Any]:
        """A part; one that has ended with its report."""
        return cast(Dict[str, Any], self.api.ask("GET", _path(name), timeout=SEND_TIME))

    def start(self, name: str, run: str, part: Part) -> None:
        """Starts a part of a run."""
        body = {"run": run, "toml": part.toml, "files": dict(part.files), "load_ppm": part.load_ppm}
        self.api.ask("PUT", _path(name), body, timeout=SEND_TIME)

    def end(self, name: str) -> None:
        """Asks for the end of a part; forgets one that has ended."""
        self.api.ask("DELETE", _path(name), timeout=SEND_TIME)

    def instance(self, name: str) -> Instance:
        """The instance of a part, with all its objects."""
        return Instance(_PartApi(self.api, name))


def _path(name: str) -> str:
    return f"/v1/agent/parts/{segment(name)}"


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
