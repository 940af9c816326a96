"""Plans as data: the immutable, comparable types that all aspects share. An aspect owns the actions of its facet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import ClassVar, Final, Protocol, TypeAlias, TypeVar

from delta_engine.errors import SourceLocation
from delta_engine.models import Column, QualifiedName, Reference, SchemaName, Table


@unique
class Phase(Enum):
    """The phases of aligning one table, in execution order. The table is valid after each phase."""

    RENAME_TABLE = "rename_table"  # later statements use the new name
    DROP_FOREIGN_KEYS = "drop_foreign_keys"  # first for all tables: they block their parents' keys
    DROP_PRIMARY_KEY = "drop_primary_key"  # a key blocks changes to its columns
    DROP_CHECKS = "drop_checks"  # a check blocks changes to its columns, too
    RETURN_FILES = "return_files"  # before statements that only a table of the former kind takes
    RESTORE_TABLE = "restore_table"  # brings back everything but keys, tags and rights
    ENABLE_TABLE_FEATURES = (
        "enable_table_features"  # the features that later phases need, such as column mapping for a drop
    )
    RENAME_COLUMNS = "rename_columns"  # later statements use the new names
    ADD_COLUMNS = "add_columns"  # before drops: Delta refuses a table without columns
    EXPAND_COLUMNS = "expand_columns"  # the columns that get the values of converted ones
    CHANGE_ROW_FILTERS = (
        "change_row_filters"  # a new filter may need an added column; before tags are weakened
    )
    CHANGE_COLUMN_MASKS = (
        "change_column_masks"  # right after adding: an added column is never visible unmasked
    )
    SET_TAGS = "set_tags"  # before values: policies may mask or filter what has a tag
    FILL_COLUMNS = "fill_columns"
    VERIFY_ROWS = "verify_rows"
    SWAP_COLUMNS = "swap_columns"  # readers see the new values from here on
    FILL_SWAPPED_COLUMNS = "fill_swapped_columns"  # rows that were added since the first fill
    VERIFY_SWAPPED_ROWS = "verify_swapped_rows"
    REWRITE_TABLE = "rewrite_table"  # with the columns that the partitions need
    VERIFY_REWRITE = "verify_rewrite"
    CHOOSE_STATISTICS = (
        "choose_statistics"  # before clustering: Delta clusters by columns with statistics only
    )
    CHANGE_CLUSTERING = "change_clustering"  # before drops: Delta refuses to drop a clustering column
    UNSET_TAGS = "unset_tags"  # governed tags block the drop of their column
    DROP_COLUMNS = "drop_columns"
    CHANGE_COLUMN_TYPES = "change_column_types"
    REORDER_COLUMNS = "reorder_columns"  # after all columns are added and dropped
    CHANGE_NULLABILITY = "change_nullability"  # before the key: its columns must be NOT NULL
    CHANGE_DEFAULTS = "change_defaults"
    ADD_CHECKS = "add_checks"
    ADD_PRIMARY_KEY = "add_primary_key"
    DROP_FORMER_COLUMNS = "drop_former_columns"  # when every row has met the new definitions
    MOVE_FILES = "move_files"  # before properties that only a managed table has
    SET_COLUMN_COMMENTS = "set_column_comments"  # metadata last: cheap to repeat, blocks nothing
    SET_TABLE_COMMENT = "set_table_comment"
    UPGRADE_TABLE = "upgrade_table"  # permanent, so after the changes that the platform may refuse
    SET_TABLE_PROPERTIES = "set_table_properties"
    UNSET_TABLE_PROPERTIES = "unset_table_properties"  # after setting: a replacing value is already set
    ADD_FOREIGN_KEYS = "add_foreign_keys"  # after all primary keys of the plan are added
    CHANGE_GRANTS = "change_grants"
    CHANGE_OWNER = "change_owner"  # last: the engine's principal may have no rights afterwards


PHASE_ORDER = {phase: position for position, phase in enumerate(Phase)}


@unique
class Hazard(Enum):
    """The risk of an action for data, readers or running jobs."""

    SAFE = "safe"
    LOCKS = "locks"  # writers wait, or fail and retry, until it ends
    REWRITES_DATA = "rewrites data"
    SCANS_DATA = "scans data"
    LOSES_DATA = "loses data"
    PERMANENT_UPGRADE = "permanent upgrade"
    BREAKS_READERS = "breaks readers"


SAFE: Final = (Hazard.SAFE,)
"""The hazards of a harmless action."""


@unique
class Reversal(Enum):
    """How an action can be undone."""

    STATEMENTS = "reversible"
    RESTORE = "reversible by RESTORE"  # while Delta keeps the former files, by default for seven days
    UNSET_MANAGED = "reversible by UNSET MANAGED"  # within 14 days
    NONE = "not reversible"


_RESTORED: Final = frozenset(
    {
        Phase.RESTORE_TABLE,
        Phase.FILL_COLUMNS,
        Phase.SWAP_COLUMNS,
        Phase.FILL_SWAPPED_COLUMNS,
        Phase.REWRITE_TABLE,
        Phase.DROP_COLUMNS,
        Phase.CHANGE_COLUMN_TYPES,
        Phase.DROP_FORMER_COLUMNS,
    }
)
"""The phases whose opposite statements would not bring the former values back."""


class Action(Protocol):
    """An immutable instruction that changes one facet of a table or schema."""

    @property
    def phase(self) -> Phase:
        """The phase in which it runs."""
        ...

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """The hazards; `SAFE` if it has none."""
        ...


SomeAction = TypeVar("SomeAction", bound=Action)


def _in_phase_order(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    return tuple(sorted(actions, key=lambda action: PHASE_ORDER[action.phase]))


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """Create a missing schema that is declared or that models need; an empty comment means none."""

    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    catalog_name: str
    schema_name: str
    comment: str = ""

    def __str__(self) -> str:
        return f"{self.catalog_name}.{self.schema_name}"


@dataclass(frozen=True, slots=True)
class AlignSchema:
    """Change a schema until it matches its model, also after its creation; it sorts its actions by phase."""

    catalog_name: str
    schema_name: str
    actions: tuple[Action, ...]
    declared_at: SourceLocation | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.actions:
            raise ValueError(f"aligning {self} needs at least one action")
        object.__setattr__(self, "actions", _in_phase_order(self.actions))

    def __str__(self) -> str:
        return f"{self.catalog_name}.{self.schema_name}"


@dataclass(frozen=True, slots=True)
class Adoption:
    """The registration of the Delta table that lies at the location of a new table: its rows come back.

    Args:
        completing: the actions for what its files do not hold, such as keys, owner and grants.
        differing: the actions for what its files hold otherwise. A rule refuses them.
    """

    completing: tuple[Action, ...] = ()
    differing: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTable:
    """Create a table with all its parts.

    Args:
        adoption: how it takes the Delta table at its location; None if it is new, or if its location was not read.
    """

    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    desired: Table
    adoption: Adoption | None = None

    @property
    def table(self) -> QualifiedName:
        """The table's name."""
        return self.desired.qualified_name

    @property
    def declared_at(self) -> SourceLocation | None:
        """Where the model is declared."""
        return self.desired.declared_at

    @property
    def columns(self) -> tuple[Column, ...]:
        """The model's columns."""
        return self.desired.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """How much a change of rows writes, by the metadata of the table; None for unknown values.

    Args:
        rows: of the table.
        files: that are written anew.
        size: of these files in bytes; twice that if the plan writes them twice.
        seconds: by the speed of earlier commits of the table.
        kept_for: how long Delta keeps the former files, so that the change can be undone.
    """

    rows: int | None = None
    files: int | None = None
    size: int | None = None
    seconds: float | None = None
    kept_for: str = ""


