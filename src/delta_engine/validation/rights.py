"""The rights that statements need on Unity Catalog: data, one entry for each type of action.

The sources are pages of docs.databricks.com. docs/rights.md shows the same as a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from delta_engine.actions import CreateSchema, CreateTable, DropTable
from delta_engine.aspects.check_constraints import CheckAdd, CheckDrop
from delta_engine.aspects.clustering import ChangeClustering
from delta_engine.aspects.column_comments import SetColumnComments
from delta_engine.aspects.column_defaults import DropColumnDefault, SetColumnDefault
from delta_engine.aspects.column_masks import DropColumnMask, SetColumnMask
from delta_engine.aspects.column_order import MoveColumn
from delta_engine.aspects.column_renames import ColumnRename
from delta_engine.aspects.column_tags import SetColumnTags, UnsetColumnTags
from delta_engine.aspects.column_types import ColumnTypeChange
from delta_engine.aspects.columns import ColumnAdd, ColumnDrop, FieldAdd, FieldDrop
from delta_engine.aspects.foreign_keys import ForeignKeyAdd, ForeignKeyDrop
from delta_engine.aspects.generated_columns import ChangeFixedColumn, ChangeGeneration
from delta_engine.aspects.grants import GrantPrivileges, RevokePrivileges
from delta_engine.aspects.location import ChangeLocation
from delta_engine.aspects.not_null_checks import AddNotNullCheck, DropNotNullCheck
from delta_engine.aspects.nullability import ColumnNullabilityChange
from delta_engine.aspects.owner import ChangeOwner
from delta_engine.aspects.partitioning import ChangePartitioning
from delta_engine.aspects.primary_key import PrimaryKeyAdd, PrimaryKeyDrop
from delta_engine.aspects.row_filters import DropRowFilter, SetRowFilter
from delta_engine.aspects.schema_comment import SetSchemaComment
from delta_engine.aspects.table_comment import SetTableComment
from delta_engine.aspects.table_features import ContradictFeature, EnableTableFeature
from delta_engine.aspects.table_names import RenameTable
from delta_engine.aspects.table_properties import SetTableProperties, UnsetTableProperties
from delta_engine.aspects.table_tags import SetTableTags, UnsetTableTags
from delta_engine.models.parts import ALL_PRIVILEGES


class Right(Enum):
    """What a principal needs on an object; owning the object is always enough.

    The values are the privileges of which any one is enough, on the object or on what holds it; the first one is what
    to ask for.
    """

    SELECT = ("SELECT", ALL_PRIVILEGES)
    MODIFY = ("MODIFY", ALL_PRIVILEGES)
    APPLY_TAG = ("APPLY TAG", ALL_PRIVILEGES)
    MANAGE = ("MANAGE",)
    USE_CATALOG = ("USE CATALOG", ALL_PRIVILEGES)
    USE_SCHEMA = ("USE SCHEMA", ALL_PRIVILEGES)
    CREATE_SCHEMA = ("CREATE SCHEMA", ALL_PRIVILEGES)
    CREATE_TABLE = ("CREATE TABLE", ALL_PRIVILEGES)

    @property
    def privilege(self) -> str:
        """The privilege to ask for."""
        privilege: str = self.value[0]
        return privilege


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A kind of statement, and what it takes.

    Args:
        statement: the kind of statement.
        right: the right that the engine looks for.
        demands: what the documentation demands.
        source: the page that says so.
        owners_above: whether owning the schema or the catalog is enough as well.
    """

    statement: str
    right: Right
    demands: str
    source: str
    owners_above: bool = False


_ALTER_TABLE: Final = "ALTER TABLE"
_PRIVILEGES: Final = "Manage privileges in Unity Catalog"


def _modify(statement: str, source: str = _ALTER_TABLE) -> Requirement:
    return Requirement(statement=statement, right=Right.MODIFY, demands="`MODIFY`", source=source)


def _owner(statement: str) -> Requirement:
    """Return what the page on ALTER TABLE demands for "all other operations". MANAGE can take the ownership over."""
    demands = "ownership; `MANAGE` may transfer it"
    return Requirement(statement=statement, right=Right.MANAGE, demands=demands, source=_ALTER_TABLE)


def _manage(statement: str, source: str, demands: str = "ownership or `MANAGE`") -> Requirement:
    return Requirement(statement=statement, right=Right.MANAGE, demands=demands, source=source)


def _tag(statement: str) -> Requirement:
    demands = "`APPLY TAG`, and ASSIGN on a governed tag"
    return Requirement(statement=statement, right=Right.APPLY_TAG, demands=demands, source="SET TAG")


def _grant(statement: str) -> Requirement:
    demands = "ownership of the object, its schema or its catalog, or `MANAGE`"
    return Requirement(
        statement=statement, right=Right.MANAGE, demands=demands, source=_PRIVILEGES, owners_above=True
    )


