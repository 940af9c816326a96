"""Reads the words of a statement: names, strings, lists, and the clauses of columns and keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

from delta_engine.errors import SourceLocation
from delta_engine.models import (
    AUTO,
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    PrimaryKey,
    RowFilter,
)
from delta_engine.models.views import to_schema_mode
from delta_engine.sql.string_literals import literal_text
from delta_engine.tools.importers.scanning import Statement, Word

Item = TypeVar("Item")
Key: TypeAlias = PrimaryKey | ForeignKey | CheckConstraint

_END: Final = Word("end", "", 0, 0)
_BRACKETS: Final = {"(": 1, "<": 1, ")": -1, ">": -1}
_IGNORED_OF_KEYS: Final = (
    *(
        "not enforced",
        "enforced",
        "not deferrable",
        "deferrable",
        "initially deferred",
        "match full",
        "norely",
    ),
    *("on update no action", "on delete no action", "enable", "disable", "novalidate", "validate"),
)
_KEYS: Final = (
    *("constraint", "primary key", "foreign key", "check ("),
    *("unique (", "unique ,", "unique )", "unique not"),  # and no column of that name
)
_UNITS: Final = ("year", "month", "day", "hour", "minute", "second")
_LONG_TYPES: Final = (
    *("precision", "varying", "without time zone", "with time zone", "with local time zone"),
    *(f"{first} to {last}" for first in _UNITS for last in _UNITS),
)
_OTHER_DATABASE: Final = "Write it as Databricks has it, or remove it: no model can declare it."


class NotReadError(Exception):
    """A statement has something that the grammar does not have, or that does not fit what is there."""

    def __init__(self, reason: str, way_out: str = "") -> None:
        self.way_out = way_out
        super().__init__(reason)


def not_managed(what: str) -> NoReturn:
    """Raise the refusal of what Databricks has, and models do not."""
    raise NotReadError(f"the engine does not manage {what}", "Remove it from the script.")


class Reader:
    """A place among the words of a statement. Phrases are plain words and marks, separated by spaces.

    Args:
        whole_function: returns the name of a function in whole, as far as the current catalog and schema are known.
    """

    def __init__(self, statement: Statement, whole_function: Callable[[Sequence[str]], str]) -> None:
        self.statement = statement
        self.whole_function = whole_function
        self.at = 0

    @property
    def place(self) -> SourceLocation:
        """The line of the next word, or of the last one."""
        word = self.statement.words[min(self.at, len(self.statement.words) - 1)]
        return self.statement.script.place(word.start)

    @property
    def is_at_end(self) -> bool:
        """Whether no word is left."""
        return self.at >= len(self.statement.words)

    def peek(self, ahead: int = 0) -> Word:
        """Return a word that follows."""
        words = self.statement.words
        return words[self.at + ahead] if self.at + ahead < len(words) else _END

    def sees(self, *phrases: str) -> bool:
        """Whether one of some phrases follows."""
        return bool(self._following(phrases))

    def take(self, *phrases: str) -> str:
        """Go on behind one of some phrases, and return it; empty if none follows."""
        phrase = self._following(phrases)
        self.at += len(phrase.split())
        return phrase

    def _following(self, phrases: Iterable[str]) -> str:
        """Return the first of some phrases that follows; empty if none does."""
        first = self.peek().lower
        likely = (phrase for phrase in phrases if phrase.startswith(first)) if first else ()
        return next(filter(self._follows, likely), "")

    def _follows(self, phrase: str) -> bool:
        return all(self.peek(ahead).lower == word for ahead, word in enumerate(phrase.split()))

    def expect(self, phrase: str) -> None:
        """Go on behind a phrase that has to follow."""
        if not self.take(phrase):
            self.refuse(phrase.upper())

    def refuse(self, expected: str = "") -> NoReturn:
        """Raise the refusal of the next word."""
        if self.is_at_end:
            where = f" where {expected} is expected" if expected else " early"
            raise NotReadError(f"the statement ends{where}", "Complete it.")
        text = self.peek().text
        reason = f"expected {expected} but got {text}" if expected else f"{text} is not understood there"
        raise NotReadError(reason, _OTHER_DATABASE)

    def identifier(self) -> str:
        """Return one part of a name."""
        word = self.peek()
        if word.kind not in ("word", "quoted"):
            self.refuse("a name")
        self.at += 1
        return word.text[1:-1].replace("``", "`") if word.kind == "quoted" else word.text

    def name(self) -> tuple[str, ...]:
        """Return the parts of a dotted name."""
        parts = [self.identifier()]
        while self.take("."):
            parts.append(self.identifier())
        return tuple(parts)

    def dotted(self) -> str:
        """Return a dotted name as a text."""
        return ".".join(self.name())

    def text(self) -> str:
        """Return a string, or a name in its place."""
        return self.string() if self.peek().kind == "text" else self.dotted()

    def string(self) -> str:
        """Return what a string means, or a chain of them."""
        start = self.at
        while self.peek().kind == "text":
            self.at += 1
        if start == self.at:
            self.refuse("a string")
        return literal_text(self.statement.text(start, self.at))

    def items(self, read: Callable[[], Item]) -> list[Item]:
        """Return what a list in parentheses has."""
        self.expect("(")
        items: list[Item] = []
        while not self.take(")"):
            items.append(read())
            if not self.take(",") and not self.sees(")"):
                self.refuse(", or )")
        return items

    def bare_items(self, read: Callable[[], Item]) -> Iterator[Item]:
        """Yield what a list without parentheses has."""
        yield read()
        while self.take(","):
            yield read()

    def some_items(self, read: Callable[[], Item]) -> list[Item]:
        """Return what a list with or without parentheses has."""
        return self.items(read) if self.sees("(") else [*self.bare_items(read)]

    def names(self) -> list[str]:
        """Return a list of names in parentheses."""
        return self.items(self.dotted)

    def pairs(self) -> dict[str, str]:
        """Return properties or tags; a tag may lack a value."""
        return dict(self.items(self._pair))

    def keys(self) -> list[str]:
        """Return the keys of properties or tags."""
        return self.items(self.text)

    def _pair(self) -> tuple[str, str]:
        key = self.text()
        if not self.take("=") and self.sees(",", ")"):
            return key, ""
        return key, self.string() if self.peek().kind == "text" else self.expression(lambda: self.sees(","))

    def inside(self) -> str:
        """Return the SQL in parentheses."""
        self.expect("(")
        text = self.expression()
        self.expect(")")
        return text

    def expression(self, is_over: Callable[[], bool] = lambda: False) -> str:
        """Return the SQL up to where it is over, or to the end of the parentheses or of the statement."""
        start, depth = self.at, 0
        while not self.is_at_end and (depth or self.at == start or not is_over()):
            depth += (self.peek().lower == "(") - (self.peek().lower == ")")
            if depth < 0:
                break
            self.at += 1
        if start == self.at or depth > 0:
            self.refuse(")" if depth > 0 else "an expression")
        return self.statement.text(start, self.at)

    def default(self) -> str:
        """Return the expression of DEFAULT."""
        ends = (",", *_KEYS, "references", *(clause for clause in _COLUMN if clause != "null"))
        return self.expression(
            lambda: self.sees(*ends) and not (self.sees("not null") and self.peek(-1).lower == "is")
        )

    def data_type(self) -> str:
        """Return the SQL of a type, also of one that no table of Databricks has."""
        start = self.at
        self.identifier()
        depth = 0
        while depth or self.sees("(", "<"):
            if self.is_at_end:
                self.refuse(")")
            depth += _BRACKETS.get(self.peek().lower, 0)
            self.at += 1
        self.take(*_LONG_TYPES)
        self.take(*_UNITS if self.peek(-1).lower == "interval" else ())
        if self.sees("("):  # CHARACTER VARYING (10)
            self.inside()
        return self.statement.text(start, self.at)

    def clauses(self, known: Mapping[str, tuple[str, Callable[[Reader], Any]]]) -> dict[str, Any]:
        """Return the values of clauses in any order, by attribute; those without an attribute have no value."""
        values: dict[str, Any] = {}
        while phrase := self.take(*known):
            attribute, read = known[phrase]
            value = read(self)
            values |= {attribute: value} if attribute else {}
        return values

    def columns(self) -> tuple[list[Column], list[Key]]:
        """Return what the parentheses of CREATE TABLE have: columns, keys and checks."""
        keys: list[Key] = []

        def read() -> Column | None:
            if self.sees_key():
                keys.append(self.key())
                return None
            return self.column(keys)

        return [column for column in self.items(read) if column], keys

    def column(self, keys: list[Key], path: Sequence[str] = ()) -> Column:
        """Return a column, and append its keys and checks; `path` names it if its name is read already."""
        place = self.place
        name = path[-1] if path else self.identifier()
        self.take(":")
        data_type = self.data_type()
        facts: dict[str, Any] = {}
        own: list[Key] = []
        while True:
            facts |= self.clauses(_COLUMN)
            if not self.sees_key() and not self.sees("references"):
                break
            own.append(self.key([name]))
        keys += own
        if any(isinstance(key, PrimaryKey) for key in own):
            facts["is_nullable"] = False
        return Column(name, data_type, declared_at=place, **facts)

    def sees_key(self) -> bool:
        """Whether a key or a check follows, and no column."""
        return self.sees(*_KEYS)

    def key(self, columns: Sequence[str] | None = None) -> Key:
        """Return a key or a check; `columns` are those of a column's own key."""
        name = self.identifier() if self.take("constraint") else None
        if self.take("primary key"):
            return PrimaryKey(columns or self.items(self._key_column), name, self._is_relied_on())
        if self.take("unique"):
            not_managed("UNIQUE")
        if self.take("check"):
            expression = self.inside()
            self._is_relied_on()
            if name is None:
                raise NotReadError(
                    f"CHECK ({expression}) has no name", "Write CONSTRAINT and a name before it."
                )
            return CheckConstraint(name, expression)
        is_foreign_key = self.take("foreign key")
        if columns is None:
            if not is_foreign_key:
                self.refuse("a key or a check")
            columns = self.names()
        self.expect("references")
        referenced = self.dotted()
        return ForeignKey(
            columns, referenced, self.names() if self.sees("(") else (), name, self._is_relied_on()
        )

    def _key_column(self) -> str:
        column = self.identifier()
        self.take("timeseries")
        return column

    def _is_relied_on(self) -> bool:
        is_relied_on = False
        while phrase := self.take("rely", *_IGNORED_OF_KEYS):
            is_relied_on |= phrase == "rely"
        return is_relied_on

    def mask(self) -> ColumnMask:
        """Return what follows MASK."""
        return ColumnMask(
            self.whole_function(self.name()), self.names() if self.take("using columns") else ()
        )

    def row_filter(self) -> RowFilter:
        """Return what follows ROW FILTER."""
        function = self.whole_function(self.name())
        self.expect("on")
        return RowFilter(function, self.names())

    def clustering(self) -> Any:
        """Return what follows CLUSTER BY."""
        return AUTO if self.take("auto") else () if self.take("none") else self.names()

    def schema_mode(self) -> Any:
        """Return what follows WITH SCHEMA."""
        return to_schema_mode(self.take("type evolution", "evolution", "binding", "compensation"), "the view")

    def identity(self, *, always: bool) -> Identity:
        """Return what follows IDENTITY."""
        numbers = {"start with": 1, "increment by": 1}
        if self.take("("):
            while phrase := self.take(*numbers):
                sign = -1 if self.take("-") else 1
                numbers[phrase] = sign * int(self.identifier())
                self.take(",")
            self.expect(")")
        return Identity(numbers["start with"], numbers["increment by"], always)


_COLUMN: Final[Mapping[str, tuple[str, Callable[[Reader], Any]]]] = {
    "not null": ("is_nullable", lambda _reader: False),
    "null": ("", lambda _reader: None),
    "comment": ("comment", Reader.string),
    "default": ("default", Reader.default),
    "mask": ("mask", Reader.mask),
    "collate utf8_binary": ("", lambda _reader: None),
    "collate": ("", lambda reader: not_managed(f"collations such as {reader.identifier()}")),
    "generated always as identity": ("identity", lambda reader: reader.identity(always=True)),
    "generated by default as identity": ("identity", lambda reader: reader.identity(always=False)),
    "generated always as": ("generated_as", Reader.inside),
}
