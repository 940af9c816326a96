"""The `state` commands over local files; none of them starts Spark."""

import getpass
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest

from delta_engine import __version__
from delta_engine.deployment.document import (
    EnvironmentRecord,
)
from delta_engine.deployment.locks.file import FileLock
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.resources import applied_record
from delta_engine.deployment.stores.local import LocalStateStore
from delta_engine.models import (
    AbacPolicy,
    Function,
    Parameter,
    PolicyFilter,
    PolicyScope,
    Schema,
    Securable,
    View,
    resource_key,
)
from delta_engine.ownership.recorded import Status
from tests.builders.deployment import HOLDER, NOON, applied, deployment_state
from tests.builders.models import WORKED_MODEL, orders
from tests.projects.commandline import CommandLine, Result

KEY = "table.dev.silver.orders"
BAD = Path(__file__).parents[1] / "deployment" / "documents" / "bad"


@pytest.fixture
def folder(project: Path) -> Path:
    """Return the folder of a deployment state with two saves: dev.silver.orders, then dev.silver.temp too."""
    folder = project / ".delta-engine" / "state"
    repository = StateRepository(LocalStateStore(folder, "local"), "local", errored_dir=project)
    environment = EnvironmentRecord(name="local", host="", variables={})
    state = msgspec.structs.replace(deployment_state(WORKED_MODEL, serial=0), environment=environment)
    first = repository.save(state, None)
    temp = applied(orders(name="temp"), Status.DRIFTED)
    resources = {**first.state.resources, "table.dev.silver.temp": temp}
    repository.save(msgspec.structs.replace(first.state, resources=resources), first)
    return folder


@pytest.fixture
def state(delta_engine: CommandLine, folder: Path) -> partial[Result]:
    return partial(delta_engine, "-e", "local", "state")


def serial_in(folder: Path) -> int:
    return int(json.loads((folder / "local.state.json").read_bytes())["serial"])


def test_show(state: partial[Result], folder: Path) -> None:
    lines = dict(line.split(maxsplit=1) for line in state("show").stdout.splitlines())
    assert lines["serial"].startswith("2, saved ")
    assert lines["compared"] == "never"
    assert lines["resources"] == "2 resources: 1 healthy, 1 drifted"
    assert lines["lock"] == "free"
    assert lines["document"] == str(folder / "local.state.json")
    shown = state("show", "--json").stdout
    assert shown.encode() == (folder / "local.state.json").read_bytes() + b"\n"
    record = json.loads(state("show", "ORDERS").stdout)
    assert record["metadata"]["declared"]["comment"] == "Orders table"


def test_list(state: partial[Result]) -> None:
    assert state("list").stdout == (
        f"healthy    {KEY}  2026-03-01 12:00:00 UTC  ana@example.com\n"
        "drifted    table.dev.silver.temp    2026-03-01 12:00:00 UTC  ana@example.com\n"
    )
    assert state("list", "-t", "temp", "--status", "healthy").stdout == ""
    listed = json.loads(state("list", "--status", "drifted", "--json").stdout)
    assert (listed["format"], listed["version"], listed["serial"]) == ("delta-engine/state-resources", 1, 2)
    assert list(listed["resources"]) == ["table.dev.silver.temp"]
    refused = state("list", "--status", "helthy")
    assert refused.code == 3
    assert refused.stderr == (
        "refused: --status: unknown status 'helthy'. Did you mean 'healthy'?\n"
        "more: delta-engine explain invalid-command\n"
    )


def test_versions_diff_and_restore(state: partial[Result], folder: Path) -> None:
    listed = json.loads(state("versions", "--json").stdout)
    (version,) = listed["versions"]
    assert version["version_id"] in state("versions").stdout
    assert state("diff").stdout == ("+ table.dev.silver.temp\nserial 1 → 2: 1 change\n")
    assert state("diff", "2", "1").stdout == ("- table.dev.silver.temp\nserial 2 → 1: 1 change\n")
    difference = json.loads(state("diff", "--json").stdout)
    assert difference["resources"] == [{"key": "table.dev.silver.temp", "sign": "+", "changes": []}]

    restored = state("restore", version["version_id"], "--yes")
    assert (restored.code, restored.stdout) == (0, "restored as serial 3\n")
    assert state("diff", "1", "3").stdout == "serial 1 → 3: 0 changes\n"
    assert state("diff", "--json").code == 0
    missing = state("restore", "99", "--yes")
    assert missing.code == 3
    assert "there is no version '99'. `delta-engine -e local state versions` lists them." in missing.stderr


