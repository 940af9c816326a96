"""Why the platform may refuse models that no rule refuses: its own parser knows more than the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from delta_engine.actions import TablePlan
from delta_engine.aspects import redefines
from delta_engine.models import Function, Securable, View
from delta_engine.sql.function_bodies import body_doubt
from delta_engine.validation.view_rules import view_doubts


def model_doubts(models: Iterable[Securable]) -> Iterator[str]:
    """Yield the doubts about bodies of functions and queries of views, each with the place of its model."""
    for model in models:
        place = f"{model.declared_at}: " if model.declared_at else ""
        for doubt in _doubts(model):
            yield f"{place}{model.qualified_name.kind} {model.qualified_name}: {doubt}"


def plan_doubts(plan: TablePlan, models: Iterable[Securable]) -> Iterator[str]:
    """Yield the doubts about what a plan creates, and about bodies and queries that it changes."""
    changed = {change.name for change in plan.changes if redefines(change)}
    return model_doubts(model for model in models if model.qualified_name in changed)


def _doubts(model: Securable) -> Iterator[str]:
    if isinstance(model, Function) and (doubt := body_doubt(model)):
        yield f"{doubt}, so the platform may refuse it"
    if isinstance(model, View):
        yield from view_doubts(model)
