"""The default rules for functions, and for masks and filters that call declared ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from delta_engine.actions import Align, Drop, TablePlan
from delta_engine.actions.policy import DestructiveKind, NeededConsent, Policy
from delta_engine.aspects.function_definition import ReplaceFunction
from delta_engine.aspects.policy_definition import ReplacePolicy
from delta_engine.aspects.policy_reach import function_key
from delta_engine.errors import InvalidModelError, UnsafePlanError
from delta_engine.models import Function, FunctionLanguage, FunctionName, Parameter, Securable, Table, of_kind
from delta_engine.models.functions import repeated_parameters
from delta_engine.models.types import AtomicType, CharacterType, DataType, DecimalType, is_same_type
from delta_engine.sql.expressions import referenced_columns, row_problem
from delta_engine.sql.function_bodies import body_problem, called_functions
from delta_engine.sql.functions import sql_drop_function
from delta_engine.sql.text import shown_type
from delta_engine.telemetry.visible import counted
from delta_engine.validation.governance_rules import TagsWithinLimits, rights_problems
from delta_engine.validation.rules import (
    Problem,
    circle_refusals,
    consent,
    model_refusal,
    name_problem,
    of_each,
    of_each_action,
    of_each_alignment,
    plan_refusal,
    unfit_names,
)

PRIVILEGES: Final = frozenset({"ALL PRIVILEGES", "APPLY TAG", "EXECUTE", "MANAGE"})
"""The privileges of functions (docs: "Unity Catalog privileges reference")."""

_NO_PARAMETER: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]|\$\{")
"""Quoted names may have every other character (measured, Spark 4.1.1)."""


class FunctionsFit:
    """Names, body, parameters, tags, owner and grants of a function are ones that Unity Catalog can take."""

    @of_each(Function)
    def check(self, model: Function) -> Iterator[Problem]:
        """Refuse what fails on every platform. Invalid SQL is a warning: the platform's own parser knows more."""
        yield from unfit_names(model.catalog_name, model.schema_name, model.function_name)
        if problem_of_body := body_problem(model):
            yield Problem(*problem_of_body)
        for reason, fix, _ in repeated_parameters(model.parameters):
            yield Problem(reason, fix)
        for parameter in model.parameters:
            yield from _parameter_problems(parameter)
        yield from _default_order(model.parameters)
        yield from TagsWithinLimits().of_model(model)
        yield from rights_problems(model, PRIVILEGES)


class NoCircularCalls:
    """No function calls itself, alone or in a circle."""

    about: ClassVar = (Function,)

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse each circle at its first function by name."""
        yield from circle_refusals(of_kind(Function, models), called_functions, "call")


class FunctionsFitTheirUses:
    """Declared functions of masks and row filters take and return the types of the columns."""

    about: ClassVar = (Function,)

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse what Databricks refuses only when the table is read."""
        functions = {function.key: function for function in of_kind(Function, models)}
        for table in of_kind(Table, models):
            for reason, way_out, column, _ in use_problems(table, functions):
                yield model_refusal(table, reason, way_out, column)


class NoUnallowedProtectionChanges:
    """Another body of a function in use, and a policy that may hide less, need consent: readers see something else.

    Masks, row filters and policies use functions. A policy hides no less if it only gets more principals in `to`, or
    fewer in `except`.
    """

    @of_each_alignment
    def check(self, align: Align[Any], policy: Policy) -> Iterator[Problem]:
        """Refuse such changes without consent, and name the columns and tables, or the principals."""
        kind = DestructiveKind.CHANGE_PROTECTION
        if policy.allows(kind, align.name):
            return
        for reason in (*_other_bodies(align), *_looser_policies(align)):
            needed = (NeededConsent(kind=kind, securable=align.name),)
            yield Problem(reason, f"Allow it: {consent(kind, align.name)}", needed=needed)


def _other_bodies(align: Align[Any]) -> Iterator[str]:
    for replaced in align.of_type(ReplaceFunction):
        places = [str(use) for use in replaced.uses if use.is_before and use.is_after]
        places += replaced.read_by
        if places and replaced.changes_body:
            yield f"its new body would change what readers see of {_listed(places)}"


