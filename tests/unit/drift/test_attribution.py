"""The author of a change: the commit that made it, or none."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects import Difference
from delta_engine.aspects.aspect import Change
from delta_engine.drift.attribution import attribution, last_written, since
from delta_engine.drift.commit_paths import renames
from delta_engine.drift.drifted_resources import Attribution
from delta_engine.models import Column, PrimaryKey
from delta_engine.state.audits import NO_AUDIT, Audit
from delta_engine.state.table_queries import Commit
from tests.builders.deployment import NOON, deployment_state
from tests.builders.detection import AS_APPLIED, LATER, MODEL, FakeHistory, FakeVersions, commit, detect


@pytest.mark.parametrize(
    ("field", "operation", "parameters"),
    [
        ("column x", "ADD COLUMNS", {"columns": '[{"column":{"name":"X","type":"int"}}]'}),
        ("column x", "DROP COLUMNS", {"columns": '["y","x"]'}),
        ("column a b type", "CHANGE COLUMN", {"column": '{"name":"a b","type":"long"}'}),
        ("column x comment", "CHANGE COLUMNS", {"columns": '[{"column":{"name":"x"}}]'}),
        ("column order", "CHANGE COLUMN", {"column": '{"name":"x"}', "position": "FIRST"}),
        ("property k'ey", "SET TBLPROPERTIES", {"properties": '{"k\'ey":"v"}'}),
        ("property gone", "UNSET TBLPROPERTIES", {"properties": '["gone"]', "ifExists": "true"}),
        ("table comment", "SET TBLPROPERTIES", {"properties": '{"comment":"x"}'}),
        (
            "table feature delta.columnMapping.mode",
            "SET TBLPROPERTIES",
            {"properties": '{"delta.columnMapping.mode":1}'},
        ),
        ("primary key pk_x", "UNSET TBLPROPERTIES", {"properties": '["delta_engine.constraint.pk_x"]'}),
        ("primary key pk_y", "SET TBLPROPERTIES", {"properties": '{"delta_engine.constraint.pk_y":"{}"}'}),
        ("foreign key fk_x", "UNSET TBLPROPERTIES", {"properties": '["delta_engine.constraint.fk_x"]'}),
        ("check positive", "DROP CONSTRAINT", {"name": "Positive", "expr": "id > 0"}),
        ("column x default", "CHANGE COLUMN", {"column": '{"name":"x"}'}),
        ("clustering", "CLUSTER BY", {"oldClusteringColumns": "a", "newClusteringColumns": ""}),
        ("column x", "WRITE", {"mode": "Append", "canMergeSchema": "true"}),
        ("column x type", "CREATE OR REPLACE TABLE AS SELECT", {}),
        ("table comment", "RESTORE", {}),
    ],
)
def test_the_latest_commit_that_touched_it(field: str, operation: str, parameters: dict[str, str]) -> None:
    kind = DriftKind.COLUMN_ADDED if field == "column x" else DriftKind.PROPERTY
    kind = DriftKind.COLUMN_TYPE if field.endswith(" type") else kind
    difference = Difference(kind=kind, change=Change(field, "b", "a"))
    commits: tuple[Commit, ...] = (
        commit(9, "WRITE", mode="Append"),
        commit(8, "OPTIMIZE"),
        commit(7, "ADD COLUMNS", columns='[{"column":{"name":"other"}}]'),
        commit(6, operation, **parameters),
        commit(5, "ANALYZE", **parameters),
    )
    if field == "column order":
        commits = commits[3:]
    author = attribution(difference, commits)
    assert author is not None
    assert (author.version, author.who, author.operation) == (6, "user 6", operation)


def changed(version: int, **definition: object) -> Commit:
    column = {"name": "s.x", "type": "integer", "nullable": True, "metadata": {}, **definition}
    return commit(version, "CHANGE COLUMN", column=json.dumps(column))


SHORT, LONG = ({"metadata": {"__CHAR_VARCHAR_TYPE_STRING": f"varchar({size})"}} for size in (1, 2))


@pytest.mark.parametrize(
    ("field", "commits", "version"),
    [
        (
            "comment",
            [changed(4, metadata={"comment": "a"}), changed(5, metadata={"comment": "a"}, type="long")],
            4,
        ),
        ("type", [changed(4, metadata={"comment": "a"}), changed(5, type="long")], 5),
        ("type", [changed(4, **SHORT), changed(5, **LONG), changed(6, nullable=False, **LONG)], 5),
        (
            "default",
            [changed(4, metadata={"CURRENT_DEFAULT": "1"}), changed(5), changed(6, nullable=False)],
            5,
        ),
        ("nullability", [changed(4, nullable=False), changed(5), changed(6, type="long")], 5),
        ("comment", [changed(4), commit(5, "CHANGE COLUMN", column='{"name":"s.x"}')], 5),
    ],
)
def test_a_change_of_another_part_of_a_column_is_not_accused(
    field: str, commits: list[Commit], version: int
) -> None:
    difference = Difference(kind=DriftKind.COLUMN_TYPE, change=Change(f"column s.x {field}", "b", "a"))
    author = attribution(difference, commits[::-1])
    assert author is not None
    assert author.version == version


def added(version: int, name: str, operation: str = "ADD COLUMNS") -> Commit:
    return commit(version, operation, columns=json.dumps([{"name": name}]))


def moved(version: int, old: str, new: str) -> Commit:
    return commit(version, "RENAME COLUMN", oldColumnPath=old, newColumnPath=new)


@pytest.mark.parametrize(
    ("kind", "field", "commits", "version"),
    [
        (DriftKind.COLUMN_ADDED, "column s.x", [added(4, "s.x"), changed(5)], 4),
        (
            DriftKind.COLUMN_DROPPED,
            "column a",
            [moved(4, "a", "b"), added(5, "b", "DROP COLUMNS"), added(6, "b")],
            5,
        ),
        (DriftKind.COLUMN_ADDED, "column b", [moved(4, "a", "b"), added(5, "a"), commit(6, "WRITE")], 4),
        (
            DriftKind.COLUMN_TYPE,
            "column t.x type",
            [changed(4, type="long"), moved(5, "s", "t"), commit(6, "WRITE")],
            4,
        ),
        (DriftKind.COLUMN_RENAMED, "column a", [moved(4, "a", "b"), moved(5, "b", "c")], 5),
        (DriftKind.COLUMN_RENAMED, "column s.x", [moved(4, "s", "t"), moved(5, "t.x", "t.y")], 5),
        (DriftKind.COLUMN_DROPPED, "column a", [commit(4, "REPLACE COLUMNS", columns='[{"name":"b"}]')], 4),
        (DriftKind.PROPERTY, "property p", [commit(4, "REPLACE COLUMNS", columns='[{"name":"b"}]')], None),
        (
            DriftKind.COLUMN_ORDER,
            "column order",
            [added(4, "a", "DROP COLUMNS"), added(5, "a"), changed(6)],
            5,
        ),
        (DriftKind.COLUMN_COMMENT, "column a comment", [commit(4, "WRITE", canOverwriteSchema="true")], 4),
        (DriftKind.COLUMN_COMMENT, "column a comment", [commit(4, "WRITE", canMergeSchema="true")], None),
        (DriftKind.COLUMN_DROPPED, "column a", [commit(0, "WRITE", mode="ErrorIfExists")], 0),
        (
            DriftKind.PROPERTY,
            "property p",
            [
                commit(4, "SET TBLPROPERTIES", properties='{"p":"x"}'),
                commit(5, "SET TBLPROPERTIES", properties='{"p":"x","q":"y"}'),
            ],
            4,
        ),
        (
            DriftKind.TABLE_FEATURE,
            "table feature delta.feature.x",
            [commit(4, "DROP FEATURE", featureName="x")],
            4,
        ),
        (
            DriftKind.TABLE_FEATURE,
            "table feature delta.columnMapping.mode",
            [commit(4, "REMOVE COLUMN MAPPING")],
            4,
        ),
    ],
)
def test_the_commit_that_made_the_change(
    kind: DriftKind, field: str, commits: list[Commit], version: int | None
) -> None:
    difference = Difference(kind=kind, change=Change(field, "b", "a"))
    author = attribution(difference, commits[::-1])
    assert (author and author.version) == version


@pytest.mark.parametrize("text", ["", "not json", "[1, {}, null]", '{"a": {"b": []}}', "[[[["])
def test_unknown_parameters_name_no_author(text: str) -> None:
    difference = Difference(kind=DriftKind.COLUMN_TYPE, change=Change("column x type", "b", "a"))
    commits = [
        commit(4, "ADD COLUMNS", columns=text, column=text),
        commit(3, "SET TBLPROPERTIES", properties=text),
        commit(2, "RENAME COLUMN"),
    ]
    assert attribution(difference, commits) is None
    assert renames([]) == {}


def test_a_write_is_no_author_of_what_no_commit_explains() -> None:
    """Every write moves LAST_ALTERED: a job that loads data would be accused."""
    keys = replace(AS_APPLIED, primary_key=None, audit=Audit(altered_at=LATER, altered_by="etl"))
    model = replace(
        MODEL, columns=(Column("id", "bigint", False), MODEL.columns[1]), primary_key=PrimaryKey(["id"])
    )
    detected = detect(
        replace(keys, columns=model.columns),
        state=deployment_state(model),
        history=FakeHistory(commit(4, "WRITE", mode="Append")),
    )
    (finding,) = [detail.finding for detail in detected[0].details]
    assert (finding.kind, finding.changed) == (DriftKind.PRIMARY_KEY, None)
    assert finding.last_written == Attribution(who="etl", at=LATER)


def test_chains_of_renames_are_followed_and_circles_are_none() -> None:
    assert renames([moved(5, "`b c`", "d"), moved(4, "a", "`b c`"), moved(3, "x", "y")]) == {
        ("x",): ("y",),
        ("a",): ("d",),
    }
    assert renames([moved(5, "b", "a"), moved(4, "a", "b")]) == {}
    assert since([moved(5, "b", "a"), moved(4, "a", "b")], 4) == (moved(5, "b", "a"),)


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        ([moved(4, "s.`a.b`", "s.`c``d`"), moved(5, "s", "t")], {("s", "a.b"): ("t", "c`d"), ("s",): ("t",)}),
        ([moved(4, "s", "t"), moved(5, "T.x", "T.y")], {("s",): ("t",), ("s", "x"): ("T", "y")}),
        ([moved(4, "a", "b"), added(5, "b", "DROP COLUMNS"), added(6, "b")], {}),
        ([moved(4, "a", "b"), added(5, "a"), moved(6, "a", "c")], {("a",): ("b",)}),
        ([moved(4, "a", "b"), commit(5, "RESTORE")], {}),
        ([moved(4, "a`", "b")], {("a`",): ("b",)}),
    ],
)
def test_renames_are_followed_through_other_commits(
    commits: list[Commit], expected: dict[tuple[str, ...], tuple[str, ...]]
) -> None:
    assert renames(commits[::-1]) == expected


def test_the_author_of_a_replacement_created_the_new_table() -> None:
    history = FakeHistory(
        commit(0, "CREATE TABLE"), commit(7, "CREATE OR REPLACE TABLE"), commit(9, "WRITE", mode="Append")
    )
    (drifted,) = detect(AS_APPLIED, history=history, versions=FakeVersions("another id"))
    changed = drifted.details[0].finding.changed
    assert changed is not None
    assert changed.who == "user 7"


def test_a_write_that_merges_schemas_is_not_accused_of_what_it_cannot_do() -> None:
    drop = Difference(kind=DriftKind.COLUMN_DROPPED, change=Change("column x", desired="int"))
    commits = [commit(9, "WRITE", canMergeSchema="true"), commit(8, "DROP COLUMNS", columns='["x"]')]
    author = attribution(drop, commits)
    assert author is not None
    assert author.who == "user 8"
    assert attribution(drop, commits[:1]) is None


def test_a_note_of_our_own_apply_names_no_author() -> None:
    assert last_written(Audit(altered_at=NOON, altered_by="us"), NOON) is None
    assert last_written(NO_AUDIT, None) is None
