"""Views that a team declares: a query under a name, with comments, tags and rights.

A query is opaque text. `sql.views` spells it, and `sql.view_queries` reads what it uses. Views share the namespace of
tables: a schema never has a table and a view of one name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import ClassVar

from delta_engine.errors import InvalidModelError, SourceLocation
from delta_engine.models.columns import calling_line
from delta_engine.models.parts import (
    NO_GRANTS,
    NOTHING,
    Grants,
    NameInSchema,
    set_fields,
    to_former_names,
    to_grants,
    to_items,
    to_optional_text,
    to_text,
    to_texts,
)
from delta_engine.models.repetitions import Repetition, repeated


class ViewName(NameInSchema):
    """The name of a view. No table has its key: tables and views of a schema share their names."""

    __slots__ = ()
    kind: ClassVar[str] = "view"


@unique
class SchemaMode(Enum):
    """What a view does when the columns that its query reads change (docs: "CREATE VIEW", `WITH SCHEMA`)."""

    BINDING = "binding"  # fails unless the values still fit the types that it had
    COMPENSATION = "compensation"  # casts values to the types that it had, and fails on those that do not fit
    TYPE_EVOLUTION = "type evolution"  # takes over other types
    EVOLUTION = "evolution"  # takes over other types, names and numbers of columns, and their comments


@dataclass(frozen=True, slots=True, init=False)
class ViewColumn:
    """What a model declares of a column that the query of a view returns.

    Args:
        comment: the empty string leaves the comment that the platform takes from the column that the query reads.
    """

    name: str
    comment: str = ""
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __init__(self, name: str, comment: str = "", *, tags: Mapping[str, str] = NOTHING) -> None:
        set_fields(
            self,
            name=to_text(name, "name"),
            comment=to_text(comment, "comment", name),
            tags=to_texts("tags", tags),
        )

    @property
    def key(self) -> str:
        """The name in lower case, by which columns compare."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, init=False)
class View:
    """A declared view.

    Args:
        catalog_name: the raw name; may hold `${variables}` until the configuration replaces them.
        query: one SELECT, with the full names of tables, views and functions. Empty while it still has to be read from
            `query_file`.
        columns: what is documented of its columns; the query may return others. Each name must be one that it returns.
        query_file: the file with the query, relative to the file that declares the view; None for an inline query.
        schema_mode: None leaves the mode to the platform.
        comment: the empty string means no comment.
        owner: None leaves the owner unmanaged.
        grants: privileges by principal; other principals are unmanaged, unless the policy says otherwise.
        renamed_from: the view's former name, or several with the latest first; its rights are kept.
        declared_at: the place of the declaration; by default the calling line of Python.

    Raises:
        InvalidModelError: without `declared_at`, two columns share a name.
        TypeError: an argument has the wrong type.
        ValueError: the mode is unknown, or a text has an unpaired surrogate.
    """

    catalog_name: str
    schema_name: str
    view_name: str
    query: str = ""
    columns: tuple[ViewColumn, ...] = ()
    query_file: str | None = field(default=None, compare=False)
    schema_mode: SchemaMode | None = None
    comment: str = ""
    tags: Mapping[str, str] = field(default_factory=dict, hash=False)
    owner: str | None = None
    grants: Grants = field(default_factory=dict, hash=False)
    renamed_from: tuple[str, ...] = ()
    declared_at: SourceLocation | None = field(default=None, compare=False, repr=False)

    def __init__(
        self,
        catalog_name: str,
        schema_name: str,
        view_name: str,
        query: str = "",
        columns: Iterable[ViewColumn] = (),
        *,
        query_file: str | None = None,
        schema_mode: SchemaMode | str | None = None,
        comment: str = "",
        tags: Mapping[str, str] = NOTHING,
        owner: str | None = None,
        grants: Mapping[str, Iterable[str]] = NO_GRANTS,
        renamed_from: str | Sequence[str] | None = None,
        declared_at: SourceLocation | None = None,
    ) -> None:
        set_fields(
            self,
            catalog_name=to_text(catalog_name, "catalog_name", view_name),
            schema_name=to_text(schema_name, "schema_name", view_name),
            view_name=to_text(view_name, "view_name"),
            query=to_text(query, "query", view_name),
            columns=to_items(columns, ViewColumn, "columns", view_name),
            query_file=to_optional_text(query_file, "query_file", view_name),
            schema_mode=to_schema_mode(schema_mode, view_name),
            comment=to_text(comment, "comment", view_name),
            tags=to_texts("tags", tags),
            owner=to_optional_text(owner, "owner", view_name),
            grants=to_grants(grants),
            renamed_from=to_former_names(renamed_from, "renamed_from", view_name),
            declared_at=declared_at or calling_line(),
        )
        if declared_at is None and self.declared_at is not None:  # files are judged as a whole, by the rules
            _refuse_repetitions(self)

    @property
    def qualified_name(self) -> ViewName:
        """The raw three-part name."""
        return ViewName(self.catalog_name, self.schema_name, self.view_name)

    @property
    def key(self) -> str:
        """The dotted name in lower case, by which views compare."""
        return self.qualified_name.key

    @property
    def evolves(self) -> bool:
        """Whether its columns are those that the query returns at any time."""
        return self.schema_mode is SchemaMode.EVOLUTION

    @property
    def has_column_comments(self) -> bool:
        """Whether it documents a column with a comment."""
        return any(column.comment for column in self.columns)

    @property
    def former_names(self) -> tuple[ViewName, ...]:
        """The old names, in the same schema, the latest first."""
        return tuple(ViewName(self.catalog_name, self.schema_name, name) for name in self.renamed_from)


def to_schema_mode(value: SchemaMode | str | None, of: str) -> SchemaMode | None:
    """Return a mode by its name in any case, with spaces or underscores; ValueError for an unknown mode."""
    if value is None or isinstance(value, SchemaMode):
        return value
    name = " ".join(to_text(value, "schema_mode", of).lower().replace("_", " ").split())
    modes = {mode.value: mode for mode in SchemaMode}
    if name not in modes:
        raise ValueError(f"schema_mode of {of!r} is {value!r}. Use one of: {', '.join(modes)}")
    return modes[name]


def repeated_view_columns(columns: Iterable[ViewColumn]) -> Iterator[Repetition]:
    """Yield each name that several documented columns have; names compare without case."""
    for name in repeated(column.name for column in columns):
        reason = f"it documents column {name!r} twice (names ignore case)"
        yield Repetition(reason, "Rename or remove one of them.", name)


def _refuse_repetitions(model: View) -> None:
    for reason, way_out, _ in repeated_view_columns(model.columns):
        raise InvalidModelError(
            f"view {model.qualified_name}: {reason}", location=model.declared_at, way_out=way_out
        )
