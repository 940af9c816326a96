"""Laws of editing model files: the outcome is what was wanted, or the file stays as it was."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from delta_engine.config.model_edits import ModelEdit, edit_models
from delta_engine.config.model_writer import yaml_models
from delta_engine.config.settings import Settings
from delta_engine.config.yaml_text import block, list_item, one_line
from delta_engine.errors import ConfigError
from delta_engine.models import AbacPolicy, Column, ForeignKey, Function, PrimaryKey, Schema, Securable, Table
from tests.builders.strategies import privileges
from tests.projects.models import (
    all_declared_in_yaml,
    as_checks,
    column_lists,
    declared_in_yaml,
    functions,
    hostile_names,
    hostile_texts,
    load_yaml,
    policies,
    schema_contents,
    schemas,
    table_contents,
    tables,
    temporary_settings,
)
from tests.proofs import examples

VARIABLES = {"catalog": "dev", "x": "X"}

TABLE = Table("dev", "s", "t", [Column("a", "int")])

WHOLE = ("comment", "partitioned_by", "row_filter", "owner", "location", "renamed_from", "manages")
"""The fields that an edit changes as a whole."""

Layout = Callable[[str], str]

Value = TypeVar("Value")


def in_blocks(text: str) -> str:
    """Return a written model file with its columns, keys and names in blocks, and comments between them."""
    lines = spread(YAML(typ="safe", pure=True).load(text)).splitlines(keepends=True)
    marked = [f"{line[: len(line) - len(line.lstrip(' '))]}# {n}\n{line}" for n, line in enumerate(lines)]
    return "".join(marked) + "\n# the end"


def spread(value: Any) -> str:
    """Return a value in YAML, with a line for each part that has no parts."""
    match value:
        case dict():
            return "\n".join(f"{one_line(key)}:{below(part)}" for key, part in value.items())
        case list():
            return "\n".join(list_item(spread(part)) for part in value)
    return one_line(value)


def below(value: Any) -> str:
    """Return a value in YAML, as it stands behind its key."""
    return block([spread(value)]) if value and isinstance(value, (dict, list)) else f" {one_line(value)}"


def on_one_line(text: str) -> str:
    return f"{one_line(YAML(typ='safe', pure=True).load(text))}\n"


def as_json(text: str) -> str:
    """Return a written model file as other tools write it: in braces over many lines, all texts in quotes."""
    lines = json.dumps(YAML(typ="safe", pure=True).load(text), indent=2)
    return lines.replace("\x7f", "\\u007f") + "\n"


def with_windows_lines(text: str) -> str:
    return text.replace("\n", "\r\n")


layouts: st.SearchStrategy[Layout] = st.sampled_from(
    [str, in_blocks, on_one_line, as_json, with_windows_lines]
)


@st.composite
def edited(draw: st.DrawFn, before: Table) -> tuple[Table, Mapping[str, str]]:
    columns = list(before.columns)
    kept = draw(st.permutations(columns))[: draw(st.integers(0, len(columns)))]
    if draw(st.booleans()):
        kept.sort(key=columns.index)
    renames: dict[str, str] = {}
    after: list[Column] = []
    for column in kept:
        changed = draw(column_lists)[0] if draw(st.booleans()) else column
        renamed = draw(hostile_names) if draw(st.integers(0, 3)) == 0 else column.name
        taken = {existing.key for existing in (*after, *columns) if existing.key != column.key}
        if renamed != column.name and renamed.lower() not in taken:
            renames[column.name] = renamed
        name = renames.get(column.name, column.name)
        after.append(replace(changed, name=name))
    for column in draw(st.lists(column_lists.map(lambda columns: columns[0]), max_size=2)):
        if column.key not in {existing.key for existing in (*after, *columns)}:
            after.insert(draw(st.integers(0, len(after))), column)
    other = draw(table_contents(before.catalog_name, before.schema_name, before.table_name))
    chosen = {
        field: draw(st.sampled_from([getattr(before, field), getattr(other, field)])) for field in WHOLE
    }
    table = replace(
        before,
        **chosen,
        columns=tuple(after),
        table_properties=draw(merged(before.table_properties, other.table_properties, hostile_texts)),
        tags=draw(merged(before.tags, other.tags, hostile_texts)),
        grants=draw(merged(before.grants, other.grants, privileges)),
        checks=as_checks(draw(merged(_expressions(before), _expressions(other), hostile_texts))),
        primary_key=draw(
            st.sampled_from([before.primary_key, other.primary_key, _renamed(before.primary_key, renames)])
        ),
        foreign_keys=_distinct((*draw(st.permutations(before.foreign_keys)), *other.foreign_keys)),
        cluster_by=draw(
            st.sampled_from([before.cluster_by, other.cluster_by, _names(before.cluster_by, renames)])
        ),
        clusters_automatically=False,
    )
    automatic = replace(table, cluster_by=(), clusters_automatically=True)
    return draw(st.sampled_from([table, table, automatic])), renames


@st.composite
def merged(
    draw: st.DrawFn, before: Mapping[str, Value], other: Mapping[str, Value], values: st.SearchStrategy[Value]
) -> Mapping[str, Value]:
    """Draw a mapping that keeps, changes or loses entries, and has others at its end."""
    kept = {key: draw(st.just(before[key]) | values) for key in before if draw(st.booleans())}
    return draw(st.sampled_from([before, kept, {**kept, **other}, other]))


def _expressions(table: Table) -> dict[str, str]:
    return {check.name: check.expression for check in table.checks}


def _distinct(keys: Sequence[ForeignKey]) -> tuple[ForeignKey, ...]:
    """Leave out keys that an edit cannot tell apart."""
    return tuple({(tuple(map(str.lower, key.columns)), key.references.lower()): key for key in keys}.values())


def _renamed(key: PrimaryKey | None, renames: Mapping[str, str]) -> PrimaryKey | None:
    return key and PrimaryKey(_names(key.columns, renames), key.name, key.rely)


def _names(names: Sequence[str], renames: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(renames.get(name, name) for name in names)


@settings(deadline=None, max_examples=examples(20, 200))
@given(st.data(), tables(st.just("a")), tables(st.just("b")), layouts)
def test_an_edited_file_loads_as_what_was_wanted(
    data: st.DataObject, first: Table, second: Table, layout: Layout
) -> None:
    after, renames = data.draw(st.sampled_from([(first, {}), (None, {})]) | edited(first))
    text = layout(yaml_models([first, second], VARIABLES))
    with temporary_settings(VARIABLES) as project:
        before, other = load_yaml(text, project)
        assert (before, other) == (first, second)
        edited_text = _edited_text(
            text, ModelEdit(before=before, after=after, renames=renames), layout, project
        )
        if edited_text is None:
            return
        assert load_yaml(edited_text, project) == ((other,) if after is None else (after, other))
    if after == first:
        assert edited_text == text
    if layout in (str, with_windows_lines):
        assert layout(yaml_models([second], VARIABLES)).split("\n", 1)[1] in edited_text
    assert ("\r\n" in edited_text) == (layout is with_windows_lines)
    assert edited_text.endswith("\n") == (layout is not in_blocks)


@settings(deadline=None, max_examples=examples(15, 100))
@given(st.data(), schemas(), schemas(), layouts)
def test_an_edited_schema_loads_as_what_was_wanted_beside_the_others(
    data: st.DataObject, first: Schema, second: Schema, layout: Layout
) -> None:
    after = data.draw(st.none() | st.just(first) | schema_contents(first.catalog_name, first.schema_name))
    text = layout(yaml_models([TABLE, first, second], VARIABLES))
    with temporary_settings(VARIABLES) as project:
        (_, (before, other)) = declared_in_yaml(text, project)
        edited_text = _edited_text(text, ModelEdit(before=before, after=after), layout, project)
        if edited_text is None:
            return
        expected = (other,) if after is None else (after, other)
        assert declared_in_yaml(edited_text, project) == ((TABLE,), expected)
    if after == first:
        assert edited_text == text


@settings(deadline=None, max_examples=examples(20, 200))
@given(st.data(), functions(), functions(), policies(), policies(), layouts)
def test_an_edited_function_or_policy_loads_as_what_was_wanted(
    data: st.DataObject,
    function: Function,
    function_to_be: Function,
    policy: AbacPolicy,
    policy_to_be: AbacPolicy,
    layout: Layout,
) -> None:
    name = function.qualified_name
    named: dict[str, Any] = {
        "catalog_name": name.catalog,
        "schema_name": name.schema,
        "function_name": name.name,
    }
    wanted: list[tuple[Securable, Securable]] = [
        (function, replace(function_to_be, **named)),
        (function, replace(function, body=function_to_be.body)),
        (policy, replace(policy_to_be, name=policy.name, scope=policy.scope)),
        (policy, replace(policy, protection=policy_to_be.protection)),
    ]
    before, after = data.draw(st.sampled_from(wanted))
    text = layout(yaml_models([TABLE, function, policy], VARIABLES))
    with temporary_settings(VARIABLES) as project:
        declared = {type(model): model for model in all_declared_in_yaml(text, project)}
        edit = ModelEdit(before=declared[type(before)], after=after)
        edited_text = _edited_text(text, edit, layout, project)
        if edited_text is None:
            return
        assert all_declared_in_yaml(edited_text, project) == tuple(
            after if model == before else model for model in (function, TABLE, policy)
        )


def _edited_text(text: str, edit: ModelEdit, layout: Layout, project: Settings) -> str | None:
    """Return the edited file, or None if the edit was refused and the file is as it was."""
    path = project.project_dir / "models" / "m.yml"
    try:
        edit_models([edit], project)
    except ConfigError as refusal:
        _, safely, reason = refusal.reason.partition("the file cannot be edited safely: ")
        assert safely
        is_unusual = layout in (in_blocks, on_one_line, as_json) or re.search(r"^ *\? ", text, re.MULTILINE)
        assert is_unusual or "the variable" in reason, reason
        assert path.read_bytes().decode() == text
        return None
    return path.read_bytes().decode()
