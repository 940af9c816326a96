"""Plans as data: the immutable, comparable types that all aspects share. An aspect owns the actions of its facet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from enum import Enum, unique
from typing import Any, ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar

from typing_extensions import TypeVar as DefaultTypeVar

from delta_engine.actions.policy import removal_setting
from delta_engine.errors import SourceLocation
from delta_engine.models import (
    Column,
    QualifiedName,
    Reference,
    Schema,
    SchemaName,
    Securable,
    SecurableName,
    Table,
    ViewName,
)


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
    BEGIN_EVOLUTION = "begin_evolution"  # of a view, before a query that spreads what changes
    REPLACE_DEFINITION = "replace_definition"  # first for a function or a policy: it may lose the rest
    CHANGE_SCHEMA_MODE = "change_schema_mode"  # with the columns that the query returns
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
    """An immutable instruction that changes one facet of a securable."""

    __slots__ = ()

    @property
    def phase(self) -> Phase:
        """The phase in which it runs."""
        ...

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """The hazards; `SAFE` without hazards."""
        ...


SomeAction = TypeVar("SomeAction", bound=Action)

Model_co = DefaultTypeVar("Model_co", bound=Securable, covariant=True, default=Table)
Name_co = DefaultTypeVar("Name_co", bound=SecurableName, covariant=True, default=QualifiedName)


def in_phase_order(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Return actions in the order in which they run."""
    return tuple(sorted(actions, key=lambda action: PHASE_ORDER[action.phase]))


@dataclass(frozen=True, slots=True)
class Adoption:
    """The registration of the Delta table that lies at the location of a new table: its rows come back.

    Args:
        completing: the actions for what its files do not hold, such as keys, owner and grants.
        differing: the actions for what its files hold otherwise. A rule refuses them.
    """

    completing: tuple[Action, ...] = ()
    differing: tuple[Action, ...] = ()


@unique
class Turn(Enum):
    """A change of a table or a view that other views have to precede or to follow, in the order of one table."""

    CREATE = "create"
    QUERY = "query"  # of a view, which may return other columns from here on
    RENAME_COLUMNS = "rename columns"
    ADD_COLUMNS = "add columns"
    DROP_COLUMNS = "drop columns"
    DROP = "drop"


