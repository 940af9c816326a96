"""How plans and reports show themselves: the text of the terminal, and HTML that is safe in any notebook."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from delta_engine import Column, Plan, RunReport, Schema, Table
from delta_engine.cli.run_view import print_plan, print_plan_summary
from delta_engine.report.json_documents import report_json
from tests.cases.parsed_pages import Page
from tests.unit.api.conftest import Notebook
from tests.unit.report.test_visible import UNSEEN

HOSTILE = "</li></pre><script>alert('1')</script>&amp;\u202e\x1b[2J"
ID = Column("id", "bigint", is_nullable=False)
SCHEMA = Path(__file__).parents[3] / "docs" / "schemas" / "run-report-v1.json"


def table(comment: str = "Orders", *further: Column) -> Table:
    return Table("dev", "silver", "orders", [ID, *further], comment, primary_key=["id"])


def is_harmless(html: str) -> bool:
    tags = {tag for tag, _ in Page(html).elements}
    return not UNSEEN.search(html) and not {"script", "img", "link"} & tags and "http" not in html


def test_a_plan_is_the_text_of_the_command_line(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = notebook.engine()
    engine.sync([table(), Table("dev", "silver", "gone", [ID])])
    notebook.catalog.run("ALTER TABLE dev.silver.orders SET TBLPROPERTIES ('a.b' = 'c')")
    plan = engine.plan([table("Other", Column("note", "struct<a: int, b: string>", comment=HOSTILE))])
    print_plan(plan.actions, plan.planned.undone, is_full=False)
    print_plan_summary(plan.planned, environment="dev", models=1)
    assert str(plan) == repr(plan) == capsys.readouterr().out.rstrip("\n")
    assert "kept: dev.silver.gone is no longer declared" in str(plan)
    assert "├── " in str(plan)


def test_the_documents_of_a_plan_are_those_of_the_command_line(notebook: Notebook) -> None:
    plan = notebook.engine().plan([table()])
    document = json.loads(plan.as_json())
    assert (document["format"], document["environment"]) == ("delta-engine/plan", "dev")
    assert document["tables"][0]["statements"] == list(plan.statements)
    assert plan.as_markdown().startswith("<!-- delta-engine plan -->")
    assert plan.statements_by_table == {"dev.silver.orders": plan.statements}


def test_the_documents_of_a_plan_say_what_speaks_against_it(notebook: Notebook) -> None:
    engine = notebook.engine()
    engine.sync([table("Orders", Column("note", "string"))])
    plan = engine.plan([table()])
    (refusal,) = plan.refusals
    (said,) = json.loads(plan.as_json())["refusals"]
    assert said == {
        "table": "dev.silver.orders",
        "column": "note",
        "location": str(refusal.location),
        "reason": refusal.reason,
        "way_out": refusal.way_out,
    }
    assert "**Refused: nothing will be applied.**" in plan.as_markdown()
    blind = replace(plan, planned=replace(plan.planned, judged_warnings=("the views are not known",)))
    assert json.loads(blind.as_json())["warnings"] == ["the views are not known"]
    assert "the views are not known" in blind.as_markdown()


def test_the_document_of_a_plan_has_the_statements_of_schemas(notebook: Notebook) -> None:
    plan = notebook.engine().plan([], schemas=[Schema("dev", "silver", comment="Cleaned")])
    document = json.loads(plan.as_json())
    assert document["schema_statements"] == list(plan.statements)


def test_a_plan_is_html(notebook: Notebook) -> None:
    engine = notebook.engine()
    engine.sync([table()])
    plan = engine.plan([table(HOSTILE)])
    html = plan._repr_html_()
    assert is_harmless(html)
    page = Page(html)
    assert "alert('1')" in page.text
    assert "SQL: 1 statement" in page.text
    assert "prefers-color-scheme:dark" in html


def test_a_refused_plan_says_so_in_text_and_html(notebook: Notebook) -> None:
    engine = notebook.engine()
    engine.sync([table("Orders", Column("note", "string"))])
    plan: Plan = engine.plan([table()])
    (refused,) = [line for line in str(plan).splitlines() if line.startswith("refused: ")]
    assert "table dev.silver.orders" in refused
    text = Page(plan._repr_html_()).text
    assert "Refused: nothing will be applied." in text
    assert 'allow=["drop_column:dev.silver.orders"]' in text


def test_a_report_is_text_html_and_a_document(notebook: Notebook) -> None:
    report: RunReport = notebook.engine().sync([table()])
    assert str(report) == repr(report)
    assert str(report).splitlines() == [
        "created dev.silver.orders (1 statement)",
        "dev: sync done: 1 table, 1 statement; 1 verified",
    ]
    html = report._repr_html_()
    assert is_harmless(html)
    assert "created" in Page(html).text
    Draft202012Validator(json.loads(SCHEMA.read_text("utf-8"))).validate(json.loads(report_json(report)))


def test_the_actions_of_a_report_are_those_of_the_plan(notebook: Notebook) -> None:
    engine = notebook.engine()
    engine.sync([table()])
    notebook.catalog.run("COMMENT ON TABLE dev.silver.orders IS 'theirs'")
    plan = engine.plan([table("Other", Column("note", "string"))])
    (planned,) = json.loads(plan.as_json())["tables"]
    (run,) = json.loads(report_json(engine.apply(plan)))["tables"]
    assert run["planned"] == planned["actions"]
    assert run["planned"][-1]["changes"][0]["undoes_drift"]["severity"] == "low"
    assert len(run["actions"]) == len(run["planned"])


def test_drift_is_text_and_a_framed_page(notebook: Notebook) -> None:
    engine = notebook.engine()
    engine.sync([table()])
    notebook.catalog.run(f"ALTER TABLE dev.silver.orders SET TBLPROPERTIES ('a.b' = '{HOSTILE[:10]}\"')")
    notebook.catalog.run("ALTER TABLE dev.silver.orders ADD COLUMNS (extra INT)")
    drift = engine.drift()
    assert bool(drift)
    assert str(drift) == repr(drift)
    assert str(drift).endswith(drift.summary)
    (frame,) = Page(drift._repr_html_()).elements
    assert frame == ("iframe", ("sandbox", "title", "style", "srcdoc"))
    attributes = dict(Page(drift._repr_html_()).attributes)
    assert (attributes["srcdoc"], attributes["sandbox"]) == (drift.html, "allow-scripts")
    assert json.loads(drift.as_json())["format"] == "delta-engine/drift-report"


def test_imported_models_are_python_code(notebook: Notebook) -> None:
    engine = notebook.engine()
    engine.sync([table()])
    models = engine.import_tables("dev.silver.orders")
    names: dict[str, object] = {}
    exec(compile(str(models), "models.py", "exec"), names)
    assert "Table(" in repr(models)
    declared = names["tables"]
    assert callable(declared)
    assert list(declared({})) == list(models.tables)
