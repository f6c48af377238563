"""A host of a run as its coordinator knows it, and what happens to it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Optional

from ..instance import Instance
from ._agent import Agent
from ._parts import Host

#: Seconds until a part that an agent refused is sent again: twice as many each time, up to the second.
RETRY = (0.5, 8.0)


@dataclass
class Event:
    """Something that happened to a node."""

    time_ns: int
    node: str
    #: started, lost, returned.
    kind: str
    what: str

    def __str__(self) -> str:
        return f"node {self.node} {self.what}"


@dataclass
class Node:
    """A host of a run, as its coordinator knows it."""

    host: Host
    agent: Agent
    #: The name of its part at the agent.
    part: str
    #: Whether its part runs, as far as is known.
    is_running: bool = False
    #: Why it does not.
    reason: str = "it has not started yet"
    #: When the agent answered last, and when its part may be sent again (monotonic).
    answered: float = field(default_factory=time.monotonic)
    retry_at: float = 0.0
    retry: float = RETRY[0]
    #: When it was asked last, and when the question was sent to which it answered that its part runs.
    asked: float = 0.0
    seen_running: Optional[float] = None

    @property
    def name(self) -> str:
        """The name of its host."""
        return self.host.name

    @property
    def instance(self) -> Instance:
        """The instance that runs its part, with its objects: `node.instance.link("wan")`."""
        return self.agent.instance(self.part)
