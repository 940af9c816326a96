"""The default rules for columns: renames and sources of values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from delta_engine.models import Column, Part, Table
from delta_engine.models.nested_types import place_of, type_at
from delta_engine.models.types import AtomicType, DataType, DecimalType, StructType
from delta_engine.sql.expressions import (
    expression_problem,
    generation_problem,
    is_text_literal,
    referenced_columns,
    unknown_columns,
)
from delta_engine.sql.text import shown_type
from delta_engine.validation.rules import Problem, of_each, of_each_column

_RENAMED_FROM_ITSELF = (
    "Remove it. Delta does not change the case of a name: rename it to another name, sync every "
    "environment, and rename that one."
)


class UnambiguousRenames:
    """The model no longer uses an old name, and each old name belongs to only one column or field."""

    about: ClassVar = ("renamed_from", "renamed_fields")

    @of_each(Table)
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse ambiguous renames, and renames without effect."""
        former: dict[str, str] = {}
        for column in model.columns:
            for name in column.renamed_from:
                yield from self._column(model, column, name, former)
            if column.renamed_fields:
                yield from self._fields(column)

    def _column(self, model: Table, column: Column, name: str, former: dict[str, str]) -> Iterator[Problem]:
        key = name.lower()
        if key == column.key:
            yield Problem("it is renamed from itself", _RENAMED_FROM_ITSELF, column)
        elif any(column.key == key for column in model.columns):
            yield Problem(
                f"it is renamed from {name}, which the model also declares",
                "Remove renamed_from, or the declaration of the old name. Two columns swap names in two syncs.",
                column,
            )
        elif key in former:
            reason = f"it is renamed from {name}, and so is {former[key]}"
            yield Problem(reason, "Remove one of the renames: only one column can get the data.", column)
        former.setdefault(key, column.name)

    def _fields(self, column: Column) -> Iterator[Problem]:
        seen: dict[tuple[str, ...], str] = {}
        for text, name in ((path, name) for path, former in column.renamed_fields.items() for name in former):
            place = place_of(column.data_type, text.split("."))
            if place is None:
                yield Problem(
                    f"renamed_fields has {text!r}, which is not a field inside it",
                    "Name the field by its current path, with element, key and value as steps into arrays and maps.",
                    column,
                )
                continue
            renamed, struct = (
                f"its field {text} is renamed from {name}",
                type_at(column.data_type, place[:-1]),
            )
            siblings = struct.fields if isinstance(struct, StructType) else ()
            if name.lower() == place[-1].lower():
                yield Problem(f"its field {text} is renamed from itself", _RENAMED_FROM_ITSELF, column)
            elif any(name.lower() == sibling.name.lower() for sibling in siblings):
                yield Problem(
                    f"{renamed}, which the model also declares",
                    "Remove it from renamed_fields, or remove the declaration of the old name.",
                    column,
                )
            source = (*(step.lower() for step in place[:-1]), name.lower())
            if source in seen:
                reason = f"{renamed}, and so is {seen[source]}"
                yield Problem(reason, "Remove one of the renames: only one column can get the data.", column)
            seen.setdefault(source, text)


class OneSourceOfValues:
    """A column has one source of values: a default, a generation expression, or an identity."""

    about: ClassVar = ("default", "generated_as", "identity")

    @of_each_column
    def check(self, _model: Table, column: Column) -> Iterator[Problem]:
        """Refuse two sources for one column."""
        ways = (column.default, column.generated_as, column.identity)
        if ways.count(None) < 2:
            names = zip(("default", "generated_as", "identity"), ways, strict=True)
            declared = [name for name, way in names if way is not None]
            yield Problem(f"it has {' and '.join(declared)}", "Keep one of them.")


