"""Virtual time: all figures are exact."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest

from longwire import LongwireError, PacketEvent, Scenario, Table, simulate

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


def test_seed_and_settings_replace_those_of_the_scenario() -> None:
    packets = simulate(net("1 ms", 200, loss="10 %"), seed=2).packets
    assert packets.columns == simulate(net("1 ms", 200, loss="10 %"), seed=2).packets.columns
    assert packets.columns != simulate(net("1 ms", 200, loss="10 %")).packets.columns
    slow = {"wan.rate": "4016 kbit/s", "wan.delay": timedelta(milliseconds=5), "load.packets": 3}
    run = simulate(net("20 ms", 10, loss="100 %"), settings={**slow, "wan.loss": None})
    assert run.packets["delay_ns"] == [7_000_000] * 3 and len(run.drops) == 0


def test_mistakes_name_the_object() -> None:
    with pytest.raises(LongwireError) as raised:
        simulate(net("1 ms", 1, delaay="5 ms"))
    assert str(raised.value) == 'link "wan": there is no key "delaay"; did you mean "delay"?'
    assert raised.value.field == 'link "wan"' and raised.value.suggestion == "delay"
    wrong = net("1 ms", 1)
    wrong.add_text("[[link\n")
    with pytest.raises(LongwireError, match="^line [0-9]+ of the scenario's text: not TOML"):
        simulate(wrong)


def test_mistakes_in_files_name_the_place(tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    file.write_text('[[host]]\nname = "a"\nadress = "10.0.0.1/24"\n')
    with pytest.raises(LongwireError) as raised:
        simulate(file)
    assert str(raised.value).startswith(f'{file}:3:1: host "a": there is no key "adress"')


def test_wrong_settings_and_seeds_are_errors() -> None:
    with pytest.raises(LongwireError, match='no link, source, medium or router "wam"') as raised:
        simulate(net("1 ms", 1), settings={"wam.rate": "1mbit"})
    assert raised.value.suggestion == "wan"
    with pytest.raises(LongwireError, match='wan.dealy: a link has no "dealy"') as raised:
        simulate(net("1 ms", 1), settings={"wan.dealy": "1 ms"})
    assert raised.value.suggestion == "delay"
    with pytest.raises(LongwireError, match='"fast" does not begin with a number'):
        simulate(net("1 ms", 1), settings={"wan.rate": "fast"})
    with pytest.raises(LongwireError, match="write OBJECT.SETTING=VALUE"):
        simulate(net("1 ms", 1), settings={"rate": "1mbit"})
    with pytest.raises(LongwireError, match="--seed"):
        simulate(net("1 ms", 1), seed=-1)


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


def test_tables_are_read_once() -> None:
    run = simulate(net("100 us", 50, queue="3 packets"), every="500 us")
    assert run.packets is run.packets and run.drops is run.drops and run.queues is run.queues


def test_tables_become_data_frames() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    run = simulate(net("100 us", 50, queue="3 packets"), every="500 us")
    tables = (run.packets, run.drops, run.queues)
    packets, drops, queues = frames = [table.to_pandas() for table in tables]
    for table, frame in zip(tables, frames):
        assert list(frame.columns) == list(table.columns) and len(frame) == len(table)
        words = {"link", "event", "reason"}
        for name in set(frame.columns) - words:
            assert pandas.api.types.is_integer_dtype(frame[name]), name
    # As one would use them.
    longest = packets.groupby("link")["delay_ns"].max().to_dict()
    assert longest == {"wan.forward": max(run.packets["delay_ns"])}
    assert drops["reason"].value_counts().to_dict() == {"queue-full": len(run.drops)}
    assert drops["leave_ns"].isna().all()
    by_link = queues.pivot(index="time_ns", columns="link", values="queue_packets")
    assert by_link["wan.forward"].max() == 3 and by_link["wan.backward"].max() == 0
    times = pandas.to_timedelta(packets["arrival_ns"], unit="ns")
    arrived = packets.set_index(times)["length"].resample("1ms").sum()
    assert arrived.sum() == 1000 * len(packets)


def test_times_in_data_frames_are_exact() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    late = 2**60 + 1
    arrived = PacketEvent(late, "arrive", "wan", 1, 100, 1, None, late, None, 0)
    left = dataclasses.replace(arrived, event="leave", leave_ns=late)
    frame = Table.of(PacketEvent, [arrived, left]).to_pandas()
    assert frame["leave_ns"].isna().tolist() == [True, False] and frame["leave_ns"][1] == late
    assert Table(PacketEvent).to_pandas()["leave_ns"].sum() == 0
