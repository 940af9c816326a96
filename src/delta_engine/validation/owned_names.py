"""Refuses names that belong to another project: in the models of one project, and between projects.

`owns` in a configuration has the globs of a project's tables. A schema is a project's if a glob names it, or all of its
tables: `gold`, `gold.*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import Final, TypeAlias

from delta_engine.actions.policy import matches_any
from delta_engine.errors import InvalidModelError
from delta_engine.models import Schema, Table
from delta_engine.validation.rules import Problem, of_each_table

_WAY_OUT: Final = "Declare it in its own project, or add it to owns."


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
        if model.renamed_from is not None and not matches_any(
            replace(name, table=model.renamed_from), self.owns
        ):
            reason = f"renamed_from {model.renamed_from!r} is the name of another project's table"
            yield Problem(reason, _WAY_OUT)


def schemas_of_others(schemas: Iterable[Schema], owns: Sequence[str]) -> Iterator[InvalidModelError]:
    """Yield the refusals of declared schemas that are not their project's."""
    globs = (*owns, *(glob.removesuffix(".*") for glob in owns))
    for schema in schemas:
        if not matches_any(schema.qualified_name, globs):
            reason = f"schema {schema.qualified_name}: it is not this project's, which owns {', '.join(owns)}"
            yield InvalidModelError(reason, location=schema.declared_at, way_out=_WAY_OUT)


def common_table(
    globs: Iterable[str], others: Iterable[str], catalogs: Iterable[str]
) -> tuple[str, str] | None:
    """Return a glob of each side that match one table of some catalogs, by whatever name it has; None if no two do."""
    within = [[*catalog.lower(), ".", "*", ".", "*"] for catalog in catalogs]
    return next((pair for pair in product(globs, others) if _have_common_table(*pair, within)), None)


_SYMBOLS: Final = re.compile(r"\[!?\]?[^\]]*\]|.", re.DOTALL)
_ANOTHER_LETTER: Final = "\0"
_DOTS: Final = 2

_Symbols: TypeAlias = Sequence[str]
"""The symbols of a glob: `*`, `?`, a set in brackets, or a character."""

_State: TypeAlias = tuple[tuple[int, ...], int, bool]
"""The place in each glob, the dots so far, and whether the present part of the name is empty."""


def _have_common_table(glob: str, other: str, within: Iterable[_Symbols]) -> bool:
    forms = (_forms(glob), _forms(other), within)
    return any(_match_one_name(globs) for globs in product(*forms))


def _forms(glob: str) -> tuple[_Symbols, _Symbols]:
    """Return the globs for whole names: a glob may also match the end of a name, from a dot on."""
    symbols = _SYMBOLS.findall(glob.lower())
    return symbols, ["*", ".", *symbols]


def _match_one_name(globs: Sequence[_Symbols]) -> bool:
    """Whether all globs match one name of three parts: follows all of them through all names at once."""
    letters = {_ANOTHER_LETTER, *(letter for glob in globs for symbol in glob for letter in symbol)}
    ends = tuple(map(len, globs))
    seen: set[_State] = set()
    following: list[_State] = [((0,) * len(globs), 0, True)]
    while following:
        state = following.pop()
        if state == (ends, _DOTS, False):
            return True
        if state not in seen:
            seen.add(state)
            following += _next_states(state, globs, letters)
    return False


def _next_states(state: _State, globs: Sequence[_Symbols], letters: Iterable[str]) -> Iterator[_State]:
    places, dots, is_empty = state
    for which, place in enumerate(places):
        if globs[which][place : place + 1] == ["*"]:  # it matches nothing
            yield (*places[:which], place + 1, *places[which + 1 :]), dots, is_empty
    for letter in letters:
        is_dot = letter == "."
        if is_dot and (is_empty or dots == _DOTS):
            continue
        for after in product(*(_after(*pair, letter) for pair in zip(globs, places, strict=True))):
            yield after, dots + is_dot, is_dot


def _after(glob: _Symbols, place: int, letter: str) -> Sequence[int]:
    """Return the place in a glob after a letter, if it may follow."""
    if place == len(glob) or not fnmatchcase(letter, glob[place]):
        return ()
    return (place,) if glob[place] == "*" else (place + 1,)
