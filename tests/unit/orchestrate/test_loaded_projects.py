"""What loading a project judges, so that no later step has to judge it again."""

from pathlib import Path

import pytest

from delta_engine.errors import InvalidModelError
from delta_engine.orchestrate.project import load_project
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
