"""The generated parts of the reference have every key of a configuration, and explain each option once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from delta_engine.config.editor_schemas import editor_schema
from scripts.command_reference import command_reference
from scripts.configuration_reference import configuration_tables
from tests.cases.documentation import DOCS

DEFINITIONS: Mapping[str, Any] = json.loads(editor_schema("config"))["$defs"]


def keys_of(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the last parts of all keys of a section, of each of its types and of the mappings in it."""
    if reference := schema.get("$ref"):
        yield from keys_of(DEFINITIONS[reference.rpartition("/")[2]])
    for option in schema.get("anyOf", ()):
        yield from keys_of(option)
    for key, value in schema.get("properties", {}).items():
        below = {*keys_of(value)}
        yield from below or {key}


SECTIONS = {
    name: keys
    for name, section in DEFINITIONS["Configuration"]["properties"].items()
    if (keys := {key for key in keys_of(section) if not key.startswith("delta.")})
}


@pytest.mark.parametrize(("section", "keys"), SECTIONS.items())
def test_a_section_has_all_its_keys(section: str, keys: set[str]) -> None:
    table = configuration_tables()[section]
    assert [key for key in sorted(keys) if f"{key}`" not in table] == []


def test_sections_are_found() -> None:
    assert {"backend", "state_backend", "policy"} <= SECTIONS.keys()
    assert {"warehouse_id", "lease_seconds", "bucket"} <= SECTIONS["backend"] | SECTIONS["state_backend"]


def test_what_depends_on_the_type_says_so() -> None:
    (row,) = (line for line in configuration_tables()["backend"].splitlines() if "warehouse_id" in line)
    assert row == (
        "| `warehouse_id` | `databricks-warehouse` | string | required | the warehouse's id, as its page shows it |"
    )


def test_an_option_of_many_commands_is_explained_once() -> None:
    sections = command_reference()
    explained = [name for name, text in sections.items() if "`-y, --yes`: " in text]
    assert explained == ["shared options"]
    assert "Also `-t`" in sections["sync"]


def test_every_command_has_a_section() -> None:
    page = (DOCS / "commands.md").read_text("utf-8")
    commands = command_reference().keys() - {"options of every command", "shared options"}
    assert len(commands) > 25
    assert [name for name in commands if f"# {name}\n\n<!-- {name}: make pages -->" not in page] == []
