"""The rule that knows the platform: what it cannot do is refused before anything is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from delta_engine.capabilities import Capabilities, Feature
from delta_engine.errors import InvalidModelError
from delta_engine.models import Column, Table


@dataclass(frozen=True, slots=True)
class SupportedFeatures:
    """A model declares only what the environment's backend can do (docs/capabilities.md)."""

    capabilities: Capabilities

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse what the platform refuses, with its reason."""
        for model in models:
            for feature, column in declared_features(model):
                reason = self.capabilities.refused.get(feature)
                if reason is not None:
                    yield InvalidModelError(
                        f"{feature.value} cannot be declared for the backend {self.capabilities.name}: {reason}",
                        table=str(model.qualified_name),
                        column=column.name if column else None,
                        location=(column.declared_at if column else None) or model.declared_at,
                        way_out="Leave it out here, or declare it for an environment whose backend has it.",
                    )


def declared_features(model: Table) -> Iterator[tuple[Feature, Column | None]]:
    """Yield which of the features that some platform lacks a model declares, and on which column."""
    for feature, is_declared in (
        (Feature.AUTOMATIC_CLUSTERING, model.clusters_automatically),
        (Feature.TAGS, bool(model.tags)),
        (Feature.ROW_FILTERS, model.row_filter is not None),
        (Feature.OWNERS, model.owner is not None),
        (Feature.GRANTS, bool(model.grants)),
        (Feature.EXTERNAL_TABLES, model.location is not None),
        (Feature.TABLE_RENAMES, model.renamed_from is not None),
    ):
        if is_declared:
            yield feature, None
    for column in model.columns:
        for feature, is_declared in (
            (Feature.GENERATED_COLUMNS, column.generated_as is not None),
            (Feature.IDENTITY_COLUMNS, column.identity is not None),
            (Feature.TAGS, bool(column.tags)),
            (Feature.COLUMN_MASKS, column.mask is not None),
        ):
            if is_declared:
                yield feature, column
