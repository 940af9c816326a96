"""The rights that statements need on Unity Catalog, from docs.databricks.com. docs/rights.md shows them as a table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from delta_engine.models.parts import ALL_PRIVILEGES


class Right(Enum):
    """Privileges on an object or its parents. Any one suffices, as does ownership; the first is the one to request."""

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
        """The privilege to request."""
        privilege: str = self.value[0]
        return privilege


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A kind of statement and the right that it needs; `demands` are the words of the page `source`."""

    statement: str
    right: Right
    demands: str
    source: str
    owners_above: bool = False


ALTER_TABLE: Final = "ALTER TABLE"
_PRIVILEGES: Final = "Manage privileges in Unity Catalog"


def takes_modify(statement: str, source: str = ALTER_TABLE) -> Requirement:
    """Return the requirement of a statement that needs MODIFY."""
    return Requirement(statement=statement, right=Right.MODIFY, demands="`MODIFY`", source=source)


def takes_ownership(statement: str) -> Requirement:
    """Return the requirement of "all other operations" on the page on ALTER TABLE."""
    demands = "ownership; `MANAGE` may transfer it"
    return Requirement(statement=statement, right=Right.MANAGE, demands=demands, source=ALTER_TABLE)


def takes_manage(statement: str, source: str, demands: str = "ownership or `MANAGE`") -> Requirement:
    """Return the requirement of a statement that needs ownership or MANAGE."""
    return Requirement(statement=statement, right=Right.MANAGE, demands=demands, source=source)


def takes_apply_tag(statement: str) -> Requirement:
    """Return the requirement of a statement that sets or unsets tags."""
    demands = "`APPLY TAG`, and ASSIGN on a governed tag"
    return Requirement(statement=statement, right=Right.APPLY_TAG, demands=demands, source="SET TAG")


def takes_grant_option(statement: str) -> Requirement:
    """Return the requirement of GRANT and REVOKE."""
    demands = "ownership of the object, its schema or its catalog, or `MANAGE`"
    return Requirement(
        statement=statement, right=Right.MANAGE, demands=demands, source=_PRIVILEGES, owners_above=True
    )


WITH_FUNCTION: Final = "ownership or `MANAGE`, and `EXECUTE` on the function"
