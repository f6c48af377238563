"""Folders of agents that a killed process left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from machines import until

from longwire.cluster import _ray

#: Makes a folder, says its name, and stays, with a child that has the lock too, until its input ends.
STAYS = """
import subprocess, sys
from longwire.cluster import _ray

folder, lock = _ray._own_folder()
child = subprocess.Popen(["sh", "-c", "read line"], stdin=subprocess.PIPE, pass_fds=[lock.fileno()])
print(folder, flush=True)
sys.stdin.readline()
"""


def test_folders_of_the_dead_are_removed_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "lock").touch()
    (tmp_path / "longwire-agent-link").symlink_to(kept)
    unlocked = tmp_path / "longwire-agent-new"
    unlocked.mkdir()
    others = tmp_path / "other-agent-x"
    others.mkdir()
    (others / "lock").touch()

    with subprocess.Popen(
        [sys.executable, "-c", STAYS],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="ascii",
    ) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        (folder / "parts").mkdir()
        mine, lock = _ray._own_folder()
        assert folder.is_dir(), "its owner lives"
        owner.kill()
        owner.wait()

    def removed() -> bool:
        # Its child has the lock for a moment longer: the kernel closes the pipe that it reads.
        _ray._own_folder()[1].close()
        return not folder.exists()

    assert until(removed), "the folder of the dead stays"
    assert mine.is_dir() and (mine / "lock").is_file()
    assert unlocked.is_dir() and others.is_dir() and (kept / "lock").is_file()
    lock.close()
    _ray._remove_unused(mine)
    assert not mine.exists()


@pytest.mark.parametrize("is_killed", [False, True])
def test_the_folder_goes_with_the_actor(tmp_path: Path, is_killed: bool) -> None:
    folder = tmp_path / "agent"
    folder.mkdir()
    guarded = ["sh", "-c", _ray._GUARD, "sh", str(folder)]
    with subprocess.Popen([*guarded, "false"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as crashed:
        crashed.wait()
        assert folder.is_dir(), "the agent is started again"
    with subprocess.Popen(
        [*guarded, "tail", "-f", "/dev/null"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as lasting:
        assert lasting.stdin is not None
        children = Path(f"/proc/{lasting.pid}/task/{lasting.pid}/children")
        assert until(lambda: len(children.read_text().split()) == 2), "the command and its guard"
        if is_killed:
            # As Ray does to what a killed actor has started.
            lasting.kill()
        lasting.stdin.close()
        lasting.wait()
        assert until(lambda: not folder.exists())
