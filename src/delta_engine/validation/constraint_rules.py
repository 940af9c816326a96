"""The default rules for foreign keys, checks and constraint names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Final

from delta_engine.actions import AlignTable, Drop, TablePlan
from delta_engine.actions.policy import DestructiveKind, Policy
from delta_engine.aspects.check_constraints import CheckDrop
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.foreign_keys import ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyDrop, named_primary_key
from delta_engine.errors import InvalidModelError, UnsafePlanError
from delta_engine.models import Column, ForeignKey, Part, Reference, Securable, Table, of_kind
from delta_engine.models.constraints import (
    MAX_NAME_LENGTH,
    RESERVED_CHECK_PREFIX,
    referenced_table,
    resolved_keys,
)
from delta_engine.models.repetitions import repeated_constraint_names, repeated_in_foreign_key
from delta_engine.models.types import is_same_type
from delta_engine.sql.constraints import sql_drop_constraint
from delta_engine.sql.expressions import condition_problem, unknown_columns
from delta_engine.sql.text import shown_type, sql_name
from delta_engine.state.states import SECRET_KEY, TableState
from delta_engine.validation.rules import (
    ALLOWED_IN_NAMES,
    Problem,
    consent,
    model_refusal,
    name_problem,
    of_each,
    of_each_action,
    of_each_alignment,
    without_consent,
)

_DECLARE_IT: Final = "Declare its primary key, because foreign keys can only reference that."
_REFERENCE_IT: Final = "Reference the primary key's columns, in its order."


class ForeignKeysFit:
    """Foreign keys use columns of their table and reference a primary key, column by column."""

    about: ClassVar = ("foreign_keys",)

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse keys that Unity Catalog would refuse (Databricks documentation, "CONSTRAINT clause")."""
        tables = of_kind(Table, models)
        parents = {model.qualified_name.key: model for model in tables}
        for model in tables:
            for key, resolved in zip(model.foreign_keys, resolved_keys(model, parents), strict=True):
                for reason, way_out, column, _ in self._problems(model, key, resolved, parents):
                    named = f"foreign key ({', '.join(key.columns)}) {reason}"
                    yield model_refusal(model, named, way_out, column)

    def _problems(
        self, model: Table, key: ForeignKey, resolved: ForeignKey, parents: Mapping[str, Table]
    ) -> Iterator[Problem]:
        referenced = referenced_table(model.qualified_name, key)
        parent = parents.get(referenced.key) if referenced else None
        if own_problem := _own_problem(model, key):
            yield own_problem
        elif referenced is None:
            reason = f"references {key.references!r}, which is not the name of a table"
            yield Problem(reason, "Write table, schema.table or catalog.schema.table.")
        elif parent is not None:
            are_known = model.is_about(Part.COLUMNS) and parent.is_about(Part.COLUMNS)
            own = model.columns if are_known else ()
            yield from parent_problems(resolved, own, parent, str(parent.qualified_name))
        elif problem := _other_count(resolved, str(referenced)):
            yield problem


class UniqueKeyNames:
    """The names of primary and foreign keys are unique in their schema, ignoring case."""

    about: ClassVar = ("primary_key", "foreign_keys")

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse every repeated name (Databricks documentation, "CONSTRAINT clause")."""
        tables = of_kind(Table, models)
        parents = {model.qualified_name.key: model for model in tables}
        owners: dict[tuple[str, str, str], str] = {}
        for model in tables:
            names, table = _key_names(model, parents), str(model.qualified_name)
            for name in names:
                place = (model.catalog_name.lower(), model.schema_name.lower(), name)
                owner = owners.setdefault(place, table)
                if owner != table or names.count(name) > 1:
                    yield model_refusal(
                        model,
                        f"constraint name {name!r} is taken by {owner}",
                        "Rename one of them, because the keys of a schema share a namespace.",
                    )


class ChecksFit:
    """Checks are named conditions on single rows, over columns of their table."""

    about: ClassVar = ("checks",)

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse checks that Delta would refuse (Databricks documentation, "ADD CONSTRAINT clause")."""
        columns = model.columns if model.is_about(Part.COLUMNS) else None
        for check in model.checks:
            if problem := condition_problem(check.expression):
                reason = f"check {check.name!r} {problem}: {check.expression}"
                yield Problem(reason, "Write a SQL condition over the table's columns.")
            elif columns is not None and (unknown := unknown_columns(check.expression, columns)):
                reason = (
                    f"check {check.name!r} reads columns that the table does not have: {', '.join(unknown)}"
                )
                yield Problem(reason, "Declare them, or correct the check.", unknown[0])


