"""The default rules. Each has a name, says what it refuses and why, and names the way out.

A rule yields refusals; who raises the first, or shows them all, is the validator's business.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from delta_engine.actions import AlignTable, CreateTable, TablePlan
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.aspects.primary_key import PrimaryKeyAdd
from delta_engine.aspects.table_features import COLUMN_MAPPING_MODE, EnableTableFeature
from delta_engine.constraints.naming import MAX_NAME_LENGTH
from delta_engine.constraints.stored_keys import PROPERTY_PREFIX
from delta_engine.errors import InvalidModelError, UnsafePlanError
from delta_engine.models import Column, Table
from delta_engine.policy import DestructiveKind, Policy
from delta_engine.sql import sql_data_type


class ModelRule(Protocol):
    """A check of declared tables."""

    def check(self, models: Sequence[Table]) -> Iterable[InvalidModelError]:
        """Yield a refusal per violation."""
        ...


class PlanRule(Protocol):
    """A check of a plan, before any of it runs."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterable[UnsafePlanError]:
        """Yield a refusal per violation that the policy does not allow."""
        ...


class ValidTableNames:
    """Catalog, schema and table names follow Unity Catalog's rules (docs: "Names", object names)."""

    _FORBIDDEN = re.compile(r"[\s./`\x00-\x1f\x7f-\x9f]|\$\{")

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse empty and over-long names, and characters that Unity Catalog does not store."""
        for model in models:
            for part, name in (
                ("catalog", model.catalog_name),
                ("schema", model.schema_name),
                ("table", model.table_name),
            ):
                reason = _name_problem(name, self._FORBIDDEN)
                if reason:
                    yield InvalidModelError(
                        f"{part} name {name!r} {reason}",
                        table=str(model.qualified_name),
                        location=model.location,
                        way_out="Use letters, digits and underscores.",
                    )


class UniqueTables:
    """No two models describe one table; names compare as Unity Catalog stores them, in lower case."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse the second and every further model of a table."""
        first: dict[str, Table] = {}
        for model in models:
            earlier = first.setdefault(model.qualified_name.key, model)
            if earlier is not model:
                place = f" at {earlier.location}" if earlier.location else ""
                yield InvalidModelError(
                    f"it is declared twice, first{place}",
                    table=str(model.qualified_name),
                    location=model.location,
                    way_out="Remove one of the two.",
                )


class TablesHaveColumns:
    """A table needs at least one column."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse tables without columns."""
        for model in models:
            if not model.columns:
                yield InvalidModelError(
                    "it has no columns",
                    table=str(model.qualified_name),
                    location=model.location,
                    way_out="Declare at least one.",
                )


class ValidColumnNames:
    """Column names are ones that Delta can store.

    Without column mapping Delta refuses ` ,;{}()=` and white space, as Parquet does; dots and backticks
    are refused with them because readers trip over them.
    """

    _NEVER = re.compile(r"[\x00-\x1f\x7f-\x9f]|\$\{")
    _NEEDS_MAPPING = re.compile(r"[ ,;{}()=.`]")

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse names that cannot be stored, or cannot without column mapping."""
        for model in models:
            mode = model.effective_table_properties.get(COLUMN_MAPPING_MODE, "none")
            for column in model.columns:
                reason, way_out = _name_problem(column.name, self._NEVER), "Rename it."
                if not reason and mode == "none" and self._NEEDS_MAPPING.search(column.name):
                    reason = "has a character that Delta stores only with column mapping"
                    way_out = f"Rename it, or set the property {COLUMN_MAPPING_MODE}: name."
                if reason:
                    yield _column_refusal(model, column, f"its name {reason}", way_out)


class DuplicateColumnNames:
    """Column names are unique without regard to case."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse every column whose name an earlier column has."""
        for model in models:
            seen: set[str] = set()
            for column in model.columns:
                if column.key in seen:
                    yield _column_refusal(
                        model,
                        column,
                        "the table has this column twice (names compare without case)",
                        "Rename or remove one of the two.",
                    )
                seen.add(column.key)


