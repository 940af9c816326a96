"""The vocabulary of plans: what an action is, in which phase it runs, what it endangers.

Plans are data: immutable all the way down and comparable. The actions that change a part of a table
live with their aspect (`delta_engine.aspects`); here is what all of them have in common.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import ClassVar, Protocol, TypeVar

from delta_engine.errors import SourceLocation
from delta_engine.models import QualifiedName, Table


@unique
class Phase(Enum):
    """The phases of aligning one table, in execution order. Every state between two is a legal table."""

    DROP_PRIMARY_KEY = "drop_primary_key"  # first: a key blocks changes to its columns
    ENABLE_TABLE_FEATURES = "enable_table_features"  # dropping columns needs column mapping
    ADD_COLUMNS = "add_columns"  # before drops: Delta refuses a table that would have no column left
    CHANGE_CLUSTERING = "change_clustering"  # between: Delta refuses to drop a column that it clusters by
    DROP_COLUMNS = "drop_columns"
    CHANGE_COLUMN_TYPES = "change_column_types"
    CHANGE_NULLABILITY = "change_nullability"  # before the key: its columns must be NOT NULL
    ADD_PRIMARY_KEY = "add_primary_key"
    SET_COLUMN_COMMENTS = "set_column_comments"  # metadata last: cheap to repeat, blocks nothing
    SET_TABLE_COMMENT = "set_table_comment"
    SET_TABLE_PROPERTIES = "set_table_properties"
    UNSET_TABLE_PROPERTIES = "unset_table_properties"  # last: a value that replaces it is set by then


PHASE_ORDER = {phase: position for position, phase in enumerate(Phase)}


@unique
class Hazard(Enum):
    """What an action may do to data, readers or running jobs."""

    SCANS_DATA = "scans data"
    LOSES_DATA = "loses data"
    PERMANENT_UPGRADE = "permanent upgrade"
    BREAKS_READERS = "breaks readers"


class Action(Protocol):
    """One immutable instruction that changes one part of one table."""

    phase: ClassVar[Phase]

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """What it endangers; empty for the harmless."""
        ...


SomeAction = TypeVar("SomeAction", bound=Action)


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """Create a schema that models need and the catalog lacks."""

    catalog_name: str
    schema_name: str

    def __str__(self) -> str:
        return f"{self.catalog_name}.{self.schema_name}"


@dataclass(frozen=True, slots=True)
class CreateTable:
    """Create a table whole: schema, comments, properties and key."""

    desired: Table

    @property
    def table(self) -> QualifiedName:
        """The table's name."""
        return self.desired.qualified_name

    @property
    def location(self) -> SourceLocation | None:
        """Where the model was declared."""
        return self.desired.location


@dataclass(frozen=True, slots=True)
class AlignTable:
    """Change an existing table until it matches its model.

    Args:
        table: the table's name, as the model has it.
        actions: at least one; put into the order of their phases.
        location: where the model was declared, for messages.

    The guide's parts (`add_columns`, `change_nullability`, …) are the phases: `align.in_phase(…)`. They
    are not fields, so that a new aspect does not have to edit this class (docs/decisions/0002).
    """

    table: QualifiedName
    actions: tuple[Action, ...]
    location: SourceLocation | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.actions:
            raise ValueError(f"aligning {self.table} needs at least one action")
        ordered = sorted(self.actions, key=lambda action: PHASE_ORDER[action.phase])
        object.__setattr__(self, "actions", tuple(ordered))

    def of_type(self, action_type: type[SomeAction]) -> tuple[SomeAction, ...]:
        """Return the actions of one type, in order."""
        return tuple(action for action in self.actions if isinstance(action, action_type))

    def in_phase(self, phase: Phase) -> tuple[Action, ...]:
        """Return the actions of one phase, in order."""
        return tuple(action for action in self.actions if action.phase is phase)


@dataclass(frozen=True, slots=True)
class TablePlan:
    """Everything one run will do, tables sorted by name. Tables that need nothing are not in it."""

    create_tables: tuple[CreateTable, ...] = ()
    align_tables: tuple[AlignTable, ...] = ()
    create_schemas: tuple[CreateSchema, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.create_schemas or self.create_tables or self.align_tables)

    def table_actions(self) -> Iterator[CreateTable | AlignTable]:
        """Yield what happens to each table, sorted by table name."""
        actions: tuple[CreateTable | AlignTable, ...] = (*self.create_tables, *self.align_tables)
        yield from sorted(actions, key=lambda action: action.table.key)