@dataclass(frozen=True, slots=True)
class AlignTable:
    """Change an existing table until it matches its model; it sorts its actions by phase.

    A phase is `align.in_phase(…)`, not a field, so that a new aspect does not change this class (docs/decisions/0002).
    `is_streaming` marks a streaming table, which needs its own statements. `cost` is known if rows are written.
    `columns` are the model's, for the places of messages.
    """

    table: QualifiedName
    actions: tuple[Action, ...]
    declared_at: SourceLocation | None = field(default=None, compare=False, repr=False)
    is_streaming: bool = False
    cost: Cost | None = field(default=None, compare=False)
    columns: tuple[Column, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.actions:
            raise ValueError(f"aligning {self.table} needs at least one action")
        object.__setattr__(self, "actions", _in_phase_order(self.actions))

    @property
    def writes_rows(self) -> bool:
        """Whether existing rows are written anew."""
        return any(Hazard.REWRITES_DATA in action.hazards for action in self.actions)

    def of_type(self, action_type: type[SomeAction]) -> tuple[SomeAction, ...]:
        """Return the actions of one type, in order."""
        return tuple(action for action in self.actions if isinstance(action, action_type))

    def in_phase(self, phase: Phase) -> tuple[Action, ...]:
        """Return the actions of one phase, in order."""
        return tuple(action for action in self.actions if action.phase is phase)


@dataclass(frozen=True, slots=True)
class DropTable:
    """Drop an applied table that is no longer declared, or whose creation is undone.

    Args:
        keys: drops of its keys that block changes of other tables; they run before those changes.
        referenced_by: foreign keys of remaining tables, which the drop would also remove.
        can_be_undropped: whether the platform's UNDROP brings the table back, by default for seven days.
        undoes_creation: whether an undo drops it, because the undone run created it; a model may still declare it.
    """

    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.LOSES_DATA, Hazard.BREAKS_READERS)
    table: QualifiedName
    rows: int
    references: tuple[QualifiedName, ...] = ()
    keys: tuple[Action, ...] = ()
    referenced_by: tuple[Reference, ...] = ()
    can_be_undropped: bool = False
    undoes_creation: bool = False
    declared_at: ClassVar[None] = None
    columns: ClassVar[tuple[Column, ...]] = ()

    @property
    def reason(self) -> str:
        """Why it is dropped."""
        return "the undone run created it" if self.undoes_creation else "it is not declared any more"

    @property
    def way_to_keep(self) -> str:
        """How the user keeps it, as the beginning of a sentence."""
        if self.undoes_creation:
            return "Undo other tables alone (-t)"
        return "Declare it, keep it (policy.removed_tables: keep)"


