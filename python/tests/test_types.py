"""The generated types are those of the API."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import get_type_hints


def generator(repository: Path) -> ModuleType:
    """The script as a module."""
    file = repository / "python" / "generate_types.py"
    spec = importlib.util.spec_from_file_location("generate_types", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_types_are_current(repository: Path) -> None:
    script = generator(repository)
    made = script.source(script.description())
    committed = (repository / "python" / "src" / "longwire" / "_types.py").read_text(encoding="utf-8")
    assert made == committed, "python3 python/generate_types.py writes it"


def test_types_can_be_read() -> None:
    from longwire import _types

    assert set(get_type_hints(_types.Info)) == {"name", "pid", "version", "links"}
    assert _types.Info.__required_keys__ == {"name", "pid", "version", "links"}
    assert "key" in _types.Problem.__optional_keys__
    if sys.version_info >= (3, 11):
        assert get_type_hints(_types.LinkSettings)["bit-error"] is str
