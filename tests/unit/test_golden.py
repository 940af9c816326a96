"""Every golden case: the plan, the exact SQL of every backend, and the refusals.

`pytest tests/unit/test_golden.py --rewrite-golden` writes what is found; read the diff before committing.
"""

import os
from pathlib import Path

import pytest

from delta_engine.actions import TablePlan
from delta_engine.aspects import TABLE_ASPECTS, VIEW_ASPECTS
from delta_engine.aspects.restores import RestoreTable
from delta_engine.aspects.storage import UnsetManaged
from delta_engine.backends.capabilities import Capabilities, on_runtime
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.report.json_documents import plan_document
from delta_engine.validation.validator import PlanValidator
from tests.builders.models import BACKENDS, OLDER_RUNTIME
from tests.cases.golden_cases import GoldenCase, golden_cases
from tests.fakes.planning import statements_of


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.folder.name)
def test_golden_case(case: GoldenCase, request: pytest.FixtureRequest) -> None:
    plan = case.plan()
    outputs = {"plan.json": plan_document(PlannedRun(plan=plan), environment="test") + "\n"}
    refusals = "".join(f"{refusal}\n" for refusal in PlanValidator(case.policy).plan_violations(plan))
    if refusals:
        outputs["refusal.txt"] = refusals
    for backend, capabilities in BACKENDS.items() if plan else ():
        if not case.suits(capabilities):
            continue  # refused before anything is planned, or nothing that could be observed there
        outputs[f"plan.{backend}.sql"] = _script(plan, capabilities)
    if plan and (script := _script(plan, on_runtime("16.2"))) != outputs["plan.databricks.sql"]:
        outputs[f"plan.{OLDER_RUNTIME}.sql"] = script
    if request.config.getoption("--rewrite-golden"):
        assert not os.environ.get("CI"), "golden files are never rewritten in CI"
        _rewrite(case.folder, outputs)
    assert outputs == {path.name: path.read_text("utf-8") for path in _outputs(case.folder)}


def test_every_action_type_has_a_golden_case() -> None:
    planned = {
        type(action).__name__
        for case in golden_cases()
        for align in case.plan().alignments
        if align.name.kind in ("table", "view")
        for action in align.actions
    }
    declared = {action.__name__ for aspect in (*TABLE_ASPECTS, *VIEW_ASPECTS) for action in aspect.actions}
    of_undos = {RestoreTable.__name__, UnsetManaged.__name__}
    assert planned == declared - of_undos  # no model asks for these: see test_undo.py


def _script(plan: TablePlan, capabilities: Capabilities) -> str:
    return "".join(f"{sql};\n" for sql in statements_of(plan, capabilities))


def _outputs(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.startswith(("plan.", "refusal."))]


def _rewrite(folder: Path, outputs: dict[str, str]) -> None:
    for path in _outputs(folder):
        path.unlink()
    for name, text in outputs.items():
        (folder / name).write_text(text, "utf-8")
