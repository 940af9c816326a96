"""What a shell completes, asked the way shells ask: with variables of the environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from delta_engine.actions.policy import DestructiveKind
from delta_engine.config.declared_names import names_in
from delta_engine.config.loading import load_declared, model_files
from delta_engine.config.settings import load_settings
from delta_engine.config.yaml_documents import read_text
from delta_engine.deployment.document import (
    EnvironmentRecord,
)
from delta_engine.deployment.repository import StateRepository
from delta_engine.deployment.stores.local import LocalStateStore
from delta_engine.models import AbacPolicy, Function, of_kind
from delta_engine.ownership.recorded import LastChange
from tests.builders.deployment import applied, deployment_state
from tests.builders.models import WORKED_MODEL, orders
from tests.conftest import CONFIG, ORDERS
from tests.projects.commandline import CommandLine

ROOT = Path(__file__).parents[3]
MORE = """\
tables:
  - name: lines # of orders
    # a comment

    catalog: ${catalog}
    schema: "silver"
    columns:
      - {name: id, type: bigint}
      - {name: schema, type: string}
  - {"catalog": dev, 'schema': gold, name: 'totals', columns: [{name: id, type: bigint}]}
schemas:
  - catalog: dev
    name: silver
"""
GOVERNANCE = """\
functions:
  - {catalog: dev, schema: governance, name: mask, parameters: [{name: x, type: int}], returns: int, body: x}
policies:
  - name: mask_pii
    on: {schema: "${catalog}.silver"}
    mask: {function: dev.governance.mask, column: id}
    match: {id: has_tag('pii')}
    to: [hr]
  - name: own_rows # of orders
    on:
      table: dev.silver.orders
    filter: {function: dev.governance.mask, using: ["1"]}
    to: [hr]
