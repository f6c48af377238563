"""A scenario that runs in real time, with test hosts in which commands run."""

from __future__ import annotations

import copy
import itertools
import os
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Type, Union

from ._program import Pathlike, Report, program, report_of
from .errors import LongwireError, NotFaithful
from .instance import Instance, Link, Medium, Router, Source, socket_of
from .records import LinkCounters, PacketEvent, Sample, Table, Verdict, read_log, read_series
from .scenario import Scenario, Sections, Value, overrides, section, text

#: Time for a lab to start, in seconds: another process may hold the lock of labs for a while.
_START_TIME = 150.0
#: Time for it to end.
_END_TIME = 60.0
#: Interval between checks whether it answers.
_LOOK = 0.005

_numbers = itertools.count(1)

#: A program with its arguments, or a line for the shell.
Command = Union[str, Sequence[Any]]


class Host:
    """A test host of a lab: a network namespace with the interface eth0."""

    def __init__(self, lab: "Lab", name: str, addresses: Sequence[Value]) -> None:
        self.lab = lab
        self.name = name
        #: Its addresses, without prefix lengths.
        self.addresses = [text(address).partition("/")[0] for address in addresses]

    @property
    def address(self) -> str:
        """Its first address, without the prefix length."""
        return self.addresses[0]

    @property
    def namespace(self) -> str:
        """The name of its network namespace."""
        return f"lw-{self.lab.name}-{self.name}"

    def popen(self, command: Command, **options: Any) -> "subprocess.Popen[Any]":
        """Starts a command in the host, and returns its process, a `subprocess.Popen`.

        The command is a list of a program and its arguments, or a line for the shell. Options are those of
        `subprocess.Popen`. Signals and the exit status are the command's own; names of hosts resolve. What
        still runs at the end of the lab is ended.
        """
        words = ["sh", "-c", command] if isinstance(command, str) else [str(word) for word in command]
        return self.lab._enter(self.name, words, options)

    def run(
        self, command: Command, *, check: bool = True, timeout: Optional[float] = None, **options: Any
    ) -> "subprocess.CompletedProcess[Any]":
        """Runs a command in the host and waits for its end, as `subprocess.run` does.

        With `check`, which is the default, an exit status other than 0 raises
        `subprocess.CalledProcessError`. `timeout` is in seconds.
        """
        given = options.pop("input", None)
        if options.pop("capture_output", False):
            options.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if given is not None:
            options["stdin"] = subprocess.PIPE
        with self.popen(command, **options) as process:
            try:
                output, errors = process.communicate(given, timeout=timeout)
            except BaseException:
                process.kill()
                raise
        done = subprocess.CompletedProcess(command, process.returncode, output, errors)
        if check:
            done.check_returncode()
        return done

    def __repr__(self) -> str:
        return f"<Host {self.name} of {self.lab.name}: {', '.join(self.addresses)}>"


