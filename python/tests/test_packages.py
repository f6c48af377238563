"""The wheel with the program, installed into an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from longwire import program

USE = """
from longwire import Scenario, program, simulate
net = Scenario()
net.host("a")
net.host("b")
net.link("a", "b", delay="1 ms")
net.source("a", "b", interval="1 ms", packets=3)
print(program())
print(simulate(net).packets["delay_ns"])
"""


def test_a_wheel_has_the_program(repository: Path, tmp_path: Path) -> None:
    sources = tmp_path / "python"
    shutil.copytree(repository / "python" / "src", sources / "src")
    for name in ("pyproject.toml", "setup.py", "README.md"):
        shutil.copy(repository / "python" / name, sources)
    environment = {**os.environ, "LONGWIRE_BINARY": program()}
    make = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(tmp_path), str(sources)]
    subprocess.run(make, env=environment, check=True)
    (wheel,) = tmp_path.glob("longwire-*.whl")
    assert wheel.name.startswith("longwire-0.1.0-py3-none-linux_")
    assert any(name.endswith("/data/bin/longwire") for name in zipfile.ZipFile(wheel).namelist())

    fresh = tmp_path / "fresh"
    subprocess.run([sys.executable, "-m", "venv", str(fresh)], check=True)
    install = [str(fresh / "bin" / "pip"), "install", "--quiet", "--no-index", str(wheel)]
    subprocess.run(install, check=True)
    del environment["LONGWIRE"]
    own = str(fresh / "bin" / "longwire")
    version = subprocess.run([own, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("longwire 0.1.0")
    command = [str(fresh / "bin" / "python"), "-c", USE]
    used = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert used.stdout == f"{own}\n[1000000, 1000000, 1000000]\n", used.stderr
    demo = subprocess.run([own, "exec", "-q", "--delay", "5ms", "--", "true"], check=False)
    assert os.geteuid() != 0 or demo.returncode == 0
