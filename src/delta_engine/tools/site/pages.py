"""The pages and the search index of the site, as texts by path; all their text is escaped, and secrets are hidden."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from posixpath import dirname, relpath
from typing import TYPE_CHECKING, Any, Final

from delta_engine.models import ForeignKey, SchemaName, Table
from delta_engine.models.constraints import referenced_table
from delta_engine.report.pages import template_environment, template_text
from delta_engine.telemetry.logs import redacted
from delta_engine.telemetry.visible import counted, shown_moment, visible
from delta_engine.tools.site import files
from delta_engine.tools.site.details import pair_text, schema_facts, shown_columns, table_facts
from delta_engine.tools.site.diagram import draw
from delta_engine.tools.site.documented import Documentation, DocumentedStatus, Link

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
    for name, tables in documentation.grouped():
        yield files.schema_path(name), renderer.schema(name, tables)
        for table in tables:
            yield files.table_path(table), renderer.table(table)


def search_index(documentation: Documentation) -> str:
    """Return a script that hands the texts to search to the page: pages from files can load nothing else."""
    rows = [
        [
            files.table_path(table),
            shown(table.table_name),
            shown(f"{table.catalog_name}.{table.schema_name}"),
            shown(table.comment[:_LONGEST_SEARCHED]),
            shown(" ".join(pair_text(*pair) for pair in table.tags.items())),
            list(_searched_columns(table)),
        ]
        for table in documentation.tables
    ]
    return f"deltaEngineSearch({json.dumps(rows, separators=(',', ':'))});\n"


def _searched_columns(table: Table) -> Iterator[str]:
    """Yield the name and the comment of each column."""
    for column in table.columns:
        yield shown(column.name)
        yield shown(column.comment[:_LONGEST_SEARCHED])


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

    def index(self) -> str:
        """Return the first page: every schema with its tables."""
        tables, schemas = self._documentation.tables, self._documentation.schemas
        return self._render(
            "index",
            files.INDEX,
            groups=[(name, tables, schemas.get(name.key)) for name, tables in self._documentation.grouped()],
            columns=sum(len(table.columns) for table in tables),
            counts=self._counts(tables),
        )

    def schema(self, name: SchemaName, tables: Sequence[Table]) -> str:
        """Return the page of a schema: its diagram and its tables."""
        declared = self._documentation.schemas.get(name.key)
        return self._render(
            "schema",
            files.schema_path(name),
            name=name,
            tables=tables,
            declared=declared,
            facts=schema_facts(declared) if declared else (),
            diagram=draw(tables, self._documentation),
            counts=self._counts(tables),
        )

    def table(self, table: Table) -> str:
        """Return the page of a table."""
        return self._render(
            "table",
            files.table_path(table),
            table=table,
            schema=SchemaName(table.catalog_name, table.schema_name),
            columns=list(shown_columns(table)),
            references=list(self._documentation.references(table)),
            referenced_by=[
                Link(
                    name=key.name or "",
                    columns=key.referenced_columns,
                    other=other.qualified_name,
                    path=files.table_path(other),
                    other_columns=key.columns,
                )
                for other, key in self._referencing[table.key]
            ],
            facts=table_facts(table),
            applied=self._documentation.applied.get(table.key),
        )

    def _counts(self, tables: Sequence[Table]) -> Mapping[DocumentedStatus, int]:
        """Return the number of tables by status, in the order of the statuses; empty without a deployment state."""
        counts = Counter(self._documentation.status_of(table) for table in tables)
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
