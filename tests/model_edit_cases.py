"""Edits of model files: the text before, the change of its first table, and what of the text it replaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from delta_engine.models import (
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Identity,
    PrimaryKey,
    RowFilter,
    Table,
)

Change = Callable[[Table], Table]

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


def with_columns(*columns: Column) -> Change:
    return lambda model: replace(model, columns=columns)


def column(which: str, /, **changes: Any) -> Change:
    """Return a change of one column's fields."""

    def change(model: Table) -> Table:
        def changed(found: Column) -> Column:
            return replace(found, **changes)

        return replace(model, columns=tuple(changed(c) if c.name == which else c for c in model.columns))

    return change


def inserted(place: int, *new: Column) -> Change:
    return lambda model: replace(model, columns=(*model.columns[:place], *new, *model.columns[place:]))


def ordered(*names: str) -> Change:
    return lambda model: replace(
        model, columns=tuple(c for name in names for c in model.columns if c.name == name)
    )


def with_(**changes: Any) -> Change:
    return lambda model: replace(model, **changes)


def keyed(*columns: str, name: str | None = None, rely: bool = False) -> Change:
    return with_(primary_key=PrimaryKey(columns, name, rely))


@dataclass(frozen=True)
class Case:
    name: str
    text: str
    change: Change | None
    replaced: Sequence[tuple[str, str]]
    renames: dict[str, str] = field(default_factory=dict)


