"""Scenarios built in Python."""

from __future__ import annotations

import ipaddress
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from longwire import Lab, LongwireError, Scenario, call
from longwire.scenario import host_addresses, text, toml


class Number(float):
    """A number that shows itself in its own way, as those of numpy do."""

    def __repr__(self) -> str:
        return f"Number({float(self)})"


def test_values_are_written_as_toml() -> None:
    for value, written in [
        ("10 ms", '"10 ms"'),
        ('a"b\n\x7f\\', '"a\\"b\\n\\u007f\\\\"'),
        (3, "3"),
        (0.5, "0.5"),
        (Number(0.5), "0.5"),
        (Fraction(1, 2), "0.5"),
        (ipaddress.ip_interface("10.0.0.1/24"), '"10.0.0.1/24"'),
        (True, "true"),
        (["a", 1], '["a", 1]'),
        ({"kind": "red", "max-p": "5 %", "none": None}, '{ kind = "red", max-p = "5 %" }'),
        (timedelta(milliseconds=1.5), '"1500 us"'),
        (timedelta(days=2), '"172800000000 us"'),
    ]:
        assert toml(value) == written


def test_values_of_changes_are_text() -> None:
    for value, written in [("5mbit", "5mbit"), (100, "100"), (False, "false"), (None, ""), (["a"], '["a"]')]:
        assert text(value) == written


def test_hosts_have_addresses_in_order() -> None:
    assert host_addresses(1) == ["10.0.0.1/24", "fd00::1/64"]
    assert host_addresses(254) == ["10.0.0.254/24", "fd00::fe/64"]
    with pytest.raises(ValueError):
        host_addresses(255)


def whole() -> Scenario:
    """A scenario with a section of most kinds."""
    net = Scenario(seed=7, routing="tree", fidelity={"within": "1 ms"}, engine={"pool": "64 MiB"})
    net.bridge("left")
    net.bridge("right", ageing="60 s")
    net.host("a", bridge="left")
    net.host("b", bridge="right")
    net.port("tape", "memory", bridge="right")
    net.medium("radio", "half-duplex", rate="2 Mbit/s")
    both = {"forward": {"medium": "radio"}, "backward": {"bit-error": "1e-9"}}
    net.link("left", "right", "wan", delay="5 ms", bit_error="1e-10", **both)
    net.source("a", "b", size="1000 B", rate="1mbit", for_="1 s")
    net.at("500 ms", link="wan", delay=timedelta(milliseconds=20), ramp="100 ms")
    return net


def test_a_whole_scenario_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    whole().save(file)
    report = call(["check", str(file), "--prices", "assumed"])
    assert report["command"] == "check"
    assert "bit-error" in file.read_text() and 'for = "1 s"' in file.read_text()


def test_mistakes_have_their_place(tmp_path: Path) -> None:
    net = Scenario()
    net.host("a")
    net.host("b")
    net.link("a", "b", dealy="1 ms", ratee="1mbit")
    file = tmp_path / "net.toml"
    net.save(file)
    with pytest.raises(LongwireError) as raised:
        call(["check", str(file)])
    error = raised.value
    assert (error.file, error.suggestion) == (str(file), "delay")
    assert error.line is not None and "dealy" in file.read_text().splitlines()[error.line - 1]
    assert len(error.more) == 1 and error.more[0].suggestion == "rate"
    assert f"{file}:{error.line}:" in str(error)


def test_a_lab_leaves_its_scenario_as_it_is() -> None:
    net = Scenario()
    net.host("a")
    before = net.toml()
    lab = Lab(net)
    assert lab.host("b").address == "10.0.0.2"
    lab.link("a", "b", delay="1 ms")
    assert net.toml() == before
