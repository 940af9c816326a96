"""Views in model files: what they may say, where their queries come from, and one message for the rest."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delta_engine.config.loading import Declared, load_declared
from delta_engine.config.model_edits import ModelEdit, edit_models, is_editable
from delta_engine.config.model_format import formatted
from delta_engine.config.settings import Settings, load_settings
from delta_engine.errors import ConfigError, DeltaEngineError
from delta_engine.models import SchemaMode, View, ViewColumn
from tests.unit.config.projects import MODELS, Write

CONFIG = """\
environment: dev
backend: {type: databricks-warehouse, warehouse_id: abc}
state_backend: {type: local}
variables: {catalog: dev, raw: raw-dev, domain: sales}
models:
  yaml: ["conf/models/*.yml"]
"""

VIEWS = """\
views:
  - catalog: ${catalog}
    schema: gold
    name: revenue
    comment: Revenue per customer
    columns:
      - {name: customer_id, comment: The customer, tags: {pii: "no", level: 7, is_key: true}}
      - {name: revenue}
    query_file: views/revenue.sql           # beside this file
    schema_mode: type evolution
    tags: {domain: "${domain}"}
    grants: {analysts: [SELECT]}
  - {catalog: "${catalog}", schema: gold, name: customers, renamed_from: buyers, owner: sales, \
query: "SELECT id FROM ${catalog}.silver.customers"}
"""

QUERY = """\
-- revenue
SELECT customer_id, sum(amount) AS revenue, '${catalog}' AS text
FROM ${catalog}.silver.orders
JOIN ${raw}.silver.rates USING (currency)
GROUP BY customer_id;
"""

FILLED = QUERY.replace("${catalog}.", "dev.").replace("${raw}.", "`raw-dev`.")

REVENUE = View(
    "dev",
    "gold",
    "revenue",
    FILLED,
    [
        ViewColumn("customer_id", "The customer", tags={"pii": "no", "level": "7", "is_key": "true"}),
        ViewColumn("revenue"),
    ],
    query_file="views/revenue.sql",
    schema_mode="type evolution",
    comment="Revenue per customer",
    tags={"domain": "sales"},
    grants={"analysts": ["SELECT"]},
)

CUSTOMERS = View(
    "dev",
    "gold",
    "customers",
    "SELECT id FROM dev.silver.customers",
    owner="sales",
    renamed_from="buyers",
)

PYTHON = """\
from delta_engine import View, ViewColumn


def models(variables):
    return View(
        "${catalog}", "gold", "revenue", query_file="views/revenue.sql", schema_mode="TYPE_EVOLUTION",
        columns=[
            ViewColumn("customer_id", "The customer", tags={"pii": "no", "level": "7", "is_key": "true"}),
            ViewColumn("revenue"),
        ],
        comment="Revenue per customer", tags={"domain": "${domain}"}, grants={"analysts": ["SELECT"]},
    )
