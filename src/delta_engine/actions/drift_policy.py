"""The drift policy of a target: kinds of drift, their severities, and what is ignored until when. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timezone
from enum import Enum, unique

from delta_engine.actions.policy import matches_any, matches_glob
from delta_engine.errors import SourceLocation
from delta_engine.models import QualifiedName, SchemaName


@unique
class Severity(Enum):
    """The severity of a finding."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """Its place: a higher one is worse."""
        return list(Severity).index(self)


@unique
class DriftKind(Enum):
    """The kind of a change made outside the engine."""

    TABLE_DELETED = "table_deleted"
    TABLE_REPLACED = "table_replaced"
    TABLE_UNREADABLE = "table_unreadable"
    COLUMN_DROPPED = "column_dropped"
    COLUMN_RENAMED = "column_renamed"
    COLUMN_TYPE = "column_type"
    COLUMN_ADDED = "column_added"
    COLUMN_NULLABILITY = "column_nullability"
    COLUMN_DEFAULT = "column_default"
    COLUMN_GENERATION = "column_generation"
    PRIMARY_KEY = "primary_key"
    FOREIGN_KEY = "foreign_key"
    CHECK = "check"
    CLUSTERING = "clustering"
    PARTITIONING = "partitioning"
    LOCATION = "location"
    PROPERTY = "property"
    TABLE_FEATURE = "table_feature"
    COLUMN_ORDER = "column_order"
    COLUMN_COMMENT = "column_comment"
    TABLE_COMMENT = "table_comment"
    ROW_FILTER = "row_filter"
    COLUMN_MASK = "column_mask"
    GRANT = "grant"
    GRANT_ADDED = "grant_added"
    OWNER = "owner"
    TABLE_TAG = "table_tag"
    COLUMN_TAG = "column_tag"
    SCHEMA_DELETED = "schema_deleted"
    SCHEMA_COMMENT = "schema_comment"
    SCHEMA_TAG = "schema_tag"
    SCHEMA_GRANT = "schema_grant"
    SCHEMA_GRANT_ADDED = "schema_grant_added"
    SCHEMA_OWNER = "schema_owner"
    UNMANAGED = "unmanaged"


_DEFAULT_SEVERITIES = {
    DriftKind.TABLE_DELETED: Severity.HIGH,
    DriftKind.TABLE_REPLACED: Severity.HIGH,
    DriftKind.TABLE_UNREADABLE: Severity.HIGH,
    DriftKind.COLUMN_DROPPED: Severity.HIGH,
    DriftKind.COLUMN_RENAMED: Severity.HIGH,
    DriftKind.COLUMN_TYPE: Severity.HIGH,
    DriftKind.COLUMN_ADDED: Severity.MEDIUM,
    DriftKind.COLUMN_NULLABILITY: Severity.MEDIUM,
    DriftKind.COLUMN_DEFAULT: Severity.MEDIUM,
    DriftKind.COLUMN_GENERATION: Severity.HIGH,
    DriftKind.PRIMARY_KEY: Severity.MEDIUM,
    DriftKind.FOREIGN_KEY: Severity.MEDIUM,
    DriftKind.CHECK: Severity.MEDIUM,
    DriftKind.CLUSTERING: Severity.MEDIUM,
    DriftKind.PARTITIONING: Severity.HIGH,
    DriftKind.LOCATION: Severity.HIGH,
    DriftKind.PROPERTY: Severity.MEDIUM,
    DriftKind.TABLE_FEATURE: Severity.MEDIUM,
    DriftKind.COLUMN_ORDER: Severity.LOW,
    DriftKind.COLUMN_COMMENT: Severity.LOW,
    DriftKind.TABLE_COMMENT: Severity.LOW,
    DriftKind.ROW_FILTER: Severity.HIGH,
    DriftKind.COLUMN_MASK: Severity.HIGH,
    DriftKind.GRANT: Severity.HIGH,
    DriftKind.GRANT_ADDED: Severity.MEDIUM,
    DriftKind.OWNER: Severity.MEDIUM,
    DriftKind.TABLE_TAG: Severity.MEDIUM,
    DriftKind.COLUMN_TAG: Severity.MEDIUM,
    DriftKind.SCHEMA_DELETED: Severity.HIGH,
    DriftKind.SCHEMA_COMMENT: Severity.LOW,
    DriftKind.SCHEMA_TAG: Severity.MEDIUM,
    DriftKind.SCHEMA_GRANT: Severity.HIGH,
    DriftKind.SCHEMA_GRANT_ADDED: Severity.MEDIUM,
    DriftKind.SCHEMA_OWNER: Severity.MEDIUM,
    DriftKind.UNMANAGED: Severity.LOW,
}


@unique
class DriftHandling(Enum):
    """What `sync` does about drift that it would revert."""

    REFUSE = "refuse"  # no hotfix is reverted silently
    REVERT = "revert"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeverityRule:
    """Another severity than the usual one.

    Args:
        severity: which.
        fields: globs; a finding's kind or field has to match one.
        tables: globs; a table, or a schema, has to match one (`policy.matches_any`).
    """

    severity: Severity
    fields: tuple[str, ...] = ("*",)
    tables: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoreEntry:
    """Drift that is known and accepted for a while.

    Args:
        resource: a glob; matches `table.<catalog>.<schema>.<table>` or `schema.<catalog>.<schema>`, or the name alone
            (`policy.matches_any`).
        fields: globs; a finding's kind or field has to match one.
        reason: why; the report shows it.
        expires: the last day on which it holds, UTC; None for one that stays.
        location: where it was written.
    """

    resource: str
    fields: tuple[str, ...]
    reason: str
    expires: date | None = None
    location: SourceLocation | None = None

    def is_expired(self, now: datetime) -> bool:
        """Whether its last day is over: at midnight UTC, wherever the reader sits."""
        return self.expires is not None and now.astimezone(timezone.utc).date() > self.expires

    def matches(self, name: QualifiedName | SchemaName, kind: DriftKind, field: str) -> bool:
        """Whether it is about this finding, expired or not."""
        resource_type = "schema" if isinstance(name, SchemaName) else "table"
        glob = self.resource.lower().removeprefix(f"{resource_type}.")
        return matches_any(name, [glob]) and _matches_field(self.fields, kind, field)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftPolicy:
    """How a target handles drift.

    Args:
        handling: what `sync` does about it.
        severities: other severities than the usual ones; the first that matches counts.
        ignores: what is ignored.
    """

    handling: DriftHandling = DriftHandling.REFUSE
    severities: tuple[SeverityRule, ...] = ()
    ignores: tuple[IgnoreEntry, ...] = ()

    def severity(self, name: QualifiedName | SchemaName, kind: DriftKind, field: str) -> Severity:
        """Return the severity of a finding."""
        for rule in self.severities:
            if matches_any(name, rule.tables) and _matches_field(rule.fields, kind, field):
                return rule.severity
        return _DEFAULT_SEVERITIES[kind]


NO_DRIFT_POLICY = DriftPolicy()
"""The default policy."""


def _matches_field(globs: Iterable[str], kind: DriftKind, field: str) -> bool:
    return any(matches_glob(name, glob) for glob in globs for name in (kind.value, field))
