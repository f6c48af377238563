#!/usr/bin/env python3
"""Makes src/longwire/_types.py, the types of the API's answers, from the API's own description.

    python3 python/generate_types.py            writes the file
    python3 python/generate_types.py --check    exit status 1 if the file differs

It starts a run without hosts, which needs no privileges, and asks it for /v1/openapi.json.
"""

from __future__ import annotations

import keyword
import sys
import textwrap
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Set

HERE = Path(__file__).resolve().parent
FILE = HERE / "src" / "longwire" / "_types.py"

HEADER = '''"""Types of the API's answers, made from /v1/openapi.json by generate_types.py."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union
'''

PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def description() -> Dict[str, Any]:
    """The description of the API, of a run that has an object of each kind."""
    sys.path.insert(0, str(HERE / "src"))
    from longwire import Lab

    with Lab() as lab:
        for name, address in (("a", "10.0.0.1"), ("b", "10.0.0.2")):
            lab.port(name, "source", addresses=address)
        lab.link("a", "b", "wan", rate="1mbit")
        lab.start()
        answer: Dict[str, Any] = lab.instance.api.ask("GET", "/v1/openapi.json")
        return answer


def source(document: Mapping[str, Any]) -> str:
    """The module for a description."""
    schemas: Dict[str, Mapping[str, Any]] = document["components"]["schemas"]
    parts = [HEADER]
    for name in ordered(schemas):
        parts.append("\n".join(declared(name, schemas[name])))
    return "\n\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def ordered(schemas: Mapping[str, Mapping[str, Any]]) -> List[str]:
    """The names, those that a plain alias needs before it: only annotations may refer to later names."""
    done: List[str] = []
    seen: Set[str] = set()

    def visit(name: str) -> None:
        if name in seen or name not in schemas:
            return
        seen.add(name)
        if not is_record(schemas[name]):
            for needed in references(schemas[name]):
                visit(needed)
        done.append(name)

    for name in sorted(schemas):
        visit(name)
    return done


def references(schema: Any) -> Iterator[str]:
    """The names that a schema refers to."""
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield schema["$ref"].rpartition("/")[2]
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def is_record(schema: Mapping[str, Any]) -> bool:
    """Whether it becomes a TypedDict."""
    return schema.get("type") == "object" and bool(schema.get("properties"))


def declared(name: str, schema: Mapping[str, Any]) -> List[str]:
    """The lines that declare a type."""
    if not is_record(schema):
        return [f"#: {line}" for line in about(schema, 90)] + [f"{name} = {typed(schema)}"]
    properties: Mapping[str, Any] = schema["properties"]
    required = set(schema.get("required", ()))
    if all(key.isidentifier() and not keyword.iskeyword(key) for key in properties):
        return record(name, schema, properties, required)
    # Keys that are no names of Python, such as those of settings, need the other form. None is required
    # there.
    pairs = [f'        "{key}": {quoted(typed(of))},' for key, of in sorted(properties.items())]
    lines = [f"#: {line}" for line in about(schema, 90)]
    lines += [f"{name} = TypedDict(", f'    "{name}",', "    {", *pairs, "    },", "    total=False,", ")"]
    return lines


def record(
    name: str, schema: Mapping[str, Any], properties: Mapping[str, Any], required: Set[str]
) -> List[str]:
    """A class; optional keys are in one that inherits the others, because Python 3.9 has no NotRequired."""
    fields = [(key, typed(of)) for key, of in properties.items()]
    needed = [f"    {key}: {kind}" for key, kind in fields if key in required]
    others = [f"    {key}: {kind}" for key, kind in fields if key not in required]
    text = [f"    {line}" for line in docstring(about(schema, 90))]
    if not others:
        return [f"class {name}(TypedDict):", *text, "", *needed]
    if not needed:
        return [f"class {name}(TypedDict, total=False):", *text, "", *others]
    base = f"_{name}Required"
    return [
        f"class {base}(TypedDict):",
        *needed,
        "",
        "",
        f"class {name}({base}, total=False):",
        *text,
        "",
        *others,
    ]


def about(schema: Mapping[str, Any], width: int) -> List[str]:
    """What the description says of a type: its first paragraph."""
    first = str(schema.get("description", "")).split("\n\n")[0]
    return textwrap.wrap(" ".join(first.split()), width)


def docstring(lines: List[str]) -> List[str]:
    """Lines as a docstring."""
    escaped = [line.replace("\\", "\\\\").replace('"""', "'''") for line in lines] or ["An answer."]
    if len(escaped) == 1:
        return [f'"""{escaped[0]}"""']
    return [f'"""{escaped[0]}', *escaped[1:], '"""']


def quoted(kind: str) -> str:
    """A type in a place that is evaluated."""
    return kind if kind in ("str", "int", "float", "bool") else f'"{kind}"'


def typed(schema: Any) -> str:
    """The type of values that fit a schema."""
    if not isinstance(schema, Mapping):
        return "Any"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return "Literal[" + ", ".join(repr(value).replace("'", '"') for value in schema["enum"]) + "]"
    if "const" in schema:
        return f"Literal[{schema['const']!r}]".replace("'", '"')
    for word in ("oneOf", "anyOf"):
        if word in schema:
            return union([typed(one) for one in schema[word]])
    if "allOf" in schema:
        return typed(schema["allOf"][0]) if len(schema["allOf"]) == 1 else "Dict[str, Any]"
    kind = schema.get("type")
    if isinstance(kind, list):
        return union([typed({**schema, "type": one}) for one in kind])
    if kind == "array":
        return f"List[{typed(schema.get('items'))}]"
    if kind == "object":
        more = schema.get("additionalProperties")
        return f"Dict[str, {typed(more)}]" if isinstance(more, Mapping) and more else "Dict[str, Any]"
    return PLAIN.get(str(kind), "Any")


def union(kinds: List[str]) -> str:
    """One of several types."""
    distinct = list(dict.fromkeys(kinds))
    if "Any" in distinct:
        return "Any"
    rest = [kind for kind in distinct if kind != "None"]
    one = rest[0] if len(rest) == 1 else f"Union[{', '.join(rest)}]"
    return f"Optional[{one}]" if "None" in distinct else one


def main() -> int:
    made = source(description())
    if "--check" in sys.argv[1:]:
        if FILE.read_text(encoding="utf-8") == made:
            return 0
        message = "the API's description has changed: python3 python/generate_types.py writes _types.py"
        print(message, file=sys.stderr)
        return 1
    FILE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
