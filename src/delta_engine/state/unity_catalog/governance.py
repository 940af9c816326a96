"""Reads the functions of schemas and the policies of catalogs, schemas and tables, with the fewest round trips.

databricks-sdk lists the functions of a schema, or the policies of a securable, in one call. SQL reads the same: two
views of a catalog, and for policies a list and a description of each.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from delta_engine.backends.sql_runner import Row, SqlRunner
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models.functions import FunctionName
from delta_engine.models.policies import PolicyName, PolicyScope
from delta_engine.sql.policies import sql_describe_policy, sql_show_policies
from delta_engine.state.failed_reads import require_answers, unreadable
from delta_engine.state.governed_tags import TagPolicyListing
from delta_engine.state.policy_states import PolicyState
from delta_engine.state.unity_catalog.information_schema import SystemView
from delta_engine.state.unity_catalog.policy_descriptions import (
    described_policy,
    listed_policy,
    shown_policies,
)
from delta_engine.state.unity_catalog.routines import (
    PARAMETERS,
    ROUTINES,
    RoutineAnswer,
    function_states,
    listed_function,
)
from delta_engine.state.unmanaged import Unmanaged
from delta_engine.telemetry.logs import log

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import FunctionInfo, PolicyInfo

_Answer = TypeVar("_Answer")

ViewQuery: TypeAlias = Callable[[SystemView, Collection[str]], Sequence[Row]]
"""Returns the rows of a view about some schemas of a catalog."""

PolicyAnswer: TypeAlias = PolicyState | Unmanaged | CatalogReadError
"""A policy, one that the engine does not manage, or why it cannot be read."""


class FunctionListing(Protocol):
    """The used part of the SDK's `WorkspaceClient.functions`."""

    def list(
        self,
        catalog_name: str,
        schema_name: str,
        *,
        include_browse: bool | None = None,
        max_results: int | None = None,
    ) -> Iterable[FunctionInfo]:
        """Return the functions of a schema; only `include_browse` lists those whose body is hidden."""
        ...


class PolicyListing(Protocol):
    """The used part of the SDK's `WorkspaceClient.policies`."""

    def list_policies(self, on_securable_type: str, on_securable_fullname: str) -> Iterable[PolicyInfo]:
        """Return the policies of a securable, without those that it inherits."""
        ...


class GovernanceListing(Protocol):
    """The used part of the SDK's `WorkspaceClient`."""

    @property
    def functions(self) -> FunctionListing:
        """Lists functions."""

    @property
    def policies(self) -> PolicyListing:
        """Lists policies."""

    @property
    def tag_policies(self) -> TagPolicyListing:
        """Lists governed tags."""


