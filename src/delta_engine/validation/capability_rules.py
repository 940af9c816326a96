"""Rules about the platform: they refuse what it cannot do, in models before any read, and in plans."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from delta_engine.actions import AlignTable, CreateTable, TablePlan
from delta_engine.actions.policy import Policy
from delta_engine.aspects import COLUMN_FACETS, TABLE_FACETS
from delta_engine.aspects.column_renames import ColumnRename
from delta_engine.aspects.storage import SetManaged, UnsetManaged
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.aspects.table_names import RenameTable
from delta_engine.backends.capabilities import NEEDED_TO_CREATE, Capabilities, Feature
from delta_engine.errors import UnsafePlanError
from delta_engine.models import Column, Table
from delta_engine.validation.rules import Problem, of_each_table, plan_refusal


@dataclass(frozen=True, slots=True)
class SupportedFeatures:
    """A model declares only what the environment's backend can do (docs/capabilities.md)."""

    capabilities: Capabilities

    @of_each_table
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse features that the platform refuses, with its reason, and values of properties."""
        for feature, column in declared_features(model):
            if feature in NEEDED_TO_CREATE:
                continue
            yield from undeclarable(feature, self.capabilities, column)
        for key, value in model.effective_table_properties.items():
            if value.lower() in self.capabilities.refused_values.get(key.lower(), ()):
                yield Problem(
                    f"property {key!r} is {value!r}, which the backend {self.capabilities.name} does not take",
                    "Leave it out, or take the value from a variable of the environment.",
                )


def undeclarable(
    feature: Feature, capabilities: Capabilities, column: Column | None = None
) -> Iterator[Problem]:
    """Yield the problem of a declared feature, with the platform's reason, if the platform refuses it."""
    if (reason := capabilities.refused.get(feature)) is not None:
        yield Problem(
            f"{feature.value} cannot be declared for the backend {capabilities.name}: {reason}",
            "Leave it out of the model, or out of this environment: backend.leave_out: "
            f"[{feature_name(feature)}].",
            column,
        )


@dataclass(frozen=True, slots=True)
class SupportedChanges:
    """A plan changes only what the environment's backend can change (docs/capabilities.md)."""

    capabilities: Capabilities

    def check(self, plan: TablePlan, _policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse changes that the platform refuses; a model may declare a feature if the plan does not change it."""
        for action, feature, column in _needed_features(plan):
            if (reason := self.capabilities.refusal(feature, action.table.catalog)) is not None:
                change, way_out = _CHANGES[feature]
                problem = f"{change}, which the backend {self.capabilities.name} cannot do: {reason}"
                yield plan_refusal(action, problem, way_out, column)


_MADE_BY_OTHERS = (
    "Create the table with Delta's DeltaTable builder (`generatedAlwaysAs`) and run again, or leave it out of this "
    "environment: backend.leave_out: "
)
_CHANGES: Mapping[Feature, tuple[str, str]] = {
    Feature.COLUMN_RENAMES: ("it would be renamed", "Keep the former name in the model."),
    Feature.TABLE_RENAMES: ("it would be renamed", "Keep the former name in the model."),
    Feature.MANAGED_CONVERSION: (
        "it would become a managed table",
        "Declare its location as it is.",
    ),
    **{
        feature: (f"it would be created with {feature.value}", f"{_MADE_BY_OTHERS}[{feature.name.lower()}].")
        for feature in NEEDED_TO_CREATE
    },
    Feature.STREAMING_TABLES: (
        "tags or column comments of a streaming table would change",
        "Use `backend: {type: databricks-warehouse}` in this environment, or leave tags and column comments to the "
        "pipeline that makes the table.",
    ),
}
"""What a plan does, and its alternative."""


_Needed: TypeAlias = tuple[CreateTable | AlignTable, Feature, Column | str | None]


def _needed_features(plan: TablePlan) -> Iterator[_Needed]:
    """Yield the features that a plan needs and that a model may declare anyhow: each with its action and column."""
    for create in plan.create_tables:
        for feature, column in declared_features(create.desired):
            if feature in NEEDED_TO_CREATE:
                yield create, feature, column
    for align in plan.align_tables:
        for changed, path in _changed_features(align):
            yield align, changed, path


def _changed_features(align: AlignTable) -> Iterator[tuple[Feature, str | None]]:
    """Yield the platform-dependent features that a table's changes need, each with its column."""
    for column in align.of_type(ColumnRename):
        yield Feature.COLUMN_RENAMES, ".".join((*column.inside, column.desired))
    if align.of_type(RenameTable):
        yield Feature.TABLE_RENAMES, None
    if any(isinstance(action, SetManaged | UnsetManaged) for action in align.actions):
        yield Feature.MANAGED_CONVERSION, None
    # Every runtime has COMMENT ON TABLE, also for streaming tables.
    if align.is_streaming and len(align.of_type(SetTableComment)) < len(align.actions):
        yield Feature.STREAMING_TABLES, None


def feature_name(feature: Feature) -> str:
    """Return the name of a feature in a configuration: `row_filters`."""
    return feature.name.lower()


def without_features(model: Table, features: Collection[Feature]) -> Table:
    """Return a model without some of the features that `declared_features` yields."""
    table = {facet.attribute: facet.absent for facet in TABLE_FACETS if facet.feature in features}
    column = {facet.attribute: facet.absent for facet in COLUMN_FACETS if facet.feature in features}
    if column:
        table["columns"] = tuple(replace(one, **column) for one in model.columns)
    return replace(model, **table) if table else model


_COLUMN_FACETS = tuple(facet for facet in COLUMN_FACETS if facet.feature is not None)


def declared_features(model: Table) -> Iterator[tuple[Feature, Column | None]]:
    """Yield the platform-dependent features of a model, each with its column."""
    for facet in TABLE_FACETS:
        if facet.feature is not None and facet.is_declared(model):
            yield facet.feature, None
    for column in model.columns:
        for one in _COLUMN_FACETS:
            if one.feature is not None and one.is_declared(column):
                yield one.feature, column
