"""What is recorded of a securable, and the status that follows from it.

The status of a resource is derived from its record (`status_of`). Documents of the deployment state are decoded into
records and encoded from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, Generic, TypeAlias, TypeGuard, TypeVar

from delta_engine.aspects.comparison import Model_co
from delta_engine.models import QualifiedName, Securable, SecurableName, Table, former_names, resource_key
from delta_engine.models.open_struct import Count, Moment, OpenStruct
from delta_engine.state.table_queries import TableVersion


class Status(Enum):
    """The status of a resource."""

    HEALTHY = "healthy"  # as it was last applied
    DEGRADED = "degraded"  # applied in part
    FAILED = "failed"  # nothing of the last change was applied
    UNKNOWN = "unknown"  # not verified: its run was interrupted, or the catalog did not show it as applied
    MISSING = "missing"  # applied once, and does not exist any more
    DRIFTED = "drifted"  # changed outside the engine
    UNMANAGED = "unmanaged"  # exists in a managed schema and is in no model


HALF_DONE: Final = (Status.DEGRADED, Status.UNKNOWN)
"""Statuses of resources that a run of the engine left unfinished: the run's changes are not drift."""


class RecordedDifference(OpenStruct, frozen=True, kw_only=True):
    """A field in which a resource differs from what was applied; None on a side: it does not exist there."""

    field: str
    expected: str | None
    actual: str | None


class AcceptedDrift(RecordedDifference, frozen=True, kw_only=True):
    """Drift that was accepted and waits for its model; until a run sees model and catalog agree, it stays drift.

    Args:
        kind: the kind of drift.
        by: the principal that accepted it.
    """

    kind: str
    by: str
    at: Moment


class LastChange(OpenStruct, frozen=True, kw_only=True):
    """The run that last changed a resource, for its undo.

    Args:
        run: the run's id: the write_id of the document that it saved, unless it was killed.
        is_new: whether the run created the resource.
        needs_restore: whether the run lost or changed values, so that only RESTORE undoes it.
        version: Delta's version of the table before such a run; None if it is unknown.
        undoes: the run that it undoes; None for a sync or a revert.
        former: the name from which the run renamed a table or view; None if it did not.
        is_drop: whether the run was to drop the resource, until a later one records that it exists. Earlier engines did
            not record it.
    """

    run: str
    at: Moment
    is_new: bool = False
    needs_restore: bool = False
    version: Count | None = None
    undoes: str | None = None
    former: str | None = None
    is_drop: bool = False


class Kept(Generic[Model_co]):
    """A model that a record keeps. It is decoded when it is asked for: most commands ask for none.

    Args:
        definition: what a document has of it; None for a model that no document has had yet.
    """

    __slots__ = ("_model", "_read", "definition")

    def __init__(
        self,
        model: Model_co | None = None,
        definition: Any = None,
        read: Callable[[Any], Model_co] | None = None,
    ) -> None:
        self._model = model
        self._read = read
        self.definition = definition

    @property
    def model(self) -> Model_co:
        """The model."""
        if self._model is None:
            assert self._read is not None
            self._model = self._read(self.definition)
        return self._model

    def __eq__(self, other: object) -> bool:
        """Whether documents have the same of both."""
        if not isinstance(other, Kept):
            return NotImplemented
        if self.definition is not None and other.definition is not None:
            return bool(self.definition == other.definition)
        return bool(self.model == other.model)

    __hash__ = None  # type: ignore[assignment]  # equal ones may have no definition in common to hash

    def __repr__(self) -> str:
        return f"Kept({self.model!r})"


@dataclass(frozen=True, slots=True)
class Failure:
    """How a run left a securable that it did not finish, or could not verify.

    Args:
        status: what it means for the resource, unless the catalog shows drift besides.
    """

    status: Status
    reason: str | None = None


