"""Properties that platforms set by themselves: one list for import, plans, unmanaged parts and rewrites."""

from __future__ import annotations

import pytest

from delta_engine.actions.policy import NO_POLICY
from delta_engine.aspects.aspect import EntryChange, entry_keys
from delta_engine.aspects.partitioning import RewriteTable
from delta_engine.aspects.table_features import EnableTableFeature
from delta_engine.aspects.table_properties import SetTableProperties, UnsetTableProperties
from delta_engine.compile.planner import TablePlanner
from delta_engine.drift.comparison import listed_parts
from delta_engine.models import Column
from delta_engine.orchestrate.importing import as_model
from delta_engine.validation.validator import PlanValidator
from tests.builders.deployment import records_of
from tests.builders.models import ORDERS, catalog_of, observed, orders

SET_BY_PLATFORM = {
    "delta.checkpoint.writeStatsAsJson": "false",
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.columnMapping.mode": "name",
    "delta.columnMapping.maxColumnId": "7",
    "delta.coordinatedCommits.tableConf-preview": "{}",
    "delta.enableInCommitTimestamps": "true",
    "delta.feature.inCommitTimestamp": "supported",
    "delta.inCommitTimestampEnablementVersion": "3",
    "delta.randomizeFilePrefixes": "true",
    "delta.requireCheckpointProtectionBeforeVersion": "12",
    "delta.workloadBasedColumns.columns": "`id`",
    "io.unitycatalog.tableId": "1",
}
CATALOG_MANAGED = {"delta.feature.catalogManaged": "supported", "delta.enableInCommitTimestamps": "true"}


SET_BY_CATALOGS = dict.fromkeys(("EXTERNAL", "external", "view.count", "spark.sql.statistics.numRows"), "1")


@pytest.mark.parametrize(("key", "value"), [*SET_BY_PLATFORM.items(), *SET_BY_CATALOGS.items()])
def test_what_platforms_and_catalogs_set_is_neither_imported_nor_unmanaged(key: str, value: str) -> None:
    state = observed(properties={key: value, "a": "b", "external_owner": "ann"})
    assert as_model(ORDERS, state).table_properties == {"a": "b", "external_owner": "ann"}
    listed = listed_parts([orders()], catalog_of([orders()], state), {}, NO_POLICY.column_order)
    assert [part.key for part in listed] == ["a", "external_owner"]


def test_another_spelling_of_the_platform_is_the_same_property() -> None:
    state = observed(properties={"delta.EnableInCommitTimestamps": "true"})
    assert as_model(ORDERS, state).table_properties == {}


def test_column_mapping_is_imported_where_names_or_the_files_owner_need_it() -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    spaced = observed(Column("order id", "bigint"), properties=mapped)
    model = as_model(ORDERS, spaced)
    assert model.table_properties == mapped
    assert not any(PlanValidator().model_violations([model]))
    inside = observed(Column("s", "struct<`a b`: int>"), properties=mapped)
    assert as_model(ORDERS, inside).table_properties == mapped


@pytest.mark.parametrize("key", [key for key in SET_BY_PLATFORM if not key.startswith("delta.feature.")])
def test_what_was_imported_earlier_and_is_removed_is_not_unset_where_the_platform_holds_it(key: str) -> None:
    former = orders(properties={key: SET_BY_PLATFORM[key]})
    state = observed(properties={**SET_BY_PLATFORM, **CATALOG_MANAGED})
    plan = TablePlanner().plan([orders()], catalog_of([orders()], state), records_of([former]))
    unset = [
        name
        for align in plan.align_tables
        for action in align.of_type(UnsetTableProperties)
        for name in entry_keys(action.entries)
    ]
    may_go = key.startswith(("delta.checkpoint.", "delta.randomize"))
    assert unset == ([key] if may_go else [])


LIKE_CATALOGS = ["external_owner", "externalId", "view.count", "spark.team", "transient_x", "serialization.x"]


