"""Models as text: what is written for `delta-engine import`, as people write it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from delta_engine.config.model_writer import python_models, yaml_models
from delta_engine.models import (
    AUTO,
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    PrimaryKey,
    RowFilter,
    Schema,
    Table,
)
from tests.builders.models import WORKED_MODEL
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

WHOLE = Table(
    "dev",
    "gold",
    "orders",
    [
        Column("id", "bigint", identity=Identity(start=100)),
        Column("n", "bigint", identity=Identity()),
        Column("at", "timestamp", default="current_timestamp()"),
        Column("day", "date", generated_as="cast(at as date)"),
        Column(
            "mail",
            "struct<a: string>",
            tags={"pii": "${x}"},
            mask=ColumnMask("dev.gov.mask", ["n"]),
            renamed_from="email",
            renamed_fields={"a": "b"},
        ),
        Column("tel", "string", mask=ColumnMask("gov.mask")),
    ],
    foreign_keys=[ForeignKey(["n"], "dev.silver.lines", ["id"], rely=True), ForeignKey(["id"], "parents")],
    checks=[CheckConstraint("positive", "n > 0 and n <> '${x}'")],
    cluster_by=AUTO,
    partitioned_by=["day"],
    tags={"team": "sales"},
    row_filter=RowFilter("dev.gov.only_mine", ["mail"]),
    owner="owners",
    grants={"analysts": ["select", "MODIFY"], "${x}": ["ALL_PRIVILEGES"]},
    location="s3://bucket/orders",
    renamed_from="old_orders",
    manages=["tags", "comments"],
)
"""A table with everything that can be declared, though not all of it at once."""


def test_yaml_is_written_as_people_write_it() -> None:
    assert (
        yaml_models([WORKED_MODEL, AWKWARD], VARIABLES)
        == """\
tables:
  - catalog: ${catalog}
    schema: ${schema}
    name: orders
    comment: Orders table
    columns:
      - {name: id, type: bigint, nullable: false, comment: Order ID}
      - {name: created_ts, type: timestamp, comment: Creation time}
      - {name: amount, type: "decimal(18,2)", comment: Order total}
    properties:
      delta.autoOptimize.optimizeWrite: "true"
    primary_key: [id]

  - catalog: devs
    schema: ${schema}
    name: or$${d}ers
    comment: "yes: no"
    columns:
      - {name: "true", type: "struct<`a`: int, `b`: string>", comment: "it's: ${x}"}
      - {name: a b, type: string, nullable: false, comment: "quotes \\"here\\"\\nand a second line that goes on for \
quite a while"}
    properties:
      ${x}: $${y}
      a.b: "true"
    primary_key: {name: my_key, columns: [a b], rely: true}
    cluster_by: [a b, "true"]
"""
    )


SCHEMA = Schema(
    "dev", "silver", "It's clean", tags={"domain": "sales"}, owner="team", grants={"jo": ["SELECT"]}
)


def test_schemas_stand_before_tables() -> None:
    table = Table("dev", "silver", "t", [Column("a", "int")])
    assert (
        yaml_models([table], VARIABLES, [SCHEMA, Schema("dev", "gold")])
        == """\
schemas:
  - catalog: ${catalog}
    name: ${schema}
    comment: It's clean
    tags:
      domain: sales
    owner: team
    grants:
      jo: [SELECT]

  - catalog: ${catalog}
    name: gold

tables:
  - catalog: ${catalog}
    schema: ${schema}
    name: t
    columns:
      - {name: a, type: int}
