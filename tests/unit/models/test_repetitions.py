"""What stands twice in a table: refused when Python code declares it, collected when a file does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from delta_engine.errors import InvalidModelError, RefusalGroup, SourceLocation
from delta_engine.models import CheckConstraint, Column, ForeignKey, PrimaryKey, Table
from delta_engine.orchestrate.project import load_project

ID = Column("id", "bigint", is_nullable=False)
AMOUNT = Column("amount", "int")

CASES: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "columns": ({"columns": [ID, Column("ID", "int")]}, "the table has this column twice", "ID"),
    "primary key": ({"primary_key": ["id", "ID"]}, "primary key columns (id) appear in it twice", "id"),
    "foreign key": (
        {"foreign_keys": [ForeignKey(["amount", "Amount"], "customers")]},
        "foreign key (amount, Amount) names a column twice",
        "amount",
    ),
    "checks": (
        {"checks": [CheckConstraint("fine", "id > 0"), CheckConstraint("FINE", "id > 1")]},
        "constraint name 'fine' is used twice",
        None,
    ),
    "keys": (
        {
            "primary_key": PrimaryKey(["id"], "known"),
            "foreign_keys": [ForeignKey(["amount"], "customers", name="Known")],
        },
        "constraint name 'known' is used twice",
        None,
    ),
    "clustering": ({"cluster_by": ["id", "amount", "ID"]}, "appears in cluster_by twice", "ID"),
    "partitions": ({"partitioned_by": ["amount", "amount"]}, "appears in partitioned_by twice", "amount"),
}


@pytest.mark.parametrize("name", CASES)
def test_python_code_is_refused_at_once(name: str) -> None:
    arguments, reason, column = CASES[name]
    with pytest.raises(InvalidModelError) as refused:
        Table("dev", "silver", "orders", **{"columns": [ID, AMOUNT], **arguments})
    refusal = refused.value
    assert (refusal.reason.partition(" (names")[0], refusal.column) == (reason, column)
    assert refusal.table == "dev.silver.orders"
    assert refusal.way_out
    assert refusal.location is not None
    assert refusal.location.file == __file__


@pytest.mark.parametrize("name", CASES)
def test_a_loader_that_gives_the_place_gets_the_model(name: str) -> None:
    arguments, _, _ = CASES[name]
    here = SourceLocation("models.yml", 7)
    table = Table("dev", "silver", "orders", **{"columns": [ID, AMOUNT], **arguments}, declared_at=here)
    assert table.declared_at == here


def test_a_file_is_refused_with_all_its_faults(project: Path) -> None:
    (project / "conf" / "models" / "orders.yml").write_text(
        "tables:\n"
        "  - catalog: dev\n"
        "    schema: silver\n"
        "    name: orders\n"
        "    columns:\n"
        "      - {name: id, type: int}\n"
        "      - {name: ID, type: int}\n"
        "    primary_key: [id, id]\n"
        "    properties: {delta.appendOnly: maybe}\n"
    )
    with pytest.raises(RefusalGroup) as refused:
        load_project(project / "conf", "local")
    assert [
        (refusal.location and refusal.location.line, refusal.reason.partition(" (")[0])
        for refusal in refused.value.refusals
    ] == [
        (7, "the table has this column twice"),
        (6, "primary key columns"),
        (6, "primary key columns"),
        (2, "property 'delta.appendOnly' is 'maybe'"),
    ]
