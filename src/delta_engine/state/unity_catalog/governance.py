"""Reads the functions of schemas and the policies of catalogs, schemas and tables, with the fewest round trips.

databricks-sdk lists the functions of a schema, or the policies of a securable, in one call. SQL reads the same: three
views of a catalog, and for policies a list and a description of each. Grants on functions always come from the view.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.models import SchemaName
from delta_engine.models.functions import FunctionName
from delta_engine.models.policies import PolicyName, PolicyScope
from delta_engine.sql.policies import sql_describe_policy, sql_show_policies
from delta_engine.state.function_states import FunctionState, OtherRoutine
from delta_engine.state.policy_states import OtherPolicy, PolicyState
from delta_engine.state.unity_catalog.policy_descriptions import (
    described_policy,
    listed_policy,
    shown_policies,
)
from delta_engine.state.unity_catalog.routines import (
    PARAMETERS,
    ROUTINE_PRIVILEGES,
    ROUTINES,
    function_states,
    granted_on,
    listed_function,
)
from delta_engine.telemetry.logs import log

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import FunctionInfo, PolicyInfo

_Listed = TypeVar("_Listed")


class FunctionListing(Protocol):
    """The used part of the SDK's `WorkspaceClient.functions`."""

    def list(
        self, catalog_name: str, schema_name: str, *, include_browse: bool | None = None
    ) -> Iterable[FunctionInfo]:
        """Return the functions of a schema; only `include_browse` lists those whose body is hidden."""
        ...


class PolicyListing(Protocol):
    """The used part of the SDK's `WorkspaceClient.policies`."""

    def list_policies(
        self,
        on_securable_type: str,
        on_securable_fullname: str,
        *,
        include_inherited: bool | None = None,
    ) -> Iterable[PolicyInfo]:
        """Return the policies of a securable."""
        ...


@dataclass(slots=True)
class GovernanceReader:
    """Reads functions and policies.

    Args:
        function_listing: None reads functions in SQL.
        policy_listing: None reads policies in SQL.
    """

    runner: SqlRunner
    function_listing: FunctionListing | None = None
    policy_listing: PolicyListing | None = None

    def functions(self, schemas: Iterable[SchemaName]) -> Mapping[str, FunctionState | OtherRoutine]:
        """Return the functions of existing schemas by `FunctionName.key`; raises StatementError or CatalogReadError."""
        by_catalog: dict[str, set[str]] = defaultdict(set)
        for schema in schemas:
            by_catalog[schema.catalog.lower()].add(schema.schema.lower())
        states: dict[str, FunctionState | OtherRoutine] = {}
        for catalog, names in sorted(by_catalog.items()):
            listed = self._listed_functions(catalog, names)
            states |= self._described_functions(catalog, names) if listed is None else listed
        return states

    def policies(self, scopes: Iterable[PolicyScope]) -> Mapping[str, PolicyState | OtherPolicy]:
        """Return the policies of existing securables, without inherited ones, by `PolicyName.key`.

        Raises:
            StatementError: they cannot be read, such as without READ METADATA or MANAGE on the securable.
            CatalogReadError: an answer has another form than documented.
        """
        states: dict[str, PolicyState | OtherPolicy] = {}
        for scope in sorted({*scopes}, key=str):
            listed = self._listed_policies(scope)
            states |= self._described_policies(scope) if listed is None else listed
        return states

    def _listed_functions(
        self, catalog: str, schemas: Iterable[str]
    ) -> dict[str, FunctionState | OtherRoutine] | None:
        listing = self.function_listing
        if listing is None:
            return None
        states: dict[str, FunctionState | OtherRoutine] = {}
        for schema in sorted(schemas):
            infos = _listed(partial(listing.list, catalog, schema, include_browse=True))
            if infos is None:
                self.function_listing = None
                return None
            for info in infos:
                states[FunctionName(catalog, schema, str(info.name)).key] = listed_function(info)
        if any(isinstance(state, FunctionState) for state in states.values()):
            grants = granted_on(catalog, self.runner.run(ROUTINE_PRIVILEGES.query(catalog, schemas)))
            return {
                key: replace(state, grants=grants.get(key, {})) if isinstance(state, FunctionState) else state
                for key, state in states.items()
            }
        return states

    def _described_functions(
        self, catalog: str, schemas: Iterable[str]
    ) -> dict[str, FunctionState | OtherRoutine]:
        views = (ROUTINES, PARAMETERS, ROUTINE_PRIVILEGES)
        rows = [self.runner.run(view.query(catalog, schemas)) for view in views]
        states = function_states(*rows)
        return {FunctionName(catalog, schema, name).key: state for (schema, name), state in states.items()}

    def _listed_policies(self, scope: PolicyScope) -> dict[str, PolicyState | OtherPolicy] | None:
        listing = self.policy_listing
        if listing is None:
            return None
        infos = _listed(partial(listing.list_policies, scope.kind.value.upper(), ".".join(scope.parts)))
        if infos is None:
            self.policy_listing = None
            return None
        return {PolicyName(scope, str(info.name)).key: listed_policy(info) for info in infos}

    def _described_policies(self, scope: PolicyScope) -> dict[str, PolicyState | OtherPolicy]:
        names = (
            PolicyName(scope, name) for name in shown_policies(self.runner.run(sql_show_policies(scope)))
        )
        return {name.key: described_policy(self.runner.run(sql_describe_policy(name))) for name in names}


def _listed(ask: Callable[[], Iterable[_Listed]]) -> Sequence[_Listed] | None:
    """Return a listing; None if the SDK fails: SQL reads the same, or says why not."""
    try:
        return list(ask())
    except Exception as error:  # noqa: BLE001 - the listing only saves time
        log(
            logging.WARNING,
            "functions and policies not listed, read in SQL",
            error=f"{type(error).__name__}: {error}",
        )
        return None
