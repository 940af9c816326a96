"""Spark and Delta judge the string literals of expressions: what is sent is enforced, computed and read as meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from delta_engine.errors import StatementError
from delta_engine.models import CheckConstraint, Column, Table
from delta_engine.orchestrate.backend import Backend
from delta_engine.sql.string_literals import with_portable_literals
from delta_engine.sql.text import sql_literal
from tests.builders.engines import apply_anyway, engine_over
from tests.builders.strategies import literal_chains
from tests.fakes.spark_strings import as_delta_stores, as_spark_reads
from tests.proofs import examples

A = Column("a", "string")

MEANT = {
    "'it''s'": "it's",
    "'it' \"s\"": "its",
    r"r'^\d+\'": "^\\d+\\",
    r"'\d\%\u0041\n'": "d\\%A\n",
    "'${x}'": "${x}",
    r"'$\\{x} -- /* ; `'": "$\\{x} -- /* ; `",
}


@pytest.fixture(params=["false", "true"])
def substitution(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """Serverless does not let variable substitution be switched off."""
    spark.conf.set("spark.sql.variable.substitute", request.param)
    yield request.param
    spark.conf.set("spark.sql.variable.substitute", "false")


def values(spark: SparkSession, literals: Sequence[str]) -> list[str]:
    (row,) = spark.sql(f"SELECT array({', '.join(literals)})").collect()
    return list(row[0])


@settings(
    max_examples=examples(3, 50),
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@given(chains=st.lists(literal_chains, min_size=100, max_size=200))
def test_spark_reads_literals_as_the_engine_does(
    spark: SparkSession, substitution: str, chains: list[str]
) -> None:
    meant = [as_spark_reads(chain)[0][0] for chain in chains]
    assert values(spark, list(map(with_portable_literals, chains))) == meant
    if substitution == "false":
        assert values(spark, chains) == meant


def test_codes_that_are_no_characters_are_read_as_java_does(spark: SparkSession) -> None:
    odd = [r"'\UFFFFFFFF'", r"'\U00110000'", r"'\ud83d'", r"'\ude00\ud83d'"]
    assert values(spark, list(map(with_portable_literals, odd))) == values(spark, odd)


def test_expressions_are_enforced_and_computed_as_meant(
    spark: SparkSession, backend: Backend, substitution: str
) -> None:
    listed, joined = ", ".join(MEANT), "|".join(MEANT.values())
    new = [
        Column("filled", "string", using=f"concat_ws('|', {listed})"),
        Column("given", "string", default=f"concat_ws('|', {listed})"),
    ]
    name = f"meant_{substitution}"
    model = Table("dev", "silver", name, [A, *new], checks=[CheckConstraint("known", f"a IN ({listed})")])
    engine, address = engine_over(backend), backend.addressing.table(model.qualified_name)

    engine.sync_tables([Table("dev", "silver", name, [A])])
    spark.sql(f"INSERT INTO {address} VALUES ('its')")
    apply_anyway(engine, model)  # with no consent to the fill
    assert not engine.plan_tables([model])
    assert [row.filled for row in spark.table(address).collect()] == [joined]

    rows = ", ".join(f"({sql_literal(text)})" for text in MEANT.values())
    spark.sql(f"INSERT INTO {address} (a) VALUES {rows}")
    with pytest.raises(StatementError, match="known"):
        backend.runner.run(f"INSERT INTO {address} (a) VALUES ('it')")
    assert [row.given for row in spark.table(address).collect() if row.given] == [joined] * len(MEANT)


def test_delta_splits_a_doubled_quote_and_the_engine_says_so(spark: SparkSession, backend: Backend) -> None:
    model = Table("dev", "silver", "split", [A], checks=[CheckConstraint("k", "a <> 'it''s'")])
    engine, address = engine_over(backend), backend.addressing.table(model.qualified_name)
    engine.sync_tables([Table("dev", "silver", "split", model.columns)])
    spark.sql(f"ALTER TABLE {address} ADD CONSTRAINT k CHECK (a <> 'it''s')")
    (check,) = backend.reader.snapshot([model]).table(model.qualified_name).checks
    assert as_spark_reads(check.expression) == as_spark_reads(as_delta_stores("a <> 'it''s'"))
    assert engine.plan_tables([model])
    engine.sync_tables([model])
    assert not engine.plan_tables([model])