_WITH_FUNCTION: Final = "ownership or `MANAGE`, and `EXECUTE` on the function"

REQUIREMENTS: Mapping[type, Requirement | None] = MappingProxyType(
    {
        CreateSchema: Requirement(
            statement="CREATE SCHEMA",
            right=Right.CREATE_SCHEMA,
            demands="`CREATE SCHEMA` and `USE CATALOG` on the catalog",
            source="Unity Catalog privileges reference",
        ),
        CreateTable: Requirement(
            statement="CREATE TABLE",
            right=Right.CREATE_TABLE,
            demands="`CREATE TABLE` and `USE SCHEMA` on the schema, `USE CATALOG`; with a location `CREATE EXTERNAL "
            "TABLE` on the external location",
            source="Unity Catalog privileges reference",
        ),
        DropTable: Requirement(
            statement="DROP TABLE",
            right=Right.MANAGE,
            demands="ownership of the table, its schema or its catalog, or `MANAGE`",
            source="DROP TABLE",
            owners_above=True,
        ),
        ColumnAdd: _modify("ADD COLUMNS"),
        FieldAdd: _modify("ADD COLUMNS (fields)"),
        ColumnDrop: _modify("DROP COLUMNS"),
        FieldDrop: _modify("DROP COLUMNS (fields)"),
        ColumnTypeChange: _modify("ALTER COLUMN … TYPE"),
        ColumnNullabilityChange: _modify("ALTER COLUMN … SET or DROP NOT NULL"),
        MoveColumn: _modify("ALTER COLUMN … FIRST or AFTER"),
        SetColumnDefault: _modify("ALTER COLUMN … SET DEFAULT"),
        DropColumnDefault: _modify("ALTER COLUMN … DROP DEFAULT"),
        SetColumnComments: _modify("ALTER COLUMN … COMMENT"),
        SetTableComment: _modify("COMMENT ON TABLE", "COMMENT ON"),
        SetTableProperties: _modify("SET TBLPROPERTIES"),
        UnsetTableProperties: _modify("UNSET TBLPROPERTIES"),
        EnableTableFeature: _modify("SET TBLPROPERTIES (table features)"),
        ColumnRename: _owner("RENAME COLUMN"),
        RenameTable: _owner("RENAME TO"),
        ChangeClustering: _owner("CLUSTER BY"),
        CheckAdd: _owner("ADD CONSTRAINT … CHECK"),
        CheckDrop: _owner("DROP CONSTRAINT (a CHECK)"),
        AddNotNullCheck: _owner("ADD CONSTRAINT … CHECK (NOT NULL on oss)"),
        DropNotNullCheck: _owner("DROP CONSTRAINT (NOT NULL on oss)"),
        PrimaryKeyAdd: _owner("ADD CONSTRAINT … PRIMARY KEY"),
        PrimaryKeyDrop: _owner("DROP CONSTRAINT (a primary key)"),
        ForeignKeyAdd: _owner("ADD CONSTRAINT … FOREIGN KEY"),
        ForeignKeyDrop: _owner("DROP CONSTRAINT (a foreign key)"),
        SetRowFilter: _manage("SET ROW FILTER", "ROW FILTER clause", _WITH_FUNCTION),
        DropRowFilter: _manage("DROP ROW FILTER", "ROW FILTER clause"),
        SetColumnMask: _manage("ALTER COLUMN … SET MASK", "Column mask clause", _WITH_FUNCTION),
        DropColumnMask: _manage("ALTER COLUMN … DROP MASK", "Column mask clause"),
        SetTableTags: _tag("SET TAGS"),
        UnsetTableTags: _tag("UNSET TAGS"),
        SetColumnTags: _tag("ALTER COLUMN … SET TAGS"),
        UnsetColumnTags: _tag("ALTER COLUMN … UNSET TAGS"),
        GrantPrivileges: _grant("GRANT"),
        RevokePrivileges: _grant("REVOKE"),
        ChangeOwner: _manage("OWNER TO", _ALTER_TABLE),
        SetSchemaComment: _manage("COMMENT ON SCHEMA", "COMMENT ON"),
        ChangeFixedColumn: None,
        ChangeGeneration: None,
        ChangeLocation: None,
        ChangePartitioning: None,
        ContradictFeature: None,
    }
)
"""What each type of action takes; None where no statement is ever sent, because a rule refuses it."""

REFERENCED_TABLE: Final = Requirement(
    statement="FOREIGN KEY that references the table",
    right=Right.MANAGE,
    demands="ownership of the referenced table; `MANAGE` may transfer it",
    source="table-constraints command group",
)
"""What a new foreign key takes on the table that it points at."""
