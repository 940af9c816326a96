"""The principal that runs the statements, its groups, and its privileges on catalogs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.errors import StatementError
from delta_engine.models import Grants
from delta_engine.models.parts import to_grants
from delta_engine.sql.queries import sql_catalog_rights, sql_memberships

ALL_ACCOUNT_USERS: Final = "account users"
"""The group of every user and service principal of an account (docs.databricks.com: "Principal")."""

_OWNER: Final = "OWNER"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The principal that runs the statements, and its known groups.

    Args:
        name: a mail address, or the application id of a service principal.
        groups: the requested groups that it is a member of, in lower case.
    """

    name: str
    groups: frozenset[str] = frozenset()

    def is_one_of(self, names: Iterable[str | None]) -> bool:
        """Whether the principal, or one of its groups, has one of the names."""
        mine = {self.name.lower(), ALL_ACCOUNT_USERS, *self.groups}
        return any(name is not None and name.lower() in mine for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """The owner of a securable, and the privileges on it by principal."""

    owner: str | None = None
    grants: Grants = field(default_factory=dict)


class PrincipalReader:
    """Reads the current principal and its privileges from Unity Catalog, with one statement per method."""

    def __init__(self, runner: SqlRunner) -> None:
        self._runner = runner

    def principal(self, candidates: Collection[str]) -> Principal:
        """Return the current principal, with the candidates among its groups; StatementError if none is named."""
        names = sorted(candidates)
        sql = sql_memberships(names)
        who, *answers = next((row.values() for row in self._runner.run(sql)), [None])
        if who is None:
            raise StatementError("the platform does not name the principal", sql=sql, error_class=None)
        groups = (name.lower() for name, answer in zip(names, answers, strict=True) if answer)
        return Principal(name=str(who), groups=frozenset(groups))

    def catalogs(
        self, names: Collection[str], principal: Principal
    ) -> tuple[Mapping[str, Permissions], Principal]:
        """Return permissions by catalog (lower case), and the principal with the groups that hold them."""
        owners: dict[str, str] = {}
        granted: dict[str, dict[str, list[str]]] = {name: {} for name in names}
        for row in self._runner.run(
            sql_catalog_rights(sorted(names), owner=_OWNER, all_users=ALL_ACCOUNT_USERS)
        ):
            catalog, grantee, privilege = (str(row[key]) for key in ("catalog", "grantee", "privilege"))
            if privilege == _OWNER:
                owners[catalog] = grantee
            else:
                granted[catalog].setdefault(grantee, []).append(privilege)
        mine = {*owners.values(), *(grantee for grants in granted.values() for grantee in grants)}
        permissions = {
            name: Permissions(owner=owners.get(name), grants=to_grants(grants))
            for name, grants in granted.items()
        }
        return permissions, replace(principal, groups=principal.groups | {name.lower() for name in mine})
