"""Drift policy: kinds of drift, their severities, and ignored drift. `config` reads it, `drift` applies it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timezone
from enum import Enum, unique
from typing import Final

from delta_engine.actions.policy import matches_any, matches_glob
from delta_engine.errors import SourceLocation
from delta_engine.models import PolicyName, SecurableName


@unique
class Severity(Enum):
    """Severity of a finding."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """The position: a higher one is more severe."""
        return list(Severity).index(self)


@unique
class DriftKind(Enum):
    """A change made outside the engine, with its default severity."""

    default_severity: Severity

    def __new__(cls, value: str, default_severity: Severity) -> DriftKind:
        """Make a member whose `value` is the text alone."""
        kind = object.__new__(cls)
        kind._value_ = value
        kind.default_severity = default_severity
        return kind

    TABLE_DELETED = ("table_deleted", Severity.HIGH)
    TABLE_REPLACED = ("table_replaced", Severity.HIGH)
    TABLE_UNREADABLE = ("table_unreadable", Severity.HIGH)
    COLUMN_DROPPED = ("column_dropped", Severity.HIGH)
    COLUMN_RENAMED = ("column_renamed", Severity.HIGH)
    COLUMN_TYPE = ("column_type", Severity.HIGH)
    COLUMN_ADDED = ("column_added", Severity.MEDIUM)
    COLUMN_NULLABILITY = ("column_nullability", Severity.MEDIUM)
    COLUMN_DEFAULT = ("column_default", Severity.MEDIUM)
    COLUMN_GENERATION = ("column_generation", Severity.HIGH)
    PRIMARY_KEY = ("primary_key", Severity.MEDIUM)
    FOREIGN_KEY = ("foreign_key", Severity.MEDIUM)
    CHECK = ("check", Severity.MEDIUM)
    CLUSTERING = ("clustering", Severity.MEDIUM)
    PARTITIONING = ("partitioning", Severity.HIGH)
    LOCATION = ("location", Severity.HIGH)
    PROPERTY = ("property", Severity.MEDIUM)
    TABLE_FEATURE = ("table_feature", Severity.MEDIUM)
    COLUMN_ORDER = ("column_order", Severity.LOW)
    COLUMN_COMMENT = ("column_comment", Severity.LOW)
    TABLE_COMMENT = ("table_comment", Severity.LOW)
    ROW_FILTER = ("row_filter", Severity.HIGH)
    COLUMN_MASK = ("column_mask", Severity.HIGH)
    GRANT = ("grant", Severity.HIGH)
    GRANT_ADDED = ("grant_added", Severity.MEDIUM)
    OWNER = ("owner", Severity.MEDIUM)
    TABLE_TAG = ("table_tag", Severity.MEDIUM)
    COLUMN_TAG = ("column_tag", Severity.MEDIUM)
    SCHEMA_DELETED = ("schema_deleted", Severity.HIGH)
    SCHEMA_COMMENT = ("schema_comment", Severity.LOW)
    SCHEMA_TAG = ("schema_tag", Severity.MEDIUM)
    SCHEMA_GRANT = ("schema_grant", Severity.HIGH)
    SCHEMA_GRANT_ADDED = ("schema_grant_added", Severity.MEDIUM)
    SCHEMA_OWNER = ("schema_owner", Severity.MEDIUM)
    FUNCTION_DELETED = ("function_deleted", Severity.HIGH)
    FUNCTION_BODY = ("function_body", Severity.HIGH)
    FUNCTION_SIGNATURE = ("function_signature", Severity.HIGH)
    FUNCTION_COMMENT = ("function_comment", Severity.LOW)
    FUNCTION_TAG = ("function_tag", Severity.MEDIUM)
    FUNCTION_GRANT = ("function_grant", Severity.HIGH)
    FUNCTION_GRANT_ADDED = ("function_grant_added", Severity.MEDIUM)
    FUNCTION_OWNER = ("function_owner", Severity.MEDIUM)
    POLICY_DELETED = ("policy_deleted", Severity.HIGH)
    POLICY_CHANGED = ("policy_changed", Severity.HIGH)
    POLICY_COMMENT = ("policy_comment", Severity.LOW)
    VIEW_DELETED = ("view_deleted", Severity.HIGH)
    VIEW_QUERY = ("view_query", Severity.HIGH)
    VIEW_MODE = ("view_mode", Severity.MEDIUM)
    VIEW_COMMENT = ("view_comment", Severity.LOW)
    VIEW_COLUMN_COMMENT = ("view_column_comment", Severity.LOW)
    VIEW_TAG = ("view_tag", Severity.MEDIUM)
    VIEW_COLUMN_TAG = ("view_column_tag", Severity.MEDIUM)
    VIEW_GRANT = ("view_grant", Severity.HIGH)
    VIEW_GRANT_ADDED = ("view_grant_added", Severity.MEDIUM)
    VIEW_OWNER = ("view_owner", Severity.MEDIUM)
    UNMANAGED = ("unmanaged", Severity.LOW)


DELETIONS: Final[Mapping[str, DriftKind]] = {
    "table": DriftKind.TABLE_DELETED,
    "schema": DriftKind.SCHEMA_DELETED,
    "function": DriftKind.FUNCTION_DELETED,
    "policy": DriftKind.POLICY_DELETED,
    "view": DriftKind.VIEW_DELETED,
}
"""The deletions by the kinds of securables. Deleted objects have no history, and the catalog keeps no trace of them."""


@unique
class DriftHandling(Enum):
    """How `sync` treats drift that it would undo."""

    REFUSE = "refuse"  # a hotfix is never undone silently
    REVERT = "revert"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeverityRule:
    """Overrides the default severity.

    Args:
        fields: globs for the kind or field of a finding.
        tables: globs for securables (`policy.matches_any`).
    """

    severity: Severity
    fields: tuple[str, ...] = ("*",)
    tables: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoreEntry:
    """Known drift that reports ignore until a date.

    Args:
        resource: a glob for the kind and key of a securable, such as `table.<catalog>.<schema>.<table>`, or for its
            name alone (`policy.matches_any`).
        fields: globs for the kind or field of a finding.
        expires: the last day, UTC; None for no end.
    """

    resource: str
    fields: tuple[str, ...]
    reason: str
    expires: date | None = None
    location: SourceLocation | None = None

    def is_expired(self, now: datetime) -> bool:
        """Whether the last day is over, at midnight UTC."""
        return self.expires is not None and now.astimezone(timezone.utc).date() > self.expires

    def matches(self, name: SecurableName, kind: DriftKind, field: str) -> bool:
        """Whether the entry covers a finding, expired or not."""
        resource = self.resource.lower()
        if isinstance(name, PolicyName) and resource.startswith(f"{name.scope.kind.value}."):
            return False  # the entry is about what the policy is on
        glob = resource.removeprefix(f"{name.kind}.")
        return matches_any(name, [glob]) and _matches_field(self.fields, kind, field)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftPolicy:
    """How an environment treats drift. The first matching rule of `severities` wins.

    Args:
        refused_from: the severity from which a sync refuses to undo drift, unless `handling` reverts all.
    """

    handling: DriftHandling = DriftHandling.REFUSE
    refused_from: Severity = Severity.HIGH
    severities: tuple[SeverityRule, ...] = ()
    ignores: tuple[IgnoreEntry, ...] = ()

    def refuses(self, severity: Severity, *, is_accepted: bool) -> bool:
        """Whether a sync refuses to undo drift; drift that was accepted waits for its model, whatever its severity."""
        is_protected = is_accepted or severity.rank >= self.refused_from.rank
        return self.handling is DriftHandling.REFUSE and is_protected

    def severity(self, name: SecurableName, kind: DriftKind, field: str) -> Severity:
        """Return the severity of a finding."""
        for rule in self.severities:
            if matches_any(name, rule.tables) and _matches_field(rule.fields, kind, field):
                return rule.severity
        return kind.default_severity


NO_DRIFT_POLICY = DriftPolicy()
"""The default."""


def _matches_field(globs: Iterable[str], kind: DriftKind, field: str) -> bool:
    return any(matches_glob(name, glob) for glob in globs for name in (kind.value, field))
