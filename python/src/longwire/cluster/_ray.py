"""Agents on the machines of a Ray cluster: placed, watched and reached by Ray."""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import secrets
import shutil
import stat
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import IO, Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from .._api import ANSWER_TIME, Api, Keys
from .._program import Pathlike, call, program
from ..errors import LongwireError, NoAnswer, Refused
from ..scenario import Scenario, as_input
from ._agent import Agent, Credentials, RemoteApi
from ._node import Event
from ._parts import Host, Underlay, check_names, parts_of
from ._run import ClusterRun, begin

#: Seconds until an agent has started, and until a placement is given up.
START_TIME = 60.0
#: Seconds between two starts of an agent that ends at once.
RESTART = 0.5
#: Runs a command until it or the standard input ends: the agent goes when its actor does, however that dies,
#: and the folder with it. Ray may kill the shell that waits, so its guard does that.
_GUARD = """
folder=$1; shift
exec 3<&0
"$@" 3<&- </dev/null & child=$!
{
    cat <&3 >/dev/null; trap '' TERM; kill $child
    while kill -0 $child; do sleep 0.1; done
    rm -rf "$folder"
} 2>/dev/null & guard=$!
wait $child
kill $guard
wait $guard
"""


#: How the folders of agents begin, and the file in each that is locked while somebody uses it.
_FOLDER = "longwire-agent-"
_LOCK = "lock"


def _own_folder() -> Tuple[Path, IO[bytes]]:
    """A new folder for an agent, and its lock, which the kernel releases when all processes that have it
    open have ended, however they do. Removes those of this user that nobody uses any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        _remove_unused(folder)
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER))
    # It gets its name when it is locked: without it, a folder is not removed by others.
    new = folder / f"{_LOCK}.new"
    lock = new.open("xb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    new.rename(folder / _LOCK)
    return folder, lock


def _remove_unused(folder: Path) -> None:
    """Removes a folder of this user whose lock nobody has."""
    try:
        about = folder.lstat()
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
            return
        lock = os.open(folder / _LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        # It has no lock yet, or has gone meanwhile.
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        pass
    finally:
        os.close(lock)


class AgentProcess:
    """An agent, its process watched: an actor of Ray. The agent listens on loopback only, and this actor
    passes requests to it, so it needs no certificates but Ray's own protection."""

    def __init__(self) -> None:
        self._folder, self._lock = _own_folder()
        self._token = self._folder / "token"
        self._token.touch(mode=0o600)
        (self._folder / "tokens").touch(mode=0o600)
        word = secrets.token_hex(32)
        self._token.write_text(word, encoding="ascii")
        (self._folder / "tokens").write_text(f"install {word}\n", encoding="ascii")
        self._ends = False
        self._ready = threading.Event()
        self._api: Optional[RemoteApi] = None
        self._child: Optional["subprocess.Popen[str]"] = None
        self._pid = 0
        threading.Thread(target=self._supervise, daemon=True, name="agent").start()

    def about(self) -> Dict[str, Any]:
        """What the coordinator has to know of this machine, once the agent answers."""
        if not self._ready.wait(START_TIME):
            raise RuntimeError("the agent does not start; the log of this actor says why")
        prices = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "longwire" / "prices"
        return {
            "address": importlib.import_module("ray.util").get_node_ip_address(),
            "pid": self._pid,
            "prices": prices.read_text(encoding="utf-8") if prices.is_file() else None,
        }

    def ask(self, method: str, path: str, body: Keys, query: Keys, timeout: float) -> Tuple[int, Any]:
        """Passes a request to the agent. Returns 200 and its answer, the status and the problem of a
        refusal, or 0 and the reason if it does not answer."""
        api = self._api
        if api is None:
            return 0, "it is starting"
        try:
            return 200, api.ask(method, path, body, query, timeout=timeout)
        except Refused as refused:
            return refused.status, {
                "detail": refused.message,
                "key": refused.field,
                "suggestion": refused.suggestion,
            }
        except NoAnswer as error:
            return 0, str(error)

    def close(self) -> None:
        """Ends the agent."""
        self._ends = True
        child = self._child
        if child is not None and child.stdin is not None:
            # The guard ends the agent, which ends its parts.
            child.stdin.close()
            child.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._lock.close()

    def _supervise(self) -> None:
        """Starts the agent, and again when it has died."""
        pause = threading.Event()
        while not self._ends:
            command = [program(), "serve", "--agent", str(self._folder / "parts"), "--listen", "127.0.0.1:0"]
            command += ["--tokens", str(self._folder / "tokens"), "--log-format", "json"]
            self._child = child = subprocess.Popen(
                ["sh", "-c", _GUARD, "sh", str(self._folder), *command],
                stdin=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                # The agent may outlive this actor by a moment.
                pass_fds=[self._lock.fileno()],
            )
            if child.stderr is not None:
                self._follow(child.stderr)
            child.wait()
            if child.stdin is not None:
                child.stdin.close()
            self._api = None
            pause.wait(RESTART)

    def _follow(self, log: IO[str]) -> None:
        """Reads the agent's log to its end, and passes it on to that of this actor."""
        for line in log:
            print(line, end="", flush=True)
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and event.get("event") == "ready":
                self._pid = event["pid"]
                self._api = RemoteApi(f"http://{event['address']}", Credentials(token=self._token))
                self._ready.set()


