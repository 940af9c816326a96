"""Engines that are broken on purpose: every invariant can fail, and the simulator finds each break by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from delta_engine.actions.policy import Ownership, Policy
from delta_engine.aspects import function_definition
from delta_engine.backends.sql_runner import Row
from delta_engine.config.whole_files import create_atomically
from delta_engine.deployment import journal, recorder
from delta_engine.deployment.document import DeploymentState
from delta_engine.deployment.locks.lease import Lease
from delta_engine.deployment.recorder import RunRecorder
from delta_engine.deployment.resources import with_new_name, without_resources
from delta_engine.deployment.stored import DocumentIdentity, StoredDocument
from delta_engine.deployment.stores.delta_row import DeltaRow, Value
from delta_engine.drift import synchronizing
from delta_engine.drift.drift_report import DriftReport
from delta_engine.models import QualifiedName, Table, resource_key
from delta_engine.orchestrate import (
    import_folder,
    importing,
    observing,
    orchestrator,
    recording,
    reviewed_plans,
)
from delta_engine.orchestrate.backend import Backend
from delta_engine.orchestrate.drift_reports import report_drift
from delta_engine.orchestrate.import_folder import FolderReport, import_to_folder
from delta_engine.ownership.recorded import Recorded, is_of_table
from tests.fakes.unity_catalog import FakeUnityCatalog
from tests.simulation import imports
from tests.simulation import world as simulated
from tests.simulation.ports import Documents
from tests.simulation.simulation import story_of
from tests.simulation.world import World

MOST_SEEDS = 5_000

Break = Callable[[pytest.MonkeyPatch], None]


def a_lease_that_is_never_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lease, "check", lambda _lease: None)


def a_lease_that_never_expires(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lease, "_silence", lambda _lease: 0.0)


def a_save_without_comparing(patch: pytest.MonkeyPatch) -> None:
    replace_document = Documents.replace

    def overwrite(
        store: Documents, data: bytes, identity: DocumentIdentity, _expected: StoredDocument | None
    ) -> StoredDocument:
        return replace_document(store, data, identity, store.read())

    patch.setattr(Documents, "replace", overwrite)


def a_head_that_is_moved_without_comparing(patch: pytest.MonkeyPatch) -> None:
    replace_row = DeltaRow.replace

    def overwrite(row: DeltaRow, values: Mapping[str, Value], expected: Mapping[str, Value] | None) -> None:
        replace_row(row, values, None if expected is None else {})

    patch.setattr(DeltaRow, "replace", overwrite)


def a_forgotten_grant(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        function_definition, "sql_grant", lambda *_: "GRANT EXECUTE ON FUNCTION dev.silver.twice TO no"
    )


def a_skipped_consent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Policy, "allows", lambda *_: True)


def a_forgotten_record(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RunRecorder, "save", lambda *_, **__: None)


def full_ownership(patch: pytest.MonkeyPatch) -> None:
    policy = World.policy
    patch.setattr(
        World, "policy", lambda *given: replace(policy(*given), tags=Ownership.FULL, grants=Ownership.FULL)
    )


def masks_that_are_set_later(patch: pytest.MonkeyPatch) -> None:
    run = FakeUnityCatalog.run

    def unmasked(catalog: FakeUnityCatalog, sql: str) -> Sequence[Row]:
        is_new = sql.startswith("CREATE TABLE") or " ADD COLUMNS " in sql
        return run(catalog, sql.replace(" MASK `dev`.`silver`.`hide`", "") if is_new else sql)

    patch.setattr(FakeUnityCatalog, "run", unmasked)


def a_traceback(patch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise KeyError("missing")

    patch.setattr(simulated, "report_drift", crash)


def journals_that_are_not_explained(patch: pytest.MonkeyPatch) -> None:
    replay = journal.replay

    def silent(*arguments: Any) -> tuple[DeploymentState, list[str]]:
        return replay(*arguments)[0], []

    patch.setattr(recorder, "replay", silent)


def plan_files_that_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(orchestrator, "earlier_apply", lambda *_: None)
    patch.setattr(reviewed_plans, "moves", lambda *_: ())


def comments_that_get_lost(patch: pytest.MonkeyPatch) -> None:
    run = FakeUnityCatalog.run

    def forgetful(catalog: FakeUnityCatalog, sql: str) -> Sequence[Row]:
        return () if sql.startswith("COMMENT ON TABLE") and catalog.user != "jo" else run(catalog, sql)

    patch.setattr(FakeUnityCatalog, "run", forgetful)


def a_second_look_that_compares_nothing(patch: pytest.MonkeyPatch) -> None:
    comments_that_get_lost(patch)
    patch.setattr(recording, "confirmed", lambda record, *_, **__: replace(record, failure=None))


def a_lag_that_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    confirmed = synchronizing.confirmed

    def unaware(*arguments: Any, **named: Any) -> Recorded[Table]:
        return replace(confirmed(*arguments, **named), failure=None, explained=(), lag=())

    patch.setattr(recording, "confirmed", unaware)


def views_that_are_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(observing, "_shown_late", lambda *_, **__: [])


def comments_on_another_table(patch: pytest.MonkeyPatch) -> None:
    run = FakeUnityCatalog.run

    def misdirected(catalog: FakeUnityCatalog, sql: str) -> Sequence[Row]:
        is_own = sql.startswith("COMMENT ON TABLE") and catalog.user != "jo"
        return run(catalog, sql.replace("`a`", "`c`") if is_own else sql)

    patch.setattr(FakeUnityCatalog, "run", misdirected)


def an_undo_that_does_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simulated, "undo", lambda *_: None)


def a_report_that_is_empty(patch: pytest.MonkeyPatch) -> None:
    def empty(*arguments: Any) -> DriftReport:
        return replace(report_drift(*arguments), drifted=(), deleted=())

    patch.setattr(simulated, "report_drift", empty)


def an_import_that_repairs(patch: pytest.MonkeyPatch) -> None:
    def repairing(backend: Backend, *arguments: Any) -> FolderReport:
        backend.runner.run("COMMENT ON TABLE `dev`.`silver`.`a` IS ''")
        return import_to_folder(backend, *arguments)

    patch.setattr(imports, "import_to_folder", repairing)


def an_import_that_drops_a_column(patch: pytest.MonkeyPatch) -> None:
    as_model = importing.as_model

    def shortened(*arguments: Any) -> Table:
        model = as_model(*arguments)
        return replace(model, columns=model.columns[:1])

    patch.setattr(importing, "as_model", shortened)


def files_that_are_written_in_two_steps(patch: pytest.MonkeyPatch) -> None:
    def write(path: Path, data: bytes) -> None:
        create_atomically(path, data[: len(data) // 2])
        path.write_bytes(data)

    patch.setattr(import_folder, "create_atomically", write)


def unfinished_files_that_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(import_folder, "remove_unfinished_files", lambda _folder: None)


def a_move_that_forgets(patch: pytest.MonkeyPatch) -> None:
    def forget(state: DeploymentState, old: QualifiedName, _new: QualifiedName) -> DeploymentState:
        return without_resources(state, [resource_key(old)])

    patch.setattr(simulated, "with_new_name", forget)


def a_move_that_forgets_what_was_applied(patch: pytest.MonkeyPatch) -> None:
    def move(*arguments: Any) -> DeploymentState:
        state = with_new_name(*arguments)
        records = filter(is_of_table, state.resources.values())
        bare = {resource_key(record.name): replace(record, applied=None) for record in records}
        return state.with_resources({**state.resources, **bare})

    patch.setattr(simulated, "with_new_name", move)


BREAKS: Mapping[str, Sequence[Break]] = {
    "OneRunChangesAtATime": [a_lease_that_is_never_checked, a_lease_that_never_expires],
    "NoSaveIsLost": [a_save_without_comparing, a_head_that_is_moved_without_comparing],
    "RunsAreRecorded": [a_forgotten_record],
    "RecordsWhatWas": [a_second_look_that_compares_nothing],
    "LossesHaveConsent": [a_skipped_consent],
    "OthersKeepTheirParts": [full_ownership],
    "GrantsSurviveReplacements": [a_forgotten_grant],
    "NewColumnsAreMasked": [masks_that_are_set_later],
    "EndsAsDocumented": [a_traceback],
    "KilledRunsAreExplained": [journals_that_are_not_explained],
    "FilesAreAppliedOnce": [plan_files_that_are_forgotten],
    "OwnChangesAreNoDrift": [a_lag_that_is_forgotten, views_that_are_believed],
    "TeamsKeepToTheirTables": [comments_on_another_table],
    "ImportsOnlyRead": [an_import_that_repairs],
    "ImportsAreWhole": [
        an_import_that_drops_a_column,
        files_that_are_written_in_two_steps,
        unfinished_files_that_stay,
    ],
    "MovesRename": [a_move_that_forgets, a_move_that_forgets_what_was_applied],
    "Converges": [comments_that_get_lost],
    "UndoBringsBack": [an_undo_that_does_nothing],
    "DriftIsReported": [a_report_that_is_empty],
}
"""What breaks each invariant."""

HINTS: Mapping[Break, int] = {
    a_lease_that_is_never_checked: 108,
    a_lease_that_never_expires: 108,
    a_save_without_comparing: 145,
    a_head_that_is_moved_without_comparing: 231,
    a_second_look_that_compares_nothing: 19,
    a_skipped_consent: 9,
    full_ownership: 19,
    a_forgotten_grant: 29,
    masks_that_are_set_later: 5,
    plan_files_that_are_forgotten: 66,
    a_lag_that_is_forgotten: 169,
    views_that_are_believed: 166,
    comments_on_another_table: 69,
    comments_that_get_lost: 18,
    an_undo_that_does_nothing: 9,
    a_report_that_is_empty: 4,
    an_import_that_repairs: 3,
    an_import_that_drops_a_column: 3,
    files_that_are_written_in_two_steps: 57,
    unfinished_files_that_stay: 134,
}
"""Numbers that find a break, to try first: a change of the drawing makes them useless, and nothing else."""


@pytest.mark.parametrize(
    ("invariant", "break_engine"),
    [(invariant, each) for invariant, breaks in BREAKS.items() for each in breaks],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_broken_engine_is_found(
    invariant: str, break_engine: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_engine(monkeypatch)
    for seed in (HINTS.get(break_engine, 0), *range(MOST_SEEDS)):
        finding = story_of(seed).finding
        if finding is not None and finding.invariant == invariant:
            return
    raise AssertionError(f"no story of {MOST_SEEDS} finds it")
