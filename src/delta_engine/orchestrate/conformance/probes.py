"""Probes of statements. A probe asks a question about the platform; its answer is a fact and never fails a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Final

from delta_engine.actions import CreateTable, TablePlan
from delta_engine.aspects.tags import UnsetColumnTags
from delta_engine.backends.capabilities import Feature
from delta_engine.backends.error_conditions import is_forbidden
from delta_engine.deployment.stores.delta_row import DeltaRow
from delta_engine.drift.attribution import is_understood
from delta_engine.errors import CatalogReadError, DeltaEngineError, StatementError
from delta_engine.models import Column, QualifiedName, Table
from delta_engine.models.record import records_of
from delta_engine.orchestrate.conformance.scene import UNITY_CATALOG, Answer, Probe, Scene
from delta_engine.orchestrate.conformance.scratch_tables import ID, scratch_table
from delta_engine.report.conformance_report import ErrorForm, Holds
from delta_engine.sql.text import quote_ident
from delta_engine.state.states import CatalogState, state_of
from delta_engine.state.table_queries import Commit


def _forbidden(scene: Scene) -> Answer:
    """Create and update what no principal may change: the views of the catalog itself."""
    model = replace(scratch_table(scene.place, "forbidden"), schema_name="information_schema")
    view = f"{quote_ident(scene.place.catalog)}.information_schema.tables"
    refusals = {
        "CREATE TABLE": _attempted_create(scene, model),
        "UPDATE": scene.attempt(f"UPDATE {view} SET comment = '' WHERE 1 = 0"),
    }
    has_conditions = all(one is not None and one.condition for one in refusals.values())
    holds = Holds.YES if has_conditions else Holds.NO
    return holds, [f"{kind} in information_schema: {_described(one)}" for kind, one in refusals.items()]


def _missing_catalog(scene: Scene) -> Answer:
    model = replace(scratch_table(scene.place, "forbidden"), catalog_name=scene.place.missing_catalog)
    holds = Holds.NO
    try:
        scene.backend.reader.snapshot([model])
        finding = "the reader takes it for a catalog without schemas"
    except CatalogReadError as refusal:
        holds, finding = Holds.YES, str(refusal)
    except DeltaEngineError as error:
        finding = f"the reader does not know the refusal: {error}"
    created = f"CREATE TABLE: {_described(_attempted_create(scene, model))}"
    return holds, [finding, created]


def _attempted_create(scene: Scene, model: Table) -> ErrorForm | None:
    (create,) = _statements(scene, TablePlan(create_tables=(CreateTable(model),)))
    refusal = scene.attempt(create)
    if refusal is None:
        scene.created.add(model.qualified_name)
    return refusal


def _statements(scene: Scene, plan: TablePlan) -> list[str]:
    """Return the statements of a plan without sending them."""
    return list(scene.action_runner.compile(plan).sql())


def _described(refusal: ErrorForm | None) -> str:
    if refusal is None:
        return "it was accepted"
    message = " ".join(refusal.message.split())
    return f"condition {refusal.condition or 'none'}, SQLSTATE {refusal.sql_state or 'none'}: {message}"


def _tagged_column(scene: Scene) -> Answer:
    tagged = Column("a", "int", tags={scene.place.tag: "1"})
    mapped = {"delta.columnMapping.mode": "name"}
    before = scratch_table(scene.place, "tagged", ID, tagged, table_properties=mapped)
    scene.create([before])
    after = replace(before, columns=(ID,))
    observed = CatalogState(tables={before.key: state_of(before)})
    (align,) = scene.planner.plan([after], observed, records_of([before])).align_tables
    actions = tuple(one for one in align.actions if not isinstance(one, UnsetColumnTags))
    statements = _statements(scene, TablePlan(align_tables=(replace(align, actions=actions),)))
    refusals = list(map(scene.attempt, statements))
    is_blocked = any(one is not None and _is_about_tags(one) for one in refusals)
    holds = Holds.YES if is_blocked else Holds.CANNOT_TELL if any(refusals) else Holds.NO
    return holds, [f"DROP COLUMN of a tagged column: {_described(one)}" for one in refusals]


def _is_about_tags(refusal: ErrorForm) -> bool:
    words = re.split(r"[._]", refusal.condition or "")
    return not {"TAG", "TAGS", "TAGGED"}.isdisjoint(words)


def _two_merges(scene: Scene) -> Answer:
    """Let two threads write the first row of a table at once, as two first runs of an environment would."""
    name = scene.place.qualified("merge")
    scene.created.add(name)
    row = DeltaRow(
        scene.backend.runner,
        scene.backend.addressing.table(name),
        "conformance",
        {"serial": int},
        "A scratch table of a conformance run",
        one_of_several="Drop the scratch table:",
        pause=scene.control.pause,
    )
    together = Barrier(2)

    def write(serial: int) -> DeltaEngineError | None:
        together.wait()
        try:
            row.replace({"serial": serial}, None)
        except DeltaEngineError as error:
            return error
        return None

    with ThreadPoolExecutor(2) as pool:
        errors = list(pool.map(write, (1, 2)))
    outcomes = ["written" if error is None else f"{type(error).__name__}: {error}" for error in errors]
    findings = [f"writer {number}: {outcome}" for number, outcome in enumerate(outcomes, start=1)]
    if all(map(_is_missing_right, errors)):
        return Holds.CANNOT_TELL, findings
    try:
        left = row.read()
    except DeltaEngineError as error:
        return Holds.NO, [*findings, f"read afterwards: {error}"]
    rows = "no row" if left is None else f"one row, serial {left['serial']}"
    is_one = errors.count(None) == 1 and left is not None
    return Holds.YES if is_one else Holds.NO, [*findings, f"read afterwards: {rows}"]


def _is_missing_right(error: DeltaEngineError | None) -> bool:
    cause = error.__cause__ if error is not None else None
    return isinstance(cause, StatementError) and is_forbidden(cause)


def _history(scene: Scene) -> Answer:
    changed = [
        QualifiedName.of_key(key)
        for one in scene.walked
        if len(one.steps) > 1
        for key, state in one.tables.items()
        if state.exists
    ]
    histories = scene.backend.history.read_commits(changed)
    versions = scene.backend.versions.read_versions(changed[:1], with_id={name.key for name in changed[:1]})
    findings = [
        f"{name.table}: {', '.join(map(_operation, reversed(histories[name.key])))}"
        if name.key in histories
        else f"{name.table}: its history cannot be read"
        for name in changed
    ]
    commits = [one for commits in histories.values() for one in commits]
    unknown = sorted({one.operation for one in commits if not is_understood(one)})
    findings += [f"not understood: {operation}" for operation in unknown]
    for key, version in versions.items():
        latest = next((one.version for one in histories.get(key, ())), None)
        findings.append(f"{key}: the version is {version.version}, the latest commit {latest}")
    is_whole = bool(histories) and len(histories) == len(changed)
    holds = Holds.NO if unknown else Holds.YES if is_whole else Holds.CANNOT_TELL
    return holds, findings


def _operation(commit: Commit) -> str:
    return f"{commit.operation} ({', '.join(sorted(_with_value(commit.parameters)))})"


def _with_value(parameters: Mapping[str, str]) -> list[str]:
    return [key for key, value in parameters.items() if value not in ("", "{}", "[]", "null")]


STATEMENT_PROBES: Final = (
    Probe(
        name="forbidden statements",
        question="How does the platform refuse a CREATE and an UPDATE that no principal may run?",
        assumption="A refusal carries an error condition.",
        ask=_forbidden,
        needs=UNITY_CATALOG,
    ),
    Probe(
        name="missing catalog",
        question="How does the platform refuse a query and a CREATE in a catalog that does not exist?",
        assumption="The reader knows the condition and refuses the catalog by name.",
        ask=_missing_catalog,
        needs=UNITY_CATALOG,
    ),
    Probe(
        name="tagged column",
        question="What does DROP COLUMN do while the column has a tag?",
        assumption="A tag can block the drop of its column, so the engine unsets it first.",
        ask=_tagged_column,
        needs=(Feature.TAGS,),
    ),
    Probe(
        name="two merges at once",
        question="Which of two concurrent MERGEs writes the first row of the deployment state?",
        assumption="Exactly one of them does.",
        ask=_two_merges,
    ),
    Probe(
        name="history",
        question="What does DESCRIBE HISTORY show after each kind of statement?",
        assumption="Drift reports understand every operation that a change of a table leaves in its history.",
        ask=_history,
    ),
)
