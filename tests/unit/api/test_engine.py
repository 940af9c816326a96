"""`Engine` over a Unity Catalog in memory: what its methods do, and what they refuse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from delta_engine import (
    AbacPolicy,
    Column,
    ConfigError,
    Engine,
    Function,
    InvalidModelError,
    LockHeld,
    Parameter,
    PolicyMask,
    PolicyScope,
    Schema,
    StalePlanError,
    StateMismatchError,
    Table,
    UnsafePlanError,
    View,
    ViewColumn,
)
from delta_engine.report.run_report import RunStatus
from delta_engine.sql.views import sql_create_view
from tests.projects.catalog_project import CONFIG
from tests.projects.commandline import CommandLine
from tests.unit.api.conftest import Notebook

ID = Column("id", "bigint", is_nullable=False)
ORDERS = Table("dev", "silver", "orders", [ID], "Orders", primary_key=["id"])
WIDER = Table("dev", "silver", "orders", [ID, Column("note", "string")], "Orders", primary_key=["id"])


def test_a_plan_is_applied_and_then_there_is_nothing_to_do(notebook: Notebook) -> None:
    engine = notebook.engine()
    plan = engine.plan([ORDERS])
    assert bool(plan)
    assert plan.refusals == ()
    assert plan.summary == "1 table to create"
    before = len(notebook.catalog.statements)
    report = engine.apply(plan)
    assert (report.status, report.counts["created"], report.counts["verified"]) == (RunStatus.DONE, 1, 1)
    assert plan.statements[0] in notebook.catalog.statements[before:]
    assert not engine.plan([ORDERS])
    assert notebook.notes == []


def test_a_plan_is_applied_once(notebook: Notebook) -> None:
    engine = notebook.engine()
    plan = engine.plan([ORDERS])
    engine.apply(plan)
    before = len(notebook.catalog.statements)
    assert engine.apply(plan).status is RunStatus.UNCHANGED
    assert [sql for sql in notebook.catalog.statements[before:] if sql.startswith("CREATE TABLE")] == []
    (note,) = notebook.notes
    assert note.startswith("this plan was already applied, by ")


def test_a_plan_is_stale_if_its_table_changed(notebook: Notebook) -> None:
    engine = notebook.engine()
    engine.sync([ORDERS])
    plan = engine.plan([WIDER])
    notebook.catalog.run("ALTER TABLE dev.silver.orders ADD COLUMNS (extra INT)")
    with pytest.raises(StalePlanError) as refused:
        engine.apply(plan)
    assert {move.name for move in refused.value.moves} == {"dev.silver.orders"}
    assert (refused.value.where, refused.value.location) == ("", None)
    assert str(refused.value).startswith(
        "the plan is stale. Since it was made:\n  table dev.silver.orders was changed"
    )
    assert str(refused.value).endswith("Nothing was run. Plan again, and review the new plan.")
    assert "note" not in [
        column.name for column in notebook.catalog.tables["dev.silver.orders"].state.columns
    ]


def test_a_plan_is_stale_if_the_projects_models_changed(notebook: Notebook) -> None:
    models = _project(notebook.folder, "comment: first")
    engine = notebook.engine_of_project()
    plan = engine.plan()
    models.write_text(models.read_text().replace("first", "second"))
    with pytest.raises(StalePlanError, match=r"the model of dev\.silver\.orders was changed"):
        engine.apply(plan)
    engine.apply(engine.plan())
    assert notebook.catalog.tables["dev.silver.orders"].state.table_comment == "second"


def test_a_refused_plan_shows_why_and_is_not_applied(notebook: Notebook) -> None:
    engine = notebook.engine()
    engine.sync([WIDER])
    plan = engine.plan([ORDERS])
    (refusal,) = plan.refusals
    assert (refusal.table, refusal.column) == ("dev.silver.orders", "note")
    with pytest.raises(UnsafePlanError) as raised:
        engine.apply(plan)
    assert raised.value is refusal
    engine.apply(engine.plan([ORDERS], allow=["drop_column:silver.*"]))
    assert not engine.plan([ORDERS])


def test_an_engine_of_a_project_leaves_out_what_is_not_given(notebook: Notebook) -> None:
    _project(notebook.folder, "comment: first")
    engine = notebook.engine_of_project()
    engine.sync()
    other = Table("dev", "silver", "other", [ID])
    plan = engine.plan([other])
    assert [str(action.table) for action in plan.actions.table_actions()] == ["dev.silver.other"]
    assert plan.actions.kept_tables == ()
    engine.apply(plan)
    assert [str(table) for table in engine.plan().actions.kept_tables] == ["dev.silver.other"]
    with pytest.raises(ConfigError, match="the project declares its own"):
        engine.plan([other], schemas=[Schema("dev", "silver", "Ours")])


def test_the_command_line_knows_what_the_engine_applied(
    notebook: Notebook, delta_engine: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _project(notebook.folder, "comment: first")
    engine = notebook.engine_of_project()
    report = engine.apply(engine.plan())
    monkeypatch.chdir(notebook.folder)
    shown = delta_engine("-e", "dev", "state", "show", "table.dev.silver.orders")
    assert json.loads(shown.stdout)["metadata"]["change"]["run"] == report.run_id


def test_schemas_are_declared_beside_tables(notebook: Notebook) -> None:
    engine = notebook.engine()
    schema = Schema("dev", "silver", "Cleaned")
    engine.sync([ORDERS], schemas=[schema])
    assert not engine.plan([ORDERS], schemas=[schema])
    notebook.catalog.run("COMMENT ON SCHEMA dev.silver IS 'theirs'")
    assert [resource.resource for resource in engine.drift().resources] == ["schema.dev.silver"]


HIDE = Function("dev", "silver", "hide", "string", "left(v, 3)", [Parameter("v", "string")])
PII = AbacPolicy(
    "pii",
    PolicyScope("schema", "dev.silver"),
    PolicyMask("dev.silver.hide", "v"),
    ["account users"],
    match={"v": "has_tag('pii')"},
)


def test_functions_and_policies_are_declared_beside_tables(notebook: Notebook) -> None:
    engine = notebook.engine()
    plan = engine.plan([ORDERS], functions=[HIDE], policies=[PII])
    assert [str(change.name) for change in plan.actions.changes] == [
        "dev.silver.hide",
        "dev.silver.orders",
        "pii on schema dev.silver",
    ]
    assert str(plan).splitlines()[-1].endswith("(3 models)")
    engine.apply(plan)
    assert not engine.plan([ORDERS], functions=[HIDE], policies=[PII])
    assert not engine.plan([ORDERS], functions=[HIDE], policies=[PII], select=["hide", "pii"])
    other = replace(HIDE, body="v")
    assert (
        engine.plan([ORDERS], functions=[other], policies=[PII], select=["orders"]).actions.alignments == ()
    )
    (align,) = engine.plan([ORDERS], functions=[other], policies=[PII], select=["hide"]).actions.alignments
    assert str(align.name) == "dev.silver.hide"


def test_views_are_declared_and_imported_beside_tables(notebook: Notebook) -> None:
    engine = notebook.engine()
    engine.sync([ORDERS])
    view = View("dev", "silver", "v", "SELECT id FROM dev.silver.orders", [ViewColumn("id", "It")])
    plan = engine.plan([ORDERS], views=[view])
    assert [str(change.name) for change in plan.actions.changes] == ["dev.silver.v"]
    notebook.catalog.run(sql_create_view(view))
    assert not engine.plan([ORDERS], views=[view])
    models = notebook.engine().import_tables("dev.silver")
    assert models.views == (view,)
    assert "views:" in models.as_yaml()
    assert not engine.plan(models.tables, schemas=models.schemas, views=models.views)


def test_a_function_in_the_place_of_a_policy_is_refused(notebook: Notebook) -> None:
    with pytest.raises(TypeError, match="policies takes a list of AbacPolicy, but it contains Function"):
        notebook.engine().plan([ORDERS], policies=[HIDE])  # type: ignore[list-item]


def test_a_project_declares_its_functions(notebook: Notebook) -> None:
    _project(notebook.folder, "comment: first")
    with pytest.raises(
        ConfigError, match="functions and policies are given, but the project declares its own"
    ):
        notebook.engine_of_project().plan([ORDERS], functions=[HIDE], policies=[PII])


def test_drift_of_a_function_is_found_without_the_models(notebook: Notebook) -> None:
    engine = notebook.engine()
    engine.sync([ORDERS], functions=[HIDE], policies=[PII])
    assert not engine.drift()
    body = "CREATE OR REPLACE FUNCTION dev.silver.hide(v STRING) RETURNS STRING RETURN v"
    notebook.catalog.by_hand(body)
    assert [resource.resource for resource in engine.drift().resources] == ["function.dev.silver.hide"]


def test_drift_is_found_without_the_models(notebook: Notebook) -> None:
    engine = notebook.engine()
    assert not engine.drift()
    engine.sync([ORDERS])
    assert not engine.drift()
    notebook.catalog.by_hand("ALTER TABLE dev.silver.orders ADD COLUMNS (extra INT)")
    drift = engine.drift()
    ((_, finding),) = drift.report.findings()
    assert (finding.field, finding.changed and finding.changed.who) == ("column extra", "jo")
    assert engine.drift([ORDERS]).summary == drift.summary


def test_imported_models_need_no_change(notebook: Notebook) -> None:
    engine = notebook.engine()
    engine.sync([WIDER])
    models = notebook.engine().import_tables("dev.silver")
    assert [table.key for table in models.tables] == ["dev.silver.orders"]
    assert not engine.plan(models.tables, schemas=models.schemas)
    assert "tables:" in models.as_yaml()
    with pytest.raises(ConfigError, match=r"dev\.nothing has no Delta tables"):
        engine.import_tables("dev.nothing")


def test_a_catalog_is_imported_without_what_is_excluded(notebook: Notebook) -> None:
    engine = notebook.engine()
    engine.sync([ORDERS, Table("dev", "silver", "tmp_orders", [Column("id", "int")])])
    models = engine.import_tables("dev", exclude=["tmp_*"])
    assert [table.key for table in models.tables] == ["dev.silver.orders"]
    assert any("tmp_orders" in note for note in models.notes)
    assert not engine.plan(models.tables, schemas=models.schemas).actions.align_tables


@pytest.mark.parametrize("per", ["table", "schema"])
def test_models_are_imported_into_a_folder_and_continue(notebook: Notebook, per: str) -> None:
    engine, folder = notebook.engine(), notebook.folder / "found"
    other = Table("dev", "silver", "lines", [Column("id", "int")])
    engine.sync([ORDERS, other])
    written = engine.import_to_folder("dev.silver", folder, per=per)
    assert (written.tables, written.declared, written.refusals) == (2, 0, ())
    names = ["silver.yml"] if per == "schema" else ["lines.yml", "orders.yml"]
    assert sorted(path.name for path in written.files) == names
    assert "$schema" not in written.files[0].read_text()
    assert str(written) == f"2 models written to {len(names)} file{'s' * (len(names) > 1)} in {folder}"
    again = engine.import_to_folder("dev.silver", folder, per=per)
    assert (again.files, again.tables, again.declared) == ((), 0, 2)
    assert "2 resources declared already" in str(again)
    assert all(note.startswith(("reading", "written")) for note in notebook.notes)


def test_models_of_a_project_are_imported_as_the_command_line_does(notebook: Notebook) -> None:
    conf_dir = notebook.folder / "conf"
    conf_dir.mkdir()
    (conf_dir / "dev.yml").write_text(
        "environment: dev\nbackend: {type: databricks}\nvariables: {catalog: dev}\n"
        "models: {yaml: ['conf/models/**/*.yml']}\nstate_backend: {type: local}\n"
    )
    notebook.engine().sync([WIDER])
    engine = notebook.engine_of_project()
    (file,) = engine.import_to_folder("dev", conf_dir / "models").files
    assert file == conf_dir / "models" / "silver" / "orders.yml"
    assert file.read_text().startswith("# yaml-language-server: $schema=../../schemas/model.json\n")
    assert "catalog: ${catalog}" in file.read_text()
    assert (conf_dir / "schemas" / "model.json").is_file()
    assert not engine.plan()


def test_the_markdown_of_a_plan_names_code_owners_from_any_folder(
    notebook: Notebook, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (
        (".git/HEAD", ""),
        ("CODEOWNERS", "models.yml @crm\n"),
        (
            "conf/dev.yml",
            "environment: dev\nbackend: {type: databricks}\nmodels: {yaml: [models.yml]}\n"
            "state_backend: {type: local}\n",
        ),
        (
            "models.yml",
            "tables: [{catalog: dev, schema: silver, name: a, columns: [{name: id, type: int}]}]\n",
        ),
    ):
        (notebook.folder / name).parent.mkdir(exist_ok=True)
        (notebook.folder / name).write_text(text)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert "- **Owners**: `@crm` (`dev.silver.a`)" in notebook.engine_of_project().plan().as_markdown()


def test_what_cannot_be_imported_into_a_folder_is_refused(notebook: Notebook) -> None:
    engine, folder = notebook.engine(), notebook.folder / "found"
    with pytest.raises(ConfigError, match=r"dev\.nothing has no Delta tables"):
        engine.import_to_folder("dev.nothing", folder)
    with pytest.raises(ConfigError, match="unknown kind of file 'tables'") as refused:
        engine.import_to_folder("dev.silver", folder, per="tables")
    assert refused.value.way_out == "Did you mean 'table'?"
    assert not folder.exists()
    engine.sync([ORDERS])
    (folder / "silver").mkdir(parents=True)
    (folder / "silver" / "orders.yml").write_text("tables: []\n")
    with pytest.raises(ConfigError, match="exists, and does not declare"):
        engine.import_to_folder("dev.silver", folder)


def test_an_undo_is_a_plan(notebook: Notebook) -> None:
    engine = notebook.engine()
    with pytest.raises(StateMismatchError):
        engine.undo()
    engine.sync([ORDERS])
    run = engine.sync([Table("dev", "silver", "orders", [ID], "Other", primary_key=["id"])]).run_id
    plan = engine.undo()
    assert plan.note.startswith(f"undoing run {run}")
    assert str(plan).startswith("note: undoing run")
    engine.apply(plan)
    assert notebook.catalog.tables["dev.silver.orders"].state.table_comment == "Orders"
    with pytest.raises(ConfigError, match="has nothing left to undo"):
        engine.undo(run)


def test_a_lock_that_another_run_holds_is_an_error(notebook: Notebook) -> None:
    engine = notebook.engine(state_backend={"type": "local", "lock": {"timeout_seconds": 0}})
    plan = engine.plan([ORDERS])
    project, environment = engine._opened(plan.given, plan.options)
    with environment.deployment.locked("sync", print), pytest.raises(LockHeld) as held:
        engine.apply(plan)
    assert project.models == (ORDERS,)
    assert held.value.holder is not None
    assert held.value.holder.operation == "sync"


def test_models_are_judged_as_the_command_line_judges_them(notebook: Notebook) -> None:
    engine = notebook.engine()
    with pytest.raises(InvalidModelError, match="it is declared twice") as refused:
        engine.plan([ORDERS, ORDERS])
    assert refused.value.table == "dev.silver.orders"
    bad = Table("dev", "silver", "bad", [Column("a", "int", default="nope(")], primary_key=["a"])
    with pytest.raises(InvalidModelError):
        engine.plan([bad])


@pytest.mark.parametrize("given", ["dev.silver.orders", ["dev.silver.orders"], [ID], [ORDERS, ID]])
def test_what_is_no_list_of_tables_is_refused_in_one_line(notebook: Notebook, given: object) -> None:
    with pytest.raises(TypeError, match=r"^tables takes a list of Table, but it contains (str|Column)$"):
        notebook.engine().plan(given)  # type: ignore[arg-type]  # what mypy would refuse


def test_one_table_is_a_list_of_one(notebook: Notebook) -> None:
    engine = notebook.engine()
    engine.sync(ORDERS)
    assert not engine.plan(ORDERS)
    assert not engine.drift(ORDERS)


def test_messages_name_arguments_of_calls(notebook: Notebook) -> None:
    engine = notebook.engine()
    engine.sync(WIDER)
    (refusal,) = engine.plan(ORDERS).refusals
    assert refusal.way_out == (
        'Declare them, or allow it: allow=["drop_column:dev.silver.orders"] for one call, '
        "policy.allow: [drop_column] for the environment."
    )
    assert not engine.plan(ORDERS, allow=["drop_column:dev.silver.orders"]).refusals
    with pytest.raises(ConfigError, match=r"^allow: "):
        engine.plan(ORDERS, allow=["drop_everything"])
    engine.sync(ORDERS, allow=["drop_column"])
    notebook.catalog.run("DROP TABLE dev.silver.orders")
    assert [refusal.way_out for refusal in engine.undo().refusals] == [
        "undo(skip_refused=True) undoes the others."
    ]


def test_an_engine_without_a_project_needs_tables(notebook: Notebook) -> None:
    for method in (notebook.engine().plan, notebook.engine().sync):
        with pytest.raises(ConfigError, match="no tables are given"):
            method()


def test_a_plan_of_another_environment_is_refused(notebook: Notebook, tmp_path: Path) -> None:
    plan = notebook.engine().plan([ORDERS])
    with pytest.raises(ConfigError, match="the plan is for the environment 'dev', not for 'local'"):
        Engine.local(tmp_path).apply(plan)


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ({"polcy": {}}, "Engine.local: unknown key 'polcy'. Did you mean 'policy'?"),
        ({"policy": {"allow": "drop_column"}}, "Engine.local: policy.allow: expected a list"),
        ({"models": {"yaml": ["x"]}}, "Engine.local does not accept models"),
        ({"extends": "x.yml"}, "Engine.local does not accept extends"),
        ({"environment": "../dev"}, "Engine.local: '../dev' is not a valid name of an environment"),
        ({"environment": ""}, "'' is not a valid name of an environment"),
        ({"variables": {"a": "${b}"}, "owns": ["${c}"]}, "unknown variable 'c'"),
        ({"backend": {"type": "databricks"}}, "backend databricks needs a state_backend"),
        ({"policy": 7}, "policy: expected a mapping"),
    ],
)
def test_a_configuration_is_checked_as_a_file_is(
    tmp_path: Path, configuration: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        Engine.local(tmp_path, **configuration)  # type: ignore[arg-type]  # `environment` is one of them
    assert message in str(refused.value)


def test_engines_say_what_they_are(tmp_path: Path) -> None:
    engine = Engine.local(tmp_path, environment="lab")
    assert repr(engine) == "<Engine lab: oss, tables by path>"
    assert engine.environment == "lab"
    assert list(tmp_path.iterdir()) == []


def test_a_missing_project_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown environment 'dev'"):
        Engine.from_conf("dev", conf_dir=tmp_path)


def test_the_project_around_the_current_folder_is_found(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    _project(notebook.folder, "comment: first")
    monkeypatch.chdir(notebook.folder)
    assert repr(Engine.from_conf("dev")) == "<Engine dev: databricks>"


def _project(folder: Path, further: str) -> Path:
    """Write a project with one table; return the file of its model."""
    models = folder / "conf" / "models" / "tables.yml"
    models.parent.mkdir(parents=True)
    (folder / "conf" / "dev.yml").write_text(CONFIG)
    models.write_text(
        "tables:\n  - {catalog: dev, schema: silver, name: orders, "
        f"columns: [{{name: id, type: bigint, nullable: false}}], {further}}}\n"
    )
    return models
