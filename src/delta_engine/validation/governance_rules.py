"""The default rules for schemas, tags, row filters, column masks, owners and grants."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from delta_engine.actions import Align, AlignTable, TablePlan
from delta_engine.actions.policy import DestructiveKind, NeededConsent, Policy
from delta_engine.aspects.column_masks import DropColumnMask
from delta_engine.aspects.protection import protections
from delta_engine.aspects.row_filters import DropRowFilter
from delta_engine.aspects.tags import SetColumnTags, SetTableTags
from delta_engine.errors import UnsafePlanError
from delta_engine.models import Column, Part, Schema, Table
from delta_engine.models.functions import Function
from delta_engine.models.repetitions import repeated
from delta_engine.models.views import View
from delta_engine.sql.expressions import referenced_columns
from delta_engine.sql.governance import function_parts
from delta_engine.validation.rules import (
    ALLOWED_IN_NAMES,
    Problem,
    consent,
    name_problem,
    of_each,
    of_each_alignment,
    of_each_column,
    plan_refusal,
    without_consent,
)


class TagsWithinLimits:
    """Unity Catalog can store the tags (Databricks docs: "Apply tags to Unity Catalog securable objects").

    Keys of the platform's own tags (`class.…`, `system.…`) contain a dot, and are allowed.
    """

    about: ClassVar = ("tags",)

    MOST = 50
    LONGEST_VALUE = 1000
    _FORBIDDEN = re.compile(r"(?<!^class)(?<!^system)\.|[,\-=/:]")

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse too many tags, tags that are too long, and keys with forbidden characters."""
        yield from self.of_model(model)

    def of_model(self, model: Table | Function | View) -> Iterator[Problem]:
        """Yield the problems of the tags of a model and of its columns."""
        yield from self.problems(model.tags)
        for column in model.columns:
            for problem in self.problems(column.tags) if column.tags else ():
                yield problem._replace(column=column.name)

    def problems(self, tags: Mapping[str, str]) -> Iterator[Problem]:
        """Yield the problems of an object's tags."""
        if len(tags) > self.MOST:
            yield Problem(f"it has {len(tags)} tags", f"Name {self.MOST} at most.")
        for key, value in tags.items():
            is_padded = key != key.strip()
            if problem := "begins or ends with a space" if is_padded else name_problem(key, self._FORBIDDEN):
                way_out = "Use letters, digits, underscores and spaces between them."
                yield Problem(f"tag key {key!r} {problem}", way_out)
            if len(value) > self.LONGEST_VALUE:
                reason = f"the value of tag {key!r} is longer than {self.LONGEST_VALUE} characters"
                yield Problem(reason, "Shorten it, or write it into the comment.")
            elif value != value.strip():
                yield Problem(f"the value of tag {key!r} begins or ends with a space", "Remove the space.")


