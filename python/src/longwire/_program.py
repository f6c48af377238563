"""The program `longwire`: where it is, and its answers in JSON."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Sequence, Union, cast

from .errors import LongwireError, ProgramNotFound

#: A file.
Pathlike = Union[str, "os.PathLike[str]"]
#: A parsed report.
Report = Dict[str, Any]

NAME = "longwire"


def program() -> str:
    """The path of the program.

    It is what the variable `LONGWIRE` names, else the one that was installed with this package, else the
    first one on `PATH`.
    """
    named = os.environ.get("LONGWIRE")
    if named:
        found = shutil.which(named)
        if found is None:
            raise ProgramNotFound(f"LONGWIRE names {named}, which is not a program")
        return os.path.abspath(found)
    for folder in _beside():
        found = shutil.which(NAME, path=folder)
        if found is not None:
            return found
    found = shutil.which(NAME)
    if found is None:
        raise ProgramNotFound(
            f"there is no program {NAME} beside this package or on PATH",
            fix="build it (cargo build --release), and set LONGWIRE to its path",
        )
    return found


def _beside() -> Iterator[str]:
    """The folders in which pip puts programs of this package."""
    yield sysconfig.get_path("scripts")
    if "posix_user" in sysconfig.get_scheme_names():
        yield sysconfig.get_path("scripts", "posix_user")
    # pip install --target
    yield str(Path(__file__).resolve().parent.parent / "bin")


def call(arguments: Sequence[str], text: Optional[str] = None) -> Report:
    """Runs a command with `--json` and returns its report. `text` is its standard input.

    Raises the error that the command printed. A report that failed is returned: its `pass` is false.
    """
    done = run([*arguments, "--json"], text)
    return report_of(done.stdout, done.stderr, done.returncode)


def run(arguments: Sequence[str], text: Optional[str] = None) -> "subprocess.CompletedProcess[str]":
    """Runs a command to its end. `text` is its standard input."""
    words, stdin = [program(), *arguments], subprocess.DEVNULL if text is None else None
    return subprocess.run(words, input=text, stdin=stdin, capture_output=True, encoding="utf-8", check=False)


def report_of(output: str, messages: str, status: int) -> Report:
    """The report that a command printed; raises its error."""
    try:
        report = json.loads(output)
    except ValueError:
        report = None
    if not isinstance(report, dict) and status < 0:
        raise LongwireError(f"the program was ended by signal {-status}")
    if not isinstance(report, dict):
        raise LongwireError(fault_in(messages) or f"it ended with status {status} and said nothing")
    if "error" in report:
        raise LongwireError.of_json(report)
    return cast(Report, report)


def fault_in(messages: str) -> str:
    """What a command says on standard error, without the word that all errors begin with."""
    said = messages.strip()
    return said[len("error: ") :] if said.startswith("error: ") else said