def _looser_policies(align: Align[Any]) -> Iterator[str]:
    for replaced in align.of_type(ReplacePolicy):
        reasons = []
        if replaced.released:
            reasons.append(f"it would no longer hide anything from {', '.join(replaced.released)}")
        if parts := " and ".join(replaced.loosened_parts):
            reasons.append(f"its new {parts} may show more to its principals")
        if reasons:
            yield ", and ".join(reasons)


class NoChangedSignatures:
    """A function keeps the types of its parameters, and of its result while a mask, a filter or a policy uses it."""

    @of_each_action(ReplaceFunction)
    def check(self, replaced: ReplaceFunction) -> Iterator[Problem]:
        """Refuse what CREATE OR REPLACE refuses (docs: "CREATE FUNCTION"), and what breaks its uses."""
        desired, observed = replaced.desired, replaced.observed
        uses = (*map(str, replaced.uses), *replaced.read_by)
        used = f", and it is used by {_listed(uses)}" if uses else ""
        if replaced.changes_signature:
            types = (_shown_types(observed.signature), _shown_types(desired.signature))
            reason = f"its parameters would change from ({types[0]}) to ({types[1]})"
            by_hand = f"Give it another name, or drop it first: {sql_drop_function(desired.qualified_name)}."
            yield Problem(f"{reason}{used}", _IN_THREE_STEPS if used else by_hand)
        elif replaced.changes_result and uses and observed.returns is not None:
            result = f"from {shown_type(observed.returns)} to {shown_type(desired.returns)}"
            yield Problem(f"its result would change {result}{used}", _IN_THREE_STEPS)


_IN_THREE_STEPS: Final = (
    "Declare a function of another name, and sync. Let masks, filters and policies use it, and sync. Then remove this "
    "function."
)

_MOST_PLACES: Final = 10


def _listed(places: Iterable[str]) -> str:
    """Return the places of uses, the first ones by name."""
    names = [*places]
    more = len(names) - _MOST_PLACES
    return ", ".join(names[:_MOST_PLACES]) + (f" and {counted(more, 'other place')}" if more > 0 else "")


def _shown_types(types: Iterable[DataType]) -> str:
    return ", ".join(map(shown_type, types))


class NoDropOfUsedFunctions:
    """A function is dropped only if nothing uses it after the plan."""

    about: ClassVar = (Drop,)

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse drops under masks, filters, policies and other functions, also of others; no consent allows them."""
        for drop in plan.of_kind(Drop, FunctionName.kind):
            if drop.used_by:
                reason = f"it would be dropped, and it is used by {_listed(drop.used_by)}"
                yield plan_refusal(drop, reason, "Detach it there first, or declare it again.")


def use_problems(table: Table, functions: Mapping[str, Function]) -> Iterator[Problem]:
    """Yield the masks and the row filter of a table whose declared functions do not fit; `functions` is by key.

    Functions that no model declares are the platform's to judge (docs: "Manually apply row filters and column masks",
    "QUERIED_TABLE_INCOMPATIBLE_WITH_COLUMN_MASK_POLICY error class").
    """
    name, types = table.qualified_name, {column.key: column.data_type for column in table.columns}
    if table.row_filter is not None:
        function = functions.get(function_key(table.row_filter.function, name))
        if function is not None:
            taken = [types[name.lower()] for name in table.row_filter.columns if name.lower() in types]
            yield from _language_problem(function, "its row filter")
            yield from filter_problems(function, taken, "its row filter")
    for column in table.columns:
        function = None if column.mask is None else functions.get(function_key(column.mask.function, name))
        if column.mask is not None and function is not None:
            names = map(str.lower, column.mask.using_columns)
            taken = [column.data_type, *(types[name] for name in names if name in types)]
            problems = (*_language_problem(function, "its mask"), *mask_problems(function, taken, "its mask"))
            yield from (problem._replace(column=column) for problem in problems)


def mask_problems(function: Function, arguments: Sequence[DataType], what: str) -> Iterator[Problem]:
    """Yield why a function cannot mask a column; the first argument is the column."""
    yield from _call_problems(function, arguments, what)
    first = function.parameters[0].data_type if function.parameters else None
    if first is not None and not is_same_type(first, function.returns):
        name, returned = function.qualified_name, shown_type(function.returns)
        reason = f"{what} {name} takes {shown_type(first)} and returns {returned}"
        yield Problem(reason, "Return the type of its first parameter.")


def filter_problems(function: Function, arguments: Sequence[DataType], what: str) -> Iterator[Problem]:
    """Yield why a function cannot filter rows."""
    yield from _call_problems(function, arguments, what)
    if function.returns != AtomicType("boolean"):
        reason = f"{what} {function.qualified_name} returns {shown_type(function.returns)}"
        yield Problem(reason, "Return boolean.")


def fits(argument: DataType, parameter: DataType) -> bool:
    """Whether an argument of a type converts to a parameter's type implicitly."""
    if is_same_type(argument, parameter):
        return True
    match argument, parameter:
        case CharacterType(), AtomicType("string"):
            return True
        case AtomicType(smaller), AtomicType(larger) if smaller in _WIDENING and larger in _WIDENING:
            return _WIDENING.index(smaller) < _WIDENING.index(larger)
        case DecimalType(precision, scale), DecimalType(other, other_scale):
            return other_scale >= scale and other - other_scale >= precision - scale
        case AtomicType("date"), AtomicType("timestamp" | "timestamp_ntz"):
            return True
    return False


