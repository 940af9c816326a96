"""The command line, as far as it needs no Spark: usage, errors, exit codes, and how plans look."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from delta_engine import __version__
from delta_engine.actions import AlignTable, Create, CreateTable, TablePlan
from delta_engine.actions.policy import DestructiveKind
from delta_engine.aspects.columns import ColumnDrop
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.cli import commands
from delta_engine.cli.run_view import print_plan, print_statements
from delta_engine.cli.terminal import ExitCode
from delta_engine.models import Column, Schema
from delta_engine.report.json_documents import pending_summary
from tests.builders.models import ORDERS, WORKED_MODEL
from tests.bundle.bundle_checks import problems
from tests.projects.commandline import CommandLine
from tests.unit.config.projects import CONFIG, MODELS

PLAN = TablePlan(
    (
        CreateTable(WORKED_MODEL),
        AlignTable(ORDERS, (SetTableComment("new [red]", ""), ColumnDrop(Column("a", "int", False, "x")))),
        Create(Schema("dev", "silver")),
    )
)


@pytest.mark.parametrize("command", [[], ["init"], ["validate"], ["plan"], ["apply"], ["sync"]])
def test_help_teaches(delta_engine: CommandLine, command: list[str]) -> None:
    result = delta_engine(*command, "--help")
    assert result.code == 0
    assert "Example: " in result.stdout or "Exit codes: " in result.stdout


def test_windows_is_refused_with_the_way_out(
    delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)  # no module of that name, as there
    result = delta_engine("-e", "local", "plan")
    assert result.code == ExitCode.REFUSED
    assert "Windows lacks. Run delta-engine in WSL." in result.stderr


def test_help_names_every_kind_of_consent(delta_engine: CommandLine) -> None:
    for command in ("plan", "sync", "drift"):
        shown = delta_engine(command, "--help").stdout
        assert [kind.value for kind in DestructiveKind if kind.value not in shown] == []


def test_log_json_stands_before_the_command(delta_engine: CommandLine) -> None:
    result = delta_engine("plan", "--log-json")
    assert result.code == 3
    assert "Write --log-json before the command: delta-engine --log-json … COMMAND" in result.stderr


def test_help_is_quick() -> None:
    """It takes little more than the smallest command line that the same library makes, on any machine."""
    smallest = "import typer; app = typer.Typer(); app.command()(lambda: None); app()"
    ours = _least_work_of_five([sys.executable, "-m", "delta_engine", "--help"])
    assert ours < 1.7 * _least_work_of_five([sys.executable, "-c", smallest, "--help"])


def _least_work_of_five(command: list[str]) -> float:
    """Return the seconds of processor time that a command takes: they do not grow with what else is running."""
    seconds = []
    for _ in range(5):
        before = os.times()
        subprocess.run(command, check=True, capture_output=True)
        after = os.times()
        children = (
            after.children_user - before.children_user,
            after.children_system - before.children_system,
        )
        seconds.append(sum(children))
    return min(seconds)


def test_version(delta_engine: CommandLine) -> None:
    result = delta_engine("--version")
    assert (result.code, result.stdout) == (0, f"delta-engine {__version__}\n")


def test_the_variable(delta_engine: CommandLine, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTA_ENGINE_ENV", "local")
    assert delta_engine("validate").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Usage: "),
        (["nope"], "No such command 'nope'"),
        (["plan", "--nope"], "No such option: --nope"),
        (["drift", "--json", "--format", "html"], "--json means --format json. Choose one of them"),
        (
            ["validate"],
            "refused: no environment was named. Name an environment with -e (local), or set DELTA_ENGINE_ENV.",
        ),
        (["--conf-dir", "x", "validate"], "refused: no environment was named. x contains no configuration. "),
        (["-e", "locla", "validate"], "Did you mean 'local'?"),
        (
            ["-e", "local", "validate", "-t", "nope"],
            "refused: unknown table 'nope'. Use one of: dev.silver.orders.",
        ),
        (
            ["-e", "local", "plan", "--allow", "x"],
            "refused: --allow: 'x' is not one of: drop_column, drop_table, drop_function, drop_policy, "
            "drop_view, replace_view, drop_row_filter, drop_column_mask, change_protection, drop_constraint, "
            "backfill_column, rewrite_table, protected_data.",
        ),
    ],
)
def test_refusals(delta_engine: CommandLine, project: Path, arguments: list[str], message: str) -> None:
    result = delta_engine(*arguments)
    assert result.code == ExitCode.REFUSED
    assert message in result.stdout + result.stderr
    assert "Traceback" not in result.stderr


def test_all_refusals_are_printed(delta_engine: CommandLine, project: Path) -> None:
    (project / "conf" / "models" / "a.yml").write_text("x")
    (project / "conf" / "models" / "b.yml").write_text("y")
    result = delta_engine("-e", "local", "validate")
    assert result.code == ExitCode.REFUSED
    assert result.stderr.count("refused: ") == 2
    assert result.stdout == ""


def test_init_makes_a_project(delta_engine: CommandLine, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = delta_engine("init", "retail")
    assert result.code == 0
    next_steps = result.stdout.partition("\nnext:\n")[2].splitlines()
    assert next_steps[0] == "  cd retail"
    assert next_steps[1].startswith("  delta-engine -e local plan ")
    monkeypatch.chdir(here / "retail")
    for environment in ("local", "dev", "stage", "prod"):
        assert delta_engine("-e", environment, "validate").code == 0
    assert problems(here / "retail") == []
    assert ".venv/" in (here / "retail" / ".gitignore").read_text("utf-8").splitlines()
    again = delta_engine("init")
    assert again.code == ExitCode.REFUSED
    assert "these files exist already: " in again.stderr


def test_the_next_step_after_init_is_a_command_of_a_shell(delta_engine: CommandLine, here: Path) -> None:
    done = delta_engine("init", "Ana's shop")
    assert """\nnext:\n  cd 'Ana'"'"'s shop'\n""" in done.stdout


def test_a_plan_is_a_tree(capsys: pytest.CaptureFixture[str]) -> None:
    print_plan(PLAN, {}, is_full=False)
    print_statements(["CREATE SCHEMA `dev`.`silver`", "A\n  [b]"])
    assert capsys.readouterr().out == (
        "+ schema dev.silver  [safe]\n"
        "+ dev.silver.orders  [safe]\n"
        "├── + id          bigint NOT NULL 'Order ID'\n"
        "├── + created_ts  timestamp 'Creation time'\n"
        "├── + amount      decimal(18,2) 'Order total'\n"
        "├── + table comment: 'Orders table'\n"
        "├── + property delta.autoOptimize.optimizeWrite: 'true'\n"
        "└── + primary key pk_dev_silver_orders__id: (id)\n"
        "~ dev.silver.orders\n"
        "├── - column a: int NOT NULL 'x'  [loses data, reversible by RESTORE]\n"
        "└── ~ table comment: '' → 'new [red]'  [safe]\n"
        "CREATE SCHEMA `dev`.`silver`;\n\n"
        "A\n  [b];\n\n"
    )


def test_summaries_count() -> None:
    assert dict(pending_summary("drift_report", "dev", PLAN).counts) == {
        "pending": 3,
        "create": 1,
        "change": 1,
        "drop": 0,
        "schemas": 1,
    }


@pytest.mark.parametrize("group", [(), ("state",), ("config",), ("projects",)])
def test_no_line_of_the_list_of_commands_is_cut(
    delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch, group: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, listed = delta_engine(*group, "--help").stdout.split("Commands:\n")
    assert "..." not in listed


def test_an_interrupt(delta_engine: CommandLine, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "load_project", interrupted)
    interrupt = delta_engine("-e", "local", "plan")
    assert interrupt.code == ExitCode.INTERRUPTED
    assert interrupt.stderr == "stopped: the command was interrupted\n"


def test_an_interrupt_while_spark_starts(
    delta_engine: CommandLine, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "open_backend", interrupted)
    interrupt = delta_engine("-e", "local", "plan")
    assert interrupt.code == ExitCode.INTERRUPTED
    assert interrupt.stderr == "stopped: nothing was changed\n"


def test_init_says_when_it_cannot_write(delta_engine: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = delta_engine("init", str(tmp_path / "file"))
    assert result.code == ExitCode.REFUSED
    assert "the project cannot be written" in result.stderr


def test_logs_in_json_have_each_refusal(delta_engine: CommandLine, here: Path) -> None:
    (here / "conf" / "models").mkdir(parents=True)
    (here / "conf" / "dev.yml").write_text(CONFIG)
    table = MODELS.removeprefix("tables:\n").replace("type: bigint", "type: number")
    tables = "".join(table.replace("orders", f"orders_{number}") for number in range(12))
    (here / "conf" / "models" / "m.yml").write_text(f"tables:\n{tables}")
    refused = delta_engine("-e", "dev", "validate")
    assert refused.stderr.startswith("refused: 12 tables: type 'number' cannot be used")
    assert (
        len(refused.stderr.splitlines()) == 13
    )  # the message, ten places, how many more there are, and its topic
    logged = delta_engine("--log-json", "-e", "dev", "validate").stderr.splitlines()
    assert len([line for line in logged if "type 'number' cannot be used" in line]) == 12
