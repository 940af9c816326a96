"""Laws of editing model files: the outcome is what was wanted, and what nobody wanted changed is as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from delta_engine.config.model_edit_texts import ModelEdit
from delta_engine.config.model_edits import edit_models
from delta_engine.config.model_writer import yaml_models
from delta_engine.config.yaml_emitter import emit_block, flow
from delta_engine.models import Column, ForeignKey, PrimaryKey, Schema, Table
from tests.model_projects import (
    as_checks,
    column_lists,
    declared_in_yaml,
    hostile_names,
    hostile_texts,
    load_yaml,
    schema_contents,
    schemas,
    table_contents,
    tables,
    temporary_settings,
)
from tests.proofs import examples
from tests.strategies import privileges

VARIABLES = {"catalog": "dev", "x": "X"}

WHOLE = ("comment", "partitioned_by", "row_filter", "owner", "location", "renamed_from", "manages")
"""The fields that an edit changes as a whole."""

Layout = Callable[[str], str]

Value = TypeVar("Value")


def in_blocks(text: str) -> str:
    """Return a written model file with its columns, keys and names in blocks, and comments between them."""
    plain = YAML(typ="safe", pure=True).load(text)
    lines = emit_block(plain).splitlines(keepends=True)
    marked = [f"{line[: len(line) - len(line.lstrip(' '))]}# {n}\n{line}" for n, line in enumerate(lines)]
    return "".join(marked) + "# the end"


def on_one_line(text: str) -> str:
    """Return a written model file within one pair of braces."""
    document: Any = flow(YAML(typ="safe", pure=True).load(text))
    return emit_block(document)


def with_windows_lines(text: str) -> str:
    return text.replace("\n", "\r\n")


layouts: st.SearchStrategy[Layout] = st.sampled_from([str, in_blocks, on_one_line, with_windows_lines])


@st.composite
def edited(draw: st.DrawFn, before: Table) -> tuple[Table, Mapping[str, str]]:
    """Draw what somebody may make of a table, and which of its columns are renamed."""
    columns = list(before.columns)
    kept = draw(st.permutations(columns))[: draw(st.integers(0, len(columns)))]
    if draw(st.booleans()):
        kept.sort(key=columns.index)
    renames: dict[str, str] = {}
    after: list[Column] = []
    for column in kept:
        changed = draw(column_lists)[0] if draw(st.booleans()) else column
        renamed = draw(hostile_names) if draw(st.integers(0, 3)) == 0 else column.name
        taken = {one.key for one in (*after, *columns) if one.key != column.key}
        if renamed != column.name and renamed.lower() not in taken:
            renames[column.name] = renamed
        name = renames.get(column.name, column.name)
        after.append(replace(changed, name=name))
    for column in draw(st.lists(column_lists.map(lambda found: found[0]), max_size=2)):
        if column.key not in {one.key for one in (*after, *columns)}:
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
    """Leave out what an edit would take for the same key."""
    return tuple({(tuple(map(str.lower, key.columns)), key.references.lower()): key for key in keys}.values())


def _renamed(key: PrimaryKey | None, renames: Mapping[str, str]) -> PrimaryKey | None:
    return key and PrimaryKey(_names(key.columns, renames), key.name, key.rely)


def _names(names: Sequence[str], renames: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(renames.get(name, name) for name in names)


three_tables = st.tuples(tables(st.just("a")), tables(st.just("b")), tables(st.just("c")))


@settings(deadline=None, max_examples=examples(25, 100))
@given(st.data(), three_tables, layouts)
def test_an_edited_file_loads_as_what_was_wanted(
    data: st.DataObject, written: Sequence[Table], layout: Layout
) -> None:
    after, renames = data.draw(edited(written[1]))
    with temporary_settings(VARIABLES) as project:
        before = load_yaml(layout(yaml_models(written, VARIABLES)), project)
        assert before == tuple(written)
        path = project.project_dir / "models" / "m.yml"
        edit_models([ModelEdit(before=before[1], after=after, renames=renames)], project)
        text = path.read_bytes().decode()
        assert load_yaml(text, project) == (before[0], after, before[2])
        assert ("\r\n" in text) == (layout is with_windows_lines)
        assert text.endswith("\n") == (layout is not in_blocks)


@settings(deadline=None, max_examples=examples(25, 100))
@given(st.data(), schemas(), schemas(), tables(), layouts)
def test_an_edited_schema_loads_as_what_was_wanted_beside_the_others(
    data: st.DataObject, first: Schema, second: Schema, table: Table, layout: Layout
) -> None:
    contents = schema_contents(first.catalog_name, first.schema_name)
    after = data.draw(st.none() | contents)
    with temporary_settings(VARIABLES) as project:
        text = layout(yaml_models([table], VARIABLES, [first, second]))
        (_, (before, other)) = declared_in_yaml(text, project)
        path = project.project_dir / "models" / "m.yml"
        edit_models([ModelEdit(before=before, after=after)], project)
        edited_text = path.read_bytes().decode()
        expected = (other,) if after is None else (after, other)
        assert declared_in_yaml(edited_text, project) == ((table,), expected)
        if after == before:
            assert edited_text == text


@settings(deadline=None, max_examples=examples(15, 40))
@given(st.data(), three_tables, layouts)
def test_other_tables_keep_their_text(data: st.DataObject, written: Sequence[Table], layout: Layout) -> None:
    after, renames = data.draw(edited(written[1]))
    with temporary_settings(VARIABLES) as project:
        text = layout(yaml_models(written, VARIABLES))
        first, second, third = load_yaml(text, project)
        lone = [layout(yaml_models([table], VARIABLES)) for table in (first, third)]
        path = project.project_dir / "models" / "m.yml"
        edit_models([ModelEdit(before=second, after=after, renames=renames)], project)
        result = path.read_bytes().decode()
        if layout is str or layout is with_windows_lines:
            for entry in lone:
                assert entry.split("\n", 1)[1] in result


@settings(deadline=None, max_examples=examples(15, 40))
@given(three_tables, layouts)
def test_an_edit_that_changes_nothing_changes_no_byte(written: Sequence[Table], layout: Layout) -> None:
    with temporary_settings(VARIABLES) as project:
        text = layout(yaml_models(written, VARIABLES))
        models = load_yaml(text, project)
        edits = [ModelEdit(before=model, after=model) for model in models]
        assert edit_models(edits, project) == ()
        assert (project.project_dir / "models" / "m.yml").read_bytes().decode() == text


@settings(deadline=None, max_examples=examples(15, 40))
@given(three_tables, layouts, st.sets(st.integers(0, 2)))
def test_removed_tables_are_gone_and_the_others_are_there(
    written: Sequence[Table], layout: Layout, removed: set[int]
) -> None:
    other = replace(written[0], catalog_name="other")
    with temporary_settings(VARIABLES) as project:
        (project.project_dir / "models" / "z.yml").write_text(yaml_models([other], VARIABLES), "utf-8")
        models = load_yaml(layout(yaml_models(written, VARIABLES)), project)
        edit_models([ModelEdit(before=models[place], after=None) for place in removed], project)
        text = (project.project_dir / "models" / "m.yml").read_bytes().decode()
        kept = tuple(model for place, model in enumerate(models) if place not in removed)
        assert load_yaml(text, project) == kept
