"""Edits of ordinary files: columns in braces, and in blocks."""

from __future__ import annotations

import re
from dataclasses import replace

from delta_engine.models import Column, ColumnMask, PrimaryKey
from tests.model_edit_cases.changes import Case, RefusedCase, column, inserted, keyed, ordered, renamed, with_

FLOW = """\
# Orders of customers.
tables:   # ours
  - catalog: ${catalog}
    schema:   silver
    name: 'orders'   # not "order"
    comment: "Orders table"  # short

    columns:
      # the key
      - { name: id,  type: bigint, nullable: false, comment: 'Order ID' }   # stays
      - {name: amount, type: "decimal(18,2)", comment: Order total}

      # set by the loader
      - {name: loaded_at, type: timestamp}
    properties:
      a.b: ${catalog}   # one
      c: 7              # two
    primary_key: [ id ]   # in this order
"""

BLOCK = """\
tables:
- catalog: dev
  schema: silver
  name: orders
  columns:
  -   name: id          # the key
      type: bigint
      nullable: false
  -
      # how much
      name: amount
      type: decimal(18,2)
      comment: >-
        folded
        text
  properties: {a: x, b: y}
  primary_key:
    name: pk
    columns:
      - id    # first
      - amount
"""

ID = "{ name: id,  type: bigint, nullable: false, comment: 'Order ID' }"

