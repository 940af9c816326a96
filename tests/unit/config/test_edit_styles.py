"""Accepted drift of every kind in files of several styles: a file keeps its style, and all else in it stays."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delta_engine.config.loading import models_of_text
from delta_engine.config.model_edits import ModelEdit, edit_models
from delta_engine.config.settings import Settings
from delta_engine.errors import ConfigError
from delta_engine.models import CheckConstraint, Column, ColumnMask, ForeignKey, PrimaryKey, RowFilter, Table
from tests.cases.golden_texts import assert_golden
from tests.projects.models import settings_of

STYLES = Path(__file__).parent / "edit_styles"
FILE = "models/m.yml"
RENAMED = "a renamed column"
LONG_TYPE = "struct<street: string, zip: string, geo: struct<lat: double NOT NULL, lon: double NOT NULL>>"


def with_columns(table: Table, **changes: Mapping[str, Any] | None) -> Table:
    """Return a table with columns changed; None removes a column."""
    return replace(
        table,
        columns=tuple(
            replace(column, **changes.get(column.name) or {})
            for column in table.columns
            if changes.get(column.name, ()) is not None
        ),
    )


def at(table: Table, place: int, *new: Column) -> Table:
    return replace(table, columns=(*table.columns[:place], *new, *table.columns[place:]))


def edited(table: Table) -> Iterator[tuple[str, Table | None]]:
    """Yield what drift of every kind makes of a table."""
    yield "a column first", at(table, 0, Column("first", "int", False, "It's new"))
    yield "a column in between", at(table, 2, Column("region", "string", tags={"pii": "no"}))
    yield "a column last", at(table, 4, Column("last", "decimal(10,2)", default="0"))
    yield "a column with a long type", at(table, 4, Column("ship_to", LONG_TYPE, comment="where"))
    yield "the first column is gone", with_columns(table, id=None)
    yield "a column is gone", with_columns(table, amount=None)
    yield "the last column is gone", with_columns(table, loaded_at=None)
    yield "another order of columns", replace(table, columns=table.columns[::-1])
    yield RENAMED, with_columns(table, amount={"name": "total", "renamed_from": ("amount",)})
    yield "a type", with_columns(table, amount={"data_type": Column("a", "decimal(20,2)").data_type})
    yield "a long type", with_columns(table, amount={"data_type": Column("a", LONG_TYPE).data_type})
    yield "NOT NULL comes", with_columns(table, amount={"is_nullable": False})
    yield "NOT NULL goes", with_columns(table, id={"is_nullable": True})
    yield "a column comment comes", with_columns(table, amount={"comment": "In euros, net"})
    yield "a column comment changes", with_columns(table, mail={"comment": "It's ours: all of it"})
    yield "a column comment goes", with_columns(table, mail={"comment": ""})
    yield "a default changes", with_columns(table, loaded_at={"default": "'2024-01-01'"})
    yield "a default goes", with_columns(table, loaded_at={"default": None})
    yield "a column's first tag", with_columns(table, amount={"tags": {"unit": "1e3"}})
    yield "a column's second tag", with_columns(table, mail={"tags": {"pii": "contact", "team": "crm"}})
    yield "a column's tag changes", with_columns(table, id={"tags": {"pii": "yes"}})
    yield "a column's tag goes", with_columns(table, id={"tags": {}})
    yield "another mask", with_columns(table, mail={"mask": ColumnMask("dev.gov.other", ["id", "amount"])})
    yield "a mask without columns", with_columns(table, mail={"mask": ColumnMask("dev.gov.mask")})
    yield "a mask goes", with_columns(table, mail={"mask": None})
    yield "a comment changes", replace(table, comment="Orders\nof: ${x}")
    yield "a comment goes", replace(table, comment="")
    yield "a property changes", replace(table, table_properties={"delta.appendOnly": "false", "team": "crm"})
    yield "a property comes", replace(table, table_properties={**table.table_properties, "a.b": "2024-01-01"})
    yield "a property goes", replace(table, table_properties={"team": "crm"})
    yield "all properties go", replace(table, table_properties={})
    yield "a key's columns", replace(table, primary_key=PrimaryKey(["amount", "id"], "orders_pk"))
    yield "a key's name", replace(table, primary_key=PrimaryKey(["id"], "pk", rely=True))
    yield "a key without a name", replace(table, primary_key=PrimaryKey(["id"]))
    yield "a key goes", replace(table, primary_key=None)
    yield (
        "a second foreign key",
        replace(
            table, foreign_keys=(*table.foreign_keys, ForeignKey(["amount"], "dev.gold.rates", ["rate"]))
        ),
    )
    yield (
        "a foreign key gets a name",
        replace(table, foreign_keys=(ForeignKey(["id"], "parents", name="up"),)),
    )
    yield "a foreign key goes", replace(table, foreign_keys=())
    yield "a check changes", replace(table, checks=(CheckConstraint("positive", "amount >= 0"),))
    yield "a second check", replace(table, checks=(*table.checks, CheckConstraint("mine", "mail <> 'a: b'")))
    yield "a check goes", replace(table, checks=())
    yield "other clustering", replace(table, cluster_by=("amount", "id"))
    yield "automatic clustering", replace(table, cluster_by=(), clusters_automatically=True)
    yield "clustering goes", replace(table, cluster_by=())
    yield "a tag changes", replace(table, tags={"domain": "012"})
    yield "a second tag", replace(table, tags={"domain": "sales", "team: crm": "yes"})
    yield "another row filter", replace(table, row_filter=RowFilter("dev.gov.all", ["id", "mail"]))
    yield "a row filter goes", replace(table, row_filter=None)
    yield "another owner", replace(table, owner="O'Brien")
    yield "an owner goes", replace(table, owner=None)
    yield "a privilege comes", replace(table, grants={"analysts": ("MODIFY", "SELECT")})
    yield "a principal comes", replace(table, grants={**table.grants, "it": ("SELECT",)})
    yield "a principal goes", replace(table, grants={})
    yield "the table is renamed", replace(table, table_name="purchases", renamed_from=("orders",))
    yield "the table is gone", None


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_of(tmp_path, {"catalog": "dev"})


def outcome(text: str, name: str, settings: Settings) -> str:
    """Return the lines that an edit changes, or why it is refused."""
    path = settings.project_dir / FILE
    path.write_text(text, "utf-8")
    before, other = models_of_text(text, FILE, settings)
    assert isinstance(before, Table)
    after = dict(edited(before))[name]
    renames = {"amount": "total"} if name == RENAMED else {}
    try:
        edit_models([ModelEdit(before=before, after=after, renames=renames)], settings)
    except ConfigError as refusal:
        return f"refused: {refusal.reason}\n"
    written = path.read_text("utf-8")
    assert models_of_text(written, FILE, settings) == ((other,) if after is None else (after, other))
    changes = difflib.unified_diff(text.splitlines(), written.splitlines(), n=0, lineterm="")
    return "".join(f"{line}\n" for line in changes if not line.startswith(("---", "+++")))


@pytest.mark.parametrize("style", sorted(path.stem for path in STYLES.glob("*.yml")))
def test_accepted_drift_reads_as_the_file_did(
    style: str, settings: Settings, request: pytest.FixtureRequest
) -> None:
    text = (STYLES / f"{style}.yml").read_text("utf-8")
    names = [name for name, _ in edited(Table("c", "s", "t", [Column("id", "int")]))]
    outcomes = "\n".join(f"# {name}\n{outcome(text, name, settings)}" for name in names)
    assert_golden(outcomes, STYLES / f"{style}.diff", request)