class DefaultsAreConstant:
    """A default reads no rows: Spark refuses columns, subqueries and aggregates in defaults."""

    about: ClassVar = ("default",)

    _MOMENT = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ]+\d{1,2}:\d{2}.*)?|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?")

    @of_each_column
    def check(self, _model: Table, column: Column) -> Iterator[Problem]:
        """Refuse invalid expressions, and expressions that read rows."""
        if column.default is None:
            return
        moment = column.default.strip()
        if self._MOMENT.fullmatch(moment):
            kind = ("TIMESTAMP" if "-" in moment else "") if ":" in moment else "DATE"
            yield Problem(
                f"its default ({column.default}) is a date or time without quotes, which SQL reads as numbers",
                f"Write it as SQL does: \"{kind}'{moment}'\".",
            )
        elif problem := self._problem(column.default, column.data_type):
            yield Problem(
                f"its default ({column.default}) {problem}",
                "Write a value, or a function without columns. A string needs its own quotes: \"'new'\".",
            )

    def _problem(self, default: str, data_type: DataType) -> str | None:
        if problem := expression_problem(default):
            return problem
        if used := sorted(referenced_columns(default)):
            return f"reads columns ({', '.join(used)})"
        if is_text_literal(default) and _is_no_text(data_type):
            return f"is a string, which Spark does not convert to {shown_type(data_type)} of"
        return None


class GeneratedColumnsFit:
    """A generated column reads only columns of its row that are not generated.

    Databricks documentation, "Delta Lake generated columns".
    """

    about: ClassVar = ("generated_as",)

    @of_each_column
    def check(self, model: Table, column: Column) -> Iterator[Problem]:
        """Refuse invalid expressions, and columns that they cannot read."""
        if column.generated_as is not None and (problem := self._problem(model, column, column.generated_as)):
            yield Problem(
                f"its expression ({column.generated_as}) {problem}",
                "Compute it from columns of the table that writers fill.",
            )

    def _problem(self, model: Table, column: Column, expression: str) -> str | None:
        used = sorted(referenced_columns(expression))
        by_generation = {column.key for column in model.columns if column.generated_as is not None}
        if unknown := unknown_columns(expression, model.columns):
            return f"reads columns that the table does not have ({', '.join(unknown)})"
        if column.key in used:
            return "reads the column itself"
        if generated := [key for key in used if key in by_generation]:
            return f"reads generated columns ({', '.join(generated)})"
        return generation_problem(expression)


class IdentityColumnsCount:
    """An identity column is a bigint with a step other than 0, within the range of bigint, and no partition column.

    Databricks documentation, "CREATE TABLE": identity columns.
    """

    about: ClassVar = ("identity",)

    _BOUND = 2**63

    @of_each_column
    def check(self, model: Table, column: Column) -> Iterator[Problem]:
        """Refuse other types, steps of 0, values beyond 64 bits, and partitioning by identity columns."""
        if column.identity is None or not model.is_about(Part.COLUMNS):
            return
        if column.data_type != AtomicType("bigint"):
            kind = shown_type(column.data_type)
            yield Problem(f"it is an identity column of type {kind}", "Make it a bigint.")
        start, step = column.identity.start, column.identity.step
        if step == 0:
            yield Problem("it is an identity column with a step of 0", "Use another step.")
        if beyond := [number for number in (start, step) if not -self._BOUND <= number < self._BOUND]:
            reason = f"it is an identity column, and {beyond[0]} is not a bigint"
            yield Problem(reason, "Use smaller numbers.")
        if column.key in map(str.lower, model.partitioned_by):
            reason = "it is an identity column, and the table is partitioned by it"
            yield Problem(reason, "Partition by another column.")


_NO_TEXTS = frozenset({"boolean", "tinyint", "smallint", "int", "bigint", "float", "double"})


def _is_no_text(data_type: DataType) -> bool:
    """Whether the type refuses a text as default (`INVALID_DEFAULT_VALUE.DATA_TYPE`, measured on 4.1.1)."""
    is_scalar = isinstance(data_type, AtomicType) and data_type.name in _NO_TEXTS
    return is_scalar or isinstance(data_type, DecimalType)
