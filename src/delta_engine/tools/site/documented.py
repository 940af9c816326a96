"""What the site shows, as data: declared models, with what the deployment state says of each, and how they connect."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, unique
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Final, TypeAlias
from urllib.parse import quote, urlsplit

from typing_extensions import assert_never

from delta_engine.aspects.policy_reach import Reach, inherited_tags, reaches
from delta_engine.aspects.view_sides import relation_columns
from delta_engine.deployment.document import DeploymentState
from delta_engine.drift.drifted_resources import Finding
from delta_engine.errors import InvalidCommandError, SourceLocation
from delta_engine.models import (
    AbacPolicy,
    Function,
    PolicyScope,
    QualifiedName,
    Schema,
    SchemaName,
    Table,
    View,
    resource_key,
)
from delta_engine.models.constraints import referenced_table
from delta_engine.models.policies import ScopeKind
from delta_engine.ownership.recorded import RecordedDifference
from delta_engine.sql.view_queries import Reads, read_columns, read_relations
from delta_engine.tools.site.files import function_path, policy_path, schema_path, table_path, view_path

Documented: TypeAlias = Table | View | Function | AbacPolicy
"""A model that has a page with a status."""


@unique
class DocumentedStatus(Enum):
    """The status of what a model declares, by its record."""

    HEALTHY = "healthy"
    DRIFTED = "drifted"
    DEGRADED = "degraded"
    FAILED = "failed"
    UNKNOWN = "unknown"
    MISSING = "missing"
    NOT_APPLIED = "not applied"

    @property
    def meaning(self) -> str:
        """What it says."""
        return _MEANINGS[self]


_MEANINGS: Final[Mapping[DocumentedStatus, str]] = {
    DocumentedStatus.HEALTHY: "It matches the last apply.",
    DocumentedStatus.DRIFTED: "It was changed outside the engine.",
    DocumentedStatus.DEGRADED: "The last run applied a part of its changes.",
    DocumentedStatus.FAILED: "The last run failed before it changed anything here.",
    DocumentedStatus.UNKNOWN: "A run was interrupted while it changed this.",
    DocumentedStatus.MISSING: "It was applied, but no longer exists.",
    DocumentedStatus.NOT_APPLIED: "No run has applied it yet.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What the deployment state says of what a model declares.

    Args:
        at: when it was last applied; None if it never was.
        by: the principal that applied it.
        run: the run that changed it last; None if it is not recorded.
        is_behind: whether the model has changed since.
        drift: how it differs from what was applied: recorded differences, or the findings of a report.
        problem: why the status is what it is; empty without a problem.
    """

    status: DocumentedStatus
    at: datetime | None = None
    by: str | None = None
    run: str | None = None
    is_behind: bool = False
    drift: Sequence[RecordedDifference | Finding] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SourceLinks:
    """How the places of models become addresses of a repository's pages.

    Args:
        template: such as `https://example.com/blob/main/{file}#L{line}`; empty for no links.

    Raises:
        ConfigError: it is not the address of a web page, or lacks `{file}`.
    """

    template: str = ""

    @classmethod
    def of(cls, address: str, folder: str) -> SourceLinks:
        """Return the links for an address as a user gives it: with `{file}`, or that of a repository.

        Args:
            folder: the folder of the project inside its repository; empty if it is the repository.
        """
        if not address or "{" in address:
            return cls(address)
        given = _SSH.sub(r"https://\1/\2", address.strip()).removesuffix("/").removesuffix(".git")
        host = urlsplit(given).hostname or ""
        page = next((page for name, page in _PAGES if name in host), None)
        if page is None or urlsplit(given).path.count("/") < _LEAST_PARTS:
            raise _no_address(address)
        file = f"{quote(folder)}/{{file}}" if folder else "{file}"
        return cls(f"{given}{page.replace('{file}', file)}")

    def __post_init__(self) -> None:
        if not self.template:
            return
        without = self.template.replace("{file}", "").replace("{line}", "")
        is_address = self.template.startswith(("https://", "http://"))
        if not is_address or "{file}" not in self.template or "{" in without or "}" in without:
            raise _no_address(self.template)

    def url(self, place: SourceLocation) -> str | None:
        """Return the address of a place; None without a template, and for files outside the project."""
        if not self.template or place.file.startswith("/"):
            return None
        line = "1" if place.line is None else str(place.line)
        return self.template.replace("{line}", line).replace("{file}", quote(place.file))


