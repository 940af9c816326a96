"""How views describe themselves: DESCRIBE TABLE EXTENDED … AS JSON, of Unity Catalog and of Spark's session catalog.

Spark's session catalog describes all that it has of a view (measured, Spark 4.1.1). It has no owners, grants and tags.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from delta_engine.backends import error_conditions
from delta_engine.backends.sql_runner import SqlRunner
from delta_engine.errors import CatalogReadError, StatementError
from delta_engine.models.views import SchemaMode, ViewColumn, ViewName
from delta_engine.sql.queries import sql_describe_as_json
from delta_engine.sql.text import sql_path
from delta_engine.state.failed_reads import not_managed, require_answers, unreadable
from delta_engine.state.unmanaged import Unmanaged
from delta_engine.state.view_states import ABSENT_VIEW, ViewState

ViewAnswer: TypeAlias = ViewState | Unmanaged | CatalogReadError | None
"""A view, another relation, why it cannot be described, or None where the platform has no such description."""

VIEW: Final = "VIEW"
OTHERS: Final = {"MATERIALIZED_VIEW": "a materialized view", "METRIC_VIEW": "a metric view"}


def read_view(runner: SqlRunner, name: ViewName) -> ViewState:
    """Return a view as it describes itself, without tags and grants; `ABSENT_VIEW` for a missing one.

    Raises:
        CatalogReadError: the view is unreadable, or the name is that of another relation.
        StatementError: the failure concerns every view.
    """
    return as_described(name, ask_view(runner, name))


def ask_view(runner: SqlRunner, name: ViewName) -> ViewAnswer:
    """Return how a view describes itself, or why it does not.

    Raises:
        StatementError: the failure concerns every view.
    """
    try:
        rows = runner.run(sql_describe_as_json(sql_path(name.parts)))
        return described_view(name, str(next((value for row in rows for value in row.values()), "")))
    except CatalogReadError as refusal:
        return refusal
    except StatementError as error:
        if error_conditions.is_unregistered_table(error):
            return ABSENT_VIEW
        require_answers(error, f"view {name}")
        return None if error_conditions.is_unsupported(error) else unreadable(name, error)


def described_view(name: ViewName, text: str) -> ViewState | Unmanaged:
    """Return a view from its description as JSON, without tags and grants.

    Raises:
        CatalogReadError: the description has another form, or is that of a table.
    """
    try:
        document = msgspec.json.decode(text, type=_Document)
    except ValueError as error:
        raise CatalogReadError(
            f"its description as JSON is not of the documented form: {error}",
            securable=f"{name.kind} {name}",
            way_out="Report it, with what DESCRIBE TABLE EXTENDED … AS JSON returns for this view.",
        ) from error
    if other := other_view(document.type):
        return other
    if document.type.upper() != VIEW:
        raise table_of_this_name(name, document.type.lower())
    return ViewState(
        query=document.view_original_text or document.view_text,
        columns=tuple(ViewColumn(column.name, column.comment or "") for column in document.columns),
        schema_mode=schema_mode(document.view_schema_mode),
        comment=document.comment or "",
        owner=document.owner,
    )


def as_described(name: ViewName, described: ViewAnswer) -> ViewState:
    """Return a view as it describes itself, where no row of `tables` shows it."""
    match described:
        case CatalogReadError():
            raise described
        case Unmanaged():
            raise not_managed(name, described)
        case None:
            raise CatalogReadError(
                "the platform does not describe it as JSON",
                securable=f"{name.kind} {name}",
                way_out="Use a runtime that supports DESCRIBE TABLE … AS JSON, or run the command again in a minute.",
            )
    return described


def table_of_this_name(name: ViewName, kind: str) -> CatalogReadError:
    """Return the refusal of a declared view whose name is that of a table."""
    return CatalogReadError(
        f"there is a table of this name ({kind})",
        securable=f"{name.kind} {name}",
        way_out="Rename the view in the model, or drop the table.",
    )


def other_view(kind: str) -> Unmanaged | None:
    """Return another relation with a query by the platform's word for its kind; None for views and tables."""
    other = OTHERS.get(kind.upper())
    return None if other is None else Unmanaged(f"it is {other}")


def schema_mode(text: str | None) -> SchemaMode | None:
    """Return a mode as the platform spells it; None for one that the engine does not know."""
    modes = {mode.value: mode for mode in SchemaMode}
    return modes.get(str(text).lower().replace("_", " "))


class _Column(msgspec.Struct):
    name: str
    comment: str | None = None


class _Document(msgspec.Struct):
    """The used part of the document of `DESCRIBE TABLE EXTENDED … AS JSON` for a view."""

    type: str
    columns: tuple[_Column, ...]
    comment: str | None = None
    view_text: str | None = None
    view_original_text: str | None = None
    view_schema_mode: str | None = None
    owner: str | None = None
