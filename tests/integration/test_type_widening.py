"""The matrix of type widening, tried on real Delta: what it says works, and what it says does not, does not."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from delta_engine.errors import StatementError, UnsafePlanError
from delta_engine.models import Column
from delta_engine.models.nested_types import Widening, is_widened_by_iceberg, widening
from delta_engine.models.type_forms import to_data_type
from delta_engine.orchestrate.backend import Backend
from tests.builders.engines import engine_over
from tests.builders.models import ORDERS, orders

TYPES = [
    *("tinyint", "smallint", "int", "bigint", "float", "double"),
    *("decimal(5,2)", "decimal(10,0)", "decimal(20,0)", "decimal(12,2)", "decimal(12,4)", "decimal(38,2)"),
    *("date", "timestamp", "timestamp_ntz", "string", "varchar(5)", "varchar(9)", "char(3)", "boolean"),
]


def is_widened(source: str, other: str) -> bool:
    return widening(to_data_type(source), to_data_type(other)) is not Widening.IMPOSSIBLE


WIDENED = {
    source: [other for other in TYPES if other != source and is_widened(source, other)] for source in TYPES
}

REFUSED = [
    ("int", "smallint"),
    ("int", "float"),
    ("bigint", "double"),
    ("int", "decimal(12,4)"),
    ("bigint", "decimal(12,2)"),
    ("decimal(5,2)", "decimal(10,0)"),
    ("decimal(12,4)", "decimal(12,2)"),
    ("double", "decimal(38,2)"),
    ("date", "timestamp"),
    ("timestamp", "timestamp_ntz"),
    ("string", "varchar(9)"),
    ("varchar(9)", "varchar(5)"),
    ("varchar(5)", "char(3)"),
    ("boolean", "int"),
]


@pytest.mark.parametrize("source", [source for source in TYPES if WIDENED[source]])
def test_a_type_is_widened_to_every_type_that_the_matrix_has(source: str, backend: Backend) -> None:
    engine = engine_over(backend)
    targets = WIDENED[source]
    engine.sync_tables([orders(*(Column(f"c{place}", source) for place, _ in enumerate(targets)))])
    wanted = orders(*(Column(f"c{place}", target) for place, target in enumerate(targets)))
    engine.sync_tables([wanted])
    assert not engine.plan_tables([wanted])


@pytest.mark.parametrize("version", ["V1", "V2", "V3"])
def test_iceberg_compatibility_refuses_what_iceberg_lacks(version: str, backend: Backend) -> None:
    pairs = [(source, target) for source in TYPES for target in WIDENED[source] if "char" not in source]
    columns = [Column(f"c{place}", source) for place, (source, _) in enumerate(pairs)]
    properties = {
        "delta.columnMapping.mode": "name",
        f"delta.enableIcebergCompat{version}": "true",
        "delta.enableRowTracking": "true",
        "delta.enableTypeWidening": "true",
        "delta.feature.timestampNtz": "supported",
    }
    engine_over(backend).sync_tables([orders(*columns, properties=properties)])
    address = backend.addressing.table(ORDERS)
    for place, (source, target) in enumerate(pairs):
        is_taken = version == "V3" or is_widened_by_iceberg(to_data_type(source), to_data_type(target))
        expected = (
            nullcontext() if is_taken else pytest.raises(StatementError, match="UNSUPPORTED_TYPE_WIDENING")
        )
        with expected:
            backend.runner.run(f"ALTER TABLE {address} ALTER COLUMN c{place} TYPE {target}")


def test_delta_refuses_what_the_matrix_refuses(backend: Backend) -> None:
    engine = engine_over(backend)
    columns = [Column(f"c{place}", source) for place, (source, _) in enumerate(REFUSED)]
    properties = {"delta.enableTypeWidening": "true", "delta.feature.timestampNtz": "supported"}
    engine.sync_tables([orders(*columns, properties=properties)])
    address = backend.addressing.table(ORDERS)
    for place, (source, other) in enumerate(REFUSED):
        assert not is_widened(source, other)
        with pytest.raises(StatementError):
            backend.runner.run(f"ALTER TABLE {address} ALTER COLUMN c{place} TYPE {other}")
    changed = [Column(f"c{place}", other) for place, (_, other) in enumerate(REFUSED)]
    with pytest.raises(UnsafePlanError, match="which is not a widening"):
        engine.sync_tables([orders(*changed, properties=properties)])


def test_fields_inside_are_widened_in_one_statement(backend: Backend) -> None:
    engine = engine_over(backend)
    before = "struct<`xY`: int, a: array<struct<z: smallint>>, m: map<int,array<float>>>"
    after = "struct<`xY`: bigint, a: array<struct<z: int>>, m: map<bigint,array<double>>>"
    engine.sync_tables([orders(Column("st", before), Column("n", "int"))])
    wanted = orders(Column("st", after), Column("n", "bigint"))
    (outcome,) = engine.sync_tables([wanted])
    assert outcome.statements == 2  # the feature, and one ALTER COLUMN
    assert not engine.plan_tables([wanted])


LENGTHS_INSIDE = {
    "struct<x: varchar(3)>": "struct<x: string>",
    "map<string,varchar(3)>": "map<string,varchar(9)>",
    "array<struct<a: char(3)>>": "array<struct<a: varchar(5)>>",
}


def test_spark_changes_no_length_inside_a_column(backend: Backend) -> None:
    engine = engine_over(backend)
    model = orders(*(Column(f"c{place}", data_type) for place, data_type in enumerate(LENGTHS_INSIDE)))
    engine.sync_tables([model])
    address = backend.addressing.table(ORDERS)
    backend.runner.run(f"ALTER TABLE {address} ALTER COLUMN c0.x TYPE string")  # without effect
    for statement in ("c1.value TYPE varchar(9)", "c2.element.a TYPE varchar(5)"):
        with pytest.raises(StatementError):
            backend.runner.run(f"ALTER TABLE {address} ALTER COLUMN {statement}")
    assert not engine.plan_tables([model])
    wanted = orders(
        *(Column(f"c{place}", data_type) for place, data_type in enumerate(LENGTHS_INSIDE.values()))
    )
    with pytest.raises(UnsafePlanError, match="Spark cannot change char or varchar inside a column"):
        engine.sync_tables([wanted])


def test_a_field_beside_a_length_is_widened(backend: Backend) -> None:
    engine = engine_over(backend)
    engine.sync_tables([orders(Column("st", "struct<x: varchar(3), n: int>"))])
    wanted = orders(Column("st", "struct<x: varchar(3), n: bigint>"))
    engine.sync_tables([wanted])
    assert not engine.plan_tables([wanted])
