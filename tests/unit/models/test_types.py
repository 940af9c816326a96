"""Types: one canonical form from SQL text, pyspark and schema JSON."""

from collections.abc import Callable

import pytest

from delta_engine.models.type_forms import data_type_from_spark_json, to_data_type
from delta_engine.models.type_text import parse_data_type
from delta_engine.models.types import (
    ArrayType,
    AtomicType,
    CharacterType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    UnsupportedType,
    first_unsupported,
    is_same_type,
)
from delta_engine.sql.text import shown_type, sql_data_type


@pytest.mark.parametrize(
    ("alias", "canonical"),
    [
        ("long", "bigint"),
        ("INTEGER", "int"),
        ("short", "smallint"),
        ("byte", "tinyint"),
        ("real", "float"),
        ("dec", "decimal(10,0)"),
        ("numeric(7)", "decimal(7,0)"),
        ("DECIMAL( 18 , 2 )", "decimal(18,2)"),
        ("timestamp_ltz", "timestamp"),
        ("timestamp without time zone", "timestamp_ntz"),
        ("Character(3)", "char(3)"),
        ("struct<a int, b string>", "struct<`a`: int, `b`: string>"),
        ("struct<`text` : string , date date,not:int>", "struct<text: string, `date`: date, `not`: int>"),
        ("struct<a: int comment r'x\\n'>", "struct<a: int COMMENT 'x\\\\n'>"),
        ("struct<a: int comment 'it''s' not null>", "struct<a: int NOT NULL COMMENT 'it\\'s'>"),
        ('struct<a: int comment "\\u0041\\101\\n\\%\\x""">', "struct<a: int COMMENT 'AA\n\\\\%x\"'>"),
    ],
)
def test_spellings_of_one_type_are_one_type(alias: str, canonical: str) -> None:
    assert parse_data_type(alias) == parse_data_type(canonical)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "foo",
        "array<foo>",
        "int; drop table x",
        "int, b int",
        "int) --",
        "int -- x",
        "int /* c */",
        "int not null",
        "int default 5",
        "int comment 'x'",
        "int generated always as (1)",
        "string collate utf8_lcase",
        "array<string collate utf8_lcase>",
        "string(10)",
        "char",
        "varchar",
        "varchar(0)",
        "array<int",
        "map<int>",
        "struct<>",
        "struct<a.b:int>",
        "struct<a:int,A:int>",
        "struct<a: int default 1>",
        "decimal(39,2)",
        "decimal(3,4)",
        "decimal(1,2,3)",
        "interval day to second",
        "geometry(4326)",
        "geography(4326)",
        "time",
        "timestamp(3)",
        "object",
        "uuid",
        "bool",
        "number(10,2)",
        "struct<a: text>",
        "varchar(2147483648)",
        "struct<a>",
        "array",
        "map<string>",
        "struct<a: int comment x>",
        "'int'",
        "array<" * 500 + "int" + ">" * 500,
    ],
)
def test_what_delta_cannot_store_is_unsupported(text: str) -> None:
    unsupported = first_unsupported(parse_data_type(text))
    assert unsupported is not None
    assert unsupported.reason


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("number", "decimal(18,2)"),
        ("NUMBER(10, 2)", "decimal(10,2)"),
        ("text", "string"),
        ("str", "string"),
        ("bool", "boolean"),
        ("int8", "tinyint"),
        ("int64", "bigint"),
        ("bigit", "bigint"),
        ("stirng", "string"),
        ("datetime", "timestamp"),
        ("timestampntz", "timestamp_ntz"),
        ("double precision", "double"),
        ("character varying(40)", "varchar(40)"),
        ("nvarchar(40)", "varchar(40)"),
        ("varchar2", "string"),
        ("string(10)", "varchar(10)"),
        ("int(11)", "int"),
        ("list<int>", "array<string>"),
        ("map<text, int>", "string"),
        ("struct<a: array<bool>>", "boolean"),
        ("money", "decimal(18,2)"),
        ("float(53)", "double"),
        ("float(24)", "float"),
        ("real(30)", "real"),
        ("varchar(0)", "string"),
        ("string(0)", "string"),
        ("nvarchar(0)", "string"),
        ("varchar(max)", "string"),
        ("NVARCHAR ( MAX )", "string"),
        ("map<int, varbinary(max)>", "binary"),
        ("number(10)", "decimal(10)"),
        ("number(39)", "decimal(18,2)"),
        ("int(max)", ""),
        ("varchar", "string"),
        ("char", "char(1)"),
        ("array<character(0)>", "char(1)"),
        ("timestamp with time zone", "timestamp"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "timestamp"),
        ("timestamp(6) without time zone", "timestamp_ntz"),
        ("null", ""),
        ("NoneType", ""),
        ("foo", ""),
        ("interval day", ""),
    ],
)
def test_a_name_that_spark_does_not_have_is_refused_with_the_one_that_it_has(text: str, meant: str) -> None:
    unsupported = first_unsupported(parse_data_type(text))
    assert unsupported is not None
    assert unsupported.meant == meant
    assert not meant or first_unsupported(parse_data_type(meant)) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("array<text>", "Spark has no type 'text'"),
        ("array<int", "it is incomplete, '>' is missing"),
        ("map<int>", "no SQL type has '>' there, ',' is missing"),
        ("decimal(18.2)", "no SQL type has '.' there, ')' is missing"),
        ("int; drop table x", "no SQL type has ';' there"),
        ("struct<a: int default 1>", "a struct field accepts only NOT NULL and COMMENT"),
        ("string(10)", "string has no parameters"),
        ("varchar(0)", "varchar takes a length of 1 to 2147483647"),
        ("varchar(MAX)", "Spark has no type 'varchar(max)'"),
        ("timestamp with time zone", "Spark has no type 'timestamp with time zone'"),
        ("timestamp with zone", "no SQL type has 'with' there"),
        (
            "null",
            "Spark has no type 'null', and new columns cannot be void",
        ),
        ("array", "array needs types inside, as in array<string>"),
    ],
)
def test_a_refused_type_comes_with_what_is_wrong(text: str, reason: str) -> None:
    unsupported = first_unsupported(parse_data_type(text))
    assert unsupported is not None
    assert (unsupported.text, unsupported.reason) == (text, reason)


