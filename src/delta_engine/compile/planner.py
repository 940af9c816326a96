"""The planner: the smallest set of actions that brings the catalog to the models. Pure and deterministic."""

from __future__ import annotations

from collections.abc import Sequence

from delta_engine import aspects
from delta_engine.actions import AlignTable, CreateSchema, CreateTable, TablePlan
from delta_engine.aspects.aspect import Comparison
from delta_engine.models import Table
from delta_engine.state.states import CatalogState


class TablePlanner:
    """Compares models with the observed state."""

    def plan(self, models: Sequence[Table], state: CatalogState) -> TablePlan:
        """Return what has to be done; empty when the catalog matches.

        Args:
            models: the declared tables, in any order.
            state: a snapshot that was taken for these models.

        Raises:
            KeyError: the snapshot does not cover a model.
        """
        creates: list[CreateTable] = []
        aligns: list[AlignTable] = []
        for model in sorted(models, key=lambda model: model.qualified_name.key):
            observed = state.table(model.qualified_name)
            if not observed.exists:
                creates.append(CreateTable(model))
                continue
            actions = tuple(aspects.diff(Comparison.of(model, observed)))
            if actions:
                aligns.append(AlignTable(model.qualified_name, actions, model.location))
        return TablePlan(
            create_tables=tuple(creates),
            align_tables=tuple(aligns),
            create_schemas=tuple(CreateSchema(*pair) for pair in sorted(state.missing_schemas)),
        )
