"""A run of a scenario on several machines: started, watched, and ended by a coordinator."""

from __future__ import annotations

import os
import secrets
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, TypeVar, Union

from .._program import Pathlike
from .._program import run as call_program
from ..errors import LongwireError, NoAnswer, NotFaithful, Refused
from ..records import Verdict
from ..scenario import Scenario
from ._agent import Agent, Credentials, RemoteApi
from ._node import RETRY, Event, Node
from ._parts import Host, Part, Underlay, check_names, part_name, parts_of
from ._report import ClusterVerdict, Report, judge, merged, unconnected
from ._state import MOST_LOSSES, Loss, State, StateFile

#: Seconds between two questions to an agent, the time of its answer, and how long one may be silent: two
#: questions without an answer mean that a node is lost, after 2 * (EVERY + ASK_TIME) = 2.6 s at the latest.
EVERY = 0.4
ASK_TIME = 0.9
PATIENCE = 1.5
#: Most requests to agents at a time.
_THREADS = 16
#: A whole core, in millionths.
_CORE = 1_000_000

_T = TypeVar("_T")


class ClusterRun:
    """A scenario that runs on several machines, and its coordinator.

    At the end of a `with` block it ends on all machines. `detach()` leaves it running instead: the agents
    need no coordinator, and `adopt(FILE)` makes another one.
    """

    def __init__(
        self,
        state: State,
        file: StateFile,
        agents: Mapping[str, Agent],
        on_event: Optional[Callable[[Event], None]] = None,
    ) -> None:
        self.name, self.id = state.cluster, state.run
        self._state, self._file = state, file
        self._on_event = on_event
        self._change = threading.Condition()
        self._stop = threading.Event()
        self._version = own_version()
        self.report: Optional[Report] = None
        hosts = [Host.of_json(host) for host in state.hosts if host["name"] in state.parts]
        self.nodes = {
            host.name: Node(host, agents[host.name], part_name(self.name, host.name)) for host in hosts
        }
        self._watchers: List[threading.Thread] = []

    # Starting and ending

    def begin(self, *, timeout: float) -> None:
        """Sends all parts, waits until they run, and begins to watch them."""
        try:
            self._each(self._check_agent)
            self._each(self._send)
            self._await_start(time.monotonic() + timeout)
        except BaseException:
            self._each(self._end_quietly)
            self._file.close(remove=True)
            raise
        self.watch()

    def watch(self) -> None:
        """Begins to watch the nodes, each on a thread of its own."""
        for node in self.nodes.values():
            watcher = threading.Thread(
                target=self._watch, args=(node,), daemon=True, name=f"node {node.name}"
            )
            watcher.start()
            self._watchers.append(watcher)

    def detach(self) -> None:
        """Gives the run up without ending it. The file of its state remains, for `adopt`."""
        self._unwatch()
        self._file.close()

    def end(self, *, timeout: float = 60.0) -> Report:
        """Ends the run on all nodes, and returns its report."""
        if self.report is not None:
            return self.report
        self._unwatch()
        until = time.monotonic() + timeout
        reports = dict(zip(self.nodes, self._each(lambda node: self._end_of(node, until))))
        self.report = merged(self._head(), reports, self._state.losses)
        self._file.close(remove=True)
        return self.report

    def __enter__(self) -> "ClusterRun":
        return self

    def __exit__(self, *error: object) -> None:
        if not self._stop.is_set():
            self.end()

    # What is known

    @property
    def losses(self) -> List[Loss]:
        """The times in which nodes did not run their part, since the beginning of the run."""
        with self._change:
            return list(self._state.losses)

    @property
    def verdict(self) -> ClusterVerdict:
        """The verdict so far, on all nodes; in the end, that of the report."""
        if self.report is not None:
            verdicts = {node["name"]: Verdict.of_json(node["fidelity"]) for node in self.report["nodes"]}
            fidelity = self.report["fidelity"]
            return ClusterVerdict(fidelity["faithful"], tuple(fidelity["causes"]), verdicts)
        summaries = self._of_running(lambda node: dict(node.instance.summary()))
        losses = self.losses
        away = {loss.node for loss in losses if loss.to_ns is None}
        # One that is lost has its cause already.
        heard = {node: one for node, one in summaries.items() if one is not None or node not in away}
        return judge(heard, losses)

    def require_faithful(self) -> None:
        """Raises `NotFaithful` if the run was not."""
        verdict = self.verdict
        if not verdict:
            causes = verdict.causes
            raise NotFaithful(Verdict(False, causes, 0, 0, {}, causes[0] if causes else None))

    def stats(self) -> Report:
        """The report so far."""
        return merged(self._head(), self._of_running(lambda node: node.instance.stats()), self.losses)

    def wait(self, until: Callable[["ClusterRun"], bool], *, timeout: float) -> bool:
        """Waits until a condition is met, which is looked at after each change of a node. Returns whether it
        is."""
        with self._change:
            return self._change.wait_for(lambda: until(self), timeout)

    def wait_connected(self, *, timeout: float = 30.0) -> None:
        """Waits until all nodes run and their tunnels are connected."""
        end = time.monotonic() + timeout
        while True:
            missing = self._unconnected()
            if not missing:
                return
            if time.monotonic() > end:
                raise LongwireError(
                    "not connected: " + ", ".join(missing),
                    fix="let UDP pass between the hosts, at the ports of the tunnels",
                )
            self._stop.wait(0.1)

    def _unconnected(self) -> List[str]:
        def of(node: Node) -> List[str]:
            if not node.is_running:
                return [f"node {node.name}: {node.reason}"]
            try:
                ports = node.instance.api.ask("GET", "/v1/ports")["objects"]
            except (NoAnswer, Refused) as error:
                return [f"node {node.name}: {error}"]
            return [f"{port} of node {node.name}" for port in unconnected(ports)]

        return [one for found in self._each(of) for one in found]

    def _head(self) -> Dict[str, Any]:
        return {
            "version": self._version,
            "machine": {"cores": os.cpu_count()},
            "cluster": self.name,
            "run": self.id,
            "started_ns": self._state.started_ns,
            "elapsed_ns": time.time_ns() - self._state.started_ns,
        }

    # Requests to agents

    def _each(self, act: Callable[[Node], _T], nodes: Optional[Iterable[Node]] = None) -> List[_T]:
        """Does something for each node at once. The first error is raised when all are done."""
        with ThreadPoolExecutor(min(_THREADS, max(1, len(self.nodes)))) as threads:
            return list(threads.map(act, self.nodes.values() if nodes is None else nodes))

    def _of_running(self, ask: Callable[[Node], _T]) -> Dict[str, Optional[_T]]:
        """What each node answers; None of those that do not."""

        def of(node: Node) -> Optional[_T]:
            try:
                return ask(node) if node.is_running else None
            except (NoAnswer, Refused):
                return None

        return dict(zip(self.nodes, self._each(of)))

    def _check_agent(self, node: Node) -> None:
        """Raises if an agent has another version, or no room."""
        try:
            state = node.agent.state(ASK_TIME * 5)
        except Refused as refused:
            raise LongwireError(f"node {node.name}: {refused}") from refused
        wrong = self._wrong_version(state["version"])
        if wrong is not None:
            raise LongwireError(f"node {node.name}: {wrong}", fix="install the same version on all machines")
        self._check_room(node, state)

    def _check_room(self, node: Node, state: Mapping[str, Any]) -> None:
        """Raises with the arithmetic if an agent has fewer cores than its part and those of others take."""
        needed, cores = self._state.parts[node.name].load_ppm, state["cores"]
        others = {
            # One whose sender has not said what it takes may take a core.
            part["name"]: part.get("load_ppm", _CORE)
            for part in state["parts"]
            if part["name"] != node.part and part["condition"] not in ("ended", "failed")
        }
        if needed + sum(others.values()) <= cores * _CORE:
            return
        each = ", ".join(f"{name} {_cores(load)}" for name, load in others.items())
        more = f", what runs there already takes {_cores(sum(others.values()))} ({each})" if others else ""
        raise LongwireError(
            f"node {node.name}: its part takes {_cores(needed)} cores{more}, and its agent has {cores}",
            fix="move nodes to other hosts, add hosts, or end what runs there",
        )

    def _wrong_version(self, version: object) -> Optional[str]:
        if version == self._version:
            return None
        return f"its agent has version {version}, and the coordinator {self._version}"

    def _send(self, node: Node) -> None:
        part = self._state.parts[node.name]
        try:
            node.agent.start(node.part, self.id, part)
        except Refused as refused:
            raise LongwireError(f"node {node.name}: {refused}") from refused

    def _await_start(self, until: float) -> None:
        """Waits until all parts run."""
        for node in self.nodes.values():
            while True:
                node.asked = time.monotonic()
                part = node.agent.part(node.part)
                if part["condition"] == "running":
                    self._found(node)
                    break
                if part["condition"] != "starting":
                    raise LongwireError(f"node {node.name} can't start: {part.get('error')}")
                if time.monotonic() > until:
                    raise LongwireError(f"node {node.name} has not started in time")
                time.sleep(0.05)

    def _end_of(self, node: Node, until: float) -> Optional[Report]:
        """Ends a part; its report, unless it has none."""
        try:
            # One that is silent is not waited for.
            node.agent.state(ASK_TIME * 3)
            while True:
                part = node.agent.part(node.part)
                condition = part["condition"]
                if part["run"] != self.id:
                    return None
                if condition in ("ended", "failed"):
                    node.agent.end(node.part)
                    return part.get("report")
                if condition == "running":
                    node.agent.end(node.part)
                if time.monotonic() > until:
                    return None
                time.sleep(0.05)
        except (NoAnswer, Refused):
            return None

    def _end_quietly(self, node: Node) -> None:
        self._end_of(node, time.monotonic() + 10.0)

    # Watching

    def _unwatch(self) -> None:
        self._stop.set()
        for watcher in self._watchers:
            watcher.join()
        self._watchers = []

    def _watch(self, node: Node) -> None:
        # Its silence begins now: it was not asked while others started.
        node.answered = time.monotonic()
        while True:
            try:
                self._look(node)
            except LongwireError as error:
                self._lose(node, str(error))
            if self._stop.wait(EVERY):
                return

    def _look(self, node: Node) -> None:
        """Asks an agent how its part is, and sends that again if it has gone."""
        node.asked = time.monotonic()
        try:
            state = node.agent.state(ASK_TIME)
        except NoAnswer as error:
            # Where nobody listens, nothing runs: there is nothing to wait for.
            is_gone = isinstance(error.__cause__, ConnectionRefusedError)
            if is_gone or time.monotonic() - node.answered > PATIENCE:
                self._lose(node, str(error))
            return
        node.answered = time.monotonic()
        wrong = self._wrong_version(state["version"])
        if wrong is not None:
            self._lose(node, wrong)
            return
        part = next((part for part in state["parts"] if part["name"] == node.part), None)
        condition = part["condition"] if part is not None and part["run"] == self.id else None
        if condition == "running":
            self._found(node)
        elif condition != "starting":
            why = {None: "its agent has started again", "ending": "somebody ended its part"}
            self._lose(node, (part or {}).get("error") or why.get(condition, "its part has ended"))
            if node.answered >= node.retry_at:
                self._give_again(node)

    def _give_again(self, node: Node) -> None:
        try:
            self._send(node)
        except (NoAnswer, LongwireError) as error:
            node.reason = str(error)
        # Also if it was accepted: it may fail at the start each time.
        node.retry_at, node.retry = time.monotonic() + node.retry, min(node.retry * 2, RETRY[1])

    def _found(self, node: Node) -> None:
        """Notes that a part runs."""
        with self._change:
            node.seen_running = node.asked
            if node.is_running:
                return
            node.is_running, node.reason, node.retry = True, "", RETRY[0]
            lost = self._open_loss(node)
            if lost is not None:
                lost.to_ns = time.time_ns()
            self._save()
        kind, what = ("started", "runs") if lost is None else ("returned", "runs again")
        self._tell(node, kind, what)

    def _lose(self, node: Node, reason: str) -> None:
        """Notes that a part does not run."""
        with self._change:
            is_full = len(self._state.losses) >= MOST_LOSSES
            was_lost = self._open_loss(node) is not None or (is_full and not node.is_running)
            node.is_running, node.reason = False, reason
            if was_lost:
                return
            since = node.seen_running
            within = None if since is None else int((time.monotonic() - since) * 1e9)
            loss = Loss(node.name, time.time_ns(), None, reason, within)
            if not is_full:
                self._state.losses.append(loss)
                self._save()
        self._tell(node, "lost", f"is lost: {loss.why}")

    def _open_loss(self, node: Node) -> Optional[Loss]:
        own = (loss for loss in self._state.losses if loss.node == node.name and loss.to_ns is None)
        return next(own, None)

    def _save(self) -> None:
        """Writes the state. Without it the run goes on: only the next coordinator would know less."""
        try:
            self._file.write(self._state)
        except LongwireError:
            pass

    def _tell(self, node: Node, kind: str, what: str) -> None:
        if self._on_event is not None:
            try:
                self._on_event(Event(time.time_ns(), node.name, kind, what))
            except Exception:
                # Nodes are watched on, whatever the receiver of events does.
                traceback.print_exc()
        with self._change:
            self._change.notify_all()


