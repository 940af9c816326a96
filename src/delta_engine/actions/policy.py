"""The policy of an environment: allowed destructive changes and ownership of undeclared parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase

from delta_engine.models.parts import QualifiedName, SchemaName


class DestructiveKind(Enum):
    """Changes that lose or rewrite data, or lose protection, and therefore need consent."""

    DROP_COLUMN = "drop_column"
    DROP_TABLE = "drop_table"
    DROP_ROW_FILTER = "drop_row_filter"  # exposes rows
    DROP_COLUMN_MASK = "drop_column_mask"  # exposes values
    DROP_CONSTRAINT = "drop_constraint"  # an unmanaged one
    BACKFILL_COLUMN = "backfill_column"  # writes values into existing rows
    REWRITE_TABLE = "rewrite_table"  # writes all rows anew
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
        known = {member.value: member for member in DestructiveKind}
        if kind.strip() not in known:
            raise ValueError(f"{kind.strip()!r} is not one of: {', '.join(known)}")
        return cls(known[kind.strip()], tables.strip() or "*")


class Ownership(Enum):
    """Ownership of parts that no model declares: tags, privileges, definitions."""

    ADDITIVE = "additive"  # kept, unless the engine applied them
    FULL = "full"  # removed


class ColumnOrder(Enum):
    """How to treat a column order that differs from the model's."""

    REPORT = "report"
    ENFORCE = "enforce"


class RemovedTables(Enum):
    """How to treat an applied table that is no longer declared."""

    KEEP = "keep"
    DROP = "drop"  # needs consent to `drop_table`


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The changes that a run may make.

    `definitions` is the ownership of undeclared constraints, clustering, comments, defaults, masks and row filters.
    `rules` holds additional rules as `module:attribute`. `max_rewrite_bytes` limits the files that a plan writes anew.
    """

    allow: tuple[Allowance, ...] = ()
    create_schemas: bool = False
    tags: Ownership = Ownership.ADDITIVE
    grants: Ownership = Ownership.ADDITIVE
    definitions: Ownership = Ownership.ADDITIVE
    column_order: ColumnOrder = ColumnOrder.REPORT
    removed_tables: RemovedTables = RemovedTables.KEEP
    rules: tuple[str, ...] = ()
    max_rewrite_bytes: int | None = None

    @property
    def full_ownership(self) -> tuple[str, ...]:
        """Which of tags and grants are removed where no model declares them. Baselines do not record them."""
        owned = {"grants": self.grants, "tags": self.tags}
        return tuple(name for name, ownership in owned.items() if ownership is Ownership.FULL)

    def allows(self, kind: DestructiveKind, table: QualifiedName) -> bool:
        """Whether a kind of change is allowed on a table."""
        return any(
            allowance.kind is kind and matches_any(table, [allowance.tables]) for allowance in self.allow
        )


NO_POLICY = Policy()
"""The default: no destructive changes, and undeclared parts stay."""

AS_APPLIED = Policy(definitions=Ownership.FULL)
"""Compares a table with its applied state: an additional definition is a difference."""


def as_applied(policy: Policy) -> Policy:
    """Return `AS_APPLIED` with a policy's ownership of tags and grants."""
    return replace(AS_APPLIED, tags=policy.tags, grants=policy.grants)


def matches_any(name: QualifiedName | SchemaName, globs: Iterable[str]) -> bool:
    """Whether one of the globs matches a table or schema, ignoring case.

    A glob may match `catalog.schema.table`, `schema.table` or `table`; for a schema `catalog.schema` or `schema`.
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