CASES = [
    Case("nothing", FLOW, lambda model: model, []),
    Case("nothing in blocks", BLOCK, lambda model: model, []),
    Case(
        "a table comment keeps its quotes",
        FLOW,
        with_(comment='All "orders": ${x} 🎉'),
        [('"Orders table"', '"All \\"orders\\": ${x} 🎉"')],
    ),
    Case("a table comment goes", FLOW, with_(comment=""), [('comment: "Orders table"  # short', "# short")]),
    Case(
        "a table comment comes after the name",
        BLOCK,
        with_(comment="All: orders"),
        [("  name: orders\n", '  name: orders\n  comment: "All: orders"\n')],
    ),
    Case(
        "a column comment",
        FLOW,
        column("id", comment="it's"),
        [(ID, "{name: id, type: bigint, nullable: false, comment: 'it''s'}")],
    ),
    Case(
        "a column comment that single quotes cannot hold",
        FLOW,
        column("id", comment="a\nb"),
        [(ID, '{name: id, type: bigint, nullable: false, comment: "a\\nb"}')],
    ),
    Case(
        "a plain comment that needs quotes now",
        FLOW,
        column("amount", comment="Total, net"),
        [("Order total", '"Total, net"')],
    ),
    Case(
        "a column comment goes",
        FLOW,
        column("id", comment=""),
        [(ID, "{name: id, type: bigint, nullable: false}")],
    ),
    Case(
        "a column comment and NOT NULL come",
        FLOW,
        column("loaded_at", comment="When", is_nullable=False),
        [("type: timestamp", "type: timestamp, nullable: false, comment: When")],
    ),
    Case(
        "NOT NULL gives way to a comment",
        FLOW.replace(", comment: 'Order ID'", ""),
        column("id", comment="x", is_nullable=True),
        [("{ name: id,  type: bigint, nullable: false }", "{name: id, type: bigint, comment: x}")],
    ),
    Case(
        "a folded comment",
        BLOCK,
        column("amount", comment="new"),
        [(">-\n        folded\n        text", "new")],
    ),
    Case(
        "a folded comment goes",
        BLOCK,
        column("amount", comment=""),
        [("      comment: >-\n        folded\n        text\n", "")],
    ),
    Case(
        "NOT NULL in blocks",
        BLOCK,
        column("amount", is_nullable=False),
        [("type: decimal(18,2)\n", "type: decimal(18,2)\n      nullable: false\n")],
    ),
    Case("NOT NULL goes in blocks", BLOCK, column("id", is_nullable=True), [("      nullable: false\n", "")]),
    Case(
        "a type",
        FLOW,
        column("id", data_type="int"),
        [(ID, "{name: id, type: int, nullable: false, comment: 'Order ID'}")],
    ),
    Case(
        "a type that needs quotes",
        FLOW,
        column("id", data_type="decimal(1,0)"),
        [(ID, "{name: id, type: \"decimal(1,0)\", nullable: false, comment: 'Order ID'}")],
    ),
    Case("a type in blocks", BLOCK, column("id", data_type="decimal(1,0)"), [("bigint", "decimal(1,0)")]),
    Case(
        "a renamed column keeps its place and its keys",
        FLOW,
        lambda model: replace(
            column("id", name="order_id", comment="")(model),
            primary_key=PrimaryKey(["order_id"]),
        ),
        [
            (ID, "{name: order_id, type: bigint, nullable: false}"),
            ("[ id ]", "[order_id]"),
        ],
        {"id": "order_id"},
    ),
    Case(
        "two columns swap names",
        BLOCK,
        lambda model: replace(
            model,
            columns=(renamed(model.columns[0], "amount"), renamed(model.columns[1], "id")),
            primary_key=PrimaryKey(["amount", "id"], "pk"),
        ),
        [
            ("name: id          #", "name: amount          #"),
            ("name: amount\n", "name: id\n"),
            ("- id    # first\n      - amount", "- amount\n      - id    # first"),
        ],
        {"id": "amount", "amount": "id"},
    ),
    Case("a column's case", FLOW, column("loaded_at", name="Loaded_At"), [("loaded_at", "Loaded_At")]),
    Case(
        "a column comes behind its neighbour and above the next one's comment",
        FLOW,
        inserted(2, Column("a b", "int", False, "x: y")),
        [
            (
                "comment: Order total}\n",
                'comment: Order total}\n      - {name: a b, type: int, nullable: false, comment: "x: y"}\n',
            )
        ],
    ),
    Case(
        "columns come first and last",
        FLOW,
        lambda model: inserted(4, Column("z", "int"))(inserted(0, Column("true", "int"))(model)),
        [
            ("      # the key\n", '      - {name: "true", type: int}\n      # the key\n'),
            ("timestamp}\n", "timestamp}\n      - {name: z, type: int}\n"),
        ],
    ),
    Case(
        "a column comes into blocks",
        BLOCK,
        inserted(1, Column("x", "array<int>", False, "# no")),
        [
            (
                "      nullable: false\n",
                "      nullable: false\n  - name: x\n    type: array<int>\n"
                '    nullable: false\n    comment: "# no"\n',
            )
        ],
    ),
    Case(
        "a column comes after one whose dash stands alone",
        BLOCK,
        inserted(2, Column("x", "int")),
        [("        text\n", "        text\n  - name: x\n    type: int\n")],
    ),
    Case(
        "a column goes and the comment above it stays",
        FLOW,
        ordered("id", "amount"),
        [("      - {name: loaded_at, type: timestamp}\n", "")],
    ),
    Case(
        "the first column of blocks goes",
        BLOCK,
        lambda model: replace(
            ordered("amount")(model),
            primary_key=PrimaryKey(["amount"], "pk"),
        ),
        [
            (
                "  -   name: id          # the key\n      type: bigint\n      nullable: false\n",
                "  # the key\n",
            ),
            ("      - id    # first\n", "      # first\n"),
        ],
    ),
    Case(
        "columns in another order take the comments above them along",
        FLOW,
        ordered("loaded_at", "id", "amount"),
        [
            ("\n      # set by the loader\n      - {name: loaded_at, type: timestamp}\n", ""),
            (
                "      # the key\n",
                "\n      # set by the loader\n      - {name: loaded_at, type: timestamp}\n      # the key\n",
            ),
        ],
    ),
    Case(
        "all at once",
        FLOW,
        lambda model: replace(
            model,
            columns=(
                Column("new", "int"),
                Column("loaded_at", "timestamp_ntz"),
                Column("id", "bigint", False, "Order ID"),
            ),
            table_properties={"c": "8", "d": "true"},
            primary_key=None,
            cluster_by=("id",),
        ),
        [
            (
                '      - {name: amount, type: "decimal(18,2)", comment: Order total}\n\n'
                "      # set by the loader\n      - {name: loaded_at, type: timestamp}\n",
                "",
            ),
            (
                "      # the key\n",
                "      - {name: new, type: int}\n\n      # set by the loader\n"
                "      - {name: loaded_at, type: timestamp_ntz}\n      # the key\n",
            ),
            ("a.b: ${catalog}   # one", "# one"),
            ("c: 7              # two\n", 'c: "8"              # two\n      d: "true"\n'),
            (
                "    primary_key: [ id ]   # in this order\n",
                "    cluster_by: [id]\n    # in this order\n",
            ),
        ],
    ),
    Case(
        "a property's new value is literal",
        FLOW,
        with_(table_properties={"a.b": "${catalog}", "c": "7"}),
        [("a.b: ${catalog}", "a.b: $${catalog}")],
    ),
    Case(
        "properties come and go",
        FLOW,
        with_(table_properties={"c": "7", "${x}": "${y}", "d": "a: b"}),
        [
            ("a.b: ${catalog}   # one", "# one"),
            ("# two\n", '# two\n      ${x}: $${y}\n      d: "a: b"\n'),
        ],
    ),
    Case(
        "properties within braces",
        BLOCK,
        with_(table_properties={"b": "z", "c": "true"}),
        [("{a: x, b: y}", '{b: z, c: "true"}')],
    ),
    Case("other properties", BLOCK, with_(table_properties={"c": "x"}), [("{a: x, b: y}", "{c: x}")]),
    Case("no properties", BLOCK, with_(table_properties={}), [("  properties: {a: x, b: y}\n", "")]),
    Case(
        "the first properties",
        BLOCK.replace("  properties: {a: x, b: y}\n", ""),
        with_(table_properties={"c": "true", "d": "x"}),
        [("        text\n", '        text\n  properties:\n    c: "true"\n    d: x\n')],
    ),
    Case(
        "empty properties fill",
        FLOW.replace("properties:\n", "properties: { }\n")
        .replace("      a.b: ${catalog}   # one\n", "")
        .replace("      c: 7              # two\n", ""),
        with_(table_properties={"c": "d"}),
        [("properties: { }", "properties: {c: d}")],
    ),
    Case("a key's columns", FLOW, keyed("loaded_at", "id"), [("[ id ]", "[loaded_at, id]")]),
    Case("a key goes", FLOW, with_(primary_key=None), [("primary_key: [ id ]   # in", "# in")]),
    Case(
        "a key gets a name",
        FLOW,
        keyed("id", name="my: key", rely=True),
        [("[ id ]", '{name: "my: key", columns: [id], rely: true}')],
    ),
    Case(
        "a key loses its name",
        BLOCK.replace("    # first", ""),
        keyed("id", "amount"),
        [
            (
                "  primary_key:\n    name: pk\n    columns:\n      - id\n      - amount\n",
                "  primary_key:\n    - id\n    - amount\n",
            )
        ],
    ),
    Case(
        "a key gets another name", BLOCK, keyed("id", "amount", name="other"), [("name: pk", "name: other")]
    ),
    Case(
        "a key's columns swap in blocks",
        BLOCK,
        keyed("amount", "id", name="pk", rely=True),
        [
            (
                "      - id    # first\n      - amount\n",
                "      - amount\n      - id    # first\n    rely: true\n",
            ),
        ],
    ),
    Case(
        "a key's first column goes in blocks",
        BLOCK,
        keyed("amount", "x", name="pk"),
        [("      - id    # first\n      - amount\n", "      # first\n      - amount\n      - x\n")],
    ),
    Case(
        "a key comes",
        FLOW.replace("    primary_key: [ id ]   # in this order\n", ""),
        keyed("id"),
        [("# two\n", "# two\n    primary_key: [id]\n")],
    ),
    Case(
        "clustering comes",
        FLOW,
        with_(cluster_by=("id", "null")),
        [("# in this order\n", '# in this order\n    cluster_by: [id, "null"]\n')],
    ),
    Case(
        "clustering changes",
        FLOW + "    cluster_by: [id, amount]\n",
        with_(cluster_by=("loaded_at", "amount")),
        [("[id, amount]", "[loaded_at, amount]")],
    ),
    Case(
        "clustering goes",
        FLOW + "    cluster_by: [id, amount]\n",
        with_(cluster_by=()),
        [("    cluster_by: [id, amount]\n", "")],
    ),
    Case(
        "the only table goes",
        BLOCK,
        None,
        [(BLOCK, "tables: []\n# the key\n# how much\n# first\n")],
    ),
    Case(
        "one of two tables goes",
        FLOW
        + "\n  # the other\n  - {catalog: a, schema: b, name: c, columns: [{name: x, type: int}]}\n# end\n",
        None,
        [
            (
                FLOW,
                "# Orders of customers.\ntables:   # ours\n"
                + "".join(f"  {comment}\n" for comment in re.findall("#.*", FLOW)[2:]),
            )
        ],
    ),
]

REFUSED = [
    RefusedCase(
        "a key with a comment loses its name", BLOCK, keyed("id", "amount"), "a comment would be lost"
    ),
    RefusedCase(
        "a folded text with a comment changes",
        BLOCK.replace(">-", ">-  # in short"),
        column("amount", comment="new"),
        "a comment would be lost",
    ),
    RefusedCase(
        "the first key of a table goes",
        BLOCK.replace("- catalog", "- comment: x\n  catalog"),
        with_(comment=""),
        "the key 'comment' shares its line with others",
    ),
    RefusedCase(
        "a variable of a mask",
        FLOW.replace("timestamp}", "'timestamp', mask: '${x}.f'}"),
        column("loaded_at", mask=ColumnMask("X.f", ["id"])),
        "the variable ${x} would be lost",
    ),
    RefusedCase(
        "lines that end in different ways",
        FLOW.replace("\n", "\r\n", 3),
        with_(comment="x"),
        "its lines end in different ways",
    ),
]