_WIDENING: Final = ("tinyint", "smallint", "int", "bigint", "float", "double")
"""Each converts implicitly to those after it (docs: "SQL data type rules")."""


def _language_problem(function: Function, what: str) -> Iterator[Problem]:
    if function.language is not FunctionLanguage.SQL:
        name = function.qualified_name
        reason = f"{what} {name} is a Python function, and Databricks accepts only SQL functions there"
        yield Problem(reason, "Write a SQL function that calls it.")


def _call_problems(function: Function, arguments: Sequence[DataType], what: str) -> Iterator[Problem]:
    name, parameters = function.qualified_name, function.parameters
    fewest = sum(parameter.default is None for parameter in parameters)
    if not fewest <= len(arguments) <= len(parameters):
        takes = len(parameters) if fewest == len(parameters) else f"{fewest} to {len(parameters)}"
        yield Problem(
            f"{what} {name} gets {counted(len(arguments), 'argument')} but takes {takes}",
            "Name as many columns as the function has parameters.",
        )
        return
    for argument, parameter in zip(arguments, parameters, strict=False):
        if not fits(argument, parameter.data_type):
            reason = (
                f"{what} {name} takes {shown_type(parameter.data_type)} as {parameter.name}, but gets "
                f"{shown_type(argument)}"
            )
            yield Problem(reason, "Change the type of the parameter, or use another function.")


def _parameter_problems(parameter: Parameter) -> Iterator[Problem]:
    if problem := name_problem(parameter.name, _NO_PARAMETER):
        yield Problem(
            f"its parameter {parameter.name!r} {problem}", "Name it with letters, digits and underscores."
        )
    if parameter.default is None:
        return
    if problem_of_default := row_problem(parameter.default):
        reason = f"the default of its parameter {parameter.name} {problem_of_default}"
        yield Problem(reason, "Write a constant, or an expression of constants.")
    elif read := sorted(referenced_columns(parameter.default)):
        reason = f"the default of its parameter {parameter.name} reads {', '.join(read)}"
        yield Problem(reason, "Write a constant, or an expression of constants.")


def _default_order(parameters: Sequence[Parameter]) -> Iterator[Problem]:
    """Yield the first parameter without a default after one with a default, which Spark refuses (measured)."""
    former: Parameter | None = None
    for parameter in parameters:
        if former is not None and parameter.default is None:
            reason = f"its parameter {former.name} has a default, but the later {parameter.name} does not"
            yield Problem(reason, "Move parameters with defaults to the end.")
            return
        former = parameter if parameter.default is not None else former
