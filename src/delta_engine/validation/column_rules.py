"""The default rules for what columns are declared to be: former names, where values come from, partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from delta_engine.errors import InvalidModelError
from delta_engine.models import Column, Table
from delta_engine.nested_types import place_of, type_at
from delta_engine.types import StructType


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


def refusal(model: Table, column: Column, reason: str, way_out: str) -> InvalidModelError:
    """Return the refusal of a column."""
    return InvalidModelError(
        reason,
        table=str(model.qualified_name),
        column=column.name,
        location=column.declared_at or model.declared_at,
        way_out=way_out,
    )
