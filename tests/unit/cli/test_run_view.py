"""What a terminal shows while a plan is applied."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from delta_engine.actions import Create, TablePlan
from delta_engine.cli.run_view import ApplyBoard, TerminalView
from delta_engine.execute.apply_control import ApplyControl, RunningStatement
from delta_engine.execute.outcomes import Outcome, OutcomeKind, RunStatement
from delta_engine.models import Schema, SchemaName, Securable, View
from tests.builders.models import ORDERS, orders


def drawn(control: ApplyControl, *kinds: str) -> list[str]:
    screen = io.StringIO()
    board = ApplyBoard(kinds=kinds or ("table",) * 3, control=control, started=0.0, done=1)
    Console(file=screen, width=100).print(board)
    return screen.getvalue().splitlines()


def test_a_terminal_shows_what_runs() -> None:
    control = ApplyControl(seconds=lambda: 61.0)
    for name, sql in ((ORDERS, "CREATE TABLE\n t"), (SchemaName("dev", "silver"), "CREATE SCHEMA s")):
        control.running[name.key] = RunningStatement(resource=name, sql=sql, since=1.0)
    assert drawn(control) == [
        "applying 1/3 tables 1:01",
        "  dev.silver.orders  60 s  CREATE TABLE t",
        "  schema dev.silver  60 s  CREATE SCHEMA s",
    ]
    assert drawn(control, "schema", "table", "view")[0] == "applying 1/3 resources 1:01"


def test_each_resource_has_a_line_when_it_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    view = View("dev", "gold", "v", "SELECT id FROM dev.silver.orders")
    models: tuple[Securable, ...] = (Schema("dev", "gold"), orders(), view, replace(view, view_name="w"))
    plan = TablePlan(tuple(Create(model) for model in models))
    with TerminalView(environment="dev").applying(plan) as (_, on_outcome):
        folder = Outcome(name=SchemaName("dev", "silver"), kind=OutcomeKind.CREATED)
        on_outcome(folder)  # of tables by path
        for model, kind in zip(models, (*[OutcomeKind.CREATED] * 3, OutcomeKind.STOPPED), strict=True):
            runs = (RunStatement(sql="CREATE", seconds=0.1),) * (kind is OutcomeKind.CREATED)
            on_outcome(Outcome(name=model.qualified_name, kind=kind, runs=runs))
    assert capsys.readouterr().err.splitlines() == [
        "created schema dev.gold (1 statement)",
        "created dev.silver.orders (1 statement)",
        "created view dev.gold.v (1 statement)",
        "not begun 1 view",
    ]


def test_a_terminal_shows_that_the_end_was_asked_for() -> None:
    """Ctrl-C is heard in moments, too, in which nobody prints, such as while the deployment state is saved."""
    control = ApplyControl(seconds=lambda: 0.0)
    control.stop.request()
    assert drawn(control) == [
        "applying 1/3 tables 0:00",
        "  stopping as soon as the completed work is recorded",
    ]
