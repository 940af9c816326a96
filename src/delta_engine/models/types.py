"""Data types in one canonical form that needs no pyspark.

A SQL string, a pyspark `DataType` and the JSON form in Spark's schemas give the same value. A type that Delta cannot
store becomes an `UnsupportedType`, which `Table` refuses. `sql` spells types as SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from sqlglot import exp

MAX_NESTING = 64
"""Deeper types are refused: they would exhaust the parser's stack, and no table has them."""

_CHAR_TYPE_KEY = "__CHAR_VARCHAR_TYPE_STRING"
"""The metadata key in which Spark keeps CHAR and VARCHAR, which the schema shows as string."""

_COLLATIONS_KEY = "__COLLATIONS"


@dataclass(frozen=True, slots=True)
class AtomicType:
    """A type without parameters, by Spark's SQL name (`bigint`, `timestamp_ntz`, `variant`)."""

    name: str


@dataclass(frozen=True, slots=True)
class DecimalType:
    """`decimal(precision, scale)`: the number of all digits, and of those after the point."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class CharacterType:
    """`char(length)` or `varchar(length)`; the length is in characters."""

    name: str
    length: int


@dataclass(frozen=True, slots=True)
class ArrayType:
    """`array<element>`; elements are nullable, because SQL cannot declare otherwise."""

    element: DataType


@dataclass(frozen=True, slots=True)
class MapType:
    """`map<key, value>`."""

    key: DataType
    value: DataType


@dataclass(frozen=True, slots=True)
class StructField:
    """One field of a struct."""

    name: str
    data_type: DataType
    is_nullable: bool = True
    comment: str = ""


@dataclass(frozen=True, slots=True)
class StructType:
    """`struct<field: type, …>`, in the order of declaration."""

    fields: tuple[StructField, ...]


@dataclass(frozen=True, slots=True)
class UnsupportedType:
    """A type that Delta cannot store or that the engine does not know, with the reason."""

    text: str
    reason: str


DataType: TypeAlias = (
    AtomicType | DecimalType | CharacterType | ArrayType | MapType | StructType | UnsupportedType
)


class SparkDataType(Protocol):
    """The methods of a pyspark `DataType` that the engine calls; pyspark need not be imported."""

    def jsonValue(self) -> str | dict[str, object]:  # noqa: N802 - pyspark's name
        """Return the type in Spark's schema JSON."""
        ...

    def simpleString(self) -> str:  # noqa: N802 - pyspark's name
        """Return the type as short text."""
        ...


TypeLike: TypeAlias = DataType | str | SparkDataType


def to_data_type(value: TypeLike) -> DataType:
    """Return the canonical form of a SQL type string, a pyspark `DataType` or a canonical type, else TypeError."""
    if isinstance(value, str):
        return parse_data_type(value)
    if isinstance(
        value, (AtomicType, DecimalType, CharacterType, ArrayType, MapType, StructType, UnsupportedType)
    ):
        return value
    if not hasattr(value, "jsonValue"):
        raise TypeError(f"a data type is a SQL string or a pyspark DataType, not {value!r}")
    if "collate" in value.simpleString():
        return UnsupportedType(value.simpleString(), "Delta tables hold the default collation only")
    return data_type_from_spark_json(value.jsonValue())


@lru_cache(maxsize=4096)
def parse_data_type(text: str) -> DataType:
    """Parse a SQL type such as `decimal(18,2)` or `struct<a: int, b: array<string>>`."""
    import sqlglot  # a tenth of a second to import: only when there is something to parse
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if text.count("<") > MAX_NESTING:
        return UnsupportedType(text[:60] + "…", f"it is nested deeper than {MAX_NESTING} levels")
    unknown = UnsupportedType(text, "no such SQL type")
    # Only inside a statement does sqlglot require that the whole text is a type: alone,
    # `exp.DataType.build` reads "string collate x" as a string and "array<int" as an array.
    try:
        create = sqlglot.parse_one(f"CREATE TABLE t (c {text})", dialect="databricks")
    except SqlglotError:
        return unknown
    match create:
        case exp.Create(
            this=exp.Schema(expressions=[exp.ColumnDef(kind=exp.DataType() as kind, constraints=[])])
        ) if not any(node.comments for node in create.walk()):
            return _from_sqlglot(kind, text)
        case exp.Create(this=exp.Schema(expressions=[exp.ColumnDef(constraints=[_, *_])])):
            return UnsupportedType(text, "a type stands alone, without COLLATE, NOT NULL or DEFAULT")
    return unknown


