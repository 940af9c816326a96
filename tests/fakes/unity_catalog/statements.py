"""What the fake catalog understands: every statement for Databricks as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from delta_engine.models import CheckConstraint, Column, ColumnMask, ForeignKey, PrimaryKey, RowFilter
from delta_engine.models.types import DataType
from delta_engine.state.states import TableState

Path: TypeAlias = tuple[str, ...]
"""A column's name and the way into it."""

Tags: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CreateSchema:
    name: Path
    comment: str = ""


@dataclass(frozen=True, slots=True)
class CreateTable:
    name: Path
    state: TableState


@dataclass(frozen=True, slots=True)
class DropTable:
    name: Path
    if_exists: bool


@dataclass(frozen=True, slots=True)
class AlterTable:
    name: Path
    change: TableChange


@dataclass(frozen=True, slots=True)
class AlterSchema:
    name: Path
    change: SetTags | UnsetTags | SetOwner


@dataclass(frozen=True, slots=True)
class CommentOn:
    kind: str
    name: Path
    comment: str


@dataclass(frozen=True, slots=True)
class Grant:
    kind: str
    name: Path
    privileges: tuple[str, ...]
    principal: str


@dataclass(frozen=True, slots=True)
class Revoke:
    kind: str
    name: Path
    privileges: tuple[str, ...]
    principal: str


@dataclass(frozen=True, slots=True)
class Question:
    form: str
    name: Path
    limit: int = 0


Statement: TypeAlias = (
    CreateSchema | CreateTable | DropTable | AlterTable | AlterSchema | CommentOn | Grant | Revoke
)


@dataclass(frozen=True, slots=True)
class AddColumns:
    columns: tuple[tuple[Path, Column], ...]


@dataclass(frozen=True, slots=True)
class DropColumns:
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class RenameColumn:
    path: Path
    name: str


@dataclass(frozen=True, slots=True)
class AlterColumns:
    changes: tuple[tuple[Path, ColumnChange], ...]


@dataclass(frozen=True, slots=True)
class ClusterBy:
    paths: tuple[Path, ...]
    is_automatic: bool = False


@dataclass(frozen=True, slots=True)
class SetProperties:
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UnsetProperties:
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetTags:
    tags: Tags


@dataclass(frozen=True, slots=True)
class UnsetTags:
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddConstraint:
    constraint: PrimaryKey | ForeignKey | CheckConstraint


@dataclass(frozen=True, slots=True)
class DropConstraint:
    name: str
    if_exists: bool


@dataclass(frozen=True, slots=True)
class SetRowFilter:
    row_filter: RowFilter | None


@dataclass(frozen=True, slots=True)
class SetOwner:
    owner: str


@dataclass(frozen=True, slots=True)
class RenameTable:
    name: Path


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
    | SetOwner
    | RenameTable
)


@dataclass(frozen=True, slots=True)
class SetComment:
    comment: str


@dataclass(frozen=True, slots=True)
class SetType:
    data_type: DataType


@dataclass(frozen=True, slots=True)
class SetNullable:
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class SetDefault:
    default: str | None


@dataclass(frozen=True, slots=True)
class SetMask:
    mask: ColumnMask | None


@dataclass(frozen=True, slots=True)
class MoveColumn:
    after: str | None  # None: to the front


ColumnChange: TypeAlias = (
    SetComment | SetType | SetNullable | SetDefault | SetMask | MoveColumn | SetTags | UnsetTags
)
