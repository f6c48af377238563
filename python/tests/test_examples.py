"""The examples run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def test_the_notebook_ends_in_a_figure(repository: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    script, figure = repository / "python" / "examples" / "queues.py", tmp_path / "queues.png"
    command = [sys.executable, str(script), str(figure)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert figure.read_bytes().startswith(b"\x89PNG")
    lines = done.stdout.splitlines()
    dropped = [int(line.split(" packets, ")[1].split(" ")[0]) for line in lines if " dropped" in line]
    # The long queue takes the whole burst, the others do not.
    assert len(dropped) == 3 and dropped[0] < min(dropped[1:]), done.stdout
