"""What the tests of sweeps run."""

from __future__ import annotations

from longwire import Scenario

AXES = {
    "wan.rate": ["1mbit", "2mbit"],
    "wan.forward.loss": {"from": "0 %", "to": "10 %", "step": "5 %"},
}


def net() -> Scenario:
    """Two hosts with more traffic than their link carries."""
    scenario = Scenario(seed=5)
    scenario.host("a")
    scenario.host("b")
    scenario.link("a", "b", "wan", rate="4mbit", delay="10 ms", queue="20 packets")
    scenario.source("a", "b", "load", rate="3mbit", model="poisson")
    return scenario