def data_type_from_spark_json(value: object, metadata: Mapping[str, object] | None = None) -> DataType:
    """Return the canonical form of a type in Spark's schema JSON; field `metadata` holds CHAR and VARCHAR."""
    metadata = metadata or {}
    if _COLLATIONS_KEY in metadata:
        return UnsupportedType("string collate", "Delta tables hold the default collation only")
    found = _from_json(value)
    declared = metadata.get(_CHAR_TYPE_KEY)
    return _with_lengths(found, parse_data_type(declared)) if isinstance(declared, str) else found


def inside(data_type: DataType | None) -> list[tuple[str, DataType]]:
    """Return the types directly inside a type, each with the step to it; empty for None."""
    match data_type:
        case ArrayType(element):
            return [("element", element)]
        case MapType(key, value):
            return [("key", key), ("value", value)]
        case StructType(fields):
            return [(field.name, field.data_type) for field in fields]
    return []


def rebuilt(data_type: DataType, types: Iterable[DataType]) -> DataType:
    """Return a type with other types directly inside it, in the order of `inside`."""
    match data_type, [*types]:
        case ArrayType(), [element]:
            return ArrayType(element)
        case MapType(), [key, value]:
            return MapType(key, value)
        case StructType(fields), found:
            pairs = zip(fields, found, strict=True)
            return StructType(tuple(replace(field, data_type=inner) for field, inner in pairs))
    return data_type


def parts(data_type: DataType) -> Iterator[DataType]:
    """Yield a type and every type inside it."""
    yield data_type
    for _, inner in inside(data_type):
        yield from parts(inner)


@lru_cache(maxsize=4096)
def first_unsupported(data_type: DataType) -> UnsupportedType | None:
    """Return the first part of a type that Delta cannot store, or None."""
    for part in parts(data_type):
        match part:
            case UnsupportedType():
                return part
            case StructType(fields):
                for field in fields:
                    if not _is_utf8(field.name + field.comment):
                        return UnsupportedType(
                            f"struct<{field.name}: …>",
                            "its field has half a character, which no text may have",
                        )
    return None


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # an unpaired surrogate
        return False
    return True


def uses_type(data_type: DataType, name: str) -> bool:
    """Whether a type without parameters occurs anywhere in a type."""
    return any(part == AtomicType(name) for part in parts(data_type))


def is_same_type(one: DataType, other: DataType) -> bool:
    """Whether two types are equal; names of struct fields compare without case, as in Spark."""
    return one == other or _folded(one) == _folded(other)


def _folded(data_type: DataType) -> DataType:
    folded = rebuilt(data_type, [_folded(inner) for _, inner in inside(data_type)])
    if isinstance(folded, StructType):
        return StructType(tuple(replace(field, name=field.name.lower()) for field in folded.fields))
    return folded


_ATOMIC_NAMES = {
    "BOOLEAN": "boolean",
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INT": "int",
    "BIGINT": "bigint",
    "FLOAT": "float",
    "DOUBLE": "double",
    "TEXT": "string",
    "BINARY": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPTZ": "timestamp",
    "TIMESTAMPLTZ": "timestamp",
    "TIMESTAMPNTZ": "timestamp_ntz",
    "VARIANT": "variant",
    "NULL": "void",
}


