"""Virtual time: all figures are exact."""

from __future__ import annotations

from pathlib import Path

import pytest

from longwire import LongwireError, Scenario, simulate

#: A frame of 1000 bytes is 8032 bits with its FCS.
MILLISECOND_A_FRAME = "8032 kbit/s"


def net(interval: str, packets: int, **link: object) -> Scenario:
    """Frames of 1000 bytes from a to b."""
    scenario = Scenario(seed=1)
    scenario.host("a")
    scenario.host("b")
    scenario.link("a", "b", "wan", rate=MILLISECOND_A_FRAME, delay="10 ms", **link)
    scenario.source("a", "b", "load", size="1000 B", interval=interval, packets=packets)
    return scenario


def test_packets_have_exact_delays() -> None:
    run = simulate(net("20 ms", 10))
    packets = run.packets
    assert packets["delay_ns"] == [11_000_000] * 10
    assert packets["arrival_ns"] == [20_000_000 * n for n in range(10)]
    assert set(packets["link"]) == {"wan.forward"} and set(packets["length"]) == {1000}
    assert len(packets) == 10 and packets[0].leave_ns == 11_000_000 and len(packets[2:4]) == 2
    assert len(run.drops) == 0 and run.verdict is not None and run.verdict.faithful
    (source,) = run.rows("source")
    assert (source["name"], source["measured"], source["delay_ns_max"]) == ("load", 10, 11_000_000)


def test_queues_and_drops_are_columns() -> None:
    run = simulate(net("100 us", 50, queue="3 packets"), every="500 us")
    left, dropped = run.packets, run.drops
    assert len(left) + len(dropped) == 50 and len(dropped) > 30
    assert set(dropped["reason"]) == {"queue-full"}
    # The third waits for two, and for itself.
    assert left["delay_ns"][:3] == [11_000_000, 11_900_000, 12_800_000]
    queue = run.queues.where(link="wan.forward")
    assert max(queue["queue_packets"]) == 3
    assert sum(queue["in_packets"]) == 50 and sum(queue["dropped_packets"]) == len(dropped)
    assert queue["time_ns"][0] == 500_000


def test_runs_repeat() -> None:
    one, two = (simulate(net("1 ms", 500, loss="10 %")) for _ in range(2))
    assert one.packets.columns == two.packets.columns and one.drops.columns == two.drops.columns
    assert 20 < len(one.drops) < 90


def test_captures_go_in_and_out(tmp_path: Path) -> None:
    out = tmp_path / "out.pcap"
    simulate(net("5 ms", 20), outputs={"b": out})
    ends = Scenario()
    ends.host("a")
    ends.host("b")
    ends.link("a", "b", "wan", delay="1 ms")
    run = simulate(ends, inputs={"a": out}, links="wan.forward")
    assert run.packets["arrival_ns"] == [5_000_000 * n for n in range(20)]
    assert run.packets["delay_ns"] == [1_000_000] * 20


def test_what_was_not_recorded_is_said() -> None:
    run = simulate(net("1 ms", 1), log=False)
    with pytest.raises(LongwireError, match="no packet log"):
        run.packets
    with pytest.raises(LongwireError, match="no time series"):
        run.queues
    endless = net("1 ms", 1)
    endless.source("b", "a", rate="1mbit")
    with pytest.raises(LongwireError, match="never ends"):
        simulate(endless)
    assert simulate(endless, time="10 ms").elapsed_ns == 10_000_000


def test_a_file_is_taken_as_it_is(repository: Path) -> None:
    run = simulate(repository / "scenarios" / "two-hosts.toml", time="1 s", links="up.forward")
    assert set(run.packets["link"]) == {"up.forward"}
    assert len(run.packets) + len(run.drops) > 600


def test_tables_become_data_frames() -> None:
    pytest.importorskip("pandas")
    frame = simulate(net("20 ms", 10)).packets.to_pandas()
    assert list(frame["delay_ns"].unique()) == [11_000_000] and len(frame) == 10