def test_restoring_a_file(state: partial[Result], folder: Path, project: Path) -> None:
    current = json.loads((folder / "local.state.json").read_bytes())
    errored = project / "errored-3.json"
    errored.write_text(json.dumps({**current, "serial": 3, "write_id": "lost", "lineage": "git:lost"}))
    assert state("restore", str(errored), "--yes").stdout == "restored as serial 3\n"
    saved = json.loads((folder / "local.state.json").read_bytes())
    assert saved["lineage"] == "git:lost"
    assert saved["recent_write_ids"][:2] == ["lost", current["write_id"]]

    again = state("restore", str(errored), "--yes")
    assert again.code == 3
    assert "was saved again since: it is at serial 3, the file at 3" in again.stderr
    assert state("restore", str(errored), "--force", "--yes").code == 0

    errored.write_text(json.dumps({**current, "serial": 30, "state_id": "of another life"}))
    other = state("restore", str(errored), "--yes")
    assert other.code == 3
    assert "its state_id is of another life" in other.stderr

    errored.write_text(json.dumps({**current, "environment": {**current["environment"], "name": "prod"}}))
    foreign = state("restore", str(errored), "--force", "--yes")
    assert foreign.code == 3
    assert "it is the deployment state of the environment 'prod', not of 'local'" in foreign.stderr
    assert serial_in(folder) == 4


def test_restoring_over_a_broken_document(state: partial[Result], folder: Path) -> None:
    document = folder / "local.state.json"
    document.write_bytes(document.read_bytes()[:500])
    broken = state("show")
    assert broken.code == 3
    assert str(document) in broken.stderr
    assert "state restore" in broken.stderr
    assert "00000001-" + _write_id(folder) in state("versions").stdout
    restored = state("restore", "1", "--yes")
    assert (restored.code, restored.stdout) == (0, "restored as serial 4\n")
    assert "kept as a backup" in restored.stderr
    assert state("list").stdout.count("\n") == 1
    assert len(list(folder.glob("*.backup.json"))) == 1


def test_a_document_that_is_gone_is_missed_by_every_command(
    state: partial[Result], folder: Path, delta_engine: CommandLine
) -> None:
    (folder / "local.state.json").unlink()
    for command in (
        ("plan",),
        ("drift", "--fail-on", "high"),
        ("sync", "--yes"),
        ("undo", "--yes"),
        ("state", "show"),
    ):
        refused = delta_engine("-e", "local", *command)
        assert refused.code == 3, command
        assert "the document is gone, although its version 00000002-" in refused.stderr
    usable = state("restore", "2", "--yes")
    assert (usable.code, usable.stdout) == (0, "restored as serial 4\n")
    assert state("list").stdout.count("\n") == 2
    assert state("start-over", "--yes").code == 3
    (folder / "local.state.json").unlink()
    started = state("start-over", "--yes")
    assert started.stdout == "started over with serial 6; earlier versions are kept\n"
    assert state("list").stdout == ""


@pytest.mark.parametrize("bad", sorted(BAD.iterdir()), ids=lambda path: path.name)
def test_bad_documents_are_refused_and_not_touched(state: partial[Result], folder: Path, bad: Path) -> None:
    document = folder / "local.state.json"
    document.write_bytes(bad.read_bytes())
    for command in (["show"], ["list"], ["migrate"], ["rm", "orders"], ["diff", "1"]):
        refused = state(*command)
        assert refused.code == 3
        assert str(document) in refused.stderr
        assert "Traceback" not in refused.stderr
    assert document.read_bytes() == bad.read_bytes()
    assert not list(folder.glob("*.backup.json"))


def _write_id(folder: Path) -> str:
    path = min((folder / "local.versions").iterdir())
    return path.name.split("-")[1].split(".")[0]


def test_rm_and_mv(state: partial[Result], folder: Path) -> None:
    moved = state("mv", "dev.silver.temp", "dev.silver.kept", "--yes")
    assert moved.stdout == "dev.silver.temp is recorded as dev.silver.kept\n"
    removed = state("rm", "silver.o*", "table.dev.silver.kept", "--yes")
    assert removed.stdout == f"- {KEY}\n- table.dev.silver.kept\nforgot 2 resources\n"
    assert state("list").stdout == ""
    assert serial_in(folder) == 4
    unknown = state("rm", "nope", "--yes")
    assert unknown.code == 3
    assert "unknown resource 'nope'" in unknown.stderr
    nameless = state("mv", "temp", "kept", "--yes")
    assert nameless.stderr == (
        "refused: 'temp' is not a table's name. Write catalog.schema.table, or view.catalog.schema.view.\n"
        "more: delta-engine explain invalid-command\n"
    )


