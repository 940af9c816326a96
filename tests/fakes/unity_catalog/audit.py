"""The audit log of the fake catalog: who deleted, granted and tagged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone

from delta_engine.backends.sql_runner import Row
from tests.fakes.unity_catalog import statements
from tests.fakes.unity_catalog.statements import Path

_TAGS = (statements.SetTags, statements.UnsetTags)


@dataclass(frozen=True, slots=True)
class _Event:
    at: datetime
    user: str
    action: str
    name: str


class AuditLog:
    """The events of `system.access.audit`, at the times of the clock, as deployments are."""

    def __init__(self) -> None:
        self._events: list[_Event] = []

    def note(self, statement: statements.Statement, user: str) -> None:
        """Write down the events of a statement."""
        now = datetime.now(timezone.utc)
        self._events += (
            _Event(now, user, action, ".".join(path).lower()) for action, path in _events(statement)
        )

    def rows(self, sql: str) -> list[Row]:
        """Return the events whose action and name a query names, the latest first."""
        return [
            {
                "event_time": event.at,
                "who": event.user,
                "action_name": event.action,
                "full_name": event.name,
                "response": '{"status_code":200}',
            }
            for event in reversed(self._events)
            if f"'{event.action.lower()}'" in sql and f"'{event.name}'" in sql
        ]


def _events(statement: statements.Statement) -> Iterator[tuple[str, Path]]:
    match statement:
        case statements.DropTable(path) | statements.DropView(path):
            yield "deleteTable", path
        case statements.DropFunction(path):
            yield "deleteFunction", path
        case statements.DropSchema(path):
            yield "deleteSchema", path
        case statements.Grant(_, path) | statements.Revoke(_, path):
            yield "updatePermissions", path
        case (
            statements.AlterTable(path, change)
            | statements.AlterSchema(path, change)
            | statements.AlterView(path, change)
        ):
            if isinstance(change, _TAGS):
                yield "UpdateTagSecurableAssignments", path
            if isinstance(change, statements.AlterColumns) and isinstance(change.changes[0][1], _TAGS):
                yield "UpdateTagSubentityAssignments", path
