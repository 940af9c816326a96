"""The default rules for foreign keys, checks and constraint names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from delta_engine.actions import TablePlan
from delta_engine.actions.policy import DestructiveKind, Policy
from delta_engine.aspects.check_constraints import CheckDrop
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.foreign_keys import ForeignKeyDrop
from delta_engine.aspects.primary_key import PrimaryKeyDrop, named_primary_key
from delta_engine.errors import InvalidModelError, UnsafePlanError
from delta_engine.models import ForeignKey, Part, Reference, Table
from delta_engine.models.constraints import (
    MAX_NAME_LENGTH,
    RESERVED_CHECK_PREFIX,
    referenced_table,
    resolved_keys,
)
from delta_engine.models.types import is_same_type
from delta_engine.sql.expressions import condition_problem, unknown_columns
from delta_engine.sql.text import sql_data_type
from delta_engine.state.states import SECRET_KEY
from delta_engine.validation.rules import FORBIDDEN_IN_NAMES, model_refusal, plan_refusal, planned

_Problem = tuple[str, str | None, str]
"""The reason, the column, the way out."""


class ForeignKeysFit:
    """Foreign keys use columns of their table and reference a primary key, column by column."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse keys that Unity Catalog would refuse (Databricks documentation, "CONSTRAINT clause")."""
        parents = {model.qualified_name.key: model for model in models}
        for model in models:
            for key, resolved in zip(model.foreign_keys, resolved_keys(model, parents), strict=True):
                for reason, column, way_out in self._problems(model, key, resolved, parents):
                    yield model_refusal(
                        model, f"foreign key ({', '.join(key.columns)}) {reason}", way_out, column
                    )

    def _problems(
        self, model: Table, key: ForeignKey, resolved: ForeignKey, parents: Mapping[str, Table]
    ) -> Iterator[_Problem]:
        referenced = referenced_table(model.qualified_name, key)
        parent = parents.get(referenced.key) if referenced else None
        own_problem = _own_problem(model, key)
        if own_problem:
            yield own_problem
        elif referenced is None:
            yield (
                f"references {key.references!r}, which is no table's name",
                None,
                "Write table, schema.table or the whole name.",
            )
        elif parent is None and not key.referenced_columns:
            yield (
                f"references {referenced}, which is not declared",
                None,
                "Declare that table with its primary key, or name referenced_columns.",
            )
        elif parent is not None and parent.primary_key is None:
            yield (
                f"references {referenced}, which has no primary key",
                None,
                "Declare its primary key: the engine references nothing else.",
            )
        elif len(key.columns) != len(resolved.referenced_columns):
            yield (
                f"has {len(key.columns)} columns and references {len(resolved.referenced_columns)} "
                f"of {referenced}",
                None,
                "Name as many.",
            )
        elif parent is not None and parent.primary_key is not None:
            yield from _against(model, resolved, parent, parent.primary_key.columns)


class UniqueKeyNames:
    """The names of primary and foreign keys are unique in their schema, ignoring case."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse every repeated name (Databricks documentation, "CONSTRAINT clause")."""
        parents = {model.qualified_name.key: model for model in models}
        owners: dict[tuple[str, str, str], str] = {}
        for model in models:
            for name in _key_names(model, parents):
                place = (model.catalog_name.lower(), model.schema_name.lower(), name.lower())
                owner = owners.setdefault(place, str(model.qualified_name))
                if owner != str(model.qualified_name) or _key_names(model, parents).count(name) > 1:
                    yield model_refusal(
                        model,
                        f"constraint name {name!r} is taken by {owner}",
                        "Give one of the two another name: keys share one namespace per schema.",
                    )


class ChecksFit:
    """Checks are named conditions on single rows, over columns of their table."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse checks that Delta would refuse (Databricks documentation, "ADD CONSTRAINT clause")."""
        for model in models:
            is_judged = model.is_about(Part.COLUMNS)
            for check in model.checks:
                problem = condition_problem(check.expression)
                unknown = unknown_columns(check.expression, model.columns) if is_judged else []
                if problem:
                    yield model_refusal(
                        model,
                        f"check {check.name!r} {problem}: {check.expression}",
                        "Write a SQL condition over the table's columns.",
                    )
                elif unknown:
                    yield model_refusal(
                        model,
                        f"check {check.name!r} reads columns that the table does not have: "
                        f"{', '.join(unknown)}",
                        "Declare them, or correct the check.",
                        unknown[0],
                    )


class ValidConstraintNames:
    """Platforms can store and return the names of constraints, and a table uses each name once."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse names that are reserved or repeated, or that the platform cannot store or hides on read."""
        for model in models:
            keys = [model.primary_key, *model.foreign_keys]
            key_names = [key.name for key in keys if key is not None and key.name is not None]
            check_names = [check.name for check in model.checks]
            for name in (*key_names, *check_names):
                problem = self._problem(name)
                if problem:
                    way_out = "Use letters, digits and underscores."
                    yield model_refusal(model, f"constraint name {name!r} {problem}", way_out)
            for name in check_names:
                if SECRET_KEY.search(name):
                    yield model_refusal(
                        model,
                        f"check name {name!r} cannot be managed: Spark hides the values of such properties",
                        "Rename the check.",
                    )
            for name in _repeated([*check_names, *key_names]):
                if name in map(str.lower, check_names):
                    yield model_refusal(
                        model,
                        f"constraint name {name!r} is used twice",
                        "Give one of the two another name.",
                    )

    def _problem(self, name: str) -> str:
        if not name:
            return "is empty"
        if len(name) > MAX_NAME_LENGTH:
            return f"is longer than {MAX_NAME_LENGTH} characters"
        if name.lower().startswith(RESERVED_CHECK_PREFIX):
            return "is reserved for the engine's NOT NULL checks"
        found = FORBIDDEN_IN_NAMES.search(name)
        return f"has a character that is not allowed here: {found[0]!r}" if found else ""


