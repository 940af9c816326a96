"""Plans models, and refuses those that conflict with existing relations or other tables of the plan.

These checks are no rules, because they need the models, the observed state and the plan together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

from delta_engine.actions import TablePlan
from delta_engine.errors import InvalidModelError, raise_all
from delta_engine.models import Table
from delta_engine.state.states import CatalogState
from delta_engine.validation.conflicts import conflicts
from delta_engine.validation.dependents import blocked_columns
from delta_engine.validation.referenced_parents import unfit_parents
from delta_engine.validation.unsupported_relations import unsupported_relations


def checked_plan(models: Sequence[Table], state: CatalogState, planned: Callable[[], TablePlan]) -> TablePlan:
    """Return a plan of models that fit the existing relations.

    `planned` relies on this fit and is called only then. One misfit raises InvalidModelError, several raise
    RefusalGroup.
    """
    refused = [(model.key, refusal) for model in models for refusal in unsupported_relations(model, state)]
    raise_all(refusal for _, refusal in sorted(refused, key=itemgetter(0)))
    plan = planned()
    by_key = {model.key: model for model in models}
    raise_all(_column_refusals(plan, by_key, state))
    raise_all(unfit_parents(plan, by_key, state))
    return plan


def _column_refusals(
    plan: TablePlan, models: dict[str, Table], state: CatalogState
) -> Iterator[InvalidModelError]:
    for align in plan.align_tables:
        model, observed = models[align.table.key], state.tables[align.table.key]
        yield from conflicts(model, observed, align.actions)
        yield from blocked_columns(model, observed, align.actions)
