"""Names that a table repeats. A table that Python code makes refuses them; rules report those of models in files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from delta_engine.models.columns import Column
from delta_engine.models.parts import ForeignKey, PrimaryKey

_ONCE: Final = "Name each column once."


class Repetition(NamedTuple):
    """What is repeated, the fix, and the column, if the problem concerns a column."""

    reason: str
    way_out: str
    column: Column | str | None = None


def repeated_columns(columns: Iterable[Column]) -> Iterator[Repetition]:
    """Yield each column that has the name of an earlier one; names compare without case."""
    seen: set[str] = set()
    for column in columns:
        key = column.key
        if key in seen:
            reason = "the table has this column twice (names ignore case)"
            yield Repetition(reason, "Rename or remove one of them.", column)
        seen.add(key)


def repeated_in_primary_key(key: PrimaryKey | None) -> Iterator[Repetition]:
    """Yield the columns that a primary key names twice, as one repetition."""
    if key is not None and (twice := repeated(key.columns)):
        yield Repetition(f"primary key columns ({', '.join(twice)}) appear in it twice", _ONCE, twice[0])


def repeated_in_foreign_key(key: ForeignKey) -> Iterator[Repetition]:
    """Yield the first column that a foreign key names twice; the reason does not name the key."""
    if twice := repeated(key.columns):
        yield Repetition("names a column twice", _ONCE, twice[0])


def repeated_in_layout(key: str, names: Sequence[str], place: int) -> Repetition | None:
    """Return the repetition of an earlier name at a place of `cluster_by` or `partitioned_by`; `key` is one of them."""
    name = names[place]
    is_repeated = name.lower() in map(str.lower, names[:place])
    return Repetition(f"appears in {key} twice", _ONCE, name) if is_repeated else None


def repeated_constraint_names(names: Iterable[str]) -> Iterator[Repetition]:
    """Yield each name of a constraint that occurs more than once."""
    for name in repeated(names):
        yield Repetition(f"constraint name {name!r} is used twice", "Rename one of them.")


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once without regard to case, in lower case."""
    return [name for name, count in Counter(map(str.lower, names)).items() if count > 1]