CASES = [
    Case("nothing", FLOW, lambda model: model, []),
    Case("nothing in blocks", BLOCK, lambda model: model, []),
    Case(
        "a table comment keeps its quotes",
        FLOW,
        with_(comment='All "orders": ${x} 🎉'),
        [('"Orders table"', '"All \\"orders\\": ${x} 🎉"')],
    ),
    Case("a table comment goes", FLOW, with_(comment=""), [('    comment: "Orders table"  # short\n', "")]),
    Case(
        "a table comment comes after the name",
        BLOCK,
        with_(comment="All: orders"),
        [("  name: orders\n", '  name: orders\n  comment: "All: orders"\n')],
    ),
    Case("a column comment", FLOW, column("id", comment="it's"), [("'Order ID'", "'it''s'")]),
    Case(
        "a column comment that single quotes cannot hold",
        FLOW,
        column("id", comment="a\nb"),
        [("'Order ID'", '"a\\nb"')],
    ),
    Case(
        "a plain comment that needs quotes now",
        FLOW,
        column("amount", comment="Total, net"),
        [("Order total", '"Total, net"')],
    ),
    Case("a column comment goes", FLOW, column("id", comment=""), [(", comment: 'Order ID'", "")]),
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
        [(", nullable: false", ", comment: x")],
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
    Case("a type", FLOW, column("id", data_type="int"), [("bigint", "int")]),
    Case(
        "a type that needs quotes",
        FLOW,
        column("id", data_type="decimal(1,0)"),
        [("bigint", '"decimal(1,0)"')],
    ),
    Case("a type in blocks", BLOCK, column("id", data_type="decimal(1,0)"), [("bigint", "decimal(1,0)")]),
    Case(
        "a renamed column keeps its place, its line and its keys",
        FLOW,
        lambda model: replace(
            column("id", name="order_id", comment="")(model),
            primary_key=PrimaryKey(["order_id"]),
        ),
        [
            ("name: id,  type", "name: order_id,  type"),
            (", comment: 'Order ID'", ""),
            ("[ id ]", "[ order_id ]"),
        ],
        {"id": "order_id"},
    ),
    Case(
        "two columns swap names",
        BLOCK,
        lambda model: replace(
            model,
            columns=(replace_name(model.columns[0], "amount"), replace_name(model.columns[1], "id")),
            primary_key=PrimaryKey(["amount", "id"], "pk"),
        ),
        [
            ("name: id          #", "name: amount          #"),
            ("name: amount\n", "name: id\n"),
            ("- id    # first\n      - amount", "- amount    # first\n      - id"),
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
                "      nullable: false\n  -   name: x\n      type: array<int>\n"
                '      nullable: false\n      comment: "# no"\n',
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
            ("  -   name: id          # the key\n      type: bigint\n      nullable: false\n", ""),
            ("      - id    # first\n", ""),
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
            ("      a.b: ${catalog}   # one\n", ""),
            ("c: 7              # two\n", 'c: "8"              # two\n      d: "true"\n'),
            ("    primary_key: [ id ]   # in this order\n", "    cluster_by: [id]\n"),
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
            ("      a.b: ${catalog}   # one\n", ""),
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
    Case("a key's columns", FLOW, keyed("loaded_at", "id"), [("[ id ]", "[ loaded_at, id ]")]),
    Case("a key goes", FLOW, with_(primary_key=None), [("    primary_key: [ id ]   # in this order\n", "")]),
    Case(
        "a key gets a name",
        FLOW,
        keyed("id", name="my: key", rely=True),
        [("[ id ]", '{name: "my: key", columns: [id], rely: true}')],
    ),
    Case("a key loses its name", BLOCK, keyed("id", "amount"), [("    name: pk\n", "")]),
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
        [("      - id    # first\n      - amount\n", "      - amount\n      - x\n")],
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
        [(BLOCK, "tables: []\n")],
    ),
    Case(
        "one of two tables goes",
        FLOW
        + "\n  # the other\n  - {catalog: a, schema: b, name: c, columns: [{name: x, type: int}]}\n# end\n",
        None,
        [(FLOW, "# Orders of customers.\ntables:   # ours\n")],
    ),
]


def replace_name(found: Column, name: str) -> Column:
    return Column(name, found.data_type, found.is_nullable, found.comment)


WHOLE = """\
tables:
  - catalog: ${catalog}
    schema: silver
    name: orders
    columns:
      - {name: id, type: bigint, default: 7, tags: {pii: no}, mask: '${catalog}.gov.f'}   # the id
      - name: mail
        type: string
        mask:            # whom it may concern
          function: gov.mask
          using_columns: [id]
        tags:
          pii: "yes"     # says the office
    foreign_keys:
      - {columns: [id], references: parents}      # up
      # across
      - columns: [mail]
        references: ${catalog}.gold.mails
    checks:
      a: id > 0          # always
      b: mail <> ''
    cluster_by: AUTO     # for now
    row_filter: {function: gov.mine, columns: [id]}
    grants:
      analysts: [select, MODIFY]   # ask first
      ${catalog}-team: [SELECT]
"""

MAIL_KEY, PARENT_KEY = ForeignKey(["mail"], "dev.gold.mails"), ForeignKey(["id"], "parents")

WHOLE_CASES = [
    Case("a default", WHOLE, column("id", default="8"), [("default: 7", 'default: "8"')]),
    Case("a default goes", WHOLE, column("id", default=None), [(", default: 7", "")]),
    Case(
        "identity comes", WHOLE, column("id", identity=Identity()), [("7, tags", "7, identity: true, tags")]
    ),
    Case(
        "a tag comes within braces",
        WHOLE,
        column("id", tags={"pii": "no", "z": "${x}"}),
        [("{pii: no}", '{pii: no, z: "$${x}"}')],
    ),
    Case(
        "a tag changes in blocks",
        WHOLE,
        column("mail", tags={"pii": "no"}),
        [('pii: "yes"  ', 'pii: "no"  ')],
    ),
    Case(
        "the first tags of a column in blocks",
        WHOLE.replace('        tags:\n          pii: "yes"     # says the office\n', ""),
        column("mail", tags={"a": "b"}),
        [("        type: string\n", "        type: string\n        tags:\n          a: b\n")],
    ),
    Case(
        "a mask's function keeps its catalog's variable",
        WHOLE,
        column("id", mask=ColumnMask("dev.gov.g")),
        [("'${catalog}.gov.f'", "'${catalog}.gov.g'")],
    ),
    Case(
        "a mask loses its columns",
        WHOLE,
        column("mail", mask=ColumnMask("gov.mask")),
        [("          using_columns: [id]\n", "")],
    ),
    Case("a mask goes", WHOLE, column("id", mask=None), [(", mask: '${catalog}.gov.f'", "")]),
    Case(
        "a foreign key comes",
        WHOLE,
        with_(foreign_keys=(PARENT_KEY, MAIL_KEY, ForeignKey(["id", "mail"], "dev.gold.x", ["a", "b"]))),
        [
            (
                "gold.mails\n",
                "gold.mails\n      - columns: [id, mail]\n        references: ${catalog}.gold.x\n"
                "        referenced_columns: [a, b]\n",
            )
        ],
    ),
    Case(
        "a foreign key gets a name in its place",
        WHOLE,
        with_(foreign_keys=(ForeignKey(["id"], "parents", name="up"), MAIL_KEY)),
        [("references: parents}", "references: parents, name: up}")],
    ),
    Case(
        "a foreign key goes, and its comment stays with the line",
        WHOLE,
        with_(foreign_keys=(MAIL_KEY,)),
        [("      - {columns: [id], references: parents}      # up\n", "")],
    ),
    Case(
        "the last foreign keys go",
        WHOLE,
        with_(foreign_keys=()),
        [
            (
                "    foreign_keys:\n      - {columns: [id], references: parents}      # up\n      # across\n"
                "      - columns: [mail]\n        references: ${catalog}.gold.mails\n",
                "",
            )
        ],
    ),
    Case(
        "the first foreign keys",
        FLOW,
        with_(foreign_keys=(ForeignKey(["id"], "a"), ForeignKey(["amount"], "b"))),
        [
            (
                "# in this order\n",
                "# in this order\n    foreign_keys:\n      - {columns: [id], references: a}\n"
                "      - {columns: [amount], references: b}\n",
            )
        ],
    ),
    Case(
        "a renamed column keeps its place in all lists",
        WHOLE,
        lambda model: replace(
            column("id", name="number")(column("mail", mask=ColumnMask("gov.mask", ["number"]))(model)),
            foreign_keys=(ForeignKey(["number"], "parents"), MAIL_KEY),
            row_filter=RowFilter("gov.mine", ["number"]),
        ),
        [
            ("{name: id,", "{name: number,"),
            ("using_columns: [id]", "using_columns: [number]"),
            ("{columns: [id], references", "{columns: [number], references"),
            ("gov.mine, columns: [id]", "gov.mine, columns: [number]"),
        ],
        {"id": "number"},
    ),
    Case(
        "checks change, and come at the end",
        WHOLE,
        with_(
            checks=(
                CheckConstraint("a", "id > 1"),
                CheckConstraint("b", "mail <> ''"),
                CheckConstraint("c", "x: y"),
            )
        ),
        [("a: id > 0", "a: id > 1"), ("b: mail <> ''\n", "b: mail <> ''\n      c: \"x: y\"\n")],
    ),
    Case(
        "a check goes",
        WHOLE,
        with_(checks=(CheckConstraint("b", "mail <> ''"),)),
        [("      a: id > 0          # always\n", "")],
    ),
    Case(
        "names that differ in little",
        WHOLE.replace("AUTO", '[a_b, a b, "a  b"]'),
        with_(cluster_by=("a_b", "a  b")),
        [('[a_b, a b, "a  b"]', '[a_b, "a  b"]')],
    ),
    Case(
        "columns instead of AUTO",
        WHOLE,
        with_(clusters_automatically=False, cluster_by=("id",)),
        [("AUTO", "[id]")],
    ),
    Case(
        "AUTO instead of columns",
        WHOLE.replace("AUTO", "[id]"),
        with_(clusters_automatically=True, cluster_by=()),
        [("cluster_by: [id]", "cluster_by: AUTO")],
    ),
    Case(
        "a row filter changes",
        WHOLE,
        with_(row_filter=RowFilter("dev.gov.mine", ["id", "mail"])),
        [("{function: gov.mine, columns: [id]}", '{function: "${catalog}.gov.mine", columns: [id, mail]}')],
    ),
    Case(
        "a row filter goes",
        WHOLE,
        with_(row_filter=None),
        [("    row_filter: {function: gov.mine, columns: [id]}\n", "")],
    ),
    Case(
        "privileges keep their order and spelling",
        WHOLE,
        with_(grants={"analysts": ["MODIFY", "SELECT", "EXECUTE"], "dev-team": ["SELECT"]}),
        [("[select, MODIFY]", "[select, MODIFY, EXECUTE]")],
    ),
    Case(
        "a privilege goes",
        WHOLE,
        with_(grants={"analysts": ["SELECT"], "dev-team": ["SELECT"]}),
        [("[select, MODIFY]", "[select]")],
    ),
    Case(
        "somebody else gets privileges",
        WHOLE,
        with_(grants={"analysts": ["MODIFY", "SELECT"], "dev-team": ["SELECT"], "${x}": ["SELECT"]}),
        [("${catalog}-team: [SELECT]\n", "${catalog}-team: [SELECT]\n      $${x}: [SELECT]\n")],
    ),
    Case(
        "tags and an owner come",
        WHOLE,
        with_(tags={"a": "b", "c": "true"}, owner="me"),
        [
            ("# for now\n", '# for now\n    tags:\n      a: b\n      c: "true"\n'),
            ("columns: [id]}\n    grants", "columns: [id]}\n    owner: me\n    grants"),
        ],
    ),
]


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
    Case("no table", FLOW_TABLE, None, [(FLOW_TABLE, "tables: []\n")]),
    Case("a line goes", LINES_IN_BRACES, ordered("a", "c"), [("      {name: b, type: int},  # why b\n", "")]),
    Case("the last line goes", LINES_IN_BRACES, ordered("a", "b"), [("      {name: c, type: int},\n", "")]),
    Case(
        "a value on a line of its own goes",
        LINES_IN_BRACES,
        column("a", comment=""),
        [("       comment: x}", "       }")],
    ),
    Case(
        "a line comes",
        LINES_IN_BRACES,
        inserted(3, Column("d", "int")),
        [("{name: c, type: int},\n", "{name: c, type: int}, {name: d, type: int},\n")],
    ),
    Case(
        "the last property goes",
        LINES_IN_BRACES,
        with_(table_properties={"p": "x", "q": "y"}),
        [("      r: z    # why r\n", "")],
    ),
    Case(
        "properties change places",
        LINES_IN_BRACES,
        with_(table_properties={"p": "x", "r": "zz", "s": "true"}),
        [("      q: y,   # why q\n", ""), ("r: z    #", 'r: zz, s: "true"    #')],
    ),
]


