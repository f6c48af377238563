"""Machines of tests: network namespaces that a switch joins, each with an agent of Longwire."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence

from longwire import program

#: Time limit for what must happen, in seconds.
TIME = 60.0
#: The switch's own address: that of the coordinator's machine.
SWITCH = "192.0.2.100"
NAMES = ("one", "two", "three")
#: A scenario: two hosts, and a link, whose further keys may follow.
TWO_HOSTS = """
[[host]]
name = "a"
address = "10.0.0.1/24"

[[host]]
name = "b"
address = "10.0.0.2/24"

[[link]]
name = "wan"
between = ["a", "b"]
"""


def why_not() -> Optional[str]:
    """Why there can be no machines here."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in ("ip", "nsenter", "openssl", "ping") if shutil.which(tool) is None]
    return f"{missing[0]} is not installed" if missing else None


class Process:
    """A process whose standard error is read line by line."""

    def __init__(self, command: Sequence[str], *, stdin: int = subprocess.DEVNULL, **options: Any) -> None:
        self.child = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            **options,
        )
        self.lines: List[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.child.stderr is not None
        for line in self.child.stderr:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def line(self, text: str, after: int = 0) -> str:
        """Waits for a line that has this text, behind so many lines."""

        def found() -> Optional[str]:
            return next((line for line in self.lines[after:] if text in line), None)

        with self._news:
            self._news.wait_for(lambda: found() or not self._reader.is_alive(), TIME)
            line = found()
        assert line is not None, f"no line with {text!r}:\n" + "\n".join(self.lines)
        return line

    def end(self, number: int = signal.SIGTERM) -> str:
        """Ends it by a signal; its standard output."""
        if self.child.poll() is None:
            self.child.send_signal(number)
        assert self.child.stdout is not None
        output = "" if self.child.stdout.closed else self.child.stdout.read()
        self.child.wait(TIME)
        self._reader.join(TIME)
        return output


class Machines:
    """Namespaces with the addresses 192.0.2.1, 192.0.2.2, ... and certificates for their agents."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.names = NAMES[:count]
        self.agents: Dict[str, Process] = {}
        self._coordinators: List[Process] = []
        self._prefix = f"lwm{os.getpid()}"
        self._made: List[str] = []
        try:
            self._wire()
            self._certify()
            for name in self.names:
                self.start(name)
        except BaseException:
            self.close()
            raise

    def space(self, name: str) -> str:
        """The namespace of a machine."""
        return f"{self._prefix}-{name}"

    def address(self, name: str) -> str:
        """The address of a machine."""
        return f"192.0.2.{NAMES.index(name) + 1}"

    def _wire(self) -> None:
        for name in ("switch", *self.names):
            _call("ip", "netns", "add", self.space(name))
            self._made.append(name)
            _call("ip", "-n", self.space(name), "link", "set", "lo", "up")
        switch = self.space("switch")
        _call("ip", "-n", switch, "link", "add", "name", "sw0", "type", "bridge")
        _call("ip", "-n", switch, "address", "add", f"{SWITCH}/24", "dev", "sw0")
        _call("ip", "-n", switch, "link", "set", "sw0", "up")
        for name in self.names:
            own = self.space(name)
            _call(
                *("ip", "-n", switch, "link", "add", "name", name, "type", "veth"),
                *("peer", "name", "eth", "netns", own),
            )
            _call("ip", "-n", switch, "link", "set", name, "master", "sw0", "up")
            _call("ip", "-n", own, "address", "add", f"{self.address(name)}/24", "dev", "eth")
            _call("ip", "-n", own, "link", "set", "eth", "up")

    def _certify(self) -> None:
        """An authority, a certificate for each agent, and one for the coordinator."""
        new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        _call(
            *new, *("-days", "2", "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.pem"), cwd=self.folder
        )
        sign = [*new, "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2"]
        sign += ["-addext", "basicConstraints=critical,CA:FALSE"]
        own = [(name, f"IP:{self.address(name)}") for name in self.names]
        for name, other_name in [*own, ("me", "DNS:me.example")]:
            files = ["-keyout", f"{name}.key", "-out", f"{name}.pem"]
            _call(
                *sign,
                *("-subj", f"/CN={name}", "-addext", f"subjectAltName={other_name}", *files),
                cwd=self.folder,
            )
        tokens = self.folder / "tokens"
        tokens.touch(mode=0o600)
        tokens.write_text("install name:me.example\n")

    def within(self, name: str, command: Sequence[str]) -> List[str]:
        """A command in the network of a machine. Unlike `ip netns exec`, it has this machine's mounts."""
        return ["nsenter", f"--net=/run/netns/{self.space(name)}", *command]

    def start(self, name: str) -> None:
        """Starts the agent of a machine, and waits until it answers."""
        listen = f"{self.address(name)}:8399"
        command = [program(), "serve", "--agent", f"agent-{name}", "--listen", listen, "--tokens", "tokens"]
        command += ["--tls-cert", f"{name}.pem", "--tls-key", f"{name}.key", "--tls-clients", "ca.pem"]
        agent = self.agents[name] = Process(self.within(name, command), cwd=self.folder)
        agent.line(" ready ")

    def link(self, name: str, state: str) -> None:
        """Sets the link of a machine to the others up or down."""
        _call("ip", "-n", self.space(name), "link", "set", "eth", state)

    def coordinate(self, *arguments: str) -> Process:
        """Starts `python -m longwire.cluster` on the machine of the switch."""
        command = [sys.executable, "-m", "longwire.cluster", *arguments]
        coordinator = Process(self.within("switch", command), cwd=self.folder)
        self._coordinators.append(coordinator)
        return coordinator

    def write_hosts(self, cluster: str, nodes: Dict[str, Sequence[str]]) -> str:
        """Writes the file of hosts, and returns its name."""
        hosts = [
            {
                "name": name,
                "address": self.address(name),
                "agent": f"https://{self.address(name)}:8399",
                "nodes": list(nodes[name]),
            }
            for name in self.names
        ]
        keys = {"name": cluster, "latency": "500 us", "clock_error": "100 us", "hosts": hosts}
        files = {"ca": "ca.pem", "certificate": "me.pem", "key": "me.key"}
        (self.folder / "hosts.json").write_text(json.dumps({**keys, **files}))
        return "hosts.json"

    def close(self) -> None:
        """Ends the agents, and removes the namespaces."""
        for coordinator in self._coordinators:
            coordinator.end(signal.SIGKILL)
        for agent in self.agents.values():
            agent.end()
        for name in self._made:
            _call("ip", "netns", "del", self.space(name))


def ping(lab: str, host: str, to: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Pings from a host of a lab."""
    command = [program(), "lab", "exec", lab, host, "--", "ping", "-n", "-W", "5", *options, to]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def until(condition: Callable[[], bool]) -> bool:
    """Waits until a condition holds. Returns whether it does."""
    end = time.monotonic() + TIME
    pause = threading.Event()
    while not condition():
        if time.monotonic() > end:
            return False
        pause.wait(0.05)
    return True


def _call(*command: str, **options: Any) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
