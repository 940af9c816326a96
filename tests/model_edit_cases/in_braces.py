"""Edits of files that are written in braces, on one line or on several."""

from __future__ import annotations

from dataclasses import replace

from delta_engine.models import Column, PrimaryKey
from tests.model_edit_cases.changes import Case, RefusedCase, column, inserted, ordered, with_, with_columns

FLOW_TABLE = (
    "tables: [{catalog: dev, schema: s, name: t, columns: [{name: a, type: int}, {name: b, type: int}]}]\n"
)

LINES_IN_BRACES = """\
tables:
  - catalog: dev
    schema: s
    name: t
    columns: [
      {name: a, type: int,   # why a
       comment: x},
      {name: b, type: int},  # why b
      {name: c, type: int},
    ]
    properties: {
      p: x,   # why p
      q: y,   # why q
      r: z    # why r
    }
"""

IN_BRACES = [
    Case("a comment", FLOW_TABLE, with_(comment="x, y"), [("name: t,", 'name: t, comment: "x, y",')]),
    Case(
        "everything is on one line",
        FLOW_TABLE,
        lambda model: replace(
            ordered("b")(model), table_properties={"a": "b"}, primary_key=PrimaryKey(["b"]), cluster_by=("b",)
        ),
        [
            ("{name: a, type: int}, ", ""),
            ("}]}]", "}], properties: {a: b}, primary_key: [b], cluster_by: [b]}]"),
        ],
    ),
    Case(
        "columns come",
        FLOW_TABLE,
        with_columns(Column("x", "int"), Column("a", "int"), Column("y", "int"), Column("b", "int")),
        [
            ("[{name: a, type: int}", "[{name: x, type: int}, {name: a, type: int}, {name: y, type: int}"),
        ],
    ),
    Case(
        "other columns",
        FLOW_TABLE,
        with_columns(Column("x", "int"), Column("y", "int")),
        [("{name: a, type: int}, {name: b, type: int}", "{name: x, type: int}, {name: y, type: int}")],
    ),
    Case(
        "columns in another order",
        FLOW_TABLE,
        ordered("b", "a"),
        [("{name: a, type: int}, {name: b, type: int}", "{name: b, type: int}, {name: a, type: int}")],
    ),
    Case("no columns", FLOW_TABLE, with_columns(), [("{name: a, type: int}, {name: b, type: int}", "")]),
]

SEVERAL_LINES = "what changes is in braces or brackets over several lines"

REFUSED_IN_BRACES = [
    RefusedCase("no table", FLOW_TABLE, None, "the list does not have a line for each item"),
    RefusedCase("a line goes", LINES_IN_BRACES, ordered("a", "c"), SEVERAL_LINES),
    RefusedCase("a value goes", LINES_IN_BRACES, column("a", comment=""), SEVERAL_LINES),
    RefusedCase("a line comes", LINES_IN_BRACES, inserted(3, Column("d", "int")), SEVERAL_LINES),
    RefusedCase(
        "properties change",
        LINES_IN_BRACES,
        with_(table_properties={"p": "x", "r": "zz", "s": "true"}),
        SEVERAL_LINES,
    ),
]
