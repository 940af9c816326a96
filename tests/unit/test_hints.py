"""Commands that messages suggest name the environment: whoever pastes one must not run it against another."""

import ast
import re
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

from delta_engine.backends.sql_runner import query_threads
from delta_engine.config.settings import load_settings
from delta_engine.deployment.locks.file import FileLock
from delta_engine.state.interpretation import not_a_delta_table
from delta_engine.telemetry.context import command, in_context, learn
from tests.builders.deployment import HOLDER
from tests.builders.models import ORDERS
from tests.projects.commandline import CommandLine

SOURCE = Path(__file__).parents[2] / "src" / "delta_engine"

ABOUT_ONE = "plan|apply|sync|drift|import|state(?! schema)|doctor"

HINT = re.compile(rf"(?<!<!-- )delta-engine (?:{ABOUT_ONE})\b|`(?:{ABOUT_ONE})[ `]")
HELP = {SOURCE / "cli" / name for name in ("app.py", "state_app.py")}
"""What `--help` says of commands is about no environment; its examples name one all the same."""


def texts(path: Path) -> Iterator[str]:
    nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.value


def test_no_command_is_suggested_without_its_environment() -> None:
    nameless = [
        (path.relative_to(SOURCE), text)
        for path in sorted(SOURCE.rglob("*.py"))
        for text in texts(path)
        if HINT.search(text) and (path not in HELP or "delta-engine" in text)
    ]
    assert nameless == []


def test_hints_without_an_environment_are_found() -> None:
    for bad in (
        "`delta-engine state unlock`",
        "delta-engine drift --revert",
        "use `sync`",
        "`state rm` forgets it",
    ):
        assert HINT.search(bad)
    for good in (
        "`delta-engine -e prod state rm`",
        "delta-engine init",
        "Upgrade delta-engine.",
        "delta-engine rules",
    ):
        assert not HINT.search(good)


def test_a_command_names_the_environment_that_is_known() -> None:
    assert command("sync") == "`delta-engine -e ENV sync`"
    assert command("sync", "dev") == "`delta-engine -e dev sync`"
    with in_context():
        learn(environment="it's prod")
        assert command("sync") == """`delta-engine -e 'it'"'"'s prod' sync`"""
    assert command("sync") == "`delta-engine -e ENV sync`"


def test_threads_that_ask_a_platform_know_the_environment() -> None:
    with in_context(environment="prod"), query_threads(2) as pool:
        asked: Future[str] = pool.submit(lambda: str(not_a_delta_table(ORDERS, "a view")))
        assert "use `delta-engine -e prod state rm`" in asked.result()


def test_the_command_line_says_which_environment_is_locked(delta_engine: CommandLine, project: Path) -> None:
    place = load_settings(project / "conf", "local").project_dir / ".delta-engine" / "state"
    configured = project / "conf" / "local.yml"
    configured.write_text(
        configured.read_text() + "state_backend: {type: local, lock: {timeout_seconds: 0}}\n"
    )
    lease = FileLock(place, "local").acquire(HOLDER, timeout_seconds=0)
    for arguments in (("-e", "local", "state", "rm", "x"), ("state", "rm", "x", "-e", "local")):
        locked = delta_engine(*arguments)
        assert locked.code == 4
        assert (
            "If the run is certainly gone, `delta-engine -e local state unlock` ends its lock."
            in locked.stderr
        )
    assert command("sync") == "`delta-engine -e ENV sync`"
    lease.release()