def run(
    scenario: Union[Scenario, Pathlike],
    hosts: Sequence[Host],
    underlay: Underlay,
    *,
    name: str = "cluster",
    credentials: Credentials = Credentials(),
    files: Sequence[str] = (),
    state: Optional[Pathlike] = None,
    timeout: float = 60.0,
    on_event: Optional[Callable[[Event], None]] = None,
) -> ClusterRun:
    """Runs a scenario on several machines, each of which has an agent (`longwire serve --agent`).

        hosts = [Host("one", "192.0.2.1", "https://192.0.2.1:8399", nodes=("a",)), Host("two", …)]
        with run("wan.toml", hosts, Underlay("150 us", "30 us"), credentials=Credentials(…)) as wan:
            wan.wait_connected()
            wan.nodes["one"].instance.link("wan.backward").set(loss="1%")
        print(wan.report["fidelity"])

    The scenario is cut by `longwire partition`: `underlay` is what hides in the delay of a link that is cut.
    `files` are those that the scenario names, relative to its folder. `state` is the file by which another
    coordinator could `adopt` the run; by default NAME.cluster.json in the working directory. It raises if
    not all parts run within `timeout` seconds; then none does.
    """
    check_names(name, hosts)
    agents = {host.name: Agent(RemoteApi(host.agent, credentials)) for host in hosts}
    parts, _ = parts_of(scenario, hosts, underlay, files)
    return begin(
        parts,
        hosts,
        agents,
        name=name,
        credentials=credentials,
        state=state,
        timeout=timeout,
        on_event=on_event,
    )