def test_spark_json_of_nested_types() -> None:
    value = {
        "type": "struct",
        "fields": [
            {"name": "a", "type": "integer", "nullable": False, "metadata": {"comment": "n"}},
            {
                "name": "b",
                "type": {"type": "array", "elementType": "string", "containsNull": True},
                "nullable": True,
                "metadata": {},
            },
            {
                "name": "c",
                "type": {"type": "map", "keyType": "string", "valueType": "decimal(3,1)"},
                "nullable": True,
            },
        ],
    }
    assert data_type_from_spark_json(value) == StructType(
        (
            StructField("a", AtomicType("int"), is_nullable=False, comment="n"),
            StructField("b", ArrayType(AtomicType("string"))),
            StructField("c", MapType(AtomicType("string"), DecimalType(3, 1))),
        )
    )


def test_char_and_varchar_come_from_the_field_metadata() -> None:
    key = "__CHAR_VARCHAR_TYPE_STRING"
    assert data_type_from_spark_json("string", {key: "char(3)"}) == CharacterType("char", 3)
    nested = {"type": "array", "elementType": "string", "containsNull": True}
    assert data_type_from_spark_json(nested, {key: "array<varchar(5)>"}) == ArrayType(
        CharacterType("varchar", 5)
    )
    mapped = {"type": "map", "keyType": "string", "valueType": "string"}
    assert data_type_from_spark_json(mapped, {key: "map<string,varchar(5)>"}) == MapType(
        AtomicType("string"), CharacterType("varchar", 5)
    )
    struct = {
        "type": "struct",
        "fields": [{"name": "a", "type": "string", "nullable": False, "metadata": {"comment": "x"}}],
    }
    assert data_type_from_spark_json(struct, {key: "struct<a:char(2)>"}) == StructType(
        (StructField("a", CharacterType("char", 2), is_nullable=False, comment="x"),)
    )
    unreadable = data_type_from_spark_json(struct, {key: "struct<a b:char(2)>"})
    assert isinstance(unreadable, UnsupportedType)


@pytest.mark.parametrize(
    ("value", "metadata"),
    [
        ("string", {"__COLLATIONS": {"a": "icu.UNICODE_CI"}}),
        ("interval day to second", {}),
        ({"type": "udt", "class": "x"}, {}),
        ({"type": "struct", "fields": []}, {}),
        (7, {}),
    ],
)
def test_unreadable_schema_json_is_unsupported(value: object, metadata: dict[str, object]) -> None:
    assert isinstance(data_type_from_spark_json(value, metadata), UnsupportedType)


def test_struct_fields_compare_without_case() -> None:
    assert is_same_type(
        parse_data_type("array<struct<A: map<string, struct<B: int>>>>"),
        parse_data_type("array<struct<a: map<string, struct<b: int>>>>"),
    )
    assert not is_same_type(parse_data_type("struct<a: int>"), parse_data_type("struct<a: bigint>"))


def test_a_value_that_is_no_type_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="not 7"):
        to_data_type(7)  # type: ignore[arg-type]  # as a caller without types might


@pytest.mark.parametrize(
    "around", [lambda inner: inner, ArrayType, lambda inner: MapType(AtomicType("int"), inner)]
)
def test_an_unsupported_type_has_no_sql_and_is_shown_as_it_was_read(
    around: Callable[[DataType], DataType],
) -> None:
    data_type = around(UnsupportedType("geometry(4326)"))
    with pytest.raises(
        ValueError, match=r"type 'geometry\(4326\)' has no SQL: the engine does not manage it"
    ):
        sql_data_type(data_type)
    assert "geometry(4326)" in shown_type(data_type)


def test_the_text_of_an_unmanaged_type_is_kept_whole() -> None:
    """Records keep it: half of it would be no type."""
    text = f"struct<{', '.join(f'field_{number}: geometry' for number in range(100))}>"
    data_type = parse_data_type(text)
    assert parse_data_type(shown_type(data_type)) == data_type
    assert shown_type(data_type) == text


def test_unsupported_types_compare_by_their_texts() -> None:
    assert UnsupportedType("foo", "no such type", "for") == UnsupportedType("foo")
    assert parse_data_type("geometry(4326)") != parse_data_type("geometry(3857)")