SHARED = """\
tables:
  - catalog: dev
    schema: s
    name: a
    columns: &shared
      - &id {name: id, type: int}
      - {name: x, type: int}
  - catalog: dev
    schema: s
    name: b
    columns: *shared
  - catalog: dev
    schema: s
    name: c
    columns:
      - *id
      - {<<: *id, name: y}
"""

START = "tables:\n- catalog: dev\n  schema: s\n  name: t\n"

UNUSUAL = [
    "{tables: [{? catalog : dev, schema: s, name: t, columns: [{name: a, type: int}]}]}\n",
    START.replace("catalog:", "? catalog\n  :") + "  columns:\n  - name: a\n    type: int\n",
    START.replace("- ", "- !!map\n  ") + "  columns: !!seq\n  - !!map {name: a, type: int}\n",
    '"tables": [{"catalog": "dev","schema":"s","name":"t","columns":[{"name":"a","type":"int"}]}]',
    f"%YAML 1.1\n---\n{START}  columns: [{{name: a, type: int}}]\n...\n",
    START.replace("- ", "-\n\n  # c\n  ") + "  columns:\n  - \n    name: a\n    type: int\n",
    START + "  comment: |+\n    a\n\n\n  columns: [{name: a, type: int}]\n",
    START + "  columns: [{name: a, type: int}]\n  comment: |\n    a",
    START + "  columns: [{name: a, type: int}]\n  properties: &p {x: y}\n",
    START.replace("- ", "- comment: x  # c\n  # d\n  ") + "  columns:\n  -   name: a\n      type: int\n",
    "tables:\r- {catalog: dev, schema: s, name: t, columns: [{name: a, type: int}]}\r",
    (START + "  columns:\n  - name: a\n    type: int\n").replace("\n", "\r\n", 3),
]