HIDE = Function("dev", "silver", "orders", "string", "left(v, 3)", [Parameter("v", "string")])
ROWS = AbacPolicy("rows", PolicyScope("table", "dev.silver.orders"), PolicyFilter("dev.silver.mine"), ["hr"])
OTHERS = ["function.dev.silver.orders", "policy.table.dev.silver.orders.rows"]


@pytest.fixture
def governed(state: partial[Result], folder: Path, project: Path) -> partial[Result]:
    """Return `state` over a deployment state that has a function, a policy and a schema, too."""
    return governed_by(state, project, [HIDE, ROWS, Schema("dev", "silver", "Cleaned")])


def governed_by(state: partial[Result], project: Path, models: Sequence[Securable]) -> partial[Result]:
    store = LocalStateStore(project / ".delta-engine" / "state", "local")
    repository = StateRepository(store, "local", errored_dir=project)
    saved = repository.load()
    assert saved is not None
    records = {
        resource_key(model.qualified_name): applied_record(model, at=NOON, by="ana") for model in models
    }
    resources = {**saved.state.resources, **records}
    repository.save(msgspec.structs.replace(saved.state, resources=resources), saved)
    return state


def test_names_and_globs_are_those_of_tables_functions_and_policies(governed: partial[Result]) -> None:
    def listed(glob: str) -> list[str]:
        done = governed("list", "-t", glob)
        assert done.code == 0, done.stderr
        return [line.split()[1] for line in done.stdout.splitlines()]

    assert listed("orders") == [OTHERS[0], KEY]
    assert listed("rows") == OTHERS[1:]
    assert listed("dev.silver.*") == [*OTHERS, KEY, "table.dev.silver.temp"]
    assert json.loads(governed("show", "rows").stdout)["type"] == "policy"
    refused = governed("show", "dev.silver.orders")
    assert refused.code == 3
    assert (
        f"'dev.silver.orders' matches 2 resources: {KEY}, {OTHERS[0]}. Write one of these keys"
        in refused.stderr
    )
    assert governed("rm", "rows", OTHERS[0], "--yes").stdout.endswith("forgot 2 resources\n")
    assert listed("*") == [KEY, "table.dev.silver.temp"]


@pytest.fixture
def viewed(state: partial[Result], folder: Path, project: Path) -> partial[Result]:
    """Return `state` over a deployment state that has a view, a function and a schema, too."""
    return governed_by(
        state, project, [View("dev", "gold", "v", "SELECT 1 AS one"), FLAT, Schema("dev", "gold", "Ready")]
    )


FLAT = Function("dev", "gold", "flat", "string", "left(v, 3)", [Parameter("v", "string")])


def test_a_name_without_its_kind_is_no_riddle(viewed: partial[Result]) -> None:
    def refused(*command: str) -> str:
        done = viewed(*command, "--yes")
        assert done.code == 3, done.stdout
        return done.stderr.splitlines()[0]

    assert refused("mv", "dev.gold.v", "dev.gold.w").endswith(
        "the deployment state has no table dev.gold.v. Did you mean 'view.dev.gold.v'?"
    )
    assert "delta-engine -e local state list" in refused("mv", "dev.gold.nope", "dev.gold.w")
    only = "Only tables and views are recorded under other names."
    assert refused("mv", "dev.gold.flat", "dev.gold.w").endswith(
        f"the deployment state has no table dev.gold.flat. {only}"
    )
    assert refused("mv", "function.dev.gold.flat", "dev.gold.w").endswith(
        f"'function.dev.gold.flat' is neither a table nor a view. {only}"
    )
    assert refused("mv", "view.dev.gold.v", "table.dev.gold.w").endswith(
        "view.dev.gold.v is a view, and table.dev.gold.w is a table. Write view.dev.gold.w."
    )
    assert refused("rm", "dev.gold").endswith("unknown resource 'dev.gold'. Did you mean 'schema.dev.gold'?")
    assert refused("rm", "table.dev.gold.v").endswith(
        "unknown resource 'table.dev.gold.v'. Did you mean 'view.dev.gold.v'?"
    )
    moved = viewed("mv", "view.dev.gold.v", "dev.gold.w", "--yes")
    assert moved.stdout == "view.dev.gold.v is recorded as dev.gold.w\n"
    assert json.loads(viewed("show", "dev.gold.w").stdout)["type"] == "view"


