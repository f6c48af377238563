#!/usr/bin/env python3
# %% [markdown]
# # Three queues under the same load
#
# A burst of UDP meets a link of 10 Mbit/s, in virtual time: the figure shows what waits, and how long packets
# take, with a long tail-drop queue, a short one, and CoDel. The cells run in any notebook that reads Python
# files with `# %%`, and `python3 queues.py [FIGURE]` runs all of them. It takes matplotlib (`pip install
# matplotlib`).

# %%
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from longwire import Scenario, Simulation, simulate

QUEUES = {
    "tail drop, 1000 packets": "1000 packets",
    "tail drop, 50 ms": "50 ms",
    "CoDel": "codel",
}


# %% [markdown]
# ## The network
#
# Steady traffic at 4 Mbit/s, and from 2 s on a burst of 12 Mbit/s for two seconds: together more than the
# link carries.


# %%
def bottleneck(queue: str) -> Scenario:
    """The link with this queue, and its load."""
    net = Scenario(seed=1)
    net.host("a")
    net.host("b")
    net.link("a", "b", "wan", rate="10 Mbit/s", delay="20 ms", queue=queue)
    net.source("a", "b", "steady", model="poisson", rate="4 Mbit/s", size="1200 B", for_="8 s")
    net.source("a", "b", "burst", rate="12 Mbit/s", size="1200 B", start="2 s", for_="2 s")
    return net


runs = {
    name: simulate(bottleneck(queue), links="wan.forward", every="20 ms", time="8 s")
    for name, queue in QUEUES.items()
}


# %% [markdown]
# ## What happened
#
# CoDel's early drops are hints, which this load does not take: its queue is hardly shorter than the long one.


# %%
def summary(run: Simulation) -> str:
    """Packets, drops and the delay that 99 % stay below."""
    delays = sorted(run.packets["delay_ns"])
    slow = delays[len(delays) * 99 // 100] / 1e6
    return f"{len(delays)} packets, {len(run.drops)} dropped, 99 % within {slow:.0f} ms"


for name, run in runs.items():
    print(f"{name}: {summary(run)}")

# %% [markdown]
# ## The figure

# %%
figure, (waiting, taking) = plt.subplots(2, 1, sharex=True, figsize=(7, 5), constrained_layout=True)
for name, run in runs.items():
    queue, packets = run.queues, run.packets
    sizes = [size / 1e3 for size in queue["queue_bytes"]]
    waiting.plot([time / 1e9 for time in queue["time_ns"]], sizes, label=name)
    delays = [delay / 1e6 for delay in packets["delay_ns"]]
    taking.plot([time / 1e9 for time in packets["arrival_ns"]], delays)
waiting.set_ylabel("waiting (kB)")
waiting.legend()
taking.set_ylabel("delay (ms)")
taking.set_xlabel("time (s)")
file = Path(sys.argv[1] if len(sys.argv) > 1 else "queues.png")
figure.savefig(file)
print(f"the figure is in {file}")
