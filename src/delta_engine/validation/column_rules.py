"""The default rules for columns: renames and sources of values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from delta_engine.errors import InvalidModelError
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
from delta_engine.sql.text import sql_data_type
from delta_engine.validation.rules import columns_of, model_refusal


class UnambiguousRenames:
    """A former name is no longer used in the model, and belongs to one column or field only."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse ambiguous renames, and renames without effect."""
        for model in models:
            former: dict[str, str] = {}
            for column in model.columns:
                if column.renamed_from is not None:
                    yield from self._column(model, column, former)
                yield from self._fields(model, column)

    def _column(self, model: Table, column: Column, former: dict[str, str]) -> Iterator[InvalidModelError]:
        key = str(column.renamed_from).lower()
        if key == column.key:
            yield model_refusal(model, "it is renamed from itself", "Leave renamed_from out.", column)
        elif any(one.key == key for one in model.columns):
            yield model_refusal(
                model,
                f"it is renamed from {column.renamed_from}, which the model declares as well",
                "Leave renamed_from out, or do not declare the former name. Two columns swap names in two syncs.",
                column,
            )
        elif key in former:
            yield model_refusal(
                model,
                f"it is renamed from {column.renamed_from}, and so is {former[key]}",
                "Only one of them can have its data.",
                column,
            )
        former.setdefault(key, column.name)

    def _fields(self, model: Table, column: Column) -> Iterator[InvalidModelError]:
        seen: dict[tuple[str, ...], str] = {}
        for text, name in column.renamed_fields.items():
            place = place_of(column.data_type, text.split("."))
            if place is None:
                yield model_refusal(
                    model,
                    f"renamed_fields has {text!r}, which is no field inside it",
                    "Name the field by its path now, with element, key and value as steps into arrays and maps.",
                    column,
                )
                continue
            struct = type_at(column.data_type, place[:-1])
            siblings = (
                {one.name.lower() for one in struct.fields} if isinstance(struct, StructType) else set()
            )
            if name.lower() in siblings:
                yield model_refusal(
                    model,
                    f"its field {text} is renamed from {name}, which the model declares as well",
                    "Leave it out of renamed_fields, or do not declare the former name.",
                    column,
                )
            source = (*(step.lower() for step in place[:-1]), name.lower())
            if source in seen:
                yield model_refusal(
                    model,
                    f"its field {text} is renamed from {name}, and so is {seen[source]}",
                    "Only one of them can have its data.",
                    column,
                )
            seen.setdefault(source, text)


class OneSourceOfValues:
    """A column has one source of values: a default, a generation expression, or an identity."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse two sources for one column."""
        for model, column in columns_of(models):
            ways = [
                way
                for way, is_declared in (
                    ("default", column.default is not None),
                    ("generated_as", column.generated_as is not None),
                    ("identity", column.identity is not None),
                )
                if is_declared
            ]
            if len(ways) > 1:
                yield model_refusal(model, f"it has {' and '.join(ways)}", "Keep one of them.", column)


class DefaultsAreConstant:
    """A default needs no row: Spark refuses columns, subqueries and aggregates in it."""

    _MOMENT = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ]+\d{1,2}:\d{2}.*)?|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?")

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse invalid expressions, and expressions that read rows."""
        for model, column in columns_of(models):
            if column.default is None:
                continue
            if self._MOMENT.fullmatch(column.default.strip()):
                yield model_refusal(
                    model,
                    f"its default ({column.default}) is a date or time without quotes, which SQL takes for numbers",
                    f'Write it as SQL does: "{self._as_literal(column.default.strip())}".',
                    column,
                )
                continue
            problem = expression_problem(column.default)
            used = sorted(referenced_columns(column.default))
            if problem is None and used:
                problem = f"reads columns ({', '.join(used)})"
            if problem is None and is_text_literal(column.default) and _is_no_text(column.data_type):
                problem = f"is a text, which Spark does not make a {sql_data_type(column.data_type)} of"
            if problem:
                yield model_refusal(
                    model,
                    f"its default ({column.default}) {problem}",
                    "Give a value or a function of no column; a text stands in quotes of its own: \"'new'\".",
                    column,
                )

    def _as_literal(self, moment: str) -> str:
        kind = ("TIMESTAMP" if "-" in moment else "") if ":" in moment else "DATE"
        return f"{kind}'{moment}'"


class GeneratedColumnsFit:
    """A generated column reads other columns of its row, and no generated ones.

    Databricks documentation, "Delta Lake generated columns".
    """

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse invalid expressions, and columns that they cannot read."""
        for model in models:
            by_key = {column.key: column for column in model.columns}
            for column in model.columns:
                if column.generated_as is not None:
                    problem = self._problem(column, column.generated_as, by_key)
                    if problem:
                        yield model_refusal(
                            model,
                            f"what it is generated as ({column.generated_as}) {problem}",
                            "Compute it from columns of the table that writers fill.",
                            column,
                        )

    def _problem(self, column: Column, expression: str, by_key: Mapping[str, Column]) -> str | None:
        used = sorted(referenced_columns(expression))
        unknown = unknown_columns(expression, [*by_key.values()])
        generated = [key for key in used if key in by_key and by_key[key].generated_as is not None]
        if unknown:
            return f"reads columns that the table does not have ({', '.join(unknown)})"
        if column.key in used:
            return "reads the column itself"
        if generated:
            return f"reads generated columns ({', '.join(generated)})"
        return generation_problem(expression)


class IdentityColumnsCount:
    """An identity column is a bigint with a step other than 0, within the range of bigint, and no partition column.

    Databricks documentation, "CREATE TABLE": identity columns.
    """

    _BOUND = 2**63

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse other types, steps of 0, values beyond 64 bits, and partitioning by identity columns."""
        for model in models:
            partitions = set(map(str.lower, model.partitioned_by))
            for column in model.columns:
                if column.identity is None or not model.is_about(Part.COLUMNS):
                    continue
                if column.data_type != AtomicType("bigint"):
                    kind = sql_data_type(column.data_type)
                    yield model_refusal(
                        model, f"it is an identity column of type {kind}", "Make it a bigint.", column
                    )
                if column.identity.step == 0:
                    yield model_refusal(
                        model,
                        "it is an identity column that counts in steps of 0",
                        "Use another step.",
                        column,
                    )
                beyond = [
                    number
                    for number in (column.identity.start, column.identity.step)
                    if not -self._BOUND <= number < self._BOUND
                ]
                if beyond:
                    yield model_refusal(
                        model,
                        f"it is an identity column, and {beyond[0]} is no bigint",
                        "Count with smaller numbers.",
                        column,
                    )
                if column.key in partitions:
                    yield model_refusal(
                        model,
                        "it is an identity column, and the table is partitioned by it",
                        "Partition by another column.",
                        column,
                    )


_NO_TEXTS = frozenset({"boolean", "tinyint", "smallint", "int", "bigint", "float", "double"})


def _is_no_text(data_type: DataType) -> bool:
    """Whether the type refuses a text as default (`INVALID_DEFAULT_VALUE.DATA_TYPE`, measured on 4.1.1)."""
    match data_type:
        case AtomicType(name):
            return name in _NO_TEXTS
        case DecimalType():
            return True
    return False