class RowFiltersFit:
    """A row filter names a function and columns of its table."""

    about: ClassVar = ("row_filter",)

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse what the platform refuses (Databricks docs: "ROW FILTER clause")."""
        if model.row_filter is None:
            return
        if problem := _function_problem(model.row_filter.function):
            yield Problem(f"its row filter {problem}", _FUNCTION_NAMES)
        taken = [name.lower() for name in model.row_filter.columns]
        missing = _missing(model, model.row_filter.columns)
        for place, name in enumerate(model.row_filter.columns):
            if name in missing and _CONSTANT.fullmatch(name):
                reason = f"its row filter takes the constant {name}, but the model can declare only columns"
                yield Problem(reason, _CONSTANTS)
            elif taken[place] in taken[:place]:
                yield Problem("its row filter takes it twice", "Name each column once.", name)
            elif name in missing:
                reason = "its row filter uses it, but the table has no such column"
                yield Problem(reason, "Declare it, or correct the row filter.", name)


class ColumnMasksFit:
    """A column mask names a function and other columns of its table. No generated column reads the masked column."""

    about: ClassVar = ("mask",)

    @of_each_column
    def check(self, model: Table, column: Column) -> Iterator[Problem]:
        """Refuse what the platform refuses.

        Databricks docs: "ROW_COLUMN_ACCESS error condition", "COLUMN_MASKS_REFERENCED_BY_GENERATED_COLUMN error
        condition".
        """
        if column.mask is None:
            return
        if problem := _function_problem(column.mask.function):
            yield Problem(f"its mask {problem}", _FUNCTION_NAMES)
        using = column.mask.using_columns
        missing = _missing(model, using)
        if constants := [name for name in missing if _CONSTANT.fullmatch(name)]:
            reason = f"its mask takes the constant {constants[0]}, but the model can declare only columns"
            yield Problem(reason, _CONSTANTS)
        elif missing:
            reason = f"its mask takes columns ({', '.join(missing)}) that the table does not have"
            yield Problem(reason, "Declare them, or correct using_columns.")
        if column.key in map(str.lower, using):
            way_out = "Remove it there, because the function always gets the masked column first."
            yield Problem("its mask names it in using_columns", way_out)
        if repeated(using):
            yield Problem("its mask takes a column twice", "Name each column once in using_columns.")
        readers = [
            other.name
            for other in model.columns
            if other.generated_as is not None and column.key in referenced_columns(other.generated_as)
        ]
        if readers:
            yield Problem(
                f"it has a mask, and generated columns ({', '.join(readers)}) read it, which Databricks refuses",
                "Remove the mask, or let writers fill those columns.",
            )


class NoChecksUnderProtection:
    """A table with a row filter or column masks has no CHECK constraints: Databricks refuses the combination."""

    about: ClassVar = ("checks",)

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse the combination in one model.

        Databricks docs: "COLUMN_MASKS_FEATURE_NOT_SUPPORTED error condition", "ROW_LEVEL_SECURITY_FEATURE_NOT_SUPPORTED
        error condition", both with CHECK_CONSTRAINT.
        """
        protection = next(protections(model), None)
        if model.checks and protection:
            yield Problem(
                f"it has CHECK constraints and {protection}, and Databricks refuses the two together",
                "Remove one of them. Check rows before they are written, or filter them with a view.",
            )


class PrivilegesOfTables:
    """Grants name privileges of tables, and each principal once."""

    about: ClassVar = ("owner", "grants")

    KNOWN = frozenset({"ALL PRIVILEGES", "APPLY TAG", "MANAGE", "MODIFY", "SELECT"})
    """Databricks docs: "Unity Catalog privileges reference"."""

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse unknown privileges, empty principals, and principals in two spellings."""
        yield from rights_problems(model, self.KNOWN)


class NoUnallowedExposure:
    """Dropping a row filter or a column mask needs consent by the policy or the command."""

    @of_each_alignment
    def check(self, align: AlignTable, policy: Policy) -> Iterator[Problem]:
        """Refuse drops without consent, because they would expose data."""
        kind = DestructiveKind.DROP_ROW_FILTER
        again = "Declare it again, or allow it: "
        if align.of_type(DropRowFilter) and not policy.allows(kind, align.table):
            reason = "its row filter would be dropped, and every reader would see all rows"
            filtered = (NeededConsent(kind=kind, securable=align.table),)
            yield Problem(reason, again + consent(kind, align.table), needed=filtered)
        kind = DestructiveKind.DROP_COLUMN_MASK
        masked = [drop.name for drop in align.of_type(DropColumnMask)]
        if needed := without_consent(kind, align.table, masked, policy):
            names = [str(change.part) for change in needed]
            reason = (
                f"the masks of columns ({', '.join(names)}) would be dropped, and every reader of the table "
                "would see their values"
            )
            yield Problem(reason, again + consent(kind, align.table), names[0], needed)


class NoExposureBeforeTags:
    """A row filter or mask stays while the plan sets tags: policies (ABAC) see new tags only after some minutes."""

    about: ClassVar = (Align,)

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse drops of filters and masks that a policy on the new tags may be meant to replace."""
        tagged = {
            schema.name.key
            for schema in plan.align_schemas
            if any(isinstance(action, SetTableTags) for action in schema.actions)
        }
        for align in plan.align_tables:
            is_tagged = align.table.key.rpartition(".")[0] in tagged
            is_tagged = is_tagged or bool(align.of_type(SetTableTags))
            columns = {change.column.lower() for change in align.of_type(SetColumnTags)}
            masks = [drop.name for drop in align.of_type(DropColumnMask)]
            exposed = [column for column in masks if is_tagged or column.lower() in columns]
            if align.of_type(DropRowFilter) and is_tagged:
                yield _too_early(align, "row filter", None)
            elif exposed:
                yield _too_early(align, "mask", exposed[0])


