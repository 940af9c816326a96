"""Properties that upgrade a table for good: seen whatever their spelling, and never as something harmless."""

import pytest

from delta_engine.actions import Hazard
from delta_engine.aspects.table_features import EnableTableFeature
from delta_engine.aspects.table_properties import SetTableProperties
from delta_engine.compile.planner import TablePlanner
from delta_engine.models import Column
from delta_engine.state.states import REDACTED, TableState
from delta_engine.validation.validator import PlanValidator
from tests.builders.models import catalog_of, observed, orders


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.enableDeletionVectors", "true"),
        ("delta.EnableRowTracking", "TRUE"),
        ("delta.checkpointPolicy", "v2"),
        ("delta.enableChangeDataFeed", "true"),
        ("Delta.Feature.clustering", "supported"),
    ],
)
def test_an_upgrade_is_an_action_of_its_own(key: str, value: str) -> None:
    model = orders(properties={key: value, "a": "b"})
    (align,) = TablePlanner().plan([model], catalog_of([model], observed())).align_tables
    (upgrade,) = align.of_type(EnableTableFeature)
    assert upgrade.key.lower() == key.lower()
    assert Hazard.PERMANENT_UPGRADE in upgrade.hazards
    (others,) = align.of_type(SetTableProperties)
    assert [change.key for change in others.properties] == ["a"]


def test_switching_off_is_a_plain_property() -> None:
    model = orders(properties={"delta.enableChangeDataFeed": "false"})
    state = observed(properties={"delta.enableChangeDataFeed": "true"})
    (align,) = TablePlanner().plan([model], catalog_of([model], state)).align_tables
    assert [type(action) for action in align.actions] == [SetTableProperties]


def test_another_spelling_hides_no_change_of_the_column_mapping_mode() -> None:
    model = orders(properties={"delta.ColumnMapping.Mode": "none"})
    state = observed(properties={"delta.columnMapping.mode": "name"})
    plan = TablePlanner().plan([model], catalog_of([model], state))
    (refusal,) = PlanValidator().plan_violations(plan)
    assert "would change from name to none, which rewrites the table" in str(refusal)


def test_another_spelling_of_true_is_no_change() -> None:
    model = orders(properties={"delta.enableTypeWidening": "TRUE"})
    state = observed(properties={"delta.enableTypeWidening": "true"})
    assert not TablePlanner().plan([model], catalog_of([model], state))


def test_columns_get_what_they_need_where_the_properties_are_unmanaged() -> None:
    model = orders(Column("id", "bigint"), properties={})
    partly = type(model)("dev", "silver", "orders", [Column("id", "bigint")], manages=["columns"])
    (align,) = TablePlanner().plan([partly], catalog_of([partly], observed(Column("id", "int")))).align_tables
    assert [action.key for action in align.of_type(EnableTableFeature)] == ["delta.enableTypeWidening"]


def test_observed_states_hold_no_secrets() -> None:
    state = TableState(table_properties={"api.token": "hush", "Password": "hush", "a": "b"})
    assert dict(state.table_properties) == {"Password": REDACTED, "a": "b", "api.token": REDACTED}
