"""Sweeps that report their progress, and go on where an earlier one was interrupted."""

from __future__ import annotations

import fcntl
import io
import json
import subprocess
import sys
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Callable, ContextManager, List, Optional

import pytest
from swept import AXES, net

from longwire import LongwireError, SweepProgress, _sweep_rows, program, sweep
from longwire.sweeps import Row

#: Starts an executor, or none.
Start = Callable[[], ContextManager[Optional[Executor]]]
STARTS = [nullcontext, lambda: ThreadPoolExecutor(2)]


def swept(output: Optional[Path] = None, **options: Any) -> List[Row]:
    return sweep(net(), AXES, seeds=2, time="1 s", output=output, chunk=1, **options)


class Interrupt:
    """Progress that interrupts the sweep after so many tasks."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.seen: List[SweepProgress] = []

    def __call__(self, progress: SweepProgress) -> None:
        self.seen.append(progress)
        if len(self.seen) == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("start", STARTS, ids=["here", "executor"])
def test_an_interrupted_sweep_goes_on(start: Start, tmp_path: Path) -> None:
    output = tmp_path / "rows.jsonl"
    whole = swept()
    with start() as executor:
        first = Interrupt(5)
        with pytest.raises(KeyboardInterrupt):
            swept(output, progress=first, executor=executor)
        assert [json.loads(line) for line in output.read_text().splitlines()] == whole[:5]
        # What a row leaves that was being written.
        rows = output.read_text()
        with output.open("a") as file:
            file.write(rows[: rows.index('"sweep"') + 10])
        second = Interrupt(0)
        assert swept(output, progress=second, executor=executor) == whole
        assert second.seen == [SweepProgress(done, 12, 0) for done in range(6, 13)], "only what was missing"
        assert swept(output, executor=executor, progress=Interrupt(1)) == whole, "nothing runs any more"
    other = tmp_path / "other.jsonl"
    swept(other)
    assert output.read_bytes() == other.read_bytes()


def test_the_file_is_that_of_the_command(tmp_path: Path) -> None:
    net().save(tmp_path / "net.toml")
    lines = ['scenario = "net.toml"', "seeds = 2", 'for = "1 s"', "[axes]", '"wan.rate" = ["1mbit", "fast"]']
    (tmp_path / "sweep.toml").write_text("\n".join(lines))

    def command(status: int, *options: str) -> bytes:
        words = [program(), "sweep", "run", "sweep.toml", "--quiet", *options, "--output", "rows.jsonl"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == status, done.stderr
        return (tmp_path / "rows.jsonl").read_bytes()

    def python(output: Path) -> List[Row]:
        axes = {"wan.rate": ["1mbit", "fast"]}
        return sweep(tmp_path / "net.toml", axes, seeds=2, time="1 s", output=output)

    command(0, "--task", "0-1")
    rows = python(tmp_path / "rows.jsonl")
    assert [row["status"] for row in rows] == ["ok", "ok", "failed", "failed"]
    python(tmp_path / "own.jsonl")
    assert command(1) == (tmp_path / "own.jsonl").read_bytes()


def test_gaps_are_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "rows.jsonl"
    whole = swept(output)
    lines = output.read_text().splitlines(keepends=True)
    output.write_text("".join(lines[1::2]))
    # So many that several commands are needed.
    monkeypatch.setattr("longwire.sweeps._RANGES", 4)
    assert swept(output) == whole
    assert output.read_text().splitlines(keepends=True) == lines[1::2] + lines[::2]
    assert _sweep_rows.numbers([0, 1, 2, 5, 7, 8]) == ["0-2", "5-5", "7-8"]


def test_other_files_are_refused(tmp_path: Path) -> None:
    output = tmp_path / "rows.jsonl"
    swept(output)
    before = output.read_bytes()
    with pytest.raises(LongwireError, match="another sweep"):
        sweep(net(), {"wan.rate": ["1mbit"]}, output=output)
    new = tmp_path / "new.jsonl"
    for file in (output, new):
        with file.open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with pytest.raises(LongwireError, match="another process writes"):
                swept(file)
    assert new.read_bytes() == b""
    assert output.read_bytes() == before
    (tmp_path / "notes").write_text("nothing of a sweep\n")
    with pytest.raises(LongwireError, match="no row of a sweep"):
        swept(tmp_path / "notes")
    for path in (tmp_path, Path("/dev/full"), tmp_path / "none" / "rows.jsonl"):
        with pytest.raises(LongwireError, match="can't be kept"):
            swept(path)


class Terminal(io.StringIO):
    """Standard error that is a terminal, or none."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def test_progress_is_a_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sweep_rows, "_SILENCE", 0.0)
    terminal = Terminal(True)
    monkeypatch.setattr(sys, "stderr", terminal)
    swept(progress=True)
    shown = terminal.getvalue().split("\r")
    assert shown[1] == "1 of 12 tasks, 0 failed\x1b[K" and shown[-2].startswith("12 of 12")
    assert shown[-1] == "\x1b[K", "nothing is left of it"


def test_progress_is_a_line_for_each_tenth_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sweep_rows, "_SILENCE", 0.0)
    elsewhere = Terminal(False)
    monkeypatch.setattr(sys, "stderr", elsewhere)
    sweep(net(), {"load.packets": range(1, 41), "wan.rate": ["1mbit"]}, progress=True)
    lines = elsewhere.getvalue().splitlines()
    assert lines[0] == "1 of 40 tasks, 0 failed" and lines[1:] == [
        f"{tenth * 4} of 40 tasks, 0 failed" for tenth in range(1, 11)
    ]


def test_without_progress_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    swept()
    assert capfd.readouterr() == ("", "")
