"""Checks models that do not manage columns, which model rules skip, against the observed columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from delta_engine.errors import InvalidModelError
from delta_engine.models import Column, Part, Table
from delta_engine.state.states import CatalogState, TableState
from delta_engine.validation.constraint_rules import ChecksFit, ForeignKeysFit
from delta_engine.validation.governance_rules import ColumnMasksFit, RowFiltersFit
from delta_engine.validation.layout_rules import ClusteringColumnsFit
from delta_engine.validation.model_rules import PrimaryKeyColumnsNotNull

_RULES: Final = (
    PrimaryKeyColumnsNotNull(),
    ForeignKeysFit(),
    ChecksFit(),
    ClusteringColumnsFit(),
    RowFiltersFit(),
    ColumnMasksFit(),
)
"""The rules that read columns."""


def partial_model_violations(models: Sequence[Table], observed: CatalogState) -> Iterator[InvalidModelError]:
    """Yield the violations of models that do not manage columns; the snapshot covers all models."""
    if all(model.is_about(Part.COLUMNS) for model in models):
        return
    whole = [_with_columns(model, observed.table(model.qualified_name)) for model in models]
    for rule in _RULES:
        known = {_identity(refusal) for refusal in rule.check(models)}
        for refusal in rule.check(whole):
            if _identity(refusal) not in known:
                yield InvalidModelError(
                    refusal.reason,
                    table=refusal.table,
                    column=refusal.column,
                    location=refusal.location,
                    way_out="The model does not manage the columns: correct the model, or ask the owner of the table.",
                )


def _with_columns(model: Table, observed: TableState) -> Table:
    if model.is_about(Part.COLUMNS) or not observed.exists:
        return model
    masks = {column.key: column.mask for column in model.columns}
    columns = (
        Column(one.name, one.data_type, one.is_nullable, mask=masks.get(one.key)) for one in observed.columns
    )
    return replace(model, columns=tuple(columns), manages=None)


def _identity(refusal: InvalidModelError) -> tuple[str | None, str | None, str]:
    return refusal.table, refusal.column, refusal.reason
