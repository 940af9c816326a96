"""Views: their names, queries, schema modes and comments, each changed in place.

ALTER VIEW … AS may lose comments and tags, so the statement of a changed query sets all of them again that stay. A
comment that no model declares is never drift: the platform takes it from the column that the query reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Final

import msgspec

from delta_engine.actions import SAFE, Hazard, Phase
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects.aspect import (
    Aspect,
    Change,
    RenderContext,
    ValueAction,
    takes_manage,
    value_aspect,
)
from delta_engine.aspects.changed_models import with_column
from delta_engine.aspects.column_comments import ColumnComment, refuse_no_op
from delta_engine.aspects.comparison import Comparison, bare_column
from delta_engine.aspects.facet import (
    FORMER_TABLE_NAMES,
    OPTIONAL_TEXT,
    SCALAR_SCHEMA,
    TEXT,
    Facet,
    Form,
    Place,
    TextChange,
)
from delta_engine.aspects.whole_definitions import DefinitionPart, definition_aspect, shown_text
from delta_engine.backends.capabilities import Feature, RenameTarget
from delta_engine.errors import unknown
from delta_engine.models import SchemaMode, SecurableName, View, ViewColumn, ViewName
from delta_engine.models.open_struct import OpenStruct
from delta_engine.models.views import to_schema_mode
from delta_engine.sql.governance import sql_set_tags
from delta_engine.sql.view_queries import (
    is_same_query,
    named_columns,
    read_functions,
    read_relations,
    submitted_query,
    with_names,
)
from delta_engine.sql.views import (
    sql_alter_view_query,
    sql_create_view,
    sql_rename_view,
    sql_set_schema_mode,
    sql_set_session_view_comment,
    sql_set_view_column_comment,
    sql_set_view_comment,
    takes_comments,
    view_as_table,
    view_securable,
)
from delta_engine.state.view_states import ViewState, is_hidden


class RenameView(ValueAction[ViewName, ViewName]):
    """Rename a view within its schema. Readers of the former name fail afterwards."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.RENAME_TABLE
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)

    def is_no_op(self) -> bool:
        """Whether the names differ at most in case."""
        return self.desired.key == self.observed.key


@dataclass(frozen=True, slots=True)
class AlterViewQuery:
    """Give a view another query. Readers may see other values, rows and columns than before.

    Args:
        replaces: whether CREATE OR REPLACE does, which loses what others set.
        returned: the keys of the columns that the new query returns, where the plan knows what its stars stand for.
    """

    phase: ClassVar[Phase] = Phase.REPLACE_DEFINITION
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)
    desired: View
    observed: ViewState = field(hash=False)
    parts: tuple[str, ...]
    replaces: bool = field(default=False, compare=False)
    returned: frozenset[str] = field(default=frozenset(), compare=False)

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError(f"{self.desired.qualified_name} has this query already")


class SetSchemaMode(ValueAction[SchemaMode, SchemaMode | None]):
    """Change what a view does when the columns that it reads change."""

    __slots__ = ()
    hazards: ClassVar[tuple[Hazard, ...]] = (Hazard.BREAKS_READERS,)

    @property
    def phase(self) -> Phase:
        """Before the query for a view that begins to evolve, after it for others."""
        is_first = self.desired is SchemaMode.EVOLUTION
        return Phase.BEGIN_EVOLUTION if is_first else Phase.CHANGE_SCHEMA_MODE


class SetViewComment(ValueAction[str, str]):
    """Set or clear the comment of a view."""

    __slots__ = ()
    phase: ClassVar[Phase] = Phase.SET_TABLE_COMMENT
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE


@dataclass(frozen=True, slots=True)
class SetViewColumnComments:
    """Set or clear the comments of columns of a view.

    Args:
        view: its model, which Spark's session catalog needs whole.
        observed: its state, of which the replacement there keeps the rest.
        replaces: whether CREATE OR REPLACE sets them, which loses what others set.
    """

    phase: ClassVar[Phase] = Phase.SET_COLUMN_COMMENTS
    hazards: ClassVar[tuple[Hazard, ...]] = SAFE
    comments: tuple[ColumnComment, ...]
    view: View = field(compare=False, repr=False)
    observed: ViewState = field(compare=False, repr=False)
    replaces: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        refuse_no_op(self.comments)


