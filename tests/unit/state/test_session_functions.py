"""Functions of Spark's session catalog, from rows that Spark 4.1.1 returned."""

from __future__ import annotations

import json

import pytest

from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.spark_sql_runner import DeltaSchema
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import Function, FunctionName, Parameter, Schema
from delta_engine.models.types import AtomicType
from delta_engine.state.catalog_reader import readable_snapshot
from delta_engine.state.function_states import FunctionState
from delta_engine.state.session_functions import described_function
from delta_engine.state.spark_delta_reader import SparkDeltaReader
from delta_engine.state.unmanaged import Unmanaged
from tests.fakes.recording_sql_runner import Answer, ScriptedSqlRunner

NAME = FunctionName("spark_catalog", "g", "m")


def rows(**facts: str) -> list[dict[str, object]]:
    known = {
        "sqlFunction.returnType": "STRING",
        "sqlFunction.isTableFunc": "false",
        "sqlFunction.expression": "concat(email, n)",
        "sqlFunction.deterministic": "true",
        "sqlFunction.containsSQL": "true",
        "sqlConfig.spark.sql.session.timeZone": "Etc/UTC",
        **{f"sqlFunction.{key}": value for key, value in facts.items()},
    }
    lines = [
        "Function: spark_catalog.g.m",
        "Class: sqlFunction.",
        f"Usage: {json.dumps(known)}",
        "Extended Usage:\n    No example/argument for m.\n",
    ]
    return [{"function_desc": line} for line in lines]


def test_a_function_is_read_as_it_was_submitted() -> None:
    inputs = "email STRING COMMENT 'the mail', n INT DEFAULT 3"
    assert described_function(NAME, rows(inputParam=inputs, comment="it's")) == FunctionState(
        returns=AtomicType("string"),
        body="concat(email, n)",
        parameters=(
            Parameter("email", "string", comment="the mail"),
            Parameter("n", "int", default="3"),
        ),
        is_deterministic=True,
        comment="it's",
    )


@pytest.mark.parametrize(
    ("inputs", "parameters"),
    [
        ("", []),
        ("`x y` STRING", [Parameter("x y", "string")]),
        ("a decimal(18,2), b int", [Parameter("a", "decimal(18,2)"), Parameter("b", "int")]),
        ("m map<string, array<array<int>>>", [Parameter("m", "map<string, array<array<int>>>")]),
        (
            "s struct<a: int COMMENT 'x, DEFAULT', b: int> DEFAULT named_struct('a', 1, 'b', 2) COMMENT 'it\\'s'",
            [
                Parameter(
                    "s",
                    "struct<a: int COMMENT 'x, DEFAULT', b: int>",
                    "named_struct('a', 1, 'b', 2)",
                    "it's",
                )
            ],
        ),
        (
            "a boolean DEFAULT 1 < 2, c string DEFAULT 'comment' COMMENT 'a\\nb'",
            [Parameter("a", "boolean", "1 < 2"), Parameter("c", "string", "'comment'", "a\nb")],
        ),
        ("comment string, default int DEFAULT 1", [Parameter("comment", "string"), Parameter("default", "int", "1")]),
    ],
)  # fmt: skip
def test_parameters(inputs: str, parameters: list[Parameter]) -> None:
    found = described_function(NAME, rows(inputParam=inputs))
    assert isinstance(found, FunctionState)
    assert list(found.parameters) == parameters


def test_a_query_is_a_body() -> None:
    described = rows(query="SELECT 1")
    described[2] = {
        "function_desc": str(described[2]["function_desc"]).replace("sqlFunction.expression", "nothing")
    }
    found = described_function(NAME, described)
    assert isinstance(found, FunctionState)
    assert found.body == "SELECT 1"


def test_other_functions_are_named() -> None:
    assert described_function(NAME, rows(isTableFunc="true")) == Unmanaged("it is a table function")
    java = [{"function_desc": "Function: g.m"}, {"function_desc": "Usage: N/A."}]
    assert described_function(NAME, java) == Unmanaged("it is a function of a Java class")


@pytest.mark.parametrize("usage", ["{", '{"sqlFunction.returnType": "INT"}', '{"a": 1}'])
def test_another_form_is_refused(usage: str) -> None:
    with pytest.raises(CatalogReadError, match=r"function spark_catalog\.g\.m: its description is not"):
        described_function(NAME, [{"function_desc": f"Usage: {usage}"}])


def test_parameters_that_no_tokenizer_reads_are_refused() -> None:
    with pytest.raises(CatalogReadError, match="its parameters are"):
        described_function(NAME, rows(inputParam="a STRING COMMENT 'open"))


def reader_of(answer: Answer) -> tuple[SparkDeltaReader, ScriptedSqlRunner]:
    script: dict[str, Answer] = {"SHOW SCHEMAS": [{"namespace": "g"}], "DESCRIBE FUNCTION": answer}
    runner = ScriptedSqlRunner(script)
    return SparkDeltaReader(runner, _no_schema, CatalogAddressing()), runner


def _no_schema(address: str) -> DeltaSchema:
    raise AssertionError(address)


MODEL = Function("spark_catalog", "g", "m", "string", "x")


def test_a_function_costs_one_description() -> None:
    reader, runner = reader_of(rows())
    assert reader.snapshot([MODEL]).functions[MODEL.key].body == "concat(email, n)"
    assert runner.statements.count("DESCRIBE FUNCTION EXTENDED `spark_catalog`.`g`.`m`") == 1
    others, runner = reader_of(rows())
    others.snapshot([])
    assert not [sql for sql in runner.statements if "FUNCTION" in sql]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            StatementError("no", sql="", error_class="INSUFFICIENT_PERMISSIONS"),
            "it cannot be read: no. Ask for MANAGE",
        ),
        (rows(isTableFunc="true"), "it is a table function, which the engine does not manage"),
        ([{"function_desc": "Usage: {"}], "its description is not of the measured form"),
    ],
)
def test_an_unreadable_function_leaves_the_others(answer: Answer, reason: str) -> None:
    reader, _ = reader_of(answer)
    state, (refusal,) = readable_snapshot(reader, [MODEL, Schema("spark_catalog", "g")])
    assert str(refusal).startswith(f"function spark_catalog.g.m: {reason}")
    assert not state.functions


def test_a_lost_server_is_no_refusal_of_a_function() -> None:
    reader, _ = reader_of(StatementError("no", sql="", error_class="WAREHOUSE_UNREACHABLE"))
    with pytest.raises(StatementError, match=r"reading function spark_catalog\.g\.m failed"):
        reader.snapshot([MODEL])
