"""Views from descriptions as JSON."""

from __future__ import annotations

import pytest

from delta_engine.backends.addressing import CatalogAddressing
from delta_engine.backends.spark_sql_runner import DeltaSchema
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models import Schema, Table
from delta_engine.models.views import SchemaMode, View, ViewColumn, ViewName
from delta_engine.state.catalog_reader import readable_snapshot, snapshot_with_former_names
from delta_engine.state.spark_delta_reader import SparkDeltaReader
from delta_engine.state.unmanaged import Unmanaged
from delta_engine.state.view_descriptions import described_view
from delta_engine.state.view_states import ABSENT_VIEW, ViewState, view_state_of
from tests.fakes.recording_sql_runner import Answer, ScriptedSqlRunner

NAME = ViewName("dev", "gold", "Revenue")

DESCRIBED = (
    '{"table_name":"v","catalog_name":"spark_catalog","namespace":["g"],"schema_name":"g","columns":[{"name":"id",'
    '"type":{"name":"int"},"nullable":true,"comment":"the id"},{"name":"nm","type":{"name":"string","collation":'
    '"UTF8_BINARY"},"nullable":true}],"created_time":"2026-11-26T05:15:41Z","last_access":"UNKNOWN","created_by":'
    '"Spark 4.1.1","type":"VIEW","comment":"a view","view_text":"SELECT id, name FROM spark_catalog.g.t",'
    '"view_original_text":"SELECT id, name FROM spark_catalog.g.t","view_schema_mode":"COMPENSATION",'
    '"view_catalog_and_namespace":"spark_catalog.default","view_query_output_columns":["id","name"],'
    '"table_properties":{"a":"b"}}'
)
"""What Spark 4.1.1 describes."""


def test_a_description_has_the_whole_view() -> None:
    assert described_view(NAME, DESCRIBED) == ViewState(
        query="SELECT id, name FROM spark_catalog.g.t",
        columns=(ViewColumn("id", "the id"), ViewColumn("nm")),
        schema_mode=SchemaMode.COMPENSATION,
        comment="a view",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{}", "not of the documented form"),
        ("[", "not of the documented form"),
        (DESCRIBED.replace('"VIEW"', '"MANAGED"'), "there is a table of this name"),
    ],
)
def test_other_descriptions_are_refused(text: str, reason: str) -> None:
    with pytest.raises(CatalogReadError, match=reason):
        described_view(NAME, text)


def test_a_described_materialized_view_is_another_relation() -> None:
    text = DESCRIBED.replace('"VIEW"', '"MATERIALIZED_VIEW"')
    assert described_view(NAME, text) == Unmanaged("it is a materialized view")


def test_the_state_of_a_model_has_the_query_as_submitted() -> None:
    model = View("dev", "gold", "v", " SELECT 'a''b' AS a; ", [ViewColumn("a", "x")], schema_mode="evolution")
    assert view_state_of(model) == ViewState(
        query=r"SELECT 'a\'b' AS a", columns=(ViewColumn("a", "x"),), schema_mode=SchemaMode.EVOLUTION
    )


MODEL = View("spark_catalog", "g", "v", "SELECT 1 AS a", schema_mode="binding")
FORBIDDEN = StatementError("no", sql="", error_class="INSUFFICIENT_PERMISSIONS")
MISSING = StatementError("no", sql="", error_class="TABLE_OR_VIEW_NOT_FOUND")


def reader_of(answers: dict[str, Answer]) -> tuple[SparkDeltaReader, ScriptedSqlRunner]:
    tables = [{"namespace": "g", "tableName": name, "isTemporary": False} for name in ("v", "other")]
    script: dict[str, Answer] = {"SHOW SCHEMAS": [{"namespace": "g"}], "SHOW TABLES": tables, **answers}
    runner = ScriptedSqlRunner(script)
    return SparkDeltaReader(runner, _no_schema, CatalogAddressing()), runner


def _no_schema(address: str) -> DeltaSchema:
    raise AssertionError(address)


def as_rows(text: str) -> Answer:
    return [{"json_metadata": text}]


def test_a_view_of_the_session_catalog_costs_one_description_and_is_no_other_table() -> None:
    reader, runner = reader_of({"AS JSON": as_rows(DESCRIBED)})
    table = Table("spark_catalog", "g", "t", [])
    state = reader.snapshot([table, MODEL])
    assert state.views[MODEL.key].comment == "a view"
    assert [name.table for name in state.other_tables] == ["other"]
    assert len([sql for sql in runner.statements if "AS JSON" in sql]) == 1
    others, runner = reader_of({})
    others.snapshot([table, Schema("spark_catalog", "g")])
    assert not [sql for sql in runner.statements if "AS JSON" in sql]


def test_a_missing_view_is_absent_also_in_a_missing_schema() -> None:
    reader, _ = reader_of({"AS JSON": MISSING})
    elsewhere = View("spark_catalog", "nowhere", "v", "SELECT 1 AS a")
    state = reader.snapshot([MODEL, elsewhere])
    assert state.views == {MODEL.key: ABSENT_VIEW, elsewhere.key: ABSENT_VIEW}
    assert state.missing_schemas == {("spark_catalog", "nowhere")}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (FORBIDDEN, "it cannot be read: no. Ask for SELECT on view"),
        (
            as_rows(DESCRIBED.replace('"VIEW"', '"MANAGED"')),
            "there is a table of this name (managed). Rename the view",
        ),
        (as_rows(DESCRIBED.replace('"VIEW"', '"METRIC_VIEW"')), "it is a metric view, which the engine does"),
        (as_rows("{"), "its description as JSON is not of the documented form"),
        ([], "its description as JSON is not of the documented form"),
        (
            StatementError("no", sql="", error_class="PARSE_SYNTAX_ERROR"),
            "the platform does not describe it as JSON",
        ),
    ],
)
def test_an_unreadable_view_leaves_the_others(answer: Answer, reason: str) -> None:
    reader, _ = reader_of({"AS JSON": answer})
    state, (refusal,) = readable_snapshot(reader, [MODEL, Schema("spark_catalog", "g")])
    assert str(refusal).startswith(f"view spark_catalog.g.v: {reason}")
    assert not state.views


def test_a_lost_server_is_no_refusal_of_a_view() -> None:
    reader, _ = reader_of({"AS JSON": StatementError("no", sql="", error_class="WAREHOUSE_UNREACHABLE")})
    with pytest.raises(StatementError, match=r"reading view spark_catalog\.g\.v failed"):
        reader.snapshot([MODEL])


def test_a_view_is_found_under_its_former_name() -> None:
    reader, runner = reader_of(
        {"`new` AS JSON": MISSING, "`newer` AS JSON": MISSING, "`v` AS JSON": as_rows(DESCRIBED)}
    )
    model = View("spark_catalog", "g", "new", "SELECT 1 AS a", renamed_from=["newer", "v"])
    state = snapshot_with_former_names(reader, [Table("spark_catalog", "g", "t", []), model])
    assert state.views[model.key].former_name == ViewName("spark_catalog", "g", "v")
    assert state.views[model.key].comment == "a view"
    assert [name.table for name in state.other_tables] == ["other"]
    existing = View("spark_catalog", "g", "v", "SELECT 1 AS a", renamed_from="newer")
    runner.statements.clear()
    assert snapshot_with_former_names(reader, [existing]).views[existing.key].former_name is None
    assert len([sql for sql in runner.statements if "AS JSON" in sql]) == 1
