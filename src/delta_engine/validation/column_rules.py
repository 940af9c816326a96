"""The default rules for what columns are declared to be: former names, where values come from, partitions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from delta_engine.errors import InvalidModelError
from delta_engine.models import Column, Table
from delta_engine.nested_types import place_of, type_at
from delta_engine.sql import sql_data_type
from delta_engine.sql_expressions import condition_problem, referenced_columns
from delta_engine.types import ArrayType, AtomicType, MapType, StructType


class UnambiguousRenames:
    """A former name is one that the model does not use any more, and one column's or field's alone."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse renames that could mean several things, or nothing."""
        for model in models:
            former: dict[str, str] = {}
            for column in model.columns:
                if column.renamed_from is not None:
                    yield from self._column(model, column, former)
                yield from self._fields(model, column)

    def _column(self, model: Table, column: Column, former: dict[str, str]) -> Iterator[InvalidModelError]:
        key = str(column.renamed_from).lower()
        if key == column.key:
            yield refusal(model, column, "it is renamed from itself", "Leave renamed_from out.")
        elif any(one.key == key for one in model.columns):
            yield refusal(
                model,
                column,
                f"it is renamed from {column.renamed_from}, which the model declares as well",
                "Leave renamed_from out, or do not declare the former name. Two columns swap names in two syncs.",
            )
        elif key in former:
            yield refusal(
                model,
                column,
                f"it is renamed from {column.renamed_from}, and so is {former[key]}",
                "Only one of them can have its data.",
            )
        former.setdefault(key, column.name)

    def _fields(self, model: Table, column: Column) -> Iterator[InvalidModelError]:
        seen: dict[tuple[str, ...], str] = {}
        for text, name in column.renamed_fields.items():
            place = place_of(column.data_type, text.split("."))
            if place is None:
                yield refusal(
                    model,
                    column,
                    f"renamed_fields has {text!r}, which is no field inside it",
                    "Name the field by its path now, with element, key and value as steps into arrays and maps.",
                )
                continue
            struct = type_at(column.data_type, place[:-1])
            siblings = (
                {one.name.lower() for one in struct.fields} if isinstance(struct, StructType) else set()
            )
            if name.lower() in siblings:
                yield refusal(
                    model,
                    column,
                    f"its field {text} is renamed from {name}, which the model declares as well",
                    "Leave it out of renamed_fields, or do not declare the former name.",
                )
            source = (*(step.lower() for step in place[:-1]), name.lower())
            if source in seen:
                yield refusal(
                    model,
                    column,
                    f"its field {text} is renamed from {name}, and so is {seen[source]}",
                    "Only one of them can have its data.",
                )
            seen.setdefault(source, text)


class OneSourceOfValues:
    """A column gets its values in one way: written with or without a default, generated, or counted up."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse two ways for one column."""
        for model in models:
            for column in model.columns:
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
                    yield refusal(model, column, f"it has {' and '.join(ways)}", "Keep one of them.")


class DefaultsAreConstant:
    """A default is an expression that needs no row: Spark refuses columns, subqueries and aggregates in it."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse what is no expression, or looks at rows."""
        for model in models:
            for column in model.columns:
                if column.default is None:
                    continue
                problem = condition_problem(column.default)
                used = sorted(referenced_columns(column.default))
                if problem is None and used:
                    problem = f"reads columns ({', '.join(used)})"
                if problem:
                    yield refusal(
                        model,
                        column,
                        f"its default ({column.default}) {problem}",
                        "Give a value or a function of no column; a text stands in quotes of its own: \"'new'\".",
                    )