def begin(
    parts: Mapping[str, Part],
    hosts: Sequence[Host],
    agents: Mapping[str, Agent],
    *,
    name: str,
    credentials: Credentials = Credentials(),
    state: Optional[Pathlike] = None,
    timeout: float = 60.0,
    on_event: Optional[Callable[[Event], None]] = None,
) -> ClusterRun:
    """Starts parts at agents."""
    file = StateFile(f"{name}.cluster.json" if state is None else state)
    try:
        if file.path.exists():
            raise LongwireError(f"{file.path} is the state of another run", fix="adopt that, or remove it")
        paths = vars(credentials).items()
        kept = State(
            name,
            secrets.token_hex(8),
            time.time_ns(),
            [host.to_json() for host in hosts],
            {key: None if path is None else os.path.abspath(path) for key, path in paths},
            dict(parts),
        )
        file.write(kept)
        started = ClusterRun(kept, file, agents, on_event)
    except BaseException:
        file.close()
        raise
    started.begin(timeout=timeout)
    return started


def adopt(
    state: Pathlike,
    *,
    agents: Optional[Mapping[str, Agent]] = None,
    on_event: Optional[Callable[[Event], None]] = None,
) -> ClusterRun:
    """Becomes the coordinator of a run whose own one has died or detached.

    `state` is the file that it kept. The agents say what of the run is still there: nodes that have lost
    their part get it again, and the run was not faithful. The file is refused while its coordinator lives.
    """
    file = StateFile(state)
    try:
        kept = file.read()
        credentials = Credentials(**kept.credentials)
        if agents is None:
            agents = {
                host["name"]: Agent(RemoteApi(host["agent"], credentials))
                for host in kept.hosts
                if host["name"] in kept.parts
            }
        adopted = ClusterRun(kept, file, agents, on_event)
    except BaseException:
        file.close()
        raise
    adopted.watch()
    return adopted


def _cores(load_ppm: int) -> str:
    """A load in cores, rounded up."""
    return f"{-(-load_ppm // 10_000) / 100:.2f}"


def own_version() -> str:
    """The version of the program that is installed here."""
    done = call_program(["--version"])
    words = done.stdout.split()
    if done.returncode != 0 or not words:
        raise LongwireError(f"the program gives no version: {done.stderr.strip()}")
    return words[-1]
