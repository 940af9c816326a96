"""What a terminal shows while a plan is applied."""

import io

from rich.console import Console

from delta_engine.cli.run_view import ApplyBoard
from delta_engine.execute.apply_control import ApplyControl, RunningStatement
from delta_engine.models import SchemaName
from tests.builders.models import ORDERS


def drawn(control: ApplyControl) -> list[str]:
    screen = io.StringIO()
    board = ApplyBoard(total=3, control=control, started=0.0, done=1)
    Console(file=screen, width=100).print(board)
    return screen.getvalue().splitlines()


def test_a_terminal_shows_what_runs() -> None:
    control = ApplyControl(seconds=lambda: 61.0)
    for name, sql in ((ORDERS, "CREATE TABLE\n t"), (SchemaName("dev", "silver"), "CREATE SCHEMA s")):
        control.running[name.key] = RunningStatement(resource=name, sql=sql, since=1.0)
    assert drawn(control) == [
        "applying 1/3 tables 1:01",
        "  dev.silver.orders  60 s  CREATE TABLE t",
        "  dev.silver  60 s  CREATE SCHEMA s",
    ]


def test_a_terminal_shows_that_the_end_was_asked_for() -> None:
    """Ctrl-C is heard in moments, too, in which nobody prints, such as while the deployment state is saved."""
    control = ApplyControl(seconds=lambda: 0.0)
    control.stop.request()
    assert drawn(control) == ["applying 1/3 tables 0:00", "  stopping, when what was done is recorded"]
