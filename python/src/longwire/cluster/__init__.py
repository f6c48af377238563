"""One scenario on several machines.

Each machine has an *agent*, `longwire serve --agent`. A coordinator, this package, cuts a scenario into
parts, hands out the keys of their tunnels, starts each part at its agent, watches, and collects the results:

    from longwire.cluster import Credentials, Host, Underlay, run

    hosts = [
        Host("one", "192.0.2.1", "https://192.0.2.1:8399", nodes=("a",)),
        Host("two", "192.0.2.2", "https://192.0.2.2:8399", nodes=("b",)),
    ]
    mine = Credentials(ca="ca.pem", certificate="me.pem", key="me.key")
    with run("wan.toml", hosts, Underlay("150 us", "30 us"), name="wan", credentials=mine) as wan:
        wan.wait_connected()
    print(wan.verdict)

`on_ray` starts the agents, too, one on each machine of a Ray cluster. `python -m longwire.cluster` does all
of this from a shell.

`RayExecutor` runs the tasks of a sweep on Ray.
"""

from ._agent import Agent, Credentials, RemoteApi
from ._executor import RayExecutor
from ._node import Event, Node
from ._parts import Host, Part, Underlay, parts_of
from ._ray import on_ray
from ._report import ClusterVerdict
from ._run import ClusterRun, adopt, begin, run
from ._state import Loss

__all__ = [
    "Agent",
    "ClusterRun",
    "ClusterVerdict",
    "Credentials",
    "Event",
    "Host",
    "Loss",
    "Node",
    "Part",
    "RayExecutor",
    "RemoteApi",
    "Underlay",
    "adopt",
    "begin",
    "on_ray",
    "parts_of",
    "run",
]
