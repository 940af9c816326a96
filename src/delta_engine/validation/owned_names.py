"""Refuses names by their project: in the models of one project, and between projects.

`owns` in a configuration has the globs of a project's tables. A schema is a project's if a glob names it, or all of its
tables: `gold`, `gold.*`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import product
from typing import Final, TypeAlias

from delta_engine.actions.policy import matches_any
from delta_engine.errors import InvalidModelError
from delta_engine.models import (
    PolicyName,
    PolicyScope,
    QualifiedName,
    SchemaName,
    Securable,
    SecurableName,
    Table,
    former_names,
    of_kind,
)
from delta_engine.models.constraints import referenced_table
from delta_engine.models.policies import ScopeKind
from delta_engine.validation.rules import model_refusal

_WAY_OUT: Final = "Declare it in its own project, or add it to owns."
_WAY_OUT_OF_PARENTS: Final = (
    "Declare that table with its primary key, name referenced_columns, or, if the table belongs to another project, "
    "remove it from owns."
)


@dataclass(frozen=True, slots=True)
class OwnedTables:
    """A model declares a table, schema, function or policy that is its project's (owns).

    A policy is the project's if what it is defined on is; `policy.policies_on` names catalogs.
    """

    owns: Sequence[str]

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse securables of other projects, and renames of their tables."""
        for model in models:
            if not self._owns(model.qualified_name):
                reason = f"it belongs to another project: this project owns {', '.join(self.owns)}"
                yield model_refusal(model, reason, _WAY_OUT)
            for former in former_names(model) if isinstance(model, Table) else ():
                if not self._owns(former):
                    reason = f"renamed_from {former.table!r} is the name of another project's table"
                    yield model_refusal(model, reason, _WAY_OUT)

    def _owns(self, name: SecurableName) -> bool:
        """Whether a glob names a table or function, or a schema: by its own name, or with all its tables."""
        match name:
            case PolicyName(PolicyScope(ScopeKind.CATALOG)):
                return True
            case PolicyName(scope):
                return self._owns(
                    SchemaName(*scope.parts)
                    if scope.kind is ScopeKind.SCHEMA
                    else QualifiedName(*scope.parts)
                )
            case SchemaName():
                return matches_any(name, (*self.owns, *(glob.removesuffix(".*") for glob in self.owns)))
        return matches_any(name, self.owns)


@dataclass(frozen=True, slots=True)
class OwnedParents:
    """A foreign key references a declared table, a table of another project (owns), or names its columns."""

    owns: Sequence[str]

    def check(self, models: Sequence[Securable]) -> Iterator[InvalidModelError]:
        """Refuse undeclared tables of the project: the primary key of others' tables is read from the catalog."""
        tables = of_kind(Table, models)
        declared = {model.key for model in tables}
        for model in tables:
            for key in model.foreign_keys:
                parent = referenced_table(model.qualified_name, key)
                if key.referenced_columns or parent is None or parent.key in declared:
                    continue
                if matches_any(parent, self.owns):
                    named = f"foreign key ({', '.join(key.columns)}) references {parent}"
                    yield model_refusal(model, f"{named}, which is not declared", _WAY_OUT_OF_PARENTS)


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
        all(map(_have_common_text, parts, other_parts))
        for catalog in catalogs
        for parts, other_parts in product(_parts(catalog.lower(), glob), _parts(catalog.lower(), other))
    )


@cache
def _parts(catalog: str, glob: str) -> Sequence[tuple[_Symbols, _Symbols]]:
    """Return the globs of schema and table in a catalog: a glob matches a whole name, or its end after a dot."""
    symbols = tuple(_SYMBOLS.findall(glob.lower()))
    names = {symbols, (_ANY, ".", *symbols), *_rests(symbols, f"{catalog}.")}
    return [pair for name in sorted(names) if name.count(".") <= 1 for pair in _at_dots(name)]


def _rests(symbols: _Symbols, text: str) -> Iterator[_Symbols]:
    """Yield what may be left of a glob whose beginning matches a text."""
    if not text:
        yield symbols
    elif symbols and symbols[0] == _ANY:
        yield from _rests(symbols[1:], text)
        yield from _rests(symbols, text[1:])
    elif symbols and _takes(symbols[0], text[0]):
        yield from _rests(symbols[1:], text[1:])


def _at_dots(symbols: _Symbols) -> Iterator[tuple[_Symbols, _Symbols]]:
    """Yield both sides of each place that may match the only dot of `schema.table`; neither is empty."""
    places = [place for place, symbol in enumerate(symbols) if symbol == "."]
    for place in places or range(len(symbols)):
        is_any = symbols[place] == _ANY
        before, after = symbols[: place + is_any], symbols[place + (not is_any) :]
        if before and after and _takes(symbols[place], "."):
            yield before, after


@cache
def _have_common_text(glob: _Symbols, other: _Symbols) -> bool:
    if not glob or not other:
        return {*glob, *other} <= {_ANY}
    if other[0] == _ANY:
        glob, other = other, glob
    if glob[0] == _ANY:
        return _have_common_text(glob[1:], other) or _have_common_text(glob, other[1:])
    letters = {*glob[0], *other[0], _ANOTHER_LETTER} - {"."}
    is_common = any(_takes(glob[0], letter) and _takes(other[0], letter) for letter in letters)
    return is_common and _have_common_text(glob[1:], other[1:])


def _takes(symbol: str, letter: str) -> bool:
    return symbol == letter or fnmatchcase(letter, symbol)
