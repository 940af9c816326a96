"""Views as the catalog has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from delta_engine.models.parts import Grants, read_only, set_fields, to_grants, to_items
from delta_engine.models.views import SchemaMode, View, ViewColumn, ViewName
from delta_engine.sql.view_queries import submitted_query
from delta_engine.state.audits import NO_AUDIT, Audit


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewState:
    """One view as the catalog has it.

    Args:
        exists: False for a missing view; all other fields are then empty.
        query: as the platform shows it; None if it hides the query from principals who do not own the view.
        possible_queries: those that it may have if runs of the engine did not end and the platform hides it: the query,
            and what these runs were to set.
        columns: those that the view had when its query was set, in order. A comment may be that of the column that the
            query reads.
        schema_mode: None if the platform shows none.
        owner: None if the platform has no owners, or shows none.
        grants: the privileges granted on the view itself, by principal.
        former_name: the view's name in the catalog if its model renames it (`renamed_from`).
    """

    exists: bool = True
    query: str | None = None
    possible_queries: tuple[str, ...] = ()
    columns: tuple[ViewColumn, ...] = ()
    schema_mode: SchemaMode | None = None
    comment: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    owner: str | None = None
    grants: Grants = field(default_factory=dict)
    former_name: ViewName | None = None
    audit: Audit = field(default=NO_AUDIT, compare=False)

    def __post_init__(self) -> None:
        set_fields(
            self,
            columns=to_items(self.columns, ViewColumn, "columns"),
            tags=read_only(self.tags),
            grants=to_grants(self.grants),
        )

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries that it may have; none if the platform hides it and no run is known to have set one."""
        return self.possible_queries or (() if self.query is None else (self.query,))

    @property
    def evolves(self) -> bool:
        """Whether its columns are those that the query returns at any time."""
        return self.schema_mode is SchemaMode.EVOLUTION


ABSENT_VIEW = ViewState(exists=False)


def is_hidden(view: ViewState) -> bool:
    """Whether the platform hides the query of an existing view."""
    return view.exists and view.query is None


def with_set_queries(view: ViewState, models: Iterable[View]) -> ViewState:
    """Return a view whose hidden query is one of some models, of which the first was applied last, or none was."""
    queries = tuple(dict.fromkeys(submitted_query(model.query) for model in models))
    return replace(view, query=queries[0], possible_queries=queries) if queries and is_hidden(view) else view


def view_state_of(view: View) -> ViewState:
    """Return the state of a view that is exactly as its model declares it."""
    return ViewState(
        query=submitted_query(view.query),
        columns=view.columns,
        schema_mode=view.schema_mode,
        comment=view.comment,
        tags=view.tags,
        owner=view.owner,
        grants=view.grants,
    )
