"""Models as text: what is written for `delta-engine import`, as people write it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from delta_engine.config.model_writer import python_models, yaml_models
from delta_engine.models import (
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    PrimaryKey,
    Schema,
    Table,
)
from tests.builders.models import WORKED_MODEL
from tests.cases.documented_models import TABLES
from tests.cases.golden_texts import assert_golden
from tests.projects.models import VARIABLES

AWKWARD = Table(
    "devs",
    "silver",
    "or${d}ers",
    [
        Column("true", "struct<a: int, b: string>", comment="it's: ${x}"),
        Column("a b", "string", False, 'quotes "here"\nand a second line that goes on for quite a while'),
    ],
    "yes: no",
    {"${x}": "${y}", "a.b": "true"},
    PrimaryKey(["a b"], "my_key", rely=True),
    cluster_by=["a b", "true"],
)

UNUSUAL = Table(
    "dev",
    "gold",
    "orders",
    [
        Column("n", "bigint", identity=Identity()),
        Column("mail", "string", tags={"pii": "${x}"}),
        Column("tel", "string", mask=ColumnMask("gov.mask")),
    ],
    foreign_keys=[ForeignKey(["n"], "dev.silver.lines", ["id"], rely=True), ForeignKey(["id"], "parents")],
    checks=[CheckConstraint("positive", "n > 0 and n <> '${x}'")],
    grants={"analysts": ["select", "MODIFY"], "${x}": ["ALL_PRIVILEGES"]},
)
"""Keys in other forms than in docs/models.md, with texts to escape."""


SCHEMA = Schema(
    "dev",
    "silver",
    "It's clean",
    tags={"domain": "sales"},
    owner="team",
    grants={"jo": ["SELECT"]},
)


TABLE = Table("dev", "silver", "t", [Column("a", "int")])
WRITTEN = {
    "tables.yml": yaml_models([WORKED_MODEL, AWKWARD], VARIABLES),
    "schemas.yml": yaml_models([SCHEMA, Schema("dev", "gold"), TABLE], VARIABLES),
    "unusual_keys.yml": yaml_models([UNUSUAL], VARIABLES),
    "tables.py.txt": python_models([WORKED_MODEL, AWKWARD], VARIABLES),
    "unusual_arguments.py.txt": python_models([UNUSUAL], VARIABLES),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_models_are_written_as_people_write_them(name: str, request: pytest.FixtureRequest) -> None:
    assert_golden(WRITTEN[name], Path(__file__).parent / "written_models" / name, request)


def test_schemas_stand_before_tables_in_python() -> None:
    text = python_models([SCHEMA, TABLE], VARIABLES)
    assert "from delta_engine import Column, Schema, Table\n" in text
    assert "def tables(variables: Mapping[str, str]) -> list[Schema | Table]:\n" in text
    assert 'schema_name=variables["schema"],\n            comment="It\'s clean",\n' in text


@pytest.mark.parametrize(
    "models", [[WORKED_MODEL, AWKWARD, UNUSUAL, *TABLES], [WORKED_MODEL], [AWKWARD] * 3, []]
)
def test_a_formatter_finds_nothing_to_change_in_written_python(models: list[Table], tmp_path: Path) -> None:
    module = tmp_path / "written.py"
    module.write_text(python_models(models, VARIABLES), "utf-8")
    command = [sys.executable, "-m", "ruff"]
    for arguments in (["format", "--diff", "--line-length=100"], ["check", "--select=F,W,I,UP,RUF"]):
        done = subprocess.run(
            [*command, *arguments, "--isolated", "--no-cache", str(module)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