"""
TABLES = ["dev.gold.totals", "dev.silver.lines", "dev.silver.orders"]

Completions = Callable[..., list[str]]


@pytest.fixture
def complete(delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Completions:
    """Return a function that completes the last of the words of a command, as bash does."""
    monkeypatch.setenv("_DELTA_ENGINE_COMPLETE", "complete_bash")

    def completions(*words: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", "\n".join(("delta-engine", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        done = delta_engine()
        assert (done.code, done.stderr) == (0, "")
        return done.stdout.splitlines() if done.stdout != "\n" else []

    return completions


@pytest.fixture
def tables(project: Path) -> Path:
    """Return a project with several tables."""
    (project / "conf" / "models" / "more.yml").write_text(MORE)
    return project


@pytest.fixture
def state(project: Path) -> LocalStateStore:
    """Return a deployment state with one earlier version, and a run."""
    store = LocalStateStore(project / ".delta-engine" / "state", "local")
    repository = StateRepository(store, "local", errored_dir=project)
    environment = EnvironmentRecord(name="local", host="", variables={})
    first = deployment_state(WORKED_MODEL, serial=0)
    saved = repository.save(msgspec.structs.replace(first, environment=environment), None)
    temp = applied(orders(name="temp"))
    change = LastChange(run="3f2a", at=saved.state.updated_at)
    temp = replace(temp, change=change)
    resources = {**saved.state.resources, "table.dev.silver.temp": temp}
    repository.save(msgspec.structs.replace(saved.state, resources=resources), saved)
    return store


def test_environments(project: Path, complete: Completions) -> None:
    for name in ("dev", "dev.eu", "drift-policy", "consents"):
        (project / "conf" / f"{name}.yml").write_text("")
    assert complete("-e", "") == ["dev", "dev.eu", "local"]
    assert complete("plan", "--env", "l") == ["local"]
    assert complete("state", "show", "-e", "d") == ["dev", "dev.eu"]
    assert complete("-e", "e") == []


@pytest.mark.parametrize("command", ["plan", "sync", "drift", "undo", "docs", "validate", "state list"])
def test_tables(tables: Path, complete: Completions, command: str) -> None:
    assert complete("-e", "local", *command.split(), "-t", "") == TABLES
    assert complete(*command.split(), "-e", "local", "--table", "dev.silver.") == TABLES[1:]


def test_parts_of_names(tables: Path, complete: Completions) -> None:
    assert complete("plan", "-t", "silver.") == ["silver.lines", "silver.orders"]
    assert complete("plan", "-t", "or") == ["orders"]
    assert complete("plan", "-t", "x") == []
    assert complete("plan", "-t", "orders", "-t", "dev.g") == ["dev.gold.totals"]


def test_functions_and_policies(governed: Path, complete: Completions) -> None:
    assert complete("plan", "-t", "dev.governance.") == ["dev.governance.mask"]
    assert complete("plan", "-t", "mask") == ["mask", "mask_pii"]
    assert complete("plan", "-t", "dev.silver.m") == ["dev.silver.mask_pii"]
    assert complete("plan", "-t", "dev.silver.orders.") == ["dev.silver.orders.own_rows"]


@pytest.fixture
def governed(tables: Path) -> Path:
    """Return a project with functions and policies, which its platform lacks."""
    (tables / "conf" / "models" / "governance.yml").write_text(GOVERNANCE)
    return tables


def test_names_are_those_of_the_parsed_models(governed: Path) -> None:
    settings = load_settings(Path("conf"), "local")
    texts = [read_text(path, str(path)).replace("${catalog}", "dev") for path in model_files(settings)]
    names = {name for text in texts for name in names_in(text)}
    declared = load_declared(settings)
    policies = {f"{policy.scope.name}.{policy.name}" for policy in of_kind(AbacPolicy, declared.models)}
    assert policies == {"dev.silver.mask_pii", "dev.silver.orders.own_rows"}
    assert names - policies == {
        *(str(table.qualified_name) for table in declared.tables),
        *(str(function.qualified_name) for function in of_kind(Function, declared.models)),
    }


def test_the_environment_of_tables(
    tables: Path, complete: Completions, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tables / "conf" / "test.yml").write_text(
        CONFIG.replace("local", "test").replace("catalog: dev", "catalog: t")
    )
    assert complete("plan", "-t", "") == []  # which of the two is unknown
    assert "t.silver.orders" in complete("-e", "test", "plan", "-t", "")
    monkeypatch.setenv("DELTA_ENGINE_ENV", "test")
    assert "t.silver.orders" in complete("plan", "-t", "")
    assert complete("plan", "-e", "local", "-t", "") == TABLES
    assert complete("-e", "test", "plan", "-e", "local", "-t", "") == []  # a contradiction


def test_a_configuration_that_extends_another(tables: Path, complete: Completions) -> None:
    (tables / "base.yml").write_text(CONFIG.replace("catalog: dev", "catalog: base, folder: models"))
    own = "extends: ../base.yml\nvariables: {catalog: own}\nmodels: {yaml: ['conf/${folder}/o*.yml']}\n"
    (tables / "conf" / "local.yml").write_text(own)
    assert complete("plan", "-t", "") == ["own.silver.orders"]


def test_other_projects(tables: Path, complete: Completions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tables / "conf" / "models")
    assert complete("plan", "-t", "") == TABLES
    monkeypatch.chdir(tables.parent)
    assert complete("plan", "-t", "") == []
    assert complete("plan", "--conf-dir", f'"{tables}/conf"', "-t", "") == TABLES
    tables.rename(tables.parent / "orders")
    assert complete("-p", "orders", "plan", "-t", "") == TABLES
    assert complete("plan", "-p", "ord*", "-e", "") == ["local"]


def test_records(project: Path, state: LocalStateStore, complete: Completions) -> None:
    assert complete("state", "show", "") == ["dev.silver.orders", "dev.silver.temp"]
    assert complete("state", "rm", "dev.silver.temp", "dev.silver.o") == ["dev.silver.orders"]
    assert complete("state", "mv", "dev.silver.t") == ["dev.silver.temp"]
    assert complete("state", "mv", "dev.silver.temp", "") == ["dev.silver.orders"]
    assert complete("undo", "") == ["3f2a"]
    versions = [version.version_id for version in state.versions.list()]
    assert [version[:8] for version in versions] == ["00000002", "00000001"]
    for words in (["diff"], ["diff", versions[0]], ["restore"]):
        assert sorted(complete("state", *words, "0")) == sorted(versions)


def test_records_of_a_remote_document_come_from_its_copy(
    project: Path, state: LocalStateStore, complete: Completions
) -> None:
    remote = "remote: {type: s3, bucket: b}, local: {path: copies}"
    (project / "conf" / "local.yml").write_text(f"{CONFIG}state_backend: {{type: hybrid, {remote}}}\n")
    assert complete("state", "show", "") == ["dev.silver.orders"]  # no copy yet: the declared tables
    stored = state.read()
    assert stored is not None
    (project / "copies").mkdir()
    (project / "copies" / "local.cache").write_bytes(b"{}\n" + stored.data)
    assert complete("state", "show", "dev.silver.t") == ["dev.silver.temp"]
    assert complete("state", "restore", "0") == []


def test_listed_values(project: Path, complete: Completions) -> None:
    assert complete("drift", "--format", "") == ["text", "json", "html"]
    assert complete("schema", "co") == ["config", "consents"]
    assert complete("apply", "") == []  # the shell offers files


def test_kinds_of_changes(project: Path, complete: Completions) -> None:
    assert sorted(complete("plan", "--allow", "")) == sorted(kind.value for kind in DestructiveKind)
    assert complete("plan", "--allow", "re") == ["rewrite_table", "replace_view"]


def test_topics(project: Path, complete: Completions) -> None:
    assert complete("explain", "invalid-") == ["invalid-command", "invalid-configuration", "invalid-model"]


def test_names_that_a_shell_takes_apart_are_not_offered(project: Path, complete: Completions) -> None:
    (project / "conf" / "a b.yml").write_text("")
    (project / "conf" / "$(touch x).yml").write_text("")
    model = ORDERS.replace("name: orders", "name: \"my 'orders' `x` $(touch x)\"")
    (project / "conf" / "models" / "more.yml").write_text(model)
    assert complete("-e", "") == ["local"]
    assert complete("-e", "local", "plan", "-t", "") == ["dev.silver.orders"]


BROKEN = [
    "",
    "- a",
    "7",
    "a: [",
    "a: &a [*a]",
    "models: 3",
    "models: {yaml: 1}",
    "models: {yaml: [1]}",
    "models: {yaml: [../**/x, '', /, '[', conf/models]}",
    "models: {yaml: ['conf/models/*.yml']}\nvariables: {catalog: [1]}",
    "models: {yaml: ['conf/models/*.yml']}\nvariables: 7",
    "extends: none.yml",
    "extends: local.yml",
    "models: {}\nstate_backend: {type: local, local: {path: [1]}}",
    "models: {}\nstate_backend: {type: x}",
    "models: {}\nstate_backend: {type: local, local: {path: conf}}",
    "\0",
    "{" * 3000,
]
ASKED = ["-e", "plan -t", "state show", "state diff", "undo"]


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_project_is_silent(project: Path, complete: Completions, text: str) -> None:
    (project / "conf" / "local.yml").write_text(text)
    (project / "conf" / "models" / "binary.yml").write_bytes(b"\xff\xfe")
    (project / "conf" / "local.state.json").write_text("{}")
    before = sorted(project.rglob("*"))
    for command in ASKED:
        assert complete(*command.split(), "") in ([], ["local"])
    assert sorted(project.rglob("*")) == before


@pytest.mark.parametrize(
    "words", ["-e local --version", "-e local -e dev plan -t", "nope -t", "plan --nope -t", "-p nope plan -t"]
)
def test_a_broken_command_is_silent(project: Path, complete: Completions, words: str) -> None:
    assert "delta-engine 0" not in "".join(complete(*words.split(), ""))


def test_without_a_project(here: Path, complete: Completions) -> None:
    for command in ASKED:
        assert complete(*command.split(), "") == []
    (here / "conf").write_text("a file")
    for command in ASKED:
        assert complete(*command.split(), "") == []
    assert [*here.iterdir()] == [here / "conf"]


SCRIPT = (
    "import atexit, sys\n"
    "atexit.register(lambda: sys.stderr.write(' '.join(sys.modules)))\n"
    "from delta_engine.cli.app import main\n"
    "main()\n"
)


def test_a_process_imports_little(tables: Path) -> None:
    asked = {"_DELTA_ENGINE_COMPLETE": "complete_bash", "COMP_WORDS": "delta-engine undo", "COMP_CWORD": "2"}
    for words, position, expected in (
        ("delta-engine undo", "2", ""),
        ("delta-engine plan -t", "3", "\n".join(TABLES)),
    ):
        asked |= {"COMP_WORDS": words, "COMP_CWORD": position}
        command = [sys.executable, "-c", SCRIPT]
        done = subprocess.run(command, env=_environ(**asked), capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected
        heavy = {"pyspark", "databricks", "sqlglot", "boto3", "delta_engine.aspects", "delta_engine.actions"}
        assert not {*heavy, "pydantic"} & {*done.stderr.split()}


def test_a_command_without_values_imports_nothing_that_converts_them(project: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, "-e", "local", "validate"]
    done = subprocess.run(command, env=_environ(), capture_output=True, text=True, check=True)
    assert done.stdout.startswith("local: configuration")
    assert "pydantic" not in done.stderr.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_in_bash(tables: Path, tmp_path: Path) -> None:
    command = tmp_path / "bin" / "delta-engine"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m delta_engine "$@"\n')
    command.chmod(0o755)
    (tables / "conf" / "models" / "odd.yml").write_text(ORDERS.replace("name: orders", "name: 'a b*'"))
    script = """
        set -eu
        source <(delta-engine --show-completion bash)
        asked() {
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
            _delta_engine_completion delta-engine
            printf '%s|' "${COMPREPLY[@]-}"
            echo
        }
        complete -p delta-engine
        asked delta-engine -e ""
        asked delta-engine plan -t dev.silver.
        asked delta-engine plan -t "'dev.g"
        asked delta-engine plan -t nothing
        asked delta-engine --conf-dir "'a b'" plan -t ""
    """
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env=_environ(PATH=path, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "complete -o default -F _delta_engine_completion delta-engine",
        "local|",
        "dev.silver.lines|dev.silver.orders|",
        "dev.gold.totals|",
        "|",
        "|",
    ]


def _environ(**variables: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), **variables}