def _from_sqlglot(node: exp.Expression | None, text: str) -> DataType:
    from sqlglot import exp

    if not isinstance(node, exp.DataType) or not isinstance(node.this, exp.DType):
        return UnsupportedType(text, "Delta tables cannot store it")
    if {name for name, value in node.args.items() if value} - {"this", "expressions", "nested"}:
        return UnsupportedType(text, "a type takes no COLLATE or other clause")
    kind = node.this.name
    parameters = node.expressions
    match kind, parameters:
        case "ARRAY", [element]:
            return ArrayType(_from_sqlglot(element, text))
        case "MAP", [key, value]:
            return MapType(_from_sqlglot(key, text), _from_sqlglot(value, text))
        case "STRUCT", [_, *_]:
            return _struct_from_sqlglot(parameters, text)
        case "DECIMAL", _:
            return _decimal([_integer(parameter) for parameter in parameters], text)
        case "CHAR" | "VARCHAR", [length] if _integer(length) > 0:
            return CharacterType(kind.lower(), _integer(length))
        case "CHAR" | "VARCHAR", _:
            return UnsupportedType(text, f"{kind.lower()} needs a length, as in {kind.lower()}(10)")
        case _, [] if kind in _ATOMIC_NAMES:
            return AtomicType(_ATOMIC_NAMES[kind])
    return UnsupportedType(text, "Delta tables cannot store it")


def _struct_from_sqlglot(definitions: Sequence[exp.Expression], text: str) -> DataType:
    from sqlglot import exp

    fields = []
    for definition in definitions:
        if not isinstance(definition, exp.ColumnDef):
            return UnsupportedType(text, "every field of a struct needs a name and a type")
        is_nullable, comment = True, ""
        for constraint in definition.args.get("constraints") or ():
            match constraint.kind:
                case exp.NotNullColumnConstraint():
                    is_nullable = bool(constraint.kind.args.get("allow_null"))
                case exp.CommentColumnConstraint(this=literal):
                    comment = literal.name
                case _:
                    return UnsupportedType(text, "a struct field takes NOT NULL and COMMENT only")
        data_type = _from_sqlglot(definition.args.get("kind"), text)
        fields.append(StructField(definition.name, data_type, is_nullable, comment))
    return _struct(fields, text)


def _from_json(value: object) -> DataType:
    match value:
        case str():
            return parse_data_type(value)
        case {"type": "array", "elementType": element}:
            return ArrayType(_from_json(element))
        case {"type": "map", "keyType": key, "valueType": item}:
            return MapType(_from_json(key), _from_json(item))
        case {"type": "struct", "fields": [_, *_] as fields}:
            return _struct([_field_from_json(field) for field in fields], "struct")
    return UnsupportedType(str(value), "Delta tables cannot store it")


def _field_from_json(field: Mapping[str, object]) -> StructField:
    found = field.get("metadata")
    metadata: Mapping[str, object] = found if isinstance(found, Mapping) else {}
    return StructField(
        name=str(field["name"]),
        data_type=data_type_from_spark_json(field["type"], metadata),
        is_nullable=bool(field.get("nullable", True)),
        comment=str(metadata.get("comment", "")),
    )


def _struct(fields: Sequence[StructField], text: str) -> DataType:
    names = {field.name.lower() for field in fields}
    if len(names) != len(fields):
        return UnsupportedType(text, "a struct has two fields of the same name")
    return StructType(tuple(fields))


def _integer(parameter: exp.Expression) -> int:
    return int(parameter.name) if parameter.name.isdecimal() else -1


def _decimal(parameters: Sequence[int], text: str) -> DataType:
    # Spark's defaults: decimal is decimal(10,0), decimal(p) is decimal(p,0).
    precision, scale, *rest = (*parameters, *(10, 0)[len(parameters) :])
    if rest or not (1 <= precision <= 38 and 0 <= scale <= precision):
        return UnsupportedType(text, "decimal takes a precision of 1 to 38 and a scale up to it")
    return DecimalType(precision, scale)


def _with_lengths(found: DataType, declared: DataType) -> DataType:
    """Restore CHAR and VARCHAR where the schema has string; keep the rest."""
    if isinstance(declared, UnsupportedType) or (
        found == AtomicType("string") and isinstance(declared, CharacterType)
    ):
        return declared
    pairs = [*zip(inside(found), inside(declared), strict=False)]
    if type(found) is not type(declared) or len(pairs) != len(inside(found)):
        return found
    return rebuilt(found, [_with_lengths(one, other) for (_, one), (_, other) in pairs])