class ValidConstraintNames:
    """Platforms can store and return the names of constraints, and a table uses each name once."""

    about: ClassVar = ("primary_key", "foreign_keys", "checks")

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse names that are reserved or repeated, or that the platform cannot store or hides on read."""
        keys = [model.primary_key, *model.foreign_keys]
        key_names = [key.name for key in keys if key is not None and key.name is not None]
        check_names = [check.name for check in model.checks]
        for name in (*key_names, *check_names):
            problem, way_out = name_problem(name), ALLOWED_IN_NAMES
            if name.lower().startswith(RESERVED_CHECK_PREFIX) and len(name) <= MAX_NAME_LENGTH:
                problem, way_out = "is reserved for the engine's NOT NULL checks", "Choose another name."
            if problem:
                yield Problem(f"constraint name {name!r} {problem}", way_out)
        for name in filter(SECRET_KEY.search, check_names):
            reason = f"check name {name!r} cannot be managed: Spark hides the values of such properties"
            yield Problem(reason, "Rename the check.")
        own = {name.lower() for name in check_names}
        shared = [
            name for name in key_names if name.lower() in own
        ]  # `UniqueKeyNames` judges those of keys alone
        for repetition in repeated_constraint_names([*check_names, *shared]):
            yield Problem(*repetition)


class NoDropOfReferencedPrimaryKeys:
    """A primary key is not dropped while a remaining foreign key references it."""

    @of_each_action(PrimaryKeyDrop)
    def check(self, drop: PrimaryKeyDrop) -> Iterator[Problem]:
        """Refuse drops that the platform refuses, or that would also drop keys of other tables."""
        for reference in drop.referenced_by:
            yield Problem(
                f"primary key {drop.name} would be dropped, and foreign key {reference.name} of table "
                f"{reference.table} references it",
                "Declare that table with its foreign key in the same run, or remove the key from its project first. "
                f"Drop an undeclared key by hand: {_drop_by_hand(reference)}.",
            )


class NoDropOfReferencedTables:
    """A table is not dropped while a foreign key of a remaining table references it."""

    about: ClassVar = (Drop,)

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse drops that would also drop keys of other tables."""
        for drop in plan.drop_tables:
            for reference in drop.referenced_by:
                yield UnsafePlanError(
                    f"{drop.reason} and would be dropped, and foreign key {reference.name} of table "
                    f"{reference.table} references it",
                    table=str(drop.table),
                    way_out=f"{drop.way_to_keep}, or remove the key from the model of that table. Drop an undeclared "
                    f"key by hand: {_drop_by_hand(reference)}.",
                )


class NoUnallowedConstraintDrops:
    """Dropping an unmanaged constraint needs consent by the policy or the command."""

    @of_each_alignment
    def check(self, align: AlignTable, policy: Policy) -> Iterator[Problem]:
        """Refuse drops of constraints that the engine never applied, also if the plan adds them again afterwards."""
        kind = DestructiveKind.DROP_CONSTRAINT
        drops: list[PrimaryKeyDrop | ForeignKeyDrop | CheckDrop] = [
            *align.of_type(PrimaryKeyDrop),
            *align.of_type(ForeignKeyDrop),
            *align.of_type(CheckDrop),
        ]
        for drop in drops:
            needed = without_consent(kind, align.table, [_name_of(drop)], policy)
            if drop.is_ours or not needed:
                continue
            reason = f"{_described(drop)} would be dropped, which the engine did not create"
            if drop.is_remade:
                reason += ". The plan adds it again, but a run that is killed in between would lose it"
            way_out = f"Declare it, or allow it: {consent(kind, align.table)}"
            yield Problem(reason, way_out, needed=needed)


def _name_of(drop: PrimaryKeyDrop | ForeignKeyDrop | CheckDrop) -> str:
    match drop:
        case PrimaryKeyDrop(name):
            return name
        case ForeignKeyDrop(key):
            return str(key.name)
        case CheckDrop(check):
            return check.name


