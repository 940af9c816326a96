"""The report of a run as data, the source of its JSON and the published schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final

from delta_engine.actions import Align, CreateTable, Keep, SecurableChange
from delta_engine.actions.policy import Consent
from delta_engine.deployment.run_facts import RunFacts
from delta_engine.drift.drifted_resources import UndoneDrift
from delta_engine.drift.planned_run import PlannedRun
from delta_engine.execute.failure_texts import shortened
from delta_engine.execute.outcomes import (
    AnyOutcome,
    OutcomeKind,
    RunStatement,
    of_schemas,
    of_tables,
)
from delta_engine.models import QualifiedName, resource_id, resource_key
from delta_engine.models.open_struct import Moment
from delta_engine.report.change_tree import change_lines
from delta_engine.report.plan_text import adopted_lines
from delta_engine.report.planned_actions import PlannedAction, planned_action, planned_actions
from delta_engine.telemetry.logs import redacted
from delta_engine.telemetry.visible import counted, counted_resources, plural, visible

FORMAT: Final = "delta-engine/run-report"
VERSION: Final = 1


class RunStatus(Enum):
    """How a run ended."""

    UNCHANGED = "unchanged"
    DONE = "done"
    PARTIAL = "partial"
    FAILED = "failed"
    STOPPED = "stopped"
    UNSAVED = "unsaved"


class TableStatus(Enum):
    """The result of a securable."""

    CREATED = "created"
    CHANGED = "changed"
    DROPPED = "dropped"
    FAILED = "failed"
    SKIPPED = "skipped"
    STOPPED = "stopped"
    NOT_STARTED = "not_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunError:
    """Why a table is not done.

    Args:
        message: in the platform's words, or the engine's.
        error_class: the platform's error condition; None if it gave none.
        sql: the statement; None if none was sent, as for a table that depends on one that failed.
        statements_done: how many statements of the table had run before.
    """

    message: str
    error_class: str | None = None
    sql: str | None = None
    statements_done: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRun:
    """The result of one table of the plan.

    Args:
        table: its name, catalog.schema.table.
        status: failed: a statement was refused. skipped: it depends on a table that failed. stopped: the run ended
            between its statements. not_started: the run ended before its first.
        seconds: the time of its statements.
        is_verified: whether it was read again and matched its model.
        actions: the planned actions, in a line each.
        planned: the planned actions as data, as `plan --json` has them; a new or dropped table has one.
        statements: the statements that were sent, in order.
        error: why it is not done; None if it is.
    """

    table: str
    status: TableStatus
    seconds: float
    is_verified: bool = False
    actions: tuple[str, ...] = ()
    planned: tuple[PlannedAction, ...] = ()
    statements: tuple[RunStatement, ...] = ()
    error: RunError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRun:
    """The result of one schema of the plan.

    Args:
        schema: its name, catalog.schema.
        status: created, changed, failed, stopped (between its statements) or not_started.
        seconds: the time of its statements.
        planned: the planned actions as data; a new schema has one.
        statements: the statements that were sent, in order.
        error: why it is not done; None if it is.
    """

    schema: str
    status: TableStatus
    seconds: float = 0.0
    planned: tuple[PlannedAction, ...] = ()
    statements: tuple[RunStatement, ...] = ()
    error: RunError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRun:
    """The result of one function, policy or view of the plan.

    Args:
        resource: its key in the deployment state, such as `function.dev.governance.mask_email`.
        status: as of a table.
        seconds: the time of its statements.
        is_verified: as of a table.
        planned: the planned actions as data; a new or dropped one has one.
        statements: the statements that were sent, in order.
        error: why it is not done; None if it is.
    """

    resource: str
    status: TableStatus
    seconds: float = 0.0
    is_verified: bool = False
    planned: tuple[PlannedAction, ...] = ()
    statements: tuple[RunStatement, ...] = ()
    error: RunError | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunReport:
    """What one run did.

    Args:
        run_id: the run's id; the deployment state that it saved carries it as its write_id.
        operation: what was run, such as `sync`.
        environment: the environment's name.
        status: unchanged: nothing had to be done. partial: some tables failed. failed: nothing was applied.
            stopped: the user ended it. unsaved: everything was applied, but not recorded.
        started_at: when it had the lock, UTC.
        ended_at: when everything was recorded, UTC.
        seconds: between those moments.
        run_by: the principal that ran it.
        run_url: the page of the run; empty if there is none.
        lineage: the deployed commit, `git:…`, or `unknown`.
        engine_version: of this engine.
        platform_version: of the platform that it deployed to.
        counts: tables by status; statements, retries, verified; schemas that were created, changed or failed;
            functions, policies and views, if there are any.
        schemas: every schema of the plan, sorted by name.
        tables: every table of the plan, sorted by name.
        others: every function, policy and view of the plan, sorted by key.
        warnings: what the user should know.
        unsaved: why the deployment state could not be saved; empty if it was.
        unverified: why nothing is verified that was read again; empty if something is, or nothing was read again.
        adopted: the tables that existed and that this run recorded first. No undo of the run can bring back what they
            were before it.
        consents: the entries of `conf/consents.yml` that allowed changes, with their reasons.
        left_out: what was left out to keep the report short; empty for nothing.
        format: always the same.
        version: of the format; fields may be added without a new one.
    """

    run_id: str
    operation: str
    environment: str
    status: RunStatus
    started_at: Moment
    ended_at: Moment
    seconds: float
    run_by: str
    run_url: str
    lineage: str
    engine_version: str
    platform_version: str
    counts: Mapping[str, int]
    schemas: tuple[SchemaRun, ...] = ()
    tables: tuple[TableRun, ...] = ()
    others: tuple[ResourceRun, ...] = ()
    warnings: tuple[str, ...] = ()
    unsaved: str = ""
    unverified: str = ""
    adopted: tuple[str, ...] = ()
    consents: tuple[str, ...] = ()
    left_out: str = ""
    format: str = field(default=FORMAT)
    version: int = field(default=VERSION)

    @property
    def summary(self) -> str:
        """One line with the counts."""
        adopted = f"; {counted(len(self.adopted), 'table')} adopted" if self.adopted else ""
        if self.status is RunStatus.UNCHANGED:
            return f"no changes{adopted}"
        resources = counted_resources(key.partition(".")[0] for key, _ in self.resources)
        return f"{resources}, {counted(self.counts['statements'], 'statement')}{self._verified}{adopted}"

    @property
    def _verified(self) -> str:
        """How many resources a second read verified; empty if the run changed none that is read again."""
        if self.unverified:
            return f"; not verified: {self.unverified}"
        number = self.counts["verified"]
        return f"; {number} verified" if number or self.counts["created"] or self.counts["changed"] else ""

    @property
    def resources(self) -> Sequence[tuple[str, SchemaRun | ResourceRun | TableRun]]:
        """The results of everything in the plan, with names as declared after the kind."""
        return (
            *((f"schema.{run.schema}", run) for run in self.schemas),
            *((run.resource, run) for run in self.others),
            *((f"table.{run.table}", run) for run in self.tables),
        )

    @property
    def labelled_runs(self) -> Iterator[tuple[str, SchemaRun | ResourceRun | TableRun]]:
        """The results of everything in the plan, with the names that users see, as `labelled` returns them."""
        for key, run in self.resources:
            kind, _, name = key.partition(".")
            yield (name if kind == "table" else f"{kind} {name}"), run

    def __str__(self) -> str:
        return "\n".join(map(visible, self._lines()))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from delta_engine.report.notebook_html import RunRow, run_html

        return run_html(
            self.summary,
            environment=self.environment,
            operation=self.operation,
            status=self.status.value,
            rows=[
                RunRow(
                    run.status.value,
                    name,
                    len(run.statements),
                    run.seconds,
                    run.error.message if run.error else None,
                )
                for key, run in self.resources
                for name in [key.removeprefix("schema.").removeprefix("table.")]
            ],
            notes=filter(None, (*self.warnings, self.unsaved, self.unverified)),
        )

    def _lines(self) -> Iterator[str]:
        for name, run in self.labelled_runs:
            yield _described(run, name)
        yield f"{self.environment}: {self.operation} {self.status.value}: {self.summary}"
        yield from adopted_lines(self.adopted, verb="adopted")
        yield from (f"allowed: {consent}" for consent in self.consents)
        yield from (f"warning: {warning}" for warning in (*self.warnings, self.unsaved) if warning)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """The facts of a run that are known when it ends, with the meanings of `RunReport`."""

    at: Moment
    warnings: Sequence[str] = ()
    is_stopped: bool = False
    unsaved: str = ""
    unverified: str = ""
    adopted: Sequence[QualifiedName] = ()
    consents: Sequence[Consent] = ()


def run_report(
    planned: PlannedRun,
    outcomes: Sequence[AnyOutcome],
    end: RunEnd,
    *,
    run_id: str,
    operation: str,
    facts: RunFacts,
    started_at: datetime,
) -> RunReport:
    """Return the report of a run; `outcomes` covers each schema and table of the plan."""
    plan = planned.plan
    changes = {resource_key(change.name): change for change in plan.changes}

    def facts_of(outcome: AnyOutcome) -> dict[str, Any]:
        return {
            "status": _status_of(outcome),
            "seconds": round(sum(run.seconds for run in outcome.runs), 3),
            "planned": _planned(changes[resource_key(outcome.name)], planned.undone),
            "statements": outcome.runs,
            "error": _error(outcome),
        }

    tables = tuple(
        TableRun(
            table=str(outcome.name),
            is_verified=outcome.is_verified,
            actions=_lines(changes[resource_key(outcome.name)]),
            **facts_of(outcome),
        )
        for outcome in of_tables(outcomes)
    )
    schema_runs = tuple(
        SchemaRun(schema=str(outcome.name), **facts_of(outcome)) for outcome in of_schemas(outcomes)
    )
    others = tuple(
        ResourceRun(
            resource=f"{outcome.name.kind}.{resource_id(outcome.name)}",
            is_verified=outcome.is_verified,
            **facts_of(outcome),
        )
        for outcome in outcomes
        if outcome.name.kind not in ("schema", "table")
    )
    return RunReport(
        run_id=run_id,
        operation=operation,
        environment=facts.environment.name,
        status=_status(outcomes, end),
        started_at=started_at,
        ended_at=end.at,
        seconds=round((end.at - started_at).total_seconds(), 3),
        run_by=facts.who,
        run_url=facts.run_url,
        lineage=facts.lineage,
        engine_version=facts.engine_version,
        platform_version=facts.platform_version,
        counts=_counts(
            tables,
            schema_runs,
            others,
            unchanged=len(planned.tables) - len(plan.create_tables) - len(plan.align_tables),
        ),
        schemas=schema_runs,
        tables=tables,
        others=others,
        warnings=tuple(map(redacted, end.warnings)),
        unsaved=redacted(end.unsaved),
        unverified=redacted(end.unverified),
        adopted=tuple(map(str, end.adopted)),
        consents=tuple(redacted(consent.note) for consent in end.consents),
    )


def _described(run: SchemaRun | ResourceRun | TableRun, name: str) -> str:
    word, count = run.status.value.replace("_", " "), counted(len(run.statements), "statement")
    return shortened(f"{word} {name} ({count})" + (f": {run.error.message}" if run.error else ""))


def _lines(action: SecurableChange) -> tuple[str, ...]:
    """Return the planned actions, a line each. The statement of a new table includes all its parts."""
    if isinstance(action, CreateTable) and action.adoption is not None:
        return (f"+ table over the files at {redacted(str(action.desired.location))}",)
    if isinstance(action, CreateTable):
        return (f"+ table with {counted(len(action.desired.columns), 'column')}",)
    return tuple(map(redacted, change_lines(action))) if isinstance(action, Align) else ()


def _planned(change: SecurableChange, undone: UndoneDrift) -> tuple[PlannedAction, ...]:
    """Return the planned actions as data, without secrets."""
    assert not isinstance(change, Keep)
    if isinstance(change, Align):
        return tuple(planned_actions(change.actions, resource_key(change.name), undone, redacted))
    return (planned_action(change),)


def _error(outcome: AnyOutcome) -> RunError | None:
    failure = outcome.failure
    if failure is None:
        return None
    return RunError(
        message=redacted(failure.message),
        error_class=failure.error_class,
        sql=redacted(failure.sql) or None,
        statements_done=outcome.statements,
    )


def _status_of(outcome: AnyOutcome) -> TableStatus:
    if outcome.kind is OutcomeKind.STOPPED and not outcome.statements:
        return TableStatus.NOT_STARTED
    if (
        outcome.name.kind != "schema"
        and outcome.kind is not OutcomeKind.STOPPED
        and outcome.failure is not None
    ):
        return TableStatus.FAILED if outcome.failure.sql else TableStatus.SKIPPED
    return TableStatus(outcome.kind.value)


def _status(outcomes: Sequence[AnyOutcome], end: RunEnd) -> RunStatus:
    kinds = {outcome.kind for outcome in outcomes}
    if end.is_stopped:
        return RunStatus.STOPPED
    if OutcomeKind.FAILED in kinds:
        was_applied = any(outcome.statements for outcome in outcomes)
        return RunStatus.PARTIAL if was_applied else RunStatus.FAILED
    if end.unsaved:
        return RunStatus.UNSAVED
    return RunStatus.DONE if outcomes else RunStatus.UNCHANGED


def _counts(
    tables: Sequence[TableRun],
    schemas: Sequence[SchemaRun],
    others: Sequence[ResourceRun],
    *,
    unchanged: int,
) -> Mapping[str, int]:
    counts = Counter(table.status for table in tables)
    kinds = Counter(run.resource.partition(".")[0] for run in others)
    resources: Sequence[SchemaRun | ResourceRun | TableRun] = (*schemas, *others, *tables)
    verifiable: Sequence[ResourceRun | TableRun] = (*others, *tables)
    statements = [statement for resource in resources for statement in resource.statements]
    return {
        **{status.value: counts[status] for status in TableStatus},
        "unchanged": unchanged,
        "statements": sum(statement.is_done for statement in statements),
        "retries": sum(statement.retries for statement in statements),
        "verified": sum(run.is_verified for run in verifiable),
        "schemas": len(schemas),
        **{plural(kind): number for kind, number in kinds.items()},
    }