_NOTHING_UNKNOWN: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Recorded(Generic[Model_co]):
    """What is recorded of a securable.

    Args:
        applied: the model that the engine applied last; None if no run finished. Only an apply replaces it.
        whole: that model with the unmanaged parts that the catalog had, right after the apply or when the table was
            adopted; None if it had none.
        attempts: the models of later runs that did not finish. The catalog may have parts of them.
        failure: how a run left it that did not finish; None once the catalog showed it as it was applied.
        is_missing: whether the catalog did not show it when it was last compared.
        drift: how it differed from its baseline when it was last compared.
        explained: how it differed then by what an unfinished run did, or by what the catalog showed late.
        warning: for tables that no model declares.
        accepted: the drift that was accepted and waits for its model.
        lag: how the catalog differed right after the apply, or may still come to differ; no drift for an hour.
        change: the run that last changed it; None if no run did, or one of an older engine.
        full_ownership: the undeclared parts that the policy removed at the last apply, `tags` or `grants`: only among
            these is an additional one drift. None if unknown.
        column_order: the columns in the table's order after the apply, empty if it is the model's; None if unknown.
        delta_table_id: Delta's id of the table then; another id is another table of that name.
        delta_version: the table's version after the apply; later ones are data or external changes.
        created_at: when the catalog says that the table was created, which distinguishes it from another of that name.
        adopted_at: when a run first recorded the table, which existed already; None for one that a run created, or that
            an older engine recorded.
        deployed_at: when it was last applied; None if it never was.
        deployed_by: the principal that applied it.
        config_checksum: of the applied model; None without one.
        schema_checksum: of names, types and NOT NULL as applied.
        actual_checksum: of the same as observed, where they differ.
        dependencies: the keys of the resources that it needs.
        unknown: what a document of a newer engine has besides, by the part of the record.
    """

    name: SecurableName
    _: KW_ONLY
    applied: Kept[Model_co] | None = None
    whole: Kept[Model_co] | None = None
    attempts: tuple[Kept[Model_co], ...] = ()
    failure: Failure | None = None
    is_missing: bool = False
    drift: tuple[RecordedDifference, ...] = ()
    explained: tuple[RecordedDifference, ...] = ()
    warning: str | None = None
    accepted: tuple[AcceptedDrift, ...] = ()
    lag: tuple[RecordedDifference, ...] = ()
    change: LastChange | None = None
    full_ownership: tuple[str, ...] | None = None
    column_order: tuple[str, ...] | None = None
    delta_table_id: str | None = None
    delta_version: int | None = None
    created_at: datetime | None = None
    adopted_at: datetime | None = None
    deployed_at: datetime | None = None
    deployed_by: str | None = None
    config_checksum: str | None = None
    schema_checksum: str | None = None
    actual_checksum: str | None = None
    dependencies: tuple[str, ...] = ()
    unknown: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: _NOTHING_UNKNOWN)

    @classmethod
    def of(
        cls,
        declared: _Model | None = None,
        *,
        baseline: _Model | None = None,
        attempted: Iterable[_Model] = (),
    ) -> Recorded[_Model]:
        """Return the record of models alone."""
        attempts = tuple(Kept(model) for model in attempted)
        models = [model for model in (declared, *(kept.model for kept in attempts)) if model is not None]
        return Recorded(
            models[0].qualified_name,
            applied=Kept(declared) if declared is not None else None,
            whole=Kept(baseline) if baseline is not None else None,
            attempts=attempts,
        )

    @property
    def key(self) -> str:
        """The key of the resource."""
        return resource_key(self.name)

    @property
    def kind(self) -> str:
        """The word of its kind, such as `table`."""
        return self.name.kind

    @property
    def declared(self) -> Model_co | None:
        """The model that the engine applied last; None if no run finished."""
        return self.applied.model if self.applied is not None else None

    @property
    def with_unmanaged_parts(self) -> Model_co | None:
        """The applied model with what the catalog had besides; None if it had nothing."""
        return self.whole.model if self.whole is not None else None

    @property
    def baseline(self) -> Model_co | None:
        """The table or schema as the last apply left it."""
        kept = self.whole or self.applied
        return kept.model if kept is not None else None

    @property
    def attempted(self) -> tuple[Model_co, ...]:
        """The models of later runs that did not finish."""
        return tuple(kept.model for kept in self.attempts)

    @property
    def ours(self) -> tuple[Model_co, ...]:
        """The applied and attempted models. The engine may remove their parts."""
        return tuple(kept.model for kept in (self.applied, *self.attempts) if kept is not None)

    @property
    def last_model(self) -> Model_co | None:
        """The model that was applied last; if no run finished, the one that was attempted last."""
        kept = self.applied or next(reversed(self.attempts), None)
        return kept.model if kept is not None else None

    @property
    def is_begun_creation(self) -> bool:
        """Whether a run was creating it that did not finish."""
        return self.applied is None and self.change is not None and self.change.is_new

    @property
    def is_begun_drop(self) -> bool:
        """Whether a run was dropping it, and its end is unknown: its last change says so, or nothing was attempted."""
        change = self.change
        if change is None or change.is_new or (self.attempts and not change.is_drop):
            return False
        return self.status in HALF_DONE and self.deployed_at is not None and not self.is_change_applied

    @property
    def is_begun_change(self) -> bool:
        """Whether an unfinished run was changing what is not recorded under this name, as an undo of a rename does."""
        return self.applied is None and bool(self.attempts) and not self.is_begun_creation

    @property
    def status(self) -> Status:
        """Its status, as the last run left or saw it."""
        return status_of(self)

    @property
    def reason(self) -> str | None:
        """Why the status is what it is."""
        if self.is_missing:
            return not_shown(self.kind)
        return self.failure.reason if self.failure is not None else None

    @property
    def differences(self) -> tuple[RecordedDifference, ...]:
        """How it differed when it was last compared."""
        return self.drift or self.explained

    @property
    def version(self) -> TableVersion | None:
        """Delta's version of the table after the apply."""
        if self.delta_version is None:
            return None
        return TableVersion(table_id=self.delta_table_id, version=self.delta_version)

    @property
    def is_half_done(self) -> bool:
        """Whether a run left it unfinished. An apply is finished if all that the catalog did not show yet is late."""
        if self.attempts or self.status not in HALF_DONE:
            return bool(self.attempts)
        is_late = bool(self.explained) and {*self.explained} <= {*self.lag}
        return not (is_late and self.is_change_applied)

    @property
    def is_change_applied(self) -> bool:
        """Whether its last change was applied: no run has begun another one since."""
        return self.deployed_at is not None and (self.change is None or self.change.at <= self.deployed_at)

    @property
    def run(self) -> str | None:
        """The id of the run that last changed it."""
        return self.change.run if self.change is not None else None

    @property
    def former_key(self) -> str | None:
        """The key of the name from which its last change renamed it; None if that did not, or is not known to."""
        former = self.change.former if self.change is not None else None
        return f"{self.kind}.{former.lower()}" if former is not None else None

    def mapped(self, change: Callable[[Any], Any]) -> Recorded[Model_co]:
        """Return the record with each of its models changed."""
        return replace(
            self,
            applied=self.applied and Kept(change(self.applied.model)),
            whole=self.whole and Kept(change(self.whole.model)),
            attempts=tuple(Kept(change(kept.model)) for kept in self.attempts),
        )

    def attempting(self, models: Iterable[Any]) -> Recorded[Model_co]:
        """Return the record with further attempts."""
        return replace(self, attempts=(*self.attempts, *map(Kept, models)))