class _ActorApi(Api):
    """The API of an agent, through its actor."""

    def __init__(self, ray: Any, actor: Any, name: str) -> None:
        self._ray, self._actor, self._name = ray, actor, name

    def __str__(self) -> str:
        return f"the agent of {self._name}"

    def ask(
        self, method: str, path: str, body: Keys = None, query: Keys = None, *, timeout: float = ANSWER_TIME
    ) -> Any:
        asked = self._actor.ask.remote(method, path, body, query, timeout)
        try:
            status, answer = self._ray.get(asked, timeout=timeout)
        except Exception as error:  # Ray's own errors, such as those of a dead actor or node
            raise NoAnswer(f"{self} does not answer: {type(error).__name__}") from error
        if status == 0:
            raise NoAnswer(f"{self} does not answer: {answer}")
        if status >= 400:
            raise Refused(status, {key: value for key, value in answer.items() if value is not None})
        return answer


class RayRun:
    """A run on the machines of a Ray cluster, and the agents that were started for it."""

    def __init__(self, ray: Any, group: Any, actors: List[Any]) -> None:
        self.ray, self._group = ray, group
        #: An `AgentProcess` on each machine.
        self.actors = actors
        #: The run, once it has begun.
        self.run: Optional[ClusterRun] = None

    def __enter__(self) -> ClusterRun:
        if self.run is None:
            raise LongwireError("the run has ended")
        return self.run

    def __exit__(self, *error: object) -> None:
        try:
            if self.run is not None:
                self.run.__exit__(*error)
        finally:
            self.close()

    def close(self) -> None:
        """Ends the agents, and gives the machines back to Ray."""
        for actor in self.actors:
            try:
                self.ray.get(actor.close.remote(), timeout=START_TIME)
            except Exception as error:  # a node that is gone has no agent to end
                print(f"note: an agent did not end: {type(error).__name__}")
            self.ray.kill(actor, no_restart=True)
        self.ray.util.remove_placement_group(self._group)