class NoDropOfReferencedPrimaryKeys:
    """A primary key is not dropped while a remaining foreign key references it."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse drops that the platform refuses, or that would also drop keys of other tables."""
        for align, drop in planned(plan, PrimaryKeyDrop):
            for reference in drop.referenced_by:
                yield plan_refusal(
                    align,
                    f"primary key {drop.name} would be dropped, and foreign key {reference.name} of table "
                    f"{reference.table} references it",
                    "Declare that table with its foreign key in the same run, or drop its key first: "
                    f"{_drop_by_hand(reference)}.",
                )


class NoDropOfReferencedTables:
    """A table is not dropped while a foreign key of a remaining table references it."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse drops that would also drop keys of other tables."""
        for drop in plan.drop_tables:
            for reference in drop.referenced_by:
                yield UnsafePlanError(
                    f"it is not declared any more and would be dropped, and foreign key {reference.name} of table "
                    f"{reference.table} references it",
                    table=str(drop.table),
                    way_out="Declare it, or keep it (policy.removed_tables: keep), or take the key out of that "
                    "table's model; a key in no model is dropped by hand: "
                    f"{_drop_by_hand(reference)}.",
                )


class NoUnallowedConstraintDrops:
    """Dropping an unmanaged constraint needs consent by the policy or the command."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse drops of constraints that the engine never applied, unless the plan recreates them."""
        kind = DestructiveKind.DROP_CONSTRAINT
        for align in plan.align_tables:
            drops: list[PrimaryKeyDrop | ForeignKeyDrop | CheckDrop] = [
                *align.of_type(PrimaryKeyDrop),
                *align.of_type(ForeignKeyDrop),
                *align.of_type(CheckDrop),
            ]
            for drop in drops:
                if drop.is_ours or drop.is_remade or policy.allows(kind, align.table):
                    continue
                yield plan_refusal(
                    align,
                    f"{_described(drop)} would be dropped, which the engine did not create",
                    f"Declare it, or allow it: --allow {kind.value}:{align.table} for one run, "
                    f"policy.allow: [{kind.value}] for the target.",
                )


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

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse changes that would leave a foreign key with different types on its two sides."""
        for align, change in planned(plan, ColumnTypeChange):
            for reference in change.referenced_by:
                yield plan_refusal(
                    align,
                    f"its type would change, and foreign key {reference.name} of table {reference.table} "
                    "needs it on both sides",
                    "Declare that table with its foreign key in the same run, or drop the key first: "
                    f"{_drop_by_hand(reference)}.",
                    change.name,
                )


def _drop_by_hand(reference: Reference) -> str:
    return f"ALTER TABLE {reference.table} DROP CONSTRAINT {reference.name}"


def _own_problem(model: Table, key: ForeignKey) -> _Problem | None:
    own = {column.key for column in model.columns}
    missing = [name for name in key.columns if name.lower() not in own and model.is_about(Part.COLUMNS)]
    if not key.columns:
        return "has no columns", None, "Name them, or leave the key out."
    if missing:
        return (
            f"names columns that the table does not have: {', '.join(missing)}",
            missing[0],
            "Declare them, or correct the key.",
        )
    if _repeated(key.columns):
        return "names a column twice", _repeated(key.columns)[0], "Name each column once."
    return None


def _against(model: Table, key: ForeignKey, parent: Table, expected: Sequence[str]) -> Iterator[_Problem]:
    if [name.lower() for name in key.referenced_columns] != [name.lower() for name in expected]:
        yield (
            f"references ({', '.join(key.referenced_columns)}) of {parent.qualified_name}, whose primary key is "
            f"({', '.join(expected)})",
            None,
            "Reference the primary key's columns, in its order.",
        )
        return
    if not (model.is_about(Part.COLUMNS) and parent.is_about(Part.COLUMNS)):
        return
    own = {column.key: column for column in model.columns}
    others = {column.key: column for column in parent.columns}
    for name, referenced in zip(key.columns, key.referenced_columns, strict=True):
        column, other = own[name.lower()], others.get(referenced.lower())
        if other is not None and not is_same_type(column.data_type, other.data_type):
            yield (
                f"has {name} of type {sql_data_type(column.data_type)}, and {parent.qualified_name}.{other.name} "
                f"is {sql_data_type(other.data_type)}",
                name,
                "Give both the same type.",
            )


def _key_names(model: Table, parents: Mapping[str, Table]) -> list[str]:
    key = named_primary_key(model)
    names = [key.name if key else None, *(one.name for one in resolved_keys(model, parents))]
    return [name.lower() for name in names if name]


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(map(str.lower, names)).items() if count > 1]
