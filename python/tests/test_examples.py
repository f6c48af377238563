"""The examples run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import List

import pytest


def lines_of(script: Path, folder: Path) -> List[str]:
    """What an example prints. It makes a figure, too."""
    figure = folder / "figure.png"
    command = [sys.executable, str(script), str(figure)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert figure.read_bytes().startswith(b"\x89PNG")
    return done.stdout.splitlines()


def test_the_notebook_ends_in_a_figure(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    lines = lines_of(repository / "python" / "examples" / "queues.py", tmp_path)
    dropped = [int(line.split(" packets, ")[1].split(" ")[0]) for line in lines if " dropped" in line]
    # The long queue takes the whole burst, the others do not.
    assert len(dropped) == 3 and dropped[0] < min(dropped[1:]), lines


def test_a_sweep_is_a_data_frame_and_a_figure(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    pytest.importorskip("pandas", reason="pandas is not installed")
    lines = lines_of(repository / "python" / "examples" / "sweep.py", tmp_path)
    # The loads, and a delay for each queue.
    least, most = ([float(word) for word in line.split()] for line in (lines[2], lines[-2]))
    assert (least[0], most[0]) == (6.0, 12.0) and len(least) == len(most) == 4, lines
    # The link delays by 20 ms, and a packet of 1200 B takes it a millisecond.
    assert all(21 <= delay < 27 for delay in least[1:]) and most[1] < 20 + 22 < most[2], lines