@dataclass(slots=True)
class GovernanceReader:
    """Reads functions and policies. A method starts queries in a pool, and returns what waits for their answers.

    Args:
        listing: databricks-sdk's listings; without them, SQL reads the same.
    """

    runner: SqlRunner
    listing: GovernanceListing | None = None

    def functions(
        self, pool: Executor, query: ViewQuery, catalog: str, schemas: Collection[str]
    ) -> Callable[[], Mapping[str, RoutineAnswer]]:
        """Ask for the functions of existing schemas, without grants and tags; the answer is by `FunctionName.key`.

        Raises:
            StatementError: the views cannot be read.
            CatalogReadError: a row of the views may be about any function.
        """
        listings = {
            schema: pool.submit(self._list_functions, catalog, schema)
            for schema in sorted(schemas)
            if self.listing is not None
        }
        rows = [] if listings else _of_views(pool, query, schemas)

        def collected() -> Mapping[str, RoutineAnswer]:
            listed = {schema: listing.result() for schema, listing in listings.items()}
            unlisted = [schema for schema, functions in listed.items() if functions is None]
            asked = rows or (_of_views(pool, query, unlisted) if unlisted else [])
            answers = dict(function_states(*(view.result() for view in asked)) if asked else {})
            for schema, functions in listed.items():
                answers |= {(schema, name.lower()): answer for name, answer in (functions or {}).items()}
            return {FunctionName(catalog, *key).key: answers[key] for key in sorted(answers)}

        return collected

    def policies(
        self, pool: Executor, scopes: Mapping[PolicyScope, Collection[PolicyName]]
    ) -> Callable[[], Mapping[str, PolicyAnswer]]:
        """Ask for the policies of existing securables, without inherited ones; the answer is by `PolicyName.key`.

        Args:
            scopes: the securables, each with those policies that have a refusal if it cannot be read. Its other
                policies are then unknown.

        Raises:
            StatementError: the failure concerns every securable.
        """
        listed = {scope: pool.submit(self._policies_on, scope) for scope in scopes}

        def collected() -> Mapping[str, PolicyAnswer]:
            answers: dict[str, PolicyAnswer] = {}
            described: dict[PolicyName, Future[PolicyAnswer]] = {}
            for scope, query in listed.items():
                match query.result():
                    case CatalogReadError() | StatementError() as error:
                        answers |= {name.key: _refusal(name, error) for name in scopes[scope]}
                    case list() as names:
                        described |= {name: pool.submit(self._described_policy, name) for name in names}
                    case states:
                        answers |= states
            return answers | {name.key: query.result() for name, query in described.items()}

        return collected

    def _list_functions(self, catalog: str, schema: str) -> Mapping[str, RoutineAnswer] | None:
        listing = self.listing
        if listing is None:
            return None
        return self._listed(
            lambda: {
                str(info.name): listed_function(info)
                for info in listing.functions.list(catalog, schema, include_browse=True, max_results=0)
            }
        )

    def _policies_on(
        self, scope: PolicyScope
    ) -> Mapping[str, PolicyAnswer] | list[PolicyName] | CatalogReadError | StatementError:
        """Return the policies of a securable if they are listed, the names of those to describe, or what failed."""
        if (listing := self.listing) is not None:
            kind, name = scope.kind.value.upper(), ".".join(scope.parts)
            policies = self._listed(
                lambda: {
                    PolicyName(scope, str(info.name)).key: listed_policy(info)
                    for info in listing.policies.list_policies(kind, name)
                }
            )
            if policies is not None:
                return policies
        try:
            return [
                PolicyName(scope, name) for name in shown_policies(self.runner.run(sql_show_policies(scope)))
            ]
        except CatalogReadError as error:
            return error
        except StatementError as error:
            require_answers(error, f"the policies on {scope}")
            return error

    def _described_policy(self, name: PolicyName) -> PolicyAnswer:
        try:
            return described_policy(self.runner.run(sql_describe_policy(name)))
        except (CatalogReadError, StatementError) as error:
            if isinstance(error, StatementError):
                require_answers(error, f"policy {name}")
            return _refusal(name, error)

    def _listed(self, ask: Callable[[], Mapping[str, _Answer]]) -> Mapping[str, _Answer] | None:
        """Return a listing; None if the SDK fails: SQL reads the same, or says why not."""
        from databricks.sdk.errors.base import DatabricksError

        try:
            return ask()
        except DatabricksError:  # about this securable
            return None
        except Exception as error:  # noqa: BLE001 - the listing only saves time; SQL reads the same
            self.listing = None
            _log_fallback(error)
            return None


def _of_views(pool: Executor, query: ViewQuery, schemas: Collection[str]) -> Sequence[Future[Sequence[Row]]]:
    return [pool.submit(query, view, schemas) for view in (ROUTINES, PARAMETERS)]


def _refusal(name: PolicyName, error: CatalogReadError | StatementError) -> CatalogReadError:
    if isinstance(error, StatementError):
        return unreadable(name, error)
    return CatalogReadError(error.reason, securable=f"{name.kind} {name}", way_out=error.way_out)


def _log_fallback(error: Exception) -> None:
    log(
        logging.WARNING,
        "functions and policies not listed, read in SQL",
        error=f"{type(error).__name__}: {error}",
    )