class GeneratedColumnsFit:
    """A generated column is computed from other columns of its row, which are not generated themselves.

    Databricks documentation, "Delta Lake generated columns".
    """

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse what is no expression, and columns that it cannot read."""
        for model in models:
            by_key = {column.key: column for column in model.columns}
            for column in model.columns:
                if column.generated_as is not None:
                    problem = self._problem(column, column.generated_as, by_key)
                    if problem:
                        yield refusal(
                            model,
                            column,
                            f"what it is generated as ({column.generated_as}) {problem}",
                            "Compute it from columns of the table that writers fill.",
                        )

    def _problem(self, column: Column, expression: str, by_key: Mapping[str, Column]) -> str | None:
        used = sorted(referenced_columns(expression))
        unknown = [key for key in used if key not in by_key]
        generated = [key for key in used if key in by_key and by_key[key].generated_as is not None]
        if unknown:
            return f"reads columns that the table does not have ({', '.join(unknown)})"
        if column.key in used:
            return "reads the column itself"
        if generated:
            return f"reads generated columns ({', '.join(generated)})"
        return condition_problem(expression)


class IdentityColumnsCount:
    """An identity column is a bigint, counts in steps other than 0, and no partition column.

    Databricks documentation, "CREATE TABLE": identity columns.
    """

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse other types, steps of 0, and partitions of counted values."""
        for model in models:
            partitions = set(map(str.lower, model.partitioned_by))
            for column in model.columns:
                if column.identity is None:
                    continue
                if column.data_type != AtomicType("bigint"):
                    kind = sql_data_type(column.data_type)
                    yield refusal(
                        model, column, f"it is an identity column of type {kind}", "Make it a bigint."
                    )
                if column.identity.step == 0:
                    yield refusal(
                        model,
                        column,
                        "it is an identity column that counts in steps of 0",
                        "Use another step.",
                    )
                if column.key in partitions:
                    yield refusal(
                        model,
                        column,
                        "it is an identity column, and the table is partitioned by it",
                        "Partition by another column.",
                    )


class PartitioningFits:
    """Tables are partitioned by some of their columns, of types that have one value, and then not clustered."""

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse partitions that the platform would refuse (Databricks documentation, "CREATE TABLE")."""
        for model in models:
            for reason, column, way_out in self._problems(model) if model.partitioned_by else ():
                yield InvalidModelError(
                    reason,
                    table=str(model.qualified_name),
                    column=column,
                    location=model.declared_at,
                    way_out=way_out,
                )

    def _problems(self, model: Table) -> Iterator[tuple[str, str | None, str]]:
        types = {column.key: column.data_type for column in model.columns}
        keys = [name.lower() for name in model.partitioned_by]
        if model.cluster_by or model.clusters_automatically:
            yield "it is partitioned and clustered", None, "Leave partitioned_by out, or cluster_by."
        for place, name in enumerate(model.partitioned_by):
            data_type = types.get(keys[place])
            if data_type is None:
                yield (
                    "partitioned_by names no column of the table",
                    name,
                    "Declare it, or correct partitioned_by.",
                )
            elif keys[place] in keys[:place]:
                yield "stands in partitioned_by twice", name, "Name each column once."
            elif isinstance(data_type, (ArrayType, MapType, StructType)) or data_type == AtomicType(
                "variant"
            ):
                kind = sql_data_type(data_type)
                yield (
                    f"cannot be partitioned by: its type is {kind}",
                    name,
                    "Partition by numbers, texts or dates.",
                )
        if set(keys) == types.keys():
            yield "all of its columns are partition columns", None, "Leave one of them out of partitioned_by."


class LocationsAreWhole:
    """The location of an external table is a whole address or an absolute path."""

    _WHOLE = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?/")

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse relative paths, and what Spark takes for a variable."""
        for model in models:
            location = model.location
            if location is not None and (not self._WHOLE.match(location) or "${" in location):
                yield InvalidModelError(
                    f"its location {location!r} is no whole address",
                    table=str(model.qualified_name),
                    location=model.declared_at,
                    way_out="Write it with its scheme, as in s3://bucket/path.",
                )


def refusal(model: Table, column: Column, reason: str, way_out: str) -> InvalidModelError:
    """Return the refusal of a column."""
    return InvalidModelError(
        reason,
        table=str(model.qualified_name),
        column=column.name,
        location=column.declared_at or model.declared_at,
        way_out=way_out,
    )