def _too_early(align: AlignTable, what: str, column: str | None) -> UnsafePlanError:
    reason = (
        f"its {what} would be dropped in a plan that sets tags, which policies see only after some minutes"
    )
    way_out = f"Sync the tags first. Drop the {what} with a later sync, when the policies have taken effect."
    return plan_refusal(align, reason, way_out, column)


PRIVILEGES = frozenset(
    {
        "ALL PRIVILEGES",
        "APPLY TAG",
        "CREATE FUNCTION",
        "CREATE MATERIALIZED VIEW",
        "CREATE MODEL",
        "CREATE MODEL VERSION",
        "CREATE TABLE",
        "CREATE VOLUME",
        "EXECUTE",
        "EXTERNAL USE SCHEMA",
        "MANAGE",
        "MODIFY",
        "READ VOLUME",
        "REFRESH",
        "SELECT",
        "USE SCHEMA",
        "WRITE VOLUME",
    }
)
"""Databricks docs: "Unity Catalog privileges reference"."""


class SchemasFit:
    """Names, tags, owner and grants of a schema are ones that Unity Catalog can store."""

    @of_each(Schema)
    def check(self, model: Schema) -> Iterator[Problem]:
        """Refuse what the platform refuses."""
        for part, name in (("catalog", model.catalog_name), ("schema", model.schema_name)):
            if problem := name_problem(name):
                yield Problem(f"{part} name {name!r} {problem}", ALLOWED_IN_NAMES)
        yield from TagsWithinLimits().problems(model.tags)
        yield from rights_problems(model, PRIVILEGES)


def rights_problems(model: Table | Schema | Function | View, grantable: frozenset[str]) -> Iterator[Problem]:
    """Yield the problems of grants and owner; `grantable` holds the privileges that can be granted."""
    seen: dict[str, str] = {}
    for principal, privileges in model.grants.items():
        yield from principal_problems(principal, "a principal that it grants to")
        first = seen.setdefault(principal.lower(), principal)
        if first != principal:
            reason = f"it grants to {first!r} and to {principal!r}, which are the same principal"
            yield Problem(reason, "Merge the two entries.")
        for privilege in privileges:
            if privilege not in grantable:
                reason = f"it grants {privilege} to {principal!r}, which does not apply there"
                yield Problem(reason, f"Grant {', '.join(sorted(grantable))}.")
    if model.owner is not None:
        yield from principal_problems(model.owner, "its owner")


def principal_problems(principal: str, subject: str) -> Iterator[Problem]:
    """Yield the problems of a principal's name; messages begin with `subject`."""
    way_out = "Name a user, service principal or group."
    if not principal.strip():
        yield Problem(f"{subject} has no name", way_out)
    elif character := _NO_PRINCIPAL.search(principal):
        reason = f"{subject}, {principal!r}, has a character that is not allowed here: {character[0]!r}"
        yield Problem(reason, way_out)


_NO_PRINCIPAL = re.compile(r"[\x00-\x1f\x7f-\x9f]|\$\{")
"""No principal has such a name, and Spark substitutes `${…}` even in names."""

_FUNCTION_NAMES = "Write function, schema.function or catalog.schema.function."
_CONSTANTS = "Write a function that has only columns as arguments, and calls this function with the constant."
_CONSTANT = re.compile(r"'.*'|\".*\"|[+-]?\d+(\.\d*)?|(?i:true|false|null|interval .*)", re.DOTALL)
"""What Databricks accepts as an argument besides columns (docs: "ROW FILTER clause", "Column mask clause")."""


def _function_problem(function: str) -> str:
    parts = function_parts(function) or [""]
    is_name = len(parts) <= 3 and not any(map(name_problem, parts))
    return "" if is_name else f"is {function!r}, which is not the name of a function"


def _missing(model: Table, names: Sequence[str]) -> list[str]:
    """Return the names that are not columns of a table; empty if the model does not manage columns."""
    declared = {column.key for column in model.columns}
    return [name for name in names if model.is_about(Part.COLUMNS) and name.lower() not in declared]
