"""The rights that statements need on Unity Catalog, by type of action; most of them are declared by aspects."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from delta_engine.actions import CreateSchema, CreateTable, DropTable
from delta_engine.aspects import ASPECTS, schemas
from delta_engine.aspects.rights import Requirement, Right, takes_manage

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
        schemas.SetSchemaComment: takes_manage("COMMENT ON SCHEMA", "COMMENT ON"),
        **{action: right for aspect in ASPECTS for action, right in aspect.actions.items()},
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
