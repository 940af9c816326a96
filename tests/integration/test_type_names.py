"""The names of types: the engine takes those that Spark's own parser takes, and means the same by them."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from sqlglot.dialects.databricks import Databricks

from delta_engine.models.type_text import MEANT, SPARK_NAMES, UNMANAGED_NAMES, parse_data_type
from delta_engine.models.types import AtomicType, StructField, StructType, first_unsupported

Parse = Callable[[str], str | None]

WITH_PARAMETERS = {
    "char": "char(3)",
    "character": "character(3)",
    "varchar": "varchar(3)",
    "geometry": "geometry(4326)",
    "geography": "geography(4326)",
    "array": "array<int>",
    "map": "map<string,int>",
    "struct": "struct<a:int>",
}
"""Names that are no type alone."""


@pytest.fixture
def parser(spark: SparkSession) -> Any:
    """Return the session's SQL parser, a Java object."""
    return spark._jsparkSession.sessionState().sqlParser()


@pytest.fixture
def spark_parse(parser: Any) -> Parse:
    """Return Spark's parser of types: the canonical text, or None for a text that is no type."""

    def parse(text: str) -> str | None:
        try:
            return str(parser.parseDataType(text).catalogString())
        except ParseException:
            return None

    return parse


def test_every_name_is_one_of_spark(spark_parse: Parse) -> None:
    assert [name for name in sorted(SPARK_NAMES) if not spark_parse(WITH_PARAMETERS.get(name, name))] == []


def test_a_name_that_the_engine_lacks_is_none_of_spark(spark_parse: Parse) -> None:
    known_elsewhere = {
        str(word).lower() for word in Databricks.Tokenizer.KEYWORDS if str(word).isidentifier()
    }
    others = sorted((known_elsewhere | MEANT.keys()) - SPARK_NAMES)
    taken = [text for name in others for text in (name, f"{name}(3)") if spark_parse(text)]
    assert taken == []


def test_a_name_means_what_it_means_to_spark(spark_parse: Parse) -> None:
    for name in sorted(SPARK_NAMES - {*UNMANAGED_NAMES}):
        text = WITH_PARAMETERS.get(name, name)
        canonical = spark_parse(text)
        assert canonical is not None
        assert parse_data_type(text) == parse_data_type(canonical), name


def test_what_spark_has_and_delta_does_not_store_is_refused() -> None:
    for name in UNMANAGED_NAMES:
        assert first_unsupported(parse_data_type(WITH_PARAMETERS.get(name, name))), name


@pytest.mark.parametrize(
    "literal",
    [
        *("'it''s'", r"'it\'s'", r"'\u0041|\U00000041'", r"'\x\q\"'", r"'\%\_'", r"'\101|\08|\777|\19'"),
        *(r"'\n\t\r\b\Z\\'", r"r'x\n'", r"R'x\n'", '"a""b"', '"it\'s"', r"'\u004'", r"'$\{x}'", "''"),
    ],
)
def test_a_comment_inside_a_type_is_read_as_spark_reads_it(parser: Any, literal: str) -> None:
    text = f"struct<a: int comment {literal}>"
    comment = parser.parseDataType(text).fields()[0].getComment().get()
    assert parse_data_type(text) == StructType((StructField("a", AtomicType("int"), comment=comment),))
