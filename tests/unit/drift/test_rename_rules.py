"""Single rules of renames outside the engine, and of what a sync reverts, in corners that histories rarely reach."""

from __future__ import annotations

from dataclasses import replace

import pytest

from delta_engine.actions.drift_policy import DriftPolicy, IgnoreEntry, Severity
from delta_engine.aspects.renames import Renames
from delta_engine.drift.drifted_resources import ClassifiedDrift, ComparedTable
from delta_engine.drift.handling import OverwrittenDrift, refusals, reverted_drift, with_ignored_drift
from delta_engine.drift.renames import (
    ignored_renames,
    irreversible,
    taken_renames,
)
from delta_engine.models import Column, QualifiedName, Table, resource_key
from delta_engine.ownership.recorded import Recorded
from delta_engine.ownership.recorded_models import under_new_names
from delta_engine.state.states import ABSENT, CatalogState, TableState
from tests.builders.deployment import deployment_state
from tests.builders.detection import MODEL, RENAMED, FakeHistory, FakeVersions, commit, detect, kinds
from tests.builders.models import ORDERS, observed, orders

ID, NAME, FULL_NAME = Column("id", "bigint"), Column("name", "string"), Column("full_name", "string")


def renamed(
    state: TableState, *pairs: tuple[str, str], model: Table = MODEL, ignored: str | None = None
) -> ComparedTable:
    """Return the drift of a table whose history has renames."""
    commits = [
        commit(place, "RENAME COLUMN", oldColumnPath=old, newColumnPath=new)
        for place, (old, new) in enumerate(pairs, start=4)
    ]
    ignores = (IgnoreEntry(resource="*", fields=(ignored,), reason="known"),) if ignored else ()
    history = FakeHistory(commit(3, "OPTIMIZE"), *commits)
    (drifted,) = detect(
        state, state=deployment_state(model), history=history, policy=DriftPolicy(ignores=ignores)
    )
    return drifted


def test_a_deleted_table_is_reverted_whatever_its_model_says() -> None:
    (gone,) = detect(ABSENT)
    assert reverted_drift(orders(comment="another"), gone) == gone.details


def test_a_replaced_table_is_reverted_by_no_model() -> None:
    (replaced,) = detect(observed(*MODEL.columns, comment="a table"), versions=FakeVersions("another"))
    assert kinds([replaced]) == ["table_replaced"]
    assert reverted_drift(MODEL, replaced) == ()


def test_an_ignored_rename_is_not_taken_over_a_declared_column() -> None:
    both = replace(MODEL, columns=(ID, NAME, FULL_NAME))
    drifted = renamed(RENAMED, ("name", "full_name"), ignored="column_renamed")
    assert with_ignored_drift([both], [drifted]) == (both,)
    assert with_ignored_drift([MODEL], [drifted]) == (replace(MODEL, columns=(ID, FULL_NAME)),)


def test_an_ignored_rename_hides_nothing_of_a_declared_column() -> None:
    applied = replace(MODEL, columns=(ID, replace(NAME, comment="old")))
    drifted = renamed(
        replace(RENAMED, columns=(ID, replace(FULL_NAME, comment="theirs"))),
        ("name", "full_name"),
        model=applied,
        ignored="column_renamed",
    )
    assert kinds([drifted]) == ["column_renamed", "column_comment"]
    assert reverted_drift(applied, drifted)[1:] == drifted.details[1:]
    both = replace(applied, columns=(*applied.columns, replace(FULL_NAME, comment="mine")))
    assert reverted_drift(both, drifted) == ()


STRUCT = orders(Column("st", "struct<x: int, z: string>"))


def test_a_model_may_take_the_rename_of_a_column_without_that_of_its_field() -> None:
    drifted = renamed(
        observed(Column("su", "struct<y: int, z: string>")), ("st", "su"), ("su.x", "su.y"), model=STRUCT
    )
    assert kinds([drifted]) == ["column_renamed", "column_renamed"]
    half = orders(Column("su", "struct<x: int, z: string>"))
    assert [detail.difference.renamed for detail in reverted_drift(half, drifted)] == [
        (("st", "x"), ("su", "y"))
    ]
    whole = orders(Column("su", "struct<y: int, z: string>"))
    assert reverted_drift(whole, drifted) == ()
    neither = orders(Column("su", "struct<z: string>"))
    assert reverted_drift(neither, drifted) == ()