class Lab:
    """A scenario in real time, from `start` to `stop`, or from the first use to the end of a `with` block.

        with Lab() as lab:
            a, b = lab.host("a"), lab.host("b")
            wan = lab.link(a, b, rate="10mbit", delay="20ms")
            a.run(["ping", "-c", "3", "b"])
        print(lab.verdict)

    It starts by itself with the first command, change or question; `start` does that at a moment of your
    choice. Hosts and links can be added before and after.

    - `scenario`: a `Scenario` to begin with, which stays as it is; `Lab.load` takes a file.
    - `name`: its name for `longwire ctl` and `longwire lab`.
    - `seed`: in the place of the scenario's seed.
    - `settings`: settings from the start in the place of the scenario's, such as
      `{"wan.rate": "10mbit"}`: the object, a dot, and its setting. None removes what it names.
    - `log`: True, or the file of a packet log (.lwlog or .pcapng), for `log_links` (a pattern, "up.*") or all
      links.
    - `series`: True, or the file of a time series (.csv), `every` so often.
    - `record`: a pcapng file for all that arrives, from which virtual time can repeat the run.
    - `require_faithful`: whether the end of the `with` block raises `NotFaithful` if the run was not
      faithful.

    If this process dies, the lab ends, and takes its hosts down.
    """

    def __init__(
        self,
        scenario: Optional[Scenario] = None,
        *,
        name: Optional[str] = None,
        seed: Optional[int] = None,
        settings: Optional[Mapping[str, Value]] = None,
        log: Union[None, bool, Pathlike] = None,
        log_links: Optional[str] = None,
        series: Union[None, bool, Pathlike] = None,
        every: Value = "100 ms",
        record: Optional[Pathlike] = None,
        require_faithful: bool = False,
    ) -> None:
        self.name = name if name is not None else f"py{os.getpid()}-{next(_numbers)}"
        self.require_faithful = require_faithful
        #: The report at the end, as `longwire run --json` prints it; None before.
        self.report: Optional[Report] = None
        # What is added to the lab is not added to the caller's scenario.
        self._scenario = copy.deepcopy(scenario) if scenario is not None else Scenario()
        self._file: Optional[str] = None
        self._sections = _LabSections(self)
        # Addresses go on behind those of the scenario.
        self._sections._hosts = self._scenario._hosts
        self._hosts: Dict[str, Host] = {}
        self._folder: Optional[tempfile.TemporaryDirectory[str]] = None
        self._log = self._record_file(log, "run.lwlog")
        self._series = self._record_file(series, "run.csv")
        self._options = overrides(seed, settings)
        if self._log is not None:
            self._options += ["--log", str(self._log)]
            if log_links is not None:
                self._options += ["--log-links", log_links]
        if self._series is not None:
            self._options += ["--series", str(self._series), "--every", text(every)]
        if record is not None:
            self._options += ["--record", os.path.abspath(record)]
        self._process: Optional[subprocess.Popen[str]] = None
        self._messages: Any = None
        self._instance: Optional[Instance] = None
        self._commands: List[subprocess.Popen[Any]] = []

    @classmethod
    def load(cls, file: Pathlike, **options: Any) -> "Lab":
        """The lab of a scenario's file. Options are those of `Lab`. What is added joins while it runs."""
        lab = cls(**options)
        lab._file = os.path.abspath(file)
        return lab

    def _record_file(self, wanted: Union[None, bool, Pathlike], name: str) -> Optional[Path]:
        if wanted is None or wanted is False:
            return None
        if wanted is not True:
            return Path(os.path.abspath(wanted))
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="longwire-")
        return Path(self._folder.name) / name

    # Its objects.

    def host(self, name: str, address: Value = None, **keys: Value) -> Host:
        """Adds a test host: see `Sections.host`."""
        self._sections.host(name, address, **keys)
        given = self._sections.last["address"]
        host = Host(self, name, given if isinstance(given, (list, tuple)) else [given])
        self._hosts[name] = host
        return host

    def link(self, a: Any, b: Any, name: Optional[str] = None, *, duplex: bool = True, **keys: Value) -> Link:
        """Adds a link, duplex or from a to b only: see `Sections.link`."""
        return Link(self._running, self._sections.link(a, b, name, duplex=duplex, **keys))

    def bridge(self, name: str, **keys: Value) -> str:
        """Adds a learning bridge, and returns its name."""
        return self._sections.bridge(name, **keys)

    def port(self, name: str, driver: str, **keys: Value) -> str:
        """Adds another place where packets enter and leave, and returns its name."""
        return self._sections.port(name, driver, **keys)

    def router(self, name: str, ports: Sequence[Mapping[str, Value]], **keys: Value) -> Router:
        """Adds a router: see `Sections.router`. In a running lab `add` takes one with its hosts and links."""
        return Router(self._running, self._sections.router(name, ports, **keys))

    def medium(self, name: str, kind: str, **keys: Value) -> Medium:
        """Adds a medium that links share: before the start only."""
        return Medium(self._running, self._sections.medium(name, kind, **keys))

    def source(self, from_: Any, to: Any, name: Optional[str] = None, **keys: Value) -> Source:
        """Adds a traffic source that begins at a port with the driver "source"; in a running lab at once."""
        return Source(self._running, self._sections.source(from_, to, name, **keys))

    def section(self, word: str, /, **keys: Value) -> None:
        """Adds the section `[[word]]` with these keys."""
        self._sections.section(word, **keys)

    def add(self, sections: str) -> None:
        """Adds sections that are written as TOML; in a running lab all at one instant, or none."""
        if self._process is None and self._file is None:
            self._scenario.add_text(sections)
        else:
            self._running().add(sections)

    def remove(self, *things: Any, drain: bool = False) -> None:
        """Removes hosts, links, ports, bridges, routers and sources from the running lab, all at one instant
        or none.

        Links of a removed host leave with it. With `drain`, links send what they hold instead of dropping it.
        """
        names = [thing if isinstance(thing, str) else thing.name for thing in things]
        self._running().remove(*names, drain=drain)
        for name in names:
            self._hosts.pop(name, None)

    def __getitem__(self, name: str) -> Host:
        """The host of this name. A link is `lab.instance.link(name)`."""
        if name not in self._hosts:
            for host in self.hosts:
                self._hosts.setdefault(host.name, host)
        if name not in self._hosts:
            known = ", ".join(self._hosts) or "none"
            raise KeyError(
                f'there is no host "{name}"; there are {known}; a link is lab.instance.link("{name}")'
            )
        return self._hosts[name]

    @property
    def hosts(self) -> List[Host]:
        """The hosts of the running lab."""
        nodes = self._running().topology()["nodes"]
        return [Host(self, node["name"], node["addresses"]) for node in nodes if node["kind"] == "host"]

    # Its life.

    def start(self) -> "Lab":
        """Starts the lab, if it does not run yet, and returns when packets can flow."""
        if self._process is not None:
            return self
        if self.report is not None:
            raise LongwireError(f"lab {self.name} has ended", fix="make another one")
        given = None if self._file is not None else self._scenario.toml()
        arguments = [program(), "run", self._file or "-", f"--name={self.name}", "--quiet", "--json"]
        # Errors of the start are kept for the reason. The run ends when nobody reads its output any more.
        self._messages = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            arguments + self._options,
            stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            encoding="utf-8",
            # Ctrl-C is for this process to handle.
            start_new_session=True,
        )
        try:
            self._send(self._process, given)
            self._wait_for_socket(self._process)
        except BaseException:
            try:
                self._end()
            except LongwireError:
                # The first error is the one to see.
                pass
            raise
        return self

    @staticmethod
    def _send(process: "subprocess.Popen[str]", scenario: Optional[str]) -> None:
        stdin, process.stdin = process.stdin, None
        if stdin is None or scenario is None:
            return
        try:
            stdin.write(scenario)
            stdin.close()
        except BrokenPipeError:
            # It has ended, and says why.
            pass

    def _wait_for_socket(self, process: "subprocess.Popen[str]") -> None:
        deadline = time.monotonic() + _START_TIME
        while True:
            path = socket_of(process.pid)
            if path is not None:
                self._instance = Instance(path)
                return
            if process.poll() is not None:
                self._end()
                raise LongwireError(f"lab {self.name} ended at its start")
            if time.monotonic() > deadline:
                raise LongwireError(f"lab {self.name} has not started within {_START_TIME:.0f} s")
            time.sleep(_LOOK)

    def stop(self) -> Optional[Report]:
        """Ends the commands in the hosts and the lab, and returns its report; None if it never ran."""
        if self._process is not None:
            self._end()
        return self.report

    def wait(self, timeout: Optional[float] = None) -> Optional[Report]:
        """Waits until the lab ends by itself, and returns its report.

        `timeout` is in seconds; `subprocess.TimeoutExpired` is raised then.
        """
        process = self._process
        if process is not None:
            output, _ = process.communicate(timeout=timeout)
            self._finish(process, output)
        return self.report

    def _end(self) -> None:
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
        output = ""
        try:
            output, _ = process.communicate(timeout=_END_TIME)
        except BaseException:
            process.kill()
            process.communicate()
            raise
        finally:
            self._finish(process, output)

    def _finish(self, process: "subprocess.Popen[str]", output: str) -> None:
        self._process = self._instance = None
        # They have ended with their hosts.
        for command in self._commands:
            _reap(command)
        self._commands.clear()
        self._messages.seek(0)
        messages = self._messages.read().decode(errors="replace")
        self._messages.close()
        self.report = report_of(output, messages, process.returncode)

    def __enter__(self) -> "Lab":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        try:
            self.stop()
        except LongwireError:
            # The first error is the one to see.
            if error is None:
                raise
        verdict = self.verdict
        if error is None and self.require_faithful and verdict is not None and not verdict:
            raise NotFaithful(verdict)

    # Questions.

    @property
    def instance(self) -> Instance:
        """The running instance behind the API."""
        return self._running()

    def _running(self) -> Instance:
        self.start()
        assert self._instance is not None
        return self._instance

    @property
    def verdict(self) -> Optional[Verdict]:
        """Whether the run was faithful; of a running lab, so far. None if it has not run, or nothing was
        judged."""
        if self.report is not None:
            return Verdict.of_json(self.report.get("fidelity"))
        return self._instance.verdict if self._instance is not None else None

    def counters(self, links: str = "*") -> List[LinkCounters]:
        """The counters of links: see `Instance.counters`."""
        return self._running().counters(links)

    def watch(
        self, links: str = "*", *, every: float = 0.2, count: Optional[int] = None
    ) -> Iterator[List[LinkCounters]]:
        """Yields the counters every so many seconds: see `Instance.watch`."""
        return self._running().watch(links, every=every, count=count)

    def rows(self, kind: str) -> List[Dict[str, Any]]:
        """The rows of the report at the end with this kind: "link", "port", "source", "router"."""
        return [row for row in (self.report or {}).get("rows", []) if row.get("kind") == kind]

    def events(self, **choice: Any) -> Iterator[PacketEvent]:
        """The events of the packet log, one by one: see `read_log`. Of a running lab they come as they
        happen, until it ends."""
        return read_log(self._packet_log(), follow=self.report is None, **choice)

    def log(self, **choice: Any) -> Table[PacketEvent]:
        """The events of the packet log as a table, after the end."""
        file = self._packet_log()
        if self.report is None:
            raise LongwireError(
                "the packet log is complete when the lab has ended", fix="stop() it first, or use events()"
            )
        return Table.of(PacketEvent, read_log(file, **choice))

    def _packet_log(self) -> Path:
        if self._log is None:
            raise LongwireError("the lab has no packet log", fix="make it with log=True")
        if self.report is None:
            self.start()
        return self._log

    def series(self) -> Table[Sample]:
        """The time series as a table, after the end."""
        if self._series is None:
            raise LongwireError("the lab has no time series", fix="make it with series=True")
        if self._process is not None:
            raise LongwireError("the time series is complete when the lab has ended", fix="stop() it first")
        return read_series(self._series)

    def _enter(self, host: str, words: List[str], options: Dict[str, Any]) -> "subprocess.Popen[Any]":
        self.start()
        arguments = [program(), "lab", "exec", self.name, host, "--", *words]
        process: subprocess.Popen[Any] = subprocess.Popen(arguments, **options)
        self._commands = [command for command in self._commands if command.poll() is None]
        self._commands.append(process)
        return process

    def __repr__(self) -> str:
        state = "not started" if self.report is None else "ended"
        state = "running" if self._process is not None else state
        return f"<Lab {self.name}, {state}>"


class _LabSections(Sections):
    """Sections for the scenario of a lab before it starts; afterwards they join while it runs."""

    def __init__(self, lab: Lab) -> None:
        super().__init__()
        self._lab = lab
        self.last: Dict[str, Value] = {}

    def section(self, word: str, /, **keys: Value) -> None:
        self.last = keys
        self._lab.add(section(word, keys))


def _reap(process: "subprocess.Popen[Any]") -> None:
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        # It has left its host.
        process.kill()
        process.wait()
