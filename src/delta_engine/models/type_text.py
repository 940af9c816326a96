"""Parses a data type that is written as SQL text, with the names and the grammar of Spark 4.1.

A name that Spark does not have is refused with the Spark type that it probably stands for: `number` would otherwise
become a type that loses cents. `tests/integration/test_type_names.py` compares the names with Spark's own parser.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, NoReturn

from delta_engine.models.types import (
    NOT_MANAGED,
    ArrayType,
    AtomicType,
    CharacterType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    UnsupportedType,
)

MAX_NESTING = 64
"""Deeper types are refused: they would exhaust the parser's stack, and no table has them."""

ATOMIC_NAMES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("tinyint", "byte"), "tinyint"),
    **dict.fromkeys(("smallint", "short"), "smallint"),
    **dict.fromkeys(("int", "integer"), "int"),
    **dict.fromkeys(("bigint", "long"), "bigint"),
    **dict.fromkeys(("float", "real"), "float"),
    **dict.fromkeys(("timestamp", "timestamp_ltz"), "timestamp"),
    **{name: name for name in ("boolean", "double", "string", "binary", "date", "timestamp_ntz")},
    **{name: name for name in ("variant", "void")},
}
"""Spark's names of types without parameters, and the canonical name of each."""

CHARACTER_NAMES: Final[Mapping[str, str]] = {"char": "char", "character": "char", "varchar": "varchar"}
DECIMAL_NAMES: Final = ("decimal", "dec", "numeric")
NESTED_NAMES: Final = ("array", "map", "struct")
UNMANAGED_NAMES: Final = ("geography", "geometry", "interval", "time")
"""Spark's types that the engine does not manage.

Delta tables on Databricks can have GEOMETRY and GEOGRAPHY (Databricks Runtime 17.1) and TIME (18, beta), as well as
strings with a collation (16.4). Delta 4.3.1 on Spark 4.1.1 refuses all of them (measured).
"""

SPARK_NAMES: Final = frozenset(
    (*ATOMIC_NAMES, *CHARACTER_NAMES, *DECIMAL_NAMES, *NESTED_NAMES, *UNMANAGED_NAMES),
)
"""Every name with which a type of Spark begins."""

MEANT: Final[Mapping[str, str]] = {
    **dict.fromkeys(("bool", "bit", "logical"), "boolean"),
    **dict.fromkeys(("int1", "int8", "uint8"), "tinyint"),
    **dict.fromkeys(("int2", "int16", "smallserial"), "smallint"),
    **dict.fromkeys(("int4", "int32", "mediumint", "serial", "signed"), "int"),
    **dict.fromkeys(("int64", "bigserial", "hugeint", "uint32", "unsigned"), "bigint"),
    **dict.fromkeys(("float4", "float32", "single"), "float"),
    **dict.fromkeys(("float8", "float64", "double precision"), "double"),
    **dict.fromkeys(("number", "bignumeric", "fixed", "money", "smallmoney"), "decimal"),
    **dict.fromkeys(("varchar2", "nvarchar", "nvarchar2", "char varying", "character varying"), "varchar"),
    **dict.fromkeys(("nchar", "bpchar"), "char"),
    **dict.fromkeys(("str", "text", "clob", "longtext", "longvarchar", "mediumtext", "ntext"), "string"),
    **dict.fromkeys(("tinytext", "utf8", "uuid", "uniqueidentifier", "guid", "enum", "xml"), "string"),
    **dict.fromkeys(("blob", "bytea", "bytes", "image", "longblob", "varbinary"), "binary"),
    **dict.fromkeys(("datetime", "datetime2", "datetimeoffset", "timestamptz"), "timestamp"),
    **dict.fromkeys(("timestampltz", "timestamp_tz", "instant"), "timestamp"),
    **dict.fromkeys(("timestampntz", "localdatetime", "smalldatetime"), "timestamp_ntz"),
    **dict.fromkeys(("json", "jsonb", "object", "any"), "variant"),
    **dict.fromkeys(("list", "set", "repeated"), "array"),
    **dict.fromkeys(("dict", "hstore"), "map"),
    **dict.fromkeys(("record", "row", "tuple", "named_struct"), "struct"),
}
"""What users of other systems, of Python and of Arrow write, and the Spark type of that meaning."""

