"""The data of this folder: what was recorded, what differs from it, and the findings for a report. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Generic, TypeAlias, TypeGuard

from delta_engine.actions import Action
from delta_engine.actions.drift_policy import DriftKind, DriftPolicy, IgnoreEntry, Severity
from delta_engine.actions.policy import AS_APPLIED, NeededConsent, Policy
from delta_engine.aspects import Difference
from delta_engine.aspects.aspect import Change
from delta_engine.aspects.column_order import MoveColumn
from delta_engine.aspects.comparison import Model_co, State_co
from delta_engine.aspects.renames import NO_RENAMES, Renames
from delta_engine.errors import RefusedError
from delta_engine.models import QualifiedName, Securable, SecurableName, Table, resource_key
from delta_engine.models.open_struct import Moment
from delta_engine.ownership.recorded import Recorded, RecordedDifference
from delta_engine.state.states import SecurableState, TableState
from delta_engine.telemetry.visible import shown_moment

NOT_DELTA: Final = "exists, but is not a readable Delta table"
"""The actual side of an unmanaged table that no import would take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """The author of a change; None for what the platform does not record.

    Args:
        who: the user or service principal.
        at: when, UTC.
        operation: Delta's name of the operation, such as `ADD COLUMNS`, or the audit log's, such as `deleteTable`.
        version: the version of the table that the change made.
        job: name or id of the job.
        notebook: id of the notebook.
    """

    who: str | None = None
    at: Moment | None = None
    operation: str | None = None
    version: int | None = None
    job: str | None = None
    notebook: str | None = None


