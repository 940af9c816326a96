"""The author of a change: the commit that made it, or none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_engine.actions.drift_policy import DriftKind
from delta_engine.drift.attribution import attribution, last_written, renames, since
from delta_engine.drift.drifted_resources import Attribution, Deviation
from delta_engine.models import Column, PrimaryKey
from delta_engine.state.states import NO_AUDIT, Audit
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
        ("primary key", "SET TBLPROPERTIES", {"properties": '{"delta_engine.constraint.pk_y":"{}"}'}),
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
    deviation = Deviation(kind=kind, field=field, expected="a", actual="b")
    commits: tuple[Commit, ...] = (
        commit(9, "WRITE", mode="Append"),
        commit(8, "OPTIMIZE"),
        commit(7, "ADD COLUMNS", columns='[{"column":{"name":"other"}}]'),
        commit(6, operation, **parameters),
        commit(5, operation, **parameters),
    )
    if field == "column order":
        commits = commits[3:]
    found = attribution(deviation, commits)
    assert found is not None
    assert (found.version, found.who, found.operation) == (6, "user 6", operation)


@pytest.mark.parametrize("text", ["", "not json", "[1, {}, null]", '{"a": {"b": []}}', "[[[["])
def test_unknown_parameters_name_no_author(text: str) -> None:
    deviation = Deviation(kind=DriftKind.COLUMN_TYPE, field="column x type", expected="a", actual="b")
    commits = [
        commit(4, "ADD COLUMNS", columns=text, column=text),
        commit(3, "SET TBLPROPERTIES", properties=text),
        commit(2, "RENAME COLUMN"),
    ]
    assert attribution(deviation, commits) is None
    assert renames([]) == {}


def test_a_write_is_no_author_of_what_no_commit_explains() -> None:
    """Every write moves LAST_ALTERED: a job that loads data would be accused."""
    keys = replace(AS_APPLIED, primary_key=None, audit=Audit(altered_at=LATER, altered_by="etl"))
    model = replace(
        MODEL, columns=(Column("id", "bigint", False), MODEL.columns[1]), primary_key=PrimaryKey(["id"])
    )
    found = detect(
        replace(keys, columns=model.columns),
        state=deployment_state(model),
        history=FakeHistory(commit(4, "WRITE", mode="Append")),
    )
    (finding,) = [detail.finding for detail in found[0].details]
    assert (finding.kind, finding.changed) == (DriftKind.PRIMARY_KEY, None)
    assert finding.last_written == Attribution(who="etl", at=LATER)


def test_chains_of_renames_are_followed_and_circles_are_none() -> None:
    def rename(version: int, old: str, new: str) -> Commit:
        return commit(version, "RENAME COLUMN", oldColumnPath=old, newColumnPath=new)

    assert renames([rename(5, "`b c`", "d"), rename(4, "a", "`b c`"), rename(3, "x", "y")]) == {
        "x": "y",
        "a": "d",
    }
    assert renames([rename(5, "b", "a"), rename(4, "a", "b")]) == {}
    assert since([rename(5, "b", "a"), rename(4, "a", "b")], 4) == (rename(5, "b", "a"),)


def test_the_author_of_a_replacement_created_the_new_table() -> None:
    history = FakeHistory(
        commit(0, "CREATE TABLE"), commit(7, "CREATE OR REPLACE TABLE"), commit(9, "WRITE", mode="Append")
    )
    (found,) = detect(AS_APPLIED, history=history, versions=FakeVersions("another id"))
    changed = found.details[0].finding.changed
    assert changed is not None
    assert changed.who == "user 7"


def test_a_write_that_merges_schemas_is_not_accused_of_what_it_cannot_do() -> None:
    drop = Deviation(kind=DriftKind.COLUMN_DROPPED, field="column x", expected="int", actual=None)
    commits = [commit(9, "WRITE", canMergeSchema="true"), commit(8, "DROP COLUMNS", columns='["x"]')]
    found = attribution(drop, commits)
    assert found is not None
    assert found.who == "user 8"
    assert attribution(drop, commits[:1]) is None


def test_a_note_of_our_own_apply_names_no_author() -> None:
    assert last_written(Audit(altered_at=NOON, altered_by="us"), NOON) is None
    assert last_written(NO_AUDIT, None) is None
