"""The policy of an environment: allowed destructive changes and ownership of undeclared parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, timezone
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final

from delta_engine.errors import SourceLocation
from delta_engine.models import SecurableName


class DestructiveKind(Enum):
    """Changes that lose or rewrite data, or lose protection, and therefore need consent."""

    DROP_COLUMN = "drop_column"
    DROP_TABLE = "drop_table"
    DROP_FUNCTION = "drop_function"
    DROP_POLICY = "drop_policy"  # exposes rows or values
    DROP_VIEW = "drop_view"
    REPLACE_VIEW = "replace_view"  # loses properties that others set
    DROP_ROW_FILTER = "drop_row_filter"  # exposes rows
    DROP_COLUMN_MASK = "drop_column_mask"  # exposes values
    CHANGE_PROTECTION = "change_protection"  # a function computes something else, or a policy may hide less
    DROP_CONSTRAINT = "drop_constraint"  # an unmanaged one
    BACKFILL_COLUMN = "backfill_column"  # writes values into existing rows
    REWRITE_TABLE = "rewrite_table"  # rewrites all rows
    PROTECTED_DATA = "protected_data"  # computes values under policies that are said to except the engine


@dataclass(frozen=True, slots=True)
class Allowance:
    """Consent to one kind of change on the tables that match a glob (see `matches_any`)."""

    kind: DestructiveKind
    tables: str = "*"

    @classmethod
    def parse(cls, text: str) -> Allowance:
        """Parse `drop_column` or `drop_column:dev.silver.*`; the ValueError of an unknown kind lists all kinds."""
        kind, _, tables = text.partition(":")
        kinds = {member.value: member for member in DestructiveKind}
        if kind.strip() not in kinds:
            raise ValueError(f"{kind.strip()!r} is not one of: {', '.join(kinds)}")
        return cls(kinds[kind.strip()], tables.strip() or "*")


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededConsent:
    """One change of a securable that needs consent.

    Args:
        part: a column's dotted path or a constraint's name, if it is about one.
    """

    kind: DestructiveKind
    securable: SecurableName
    part: str | None = None

    def __str__(self) -> str:
        return f"{self.kind.value} {'.'.join(filter(None, (str(self.securable), self.part)))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """Consent to one change of one securable until a date: an entry of `conf/consents.yml`.

    Args:
        part: a column's dotted path or a constraint's name; None for every change of the kind on it.
        expires: the last day, UTC.
        environments: the environments in which the entry holds.
    """

    kind: DestructiveKind
    securable: SecurableName
    part: str | None = None
    reason: str
    expires: date
    environments: tuple[str, ...]
    location: SourceLocation

    def is_expired(self, now: datetime) -> bool:
        """Whether the last day is over, at midnight UTC."""
        return now.astimezone(timezone.utc).date() > self.expires

    def covers(self, needed: NeededConsent) -> bool:
        """Whether the entry names a change, expired or not."""
        is_part = self.part is None or self.part.lower() == (needed.part or "").lower()
        ours, theirs = self.securable, needed.securable
        is_same = (ours.kind, ours.key) == (theirs.kind, theirs.key)
        return self.kind is needed.kind and is_same and is_part

    @property
    def note(self) -> str:
        """What the entry allows, why and until when, and where it stands."""
        return f"{self}: {self.reason} ({self.location}, until {self.expires})"

    @property
    def expiry_note(self) -> str:
        """What to say of the entry after its last day."""
        return f"the consent to {self} expired on {self.expires}"

    def __str__(self) -> str:
        return str(NeededConsent(kind=self.kind, securable=self.securable, part=self.part))


_SUGGESTED_DAYS: Final = 30


def last_day(now: datetime) -> date:
    """Return the last day of a consent that the engine suggests."""
    return now.astimezone(timezone.utc).date() + timedelta(days=_SUGGESTED_DAYS)


class Ownership(Enum):
    """Ownership of parts that no model declares: tags, privileges, definitions."""

    ADDITIVE = "additive"  # kept, unless the engine applied them
    FULL = "full"  # removed


class ColumnOrder(Enum):
    """How to treat a column order that differs from the model's."""

    REPORT = "report"
    ENFORCE = "enforce"


