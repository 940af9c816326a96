"""What a table refuses when it is made: types that the engine does not manage, and in Python code repeated names.

The rules of `validation` report the same repetitions of models in files, together with all other faults of the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from delta_engine.errors import InvalidModelError
from delta_engine.models.parts import Part
from delta_engine.models.types import NOT_MANAGED, first_unsupported

if TYPE_CHECKING:
    from delta_engine.models import Column, ForeignKey, PrimaryKey, Table

_TYPE_WAY_OUT: Final = "Use a Spark SQL type that the engine manages, such as bigint or decimal(18,2)."
_PART_WAY_OUT: Final = (
    "Use another type. Or declare the parts of the table that the engine manages, without its columns, such as "
    "manages: [comments, tags]."
)
_ONCE: Final = "Name each column once."


class Repetition(NamedTuple):
    """What is repeated, the way out, and the column, if it is about one."""

    reason: str
    way_out: str
    column: Column | str | None = None


def refuse_unsupported_types(model: Table) -> None:
    """Raise `InvalidModelError` for the first column whose type the engine does not manage.

    A model that does not manage columns may name each type that tables on Databricks can have.
    """
    manages_types = model.is_about(Part.COLUMNS)
    for column in model.columns:
        unsupported = first_unsupported(column.data_type)
        if unsupported and (manages_types or unsupported.reason != NOT_MANAGED):
            meant = unsupported.meant
            way_out = _PART_WAY_OUT if unsupported.reason == NOT_MANAGED else _TYPE_WAY_OUT
            raise InvalidModelError(
                f"type {unsupported.text!r} cannot be used: {unsupported.reason}",
                table=str(model.qualified_name),
                column=column.name,
                location=column.declared_at or model.declared_at,
                way_out=f"Did you mean {meant!r}?" if meant else way_out,
            )


def refuse_repetitions(model: Table) -> None:
    """Raise `InvalidModelError` for the first repetition."""
    for reason, way_out, named in _repetitions(model):
        name = named if named is None or isinstance(named, str) else named.name
        found = next((one for one in model.columns if one is named or one.name == name), None)
        raise InvalidModelError(
            reason,
            table=str(model.qualified_name),
            column=name,
            location=(found.declared_at if found else None) or model.declared_at,
            way_out=way_out,
        )


def repeated_columns(columns: Iterable[Column]) -> Iterator[Repetition]:
    """Yield each column that has the name of an earlier one; names compare without case."""
    seen: set[str] = set()
    for column in columns:
        if column.key in seen:
            reason = "the table has this column twice (names compare without case)"
            yield Repetition(reason, "Rename or remove one of the two.", column)
        seen.add(column.key)


def repeated_in_primary_key(key: PrimaryKey | None) -> Iterator[Repetition]:
    """Yield the columns that a primary key names twice, as one repetition."""
    if key is not None and (twice := repeated(key.columns)):
        yield Repetition(f"primary key columns ({', '.join(twice)}) stand in it twice", _ONCE, twice[0])


def repeated_in_foreign_key(key: ForeignKey) -> Iterator[Repetition]:
    """Yield the first column that a foreign key names twice; the reason does not name the key."""
    if twice := repeated(key.columns):
        yield Repetition("names a column twice", _ONCE, twice[0])


def repeated_in_layout(key: str, names: Sequence[str], place: int) -> Repetition | None:
    """Return the repetition of an earlier name at a place of `cluster_by` or `partitioned_by`; `key` is one of them."""
    name = names[place]
    is_repeated = name.lower() in map(str.lower, names[:place])
    return Repetition(f"stands in {key} twice", _ONCE, name) if is_repeated else None


def repeated_constraint_names(names: Iterable[str]) -> Iterator[Repetition]:
    """Yield each name of a constraint that occurs more than once."""
    for name in repeated(names):
        yield Repetition(f"constraint name {name!r} is used twice", "Give one of the two another name.")


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once without regard to case, in lower case."""
    return [name for name, count in Counter(map(str.lower, names)).items() if count > 1]


def _repetitions(model: Table) -> Iterator[Repetition]:
    yield from repeated_columns(model.columns)
    yield from repeated_in_primary_key(model.primary_key)
    for key in model.foreign_keys:
        for reason, way_out, column in repeated_in_foreign_key(key):
            yield Repetition(f"foreign key ({', '.join(key.columns)}) {reason}", way_out, column)
    keys = (model.primary_key, *model.foreign_keys)
    key_names = [key.name for key in keys if key is not None and key.name is not None]
    yield from repeated_constraint_names([*(check.name for check in model.checks), *key_names])
    for layout, names in (("cluster_by", model.cluster_by), ("partitioned_by", model.partitioned_by)):
        yield from filter(None, (repeated_in_layout(layout, names, place) for place in range(len(names))))
