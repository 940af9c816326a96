"""Refuses names by their project: in the models of one project, and between projects.

`owns` in a configuration has the globs of a project's tables. A schema is a project's if a glob names it, or all of its
tables: `gold`, `gold.*`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from itertools import product, takewhile
from typing import Final, TypeAlias

from delta_engine.actions.policy import matches_any
from delta_engine.errors import InvalidModelError
from delta_engine.models import Schema, Table
from delta_engine.models.constraints import referenced_table
from delta_engine.validation.rules import Problem, model_refusal, of_each_table

_WAY_OUT: Final = "Declare it in its own project, or add it to owns."
_WAY_OUT_OF_PARENTS: Final = (
    "Declare that table with its primary key, name referenced_columns, or, if the table is another project's, leave it "
    "out of owns."
)


@dataclass(frozen=True, slots=True)
class OwnedTables:
    """A model declares a table that is its project's (owns)."""

    owns: Sequence[str]

    @of_each_table
    def check(self, model: Table) -> Iterator[Problem]:
        """Refuse tables of other projects, and renames of them."""
        name = model.qualified_name
        if not matches_any(name, self.owns):
            yield Problem(f"it is not this project's, which owns {', '.join(self.owns)}", _WAY_OUT)
        for former in model.renamed_from:
            if not matches_any(replace(name, table=former), self.owns):
                yield Problem(f"renamed_from {former!r} is the name of another project's table", _WAY_OUT)


@dataclass(frozen=True, slots=True)
class OwnedParents:
    """A foreign key references a declared table, a table of another project (owns), or names its columns."""

    owns: Sequence[str]

    def check(self, models: Sequence[Table]) -> Iterator[InvalidModelError]:
        """Refuse undeclared tables of the project: the primary key of others' tables is read from the catalog."""
        declared = {model.key for model in models}
        for model in models:
            for key in model.foreign_keys:
                parent = referenced_table(model.qualified_name, key)
                if key.referenced_columns or parent is None or parent.key in declared:
                    continue
                if matches_any(parent, self.owns):
                    named = f"foreign key ({', '.join(key.columns)}) references {parent}"
                    yield model_refusal(model, f"{named}, which is not declared", _WAY_OUT_OF_PARENTS)


def schemas_of_others(schemas: Iterable[Schema], owns: Sequence[str]) -> Iterator[InvalidModelError]:
    """Yield the refusals of declared schemas that are not their project's."""
    globs = (*owns, *(glob.removesuffix(".*") for glob in owns))
    for schema in schemas:
        if not matches_any(schema.qualified_name, globs):
            reason = f"schema {schema.qualified_name}: it is not this project's, which owns {', '.join(owns)}"
            yield InvalidModelError(reason, location=schema.declared_at, way_out=_WAY_OUT)


def common_table(
    globs: Iterable[str], others: Iterable[str], catalogs: Collection[str]
) -> tuple[str, str] | None:
    """Return a glob of each side that match one table of some catalogs, by whatever name it has; None if no two do."""
    return next((pair for pair in product(globs, others) if _have_common_table(*pair, catalogs)), None)


_Symbols: TypeAlias = tuple[str, ...]
"""The symbols of a glob: `*`, `?`, a set in brackets, or a character."""

_SYMBOLS: Final = re.compile(r"\[!?\]?[^\]]*\]|.", re.DOTALL)
_ANY: Final = "*"
_ANOTHER_LETTER: Final = "\0"


def _have_common_table(glob: str, other: str, catalogs: Iterable[str]) -> bool:
    return any(
        _match_one_name(*pair)
        for catalog in catalogs
        for pair in product(_within(catalog.lower(), glob), _within(catalog.lower(), other))
    )


@cache
def _within(catalog: str, glob: str) -> Sequence[_Symbols]:
    """Return what a glob says of `schema.table` in a catalog: it matches a whole name, or its end after a dot."""
    symbols = tuple(_SYMBOLS.findall(glob.lower()))
    places = {0}
    for letter in f"{catalog}.":
        places = {after for place in _started(symbols, places) for after in _after(symbols, place, letter)}
    ends = (symbols[place:] for place in sorted(_started(symbols, places)))
    return [one for one in (symbols, (_ANY, ".", *symbols), *ends) if one.count(".") <= 1]


def _match_one_name(one: _Symbols, other: _Symbols) -> bool:
    """Whether both match one `schema.table`: follows both through all names at once."""
    if _start_differently(one, other):
        return False
    letters = {_ANOTHER_LETTER, *(letter for symbol in (*one, *other) for letter in symbol)}
    seen, following = set(), [(0, 0, 0, True)]
    while following:
        state = place, other_place, dots, is_empty = following.pop()
        if state == (len(one), len(other), 1, False):
            return True
        if state in seen:
            continue
        seen.add(state)
        places, other_places = _started(one, {place}), _started(other, {other_place})
        following += [(*pair, dots, is_empty) for pair in product(places, other_places)]
        literals = {*one[place : place + 1], *other[other_place : other_place + 1]} & letters
        for letter in literals - {_ANY, "?"} or letters:
            if letter == "." and (is_empty or dots):
                continue
            pairs = product(_after(one, place, letter), _after(other, other_place, letter))
            following += [(*pair, dots + (letter == "."), letter == ".") for pair in pairs]
    return False


def _start_differently(one: _Symbols, other: _Symbols) -> bool:
    """Whether the letters before the first wildcard of either differ, which is quickly seen."""
    pairs = takewhile(lambda pair: all(map(_is_letter, pair)), zip(one, other, strict=False))
    return any(mine != others for mine, others in pairs)


def _is_letter(symbol: str) -> bool:
    return len(symbol) == 1 and symbol not in "*?"


def _started(symbols: _Symbols, places: Iterable[int]) -> set[int]:
    """Return places, and those behind a `*`, which may match nothing."""
    found = set[int]()
    for start in places:
        found |= {
            start,
            *takewhile(lambda place: symbols[place - 1] == _ANY, range(start + 1, len(symbols) + 1)),
        }
    return found


def _after(symbols: _Symbols, place: int, letter: str) -> Sequence[int]:
    """Return the place after a letter, if it may follow."""
    if place == len(symbols) or not (symbols[place] == letter or fnmatchcase(letter, symbols[place])):
        return ()
    return (place,) if symbols[place] == _ANY else (place + 1,)
