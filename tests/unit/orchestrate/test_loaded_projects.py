"""What loading a project judges, so that no later step has to judge it again."""

from pathlib import Path

import pytest

from delta_engine.errors import InvalidCommandError, InvalidModelError
from delta_engine.models import Function, of_kind
from delta_engine.orchestrate.project import load_project
from tests.conftest import CONFIG
from tests.projects.commandline import CommandLine

RULE = """\
from pathlib import Path

class Noted:
    def check(self, models):
        with Path("judged.txt").open("a") as file:
            print(*(model.table_name for model in models), file=file)
        return ()
"""

KEYS = """\
tables:
  - {catalog: dev, schema: silver, name: parents, columns: [{name: id, type: int, nullable: false}], primary_key: [id]}
  - catalog: dev
    schema: silver
    name: children
    columns: [{name: id, type: int}]
    foreign_keys: [{columns: [id], references: parents}]
    checks: {fk_dev_silver_children__id__parents: id > 0}
"""


GOVERNED = """\
schemas:
  - {catalog: dev, name: silver}
tables:
  - {catalog: dev, schema: silver, name: orders, columns: [{name: id, type: int}]}
  - {catalog: dev, schema: gold, name: totals, columns: [{name: id, type: int}]}
functions:
  - {catalog: dev, schema: silver, name: orders, parameters: [{name: x, type: int}], returns: int, body: x}
  - {catalog: dev, schema: governance, name: mask, parameters: [{name: x, type: int}], returns: int, body: x}
policies:
  - name: mask_pii
    on: {schema: dev.silver}
    mask: {function: dev.governance.mask, column: id}
    match: {id: has_tag('pii')}
    to: [hr]
"""


@pytest.mark.parametrize(
    ("glob", "selected"),
    [
        ("dev.governance.*", ["dev.governance.mask"]),
        ("governance.mask", ["dev.governance.mask"]),
        ("mask_*", ["mask_pii on schema dev.silver"]),
        ("dev.silver.mask_pii", ["mask_pii on schema dev.silver"]),
        ("orders", ["dev.silver.orders", "dev.silver.orders"]),
        ("dev.silver.*", ["dev.silver.orders", "dev.silver.orders", "mask_pii on schema dev.silver"]),
        ("gold.*", ["dev.gold.totals"]),
    ],
)
def test_globs_select_tables_functions_and_policies_alike(
    governed: Path, glob: str, selected: list[str]
) -> None:
    project = load_project(governed / "conf", "local", tables=[glob])
    assert [str(model.qualified_name) for model in project.selectable] == selected
    assert project.is_partial
    assert project.synced == project.selectable


def test_globs_that_select_everything_leave_the_project_whole(governed: Path) -> None:
    project = load_project(governed / "conf", "local", tables=["*"])
    assert not project.is_partial
    assert len(of_kind(Function, project.models)) == 2


def test_a_glob_that_selects_nothing_is_refused_with_similar_names(governed: Path) -> None:
    with pytest.raises(InvalidCommandError, match="unknown table or function or policy 'mask_pi'"):
        load_project(governed / "conf", "local", tables=["orders", "mask_pi"])


@pytest.fixture
def governed(project: Path) -> Path:
    configuration = project / "conf" / "local.yml"
    configuration.write_text(
        f"{CONFIG.replace('type: oss', 'type: databricks')}state_backend: {{type: local}}\n"
    )
    (project / "conf" / "models" / "orders.yml").write_text(GOVERNED)
    return project


def test_a_plan_judges_its_models_once(project: Path, delta_engine: CommandLine) -> None:
    (project / "rules_that_note.py").write_text(RULE)
    configuration = project / "conf" / "local.yml"
    rules = "create_schemas: true, rules: [rules_that_note:Noted]"
    configuration.write_text(configuration.read_text().replace("create_schemas: true", rules))
    assert delta_engine("-e", "local", "plan").code == 0
    assert (project / "judged.txt").read_text() == "orders\n"


def test_a_check_may_not_have_the_name_of_a_derived_key(project: Path) -> None:
    (project / "conf" / "models" / "orders.yml").write_text(KEYS)
    with pytest.raises(InvalidModelError, match="'fk_dev_silver_children__id__parents' is used twice"):
        load_project(project / "conf", "local")
