"""The default rules for tags, row filters, column masks, owners and grants."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from delta_engine.actions import AlignTable, TablePlan
from delta_engine.actions.policy import DestructiveKind, Policy
from delta_engine.aspects.column_masks import DropColumnMask
from delta_engine.aspects.row_filters import DropRowFilter
from delta_engine.errors import InvalidModelError, UnsafePlanError
from delta_engine.models import Column, ColumnMask, Grants, Part, RowFilter, Table
from delta_engine.sql.expressions import referenced_columns
from delta_engine.sql.governance import function_parts
from delta_engine.validation.model_rules import forbidden_in_names
from delta_engine.validation.refusals import model_refusal, plan_refusal


class TagsWithinLimits:
    """Unity Catalog can store the tags (Databricks docs: "Apply tags to Unity Catalog securable objects").

    Keys of the platform's own tags (`class.…`, `system.…`) contain a dot, and are allowed.
    """

    MOST = 50
    LONGEST_KEY = 255
    LONGEST_VALUE = 1000
    _FORBIDDEN = re.compile(r"[.,\-=/:]")
    _SYSTEM = ("class.", "system.")

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse too many tags, tags that are too long, and keys with forbidden characters."""
        for model in models:
            for reason, way_out in self.problems(model.tags):
                yield model_refusal(model, reason, way_out)
            for column in model.columns:
                for reason, way_out in self.problems(column.tags):
                    yield model_refusal(model, reason, way_out, column.name)

    def problems(self, tags: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the problems of an object's tags, each with its way out."""
        if len(tags) > self.MOST:
            yield f"it has {len(tags)} tags", f"Name {self.MOST} at most."
        for key, value in tags.items():
            problem = self._key_problem(key)
            if problem:
                yield (
                    f"tag key {key!r} {problem}",
                    "Use letters, digits, underscores and blanks between them.",
                )
            if len(value) > self.LONGEST_VALUE:
                yield (
                    f"the value of tag {key!r} is longer than {self.LONGEST_VALUE} characters",
                    "Shorten it, or write it into the comment.",
                )
            elif value != value.strip():
                yield f"the value of tag {key!r} begins or ends with a blank", "Remove the blank."

    def _key_problem(self, key: str) -> str:
        if not key:
            return "is empty"
        if len(key) > self.LONGEST_KEY:
            return f"is longer than {self.LONGEST_KEY} characters"
        if key != key.strip():
            return "begins or ends with a blank"
        own = next((key.removeprefix(prefix) for prefix in self._SYSTEM if key.startswith(prefix)), key)
        found = self._FORBIDDEN.search(own)
        return f"has a character that is not allowed here: {found[0]!r}" if found else ""


class RowFiltersFit:
    """A row filter names a function and columns of its table."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse what the platform refuses (Databricks docs: "ROW FILTER clause")."""
        for model in models:
            if model.row_filter is not None:
                for reason, way_out, column in self._problems(model, model.row_filter):
                    yield model_refusal(model, reason, way_out, column)

    def _problems(self, model: Table, row_filter: RowFilter) -> Iterator[tuple[str, str, str | None]]:
        problem = _function_problem(row_filter.function)
        if problem:
            yield f"its row filter {problem}", _FUNCTION_NAMES, None
        taken = [name.lower() for name in row_filter.columns]
        missing = _missing(model, row_filter.columns)
        for place, name in enumerate(row_filter.columns):
            if name in missing and _CONSTANT.fullmatch(name):
                yield (
                    f"its row filter takes the constant {name}, and only columns can be declared",
                    _CONSTANTS,
                    None,
                )
            elif taken[place] in taken[:place]:
                yield "its row filter takes it twice", "Name each column once.", name
            elif name in missing:
                yield (
                    "its row filter takes it, and the table has no such column",
                    "Declare it, or correct the row filter.",
                    name,
                )


class ColumnMasksFit:
    """A column mask names a function and other columns of its table; no generated column reads the masked one."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse what the platform refuses.

        Databricks docs: "ROW_COLUMN_ACCESS error condition", "COLUMN_MASKS_REFERENCED_BY_GENERATED_COLUMN error
        condition".
        """
        for model in models:
            for column in model.columns:
                if column.mask is not None:
                    for reason, way_out in self._problems(model, column, column.mask):
                        yield model_refusal(model, reason, way_out, column.name)

    def _problems(self, model: Table, column: Column, mask: ColumnMask) -> Iterator[tuple[str, str]]:
        problem = _function_problem(mask.function)
        if problem:
            yield f"its mask {problem}", _FUNCTION_NAMES
        missing, taken = _missing(model, mask.using_columns), [name.lower() for name in mask.using_columns]
        constants = [name for name in missing if _CONSTANT.fullmatch(name)]
        if constants:
            yield f"its mask takes the constant {constants[0]}, and only columns can be declared", _CONSTANTS
        elif missing:
            listed = ", ".join(missing)
            yield (
                f"its mask takes columns ({listed}) that the table does not have",
                "Declare them, or correct using_columns.",
            )
        if column.key in taken:
            yield (
                "its mask names it in using_columns",
                "Leave it out there: the function takes the masked column first anyway.",
            )
        if len(taken) > len({*taken}):
            yield "its mask takes a column twice", "Name each column once in using_columns."
        readers = [other.name for other in model.columns if column.key in _read_by_generation(other)]
        if readers:
            yield (
                f"it has a mask, and generated columns ({', '.join(readers)}) read it: Databricks refuses that",
                "Leave the mask out, or let writers fill those columns.",
            )


class NoChecksUnderProtection:
    """A table with a row filter or column masks has no CHECK constraints: Databricks refuses the combination."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse the combination in one model.

        Databricks docs: "COLUMN_MASKS_FEATURE_NOT_SUPPORTED error condition", "ROW_LEVEL_SECURITY_FEATURE_NOT_SUPPORTED
        error condition", both with CHECK_CONSTRAINT.
        """
        for model in models:
            masked = [column.name for column in model.columns if column.mask is not None]
            if model.checks and (masked or model.row_filter is not None):
                what = "a row filter" if model.row_filter is not None else f"a mask on {masked[0]}"
                yield model_refusal(
                    model,
                    f"it has CHECK constraints and {what}, and Databricks refuses the two together",
                    "Leave one of them out: the rows can be checked before they are written, or be filtered by a view.",
                )


class PrivilegesOfTables:
    """Grants name privileges of tables, and each principal once."""

    KNOWN = frozenset({"ALL PRIVILEGES", "APPLY TAG", "MANAGE", "MODIFY", "SELECT"})
    """Databricks docs: "Unity Catalog privileges reference"."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse unknown privileges, empty principals, and principals in two spellings."""
        for model in models:
            for reason, way_out in privilege_problems(model.grants, self.KNOWN):
                yield model_refusal(model, reason, way_out)
            if model.owner is not None:
                for reason, way_out in principal_problems(model.owner, "its owner"):
                    yield model_refusal(model, reason, way_out)


def principal_problems(principal: str, subject: str) -> Iterator[tuple[str, str]]:
    """Yield the problems of a principal's name, each with its way out; messages begin with `subject`."""
    found = _NO_PRINCIPAL.search(principal)
    if not principal.strip():
        yield f"{subject} has no name", "Name a user, service principal or group."
    elif found:
        yield (
            f"{subject}, {principal!r}, has a character that is not allowed here: {found[0]!r}",
            "Name a user, service principal or group.",
        )


def privilege_problems(grants: Grants, known: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the problems of grants, each with its way out; `known` holds the grantable privileges."""
    seen: dict[str, str] = {}
    for principal, privileges in grants.items():
        yield from principal_problems(principal, "a principal that it grants to")
        first = seen.setdefault(principal.lower(), principal)
        if first != principal:
            yield f"it grants to {first!r} and to {principal!r}, which is one principal", "Join the two."
        for privilege in privileges:
            if privilege not in known:
                yield (
                    f"it grants {privilege} to {principal!r}, which cannot be granted there",
                    f"Grant {', '.join(sorted(known))}.",
                )


class NoUnallowedExposure:
    """Dropping a row filter or a column mask needs consent by the policy or the command."""

    def check(self, plan: TablePlan, policy: Policy) -> Iterator[UnsafePlanError]:
        """Refuse drops without consent, because they would expose data."""
        for align in plan.align_tables:
            if align.of_type(DropRowFilter) and not policy.allows(
                DestructiveKind.DROP_ROW_FILTER, align.table
            ):
                yield _exposure(
                    align,
                    "its row filter would be dropped, and every reader would see all rows",
                    DestructiveKind.DROP_ROW_FILTER,
                )
            masked = [drop.column for drop in align.of_type(DropColumnMask)]
            if masked and not policy.allows(DestructiveKind.DROP_COLUMN_MASK, align.table):
                yield _exposure(
                    align,
                    f"the masks of columns ({', '.join(masked)}) would be dropped, and every reader of the "
                    "table would see their values",
                    DestructiveKind.DROP_COLUMN_MASK,
                    masked[0],
                )


_NO_PRINCIPAL = re.compile(r"[\x00-\x1f\x7f-\x9f]|\$\{")
"""No principal has such a name, and Spark substitutes `${…}` even in names."""

_FUNCTION_NAMES = "Write function, schema.function or catalog.schema.function."
_CONSTANTS = "Write a function of columns alone, which calls this one with the constant."
_CONSTANT = re.compile(r"'.*'|\".*\"|[+-]?\d+(\.\d*)?|(?i:true|false|null|interval .*)", re.DOTALL)
"""What Databricks accepts as an argument besides columns (docs: "ROW FILTER clause", "Column mask clause")."""


def _function_problem(function: str) -> str:
    parts = function_parts(function) or [""]
    is_name = len(parts) <= 3 and not any(map(forbidden_in_names, parts))
    return "" if is_name else f"is {function!r}, which is no function's name"


def _missing(model: Table, names: Sequence[str]) -> list[str]:
    """Return the names that are not columns of a table; empty if the model does not manage columns."""
    known = {column.key for column in model.columns}
    return [name for name in names if model.is_about(Part.COLUMNS) and name.lower() not in known]


def _read_by_generation(column: Column) -> frozenset[str]:
    return frozenset() if column.generated_as is None else referenced_columns(column.generated_as)


def _exposure(
    align: AlignTable, reason: str, kind: DestructiveKind, column: str | None = None
) -> UnsafePlanError:
    return plan_refusal(
        align,
        reason,
        f"Declare it again, or allow it: --allow {kind.value}:{align.table} for one run, "
        f"policy.allow: [{kind.value}] for the target.",
        column,
    )