"""
    )
    text = python_models([table], VARIABLES, [SCHEMA])
    assert "from delta_engine import Column, Schema, Table\n" in text
    assert "def tables(variables: Mapping[str, str]) -> list[Schema | Table]:\n" in text
    assert 'schema_name=variables["schema"],\n            comment="It\'s clean",\n' in text


def test_python_is_written_as_people_write_it() -> None:
    assert (
        python_models([WORKED_MODEL, AWKWARD], VARIABLES)
        == '''\
"""Models of tables that exist, as they were found."""

from __future__ import annotations

from collections.abc import Mapping

from delta_engine import Column, PrimaryKey, Table


def tables(variables: Mapping[str, str]) -> list[Table]:
    """Return the models, for an environment's variables."""
    return [
        Table(
            catalog_name=variables["catalog"],
            schema_name=variables["schema"],
            table_name="orders",
            comment="Orders table",
            columns=[
                Column("id", "bigint", is_nullable=False, comment="Order ID"),
                Column("created_ts", "timestamp", comment="Creation time"),
                Column("amount", "decimal(18,2)", comment="Order total"),
            ],
            table_properties={"delta.autoOptimize.optimizeWrite": "true"},
            primary_key=["id"],
        ),
        Table(
            catalog_name="devs",
            schema_name=variables["schema"],
            table_name="or$${d}ers",
            comment="yes: no",
            columns=[
                Column("true", "struct<`a`: int, `b`: string>", comment="it's: ${x}"),
                Column(
                    "a b",
                    "string",
                    is_nullable=False,
                    comment='quotes "here"\\nand a second line that goes on for quite a while',
                ),
            ],
            table_properties={"${x}": "$${y}", "a.b": "true"},
            primary_key=PrimaryKey(name="my_key", columns=["a b"], rely=True),
            cluster_by=["a b", "true"],
        ),
    ]
'''
    )


def test_every_key_is_written_as_people_write_it() -> None:
    assert (
        yaml_models([WHOLE], VARIABLES)
        == """\
tables:
  - catalog: ${catalog}
    schema: gold
    name: orders
    renamed_from: old_orders
    manages: [comments, tags]
    columns:
      - {name: id, type: bigint, identity: {start: 100}}
      - {name: n, type: bigint, identity: true}
      - {name: at, type: timestamp, default: current_timestamp()}
      - {name: day, type: date, generated_as: cast(at as date)}
      - {name: mail, type: "struct<`a`: string>", tags: {pii: "$${x}"}, \
mask: {function: "${catalog}.gov.mask", using_columns: [n]}, renamed_from: email, renamed_fields: {a: b}}
      - {name: tel, type: string, mask: gov.mask}
    foreign_keys:
      - {columns: [n], references: "${catalog}.silver.lines", referenced_columns: [id], rely: true}
      - {columns: [id], references: parents}
    checks:
      positive: n > 0 and n <> '${x}'
    cluster_by: AUTO
    partitioned_by: [day]
    location: s3://bucket/orders
    tags:
      team: sales
    row_filter: {function: "${catalog}.gov.only_mine", columns: [mail]}
    owner: owners
    grants:
      $${x}: [ALL PRIVILEGES]
      analysts: [MODIFY, SELECT]
"""
    )


def test_every_argument_is_written_as_people_write_it() -> None:
    _, text = python_models([WHOLE], VARIABLES).split("from delta_engine ")
    assert (
        text
        == '''\
import (
    AUTO,
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    RowFilter,
    Table,
)


def tables(variables: Mapping[str, str]) -> list[Table]:
    """Return the models, for an environment's variables."""
    return [
        Table(
            catalog_name=variables["catalog"],
            schema_name="gold",
            table_name="orders",
            renamed_from="old_orders",
            manages=["comments", "tags"],
            columns=[
                Column("id", "bigint", identity=Identity(start=100)),
                Column("n", "bigint", identity=Identity()),
                Column("at", "timestamp", default="current_timestamp()"),
                Column("day", "date", generated_as="cast(at as date)"),
                Column(
                    "mail",
                    "struct<`a`: string>",
                    tags={"pii": "$${x}"},
                    mask=ColumnMask(function="${catalog}.gov.mask", using_columns=["n"]),
                    renamed_from="email",
                    renamed_fields={"a": "b"},
                ),
                Column("tel", "string", mask=ColumnMask("gov.mask")),
            ],
            foreign_keys=[
                ForeignKey(
                    columns=["n"],
                    references="${catalog}.silver.lines",
                    referenced_columns=["id"],
                    rely=True,
                ),
                ForeignKey(columns=["id"], references="parents"),
            ],
            checks=[CheckConstraint("positive", "n > 0 and n <> '${x}'")],
            cluster_by=AUTO,
            partitioned_by=["day"],
            location="s3://bucket/orders",
            tags={"team": "sales"},
            row_filter=RowFilter(function="${catalog}.gov.only_mine", columns=["mail"]),
            owner="owners",
            grants={"$${x}": ["ALL PRIVILEGES"], "analysts": ["MODIFY", "SELECT"]},
        ),
    ]
'''
    )


@pytest.mark.parametrize("models", [[WORKED_MODEL, AWKWARD, WHOLE], [WORKED_MODEL], [AWKWARD] * 3, []])
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
