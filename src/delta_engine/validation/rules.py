"""What a rule is, and what rules share: refusals, walks over models and plans, and checks of names.

A rule yields refusals with reason and way out. The validator raises the first or lists all. A new rule is a class with
`check`, an entry in `validator`, and its test cases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from delta_engine.actions import AlignTable, CreateTable, SomeAction, TablePlan
from delta_engine.actions.policy import Policy
from delta_engine.errors import InvalidModelError, UnsafePlanError
from delta_engine.models import Column, Part, Table
from delta_engine.models.constraints import MAX_NAME_LENGTH

FORBIDDEN_IN_NAMES: Final = re.compile(r"[\s./`\x00-\x1f\x7f-\x9f]|\$\{")
"""Characters that Unity Catalog does not store in the names of catalogs, schemas, tables and constraints."""


class ModelRule(Protocol):
    """A check of declared tables."""

    def check(self, models: Sequence[Table]) -> Iterable[InvalidModelError]:
        """Yield a refusal per violation."""
        ...


class PlanRule(Protocol):
    """A check of a plan before it runs."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterable[UnsafePlanError]:
        """Yield a refusal per violation that the policy does not allow."""
        ...


def model_refusal(
    model: Table, reason: str, way_out: str, column: Column | str | None = None
) -> InvalidModelError:
    """Return the refusal of a model, located at `column`, which may be the name of an undeclared column."""
    name = column.name if isinstance(column, Column) else column
    named = (one for one in model.columns if name is not None and one.key == name.lower())
    found = column if isinstance(column, Column) else next(named, None)
    return InvalidModelError(
        reason,
        table=str(model.qualified_name),
        column=name,
        location=(found.declared_at if found else None) or model.declared_at,
        way_out=way_out,
    )


def plan_refusal(
    action: CreateTable | AlignTable, reason: str, way_out: str = "", column: str | None = None
) -> UnsafePlanError:
    """Return the refusal of an action; `column` may be the dotted path of a field."""
    return UnsafePlanError(
        reason, table=str(action.table), column=column, location=action.declared_at, way_out=way_out
    )


def columns_of(models: Iterable[Table]) -> Iterator[tuple[Table, Column]]:
    """Yield every column with its model."""
    return ((model, column) for model in models for column in model.columns)


def planned(plan: TablePlan, action_type: type[SomeAction]) -> Iterator[tuple[AlignTable, SomeAction]]:
    """Yield every action of a type on an existing table, with the alignment of the table."""
    return ((align, action) for align in plan.align_tables for action in align.of_type(action_type))


def name_problem(name: str, forbidden: re.Pattern[str] = FORBIDDEN_IN_NAMES) -> str:
    """Return the problem of a name; empty if it has none. By default the name is that of a table or a schema."""
    if not name:
        return "is empty"
    if len(name) > MAX_NAME_LENGTH:
        return f"is longer than {MAX_NAME_LENGTH} characters"
    found = forbidden.search(name)
    return f"has a character that is not allowed here: {found[0]!r}" if found else ""


def unfit_key_columns(model: Table) -> tuple[list[str], list[str]]:
    """Return the (missing, nullable) columns of a model's key; both empty if the model does not manage columns."""
    if model.primary_key is None or not model.is_about(Part.COLUMNS):
        return [], []
    by_key = {column.key: column for column in model.columns}
    names = model.primary_key.columns
    missing = [name for name in names if name.lower() not in by_key]
    nullable = [name for name in names if name.lower() in by_key and by_key[name.lower()].is_nullable]
    return missing, nullable
