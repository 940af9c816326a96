"""Plans the way back from a run: a sync to what was declared before it, with RESTORE where statements lose values.

Which changes need RESTORE is known when they are made (`actions.reversal_of`); whether it is safe is judged here, for
each table (`former_tables`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from delta_engine.actions.policy import matches_any
from delta_engine.backends.capabilities import Capabilities, Feature
from delta_engine.deployment.document import DeploymentState, records_of
from delta_engine.deployment.errors import StateMismatchError
from delta_engine.drift.observation import Observation
from delta_engine.drift.planned_run import PlannedRun, Undo
from delta_engine.errors import ConfigError, RefusedError, UnsafePlanError
from delta_engine.models import (
    QualifiedName,
    Securable,
    SecurableName,
    Table,
    View,
    ViewName,
    of_kind,
    subject,
)
from delta_engine.orchestrate.former_tables import FormerTable
from delta_engine.orchestrate.judging import judged
from delta_engine.orchestrate.observing import observe, read_undeclared, with_statuses
from delta_engine.orchestrate.past_runs import PastRun, find_run
from delta_engine.orchestrate.planning import draft_sync
from delta_engine.orchestrate.runs import Environment
from delta_engine.ownership.recorded import AnyRecord, LastChange, is_of_table
from delta_engine.ownership.recorded_models import with_recorded_grants
from delta_engine.plan_files.document import Options
from delta_engine.report.refusals import refusal_messages
from delta_engine.sql.tables import sql_undrop_table
from delta_engine.sql.text import sql_name
from delta_engine.state.table_queries import Commit
from delta_engine.telemetry.context import command, spoken


def undo_of(planned: PlannedRun) -> Undo:
    """Return what the plan of an undo brings back."""
    assert planned.intent.undo is not None
    return planned.intent.undo


def undo_note(planned: PlannedRun) -> str:
    """Return which run the plan of an undo undoes, and what becomes of the models."""
    past = undo_of(planned).title
    if not planned.plan and not planned.refusals:
        return (
            f"nothing to undo of {past}: the tables have what was declared before it. "
            f"{command('history')} lists earlier runs, and `undo RUN` undoes one"
        )
    return f"undoing {past}. The models stay as they are, and the next sync applies them"


def plan_undo(environment: Environment, state: DeploymentState | None, options: Options) -> PlannedRun:
    """Return the plan that brings back what was declared before a run, with the verdict of rules and rows.

    Raises:
        StateMismatchError, CatalogReadError, RefusalGroup: as `draft_undo` does.
    """
    return judged(environment, draft_undo(environment, state, options))


def draft_undo(environment: Environment, state: DeploymentState | None, options: Options) -> PlannedRun:
    """Return the plan that brings back what was declared before a run; rules and rows have not judged it yet.

    Args:
        state: the document with the journals of killed runs.
        options: which run to undo, the last one by default, and of which tables, functions and policies; and whether
            to leave out those that cannot be undone, instead of refusing.

    Raises:
        StateMismatchError: the run does not exist, or the state before it is no longer kept.
        CatalogReadError, RefusalGroup: tables cannot be read.
    """
    past = _past_run(environment, state, options.undoes)
    changes = _left_changes(past, records_of(state), options)
    capabilities = environment.planner.capabilities
    refused = [refusal for change in changes for refusal in change.refusals(capabilities)]
    created = tuple(
        change.created
        for change in changes
        if change.created is not None and not change.why_not_dropped(capabilities)
    )
    others = tuple(change.other for change in changes if change.other is not None)
    former = _with_histories(environment, [table for table in map(_former, changes) if table is not None])
    basis = _observed(environment, state, [*(table.baseline for table in former), *others], created)
    problems = {
        table.name: table.problem(basis.observed.table(table.baseline.qualified_name)) for table in former
    }
    refused += (_refusal(name, problem) for name, problem in problems.items() if problem)
    able = [
        table.without_gone_parts(basis.observed.table(table.baseline.qualified_name))
        for table in former
        if not problems[table.name]
    ]
    undo = _undo_to(past, able, others, created)
    notes = [f"left out: {message}" for message in refusal_messages(refused)] if options.skips_refused else []
    basis = replace(basis, models=undo.models, warnings=(*basis.warnings, *notes))
    draft = draft_sync(environment, basis, undo)
    if not options.skips_refused:
        draft = replace(draft, refusals=(*refused, *draft.refusals))
    return draft


def _observed(
    environment: Environment,
    state: DeploymentState | None,
    former: Sequence[Securable],
    created: Sequence[Securable],
) -> Observation:
    """Observe what an undo brings back, and what it drops because the undone run created it."""
    besides = [model for model in created if not isinstance(model, Table)]
    basis = with_statuses(observe(environment, former, state, is_partial=True, besides=besides))
    states, warnings = read_undeclared(
        environment, with_recorded_grants(of_kind(Table, created), records_of(state))
    )
    observed = basis.observed.with_tables(states) if states else basis.observed
    return replace(basis, observed=observed, warnings=(*basis.warnings, *warnings))


def _undo_to(
    past: PastRun,
    tables: Sequence[FormerTable],
    others: Sequence[Securable],
    created: tuple[Securable, ...],
) -> Undo:
    """Return what brings back tables and others as they were declared before a run."""
    restores = {table.model.qualified_name: table.restore for table in tables if table.restore is not None}
    restored = {table.model.key for table in tables if table.restore is not None or table.is_restored}
    return Undo(
        run=past.run,
        title=str(past),
        models=(*(table.model for table in tables), *others),
        baselines=(*(table.baseline for table in tables), *others),
        former={table.model.key: table.before for table in tables},
        restores=restores,
        restored=frozenset(restored),
        returns=tuple(table.model.qualified_name for table in tables if table.is_returned),
        created=created,
    )


def _covers(options: Options, name: SecurableName) -> bool:
    """Whether a securable is asked for; globs select no schemas."""
    return not options.tables or (name.is_selectable and matches_any(name, options.tables))


def _past_run(environment: Environment, state: DeploymentState | None, run: str | None) -> PastRun:
    """Return the run to undo. An undo that did not finish is continued, not undone."""
    repository = environment.deployment.repository
    past = find_run(repository, state, run)
    if run is None and past.unfinished_undo is not None:
        with suppress(StateMismatchError):  # that run was killed, too: the same document was before both
            return find_run(repository, state, past.unfinished_undo)
    return past


def _left_changes(past: PastRun, current: Mapping[str, AnyRecord], options: Options) -> list[_RunChange]:
    """Return the changes to undo; raise `ConfigError` if there are none."""
    changes = [
        change for change in _changes(past, current) if _covers(options, change.name) and not change.is_undone
    ]
    if not changes:
        matching = f" that matches {', '.join(options.tables)}" if options.tables else ""
        raise ConfigError(f"run {past.run} has nothing left to undo{matching}")
    return changes


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunChange:
    """What a run did to a securable.

    Args:
        before: its record before the run; None if there was none.
        after: the record that the run left; None if the run removed it.
        now: its present record; None if it is gone.
    """

    name: SecurableName
    run: str
    before: AnyRecord | None
    after: AnyRecord | None
    now: AnyRecord | None

    @property
    def later(self) -> LastChange | None:
        """The last change of it."""
        return self.now.change if self.now else None

    @property
    def is_last(self) -> bool:
        """Whether no run has changed it since, or only an undo that did not finish."""
        return self.later is not None and self.run in (self.later.run, self.later.undoes)

    @property
    def is_undone(self) -> bool:
        """Whether a run has undone it. What the run created is gone then."""
        is_of_undo = self.later is not None and self.later.undoes == self.run
        is_done = self.now is not None and not self.now.is_half_done and self.created is None
        return is_of_undo and is_done

    @property
    def other(self) -> Securable | None:
        """The schema, function, policy or view as it was declared, also if the run has dropped it."""
        is_gone = self.after is None and self.now is None
        before = self.before.declared if self.before is not None and (self.is_last or is_gone) else None
        if (
            isinstance(before, View)
            and isinstance(self.name, ViewName)
            and before.qualified_name != self.name
        ):
            return replace(before, renamed_from=(self.name.name,))
        return None if isinstance(before, Table) else before

    @property
    def created(self) -> Securable | None:
        """What the run created; created schemas stay."""
        after = self.after
        if not self.is_last or _is_applied(self.before) or after is None or after.name.is_container:
            return None
        return after.last_model if after.change is not None and after.change.is_new else None

    def why_not_dropped(self, capabilities: Capabilities) -> str | None:
        """Return why the platform does not drop the table that the run created; None if it does."""
        is_table = isinstance(self.created, Table)
        return capabilities.refusal(Feature.TABLE_REMOVAL, self.name.catalog) if is_table else None

    def refusals(self, capabilities: Capabilities) -> Iterator[RefusedError]:
        """Yield why it cannot be undone, as far as the records tell."""
        if self.after is None and self.other is not None:
            return
        if self.after is None and isinstance(self.name, QualifiedName):
            undrop = sql_undrop_table(sql_name(self.name))
            way_out = (
                f"{undrop} brings it back, by default for seven days."
                if capabilities.undrops_tables
                else "The platform does not bring it back. Declare it again, sync, and load its rows."
            )
            yield _refusal(self.name, "the run dropped it, or its record was removed", way_out)
        elif not self.is_last:
            yield _changed_since(self.name, self.later.run if self.later else None)
        elif not (_is_applied(self.before) or self.created or self.name.is_container):
            yield _unknown_before(self.name)
        elif why := self.why_not_dropped(capabilities):
            reason = f"the run created it, and the backend {capabilities.name} drops no tables: {why}"
            yield _refusal(self.name, reason)


def _unknown_before(name: SecurableName) -> RefusedError:
    if isinstance(name, ViewName):  # that an older engine may have renamed
        reason = "no run had recorded it under this name before"
        return _refusal(name, reason, "If the run renamed it, rename it back in its model, and sync.")
    return _refusal(name, "no run had recorded it before, and what it was is not known")


def _changed_since(name: SecurableName, run: str | None) -> RefusedError:
    if run is None:
        lists = command("state versions")
        return _refusal(
            name, "a later run has changed it since", f"Undo that run first: {lists} lists the runs."
        )
    undo = spoken(command(f"undo {run}"), f"undo({run!r})")
    return _refusal(name, f"run {run} has changed it since", f"Undo that run first: {undo}.")


def _changes(past: PastRun, current: Mapping[str, AnyRecord]) -> Iterator[_RunChange]:
    """Yield what the run did to each securable, sorted by key; `current` has the present records."""
    for key, after in sorted(past.changed.items()):
        now, before = current.get(key), past.record_before(key)
        if now is None and before is not None:  # an undo that did not finish gave back the former name
            now = current.get(before.key)
        yield _RunChange(name=after.name, run=past.run, before=before, after=after, now=now)
    for removed in past.removed.values():
        yield _RunChange(name=removed.name, run=past.run, before=removed, after=None, now=None)


def _former(change: _RunChange) -> FormerTable | None:
    """Return a table that was recorded before the run, and was not changed since."""
    before, after, name = change.before, change.after, change.name
    if not (change.is_last and is_of_table(before) and is_of_table(after)) or after.change is None:
        return None
    if before.declared is None or before.baseline is None or not isinstance(name, QualifiedName):
        return None
    former_names = (name.table,) if before.declared.key != name.key else ()
    return FormerTable(
        name=name,
        before=before,
        after=after,
        change=after.change,
        model=replace(before.declared, renamed_from=former_names),
        baseline=replace(before.baseline, renamed_from=former_names),
        begun_at=change.later.version if change.later and change.later.undoes == change.run else None,
    )


def _with_histories(environment: Environment, tables: Iterable[FormerTable]) -> list[FormerTable]:
    tables = list(tables)
    needed = (table for table in tables if table.needs_history)
    names = dict.fromkeys(name for table in needed for name in (table.name, table.model.qualified_name))
    histories: Mapping[str, Sequence[Commit]] = {}
    if environment.history is not None and names:
        histories = environment.history.read_commits([*names])
    return [
        table.with_commits(histories.get(table.name.key, histories.get(table.model.key))) for table in tables
    ]


def _is_applied(record: AnyRecord | None) -> bool:
    return record is not None and record.applied is not None


def _refusal(name: SecurableName, reason: str, way_out: str = "") -> RefusedError:
    others = f"{spoken(command('undo --skip-refused'), 'undo(skip_refused=True)')} undoes the others."
    return UnsafePlanError(reason, **subject(name), way_out=way_out or others)
