"""Files whose layout is unusual, or cannot be edited."""

from __future__ import annotations

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
