"""The pages and the search index of the site, as texts by path; all their text is escaped, and secrets are hidden."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from posixpath import dirname, relpath
from typing import TYPE_CHECKING, Any, Final

from delta_engine.models import AbacPolicy, ForeignKey, Function, SchemaName, Table, View
from delta_engine.models.constraints import referenced_table
from delta_engine.report.pages import template_environment, template_text
from delta_engine.sql.function_bodies import called_functions
from delta_engine.sql.policies import policy_function
from delta_engine.sql.readable_types import readable_data_type
from delta_engine.sql.view_queries import read_functions
from delta_engine.telemetry.logs import redacted
from delta_engine.telemetry.visible import counted, shown_moment, visible
from delta_engine.tools.site import files
from delta_engine.tools.site.details import (
    model_facts,
    pair_text,
    shown_columns,
    shown_parameters,
    shown_view_columns,
)
from delta_engine.tools.site.diagram import draw, draw_lineage
from delta_engine.tools.site.documented import (
    Documentation,
    Documented,
    DocumentedStatus,
    Link,
    Protected,
    page_path,
    relation_name,
)

if TYPE_CHECKING:
    from jinja2 import Environment

FORMAT: Final = "delta-engine/docs"
VERSION: Final = 1

_TEMPLATES: Final = Path(__file__).parent / "templates"

_LONGEST_SEARCHED: Final = 300
"""How many characters of a comment can be searched."""


def site_pages(documentation: Documentation) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each file of the site, in no particular order; same input, same texts."""
    renderer = _PageRenderer(documentation)
    yield files.STYLES, template_text("base.css") + (_TEMPLATES / "site.css").read_text("utf-8")
    yield files.SCRIPT, template_text("base.js") + (_TEMPLATES / "site.js").read_text("utf-8")
    yield files.SEARCH_INDEX, search_index(documentation)
    yield files.INDEX, renderer.index()
    for name, tables, views, functions in documentation.grouped():
        yield files.schema_path(name), renderer.schema(name, tables, views, functions)
    for table in documentation.tables:
        yield page_path(table), renderer.table(table)
    for view in documentation.views:
        yield page_path(view), renderer.view(view)
    for function in documentation.functions:
        yield page_path(function), renderer.function(function)
    for policy in documentation.policies:
        yield page_path(policy), renderer.policy(policy)


def search_index(documentation: Documentation) -> str:
    """Return a script that hands the texts to search to the page: pages from files can load nothing else."""
    rows = [
        [
            page_path(model),
            *map(shown, _searched_texts(model)),
            list(map(shown, _searched_parts(model))),
            model.qualified_name.kind,
        ]
        for model in documentation.models
    ]
    return f"deltaEngineSearch({json.dumps(rows, separators=(',', ':'))});\n"


def _searched_texts(model: Documented) -> tuple[str, str, str, str]:
    """Return the name of a model, where it is, its comment, and its tags or conditions."""
    comment = model.comment[:_LONGEST_SEARCHED]
    if isinstance(model, AbacPolicy):
        conditions = " ".join((model.protection.function, *model.match.values(), model.when or ""))
        return model.name, model.scope.name, comment, conditions
    name = model_title(model)
    tags = " ".join(pair_text(*pair) for pair in model.tags.items())
    return name, f"{model.catalog_name}.{model.schema_name}", comment, tags


def _searched_parts(model: Documented) -> Iterator[str]:
    """Yield the name and the comment of each column or parameter."""
    match model:
        case Table(columns=parts) | View(columns=parts) | Function(parameters=parts):
            for part in parts:
                yield part.name
                yield part.comment[:_LONGEST_SEARCHED]


def model_title(model: Documented) -> str:
    """Return the last part of a model's name."""
    match model:
        case (
            Table(table_name=name)
            | View(view_name=name)
            | Function(function_name=name)
            | AbacPolicy(name=name)
        ):
            return name


@lru_cache(maxsize=65536)
def shown(text: str) -> str:
    """Return a text without secrets, with invisible characters spelled out."""
    return visible(redacted(text))


