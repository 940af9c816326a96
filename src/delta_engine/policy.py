"""The target's policy: which destructive changes it allows, and where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase

from delta_engine.models import QualifiedName


class DestructiveKind(Enum):
    """The kinds of change that lose something and therefore need consent."""

    DROP_COLUMN = "drop_column"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a run may do beyond the harmless."""

    allow: tuple[Allowance, ...] = ()
    create_schemas: bool = False

    def allows(self, kind: DestructiveKind, table: QualifiedName) -> bool:
        """Whether this kind of change is allowed on this table."""
        return any(
            allowance.kind is kind and matches_any(table, [allowance.tables]) for allowance in self.allow
        )


def matches_any(table: QualifiedName, globs: Iterable[str]) -> bool:
    """Whether one of the globs matches a table, without regard to case.

    A glob is held against the whole name, `catalog.schema.table`, and against its shorter forms,
    `schema.table` and `table`.
    """
    parts = table.key.split(".")
    names = [".".join(parts[start:]) for start in range(len(parts))]
    return any(fnmatchcase(name, glob.lower()) for glob in globs for name in names)
