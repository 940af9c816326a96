"""Plans as data: actions, phases, hazards. Immutable and comparable.

The actions on a facet live with their aspect (`delta_engine.aspects`); this module has what all share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import ClassVar, Final, Protocol, TypeAlias, TypeVar

from delta_engine.errors import SourceLocation
from delta_engine.models import QualifiedName, Reference, SchemaName, Table


@unique
class Phase(Enum):
    """The phases of aligning one table, in execution order. Every state between two is a legal table."""

    RENAME_TABLE = "rename_table"  # every statement after it uses the new name
    DROP_FOREIGN_KEYS = "drop_foreign_keys"  # of all tables first: they block their parents' keys
    DROP_PRIMARY_KEY = "drop_primary_key"  # a key blocks changes to its columns
    DROP_CHECKS = "drop_checks"  # a check blocks them as well
    ENABLE_TABLE_FEATURES = "enable_table_features"  # dropping and renaming columns need column mapping
    RENAME_COLUMNS = "rename_columns"  # every statement after it uses the new names
    ADD_COLUMNS = "add_columns"  # before drops: Delta refuses a table that would have no column left
    CHANGE_ROW_FILTERS = (
        "change_row_filters"  # between: the new may need an added column, the former a dropped one
    )
    CHANGE_COLUMN_MASKS = "change_column_masks"  # at once: an added column is never visible unmasked
    CHANGE_CLUSTERING = "change_clustering"  # between: Delta refuses to drop a column that it clusters by
    UNSET_TAGS = "unset_tags"  # governed tags block the drop of their column
    DROP_COLUMNS = "drop_columns"
    CHANGE_COLUMN_TYPES = "change_column_types"
    REORDER_COLUMNS = "reorder_columns"  # when all are there, and none that goes
    CHANGE_NULLABILITY = "change_nullability"  # before the key: its columns must be NOT NULL
    CHANGE_DEFAULTS = "change_defaults"
    ADD_CHECKS = "add_checks"
    ADD_PRIMARY_KEY = "add_primary_key"
    SET_COLUMN_COMMENTS = "set_column_comments"  # metadata last: cheap to repeat, blocks nothing
    SET_TABLE_COMMENT = "set_table_comment"
    SET_TABLE_PROPERTIES = "set_table_properties"
    UNSET_TABLE_PROPERTIES = "unset_table_properties"  # last: a value that replaces it is set by then
    SET_TAGS = "set_tags"
    ADD_FOREIGN_KEYS = "add_foreign_keys"  # when all tables of the plan have their primary keys
    CHANGE_GRANTS = "change_grants"
    CHANGE_OWNER = "change_owner"  # last: the engine's principal may have no rights afterwards


PHASE_ORDER = {phase: position for position, phase in enumerate(Phase)}


@unique
class Hazard(Enum):
    """Risk of an action for data, readers or running jobs."""

    SAFE = "safe"
    LOCKS = "locks"  # writers wait, or fail and retry, until it is done
    REWRITES_DATA = "rewrites data"
    SCANS_DATA = "scans data"
    LOSES_DATA = "loses data"
    PERMANENT_UPGRADE = "permanent upgrade"
    BREAKS_READERS = "breaks readers"


SAFE: Final = (Hazard.SAFE,)
"""The hazards of a harmless action."""


class Action(Protocol):
    """An immutable instruction that changes one facet of a table or schema."""

    phase: ClassVar[Phase]

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """The hazards; `SAFE` if there are none."""
        ...


SomeAction = TypeVar("SomeAction", bound=Action)


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """Create a schema that models need, or that is declared, and that the catalog lacks.

    Args:
        comment: its comment; empty for none.
    """

    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    catalog_name: str
    schema_name: str
    comment: str = ""

    def __str__(self) -> str:
        return f"{self.catalog_name}.{self.schema_name}"


@dataclass(frozen=True, slots=True)
class AlignSchema:
    """Change a schema until it matches its model; a new one as well, after it was created.

    Args:
        actions: at least one; put into the order of their phases.
        declared_at: where the model was declared, for messages.
    """

    catalog_name: str
    schema_name: str
    actions: tuple[Action, ...]
    declared_at: SourceLocation | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.actions:
            raise ValueError(f"aligning {self} needs at least one action")
        ordered = sorted(self.actions, key=lambda action: PHASE_ORDER[action.phase])
        object.__setattr__(self, "actions", tuple(ordered))

    def __str__(self) -> str:
        return f"{self.catalog_name}.{self.schema_name}"


@dataclass(frozen=True, slots=True)
class CreateTable:
    """Create a table whole: schema, comments, properties and key."""

    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    desired: Table

    @property
    def table(self) -> QualifiedName:
        """The table's name."""
        return self.desired.qualified_name

    @property
    def declared_at(self) -> SourceLocation | None:
        """Where the model was declared."""
        return self.desired.declared_at