_Model = TypeVar("_Model", bound=Securable)


def not_shown(kind: object) -> str:
    """Return the reason of a securable that is missing."""
    return f"the catalog does not show the {kind}"


def status_of(record: AnyRecord) -> Status:
    """Return the status that a record shows."""
    if record.is_missing:
        return Status.MISSING
    if record.drift:
        return Status.DRIFTED
    if record.failure is not None:
        return record.failure.status
    if record.warning is not None:
        return Status.UNMANAGED
    return Status.UNKNOWN if record.explained else Status.HEALTHY


AnyRecord: TypeAlias = Recorded[Securable]
"""The record of a securable."""


def is_of_table(record: AnyRecord | None) -> TypeGuard[Recorded[Table]]:
    """Whether it is the record of a table."""
    return record is not None and isinstance(record.name, QualifiedName)


def table_record(records: Mapping[str, AnyRecord], name: QualifiedName) -> Recorded[Table] | None:
    """Return the record of a table, if there is one."""
    record = records.get(resource_key(name))
    return record if is_of_table(record) else None


def undeclared(
    records: Mapping[str, Recorded[_Model]], models: Iterable[Securable]
) -> Iterator[Recorded[_Model]]:
    """Yield the records of what no model declares or renames; `records` are by resource key."""
    declared = {
        resource_key(name) for model in models for name in (model.qualified_name, *former_names(model))
    }
    return (record for key, record in records.items() if key not in declared)


def recorded_former(model: Securable, records: Mapping[str, AnyRecord]) -> SecurableName | None:
    """Return the first former name of a model that is recorded; `records` are by resource key."""
    return next((former for former in former_names(model) if resource_key(former) in records), None)


def is_unrecorded(record: AnyRecord | None) -> bool:
    """Whether no record says what an existing table was: the next apply adopts it."""
    if record is None:
        return True
    return record.applied is None and not record.is_begun_creation
