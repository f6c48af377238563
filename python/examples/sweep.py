#!/usr/bin/env python3
# %% [markdown]
# # Delay over load
#
# A sweep in virtual time, as a data frame: how long packets take, and how many are lost, with more
# and more load and three queues. The cells run in any notebook that reads Python files with `# %%`,
# and `python3 sweep.py [FIGURE]` runs all of them. It takes pandas and matplotlib (`pip install
# pandas matplotlib`).

# %%
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import matplotlib
import pandas

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from longwire import Scenario, simulate, sweep

# %% [markdown]
# ## The network
#
# A link of 10 Mbit/s and a source of three seconds whose rate the sweep sets. The run ends when the
# last packet has arrived.


# %%
def net():
    """The link and its load."""
    scenario = Scenario(seed=1)
    scenario.host("a")
    scenario.host("b")
    scenario.link("a", "b", "wan", rate="10 Mbit/s", delay="20 ms")
    load = {"model": "poisson", "rate": "5 Mbit/s", "size": "1200 B", "for": "3 s"}
    scenario.source("a", "b", "load", **load)
    return scenario


AXES = {
    "wan.forward.queue": ["20 packets", "200 packets", "codel"],
    "load.rate": {"from": "6 Mbit/s", "to": "12 Mbit/s", "step": "2 Mbit/s"},
}
COLUMNS = ["source.*", "dropped"]


# %% [markdown]
# ## The sweep
#
# Three seeds for each point. Without `executor` the tasks run on all processors; any other executor
# of `concurrent.futures` gives the same rows.


# %%
def swept():
    """A row for each point and seed."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        rows = sweep(net(), AXES, seeds=3, columns=COLUMNS, executor=executor)
    frame = pandas.DataFrame(rows)
    frame["load (Mbit/s)"] = frame["load.rate"].str.split().str[0].astype(float)
    frame["99 % within (ms)"] = frame["source.load.delay_ns_p99"] / 1e6
    frame["dropped (%)"] = 100 * frame["dropped"] / frame["source.load.sent"]
    return frame


# %% [markdown]
# ## One point, packet by packet
#
# `seed` and `settings` make the run of a single task.


# %%
def delays(queue):
    """The mean delay of each tenth of a second."""
    settings = {"wan.forward.queue": queue, "load.rate": "12 Mbit/s"}
    run = simulate(net(), seed=1, settings=settings, links="wan.forward")
    packets = run.packets.to_pandas()
    times = pandas.to_timedelta(packets["arrival_ns"], unit="ns")
    means = packets.set_index(times)["delay_ns"].resample("100ms").mean() / 1e6
    means.index = means.index.total_seconds()
    return means


# %% [markdown]
# ## The figure


# %%
def main():
    frame = swept()
    names = ["99 % within (ms)", "dropped (%)"]
    keys = {"index": "load (Mbit/s)", "columns": "wan.forward.queue"}
    means = {name: frame.pivot_table(values=name, **keys) for name in names}
    print(means[names[0]].round(1).to_string())
    figure, plots = plt.subplots(1, 3, figsize=(11, 3.5), constrained_layout=True)
    for plot, name in zip(plots, names):
        means[name].plot(ax=plot, ylabel=name, marker="o")
    for queue in AXES["wan.forward.queue"]:
        delays(queue).plot(ax=plots[2], label=queue)
    plots[2].set(xlabel="time (s)", ylabel="mean delay at 12 Mbit/s (ms)")
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "sweep.png")
    figure.savefig(file)
    print(f"the figure is in {file}")


# %%
# Processes that `spawn` starts read this file again, and must not start a sweep of their own.
if __name__ == "__main__":
    main()