_NO_VALUES: Final = ("null", "none", "nulltype", "nonetype")
"""What other systems call Spark's void, which holds NULLs alone: a rule refuses it for new columns."""

_LENGTHS_UP_TO_MAX: Final = {"varchar": "string", "nvarchar": "string", "varbinary": "binary"}
"""SQL Server's types of any length, written with `max`, and Spark's."""

_TIME_ZONES: Final[Mapping[tuple[str, ...], str]] = {
    ("with", "time", "zone"): "timestamp",
    ("with", "local", "time", "zone"): "timestamp",
    ("without", "time", "zone"): "timestamp_ntz",
}
"""What the SQL standard and Oracle write after `timestamp`, and Spark's type of that meaning."""

_MOST_BITS_OF_FLOAT: Final = 24
"""The SQL standard's `float(25)` and more is a `double`."""


@lru_cache(maxsize=4096)
def parse_data_type(text: str) -> DataType:
    """Parse a SQL type such as `decimal(18,2)` or `struct<a: int, b: array<string>>`."""
    try:
        return _Parser(text).whole()
    except _NotAType as problem:
        is_whole = problem.reason == NOT_MANAGED or len(text) <= _LONGEST_SHOWN  # records keep such types
        shown = text if is_whole else text[:_LONGEST_SHOWN] + "…"
        return UnsupportedType(shown, problem.reason, problem.meant)


def type_schema() -> dict[str, Any]:
    """Return the JSON schema of a type's text, which sees its first name only; null is not a type."""
    names = sorted(SPARK_NAMES - {*UNMANAGED_NAMES})
    in_any_case = ("".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in name) for name in names)
    simple = sorted({*ATOMIC_NAMES.values()} - {"void"})
    pattern = rf"^\s*(?:{'|'.join(in_any_case)})(?![A-Za-z0-9_])"
    return {"anyOf": [{"enum": simple}, {"type": "string", "pattern": pattern}, {"type": "null"}]}


_LONGEST_SHOWN = 200
_GREATEST_LENGTH = 2**31 - 1
_GREATEST_PRECISION = 38


class _NotAType(Exception):
    def __init__(self, reason: str, meant: str = "") -> None:
        self.reason = reason
        self.meant = meant
        super().__init__(reason)


class _Token(NamedTuple):
    kind: str
    text: str

    @property
    def word(self) -> str:
        """The keyword, in lower case; empty for a quoted name, a literal or a mark."""
        return self.text.lower() if self.kind == "word" else ""


_TOKEN = re.compile(
    r"""\s*(?:
        (?P<literal>[rR]?(?:'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"))
      | (?P<word>\w+)
      | `(?P<quoted>(?:[^`]|``)+)`
      | (?P<mark>\S)
    )""",
    re.VERBOSE | re.DOTALL,
)
_END = _Token("end", "")