@pytest.mark.parametrize("key", LIKE_CATALOGS)
def test_a_declared_property_is_set_changed_and_unset_whatever_its_prefix(key: str) -> None:
    model = orders(properties={key: "new"})
    assert not any(PlanValidator().model_violations([model]))
    for before in (observed(), observed(properties={key: "old"})):
        (align,) = TablePlanner().plan([model], catalog_of([model], before)).align_tables
        (change,) = align.of_type(SetTableProperties)
        assert [(entry.key, entry.desired) for entry in change.entries] == [(key, "new")]
    plan = TablePlanner().plan(
        [orders()],
        catalog_of([orders()], observed(properties={key: "new"})),
        records_of([model]),
    )
    (removal,) = plan.align_tables[0].of_type(UnsetTableProperties)
    assert removal.entries == (EntryChange(key, None, "new"),)


@pytest.mark.parametrize("key", ["option.path", "option.x"])
def test_a_property_that_delta_does_not_store_is_refused_in_the_model(key: str) -> None:
    (refusal,) = PlanValidator().model_violations([orders(properties={key: "1"})])
    assert f"property '{key}' is an option of Spark" in str(refusal)


@pytest.mark.parametrize(
    "feature",
    ["delta.feature.catalogManaged", "delta.feature.catalogmanaged", "delta.feature.catalogOwned-preview"],
)
def test_in_commit_timestamps_of_a_catalog_managed_table_are_as_declared_or_refused(feature: str) -> None:
    state = observed(properties={feature: "supported", "delta.enableInCommitTimestamps": "true"})
    on = orders(properties={"delta.enableInCommitTimestamps": "TRUE"})
    assert not TablePlanner().plan([on], catalog_of([on], state))
    off = orders(properties={"delta.enableInCommitTimestamps": "false"})
    plan = TablePlanner().plan([off], catalog_of([off], state))
    assert not [action for align in plan.align_tables for action in align.of_type(SetTableProperties)]
    (refusal,) = PlanValidator().plan_violations(plan)
    assert "a catalog-managed table needs delta.enableInCommitTimestamps: true" in str(refusal)


def test_in_commit_timestamps_of_other_tables_are_set_as_declared() -> None:
    model = orders(properties={"delta.enableInCommitTimestamps": "true"})
    (align,) = TablePlanner().plan([model], catalog_of([model], observed())).align_tables
    assert [action.key for action in align.of_type(EnableTableFeature)] == ["delta.enableInCommitTimestamps"]


@pytest.mark.parametrize("key", ["delta.feature.catalogManaged", "delta.feature.catalogOwned-preview"])
def test_an_existing_table_does_not_become_catalog_managed(key: str) -> None:
    model = orders(properties={key: "supported"})
    assert not TablePlanner().plan([model], catalog_of([model], observed(properties={key: "supported"})))
    plan = TablePlanner().plan([model], catalog_of([model], observed()))
    (refusal,) = PlanValidator().plan_violations(plan)
    assert "delta.feature.catalogManaged would make an existing table catalog-managed" in str(refusal)


def test_both_names_of_the_catalog_managed_feature_are_one() -> None:
    model = orders(properties={"delta.feature.catalogManaged": "supported"})
    state = observed(properties={"delta.feature.catalogOwned-preview": "supported"})
    assert not TablePlanner().plan([model], catalog_of([model], state))


def test_a_rewrite_keeps_what_can_be_set() -> None:
    """CREATE OR REPLACE drops the properties that it does not name."""
    kept = {"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true", "a": "b"}
    columns = (Column("id", "bigint"), Column("day", "date"))
    state = observed(*columns, properties={**SET_BY_PLATFORM, **CATALOG_MANAGED, **kept})
    model = orders(*columns, partitioned_by=["day"])
    (align,) = TablePlanner().plan([model], catalog_of([model], state)).align_tables
    (rewrite,) = align.of_type(RewriteTable)
    assert dict(rewrite.properties) == {
        **kept,
        "delta.checkpoint.writeStatsAsJson": "false",
        "delta.checkpoint.writeStatsAsStruct": "true",
        "delta.randomizeFilePrefixes": "true",
    }


def test_a_rewrite_keeps_what_the_model_declares_whatever_its_prefix() -> None:
    columns = (Column("id", "bigint"), Column("day", "date"))
    declared = dict.fromkeys(LIKE_CATALOGS, "1")
    state = observed(*columns, properties={**declared, "spark.sql.statistics.numRows": "7"})
    model = orders(*columns, partitioned_by=["day"], properties=declared)
    (align,) = TablePlanner().plan([model], catalog_of([model], state)).align_tables
    (rewrite,) = align.of_type(RewriteTable)
    assert dict(rewrite.properties) == declared