class _PageRenderer:
    """Renders the pages of one site."""

    def __init__(self, documentation: Documentation) -> None:
        self._documentation = documentation
        self._environment = _environment()
        self._referencing: dict[str, list[tuple[Table, ForeignKey]]] = defaultdict(list)
        for table in documentation.tables:
            for key in table.foreign_keys:
                referenced = referenced_table(table.qualified_name, key)
                if referenced is not None:
                    self._referencing[referenced.key].append((table, key))
        self._protected: dict[str, list[Protected]] = defaultdict(list)
        for protected in documentation.protected:
            self._protected[protected.table.key].append(protected)
        self._calls = {
            function.key: {name.key for name in called_functions(function)}
            for function in documentation.functions
        }

    def index(self) -> str:
        """Return the first page: every schema with its tables and functions, and the policies."""
        schemas = self._documentation.schemas
        return self._render(
            "index",
            files.INDEX,
            groups=[(*group, schemas.get(group[0].key)) for group in self._documentation.grouped()],
            columns=sum(len(table.columns) for table in self._documentation.tables),
            counts=self._counts(self._documentation.models),
        )

    def schema(
        self, name: SchemaName, tables: Sequence[Table], views: Sequence[View], functions: Sequence[Function]
    ) -> str:
        """Return the page of a schema: its diagram, what it has, and the policies that are about it."""
        declared = self._documentation.schemas.get(name.key)
        parts = name.key.split(".")
        policies = [
            policy
            for policy in self._documentation.policies
            if [*policy.scope.parts[:2]] in (parts, parts[:1])
        ]
        return self._render(
            "schema",
            files.schema_path(name),
            name=name,
            tables=tables,
            views=views,
            functions=functions,
            policies=policies,
            declared=declared,
            facts=model_facts(declared) if declared else (),
            diagram=draw([*tables, *views], self._documentation),
            counts=self._counts((*tables, *views, *functions, *policies)),
        )

    def table(self, table: Table) -> str:
        """Return the page of a table."""
        return self._render(
            "table",
            files.table_path(table),
            table=table,
            schema=SchemaName(table.catalog_name, table.schema_name),
            columns=list(shown_columns(table)),
            references=[(table, link) for link in self._documentation.references(table)],
            referenced_by=[
                (
                    table,
                    Link(
                        name=key.name or "",
                        columns=key.referenced_columns,
                        other=other.qualified_name,
                        path=files.table_path(other),
                        other_columns=key.columns,
                    ),
                )
                for other, key in self._referencing[table.key]
            ],
            read_by=self._documentation.readers.get(table.key, ()),
            protected=self._protected[table.key],
            facts=model_facts(table),
            applied=self._documentation.applied_of(table),
        )

    def view(self, view: View) -> str:
        """Return the page of a view."""
        return self._render(
            "view",
            files.view_path(view),
            view=view,
            schema=SchemaName(view.catalog_name, view.schema_name),
            columns=list(shown_view_columns(view, self._documentation.columns.get(view.key, ()))),
            is_read=self._documentation.reads[view.key] is not None,
            sources=[(view, link) for link in self._documentation.links_of(view)],
            calls=sorted(name.key for name in read_functions(view.query)),
            read_by=self._documentation.readers.get(view.key, ()),
            diagram=draw_lineage(view, self._documentation),
            facts=model_facts(view),
            applied=self._documentation.applied_of(view),
        )

    def function(self, function: Function) -> str:
        """Return the page of a function."""
        key = function.key
        return self._render(
            "function",
            files.function_path(function.qualified_name),
            function=function,
            schema=SchemaName(function.catalog_name, function.schema_name),
            parameters=list(shown_parameters(function)),
            returns=readable_data_type(function.returns),
            calls=sorted(self._calls[key]),
            callers=[other.key for other in self._documentation.functions if key in self._calls[other.key]],
            policies=[
                policy for policy in self._documentation.policies if policy_function(policy).key == key
            ],
            views=[
                view
                for view in self._documentation.views
                if key in {name.key for name in read_functions(view.query)}
            ],
            protected=[
                protected
                for protected in self._documentation.protected
                if protected.policy is None and protected.function == key
            ],
            facts=model_facts(function),
            applied=self._documentation.applied_of(function),
        )

    def policy(self, policy: AbacPolicy) -> str:
        """Return the page of a policy."""
        return self._render(
            "policy",
            files.policy_path(policy),
            policy=policy,
            scope_path=self._documentation.path_of_scope(policy.scope),
            function=policy_function(policy).key,
            protected=[
                protected for protected in self._documentation.protected if protected.policy is policy
            ],
            facts=model_facts(policy),
            applied=self._documentation.applied_of(policy),
        )

    def _counts(self, models: Sequence[Documented]) -> Mapping[DocumentedStatus, int]:
        """Return the number of models by status, in the order of the statuses; empty without a deployment state."""
        counts = Counter(map(self._documentation.status_of, models))
        return {status: counts[status] for status in DocumentedStatus if counts[status]}

    def _render(self, page: str, path: str, **values: Any) -> str:
        """Render a page; its template makes addresses with `to`, relative to the page."""
        folder = dirname(path)
        return self._environment.get_template(f"{page}.html.j2").render(
            documentation=self._documentation,
            root=relpath(".", folder or ".") + "/",
            to=lambda target: relpath(target, folder or "."),
            **values,
        )


@cache
def _environment() -> Environment:
    environment = template_environment(_TEMPLATES, _finalized)
    environment.globals |= {
        "files": files,
        "healthy": DocumentedStatus.HEALTHY,
        "model_title": model_title,
        "page_path": page_path,
        "relation_name": relation_name,
        "format": FORMAT,
        "version": VERSION,
    }
    environment.filters |= {
        "counted": counted,
        "moment": shown_moment,
        "pair": lambda pair: pair_text(*pair),
        "shown": shown,
        "status_class": lambda status: status.value.replace(" ", "-"),
    }
    return environment


def _finalized(value: object) -> object:
    """Make a value safe to show; jinja2 calls this for every value before escaping."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return shown(value)
    return value