"""


@pytest.fixture(autouse=True)
def project(write: Write, tmp_path: Path) -> Path:
    """Return a project on Databricks with the file of a query."""
    write("conf/dev.yml", CONFIG)
    write("conf/models/views/revenue.sql", QUERY)
    return tmp_path


def settings(project: Path) -> Settings:
    return load_settings(project / "conf", "dev")


def declared(project: Path) -> Declared:
    return load_declared(settings(project))


def views(project: Path) -> list[View]:
    return [model for model in declared(project).models if isinstance(model, View)]


def refusal(project: Path) -> str:
    with pytest.raises(DeltaEngineError) as caught:
        declared(project)
    return str(caught.value).replace(f"{project}/", "")


def with_key(key: str) -> str:
    """Return a view with one more key."""
    return f"views:\n  - catalog: dev\n    schema: s\n    name: v\n    {key}\n"


def test_the_example_is_read(project: Path, write: Write) -> None:
    write("conf/models/gold.yml", VIEWS)
    revenue, customers = views(project)
    assert (revenue, customers) == (REVENUE, CUSTOMERS)
    assert revenue.schema_mode is SchemaMode.TYPE_EVOLUTION
    assert revenue.query_file == "views/revenue.sql"
    assert [str(view.declared_at) for view in (revenue, customers)] == [
        "conf/models/gold.yml:2",
        "conf/models/gold.yml:13",
    ]


def test_python_models_are_the_same(project: Path, write: Write) -> None:
    write("conf/models/module_of_views.py", PYTHON)
    write("conf/dev.yml", CONFIG + '  python: ["conf.models.module_of_views:models"]\n')
    assert views(project) == [REVENUE]


def test_a_changed_query_changes_what_was_read(project: Path, write: Write) -> None:
    write("conf/models/gold.yml", VIEWS)
    before = declared(project).contents
    assert project / "conf" / "models" / "views" / "revenue.sql" in before
    write("conf/models/views/revenue.sql", QUERY + "-- more\n")
    assert declared(project).contents != before


def test_views_are_loaded_with_some_tables_too(project: Path, write: Write) -> None:
    write("conf/models/gold.yml", VIEWS)
    write("conf/models/silver.yml", MODELS)
    write("conf/models/other.yml", MODELS.replace("orders", "customers"))
    models = load_declared(settings(project), ["orders"])
    assert not models.is_whole
    assert len([model for model in models.models if isinstance(model, View)]) == 2


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("qurey: SELECT 1 AS a", "view dev.s.v: unknown key 'qurey'. Did you mean 'query'?"),
        (
            "materialized: true",
            "view dev.s.v: the engine does not manage views with materialized. "
            "Remove the key, or create the view with your own job.",
        ),
        ("temporary: true", "view dev.s.v: the engine does not manage views with temporary. "),
        ("recursive: true", "view dev.s.v: the engine does not manage views with recursive. "),
        ("language: yaml", "view dev.s.v: the engine does not manage views with language. "),
        ("measures: []", "view dev.s.v: the engine does not manage views with measures. "),
        ("schedule: every hour", "view dev.s.v: the engine does not manage views with schedule. "),
        ("manages: [tags]", "view dev.s.v: unknown key 'manages'. Use one of: catalog, "),
        ("query: [SELECT]", "view dev.s.v: query: expected a string, got a list."),
        (
            "schema_mode: evolutoin",
            "view dev.s.v: unknown schema mode 'evolutoin'. Did you mean 'evolution'?",
        ),
        (
            "schema_mode: 1",
            "view dev.s.v: schema_mode: expected a string, got an integer. Write the value in quotes.",
        ),
        ("columns: {a: x}", "view dev.s.v: columns: expected a list, got a mapping. Begin each item"),
        ("columns: [{comment: a}]", "view dev.s.v: columns[0]: the key 'name' is missing. Add the key."),
        ("columns: [{name: a, type: int}]", "view dev.s.v: unknown key 'type'. "),
        ("columns: [{name: a, tag: {b: c}}]", "view dev.s.v: unknown key 'tag'. Did you mean 'tags'?"),
        (
            "columns: [{name: a}, {name: b, tags: {c: }}]",
            "view dev.s.v: 'c' must be a string. Write a value, or remove the key.",
        ),
        ("grants: {hr: SELECT}", "view dev.s.v: the grants of 'hr' must be a list. Write [SELECT]."),
        ("owner: hr", "view dev.s.v: query is missing. Write query, or query_file with the path of a file."),
        (
            "query: SELECT a FROM ${catlog}.s.t",
            "view dev.s.v: unknown variable 'catlog'. Did you mean 'catalog'?",
        ),
        (
            "query_file: a.sql",
            "view dev.s.v: query_file 'a.sql' cannot be read: No such file or directory.",
        ),
        (
            "query_file: ../../../x.sql",
            "view dev.s.v: query_file '../../../x.sql' is outside the project.",
        ),
        ("query_file: latin.sql", "conf/models/latin.sql:1: the file cannot be read: it is not UTF-8."),
        ("query_file: link.sql", "query_file 'link.sql' goes through a symbolic link: conf/models/link.sql"),
        (
            "query: SELECT 1 AS a\n    query_file: views/revenue.sql",
            "view dev.s.v: query and query_file exclude each other.",
        ),
    ],
)
def test_bad_keys(project: Path, write: Write, key: str, message: str) -> None:
    folder = project / "conf" / "models"
    (folder / "latin.sql").write_bytes("SELECT 'é' AS a".encode("latin-1"))
    (folder / "link.sql").symlink_to(folder / "views" / "revenue.sql")
    write("conf/models/m.yml", with_key(key))
    assert message in refusal(project)
    if "latin" not in key:
        assert re.match(r"conf/models/m\.yml:[25]: ", refusal(project))


def test_files_are_formatted(write: Write) -> None:
    text = """\
    views:
      - query: |-
          SELECT a
          FROM b.c.d
        columns:
          - {tags: {x: y}, comment: c, name: a}
        name: v  # its name
        schema: b
        catalog: a
    """
    assert (
        formatted(text, "m.yml")
        == """\
    views:
      - catalog: a
        schema: b
        name: v  # its name
        query: |-
          SELECT a
          FROM b.c.d
        columns:
          - {name: a, comment: c, tags: {x: y}}
    """
    )


def edit(project: Path, **changes: dict[str, Any]) -> tuple[Path, ...]:
    """Edit the views of the examples by their names."""
    before = {view.view_name: view for view in views(project)}
    edits = [
        ModelEdit(before=before[name], after=replace(before[name], **change))
        for name, change in changes.items()
    ]
    return edit_models(edits, settings(project))


def test_an_accepted_query_goes_where_the_query_is_and_keeps_its_variables(
    project: Path, write: Write
) -> None:
    model_file = write("conf/models/gold.yml", VIEWS)
    query_file = project / "conf" / "models" / "views" / "revenue.sql"
    accepted = "SELECT customer_id, revenue FROM dev.gold.sums JOIN `raw-dev`.silver.rates"
    assert edit(project, revenue={"query": accepted}) == (query_file,)
    spelled = "SELECT customer_id, revenue FROM ${catalog}.gold.sums JOIN `${raw}`.silver.rates\n"
    assert query_file.read_text() == spelled
    assert model_file.read_text() == VIEWS
    assert views(project)[0].query == f"{accepted}\n"
    assert edit(project, customers={"query": "SELECT id FROM dev.silver.buyers"}) == (model_file,)
    assert model_file.read_text() == VIEWS.replace("silver.customers", "silver.buyers")


def test_accepted_columns_change_in_place(project: Path, write: Write) -> None:
    model_file = write("conf/models/gold.yml", VIEWS)
    columns = (ViewColumn("customer_id", "The buyer", tags={"pii": "no"}), ViewColumn("revenue", "In euros"))
    assert edit(project, revenue={"columns": columns, "comment": "By hand"}) == (model_file,)
    text = model_file.read_text()
    assert '      - {name: customer_id, comment: The buyer, tags: {pii: "no"}}\n' in text
    assert "      - {name: revenue, comment: In euros}\n" in text
    assert "    comment: By hand\n" in text


def test_a_removed_view_leaves_the_others(project: Path, write: Write) -> None:
    model_file = write("conf/models/gold.yml", VIEWS)
    edit_models([ModelEdit(before=views(project)[1], after=None)], settings(project))
    assert model_file.read_text() == VIEWS.rpartition("  - {")[0]


def test_a_query_that_changed_meanwhile_is_not_overwritten(project: Path, write: Write) -> None:
    write("conf/models/gold.yml", VIEWS)
    before = views(project)[0]
    changed = write("conf/models/views/revenue.sql", "SELECT 1 AS a\n")
    with pytest.raises(ConfigError, match="the file changed after the models were loaded"):
        edit_models(
            [ModelEdit(before=before, after=replace(before, query="SELECT 2 AS a"))], settings(project)
        )
    assert changed.read_text() == "SELECT 1 AS a\n"


def test_views_of_python_are_editable_as_far_as_their_query_has_a_file(project: Path, write: Write) -> None:
    write("conf/models/module_of_edited_views.py", PYTHON)
    write("conf/dev.yml", CONFIG + '  python: ["conf.models.module_of_edited_views:models"]\n')
    (view,) = views(project)
    query = ModelEdit(before=view, after=replace(view, query="SELECT 1 AS a"))
    comment = ModelEdit(before=view, after=replace(view, comment="x"))
    assert [is_editable(change) for change in (query, comment)] == [True, False]
    edit_models([query], settings(project))
    assert (project / "conf" / "models" / "views" / "revenue.sql").read_text() == "SELECT 1 AS a\n"