Place: TypeAlias = tuple[str, Turn]
"""The key of a table or view, and its change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A statement that gives a view a query, and where it belongs.

    Args:
        query: one that stands for a while; empty for the view's own one.
        is_new: whether the view returns its new columns then.
        precedes: the changes that wait for it.
        follows: the changes for which it waits.
    """

    query: str = ""
    is_new: bool = True
    precedes: frozenset[Place] = frozenset()
    follows: frozenset[Place] = frozenset()

    @property
    def keys(self) -> Set[str]:
        """The tables and views between whose changes it belongs."""
        return {key for key, _ in self.precedes | self.follows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Where the statements that give a view another query belong.

    Args:
        settings: in their order; the last one gives the view its own query.
    """

    settings: tuple[Setting, ...] = (Setting(),)

    def after_all_of(self, keys: Set[str], turn: Turn) -> Order:
        """Return the place of a view for which tables change all of their columns at once."""
        changed = next(step for step in self.settings if step.is_new)
        between = {key for step in self.settings if step is not changed for key in step.keys}
        settings = self.settings
        if not between.isdisjoint(keys):
            changed = Setting(
                precedes=frozenset[Place]().union(*(step.precedes for step in settings)),
                follows=frozenset[Place]().union(*(step.follows for step in settings)),
            )
            settings = (changed,)
        restored = keys & changed.keys
        last = replace(
            changed,
            precedes=frozenset(place for place in changed.precedes if place[0] not in restored),
            follows=changed.follows | {(key, turn) for key in restored},
        )
        settings = tuple(last if step is changed else step for step in settings)
        return Order(settings=settings)


NO_ORDER: Final = Order()
"""The place of a change that no other one waits for."""


@dataclass(frozen=True, slots=True)
class BrokenView:
    """A view that loses what it reads, because its query stays, or its new query reads what the plan drops or renames.

    Or it does not survive another type of a column that it reads.

    Args:
        relation: the key of the table or view that it reads.
        columns: the columns that go or get other names; empty for the whole.
        renamed_to: the new name of a renamed table or view.
        is_retyped: whether the columns only get other types.
        is_converted: whether other columns get the names of the columns.
        is_selected: whether the run includes its model.
        is_by_star: whether the query reads the columns by a star, and names none of them.
        is_counted: whether only the number of columns changes, which the query needs.
    """

    name: ViewName
    relation: str
    columns: tuple[str, ...]
    declared_at: SourceLocation | None = field(default=None, compare=False)
    renamed_to: str = ""
    is_retyped: bool = False
    is_converted: bool = False
    is_selected: bool = True
    is_by_star: bool = False
    is_counted: bool = False


@dataclass(frozen=True, slots=True)
class Create(Generic[Model_co]):
    """Create a securable with all parts of its model that its CREATE statement can express.

    A missing schema that only tables need is created too. An empty comment means none.

    Args:
        adoption: how it takes the Delta table at its location; None if it is new, or if its location was not read.
        order: the place of a view.
    """

    verb: ClassVar[str] = "create"
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    desired: Model_co
    adoption: Adoption | None = None
    order: Order = field(default=NO_ORDER, compare=False, repr=False)

    @property
    def name(self) -> SecurableName:
        """The securable's name."""
        return self.desired.qualified_name

    @property
    def table(self: Create[Table]) -> QualifiedName:
        """The table's name."""
        return self.desired.qualified_name

    @property
    def declared_at(self) -> SourceLocation | None:
        """Where the model is declared."""
        return self.desired.declared_at

    @property
    def columns(self: Create[Table]) -> tuple[Column, ...]:
        """The model's columns."""
        return self.desired.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """How much a change of rows writes, by the metadata of the table; None for unknown values.

    Args:
        rows: of the table.
        files: that are rewritten.
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
class Align(Generic[Name_co]):
    """Change an existing securable, or a schema that the plan creates, until it matches its model.

    It sorts its actions by phase. A phase is `align.in_phase(…)`, not a field, so that a new aspect does not change
    this class (docs/decisions/0002).

    Args:
        is_streaming: marks a streaming table, which needs its own statements.
        cost: known if rows are written.
        columns: the model's, for the places of messages.
        order: the place of a view.
    """

    verb: ClassVar[str] = "change"
    name: Name_co
    actions: tuple[Action, ...]
    declared_at: SourceLocation | None = field(default=None, compare=False, repr=False)
    is_streaming: bool = False
    cost: Cost | None = field(default=None, compare=False)
    columns: tuple[Column, ...] = field(default=(), compare=False, repr=False)
    order: Order = field(default=NO_ORDER, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.actions:
            raise ValueError(f"aligning {self.name} needs at least one action")
        object.__setattr__(self, "actions", in_phase_order(self.actions))

    @property
    def table(self) -> Name_co:
        """The table's name."""
        return self.name

    @property
    def writes_rows(self) -> bool:
        """Whether existing rows are rewritten."""
        return any(Hazard.REWRITES_DATA in action.hazards for action in self.actions)

    def of_type(self, action_type: type[SomeAction]) -> tuple[SomeAction, ...]:
        """Return the actions of one type, in order."""
        return tuple(action for action in self.actions if isinstance(action, action_type))

    def in_phase(self, phase: Phase) -> tuple[Action, ...]:
        """Return the actions of one phase, in order."""
        return tuple(action for action in self.actions if action.phase is phase)


@dataclass(frozen=True, slots=True)
class Drop(Generic[Name_co]):
    """Drop an applied securable that is no longer declared, or whose creation is undone.

    Args:
        rows: of a table.
        keys: drops of its keys that block changes of other tables; they run before those changes.
        referenced_by: foreign keys of remaining tables, which the drop would also remove.
        used_by: what still uses a function.
        can_be_undropped: whether the platform's UNDROP brings the table back, by default for seven days.
        undoes_creation: whether an undo drops it, because the undone run created it; a model may still declare it.
    """

    verb: ClassVar[str] = "drop"
    name: Name_co
    rows: int = 0
    references: tuple[QualifiedName, ...] = ()
    keys: tuple[Action, ...] = ()
    referenced_by: tuple[Reference, ...] = ()
    used_by: tuple[str, ...] = ()
    can_be_undropped: bool = False
    undoes_creation: bool = False
    declared_at: ClassVar[None] = None
    columns: ClassVar[tuple[Column, ...]] = ()

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """Only a table holds data."""
        loses_data = (Hazard.LOSES_DATA,) if isinstance(self.name, QualifiedName) else ()
        return (*loses_data, Hazard.BREAKS_READERS)

    @property
    def table(self) -> Name_co:
        """The table's name."""
        return self.name

    @property
    def reason(self) -> str:
        """Why it is dropped."""
        return "the undone run created it" if self.undoes_creation else "it is no longer declared"

    @property
    def way_to_keep(self) -> str:
        """How the user keeps it, as the beginning of a sentence."""
        if self.undoes_creation:
            return "Undo only other tables (-t)"
        return f"Declare it, keep it (policy.{removal_setting(self.name.kind)}: keep)"


@dataclass(frozen=True, slots=True)
class Keep(Generic[Name_co]):
    """Keep an applied securable that is no longer declared. For information only."""

    name: Name_co


CreateTable: TypeAlias = Create
AlignTable: TypeAlias = Align
DropTable: TypeAlias = Drop

TableAction: TypeAlias = CreateTable | AlignTable | DropTable
"""An action on a table as a whole."""

SecurableChange: TypeAlias = Create[Any] | Align[Any] | Drop[Any] | Keep[Any]
"""What a plan does with one securable."""

CarriedAction: TypeAlias = Action | Create[Any] | Drop[Any]
"""An action that a statement carries out."""


def action_name(action: CarriedAction) -> str:
    """Return the name of an action's type, such as `SetTableComment`, and `CreateTable` for a table's creation."""
    name = type(action).__name__
    return f"{name}{action.name.kind.title()}" if isinstance(action, Create | Drop) else name


def reversal_of(action: CarriedAction) -> Reversal:
    """Return how a run's action can be undone. Created containers stay, and the rows of dropped tables are lost."""
    match action:
        case Create():
            return Reversal.NONE if action.name.is_container else Reversal.STATEMENTS
        case Drop():
            return Reversal.NONE if isinstance(action.name, QualifiedName) else Reversal.STATEMENTS
    if Hazard.PERMANENT_UPGRADE in action.hazards:
        return Reversal.NONE
    if action.phase is Phase.MOVE_FILES:
        return Reversal.UNSET_MANAGED
    return Reversal.RESTORE if action.phase in _RESTORED else Reversal.STATEMENTS


_ORDER: Final = (Create, Align, Drop, Keep)

_Change = TypeVar("_Change", bound=SecurableChange)


@dataclass(frozen=True, slots=True)
class TablePlan:
    """All changes of one run, without unchanged securables; it sorts them by name.

    The changes of a securable follow each other: a new schema is created, and then aligned. The order of the names is
    not the order of the statements (`compile`).
    """

    changes: tuple[SecurableChange, ...] = ()
    broken_views: tuple[BrokenView, ...] = field(default=(), compare=False)
    _groups: Mapping[tuple[type, str], list[Any]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.changes, key=_place))
        groups: dict[tuple[type, str], list[Any]] = defaultdict(list)
        for change in ordered:
            groups[type(change), change.name.kind].append(change)
        object.__setattr__(self, "changes", ordered)
        object.__setattr__(self, "_groups", dict(groups))

    def __bool__(self) -> bool:
        return any(not isinstance(change, Keep) for change in self.changes)

    @property
    def create_tables(self) -> tuple[CreateTable, ...]:
        """The tables to create."""
        return self.of_kind(Create, "table")

    @property
    def align_tables(self) -> tuple[AlignTable, ...]:
        """The tables to change."""
        return self.of_kind(Align, "table")

    @property
    def drop_tables(self) -> tuple[DropTable, ...]:
        """The tables to drop."""
        return self.of_kind(Drop, "table")

    @property
    def kept_tables(self) -> tuple[QualifiedName, ...]:
        """The tables that are no longer declared, and stay."""
        return tuple(kept.name for kept in self.of_kind(Keep, "table"))

    @property
    def create_schemas(self) -> tuple[Create[Schema], ...]:
        """The schemas to create."""
        return self.of_kind(Create, "schema")

    @property
    def align_schemas(self) -> tuple[Align[SchemaName], ...]:
        """The schemas to change, also after their creation."""
        return self.of_kind(Align, "schema")

    @property
    def kept_others(self) -> tuple[SecurableName, ...]:
        """Everything else that is no longer declared, and stays, sorted by name."""
        kept = (change.name for change in self.changes if isinstance(change, Keep))
        return tuple(name for name in kept if name.kind != "table")

    @property
    def is_governed(self) -> bool:
        """Whether a function or a policy changes."""
        return any(change.name.kind in ("function", "policy") for change in self.changes)

    @property
    def alignments(self) -> tuple[Align[Any], ...]:
        """The alignments of all securables."""
        return tuple(change for change in self.changes if isinstance(change, Align))

    def table_actions(self) -> Iterator[TableAction]:
        """Yield the action of each table, sorted by table name."""
        yield from (change for change in self._changed() if change.name.kind == "table")

    def changed_names(self) -> tuple[SecurableName, ...]:
        """Return the names of what is created, changed or dropped, each once, sorted."""
        names = (change.name for change in self._changed())
        return tuple({(name.kind, name.key): name for name in names}.values())

    def with_aligned_tables(self, aligned: Iterable[AlignTable]) -> TablePlan:
        """Return this plan with other alignments of tables."""
        others = (
            change for change in self.changes if not isinstance(change, Align) or change.name.kind != "table"
        )
        return TablePlan((*others, *aligned), self.broken_views)

    def of_kind(self, change_type: type[_Change], kind: str) -> tuple[_Change, ...]:
        """Return the changes of one type to the securables of one kind, sorted by name."""
        return tuple(self._groups.get((change_type, kind), ()))

    def _changed(self) -> Iterator[Any]:
        return (change for change in self.changes if not isinstance(change, Keep))


def _place(change: SecurableChange) -> tuple[str, int]:
    return change.name.key, _ORDER.index(type(change))