class ViewColumnDefinition(OpenStruct, frozen=True, kw_only=True):
    """A documented column of a view."""

    name: str
    comment: str = ""
    tags: dict[str, str] = msgspec.field(default_factory=dict)


class WrittenViewColumn(msgspec.Struct, forbid_unknown_fields=True):
    """A column of a view.

    Args:
        name: its name, which the query returns; compares without case.
        comment: its comment; empty keeps the comment of the column that the query reads.
        tags: its tags.
    """

    name: str
    comment: str = ""
    tags: Annotated[
        dict[str, Any], msgspec.Meta(extra_json_schema={"additionalProperties": dict(SCALAR_SCHEMA)})
    ] = msgspec.field(default_factory=dict)


def created(desired: View) -> ViewState:
    """Return the state of a view that its CREATE statement has just made."""
    columns = desired.columns if takes_comments(desired) else ()
    return ViewState(
        query=submitted_query(desired.query),
        columns=tuple(ViewColumn(column.name, column.comment) for column in columns),
        schema_mode=desired.schema_mode,
        comment=desired.comment,
    )


def needed(desired: View) -> Iterator[SecurableName]:
    """Yield the tables, views and functions that a view reads; a view of those under the name of a table."""
    yield from sorted(read_relations(desired.query) or (), key=str)
    yield from sorted(read_functions(desired.query))


def restored(action: AlterViewQuery) -> Iterator[str]:
    """Yield what gives a view of Unity Catalog all that ALTER VIEW … AS may have lost and that does not change.

    Whether it does is not documented (docs/assumptions.md). What was not lost stays as it is.
    """
    desired, observed = action.desired, action.observed
    name = desired.qualified_name
    documented = {column.key: column for column in desired.columns}
    named = {column.lower() for column in named_columns(desired.query) or ()}
    returned = {*documented} | (action.returned or named)
    if observed.comment and desired.comment in ("", observed.comment):
        yield sql_set_view_comment(name, observed.comment)
    if tags := _unchanged(desired.tags, observed.tags):
        yield sql_set_tags(view_securable(name), tags)
    for column in observed.columns:
        if column.key in returned:
            declared = documented.get(column.key, bare_column(column))
            is_inherited = desired.evolves or observed.evolves
            if not is_inherited and column.comment and declared.comment in ("", column.comment):
                yield sql_set_view_column_comment(name, column.name, column.comment)
            if tags := _unchanged(declared.tags, column.tags):
                yield sql_set_tags(view_as_table(name), tags, column.name)


def _unchanged(declared: Mapping[str, str], observed: Mapping[str, str]) -> Mapping[str, str]:
    return {key: value for key, value in observed.items() if declared.get(key, value) == value}


def _is_of_session(context: RenderContext[Any]) -> bool:
    return context.capabilities.session_catalog is not None


def _diff_name(comparison: Comparison[View, ViewState]) -> Iterable[RenameView]:
    if comparison.observed.former_name is not None:
        yield RenameView(comparison.desired.qualified_name, comparison.observed.former_name)


def _render_name(actions: Sequence[RenameView], context: RenderContext[ViewName]) -> Iterable[str]:
    is_within = context.capabilities.rename_target is RenameTarget.WITHIN_CATALOG
    for action in actions:
        yield sql_rename_view(
            action.observed, action.desired.parts[1:] if is_within else action.desired.parts
        )


def _render_query(actions: Sequence[AlterViewQuery], context: RenderContext[ViewName]) -> Iterable[str]:
    for action in actions:
        if not _is_of_session(context):
            yield sql_alter_view_query(context.name, action.desired.query)
            yield from restored(action)
        elif not action.desired.has_column_comments:  # all else stays (measured)
            yield sql_alter_view_query(context.name, action.desired.query)
        else:
            yield _replacement(action.desired, action.observed)


