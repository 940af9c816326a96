"""A plan's statements as data: for every table and schema, with the order across them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from itertools import chain

from delta_engine.actions import CarriedAction, Hazard, Phase
from delta_engine.models import QualifiedName, SecurableName, resource_key

_REPEATABLE = frozenset(
    {
        Phase.RESTORE_TABLE,
        Phase.FILL_COLUMNS,
        Phase.VERIFY_ROWS,
        Phase.FILL_SWAPPED_COLUMNS,
        Phase.VERIFY_SWAPPED_ROWS,
        Phase.VERIFY_REWRITE,
    }
)
"""The phases whose statements the state of a table does not show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement and the actions that it carries out; `phase` is None for CREATE and DROP."""

    sql: str
    actions: tuple[CarriedAction, ...]
    phase: Phase | None = None

    @property
    def is_repeatable(self) -> bool:
        """Whether it may run again at any time, because the catalog does not show whether it is done."""
        return self.phase in _REPEATABLE

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """The distinct hazards of the actions."""
        return tuple(dict.fromkeys(chain.from_iterable(action.hazards for action in self.actions)))


class Operation(Enum):
    """What a plan does to a table or schema as a whole."""

    CREATE = "create"
    ALTER = "alter"
    DROP = "drop"


class Round(IntEnum):
    """The rounds of a plan: a step starts when all steps of earlier rounds are over, successful or not."""

    CHANGES = 0
    DROPS = 1  # when no other step needs the table
    SCHEMA_RIGHTS = 2  # changes that may take the engine's rights on a schema; only if all the rest succeeded


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Statements of one table or schema that run together, after the steps at the positions `after` succeeded."""

    name: SecurableName
    operation: Operation
    statements: tuple[Statement, ...]
    after: tuple[int, ...] = ()
    round: Round = Round.CHANGES

    @property
    def resource(self) -> tuple[str, str]:
        """What it belongs to: a function and a table may have one name."""
        return self.name.kind, self.name.key

    @property
    def table_key(self) -> str:
        """The key of the table; for a function or policy, that of the resource; empty for a schema."""
        if self.name.is_container:
            return ""
        return self.name.key if isinstance(self.name, QualifiedName) else resource_key(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPlan:
    """The steps of a plan, in an order in which they can run one by one."""

    steps: tuple[Step, ...] = ()

    def sql(self) -> Iterator[str]:
        """Yield the text of every statement, in order."""
        yield from (statement.sql for step in self.steps for statement in step.statements)

    def lasting_sql_of(self, name: SecurableName) -> tuple[str, ...]:
        """Return the statements of one table or schema, in order, without the repeatable ones."""
        steps = (step for step in self.steps if step.resource == (name.kind, name.key))
        return tuple(
            statement.sql for step in steps for statement in step.statements if not statement.is_repeatable
        )

    def sql_by_table(self) -> Mapping[str, Sequence[str]]:
        """Return the statements by `Step.table_key`."""
        statements_by_table: dict[str, list[str]] = {}
        for step in self.steps:
            if step.statements:
                statements_by_table.setdefault(step.table_key, []).extend(
                    statement.sql for statement in step.statements
                )
        return statements_by_table