class Removed(Enum):
    """How to treat an applied securable that is no longer declared."""

    KEEP = "keep"
    DROP = "drop"  # needs consent: `drop_table`, `drop_function`, `drop_policy`, `drop_view`


_REMOVAL_SETTINGS: Final = {
    "table": "removed_tables",
    "function": "removed_functions",
    "policy": "removed_policies",
    "view": "removed_views",
}


def removal_setting(kind: str) -> str:
    """Return the name of the setting for securables of a kind that are no longer declared; KeyError for schemas."""
    return _REMOVAL_SETTINGS[kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The changes that a run may make.

    Consent to destructive changes comes from the configuration or the command (`allow`), or from `conf/consents.yml`
    (`consents`). `definitions` is the ownership of undeclared constraints, clustering, comments, defaults, masks and
    row filters. `policies_on` names the catalogs that policies may be on. `rules` holds additional rules as
    `module:attribute`. `max_rewrite_bytes` limits the data that a plan rewrites.
    """

    allow: tuple[Allowance, ...] = ()
    consents: tuple[Consent, ...] = ()
    create_schemas: bool = False
    tags: Ownership = Ownership.ADDITIVE
    grants: Ownership = Ownership.ADDITIVE
    definitions: Ownership = Ownership.ADDITIVE
    column_order: ColumnOrder = ColumnOrder.REPORT
    removed_tables: Removed = Removed.KEEP
    removed_functions: Removed = Removed.KEEP
    removed_policies: Removed = Removed.KEEP
    removed_views: Removed = Removed.KEEP
    policies_on: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    max_rewrite_bytes: int | None = None

    @property
    def fully_owned(self) -> tuple[str, ...]:
        """Which of tags and grants are removed where no model declares them. Baselines do not record them."""
        owned = {"grants": self.grants, "tags": self.tags}
        return tuple(name for name, ownership in owned.items() if ownership is Ownership.FULL)

    def drops(self, kind: str) -> bool:
        """Whether securables of a kind that are no longer declared are dropped."""
        return kind in _REMOVAL_SETTINGS and getattr(self, _REMOVAL_SETTINGS[kind]) is Removed.DROP

    def allows(self, kind: DestructiveKind, table: SecurableName, part: str | None = None) -> bool:
        """Whether a kind of change is allowed on a securable, or on one part of it: a column's path or a constraint."""
        needed = NeededConsent(kind=kind, securable=table, part=part)
        return any(
            allowance.kind is kind and matches_any(table, [allowance.tables]) for allowance in self.allow
        ) or any(consent.covers(needed) for consent in self.consents)

    def at(self, now: datetime) -> Policy:
        """Return the policy without the consents that have expired."""
        return replace(
            self, consents=tuple(consent for consent in self.consents if not consent.is_expired(now))
        )


NO_POLICY = Policy()
"""The default: no destructive changes, and undeclared parts stay."""

AS_APPLIED = Policy(definitions=Ownership.FULL)
"""Compares a table with its applied state: an additional definition is a difference."""


def as_applied(policy: Policy) -> Policy:
    """Return `AS_APPLIED` with a policy's ownership of tags and grants."""
    return replace(AS_APPLIED, tags=policy.tags, grants=policy.grants)


def as_whole(policy: Policy) -> Policy:
    """Return the policy for everything that a table has of its model, also what others may add."""
    return replace(as_applied(policy), tags=Ownership.FULL, grants=Ownership.FULL)


def matches_any(name: SecurableName, globs: Iterable[str]) -> bool:
    """Whether one of the globs matches the name of a securable, ignoring case.

    A glob may match `catalog.schema.table`, `schema.table` or `table`; for a schema `catalog.schema` or `schema`; for a
    policy its key or any end of it, such as `sales.mask_pii`.
    """
    parts = name.key.split(".")
    forms = [".".join(parts[start:]) for start in range(len(parts))]
    return any(matches_glob(form, glob) for glob in globs for form in forms)


def matches_glob(text: str, glob: str) -> bool:
    """Whether a glob matches a text, ignoring case.

    A text also matches itself: messages quote it, and its characters may be special in a glob (`a[1]`).
    """
    text, glob = text.lower(), glob.lower()
    return text == glob or fnmatchcase(text, glob)