def _replacement(desired: View, observed: ViewState) -> str:
    """Return CREATE OR REPLACE with all that it would lose; of the session catalog alone."""
    comment, mode = desired.comment or observed.comment, desired.schema_mode or observed.schema_mode
    return sql_create_view(replace(desired, comment=comment, schema_mode=mode), replaces=True)


def _diff_comment(comparison: Comparison[View, ViewState]) -> Iterable[SetViewComment]:
    desired, observed = comparison.desired.comment, comparison.observed.comment
    if desired != observed and (desired or comparison.clears(lambda model: model.comment)):
        yield SetViewComment(desired, observed)


def _render_comment(actions: Sequence[SetViewComment], context: RenderContext[ViewName]) -> Iterable[str]:
    statement = sql_set_session_view_comment if _is_of_session(context) else sql_set_view_comment
    return [statement(context.name, action.desired) for action in actions]


def _diff_column_comments(comparison: Comparison[View, ViewState]) -> Iterable[SetViewColumnComments]:
    if comments := tuple(_differing_comments(comparison)):
        yield SetViewColumnComments(comments, comparison.desired, comparison.observed)


def _column_comment_differences(comparison: Comparison[View, ViewState]) -> Iterable[SetViewColumnComments]:
    for comment in _differing_comments(comparison):
        yield SetViewColumnComments((comment,), comparison.desired, comparison.observed)


def _differing_comments(comparison: Comparison[Any, Any]) -> Iterator[ColumnComment]:
    ours = {column.key for model in comparison.ours for column in model.columns if column.comment}
    new = ((column, bare_column(column)) for column in comparison.added)
    for desired, observed in (*comparison.differing, *new):
        if desired.comment != observed.comment and (desired.comment or desired.key in ours):
            yield ColumnComment(observed.name, desired.comment, observed.comment)


def _render_column_comments(
    actions: Sequence[SetViewColumnComments], context: RenderContext[ViewName]
) -> Iterable[str]:
    for action in actions:
        if _is_of_session(context):
            yield _replacement(action.view, action.observed)
        else:
            for comment in action.comments:
                yield sql_set_view_column_comment(context.name, comment.name, comment.desired)


def _explain_column_comments(action: SetViewColumnComments) -> Iterable[Change]:
    for comment in action.comments:
        subject = f"column {comment.name} comment"
        yield Change(subject, repr(comment.observed), repr(comment.desired), place=comment.place)


def _accept_column_comments(model: View, _observed: ViewState, action: SetViewColumnComments) -> View:
    for comment in action.comments:
        model = with_column(model, comment.name, partial(replace, comment=comment.observed))
    return model


def _read_mode(place: Place, name: str) -> SchemaMode | None:
    try:
        return to_schema_mode(name, "the view")
    except ValueError:
        raise place.error(*unknown("schema mode", name, [mode.value for mode in SchemaMode])) from None


def _read_columns(place: Place, written: Sequence[WrittenViewColumn]) -> tuple[ViewColumn, ...]:
    return tuple(
        ViewColumn(column.name, column.comment, tags=place.texts(column.tags, position, "tags"))
        for position, column in enumerate(written)
    )


def _imported_columns(_name: SecurableName | None, state: ViewState) -> tuple[ViewColumn, ...]:
    """Return the columns as a model declares them; a view that evolves has the comments of what it reads."""
    if not state.evolves:
        return state.columns
    return tuple(replace(column, comment="") for column in state.columns)


def _define_columns(columns: Sequence[ViewColumn]) -> tuple[ViewColumnDefinition, ...]:
    return tuple(
        ViewColumnDefinition(name=column.name, comment=column.comment, tags=dict(column.tags))
        for column in columns
    )


def _as_columns(definitions: Sequence[ViewColumnDefinition]) -> tuple[ViewColumn, ...]:
    return tuple(
        ViewColumn(definition.name, definition.comment, tags=definition.tags) for definition in definitions
    )