class _Parser:
    """Reads the tokens of one type from left to right."""

    def __init__(self, text: str) -> None:
        matches = _TOKEN.finditer(text.strip())
        self._tokens = [_Token(match.lastgroup or "", match[match.lastgroup or 0]) for match in matches]
        if self._tokens.count(_Token("mark", "<")) > MAX_NESTING:
            raise _NotAType(f"it is nested deeper than {MAX_NESTING} levels")
        self._position = 0

    def whole(self) -> DataType:
        """Return the type that all tokens together name."""
        data_type = self._data_type()
        if self._peek().word in ("not", "null", "default", "comment", "generated"):
            raise _NotAType("a type cannot contain COLLATE, NOT NULL or DEFAULT")
        if self._peek() is not _END:
            self._refuse_token()
        return data_type

    def _data_type(self) -> DataType:
        name = self._next().word
        if not name:
            self._position -= 1
            self._refuse_token()
        self._refuse_two_words(name)
        data_type = self._named(name)
        if self._peek().word == "collate":
            raise _NotAType(NOT_MANAGED)
        return data_type

    def _named(self, name: str) -> DataType:
        match name:
            case "array" | "map" | "struct":
                return self._nested(name)
            case _ if name in UNMANAGED_NAMES:
                raise _NotAType(NOT_MANAGED)
            case "timestamp" if self._take("without", "time", "zone"):
                return AtomicType("timestamp_ntz")
        if name in _LENGTHS_UP_TO_MAX and self._take("(", "max", ")"):
            raise _NotAType(f"Spark has no type '{name}(max)'", _LENGTHS_UP_TO_MAX[name])
        parameters = self._parameters()
        if name in DECIMAL_NAMES:
            return _decimal(parameters)
        if name in CHARACTER_NAMES:
            return _character(CHARACTER_NAMES[name], parameters)
        if name in _NO_VALUES:
            raise _NotAType(f"Spark has no type {name!r}, and new columns cannot be void")
        if name == "timestamp":
            self._refuse_time_zone()
        if name not in ATOMIC_NAMES:
            raise _NotAType(f"Spark has no type {name!r}", _meant(name, parameters))
        if parameters:
            raise _NotAType(f"{name} has no parameters", _meant_by_parameters(name, parameters))
        return AtomicType(ATOMIC_NAMES[name])

    def _refuse_time_zone(self) -> None:
        for words, meant in _TIME_ZONES.items():
            if self._take(*words):
                raise _NotAType(f"Spark has no type {' '.join(('timestamp', *words))!r}", meant)

    def _refuse_two_words(self, name: str) -> None:
        both = f"{name} {self._peek().word}"
        if both in MEANT:
            self._position += 1
            raise _NotAType(f"Spark has no type {both!r}", _meant(both, self._parameters()))

    def _nested(self, name: str) -> DataType:
        if not self._take("<"):
            raise _NotAType(f"{name} needs types inside, as in {_EXAMPLES[name]}")
        if name == "struct":
            nested: DataType = self._struct()
        elif name == "array":
            nested = ArrayType(self._data_type())
        else:
            key = self._data_type()
            self._expect(",")
            nested = MapType(key, self._data_type())
        self._expect(">")
        return nested

    def _struct(self) -> StructType:
        if self._peek().text == ">":
            raise _NotAType(f"a struct needs fields, as in {_EXAMPLES['struct']}")
        fields = [self._field()]
        while self._take(","):
            fields.append(self._field())
        if len({field.name.lower() for field in fields}) != len(fields):
            raise _NotAType("a struct has two fields of the same name")
        return StructType(tuple(fields))

    def _field(self) -> StructField:
        token = self._next()
        if token.kind not in ("word", "quoted") or self._peek().text in ("<", "(", ",", ">"):
            raise _NotAType(f"every field of a struct needs a name and a type, as in {_EXAMPLES['struct']}")
        name = token.text.replace("``", "`") if token.kind == "quoted" else token.text
        self._take(":")
        data_type = self._data_type()
        is_nullable, comment = True, ""
        while self._peek().word:
            if self._take("not", "null"):
                is_nullable = False
            elif self._take("comment"):
                comment = self._literal()
            elif not self._take("null"):
                raise _NotAType("a struct field accepts only NOT NULL and COMMENT")
        return StructField(name, data_type, is_nullable, comment)

    def _literal(self) -> str:
        if self._peek().kind != "literal":
            self._refuse_token()
        return _unescaped(self._next().text)

    def _parameters(self) -> list[int]:
        if not self._take("("):
            return []
        parameters = [self._integer()]
        while self._take(","):
            parameters.append(self._integer())
        self._expect(")")
        return parameters

    def _integer(self) -> int:
        if not self._peek().text.isdecimal():
            self._refuse_token()
        return int(self._next().text)

    def _peek(self) -> _Token:
        return self._tokens[self._position] if self._position < len(self._tokens) else _END

    def _next(self) -> _Token:
        token = self._peek()
        self._position += 1
        return token

    def _take(self, *texts: str) -> bool:
        """Skip words or marks if they come next."""
        following = self._tokens[self._position : self._position + len(texts)]
        if [token.word or token.text for token in following if token.kind != "quoted"] != [*texts]:
            return False
        self._position += len(texts)
        return True

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            self._refuse_token(mark)

    def _refuse_token(self, expected: str = "") -> NoReturn:
        token, instead = self._peek(), f", {expected!r} is missing" if expected else ""
        if token is _END:
            raise _NotAType(f"it is incomplete{instead}")
        raise _NotAType(f"no SQL type has {token.text!r} there{instead}")


