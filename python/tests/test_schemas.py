"""The schemas that the program gives away, by libraries of others."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

import pytest

from longwire import program

if sys.version_info < (3, 11):
    pytest.skip("this Python reads no TOML", allow_module_level=True)
import tomllib

jsonschema = pytest.importorskip("jsonschema")

NET = """
[[port]]
name = "a"
driver = "source"
addresses = "10.0.1.9"
[[port]]
name = "b"
driver = "source"
addresses = "10.0.2.9"
[[link]]
name = "wan"
between = ["a", "b"]
"""


def scenarios(repository: Path, sections: Any) -> Iterator[Tuple[str, Dict[str, Any]]]:
    """Those that come with the program, and the book's: not satellites or sweeps, which are other files."""
    texts = [(file.name, file.read_text(encoding="utf-8")) for file in repository.glob("scenarios/*.toml")]
    for page in repository.glob("docs/book/*.md"):
        text = page.read_text(encoding="utf-8")
        blocks = re.findall(r"^```toml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        texts += [(f"{page.name}, {number}", block) for number, block in enumerate(blocks)]
    for name, text in texts:
        found = tomllib.loads(text)
        if set(found) <= set(sections):
            yield name, found


def test_the_schema_of_scenarios_accepts_what_is_one(repository: Path) -> None:
    printed = subprocess.run([program(), "schema"], capture_output=True, text=True, check=True).stdout
    schema = json.loads(printed)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    count = 0
    for name, scenario in scenarios(repository, schema["properties"]):
        errors = validator.iter_errors(scenario)
        faults = [f"{list(fault.absolute_path)}: {fault.message}" for fault in errors]
        assert not faults, f"{name}: {faults}"
        count += 1
    assert count > 60
    for wrong in ('link = [{ dealy = "1 ms" }]', 'link = [{ delay = { delay = "1 ms", x = 1 } }]'):
        assert not validator.is_valid(tomllib.loads(wrong)), wrong


def test_the_description_of_the_api_is_openapi(tmp_path: Path) -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    scenario = tmp_path / "net.toml"
    scenario.write_text(NET)
    command = [program(), "serve", str(scenario), "--listen", "127.0.0.1:0"]
    environment = {**os.environ, "LONGWIRE_RUN_DIR": str(tmp_path / "run")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as serving:
        try:
            assert serving.stderr is not None
            started = next(line for line in serving.stderr if " started " in line)
            address = started.split(" address=")[1].split()[0]
            with urllib.request.urlopen(f"http://{address}/v1/openapi.json", timeout=60) as answer:
                document = json.load(answer)
        finally:
            serving.send_signal(signal.SIGTERM)
    validator.validate(document)
    document["paths"]["/v1/instance"]["get"]["responses"]["200"].pop("description")
    with pytest.raises(Exception, match="description"):
        validator.validate(document)
