"""Probes of statements: how they are refused, what of two at once, and what the log of a table says of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Final

from delta_engine.actions import CreateTable, TablePlan
from delta_engine.aspects.column_tags import UnsetColumnTags
from delta_engine.backends.capabilities import Feature
from delta_engine.backends.error_conditions import is_forbidden
from delta_engine.deployment.stores.delta_row import DeltaRow
from delta_engine.drift.attribution import is_understood
from delta_engine.errors import CatalogReadError, DeltaEngineError, StatementError
from delta_engine.models import Column, QualifiedName, Table
from delta_engine.orchestrate.conformance.groups import ID, table
from delta_engine.orchestrate.conformance.probe import Answer, Probe, Scene, told
from delta_engine.report.conformance_report import ErrorForm, Holds
from delta_engine.sql import quote_ident
from delta_engine.state.states import CatalogState, state_of
from delta_engine.state.table_queries import Commit

_UNITY_CATALOG: Final = (Feature.SCHEMA_METADATA,)


def _forbidden(scene: Scene) -> Answer:
    """Create and update what no principal may touch: the views of the catalog itself."""
    model = replace(table(scene.place, "forbidden"), schema_name="information_schema")
    view = f"{quote_ident(scene.place.catalog)}.information_schema.tables"
    refusals = {
        "CREATE TABLE": _attempted_create(scene, model),
        "UPDATE": scene.attempt(f"UPDATE {view} SET comment = '' WHERE 1 = 0"),
    }
    known = [one for one in refusals.values() if one is not None and one.condition]
    return Answer(
        holds=Holds.YES if len(known) == len(refusals) else Holds.NO,
        findings=[f"{kind} in information_schema: {told(one)}" for kind, one in refusals.items()],
    )


def _missing_catalog(scene: Scene) -> Answer:
    """Read from a catalog that does not exist, and create a table in it."""
    model = replace(table(scene.place, "forbidden"), catalog_name=scene.place.missing_catalog)
    try:
        scene.backend.reader.snapshot([model])
    except CatalogReadError as refusal:
        holds, finding = Holds.YES, str(refusal)
    except DeltaEngineError as error:
        holds, finding = Holds.NO, f"the reader does not know the refusal: {error}"
    else:
        holds, finding = Holds.NO, "the reader takes it for a catalog without schemas"
    return Answer(holds=holds, findings=[finding, f"CREATE TABLE: {told(_attempted_create(scene, model))}"])


def _attempted_create(scene: Scene, model: Table) -> ErrorForm | None:
    """Create a table that cannot be; return the refusal, or None if there was none."""
    (create,) = scene.statements(TablePlan(create_tables=(CreateTable(model),)))
    refusal = scene.attempt(create)
    if refusal is None:
        scene.made.add(model.qualified_name)
    return refusal


def _tagged_column(scene: Scene) -> Answer:
    """Drop a column that has a tag, without unsetting the tag first."""
    tagged = Column("a", "int", tags={f"conformance_{scene.place.run_id}": "1"})
    mapped = {"delta.columnMapping.mode": "name"}
    before = table(scene.place, "tagged", ID, tagged, table_properties=mapped)
    scene.walk.make([before])
    after = replace(before, columns=(ID,))
    observed = CatalogState(tables={before.key: state_of(before)})
    plan = scene.walk.planner.plan([after], observed, {before.key: before})
    (align,) = plan.align_tables
    actions = tuple(one for one in align.actions if not isinstance(one, UnsetColumnTags))
    refusals = [scene.attempt(sql) for sql in scene.align_statements(replace(align, actions=actions))]
    is_blocked = any(one is not None and _is_about_tags(one) for one in refusals)
    return Answer(
        holds=Holds.YES if is_blocked else Holds.CANNOT_TELL if any(refusals) else Holds.NO,
        findings=[f"DROP COLUMN of a tagged column: {told(one)}" for one in refusals],
    )


def _is_about_tags(refusal: ErrorForm) -> bool:
    """Whether a condition names tags, as `INVALID_PARAMETER_VALUE.CANNOT_DROP_TAGGED_COLUMN` does."""
    words = re.split(r"[._]", refusal.condition or "")
    return not {"TAG", "TAGS", "TAGGED"}.isdisjoint(words)


def _two_merges(scene: Scene) -> Answer:
    """Let two threads write the first row of a table at once, as two first runs of an environment would."""
    name = scene.place.table("merge")
    scene.made.add(name)
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
    findings = [f"writer {number}: {_written(error)}" for number, error in enumerate(errors, start=1)]
    if all(map(_is_missing_right, errors)):
        return Answer(holds=Holds.CANNOT_TELL, findings=findings)
    try:
        left = row.read()
    except DeltaEngineError as error:
        return Answer(holds=Holds.NO, findings=[*findings, f"read afterwards: {error}"])
    rows = "no row" if left is None else f"one row, serial {left['serial']}"
    is_one = errors.count(None) == 1 and left is not None
    return Answer(holds=Holds.YES if is_one else Holds.NO, findings=[*findings, f"read afterwards: {rows}"])


def _written(error: DeltaEngineError | None) -> str:
    return "written" if error is None else f"{type(error).__name__}: {error}"


def _is_missing_right(error: DeltaEngineError | None) -> bool:
    cause = error.__cause__ if error is not None else None
    return isinstance(cause, StatementError) and is_forbidden(cause)


def _history(scene: Scene) -> Answer:
    """Read the log of every scratch table that changed."""
    changed = [
        QualifiedName.of_key(key)
        for one in scene.walked
        if len(one.steps) > 1
        for key, state in one.states.items()
        if state.exists
    ]
    histories = scene.backend.history.read_commits(changed)
    versions = scene.backend.versions.read_versions(changed[:1], with_id={name.key for name in changed[:1]})
    findings = [
        f"{name.table}: {', '.join(_operations(histories[name.key]))}"
        if name.key in histories
        else f"{name.table}: its history cannot be read"
        for name in changed
    ]
    strange = sorted(
        {one.operation for commits in histories.values() for one in commits if not is_understood(one)}
    )
    findings += [f"not understood: {operation}" for operation in strange]
    findings += [
        f"{key}: {_version(version.version, histories.get(key, ()))}" for key, version in versions.items()
    ]
    is_whole = bool(histories) and len(histories) == len(changed)
    holds = Holds.NO if strange else Holds.YES if is_whole else Holds.CANNOT_TELL
    return Answer(holds=holds, findings=findings)


def _operations(commits: Sequence[Commit]) -> list[str]:
    """Return what the commits of a table did, oldest first, each with the parameters that it has."""
    return [f"{one.operation} ({', '.join(sorted(_said(one.parameters)))})" for one in reversed(commits)]


def _said(parameters: Mapping[str, str]) -> list[str]:
    return [key for key, value in parameters.items() if value not in ("", "{}", "[]", "null")]


def _version(version: int, commits: Sequence[Commit]) -> str:
    latest = commits[0].version if commits else None
    return f"the version is {version}, the latest commit {latest}"


STATEMENT_PROBES: Final = (
    Probe(
        name="forbidden statements",
        question="Which form has the refusal of a CREATE and of an UPDATE that no principal may make?",
        assumption="A refusal carries an error condition.",
        ask=_forbidden,
        needs=_UNITY_CATALOG,
    ),
    Probe(
        name="missing catalog",
        question="How are a query and a CREATE refused whose catalog does not exist?",
        assumption="The reader knows the condition, and refuses the catalog by name.",
        ask=_missing_catalog,
        needs=_UNITY_CATALOG,
    ),
    Probe(
        name="tagged column",
        question="What becomes of DROP COLUMN while the column has a tag?",
        assumption="A tag can block the drop of its column, so the engine unsets it first.",
        ask=_tagged_column,
        needs=(Feature.TAGS,),
    ),
    Probe(
        name="two merges at once",
        question="Which of two MERGEs at once writes the first row of the deployment state?",
        assumption="Exactly one of them does.",
        ask=_two_merges,
    ),
    Probe(
        name="history",
        question="What does DESCRIBE HISTORY say after each kind of statement?",
        assumption="Drift reports understand every operation that a change of a table leaves behind.",
        ask=_history,
    ),
)
