"""Properties that upgrade a table for good: seen whatever their spelling, and never as something harmless."""

import pytest

from delta_engine.actions import Action, Hazard, Phase
from delta_engine.aspects.table_features import EnableTableFeature
from delta_engine.aspects.table_properties import SetTableProperties
from delta_engine.compile.planner import TablePlanner
from delta_engine.errors import InvalidModelError
from delta_engine.models import Column, Table
from delta_engine.state.states import REDACTED, TableState
from delta_engine.validation.validator import PlanValidator
from tests.builders.models import catalog_of, observed, orders
from tests.fakes.planning import planned, statements_of
from tests.fakes.unity_catalog import FakeUnityCatalog


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
    assert [change.key for change in others.entries] == ["a"]


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


FEED = {"delta.enableChangeDataFeed": "true"}
MAPPING = {"delta.columnMapping.mode": "name"}
ID = Column("id", "bigint")


def _actions(model: Table, state: TableState) -> tuple[Action, ...]:
    (align,) = planned([model], catalog_of([model], state)).align_tables
    return align.actions


def _phases(model: Table, state: TableState) -> dict[str, Phase]:
    upgrades = (action for action in _actions(model, state) if isinstance(action, EnableTableFeature))
    return {upgrade.key: upgrade.phase for upgrade in upgrades}


def test_an_upgrade_that_no_change_needs_follows_what_the_platform_may_refuse() -> None:
    model = orders(
        ID, Column("note", "string", comment="Free text"), properties={**FEED, **MAPPING, "a": "b"}
    )
    assert [action.phase for action in _actions(model, observed(ID))] == [
        Phase.ADD_COLUMNS,
        Phase.UPGRADE_TABLE,
        Phase.UPGRADE_TABLE,
        Phase.SET_TABLE_PROPERTIES,
    ]


@pytest.mark.parametrize(
    ("columns", "present", "key"),
    [
        ([ID], [ID, Column("note", "string")], "delta.columnMapping.mode"),
        (
            [ID, Column("note", "string", renamed_from="text")],
            [ID, Column("text", "string")],
            "delta.columnMapping.mode",
        ),
        ([ID, Column("a note", "string")], [ID], "delta.columnMapping.mode"),
        (
            [ID, Column("s", "struct<a: int, `b c`: int>")],
            [ID, Column("s", "struct<a: int>")],
            "delta.columnMapping.mode",
        ),
        ([ID], [Column("id", "int")], "delta.enableTypeWidening"),
        ([ID, Column("at", "timestamp_ntz")], [ID], "delta.feature.timestampNtz"),
        ([ID, Column("v", "variant")], [ID], "delta.feature.variantType-preview"),
        ([Column("id", "bigint", default="1")], [ID], "delta.feature.allowColumnDefaults"),
    ],
)
def test_a_declared_upgrade_that_a_change_needs_precedes_it(
    columns: list[Column], present: list[Column], key: str
) -> None:
    switched_on = {
        "delta.columnMapping.mode": "name",
        "delta.enableTypeWidening": "true",
        "delta.feature.timestampNtz": "supported",
        "delta.feature.variantType-preview": "supported",
        "delta.feature.allowColumnDefaults": "supported",
    }
    phases = _phases(orders(*columns, properties=switched_on), observed(*present))
    assert phases == {
        feature: Phase.ENABLE_TABLE_FEATURES if feature == key else Phase.UPGRADE_TABLE
        for feature in switched_on
    }


@pytest.mark.parametrize("former_name", [None, "_change_type"])
def test_the_feed_is_switched_on_after_its_names_are_free(former_name: str | None) -> None:
    catalog = FakeUnityCatalog()
    catalog.run("CREATE TABLE dev.silver.orders (`id` BIGINT, `_change_type` STRING) USING delta")
    model = orders(ID, Column("kind", "string", renamed_from=former_name), properties=FEED)
    for sql in statements_of(
        planned([model], catalog_of([model], catalog.stored("dev.silver.orders").state))
    ):
        catalog.run(sql)
    assert catalog.stored("dev.silver.orders").state.table_properties["delta.enableChangeDataFeed"] == "true"


@pytest.mark.parametrize(
    ("columns", "present"),
    [
        ([ID, Column("_Commit_Version", "string")], [ID]),
        ([ID, Column("_Commit_Version", "string", renamed_from="v")], [ID, Column("v", "string")]),
    ],
)
def test_a_feed_that_the_table_has_takes_its_names(columns: list[Column], present: list[Column]) -> None:
    with pytest.raises(InvalidModelError) as refused:
        _actions(orders(*columns, properties={}), observed(*present, properties={**FEED, **MAPPING}))
    assert str(refused.value).partition("orders, ")[2] == (
        "column _Commit_Version: the change data feed of the table has a column of this name. "
        "Rename the column, or first switch the feed off in a separate sync: delta.enableChangeDataFeed: false."
    )