@pytest.mark.parametrize(
    ("model", "is_reverted"),
    [(STRUCT, True), (orders(Column("st", "struct<x: int, z: string, n: int>")), False), (orders(ID), False)],
    ids=["without the field", "with the field", "without the column"],
)
def test_an_added_field_is_reverted_by_a_model_without_it(model: Table, is_reverted: bool) -> None:
    (drifted,) = detect(
        observed(Column("st", "struct<x: int, z: string, n: int>")), state=deployment_state(STRUCT)
    )
    assert (reverted_drift(model, drifted) == drifted.details) is is_reverted


def overwritten(detail: ClassifiedDrift) -> OverwrittenDrift:
    return OverwrittenDrift(
        model=MODEL, detail=detail, field=detail.finding.field, is_of_replaced_table=False
    )


def test_a_refusal_says_what_is_absent_and_what_is_gone() -> None:
    strict = DriftPolicy(refused_from=Severity.LOW)
    (drifted,) = detect(observed(ID, Column("theirs", "int"), comment="a table"))
    reasons = {
        detail.finding.field: str(refusal)
        for detail in drifted.details
        for refusal in refusals([overwritten(detail)], strict)
    }
    assert "was absent and is int" in reasons["column theirs"]
    assert "was string and is gone" in reasons["column name"]


def test_a_model_with_both_names_has_not_taken_the_rename() -> None:
    drifted = renamed(RENAMED, ("name", "full_name"))
    taken = taken_renames([replace(MODEL, columns=(ID, FULL_NAME))], [drifted])
    assert taken[resource_key(ORDERS)].columns == {"name": "full_name"}
    assert taken_renames([replace(MODEL, columns=(ID, NAME, FULL_NAME))], [drifted]) == {}


def test_all_of_a_record_is_under_the_new_names() -> None:
    renames = Renames.of_columns({"name": "full_name"})
    record = Recorded.of(MODEL, baseline=MODEL, attempted=(MODEL,))
    after = record.mapped(renames.applied_to)
    expected = replace(MODEL, columns=(ID, FULL_NAME))
    assert after == Recorded.of(expected, baseline=expected, attempted=(expected,))


def test_only_renames_are_ignored_renames() -> None:
    commented = replace(RENAMED, table_comment="theirs")
    by_name = {
        ignored: ignored_renames([renamed(commented, ("name", "full_name"), ignored=ignored)])
        for ignored in ("column_renamed", "table_comment")
    }
    assert by_name == {"column_renamed": {resource_key(ORDERS)}, "table_comment": frozenset()}


def test_a_declared_rename_that_is_done_is_no_longer_one() -> None:
    both = observed(ID, FULL_NAME, Column("new", "string"), comment="a table")
    model = replace(MODEL, columns=(ID, Column("new", "string", renamed_from="name")))
    for present, refused in ((RENAMED, ["new"]), (both, [])):
        drifted = renamed(present, ("name", "full_name"))
        assert [refusal.column for refusal in irreversible([model], [drifted])] == refused


def test_a_column_that_the_model_renames_is_not_the_renamed_one() -> None:
    there = observed(ID, FULL_NAME, Column("other", "string"), comment="a table")
    model = replace(MODEL, columns=(ID, NAME, Column("other", "string")))
    drifted = renamed(there, ("name", "full_name"), model=model)
    for former, refused in ((None, ["new"]), ("other", [])):
        wanted = replace(MODEL, columns=(ID, Column("new", "string", renamed_from=former)))
        assert [refusal.column for refusal in irreversible([wanted], [drifted])] == refused


def test_all_of_a_record_has_the_new_name_of_its_table() -> None:
    former = QualifiedName("dev", "silver", "former")
    old = replace(MODEL, table_name="former")
    record = Recorded.of(old, baseline=old)
    renamed_table = CatalogState(tables={ORDERS.key: replace(RENAMED, former_name=former)})
    renamed_record = under_new_names({resource_key(former): record}, [MODEL], renamed_table)[
        resource_key(ORDERS)
    ]
    assert renamed_record == Recorded.of(MODEL, baseline=MODEL)
