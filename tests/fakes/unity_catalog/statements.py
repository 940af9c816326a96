"""What the fake catalog understands: every statement for Databricks as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from delta_engine.models import CheckConstraint, Column, ColumnMask, ForeignKey, PrimaryKey, RowFilter
from delta_engine.models.types import DataType
from delta_engine.models.views import SchemaMode
from delta_engine.state.function_states import FunctionState
from delta_engine.state.states import TableState

if TYPE_CHECKING:
    from tests.fakes.unity_catalog.policies import Policy
    from tests.fakes.unity_catalog.user_views import ShownColumn

Path: TypeAlias = tuple[str, ...]
"""A column's name and the way into it."""

Tags: TypeAlias = Mapping[str, str]


class CreateSchema(NamedTuple):
    name: Path
    comment: str = ""


class DropSchema(NamedTuple):
    name: Path


class CreateTable(NamedTuple):
    name: Path
    state: TableState
    collation: str | None = None


class RewriteTable(NamedTuple):
    name: Path
    state: TableState  # without columns, which stay
    collation: str | None = None


class DropTable(NamedTuple):
    name: Path
    if_exists: bool


class AlterTable(NamedTuple):
    name: Path
    change: TableChange


class AlterSchema(NamedTuple):
    name: Path
    change: SchemaChange


class CommentOn(NamedTuple):
    kind: str
    name: Path
    comment: str


class Grant(NamedTuple):
    kind: str
    name: Path
    privileges: tuple[str, ...]
    principal: str


class Revoke(NamedTuple):
    kind: str
    name: Path
    privileges: tuple[str, ...]
    principal: str


class Question(NamedTuple):
    form: str
    name: Path
    limit: int = 0


class Update(NamedTuple):
    name: Path
    columns: tuple[str, ...]
    condition: str


class Restore(NamedTuple):
    name: Path
    version: int


class CreateFunction(NamedTuple):
    name: Path
    state: FunctionState
    replaces: bool


class DropFunction(NamedTuple):
    name: Path
    if_exists: bool


class AlterFunction(NamedTuple):
    name: Path
    change: FunctionChange


class CreatePolicy(NamedTuple):
    name: Path  # the securable's
    policy: Policy
    replaces: bool


class DropPolicy(NamedTuple):
    name: Path  # the securable's
    policy: str


class CreateView(NamedTuple):
    name: Path
    query: str
    columns: tuple[ShownColumn, ...] | None
    mode: SchemaMode | None
    comment: str
    replaces: bool


class AlterView(NamedTuple):
    name: Path
    change: ViewChange


class DropView(NamedTuple):
    name: Path
    if_exists: bool


Statement: TypeAlias = (
    CreateSchema
    | CreateView
    | AlterView
    | DropView
    | CreateFunction
    | DropFunction
    | AlterFunction
    | CreatePolicy
    | DropPolicy
    | Restore
    | RewriteTable
    | DropSchema
    | CreateTable
    | DropTable
    | AlterTable
    | AlterSchema
    | CommentOn
    | Grant
    | Revoke
    | Update
)


class AddColumns(NamedTuple):
    columns: tuple[tuple[Path, Column], ...]
    after: Mapping[str, str]


class DropColumns(NamedTuple):
    paths: tuple[Path, ...]


class RenameColumn(NamedTuple):
    path: Path
    name: str


class AlterColumns(NamedTuple):
    changes: tuple[tuple[Path, ColumnChange], ...]


class ClusterBy(NamedTuple):
    paths: tuple[Path, ...]
    is_automatic: bool = False


class SetProperties(NamedTuple):
    properties: Mapping[str, str]


class UnsetProperties(NamedTuple):
    keys: tuple[str, ...]


class SetTags(NamedTuple):
    tags: Tags


class UnsetTags(NamedTuple):
    keys: tuple[str, ...]


class UniqueConstraint(NamedTuple):
    name: str
    columns: tuple[str, ...]


class AddConstraint(NamedTuple):
    constraint: PrimaryKey | ForeignKey | CheckConstraint | UniqueConstraint


class DropConstraint(NamedTuple):
    name: str
    if_exists: bool


class SetRowFilter(NamedTuple):
    row_filter: RowFilter | None


class SetValue(NamedTuple):
    field: str
    value: str


class RenameTable(NamedTuple):
    name: Path


class SetManaged(NamedTuple):
    pass


class UnsetManaged(NamedTuple):
    pass


TableChange: TypeAlias = (
    AddColumns
    | DropColumns
    | RenameColumn
    | AlterColumns
    | ClusterBy
    | SetProperties
    | UnsetProperties
    | SetTags
    | UnsetTags
    | AddConstraint
    | DropConstraint
    | SetRowFilter
    | SetValue
    | RenameTable
    | SetManaged
    | UnsetManaged
)

SchemaChange: TypeAlias = SetTags | UnsetTags | SetValue
FunctionChange: TypeAlias = SetTags | UnsetTags | SetValue


class SetQuery(NamedTuple):
    query: str


class SetMode(NamedTuple):
    mode: SchemaMode


ViewChange: TypeAlias = SetQuery | SetMode | RenameTable | SetTags | UnsetTags | SetValue


class SetComment(NamedTuple):
    comment: str


class SetType(NamedTuple):
    data_type: DataType


class SetNullable(NamedTuple):
    is_nullable: bool


class SetDefault(NamedTuple):
    default: str | None


class SetMask(NamedTuple):
    mask: ColumnMask | None


class MoveColumn(NamedTuple):
    after: str | None  # None: to the front


ColumnChange: TypeAlias = (
    SetComment | SetType | SetNullable | SetDefault | SetMask | MoveColumn | SetTags | UnsetTags
)