def _with_texts(
    columns: Sequence[ViewColumn], _names: TextChange, values: TextChange
) -> tuple[ViewColumn, ...]:
    return tuple(
        replace(column, tags={key: values(value) for key, value in column.tags.items()}) for column in columns
    )


_MODE: Form[SchemaMode | None] = Form(
    recorded_type=str | None,
    encode=lambda mode: None if mode is None else mode.value,
    decode=lambda text: to_schema_mode(text, "the view"),
    written_type=str | None,
    read=lambda place, name: None if name is None else _read_mode(place, name),
    write=lambda mode: None if mode is None else mode.value,
    words="`binding`, `compensation`, `type evolution` or `evolution`",
    schema={"enum": [mode.value for mode in SchemaMode]},
    choices=tuple(SchemaMode),
)

NAME_FACET: Facet[View, ViewState, tuple[str, ...]] = Facet(
    key="renamed_from",
    declared=lambda model: model.renamed_from,
    absent=(),
    default="none",
    form=FORMER_TABLE_NAMES,
    meaning="the view's old name in the same schema, or several with the latest first; its rights are kept",
)

COMMENT_FACET: Facet[View, ViewState, str] = Facet(
    key="comment",
    declared=lambda model: model.comment,
    observed=lambda state: state.comment,
    absent="",
    form=TEXT,
    meaning="the view's comment; empty means none",
)

QUERY_FACET: Facet[View, ViewState, str | None] = Facet(
    key="query",
    declared=lambda model: model.query,
    observed=lambda state: state.query,
    absent="",
    form=Form(
        recorded_type=str,
        encode=lambda query: query or "",
        written_type=str,
        write=lambda query: query or None,
        with_texts=lambda query, names, _values: with_names(query or "", names),
        words="string",
    ),
    meaning="one SELECT, with the full names of tables, views and functions",
    default="the content of `query_file`",
    written=lambda model: None if model.query_file is not None else model.query or None,
    recorded=lambda model: submitted_query(model.query),
    imported=lambda _name, state: state.query or "",
)

QUERY_FILE_FACET: Facet[View, ViewState, str | None] = Facet(
    key="query_file",
    declared=lambda model: model.query_file,
    absent=None,
    form=OPTIONAL_TEXT,
    meaning="the file with its query instead of `query`, relative to the model file",
    default="none",
)

MODE_FACET: Facet[View, ViewState, SchemaMode | None] = Facet(
    key="schema_mode",
    declared=lambda model: model.schema_mode,
    observed=lambda state: state.schema_mode,
    absent=None,
    form=_MODE,
    meaning="what the view does when the columns that it reads change",
    default="the platform decides",
    imported=lambda _name, state: None if state.schema_mode is SchemaMode.COMPENSATION else state.schema_mode,
)

COLUMNS_FACET: Facet[View, ViewState, tuple[ViewColumn, ...]] = Facet(
    key="columns",
    declared=lambda model: model.columns,
    observed=lambda state: state.columns,
    absent=(),
    form=Form(
        recorded_type=tuple[ViewColumnDefinition, ...],
        encode=_define_columns,
        decode=_as_columns,
        written_type=list[WrittenViewColumn],
        read=_read_columns,
        write=lambda columns: [*map(msgspec.to_builtins, _define_columns(columns))],
        with_texts=_with_texts,
        words="list of mappings",
    ),
    meaning="documented columns, each with `name` and optionally `comment` and `tags`",
    entry="column",
    constructor="ViewColumn",
    imported=_imported_columns,
)

COLUMN_COMMENT_FACET: Facet[ViewColumn, ViewColumn, str] = Facet(
    key="comment",
    declared=lambda column: column.comment,
    observed=lambda column: column.comment,
    absent="",
    form=TEXT,
    meaning="its comment; empty keeps the comment of the column that the query reads",
    feature=Feature.VIEW_COLUMN_COMMENTS,
)

_ALTER_VIEW: Final = "ALTER VIEW"