_SSH: Final = re.compile(r"(?:ssh://)?git@([^:/]+)[:/](.+)")

_LEAST_PARTS: Final = 2
"""The slashes before the owner and the name of a repository."""

_PAGES: Final = (
    ("github", "/blob/HEAD/{file}#L{line}"),
    ("gitlab", "/-/blob/HEAD/{file}#L{line}"),
    ("bitbucket.org", "/src/HEAD/{file}#lines-{line}"),
    ("dev.azure.com", "?path=/{file}&line={line}"),
)
"""The page of a file in the repositories of a host: what the host's name contains, and what follows the address."""


def _no_address(address: str) -> InvalidCommandError:
    return InvalidCommandError(
        f"--source-url: {address!r} is not the address of a repository on a known host, nor an address with a place "
        "for the file",
        way_out="Write the repository's address (GitHub, GitLab, Bitbucket, Azure DevOps), or one like "
        "'https://example.com/blob/main/{file}#L{line}'.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A foreign key, seen from one of its tables, or what a view reads of a table or another view.

    Args:
        name: of the foreign key; empty for a read.
        columns: of the table whose page it is on; empty for a read.
        other: the table or view at its other end.
        path: of its page; None if the site has no page for it.
        other_columns: the columns at its other end; for a read `*` stands for columns that are unknown.
        is_read: whether a view reads the other end.
    """

    name: str
    columns: tuple[str, ...]
    other: QualifiedName
    path: str | None
    other_columns: tuple[str, ...]
    is_read: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """A column of a table, or its rows, that a mask or a filter protects, as far as declared tags tell.

    Args:
        column: None for the rows.
        function: the key of the function.
        policy: None for a mask or a filter of the table's own.
    """

    table: Table
    column: str | None
    function: str
    policy: AbacPolicy | None


@dataclass(frozen=True, kw_only=True)
class Documentation:
    """Everything that the site shows of one environment.

    Args:
        tables: sorted by name.
        views: sorted by name.
        functions: sorted by name.
        policies: sorted by key.
        schemas: the declared schemas, by their keys.
        deployment: None if the deployment state was not read, or there is none yet.
        why_not_applied: why there is no deployment state to show; empty if there is one.
        applied: by the keys of resources; empty if the deployment state was not read.
    """

    environment: str
    tables: tuple[Table, ...]
    views: tuple[View, ...] = ()
    functions: tuple[Function, ...] = ()
    policies: tuple[AbacPolicy, ...] = ()
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    deployment: DeploymentState | None = None
    why_not_applied: str = ""
    applied: Mapping[str, Applied] = field(default_factory=dict)
    links: SourceLinks = SourceLinks()

    @cached_property
    def by_key(self) -> Mapping[str, Table | View]:
        """The tables and views by their keys."""
        models: list[Table | View] = [*self.views, *self.tables]
        return {model.key: model for model in models}

    @property
    def models(self) -> tuple[Documented, ...]:
        """What has a page with a status."""
        return (*self.tables, *self.views, *self.functions, *self.policies)

    @cached_property
    def function_by_key(self) -> Mapping[str, Function]:
        """The functions by their keys."""
        return {function.key: function for function in self.functions}

    @cached_property
    def protected(self) -> tuple[Protected, ...]:
        """What masks and filters protect, the tables' own and those of policies; sorted by table."""
        return tuple(
            Protected(
                table=table,
                column=next((column.name for column in table.columns if column.key == reach.column), None),
                function=reach.function,
                policy=reach.policy,
            )
            for table in self.tables
            for reach in self._reaches(table)
        )

    def _reaches(self, table: Table) -> Sequence[Reach]:
        name = table.qualified_name
        return reaches(name, table, self.policies, inherited_tags(name, self.schemas.values()))

    @cached_property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """The names of the columns of tables and views by key, without views whose columns are unknown."""
        return relation_columns(self.tables, self.views)

    @cached_property
    def reads(self) -> Mapping[str, Reads | None]:
        """What views read by their keys; None for a query that the engine cannot read."""
        return {view.key: read_columns(view.query, self.columns) for view in self.views}

    def path_of(self, key: str) -> str | None:
        """Return the path of the page of a table or view; None if the site has no page for it."""
        model = self.by_key.get(key)
        return page_path(model) if model else None

    def path_of_scope(self, scope: PolicyScope) -> str | None:
        """Return the path of the page of a policy's schema or table; None if the site has no page for it."""
        if scope.kind is ScopeKind.TABLE:
            return self.path_of(scope.key)
        names = (name for name, *_ in self.grouped() if scope.kind is ScopeKind.SCHEMA)
        return next((schema_path(name) for name in names if name.key == scope.key), None)

    def links_of(self, model: Table | View) -> Iterator[Link]:
        """Yield the foreign keys of a table, or what a view reads."""
        return self.references(model) if isinstance(model, Table) else iter(self._sources[model.key])

    @cached_property
    def _sources(self) -> Mapping[str, tuple[Link, ...]]:
        return {view.key: tuple(self._sources_of(view)) for view in self.views}

    def _sources_of(self, view: View) -> Iterator[Link]:
        reads = self.reads[view.key]
        if reads is None:
            return
        for name in sorted(read_relations(view.query) or (), key=attrgetter("key")):
            names = reads.columns[name.key]
            is_unknown = name.key in reads.spread and not reads.is_sure
            present = self.columns.get(name.key, sorted(names))
            yield Link(
                name="",
                columns=(),
                other=relation_name(self.by_key[name.key]) if name.key in self.by_key else name,
                path=self.path_of(name.key),
                other_columns=("*",)
                if is_unknown
                else tuple(each for each in present if each.lower() in names),
                is_read=True,
            )

    @cached_property
    def readers(self) -> Mapping[str, Sequence[tuple[View, Link]]]:
        """The views that read a table or view, by its key, with what they read."""
        readers: dict[str, list[tuple[View, Link]]] = defaultdict(list)
        for view in self.views:
            for link in self._sources[view.key]:
                readers[link.other.key].append((view, link))
        return readers

    def references(self, table: Table) -> Iterator[Link]:
        """Yield the foreign keys of a table that name a table."""
        for key in table.foreign_keys:
            referenced = referenced_table(table.qualified_name, key)
            if referenced is not None:
                yield Link(
                    name=key.name or "",
                    columns=key.columns,
                    other=referenced,
                    path=self.path_of(referenced.key),
                    other_columns=key.referenced_columns,
                )

    def grouped(self) -> Iterator[tuple[SchemaName, list[Table], list[View], list[Function]]]:
        """Yield the schemas that have tables, views or functions, sorted, with all of them."""
        in_schemas: list[Table | View | Function] = [*self.tables, *self.views, *self.functions]
        for _, group in groupby(sorted(in_schemas, key=_schema_key), key=_schema_key):
            models = list(group)
            name = SchemaName(models[0].catalog_name, models[0].schema_name)
            yield (
                name,
                [model for model in models if isinstance(model, Table)],
                [model for model in models if isinstance(model, View)],
                [model for model in models if isinstance(model, Function)],
            )

    def applied_of(self, model: Documented) -> Applied | None:
        """Return what the deployment state says of a model; None if it was not read."""
        return self.applied.get(resource_key(model.qualified_name))

    def status_of(self, model: Documented) -> DocumentedStatus | None:
        """Return the status of a model; None if no deployment state was read."""
        applied = self.applied_of(model)
        return None if applied is None else applied.status


def page_path(model: Documented) -> str:
    """Return the path of a model's page."""
    match model:
        case Table():
            return table_path(model)
        case View():
            return view_path(model)
        case Function():
            return function_path(model.qualified_name)
        case AbacPolicy():
            return policy_path(model)
    assert_never(model)


def relation_name(model: Table | View) -> QualifiedName:
    """Return the name of a table or view, which share their names."""
    name = model.table_name if isinstance(model, Table) else model.view_name
    return QualifiedName(model.catalog_name, model.schema_name, name)


def _schema_key(model: Table | View | Function) -> tuple[str, str]:
    return model.catalog_name.lower(), model.schema_name.lower()
