"""Edits of a table that says everything a table can."""

from __future__ import annotations

from dataclasses import replace

from delta_engine.models import CheckConstraint, ColumnMask, ForeignKey, Identity, RowFilter
from tests.model_edit_cases.changes import Case, column, with_
from tests.model_edit_cases.ordinary_files import FLOW

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
        WHOLE.replace("            # whom it may concern", ""),
        column("mail", mask=ColumnMask("gov.mask")),
        [
            (
                "mask:\n          function: gov.mask\n          using_columns: [id]\n",
                "mask: gov.mask\n",
            )
        ],
    ),
    Case("a mask goes", WHOLE, column("id", mask=None), [(", mask: '${catalog}.gov.f'", "")]),
    Case(
        "a foreign key comes",
        WHOLE,
        with_(foreign_keys=(PARENT_KEY, MAIL_KEY, ForeignKey(["id", "mail"], "dev.gold.x", ["a", "b"]))),
        [
            (
                "gold.mails\n",
                'gold.mails\n      - {columns: [id, mail], references: "${catalog}.gold.x", '
                "referenced_columns: [a, b]}\n",
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
        "a foreign key goes, and its comment stays",
        WHOLE,
        with_(foreign_keys=(MAIL_KEY,)),
        [("- {columns: [id], references: parents}      # up\n", "# up\n")],
    ),
    Case(
        "the last foreign keys go",
        WHOLE,
        with_(foreign_keys=()),
        [
            (
                "    foreign_keys:\n      - {columns: [id], references: parents}      # up\n      # across\n"
                "      - columns: [mail]\n        references: ${catalog}.gold.mails\n",
                "    # up\n    # across\n",
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
        [("a: id > 0          # always", "# always")],
    ),
    Case(
        "names that differ in little",
        WHOLE.replace("AUTO", '[a_b, a b, "a  b"]'),
        with_(cluster_by=("a_b", "a  b")),
        [('[a_b, a b, "a  b"]', "[a_b, a  b]")],
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
        "a privilege comes",
        WHOLE,
        with_(grants={"analysts": ["MODIFY", "SELECT", "EXECUTE"], "dev-team": ["SELECT"]}),
        [("[select, MODIFY]", "[EXECUTE, MODIFY, SELECT]")],
    ),
    Case(
        "a privilege goes",
        WHOLE,
        with_(grants={"analysts": ["SELECT"], "dev-team": ["SELECT"]}),
        [("[select, MODIFY]", "[SELECT]")],
    ),
    Case(
        "another principal gets privileges",
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
