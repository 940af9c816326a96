"""What a rule is, and what rules share: refusals, walks over models and plans, and checks of names.

A rule yields refusals with reason and way out. The validator raises the first or lists all. A new rule is a class with
`check`, an entry in `validator`, and its test cases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from delta_engine.actions import Align, AlignTable, Create, Drop, SomeAction, TablePlan
from delta_engine.actions.policy import DestructiveKind, NeededConsent, Policy
from delta_engine.errors import InvalidModelError, RefusedError, SourceLocation, UnsafePlanError
from delta_engine.models import (
    Column,
    Part,
    PolicyName,
    Securable,
    SecurableName,
    Table,
    of_kind,
    subject,
)
from delta_engine.models.constraints import MAX_NAME_LENGTH
from delta_engine.sql.function_bodies import call_cycles
from delta_engine.telemetry.context import spoken
from delta_engine.telemetry.visible import code_points

FORBIDDEN_IN_NAMES: Final = re.compile(r"[\s./`\x00-\x1f\x7f-\x9f]|\$\{")
"""Characters that Unity Catalog does not store in the names of catalogs, schemas, tables and constraints."""

ALLOWED_IN_NAMES: Final = (
    f"A name has 1 to {MAX_NAME_LENGTH} characters, such as letters, digits, underscores and hyphens. Spaces, periods, "
    "slashes, backticks, control characters and ${ are not allowed."
)


_Rule = TypeVar("_Rule")
SomeModel = TypeVar("SomeModel", bound=Securable)


class ModelRule(Protocol):
    """A check of declared models of all kinds.

    A rule with `needs_all_models = True` judges only models of which no file was left out. One with
    `about = (Function, "mask")` judges only models among which is a function, or that declare a mask, themselves or for
    a column.
    """

    def check(self, models: Sequence[Securable]) -> Iterable[InvalidModelError]:
        """Yield a refusal per violation."""
        ...


class PlanRule(Protocol):
    """A check of a plan before it runs.

    A rule with `needs_costs = True` judges plans only once the costs of their tables are known, and one with
    `about = (Drop,)` only plans that drop something.
    """

    def check(self, plan: TablePlan, policy: Policy) -> Iterable[UnsafePlanError]:
        """Yield a refusal per violation that the policy does not allow."""
        ...


def model_refusal(
    model: Securable, reason: str, way_out: str, column: Column | str | None = None
) -> InvalidModelError:
    """Return the refusal of a model, located at `column`, which may be the name of an undeclared column."""
    name = column.name if isinstance(column, Column) else column
    columns = model.columns if isinstance(model, Table) else ()
    named = (declared for declared in columns if name is not None and declared.key == name.lower())
    place = column if isinstance(column, Column) else next(named, None)
    return InvalidModelError(
        reason,
        **subject(model.qualified_name),
        column=name,
        location=(place.declared_at if place else None) or model.declared_at,
        way_out=way_out,
    )


def table_refusal(model: Table, reason: str, way_out: str, column: Column | str | None) -> InvalidModelError:
    """Return the refusal of a model, located at its table because the column exists already."""
    name = column.name if isinstance(column, Column) else column
    return InvalidModelError(
        reason, table=str(model.qualified_name), column=name, location=model.declared_at, way_out=way_out
    )


DEFAULTS_FILL_NO_ROWS: Final = "a default fills only rows that are written later"
"""Databricks documentation, "ALTER TABLE … COLUMN clause"."""


def quoted_text(text: str) -> str:
    """Return a text in double quotes, as YAML, JSON and Python read it."""
    return json.dumps(text, ensure_ascii=False)


class ConsentRefusal(UnsafePlanError):
    """A plan changes what needs consent, and does not have it.

    Args:
        needed: the changes without consent.
    """

    def __init__(
        self,
        reason: str,
        *,
        table: str | None = None,
        securable: str | None = None,
        column: str | None = None,
        location: SourceLocation | None = None,
        way_out: str,
        needed: tuple[NeededConsent, ...],
    ) -> None:
        self.needed = needed
        super().__init__(
            reason, table=table, securable=securable, column=column, location=location, way_out=way_out
        )


def plan_refusal(
    action: Create[Any] | Align[Any] | Drop[Any],
    reason: str,
    way_out: str,
    column: Column | str | None = None,
    needed: tuple[NeededConsent, ...] = (),
) -> UnsafePlanError:
    """Return the refusal of an action, located at its column; `column` may be the dotted path of a field."""
    name = column.name if isinstance(column, Column) else column
    about, location = subject(action.name), _place(action, name) or action.declared_at
    if needed:
        return ConsentRefusal(reason, **about, column=name, location=location, way_out=way_out, needed=needed)
    return UnsafePlanError(reason, **about, column=name, location=location, way_out=way_out)


def _place(action: Create[Any] | Align[Any] | Drop[Any], column: str | None) -> SourceLocation | None:
    """Return the place of a declared column, or of the column that contains a field."""
    columns = action.columns if column is not None else ()
    name, places = (column or "").lower(), {column.key: column.declared_at for column in columns}
    return places.get(name) or places.get(name.partition(".")[0])


class Problem(NamedTuple):
    """What is wrong, the fix, the column if the problem concerns a column, and the consent that would allow it."""

    reason: str
    way_out: str
    column: Column | str | None = None
    needed: tuple[NeededConsent, ...] = ()


def of_each(
    model_type: type[SomeModel],
) -> Callable[
    [Callable[[_Rule, SomeModel], Iterable[Problem]]],
    Callable[[_Rule, Sequence[Securable]], Iterator[InvalidModelError]],
]:
    """Make the problems of one model of a kind the check of a rule."""

    def made(
        problems: Callable[[_Rule, SomeModel], Iterable[Problem]],
    ) -> Callable[[_Rule, Sequence[Securable]], Iterator[InvalidModelError]]:
        def check(rule: _Rule, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
            for model in of_kind(model_type, models):
                for reason, way_out, column, _ in problems(rule, model):
                    yield model_refusal(model, reason, way_out, column)

        return check

    return made


def unfit_names(*names: str) -> Iterator[Problem]:
    """Yield the parts of the name of a function, a policy or a view that Unity Catalog does not store."""
    for name in names:
        if problem := name_problem(name):
            yield Problem(f"its name {name!r} {problem}", ALLOWED_IN_NAMES)


def circle_refusals(
    models: Iterable[SomeModel], needs: Callable[[SomeModel], Iterable[SecurableName]], verb: str
) -> Iterator[InvalidModelError]:
    """Yield the refusal of each circle of models that need each other, at its first one by name.

    Args:
        verb: what a model does to those that it needs.
    """
    by_key = {model.key: model for model in models}
    for circle in call_cycles({key: {name.key for name in needs(model)} for key, model in by_key.items()}):
        reason = f"it {verb}s itself" if len(circle) == 1 else f"{' and '.join(circle)} {verb} each other"
        yield model_refusal(by_key[circle[0]], reason, f"Remove one of the {verb}s.")


def of_each_column(
    problems: Callable[[_Rule, Table, Column], Iterable[Problem]],
) -> Callable[[_Rule, Sequence[Securable]], Iterator[InvalidModelError]]:
    """Make the problems of one column the check of a rule."""

    def check(rule: _Rule, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        for model in of_kind(Table, models):
            for column in model.columns:
                for reason, way_out, *_ in problems(rule, model, column):
                    yield model_refusal(model, reason, way_out, column)

    return check


def of_each_alignment(
    problems: Callable[[_Rule, AlignTable, Policy], Iterable[Problem]],
) -> Callable[[_Rule, TablePlan, Policy], Iterator[UnsafePlanError]]:
    """Make the problems of one changed securable the check of a rule."""

    def check(rule: _Rule, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        for align in plan.alignments:
            for problem in problems(rule, align, policy):
                yield plan_refusal(align, *problem)

    return check


def of_each_action(
    action_type: type[SomeAction],
) -> Callable[
    [Callable[[_Rule, SomeAction], Iterable[Problem]]],
    Callable[[_Rule, TablePlan, Policy], Iterator[UnsafePlanError]],
]:
    """Make the problems of one action on an existing securable the check of a rule."""

    def made(
        problems: Callable[[_Rule, SomeAction], Iterable[Problem]],
    ) -> Callable[[_Rule, TablePlan, Policy], Iterator[UnsafePlanError]]:
        def check(rule: _Rule, plan: TablePlan, _policy: Policy) -> Iterator[UnsafePlanError]:
            for align in plan.alignments:
                for action in align.of_type(action_type):
                    for problem in problems(rule, action):
                        yield plan_refusal(align, *problem)

        return check

    return made


def name_problem(name: str, forbidden: re.Pattern[str] = FORBIDDEN_IN_NAMES) -> str:
    """Return the problem of a name; empty without a problem. By default the name is that of a table or a schema."""
    if not name:
        return "is empty"
    if len(name) > MAX_NAME_LENGTH:
        return f"is longer than {MAX_NAME_LENGTH} characters"
    character = forbidden.search(name)
    return f"has a character that is not allowed here: {character[0]!r}" if character else ""


def look_alike(name: str, other: str) -> str:
    """Return the problem of a name that looks like another one, with the code points of both."""
    return f"looks like {code_points(other)}, but is {code_points(name)}"


def unfit_key_columns(model: Table) -> Iterator[Problem]:
    """Yield what is wrong with the columns of a model's key; nothing if the model does not manage columns."""
    if model.primary_key is None or not model.is_about(Part.COLUMNS):
        return
    by_key = {column.key: column for column in model.columns}
    names = model.primary_key.columns
    if missing := [name for name in names if name.lower() not in by_key]:
        reason = f"primary key columns ({', '.join(missing)}) are not columns of the table"
        yield Problem(reason, "Declare them, or correct the key.", missing[0])
    if nullable := [name for name in names if name.lower() in by_key and by_key[name.lower()].is_nullable]:
        reason = f"primary key columns ({', '.join(nullable)}) are nullable"
        yield Problem(reason, "Declare them with nullable: false (is_nullable=False).", nullable[0])


def without_consent(
    kind: DestructiveKind, table: SecurableName, parts: Iterable[str], policy: Policy
) -> tuple[NeededConsent, ...]:
    """Return the consents that changes of parts need and do not have, each once."""
    needed = dict.fromkeys(part for part in parts if not policy.allows(kind, table, part))
    return tuple(NeededConsent(kind=kind, securable=table, part=part) for part in needed)


def needed_by(refusals: Iterable[RefusedError]) -> tuple[NeededConsent, ...]:
    """Return the consents without which a plan is refused, each once."""
    lacking = (refusal for refusal in refusals if isinstance(refusal, ConsentRefusal))
    return tuple(dict.fromkeys(change for refusal in lacking for change in refusal.needed))


def consent(kind: DestructiveKind, name: SecurableName) -> str:
    """Return how to allow a kind of change on a securable."""
    allowed = f"{kind.value}:{name.dotted if isinstance(name, PolicyName) else name}"
    once = spoken(f"--allow {allowed} for one run", f'allow=["{allowed}"] for one call')
    return f"{once}, policy.allow: [{kind.value}] for the environment."
