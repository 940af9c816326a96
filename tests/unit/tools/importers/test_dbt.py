"""Manifests of dbt: models with an enforced contract, and sources with columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_engine.models import CheckConstraint, Column, ForeignKey, Part, PrimaryKey, Table
from delta_engine.tools.importers.catalog import Catalog, Wanted
from delta_engine.tools.importers.sources import read_source
from delta_engine.tools.importers.variables import Variables

ENFORCED = {"materialized": "incremental", "contract": {"enforced": True, "alias_types": True}}


def node(name: str, **facts: Any) -> dict[str, Any]:
    return {
        "resource_type": "model",
        "database": "dev",
        "schema": "gold",
        "name": name,
        "alias": name,
        "relation_name": f"`dev`.`gold`.`{name}`",
        "original_file_path": f"models/{name}.sql",
        "config": ENFORCED,
        "columns": {"id": {"name": "id", "data_type": "bigint"}},
        "unknown": [1],
        **facts,
    }


def read(tmp_path: Path, *nodes: dict[str, Any], version: int | str = 12) -> Catalog:
    file = tmp_path / "manifest.json"
    of_kind = {"nodes": {}, "sources": {}}  # type: dict[str, dict[str, Any]]
    for own in nodes:
        of_kind["sources" if own["resource_type"] == "source" else "nodes"][own["name"]] = own
    url = f"https://schemas.getdbt.com/dbt/manifest/v{version}.json"
    file.write_text(json.dumps({"metadata": {"dbt_schema_version": url}, **of_kind}))
    return read_source([file], Wanted(), Variables({}, {}))


@pytest.mark.parametrize("version", [10, 11, 12])
def test_a_model_with_an_enforced_contract(version: int, tmp_path: Path) -> None:
    orders = node(
        "orders",
        description="One row per order\n",
        config={
            **ENFORCED,
            "grants": {"select": ["readers", "ana@example.com"], "modify": ["writers"]},
            "databricks_tags": {"layer": "gold", "pii": None},
        },
        columns={
            "id": {
                "name": "id",
                "data_type": "bigint",
                "description": "the key",
                "constraints": [{"type": "not_null"}, {"type": "primary_key", "name": "orders_pk"}],
                "databricks_tags": {"key": "yes"},
            },
            "customer": {
                "name": "customer",
                "data_type": "bigint",
                "constraints": [
                    {"type": "foreign_key", "to": "`dev`.`gold`.`customers`", "to_columns": ["id"]},
                    {"type": "unique"},
                ],
                "config": {"databricks_tags": {"pii": "yes"}},
            },
        },
        constraints=[{"type": "check", "name": "positive", "expression": "id > 0"}],
    )
    source = read(tmp_path, orders, node("plain", config={"materialized": "table"}), version=version)
    assert not source.refusals
    assert tuple(source.notes) == ("left out, without an enforced contract: 1 model of dbt",)
    assert source.models == (
        Table(
            "dev",
            "gold",
            "orders",
            [
                Column("id", "bigint", comment="the key", tags={"key": "yes"}),
                Column("customer", "bigint", tags={"pii": "yes"}),
            ],
            "One row per order",
            primary_key=PrimaryKey(["id"], "orders_pk"),
            foreign_keys=[ForeignKey(["customer"], "dev.gold.customers", ["id"])],
            checks=[CheckConstraint("positive", "id > 0")],
            tags={"layer": "gold", "pii": ""},
            grants={"readers": ["SELECT"], "ana@example.com": ["SELECT"], "writers": ["MODIFY"]},
            manages=[Part.COMMENTS, Part.TAGS, Part.GRANTS, Part.CONSTRAINTS],
        ),
    )


def test_a_source_with_columns_is_a_whole_table(tmp_path: Path) -> None:
    columns = {"id": {"name": "id", "data_type": "int", "constraints": [{"type": "not_null"}]}}
    raw = node("raw", resource_type="source", alias=None, identifier="raw_v1", config={}, columns=columns)
    empty = node("empty", resource_type="source", columns={})
    source = read(tmp_path, raw, empty)
    assert (*source.refusals, *source.notes) == ()
    assert source.models == (Table("dev", "gold", "raw_v1", [Column("id", "int", is_nullable=False)]),)


LEFT_OUT = {
    "a: column id has no data_type": node("a", columns={"id": {"name": "id"}}),
    "a: it is a view, but the import reads only models of tables": node(
        "a", config={**ENFORCED, "materialized": "view"}
    ),
    "a: it names no materialization, but the import reads only models of tables": node(
        "a", config={"contract": {"enforced": True}}
    ),
    "a: it has no catalog or schema": node("a", database=None),
    "a: it has two primary keys": node(
        "a", constraints=[{"type": "primary_key", "columns": [name]} for name in ("id", "other")]
    ),
    "type 'number' cannot be used": node("a", columns={"id": {"name": "id", "data_type": "number"}}),
    "a foreign key is an expression": node(
        "a", constraints=[{"type": "foreign_key", "columns": ["id"], "expression": "REFERENCES b"}]
    ),
}


@pytest.mark.parametrize("message", LEFT_OUT)
def test_what_is_left_out(message: str, tmp_path: Path) -> None:
    source = read(tmp_path, LEFT_OUT[message], node("fine"))
    (refusal,) = source.refusals
    assert message in str(refusal)
    assert [model.key for model in source.models] == ["dev.gold.fine"]


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (9, "it is a manifest of version 9, and versions 10 to 12 are read. Write it with dbt 1.6 or later"),
        (13, "it is a manifest of version 13, and versions 10 to 12 are read. Write it with an earlier dbt"),
        (
            "none",
            "it is not a manifest of dbt. Name manifest.json, which `dbt parse` writes to the folder target",
        ),
    ],
)
def test_other_versions_are_refused(version: int | str, message: str, tmp_path: Path) -> None:
    (refusal,) = read(tmp_path, node("a"), version=version).refusals
    assert message in str(refusal)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a": 1}',
        "[1]",
        '{"metadata": {"dbt_schema_version": 5}}',
        '{"nodes": {"a": ' + "[" * 100_000,
    ],
)
def test_other_json_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "manifest.json"
    file.write_text(text)
    (refusal,) = read_source([file], Wanted(), Variables({}, {})).refusals
    assert str(refusal).startswith(f"{file}: it is not a manifest of dbt")