class PrimaryKeyColumnsNotNull:
    """The columns of a primary key exist, once each, and are NOT NULL."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse keys over absent, repeated or nullable columns."""
        for model in models:
            if model.primary_key is None:
                continue
            if not model.primary_key.columns:
                yield InvalidModelError(
                    "its primary key has no columns",
                    table=str(model.qualified_name),
                    location=model.location,
                    way_out="Name them, or leave the key out.",
                )
            missing, nullable = _unfit_key_columns(model)
            repeated = [
                name
                for name, count in Counter(map(str.lower, model.primary_key.columns)).items()
                if count > 1
            ]
            for columns, reason, way_out in (
                (missing, "are not columns of the table", "Declare them, or correct the key."),
                (repeated, "stand in it twice", "Name each column once."),
                (nullable, "are nullable", "Declare them with nullable: false (is_nullable=False)."),
            ):
                if columns:
                    yield InvalidModelError(
                        f"primary key columns ({', '.join(columns)}) {reason}",
                        table=str(model.qualified_name),
                        column=columns[0],
                        location=model.location,
                        way_out=way_out,
                    )


class ReadableProperties:
    """Property keys are ones whose value can be read back, and not the engine's own.

    SHOW TBLPROPERTIES blanks out the values of keys that look like secrets (`spark.redaction.regex`) or
    addresses (`spark.sql.redaction.options.regex`): they could never be compared.
    """

    _REDACTED = re.compile(r"secret|password|token|access[.]?key|url", re.IGNORECASE)

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse keys that Spark redacts and keys under the engine's prefixes."""
        for model in models:
            for key in model.effective_table_properties:
                reason = ""
                if self._REDACTED.search(key):
                    reason = "cannot be managed: Spark hides the values of such keys"
                elif key.lower().startswith((PROPERTY_PREFIX, "delta.constraints.")):
                    reason = "is how constraints are stored, not a property to set"
                if reason:
                    yield InvalidModelError(
                        f"property {key!r} {reason}",
                        table=str(model.qualified_name),
                        location=model.location,
                        way_out="Rename or remove it. Credentials never belong into a property.",
                    )


class CreatePrimaryKeyColumnsNotNull:
    """A table that is created with a primary key has its columns, all NOT NULL."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:  # noqa: ARG002
        """Refuse CREATE with a key over absent or nullable columns."""
        for create in plan.create_tables:
            missing, nullable = _unfit_key_columns(create.desired)
            for columns, reason in ((missing, "do not exist"), (nullable, "are nullable")):
                if columns:
                    yield _plan_refusal(
                        create, f"primary key columns ({', '.join(columns)}) {reason}", columns[0]
                    )


class NoAddNotNullColumns:
    """An existing table gets no new NOT NULL column: its rows would have no value there."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:  # noqa: ARG002
        """Refuse added columns that are NOT NULL."""
        for align in plan.align_tables:
            names = [add.desired.name for add in align.of_type(ColumnAdd) if not add.desired.is_nullable]
            if names:
                yield _plan_refusal(
                    align,
                    f"new columns ({', '.join(names)}) would be NOT NULL on an existing table",
                    names[0],
                    "Add them nullable, backfill, then tighten to NOT NULL.",
                )


class NoColumnTypeChanges:
    """The type of an existing column is not changed in place."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:  # noqa: ARG002
        """Refuse every change of type."""
        for align in plan.align_tables:
            for change in align.of_type(ColumnTypeChange):
                observed, desired = sql_data_type(change.observed), sql_data_type(change.desired)
                yield _plan_refusal(
                    align,
                    f"its type would change from {observed} to {desired}",
                    change.name,
                    f"Declare it as {observed}, or add a column of the new type, backfill it, and "
                    "drop this one.",
                )


class NoColumnMappingModeChange:
    """Column mapping is switched on once, and never off or over: that rewrites every data file."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:  # noqa: ARG002
        """Refuse leaving the modes `name` and `id`."""
        for align in plan.align_tables:
            for feature in align.of_type(EnableTableFeature):
                if feature.key == COLUMN_MAPPING_MODE and feature.observed != "none":
                    yield _plan_refusal(
                        align,
                        f"{COLUMN_MAPPING_MODE} would change from {feature.observed} to "
                        f"{feature.desired}, which rewrites the table",
                        way_out=f"Declare {COLUMN_MAPPING_MODE}: {feature.observed}, or leave it out.",
                    )


