"""Finding the program."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest

from longwire import LongwireError, ProgramNotFound, call, program


def fake(folder: Path) -> str:
    """A program of that name in a folder."""
    file = folder / "longwire"
    file.write_text("#!/bin/sh\necho rubbish\nexit 7\n")
    file.chmod(0o755)
    return str(file)


def test_the_variable_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGWIRE", fake(tmp_path))
    assert program() == str(tmp_path / "longwire")
    monkeypatch.setenv("LONGWIRE", str(tmp_path / "missing"))
    with pytest.raises(ProgramNotFound, match="missing"):
        program()


def test_beside_the_package_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LONGWIRE")
    beside, elsewhere = tmp_path / "beside", tmp_path / "elsewhere"
    beside.mkdir()
    elsewhere.mkdir()
    monkeypatch.setenv("PATH", str(elsewhere))
    monkeypatch.setattr(sysconfig, "get_path", lambda *_: str(beside))
    with pytest.raises(ProgramNotFound) as raised:
        program()
    assert raised.value.fix is not None and "LONGWIRE" in raised.value.fix
    found = fake(elsewhere)
    assert program() == found
    found = fake(beside)
    assert program() == found


def test_answers_that_are_no_reports_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGWIRE", fake(tmp_path))
    with pytest.raises(LongwireError, match="ended with status 7"):
        call(["check"])


def test_wrong_options_are_errors() -> None:
    with pytest.raises(LongwireError) as raised:
        call(["check", os.devnull, "--pricse", "assumed"])
    assert raised.value.field == "--pricse" and raised.value.suggestion == "--prices"
