"""Rules about the platform: they refuse what it cannot do, in models before any read, and in plans."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from delta_engine.actions import AlignTable, TablePlan
from delta_engine.actions.policy import Policy
from delta_engine.aspects import COLUMN_FACETS, TABLE_FACETS
from delta_engine.aspects.column_renames import ColumnRename
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.aspects.table_names import RenameTable
from delta_engine.backends.capabilities import Capabilities, Feature
from delta_engine.errors import InvalidModelError, UnsafePlanError
from delta_engine.models import Column, Table
from delta_engine.validation.rules import plan_refusal


@dataclass(frozen=True, slots=True)
class SupportedFeatures:
    """A model declares only what the environment's backend can do (docs/capabilities.md)."""

    capabilities: Capabilities

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse features that the platform refuses, with its reason."""
        for model in models:
            for feature, column in declared_features(model):
                reason = self.capabilities.refused.get(feature)
                if reason is not None:
                    yield InvalidModelError(
                        f"{feature.value} cannot be declared for the backend {self.capabilities.name}: {reason}",
                        table=str(model.qualified_name),
                        column=column.name if column else None,
                        location=(column.declared_at if column else None) or model.declared_at,
                        way_out=f"Leave it out of the model, or out of this environment: backend.leave_out: "
                        f"[{feature_name(feature)}].",
                    )


@dataclass(frozen=True, slots=True)
class SupportedChanges:
    """A plan changes only what the environment's backend can change (docs/capabilities.md)."""

    capabilities: Capabilities

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse changes that the platform refuses; a model may declare a feature if the plan does not change it."""
        for align in plan.align_tables:
            for feature, column in _changed_features(align):
                reason = self.capabilities.refusal(feature, align.table.catalog)
                if reason is not None:
                    change, way_out = _CHANGES[feature]
                    backend = self.capabilities.name
                    yield plan_refusal(
                        align, f"{change}, which the backend {backend} cannot do: {reason}", way_out, column
                    )


_CHANGES: Mapping[Feature, tuple[str, str]] = {
    Feature.COLUMN_RENAMES: ("it would be renamed", "Keep the former name in the model."),
    Feature.TABLE_RENAMES: ("it would be renamed", "Keep the former name in the model."),
    Feature.STREAMING_TABLES: (
        "tags or column comments of a streaming table would change",
        "Use `backend: {type: databricks-warehouse}` in this environment, or leave tags and column comments to the "
        "pipeline that makes the table.",
    ),
}
"""What a plan does, and its alternative."""


def _changed_features(align: AlignTable) -> Iterator[tuple[Feature, str | None]]:
    """Yield the platform-dependent features that a table's changes need, each with its column."""
    for column in align.of_type(ColumnRename):
        yield Feature.COLUMN_RENAMES, ".".join((*column.inside, column.desired))
    if align.of_type(RenameTable):
        yield Feature.TABLE_RENAMES, None
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