_EXAMPLES = {"array": "array<string>", "map": "map<string,int>", "struct": "struct<id: bigint, name: string>"}


def _decimal(parameters: list[int]) -> DecimalType:
    # Spark's defaults: decimal is decimal(10,0), decimal(p) is decimal(p,0).
    precision, scale, *rest = (*parameters, *(10, 0)[len(parameters) :])
    if rest or not (1 <= precision <= _GREATEST_PRECISION and scale <= precision):
        raise _NotAType(f"decimal takes a precision of 1 to {_GREATEST_PRECISION} and a scale up to it")
    return DecimalType(precision, scale)


def _character(name: str, parameters: list[int]) -> CharacterType:
    match parameters:
        case [length] if 1 <= length <= _GREATEST_LENGTH:
            return CharacterType(name, length)
    meant = "string" if name == "varchar" else "char(1)"
    if parameters:
        raise _NotAType(f"{name} takes a length of 1 to {_GREATEST_LENGTH}", meant)
    raise _NotAType(f"{name} needs a length, as in {name}(10)", meant)


def _meant_by_parameters(name: str, parameters: list[int]) -> str:
    """Return the type that a user probably means by parameters that Spark's type does not take."""
    if name == "string":
        return _meant("varchar2", parameters)
    return "double" if name == "float" and max(parameters) > _MOST_BITS_OF_FLOAT else name


def _meant(name: str, parameters: list[int]) -> str:
    """Return the Spark type that another name probably stands for; empty if nothing resembles it."""
    meant = _with_parameters(name, parameters)
    is_type = not isinstance(parse_data_type(meant), UnsupportedType)
    return meant if is_type else _with_parameters(name, [])


def _with_parameters(name: str, parameters: list[int]) -> str:
    close = difflib.get_close_matches(name, sorted(SPARK_NAMES), n=1, cutoff=0.7)
    meant = MEANT.get(name) or next(iter(close), "")
    listed = ",".join(map(str, parameters))
    match meant:
        case "decimal" | "dec" | "numeric":
            return f"decimal({listed or '18,2'})"
        case "char" | "character" | "varchar":
            return f"{meant}({listed})" if parameters else "string"
        case "array" | "map" | "struct":
            return _EXAMPLES[meant]
    return meant


_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([01][0-7]{2})|(.))|''|\"\"", re.DOTALL)


def _unescaped(literal: str) -> str:
    """Return the text of a SQL string literal, with its quotes and perhaps an `r` before them."""
    quote, inner = literal[-1], literal[literal.index(literal[-1]) + 1 : -1]
    if literal[0] in "rR":
        return inner

    def plain(match: re.Match[str]) -> str:
        short, long, octal, other = match.groups()
        if short or long:
            return chr(int(short or long, 16))
        if octal:
            return chr(int(octal, 8))
        if other is not None:
            return _ESCAPES.get(other, other)
        return quote if match[0] == quote * 2 else match[0]

    return _ESCAPED.sub(plain, inner)