def _described(drop: PrimaryKeyDrop | ForeignKeyDrop | CheckDrop) -> str:
    match drop:
        case PrimaryKeyDrop(name, columns):
            return f"primary key {name} ({', '.join(columns)})"
        case ForeignKeyDrop(key):
            return f"foreign key {key.name} to {key.references}"
        case CheckDrop(check):
            return f"check {check.name} ({check.expression})"


class NoTypeChangeUnderForeignKeys:
    """The type of a column under a foreign key changes only if the plan recreates the key."""

    @of_each_action(ColumnTypeChange)
    def check(self, change: ColumnTypeChange) -> Iterator[Problem]:
        """Refuse changes that would leave a foreign key with different types on its two sides."""
        for reference in change.referenced_by:
            yield Problem(
                f"its type would change, but foreign key {reference.name} of table {reference.table} needs equal types "
                "on both sides",
                "Declare that table with its foreign key in the same run, or remove the key from its project first. "
                f"Drop an undeclared key by hand: {_drop_by_hand(reference)}.",
                change.name,
            )


def _drop_by_hand(reference: Reference) -> str:
    return sql_drop_constraint(sql_name(reference.table), reference.name)


def _own_problem(model: Table, key: ForeignKey) -> Problem | None:
    own = {column.key for column in model.columns}
    missing = [name for name in key.columns if name.lower() not in own and model.is_about(Part.COLUMNS)]
    if not key.columns:
        return Problem("has no columns", "Name columns, or remove the key.")
    if missing:
        reason = f"names columns that the table does not have: {', '.join(missing)}"
        return Problem(reason, "Declare them, or correct the key.", missing[0])
    return next((Problem(*repetition) for repetition in repeated_in_foreign_key(key)), None)


def parent_problems(
    key: ForeignKey, own: Iterable[Column], parent: Table | TableState, name: str, *, is_in_run: bool = True
) -> Iterator[Problem]:
    """Yield why a parent does not fit a foreign key: its primary key, or the types of its columns.

    Args:
        own: the columns of the key's table, as far as their types are known.
        name: the parent's name.
        is_in_run: whether the parent is a model, not only a table of the catalog.
    """
    there = parent.primary_key
    if there is not None and (problem := _other_count(key, name)):
        yield problem
    elif there is None or [*map(str.lower, there.columns)] != [*map(str.lower, key.referenced_columns)]:
        has = f"has the primary key ({', '.join(there.columns)})" if there else "has no primary key"
        columns = f"({', '.join(key.referenced_columns)}) of " if key.referenced_columns else ""
        outside = "" if is_in_run else "is not in this run and "
        fix = _REFERENCE_IT if there else _DECLARE_IT
        reason = f"references {columns}{name}, which {outside}{has}"
        yield Problem(reason, fix if is_in_run else _select_as_well("another key", fix))
    else:
        yield from _other_types(key, own, parent, name, is_in_run=is_in_run)


def _other_types(
    key: ForeignKey, own: Iterable[Column], parent: Table | TableState, name: str, *, is_in_run: bool
) -> Iterator[Problem]:
    children = {column.key: column for column in own}
    parents = {column.key: column for column in parent.columns}
    for child_name, parent_name in zip(key.columns, key.referenced_columns, strict=True):
        child, referenced = children.get(child_name.lower()), parents.get(parent_name.lower())
        if child and referenced and not is_same_type(child.data_type, referenced.data_type):
            outside = " " if is_in_run else ", which is not in this run, "
            reason = (
                f"has {child_name} of type {shown_type(child.data_type)}, and {name}.{referenced.name}{outside}is "
                f"{shown_type(referenced.data_type)}"
            )
            fix = "Declare the same type for both."
            yield Problem(reason, fix if is_in_run else _select_as_well("the same type", fix), child_name)


def _select_as_well(other: str, fix: str) -> str:
    return f"Select that table as well if its model has {other}, or {fix[0].lower()}{fix[1:]}"


def _other_count(key: ForeignKey, name: str) -> Problem | None:
    if not key.referenced_columns or len(key.columns) == len(key.referenced_columns):
        return None
    there = f"{len(key.referenced_columns)} of {name}"
    return Problem(f"has {len(key.columns)} columns and references {there}", "Name as many columns.")


def _key_names(model: Table, parents: Mapping[str, Table]) -> list[str]:
    key = named_primary_key(model)
    names = [key.name if key else None, *(resolved.name for resolved in resolved_keys(model, parents))]
    return [name.lower() for name in names if name]