STEPS = (
    "format 0 → 1: adds state_id, write_id, lineage, environment, dependencies, and the checksums of definitions\n"
    "format 1 → 2: replaces definition and with_others by declared, baseline and attempted\n"
)


def saver(folder: Path) -> tuple[str, str]:
    """Return the engine and the principal that a document names."""
    document = json.loads((folder / "local.state.json").read_bytes())
    return document["engine_version"], document["updated_by"]


@pytest.mark.parametrize(
    "command",
    [
        ("restore", "1"),
        ("rm", "dev.silver.temp"),
        ("mv", "dev.silver.temp", "dev.silver.kept"),
    ],
)
def test_a_document_names_its_saver(state: partial[Result], folder: Path, command: tuple[str, ...]) -> None:
    assert json.loads((folder / "local.state.json").read_bytes())["engine_version"] == "0.1.0"
    assert state(*command, "--yes").code == 0
    assert saver(folder) == (__version__, getpass.getuser())
    assert f"by {getpass.getuser()}\n" in state("show").stdout


def test_migrate(state: partial[Result], folder: Path) -> None:
    assert state("migrate", "--yes").stdout == "nothing to do: the document is in format 2\n"
    old = Path(__file__).parents[1] / "deployment" / "documents" / "v0-first-release.in.json"
    (folder / "local.state.json").write_bytes(old.read_bytes())
    dry = state("migrate", "--dry-run").stdout
    assert dry == f"{folder / 'local.state.json'}: format 0, would be saved in format 2\n{STEPS}"
    other = state("migrate", "--from", "1", "--yes")
    assert other.code == 3
    assert "the document is in format 0, not in format 1. Use --from 0." in other.stderr
    earlier = state("migrate", "--from", "0", "--to", "1", "--yes")
    assert earlier.code == 3
    assert (
        "--to 1: this engine saves format 2 only. Use --to 2, or an engine that saves format 1."
        in earlier.stderr
    )
    assert (folder / "local.state.json").read_bytes() == old.read_bytes()
    assert "2 resources" in state("show").stdout  # read as it is
    backup = folder / "local.state.v0.backup.json"
    assert state("migrate", "--from", "0", "--to", "2", "--yes").stdout == (
        f"{STEPS}migrated from format 0 to 2; the old document is kept as {backup}\n"
    )
    assert backup.read_bytes() == old.read_bytes()
    assert saver(folder) == (__version__, getpass.getuser())
    assert serial_in(folder) == 4


def test_the_lock_is_shown_respected_and_broken(state: partial[Result], folder: Path, project: Path) -> None:
    config = project / "conf" / "local.yml"
    config.write_text(config.read_text() + "state_backend: {type: local, lock: {timeout_seconds: 0}}\n")
    lease = FileLock(folder, "local").acquire(HOLDER, timeout_seconds=0)
    assert f"held by {HOLDER}" in state("show").stdout
    locked = state("rm", "temp", "--yes")
    assert locked.code == 4
    for part in ("ana@example.com", "build-7", "4711", "sync since", "https://example.com/runs/1"):
        assert part in locked.stderr
    broken = state("unlock", "--yes")
    assert broken.stdout == f"broke the lock of {HOLDER}\n"
    assert state("unlock").stdout == "no run holds the lock\n"
    assert state("rm", "temp", "--yes").code == 0
    lease.release()
    assert state("show").stdout.endswith("lock         free\n")


def test_without_a_document(delta_engine: CommandLine, project: Path) -> None:
    for command in (["show"], ["list"], ["diff", "1"], ["migrate", "--dry-run"]):
        result = delta_engine("-e", "local", "state", *command)
        assert result.code == 3
        assert "no" in result.stderr
    assert (
        "yet. Run `delta-engine -e local sync` to create it."
        in delta_engine("-e", "local", "state", "show").stderr
    )
    assert delta_engine("-e", "local", "state", "versions").stdout == ""
    assert delta_engine("-e", "local", "state", "diff").code == 3
    assert delta_engine("-e", "local", "state", "unlock").stdout == "no run holds the lock\n"
    assert not (project / ".delta-engine").exists()