NAME_ASPECT: Aspect[RenameView, View, ViewState] = Aspect(
    name="view name",
    part=None,
    actions={RenameView: takes_manage("ALTER VIEW … RENAME TO", _ALTER_VIEW)},
    diff=_diff_name,
    render=_render_name,
    explain=lambda action: [Change("view name", str(action.observed), str(action.desired), is_rename=True)],
    drift_kind=lambda _action: DriftKind.VIEW_DELETED,
    is_in_history=False,
    differences=lambda _comparison: (),
)

_DEFINITION: Aspect[AlterViewQuery, View, ViewState] = definition_aspect(
    AlterViewQuery,
    [
        DefinitionPart(
            facet=QUERY_FACET,
            drift_kind=DriftKind.VIEW_QUERY,
            is_same=is_same_query,
            described=shown_text,
            may_be_hidden=True,
        )
    ],
    {AlterViewQuery: takes_manage("ALTER VIEW … AS", _ALTER_VIEW)},
    name="view query",
    statements=lambda _action: (),
)


def _diff_query(comparison: Comparison[View, ViewState]) -> Iterable[AlterViewQuery]:
    """Yield a change of the query; the same query again if its star is to return documented columns that came later."""
    desired, observed = comparison.desired, _with_applied_query(comparison)
    actions = [*_DEFINITION.diff(comparison)]
    is_same = is_same_query(desired.query, observed.query) and not (desired.evolves or observed.evolves)
    if not actions and is_same and comparison.added and named_columns(desired.query) is None:
        actions.append(AlterViewQuery(desired, observed, (QUERY_FACET.key,)))
    return actions


def _with_applied_query(comparison: Comparison[View, ViewState]) -> ViewState:
    """Return a view with the query that was applied last if the platform hides its query."""
    observed, declared = comparison.observed, comparison.declared
    if declared is None or not is_hidden(observed):
        return observed
    return replace(observed, query=submitted_query(declared.query))


def _explain_query(action: AlterViewQuery) -> Iterable[Change]:
    if not is_same_query(action.desired.query, action.observed.query):
        return _DEFINITION.explain(action)
    there = {column.key for column in action.observed.columns}
    added = [column.name for column in action.desired.columns if column.key not in there]
    return [Change("columns of *", None, ", ".join(added))]


QUERY_ASPECT: Aspect[AlterViewQuery, View, ViewState] = replace(
    _DEFINITION, diff=_diff_query, explain=_explain_query, render=_render_query
)

MODE_ASPECT: Aspect[SetSchemaMode, View, ViewState] = replace(
    value_aspect(
        SetSchemaMode,
        MODE_FACET,
        takes_manage("ALTER VIEW … WITH SCHEMA", _ALTER_VIEW),
        name="schema mode",
        described=lambda mode: None if mode is None else mode.value,
        drift_kind=DriftKind.VIEW_MODE,
        is_in_history=False,
    ),
    render=lambda actions, context: [sql_set_schema_mode(context.name, action.desired) for action in actions],
)

COMMENT_ASPECT: Aspect[SetViewComment, View, ViewState] = replace(
    value_aspect(
        SetViewComment,
        COMMENT_FACET,
        takes_manage("COMMENT ON TABLE (views)", "COMMENT ON"),
        name="view comment",
        diff=_diff_comment,
        drift_kind=DriftKind.VIEW_COMMENT,
        is_in_history=False,
    ),
    render=_render_comment,
)

COLUMN_COMMENTS_ASPECT: Aspect[SetViewColumnComments, View, ViewState] = Aspect(
    name="view column comments",
    part=None,
    actions={SetViewColumnComments: takes_manage("COMMENT ON COLUMN", "COMMENT ON")},
    diff=_diff_column_comments,
    differences=_column_comment_differences,
    render=_render_column_comments,
    explain=_explain_column_comments,
    accept=_accept_column_comments,
    drift_kind=lambda _action: DriftKind.VIEW_COLUMN_COMMENT,
    is_in_history=False,
    is_of_columns=True,
    completes_create=True,
)