class PrimaryKeyAddMustNotMakeColumnsNullable:
    """A plan does not loosen a column and put a primary key over it."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:  # noqa: ARG002
        """Refuse keys over columns that the same plan makes nullable."""
        for align, key in _added_keys(plan):
            loosened = {
                change.name.lower()
                for change in align.of_type(ColumnNullabilityChange)
                if change.make_nullable
            }
            columns = [column for column in key.columns if column.lower() in loosened]
            if columns:
                yield _plan_refusal(
                    align,
                    f"primary key columns ({', '.join(columns)}) would become nullable",
                    columns[0],
                    "Keep them NOT NULL.",
                )


class PrimaryKeyNewColumnsMustBeSetNotNull:
    """A new column under a new primary key is tightened in the same plan."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:  # noqa: ARG002
        """Refuse keys over added columns that stay nullable."""
        for align, key in _added_keys(plan):
            added = {add.desired.key for add in align.of_type(ColumnAdd)}
            yield from _untightened(align, [c for c in key.columns if c.lower() in added], "new")


class PrimaryKeyExistingColumnsMustBeSetNotNull:
    """An existing column under a new primary key is NOT NULL already, or tightened in the same plan."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:  # noqa: ARG002
        """Refuse keys over existing columns that stay nullable."""
        for align, key in _added_keys(plan):
            fine = {add.desired.key for add in align.of_type(ColumnAdd)}
            fine |= {column.lower() for column in key.already_not_null}
            columns = [column for column in key.columns if column.lower() not in fine]
            yield from _untightened(align, columns, "existing")


class NoUnallowedColumnDrops:
    """Dropping a column loses its data: only where the target's policy, or the command, allows it."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse drops without consent."""
        kind = DestructiveKind.DROP_COLUMN
        for align in plan.align_tables:
            names = [drop.observed.name for drop in align.of_type(ColumnDrop)]
            if names and not policy.allows(kind, align.table):
                yield _plan_refusal(
                    align,
                    f"columns ({', '.join(names)}) exist but are not in the model, and would be dropped "
                    "with their data",
                    names[0],
                    f"Declare them, or allow it: --allow {kind.value}:{align.table} for one run, "
                    f"policy.allow: [{kind.value}] for the target.",
                )


class NoUnallowedSchemas:
    """Schemas are created only where the target's configuration says so."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse missing schemas without consent."""
        if not policy.create_schemas:
            for schema in plan.create_schemas:
                yield UnsafePlanError(
                    f"schema {schema} does not exist or is not visible to you",
                    way_out="Create it, correct the models, or set policy.create_schemas: true.",
                )


def _name_problem(name: str, forbidden: re.Pattern[str]) -> str:
    if not name:
        return "is empty"
    if len(name) > MAX_NAME_LENGTH:
        return f"is longer than {MAX_NAME_LENGTH} characters"
    found = forbidden.search(name)
    return f"has a character that is not allowed here: {found[0]!r}" if found else ""


def _column_refusal(model: Table, column: Column, reason: str, way_out: str) -> InvalidModelError:
    return InvalidModelError(
        reason,
        table=str(model.qualified_name),
        column=column.name,
        location=column.location or model.location,
        way_out=way_out,
    )


def _unfit_key_columns(model: Table) -> tuple[list[str], list[str]]:
    """Return the key columns that are (missing, nullable)."""
    if model.primary_key is None:
        return [], []
    by_key = {column.key: column for column in model.columns}
    names = model.primary_key.columns
    missing = [name for name in names if name.lower() not in by_key]
    nullable = [name for name in names if name.lower() in by_key and by_key[name.lower()].is_nullable]
    return missing, nullable


def _added_keys(plan: TablePlan) -> Iterator[tuple[AlignTable, PrimaryKeyAdd]]:
    for align in plan.align_tables:
        for key in align.of_type(PrimaryKeyAdd):
            yield align, key


def _untightened(align: AlignTable, columns: Sequence[str], which: str) -> Iterator[UnsafePlanError]:
    tightened = {
        change.name.lower() for change in align.of_type(ColumnNullabilityChange) if not change.make_nullable
    }
    names = [column for column in columns if column.lower() not in tightened]
    if names:
        yield _plan_refusal(
            align,
            f"{which} primary key columns ({', '.join(names)}) would not be NOT NULL",
            names[0],
            "Tighten them in the same plan.",
        )


def _plan_refusal(
    action: CreateTable | AlignTable, reason: str, column: str | None = None, way_out: str = ""
) -> UnsafePlanError:
    return UnsafePlanError(
        reason, table=str(action.table), column=column, location=action.location, way_out=way_out
    )