@dataclass(frozen=True, slots=True)
class AlignTable:
    """Change an existing table until it matches its model.

    Args:
        table: the table's name, as the model has it.
        actions: at least one; put into the order of their phases.
        declared_at: where the model was declared, for messages.
        is_streaming: whether it is a streaming table, which has statements of its own.

    The guide's parts (`add_columns`, `change_nullability`, …) are the phases: `align.in_phase(…)`. They
    are not fields, so that a new aspect does not have to edit this class (docs/decisions/0002).
    """

    table: QualifiedName
    actions: tuple[Action, ...]
    declared_at: SourceLocation | None = field(default=None, compare=False, repr=False)
    is_streaming: bool = False

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
class DropTable:
    """Drop a table that was applied once and is not declared any more.

    Args:
        references: the tables that its foreign keys point at.
        keys: drops of keys of it that are in the way of other tables: they go before those are changed.
        referenced_by: the foreign keys that would go with it, of tables that stay.
    """

    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.LOSES_DATA, Hazard.BREAKS_READERS)
    table: QualifiedName
    rows: int
    references: tuple[QualifiedName, ...] = ()
    keys: tuple[Action, ...] = ()
    referenced_by: tuple[Reference, ...] = ()


TableAction: TypeAlias = CreateTable | AlignTable | DropTable
"""What can happen to a table."""


@dataclass(frozen=True, slots=True)
class TablePlan:
    """Everything one run will do, tables sorted by name. Tables that need nothing are not in it.

    Args:
        drop_tables: tables to drop, after everything else.
        kept_tables: tables that are not declared any more, and stay: for people to know.
        align_schemas: schemas to change, before any table; what may take rights away, after all of them.
        kept_schemas: schemas that are not declared any more, and stay as they are: for people to know.
    """

    create_tables: tuple[CreateTable, ...] = ()
    align_tables: tuple[AlignTable, ...] = ()
    create_schemas: tuple[CreateSchema, ...] = ()
    drop_tables: tuple[DropTable, ...] = ()
    kept_tables: tuple[QualifiedName, ...] = ()
    align_schemas: tuple[AlignSchema, ...] = ()
    kept_schemas: tuple[SchemaName, ...] = ()

    def __bool__(self) -> bool:
        return bool(
            self.create_schemas
            or self.align_schemas
            or self.create_tables
            or self.align_tables
            or self.drop_tables
        )

    def changed_schemas(self) -> tuple[SchemaName, ...]:
        """Return the schemas to create or to change, each once, sorted by name."""
        actions: tuple[CreateSchema | AlignSchema, ...] = (*self.create_schemas, *self.align_schemas)
        names = (SchemaName(action.catalog_name, action.schema_name) for action in actions)
        by_key = {name.key: name for name in names}
        return tuple(by_key[key] for key in sorted(by_key))

    def table_actions(self) -> Iterator[TableAction]:
        """Yield what happens to each table, sorted by table name."""
        actions: tuple[TableAction, ...] = (*self.create_tables, *self.align_tables, *self.drop_tables)
        yield from sorted(actions, key=lambda action: action.table.key)