TableAction: TypeAlias = CreateTable | AlignTable | DropTable
"""An action on a table as a whole."""

CarriedAction: TypeAlias = Action | CreateSchema | CreateTable | DropTable
"""An action that a statement carries out."""


def reversal_of(action: CarriedAction) -> Reversal:
    """Return how a run's action can be undone. Created schemas stay, and dropped tables are not the engine's."""
    if isinstance(action, CreateSchema | DropTable) or Hazard.PERMANENT_UPGRADE in action.hazards:
        return Reversal.NONE
    if isinstance(action, CreateTable):
        return Reversal.STATEMENTS
    if action.phase is Phase.MOVE_FILES:
        return Reversal.UNSET_MANAGED
    return Reversal.RESTORE if action.phase in _RESTORED else Reversal.STATEMENTS


@dataclass(frozen=True, slots=True)
class TablePlan:
    """All changes of one run, tables sorted by name, without unchanged tables.

    Dropped tables come after all other changes. Aligned schemas come before the tables, except changes that may revoke
    rights. `kept_tables` and `kept_schemas` are no longer declared, and stay; they are for information only.
    """

    create_tables: tuple[CreateTable, ...] = ()
    align_tables: tuple[AlignTable, ...] = ()
    create_schemas: tuple[CreateSchema, ...] = ()
    drop_tables: tuple[DropTable, ...] = ()
    kept_tables: tuple[QualifiedName, ...] = ()
    align_schemas: tuple[AlignSchema, ...] = ()
    kept_schemas: tuple[SchemaName, ...] = ()

    def __bool__(self) -> bool:
        schemas, tables = self.create_schemas or self.align_schemas, self.create_tables or self.align_tables
        return bool(schemas or tables or self.drop_tables)

    def changed_schemas(self) -> tuple[SchemaName, ...]:
        """Return the schemas to create or change, each once, sorted by name."""
        actions: tuple[CreateSchema | AlignSchema, ...] = (*self.create_schemas, *self.align_schemas)
        names = (SchemaName(action.catalog_name, action.schema_name) for action in actions)
        by_key = {name.key: name for name in names}
        return tuple(by_key[key] for key in sorted(by_key))

    def table_actions(self) -> Iterator[TableAction]:
        """Yield the action of each table, sorted by table name."""
        actions: tuple[TableAction, ...] = (*self.create_tables, *self.align_tables, *self.drop_tables)
        yield from sorted(actions, key=lambda action: action.table.key)
