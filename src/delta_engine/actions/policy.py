"""The target's policy: which destructive changes it allows, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase

from delta_engine.models import QualifiedName, SchemaName


class DestructiveKind(Enum):
    """The kinds of change that lose something and therefore need consent."""

    DROP_COLUMN = "drop_column"
    DROP_TABLE = "drop_table"
    DROP_ROW_FILTER = "drop_row_filter"  # everybody sees all rows from then on
    DROP_COLUMN_MASK = "drop_column_mask"  # everybody sees what the column holds from then on
    DROP_CONSTRAINT = "drop_constraint"  # one that somebody else made


@dataclass(frozen=True, slots=True)
class Allowance:
    """Consent to one kind of change, for the tables that a glob matches (`matches_any`)."""

    kind: DestructiveKind
    tables: str = "*"

    @classmethod
    def parse(cls, text: str) -> Allowance:
        """Read `drop_column` or `drop_column:dev.silver.*`.

        Raises:
            ValueError: no such kind; the message lists those there are.
        """
        kind, _, tables = text.partition(":")
        known = {member.value: member for member in DestructiveKind}
        if kind.strip() not in known:
            raise ValueError(f"{kind.strip()!r} is not one of: {', '.join(known)}")
        return cls(known[kind.strip()], tables.strip() or "*")


class Ownership(Enum):
    """Whose the things are that a model does not name: tags, privileges of principals, definitions."""

    ADDITIVE = "additive"  # somebody else's, unless the engine applied them once
    FULL = "full"  # nobody's: they are removed


class ColumnOrder(Enum):
    """What to do about columns that stand in another order than the model's."""

    REPORT = "report"
    ENFORCE = "enforce"


class RemovedTables(Enum):
    """What to do with a table that was applied once and is not declared any more."""

    KEEP = "keep"
    DROP = "drop"  # with consent to `drop_table`


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a run does, and may do, beyond the harmless.

    Args:
        allow: the destructive changes that it may make.
        create_schemas: whether it creates schemas that models need.
        tags: whose the tags are that no model names.
        grants: whose the privileges are that no model names.
        definitions: whose the constraints, clustering, comments and defaults are that no model names.
            Only what was applied is held against tables as `FULL`: what is beside it then is drift.
        column_order: what to do about columns in another order.
        removed_tables: what to do with tables that are not declared any more.
        rules: further rules, as `module:attribute`.
    """

    allow: tuple[Allowance, ...] = ()
    create_schemas: bool = False
    tags: Ownership = Ownership.ADDITIVE
    grants: Ownership = Ownership.ADDITIVE
    definitions: Ownership = Ownership.ADDITIVE
    column_order: ColumnOrder = ColumnOrder.REPORT
    removed_tables: RemovedTables = RemovedTables.KEEP
    rules: tuple[str, ...] = ()

    def allows(self, kind: DestructiveKind, table: QualifiedName) -> bool:
        """Whether this kind of change is allowed on this table."""
        return any(
            allowance.kind is kind and matches_any(table, [allowance.tables]) for allowance in self.allow
        )


NO_POLICY = Policy()
"""What holds where nobody says otherwise: nothing destructive, and what no model names is somebody else's."""


AS_APPLIED = Policy(definitions=Ownership.FULL)
"""How a table is held against what was applied to it: what defines it beside that is a difference, too."""


def as_applied(policy: Policy) -> Policy:
    """Return the same for a target where tags and privileges that no model names may be nobody's."""
    return replace(AS_APPLIED, tags=policy.tags, grants=policy.grants)


def matches_any(name: QualifiedName | SchemaName, globs: Iterable[str]) -> bool:
    """Whether one of the globs matches a table or schema, without regard to case.

    A glob is held against the whole name, `catalog.schema.table`, and against its shorter forms,
    `schema.table` and `table`; for a schema against `catalog.schema` and `schema`.
    """
    parts = name.key.split(".")
    forms = [".".join(parts[start:]) for start in range(len(parts))]
    return any(matches_glob(form, glob) for glob in globs for form in forms)


def matches_glob(text: str, glob: str) -> bool:
    """Whether a glob matches a text, without regard to case.

    A text matches itself as well: messages name it, and its characters may mean something else in a glob (`a[1]`).
    """
    text, glob = text.lower(), glob.lower()
    return text == glob or fnmatchcase(text, glob)
