"""The output of notebook cells in a real browser: a plan, a run and a drift report inside a page of another style."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from delta_engine.actions import AlignTable, CreateTable, DropTable, TablePlan
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.compile.compiled_plan import CompiledPlan, Operation, Statement, Step
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.errors import UnsafePlanError
from delta_engine.models import Column, QualifiedName, Table
from delta_engine.report.notebook_html import framed, plan_html
from delta_engine.report.pages import drift_html
from delta_engine.report.run_report import RunError, RunReport, RunStatus, TableRun, TableStatus
from tests.browser.conftest import PHONE, Open, violations
from tests.builders.drift_reports import full_report

HOSTILE = "</li></pre><script>alert(1)</script>" + "long" * 60
PLAN = TablePlan(
    (
        CreateTable(Table("dev", "silver", "orders", [Column("id", "bigint", comment=HOSTILE)])),
        AlignTable(
            QualifiedName("dev", "silver", "customers"),
            (SetTableComment(desired="who buys", observed=HOSTILE),),
        ),
        DropTable(QualifiedName("dev", "silver", "gone"), 7),
    )
)
NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
RUN = RunReport(
    run_id="1",
    operation="sync",
    environment="dev",
    status=RunStatus.PARTIAL,
    started_at=NOON,
    ended_at=NOON,
    seconds=0,
    run_by="ana",
    run_url="",
    lineage="unknown",
    engine_version="0.1.0",
    platform_version="fake",
    counts={"statements": 1, "verified": 1},
    tables=(
        TableRun(table="dev.silver.fine", status=TableStatus.CREATED, seconds=1),
        TableRun(
            table="dev.silver.orders", status=TableStatus.FAILED, seconds=1, error=RunError(message=HOSTILE)
        ),
        TableRun(table="dev.silver.later", status=TableStatus.NOT_STARTED, seconds=0),
    ),
    warnings=("it took long",),
)
REFUSAL = UnsafePlanError("it would be dropped", table="dev.silver.gone", way_out="Declare it.")
SENT = tuple(Statement(sql=sql, actions=()) for sql in ("SELECT 1", HOSTILE))
COMPILED = CompiledPlan(
    steps=(Step(name=QualifiedName("dev", "silver", "orders"), operation=Operation.ALTER, statements=SENT),)
)
OUTPUTS = {
    "plan": plan_html(
        PlannedRun(plan=PLAN, compiled=COMPILED, refusals=(REFUSAL,)),
        environment="dev",
        notes=["kept: dev.silver.old"],
    ),
    "run": RUN._repr_html_(),
    "drift": framed(drift_html(full_report()), title="Drift report", height="40rem"),
}


def cell(output: str, style: str = "") -> str:
    """Return a page with one output, as a notebook has it."""
    head = f"<!doctype html><html lang=en><title>notebook</title><style>{style}</style>"
    return f"{head}<main><h1>Notebook</h1>{output}</main></html>"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", OUTPUTS)
def test_axe_finds_nothing(open_page: Open, name: str, scheme: str) -> None:
    page = open_page(cell(OUTPUTS[name]), color_scheme=scheme)
    for details in page.locator("details:not([open]) > summary").all():
        details.click()
    assert violations(page) == []


@pytest.mark.parametrize("name", ["plan", "run"])
def test_an_output_stays_within_a_narrow_window(open_page: Open, name: str) -> None:
    page = open_page(cell(OUTPUTS[name], "body{margin:0}"), viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize("style", ["body{background:#111;color:#eee}", "body{background:#fff;color:#000}"])
def test_an_output_is_legible_in_a_notebook_of_any_theme(open_page: Open, style: str) -> None:
    page = open_page(cell(OUTPUTS["plan"], style), color_scheme="light")
    shown = "one => [getComputedStyle(one).backgroundColor, getComputedStyle(one).color]"
    assert page.locator(".delta-engine").evaluate(shown) == ["rgb(255, 255, 255)", "rgb(31, 35, 40)"]


def test_a_framed_page_works(open_page: Open) -> None:
    frame = open_page(cell(OUTPUTS["drift"])).frame_locator("iframe")
    frame.get_by_role("button", name="High").click()
    assert frame.locator("#shown").inner_text().startswith("2 of 8 findings")