def demand(scenario: Union[Scenario, Pathlike]) -> int:
    """The cores that a scenario needs, by `longwire check`: a whole number, at least 1. What no link bounds
    is not counted."""
    file, text = as_input(scenario)
    report = call(["check", file], text)
    load_ppm: int = sum(worker["load_ppm"] for worker in report["capacity"]["workers"])
    return max(1, -(-load_ppm // 1_000_000))


def admit(needed: int, machines: int, cores: int, nodes: Sequence[float]) -> None:
    """Raises with the arithmetic if a cluster is too small: `needed` cores in all, on so many machines with
    so many cores each. `nodes` are the CPUs of each of its nodes, free or not: Ray waits until other work
    gives them back."""
    fitting = [cpus for cpus in nodes if cpus >= cores]
    list_of = " + ".join(f"{cpus:g}" for cpus in nodes) or "0"
    if needed > machines * cores:
        raise LongwireError(
            f"the scenario needs {needed} cores, and {machines} machines of {cores} have {machines * cores}",
            fix="ask for more machines, or more cores",
        )
    if len(fitting) < machines:
        raise LongwireError(
            f"{machines} machines with {cores} CPUs are needed, and {len(fitting)} of {len(nodes)} have as "
            f"many ({list_of} CPUs)",
            fix="add nodes to the Ray cluster, or ask for fewer",
        )


def on_ray(
    scenario: Union[Scenario, Pathlike],
    underlay: Underlay,
    *,
    machines: int = 2,
    cores: int = 1,
    nodes: Sequence[Sequence[str]] = (),
    name: str = "cluster",
    files: Sequence[str] = (),
    state: Optional[Pathlike] = None,
    timeout: float = 60.0,
    on_event: Optional[Callable[[Event], None]] = None,
) -> RayRun:
    """Runs a scenario on the machines of the Ray cluster to which this process is connected (`ray.init`).

        with on_ray("wan.toml", Underlay("150 us", "30 us"), machines=2) as wan:
            wan.wait_connected()
        print(wan.verdict)

    Each machine gets an actor with `cores` CPUs (placement group, STRICT_SPREAD), which starts an agent,
    starts it again when it dies, and passes it the coordinator's requests. Ray starts the actor again when
    its node returns, and the part follows. What the scenario needs is computed by `longwire check`, and the
    parts are cut by the prices that `longwire calibrate` measured on each machine, if it did. `nodes` are
    what must be on each machine. Longwire has to be installed on all of them.
    """
    try:
        ray: Any = importlib.import_module("ray")
        groups: Any = importlib.import_module("ray.util.placement_group")
        strategies: Any = importlib.import_module("ray.util.scheduling_strategies")
    except ImportError as error:
        raise LongwireError("Ray is not installed", fix="pip install ray") from error
    alive = [node for node in ray.nodes() if node["Alive"]]
    admit(demand(scenario), machines, cores, [node["Resources"].get("CPU", 0.0) for node in alive])
    group = groups.placement_group([{"CPU": cores}] * machines, strategy="STRICT_SPREAD")
    started = RayRun(ray, group, [])
    try:
        if not group.wait(START_TIME):
            cpus = ray.cluster_resources().get("CPU", 0.0)
            free = ray.available_resources().get("CPU", 0.0)
            raise LongwireError(
                f"Ray gives no machines within {START_TIME:g} s: {machines} with {cores} free CPUs are "
                f"needed, and of its {cpus:g} CPUs {free:g} are free",
                fix="wait until other work has ended, or add nodes",
            )
        kind = ray.remote(AgentProcess)
        started.actors = [
            kind.options(
                num_cpus=cores,
                max_restarts=-1,
                # Its questions, and one that takes longer.
                max_concurrency=8,
                scheduling_strategy=strategies.PlacementGroupSchedulingStrategy(
                    group, placement_group_bundle_index=bundle
                ),
            ).remote()
            for bundle in range(machines)
        ]
        with tempfile.TemporaryDirectory(prefix="longwire-prices-") as folder:
            hosts = _hosts(started, Path(folder), cores, nodes)
            check_names(name, hosts)
            parts, _ = parts_of(scenario, hosts, underlay, files)
        agents = {
            host.name: Agent(_ActorApi(ray, actor, host.name)) for host, actor in zip(hosts, started.actors)
        }
        started.run = begin(parts, hosts, agents, name=name, state=state, timeout=timeout, on_event=on_event)
    except BaseException:
        started.close()
        raise
    return started


def _hosts(started: RayRun, folder: Path, cores: int, nodes: Sequence[Sequence[str]]) -> List[Host]:
    """The machines of the actors, with the prices that were measured there."""
    hosts = []
    for number, actor in enumerate(started.actors):
        about = started.ray.get(actor.about.remote(), timeout=START_TIME * 2)
        prices = None
        if about["prices"] is not None:
            prices = folder / f"{number}.prices"
            prices.write_text(about["prices"], encoding="utf-8")
        own = tuple(nodes[number]) if number < len(nodes) else ()
        hosts.append(Host(f"m{number}", about["address"], nodes=own, cores=cores, prices=prices))
    return hosts