def _by_and_at(who: str | None, at: datetime | None) -> str:
    return " ".join((*([f"by {who}"] if who else ()), *([f"at {shown_moment(at)}"] if at else ())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Who accepted drift that waits for its model, and when, UTC."""

    by: str
    at: Moment

    def __str__(self) -> str:
        return _by_and_at(self.by, self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """What rights tell of a missing table or schema.

    Args:
        may_be_hidden: whether it may exist, hidden from the principal, instead of being deleted.
        reason: the rights that would show it, or why they are not known to.
        lacking: the rights to ask for, such as `SELECT on schema dev.silver`, if it may be hidden.
    """

    may_be_hidden: bool
    reason: str
    lacking: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One difference from what was applied.

    Args:
        kind: the kind of change.
        field: what was changed, such as `column amount type` or `property delta.appendOnly`.
        expected: as it was applied last; None for what was not there.
        actual: as it is; None for what is gone.
        severity: from low to high.
        changed: the author and the time; None if unknown.
        last_written: where the author is unknown, the last principal to alter the securable: any write to a
            table counts, so it need not be the author.
        accepted: who accepted it; it waits for its model.
        absence: for a missing table or schema of a catalog that hides what a principal has no rights on.
    """

    kind: DriftKind
    field: str
    expected: str | None
    actual: str | None
    severity: Severity
    changed: Attribution | None = None
    last_written: Attribution | None = None
    accepted: Acceptance | None = None
    absence: Absence | None = None

    @property
    def author(self) -> str:
        """`by` and `at` of the change; empty if neither is known."""
        return _by_and_at(self.changed.who, self.changed.at) if self.changed else ""

    @property
    def may_be_hidden(self) -> bool:
        """Whether the securable may exist, hidden from the principal."""
        return self.absence is not None and self.absence.may_be_hidden


UndoneDrift: TypeAlias = Mapping[tuple[str, str], Finding]
"""The drift that a plan undoes, by resource key and `undone_field`."""

NO_UNDONE_DRIFT: Final[UndoneDrift] = MappingProxyType({})


def undone_by(resource: str, action: Action, change: Change, undone: UndoneDrift) -> Finding | None:
    """Return the drift that a change of a plan undoes."""
    return undone.get((resource, changed_field(action, change)))


def changed_field(action: Action | None, change: Change) -> str:
    """Return what a change of a plan changes, as drift names it: all moves of columns change their order."""
    return "column order" if isinstance(action, MoveColumn) else undone_field(change.subject)


def undone_field(field: str) -> str:
    """Return the field of drift without the name of a primary key: a table has one."""
    return "primary key" if field.startswith("primary key ") else field


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmanagedPart:
    """A difference that a sync keeps: a part that no model declares, or the order of columns, unless it is enforced.

    Args:
        resource: the table's key.
        key: the property, or another part, such as `check positive` or `column order`.
        value: the value, or the definition, in the table.
    """

    resource: str
    key: str
    value: str

    @property
    def table(self) -> str:
        """The table's name."""
        return self.resource.partition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifiedDrift:
    """A difference with its finding for the report, and the policy entry that ignores it, if any.

    Args:
        way_out: how to make an unreadable table readable.
    """

    difference: Difference
    finding: Finding
    ignored_by: IgnoreEntry | None = None
    way_out: str = ""


class DriftRefusal(RefusedError):
    """A plan would undo a change made outside the engine.

    `covers` has the changes to which consent would not help, because the drift is settled in another way.
    """

    topic = "severe-drift"
    covers: tuple[NeededConsent, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Generic[Model_co, State_co]):
    """A recorded table or schema next to what exists; as soon as drift is detected, with its drift.

    Args:
        record: what the deployment state has of it.
        model_name: its name in the models: another one than the recorded name while a rename of the table is pending.
        policy: decides which undeclared parts are drift.
        attempted: what unfinished runs attempted. What they left behind is not drift. An unfinished schema has no
            attempts.
        lag: how it may differ from what was applied, if that was lately: the catalog shows some changes late.
        renames: the later renames of columns and fields.
        changes: what differs from the baseline; empty if it does not exist.
        is_history_whole: whether the history of a table reaches back to the apply, so that renames are known.
        renamed_to: the present name of a missing table, if one of its schema has its Delta id.
        details: its drift.
    """

    record: Recorded[Model_co]
    model_name: SecurableName
    observed: State_co
    policy: Policy = AS_APPLIED
    attempted: tuple[Model_co, ...] = ()
    lag: tuple[RecordedDifference, ...] = ()
    renames: Renames = NO_RENAMES
    changes: tuple[Difference, ...] = ()
    is_history_whole: bool = False
    renamed_to: QualifiedName | None = None
    details: tuple[ClassifiedDrift, ...] = ()

    @property
    def name(self) -> SecurableName:
        """The recorded name, under which the securable exists."""
        return self.record.name

    @property
    def model_key(self) -> str:
        """The key of the model among those of all kinds."""
        return resource_key(self.model_name)

    @property
    def declared(self) -> Model_co:
        """The table or schema as it was applied last."""
        assert self.record.declared is not None
        return self.record.declared

    @property
    def baseline(self) -> Model_co:
        """The table or schema as the last apply left it."""
        return self.record.with_unmanaged_parts or self.declared

    @property
    def key(self) -> str:
        """The key in the deployment state."""
        return self.record.key

    @property
    def drift(self) -> tuple[ClassifiedDrift, ...]:
        """The drift that the policy does not ignore."""
        return tuple(detail for detail in self.details if detail.ignored_by is None)

    def renamed(self, model: Any) -> Any:
        """Return a recorded model with the present names of columns and fields."""
        return self.renames.applied_to(model) if self.renames else model

    def with_findings(self, change: Callable[[Finding], Finding]) -> Compared[Model_co, State_co]:
        """Return the resource with each of its findings changed."""
        details = (replace(detail, finding=change(detail.finding)) for detail in self.details)
        return replace(self, details=tuple(details))


ComparedTable: TypeAlias = Compared[Table, TableState]
ComparedResource: TypeAlias = Compared[Securable, SecurableState]


def drifted_tables(resources: Iterable[ComparedResource]) -> tuple[ComparedTable, ...]:
    """Return the drifted tables."""
    return tuple(filter(is_table, resources))


def is_table(drifted: ComparedResource) -> TypeGuard[ComparedTable]:
    """Whether the resource is a table."""
    return isinstance(drifted.name, QualifiedName)


def classified(
    policy: DriftPolicy,
    name: SecurableName,
    difference: Difference,
    changed: Attribution | None,
    now: datetime,
    *,
    written: Attribution | None = None,
    accepted: Acceptance | None = None,
) -> ClassifiedDrift:
    """Return drift as the policy at `now` classifies it; `written` is the last writer, for an unknown author."""
    kind, change = difference.kind, difference.change
    subject = change.subject
    entries = (
        entry for entry in policy.ignores if not entry.is_expired(now) and entry.matches(name, kind, subject)
    )
    finding = Finding(
        kind=kind,
        field=subject,
        expected=change.desired,
        actual=change.observed,
        severity=policy.severity(name, kind, subject),
        changed=changed,
        last_written=written if changed is None else None,
        accepted=accepted,
    )
    return ClassifiedDrift(difference=difference, finding=finding, ignored_by=next(entries, None))
