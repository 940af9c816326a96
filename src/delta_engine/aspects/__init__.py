"""Aspects: one module per part of a securable, and the explicit ordered tuples of aspects and facets.

A new aspect is one module, its entries in these tuples, its fields in the model and observed state, its golden cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, TypeVar

from delta_engine.actions import Action, Align, Create, Phase, SecurableChange, in_phase_order
from delta_engine.actions.drift_policy import DriftKind
from delta_engine.aspects import (
    backfills,
    check_constraints,
    clustering,
    column_comments,
    column_defaults,
    column_masks,
    column_order,
    column_renames,
    column_types,
    columns,
    foreign_keys,
    function_definition,
    generated_columns,
    grants,
    nullability,
    owner,
    partitioning,
    policy_definition,
    predictive_optimization,
    primary_key,
    restores,
    row_filters,
    storage,
    table_comment,
    table_features,
    table_names,
    table_properties,
    tags,
    view_definition,
)
from delta_engine.aspects.aspect import (
    AnyContext,
    Aspect,
    Change,
    CreateClauses,
    RenderContext,
    Requirement,
    Right,
    Sign,
)
from delta_engine.aspects.comparison import AnyComparison, Comparison, bare_column
from delta_engine.aspects.facet import Facet
from delta_engine.aspects.kind import (
    Kind,
    create_schema,
    create_table,
    takes_drop,
)
from delta_engine.models import (
    AbacPolicy,
    Column,
    Function,
    FunctionName,
    PolicyName,
    QualifiedName,
    Schema,
    SchemaName,
    Securable,
    SecurableName,
    Table,
    View,
    ViewColumn,
    ViewName,
)
from delta_engine.models.nested_types import Path
from delta_engine.sql.function_bodies import called_functions
from delta_engine.sql.functions import sql_create_function, sql_drop_function
from delta_engine.sql.policies import sql_create_policy, sql_drop_policy
from delta_engine.sql.tables import sql_drop_table, sql_on_streaming_table
from delta_engine.sql.views import sql_create_view, sql_drop_view
from delta_engine.state.function_states import FunctionState, function_state_of
from delta_engine.state.policy_states import PolicyState, policy_state_of
from delta_engine.state.states import SchemaState, SecurableState, TableState, schema_state_of, state_of
from delta_engine.state.view_states import ViewState, view_state_of

_Model = TypeVar("_Model", bound=Securable)
_Side = TypeVar("_Side", bound=Securable | SecurableState)

TABLE_ASPECTS: Final[tuple[Aspect[Any, Any, Any], ...]] = (
    table_names.ASPECT,
    restores.ASPECT,
    columns.ASPECT,
    backfills.ASPECT,
    column_renames.ASPECT,
    nullability.CHECKS_ASPECT,
    clustering.ASPECT,
    column_types.ASPECT,
    nullability.ASPECT,
    column_order.ASPECT,
    column_defaults.ASPECT,
    generated_columns.ASPECT,
    partitioning.ASPECT,
    storage.LOCATION,
    column_comments.ASPECT,
    table_comment.ASPECT,
    table_features.ASPECT,
    table_properties.ASPECT,
    predictive_optimization.ASPECT,
    check_constraints.ASPECT,
    primary_key.ASPECT,
    foreign_keys.ASPECT,
    row_filters.ASPECT,
    column_masks.ASPECT,
    tags.ASPECT,
    tags.COLUMN_ASPECT,
    grants.ASPECT,
    owner.ASPECT,
)
"""The aspects of tables."""

SCHEMA_ASPECTS: Final[tuple[Aspect[Any, Any, Any], ...]] = (
    table_comment.SCHEMA_ASPECT,
    predictive_optimization.ASPECT,
    tags.ASPECT,
    grants.ASPECT,
    owner.ASPECT,
)
"""The aspects of schemas; tables share all but the comment."""

FUNCTION_ASPECTS: Final[tuple[Aspect[Any, Any, Any], ...]] = (
    function_definition.ASPECT,
    tags.ASPECT,
    grants.ASPECT,
    owner.ASPECT,
)
"""The aspects of functions; schemas and tables share all but the definition."""

POLICY_ASPECTS: Final[tuple[Aspect[Any, Any, Any], ...]] = (policy_definition.ASPECT,)
"""The aspects of policies (ABAC), which have neither tags nor grants nor owners."""

VIEW_ASPECTS: Final[tuple[Aspect[Any, Any, Any], ...]] = (
    view_definition.NAME_ASPECT,
    view_definition.QUERY_ASPECT,
    view_definition.MODE_ASPECT,
    view_definition.COLUMN_COMMENTS_ASPECT,
    view_definition.COMMENT_ASPECT,
    tags.ASPECT,
    tags.COLUMN_ASPECT,
    grants.ASPECT,
    owner.ASPECT,
)
"""The aspects of views; other securables share tags, grants and owner."""

TABLE_FACETS: tuple[Facet[Table, TableState, Any], ...] = (
    table_names.FACET,
    table_comment.FACET,
    table_properties.FACET,
    primary_key.FACET,
    foreign_keys.FACET,
    check_constraints.FACET,
    clustering.FACET,
    clustering.AUTOMATIC_FACET,
    partitioning.FACET,
    storage.LOCATION_FACET,
    predictive_optimization.FACET,
    backfills.FILL_BY_FACET,
    tags.FACET,
    row_filters.FACET,
    owner.FACET,
    grants.FACET,
)
"""What a model says of a table in addition to its columns, in the order in which model files have it."""

COLUMN_FACETS: tuple[Facet[Column, Column, Any], ...] = (
    nullability.FACET,
    column_comments.FACET,
    column_defaults.FACET,
    generated_columns.GENERATED_FACET,
    generated_columns.IDENTITY_FACET,
    tags.FACET,
    column_masks.FACET,
    column_renames.FACET,
    column_renames.FIELDS_FACET,
    backfills.FACET,
)
"""What a model says of a column in addition to its name and type, in the order in which model files have it."""

SCHEMA_FACETS: tuple[Facet[Schema, SchemaState, Any], ...] = (
    table_comment.SCHEMA_FACET,
    predictive_optimization.FACET,
    tags.FACET,
    owner.FACET,
    grants.FACET,
)
"""What a model says of a schema, in the order in which model files have it."""

FUNCTION_FACETS: tuple[Facet[Function, FunctionState, Any], ...] = (
    function_definition.COMMENT_FACET,
    function_definition.PARAMETERS_FACET,
    function_definition.RETURNS_FACET,
    function_definition.LANGUAGE_FACET,
    function_definition.DETERMINISTIC_FACET,
    function_definition.BODY_FACET,
    function_definition.BODY_FILE_FACET,
    tags.FUNCTION_FACET,
    owner.FACET,
    grants.FACET,
)
"""What a model says of a function, in the order in which model files have it."""

POLICY_FACETS: tuple[Facet[AbacPolicy, PolicyState, Any], ...] = (
    policy_definition.SCOPE_FACET,
    policy_definition.MASK_FACET,
    policy_definition.FILTER_FACET,
    policy_definition.MATCH_FACET,
    policy_definition.WHEN_FACET,
    policy_definition.TO_FACET,
    policy_definition.EXCEPT_FACET,
    policy_definition.COMMENT_FACET,
)
"""What a model says of a policy, in the order in which model files have it."""

VIEW_FACETS: tuple[Facet[View, ViewState, Any], ...] = (
    view_definition.NAME_FACET,
    view_definition.COMMENT_FACET,
    view_definition.QUERY_FACET,
    view_definition.QUERY_FILE_FACET,
    view_definition.MODE_FACET,
    view_definition.COLUMNS_FACET,
    tags.FACET,
    owner.FACET,
    grants.FACET,
)
"""What a model says of a view, in the order in which model files have it."""

VIEW_COLUMN_FACETS: tuple[Facet[ViewColumn, ViewColumn, Any], ...] = (
    view_definition.COLUMN_COMMENT_FACET,
    tags.FACET,
)
"""What a model says of a column of a view."""

KINDS: Final = (
    Kind(
        name=SchemaName,
        named_by=MappingProxyType({"catalog": "catalog_name", "schema": "schema_name"}),
        model=Schema,
        state=SchemaState,
        facets=SCHEMA_FACETS,
        aspects=SCHEMA_ASPECTS,
        created=lambda _desired: SchemaState(),
        stated=schema_state_of,
        create=create_schema,
        create_right=Requirement(
            statement="CREATE SCHEMA",
            right=Right.CREATE_SCHEMA,
            demands="`CREATE SCHEMA` and `USE CATALOG` on the catalog",
            source="Unity Catalog privileges reference",
        ),
        shown_by=(Right.USE_SCHEMA,),
        drift_kinds=MappingProxyType(
            {
                DriftKind.TABLE_TAG: DriftKind.SCHEMA_TAG,
                DriftKind.GRANT: DriftKind.SCHEMA_GRANT,
                DriftKind.GRANT_ADDED: DriftKind.SCHEMA_GRANT_ADDED,
                DriftKind.OWNER: DriftKind.SCHEMA_OWNER,
            }
        ),
        is_repeatable=True,
    ),
    Kind(
        name=FunctionName,
        named_by=MappingProxyType(
            {"catalog": "catalog_name", "schema": "schema_name", "name": "function_name"}
        ),
        model=Function,
        state=FunctionState,
        facets=FUNCTION_FACETS,
        aspects=FUNCTION_ASPECTS,
        created=lambda desired: replace(function_state_of(desired), tags={}, owner=None, grants={}),
        stated=function_state_of,
        create=lambda desired, _context: [(None, sql_create_function(desired))],
        drop=lambda context: sql_drop_function(context.name),
        create_right=Requirement(
            statement="CREATE FUNCTION",
            right=Right.CREATE_FUNCTION,
            demands="`CREATE FUNCTION` and `USE SCHEMA` on the schema, `USE CATALOG`",
            source="Unity Catalog privileges reference",
        ),
        drop_right=takes_drop("function"),
        shown_by=(Right.EXECUTE, Right.USE_SCHEMA),
        needs=lambda desired: sorted(called_functions(desired)),
        drift_kinds=MappingProxyType(
            {
                DriftKind.TABLE_TAG: DriftKind.FUNCTION_TAG,
                DriftKind.GRANT: DriftKind.FUNCTION_GRANT,
                DriftKind.GRANT_ADDED: DriftKind.FUNCTION_GRANT_ADDED,
                DriftKind.OWNER: DriftKind.FUNCTION_OWNER,
            }
        ),
    ),
    Kind(
        name=QualifiedName,
        named_by=MappingProxyType({"catalog": "catalog_name", "schema": "schema_name", "name": "table_name"}),
        model=Table,
        state=TableState,
        facets=TABLE_FACETS,
        column_facets=COLUMN_FACETS,
        aspects=TABLE_ASPECTS,
        created=lambda desired: TableState(columns=tuple(map(bare_column, desired.columns))),
        stated=state_of,
        create=lambda desired, context: create_table(create_clauses(desired, context), context),
        drop=lambda context: sql_drop_table(context.table),
        create_right=Requirement(
            statement="CREATE TABLE",
            right=Right.CREATE_TABLE,
            demands="`CREATE TABLE` and `USE SCHEMA` on the schema, `USE CATALOG`; with a location `CREATE EXTERNAL "
            "TABLE` on the external location",
            source="Unity Catalog privileges reference",
        ),
        drop_right=takes_drop("table"),
        shown_by=(Right.SELECT, Right.USE_SCHEMA),  # tables inherit SELECT of their schema
    ),
    Kind(
        name=PolicyName,
        named_by=MappingProxyType({"name": "name"}),
        model=AbacPolicy,
        state=PolicyState,
        facets=POLICY_FACETS,
        aspects=POLICY_ASPECTS,
        created=policy_state_of,
        stated=policy_state_of,
        create=lambda desired, _context: [(None, sql_create_policy(desired))],
        drop=lambda context: sql_drop_policy(context.name),
        create_right=policy_definition.ON_SCOPE,
        drop_right=policy_definition.TO_DROP,
        shown_by=(Right.MANAGE,),
        needs=policy_definition.needed_functions,
    ),
    Kind(
        name=ViewName,
        named_by=MappingProxyType({"catalog": "catalog_name", "schema": "schema_name", "name": "view_name"}),
        model=View,
        state=ViewState,
        facets=VIEW_FACETS,
        column_facets=VIEW_COLUMN_FACETS,
        aspects=VIEW_ASPECTS,
        created=view_definition.created,
        stated=view_state_of,
        create=lambda desired, _context: [(None, sql_create_view(desired))],
        drop=lambda context: sql_drop_view(context.name),
        create_right=Requirement(
            statement="CREATE VIEW",
            right=Right.CREATE_TABLE,
            demands="`CREATE TABLE` and `USE SCHEMA` on the schema, `USE CATALOG`, and `SELECT` on what it reads",
            source="CREATE VIEW",
        ),
        drop_right=takes_drop("view"),
        shown_by=(Right.SELECT, Right.USE_SCHEMA),
        needs=view_definition.needed,
        drift_kinds=MappingProxyType(
            {
                DriftKind.TABLE_TAG: DriftKind.VIEW_TAG,
                DriftKind.COLUMN_TAG: DriftKind.VIEW_COLUMN_TAG,
                DriftKind.GRANT: DriftKind.VIEW_GRANT,
                DriftKind.GRANT_ADDED: DriftKind.VIEW_GRANT_ADDED,
                DriftKind.OWNER: DriftKind.VIEW_OWNER,
            }
        ),
    ),
)
"""The kinds of securables, each after those that it needs."""

_KIND_OF: dict[type, Kind] = {part: kind for kind in KINDS for part in (kind.name, kind.model, kind.state)}

_ASPECTS = {kind.model: kind.aspects for kind in KINDS}

_ASPECTS_BESIDES_COLUMNS = {
    kind.model: tuple(aspect for aspect in kind.aspects if not aspect.is_of_columns) for kind in KINDS
}

_ASPECT_OF: dict[type[Action], Aspect[Any, Any, Any]] = {
    action_type: aspect for kind in KINDS for aspect in kind.aspects for action_type in aspect.actions
}


def kind_of(part: SecurableName | Securable | SecurableState) -> Kind:
    """Return the kind of a name, a model or a state."""
    return _KIND_OF[type(part)]


def declared_fields(models: Sequence[Securable]) -> Iterator[str]:
    """Yield the fields that a model or one of its columns declares: those with another value than their default."""
    for kind in KINDS:
        of_kind: list[Any] = [model for model in models if isinstance(model, kind.model)]
        columns = [column for model in of_kind if kind.column_facets for column in model.columns]
        for parts, facets in ((of_kind, kind.facets), (columns, kind.column_facets)):
            for facet in facets:
                values = [*map(attrgetter(facet.attribute), parts)]
                if values.count(facet.absent) < len(values):
                    yield facet.attribute


def diff(comparison: AnyComparison) -> Iterator[Action]:
    """Yield every action that the securable needs, aspect by aspect."""
    for aspect in _relevant(comparison):
        yield from aspect.diff(comparison)


def after_create(desired: Securable) -> Iterator[Action]:
    """Yield the actions that a new securable needs after its CREATE statement, aspect by aspect."""
    kind = kind_of(desired)
    comparison = Comparison.of(desired, kind.created(desired))
    for aspect in kind.aspects:
        if aspect.completes_create:
            yield from aspect.diff(comparison)


def parts_after_column_definitions(desired: Table) -> Iterator[Change]:
    """Yield the parts of a new table that its column definitions do not contain."""
    made = TableState(columns=tuple(replace(column, tags={}, mask=None) for column in desired.columns))
    yield from (difference.change for difference in differences(Comparison.of(desired, made)))


def parts_of_new(desired: Securable) -> Iterator[Change]:
    """Yield everything that a model that is no table declares; a view has its columns, as its query makes them."""
    missing: SecurableState = kind_of(desired).state(exists=False)
    if isinstance(desired, View):
        missing = ViewState(exists=False, columns=tuple(map(bare_column, desired.columns)))
    yield from (difference.change for difference in differences(Comparison.of(desired, missing)))


def redefines(change: SecurableChange) -> bool:
    """Whether it creates something that has a definition, or replaces a definition as a whole."""
    if isinstance(change, Align):
        return any(map(is_definition, change.actions))
    return isinstance(change, Create) and bool(kind_of(change.name).definition)


def former_name(align: Align[Any]) -> SecurableName | None:
    """Return the name from which an alignment renames its table or view."""
    renames = (action for action in align.actions if isinstance(action, _RENAMES))
    return next((rename.observed for rename in renames), None)


def under_name(model: _Model, name: SecurableName) -> _Model:
    """Return a model under another name of its kind."""
    return replace(model, **dict(zip(kind_of(model).named_by.values(), astuple(name), strict=True)))


def is_definition(action: Action | None) -> bool:
    """Whether an action replaces a definition as a whole."""
    return isinstance(action, _DEFINITIONS)


def with_definition(model: _Model, other: Securable) -> _Model:
    """Return a model with the definition of another of its kind."""
    return replace(model, **{name: getattr(other, name) for name in kind_of(model).definition})


def is_text(difference: Difference) -> bool:
    """Whether it is of a text that a platform may show in other words."""
    action = difference.action
    return isinstance(action, _DEFINITIONS) and _TEXTS.issuperset(action.parts)


def follows_create(difference: Difference) -> bool:
    """Whether it is what a statement after CREATE has yet to do, if it is of a securable that was just created."""
    if difference.action is None or not _ASPECT_OF[type(difference.action)].completes_create:
        return False
    return difference.change.sign is Sign.ADDED or isinstance(difference.action, owner.ChangeOwner)


_RENAMES: Final = (table_names.RenameTable, view_definition.RenameView)
_DEFINITIONS: Final[tuple[type[Any], ...]] = tuple(
    action for action, aspect in _ASPECT_OF.items() if aspect.definition
)
_TEXTS: Final = frozenset(
    facet.key
    for facet in (
        function_definition.BODY_FACET,
        function_definition.PARAMETERS_FACET,
        policy_definition.MATCH_FACET,
        policy_definition.WHEN_FACET,
        view_definition.QUERY_FACET,
    )
)


def _relevant(comparison: AnyComparison) -> Sequence[Aspect[Any, Any, Any]]:
    desired = comparison.desired
    aspects_of = _ASPECTS_BESIDES_COLUMNS if comparison.has_equal_columns else _ASPECTS
    relevant = aspects_of[type(desired)]
    if isinstance(desired, Table) and desired.manages is not None:
        return [aspect for aspect in relevant if aspect.part is None or desired.is_about(aspect.part)]
    return relevant


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference between a securable and a model.

    Args:
        action: reverts it; None if no aspect compares it.
        renamed: the former and the present path of a column or field that was renamed outside the engine.
    """

    kind: DriftKind
    change: Change
    action: Action | None = None
    renamed: tuple[Path, Path] | None = None


def differences(comparison: AnyComparison) -> Iterator[Difference]:
    """Yield the differences of both sides: the diff without the actions that only enable others."""
    drift_kinds = kind_of(comparison.desired).drift_kinds
    for aspect in _relevant(comparison):
        for action in (aspect.differences or aspect.diff)(comparison):
            kind = aspect.drift_kind(action)
            for change in aspect.explain(action):
                yield Difference(kind=drift_kinds.get(kind, kind), change=change, action=action)


def accept(model: _Side, observed: SecurableState, accepted: Iterable[Difference]) -> _Side:
    """Return the model with the observed side of the accepted differences, as far as aspects compare them.

    The other way round, it returns a state with what was applied.
    """
    for difference in accepted:
        if difference.action is not None:
            model = _ASPECT_OF[type(difference.action)].accept(model, observed, difference.action)
    return model


def render(actions: Iterable[Action], context: AnyContext) -> Iterator[tuple[Sequence[Action], str]]:
    """Yield the statements of one securable's actions in execution order, each with its actions."""
    for together, group in groupby(in_phase_order(actions), key=_aspect_and_phase):
        actions = tuple(group)
        for sql in together[0].render(actions, context):
            yield actions, sql_on_streaming_table(sql) if context.is_streaming else sql


def _aspect_and_phase(action: Action) -> tuple[Aspect[Any, Any, Any], Phase]:
    return _ASPECT_OF[type(action)], action.phase


def aspect_name(action: Action) -> str:
    """Return the name of the aspect whose part an action changes."""
    return _ASPECT_OF[type(action)].name


def is_in_history(action: Action) -> bool:
    """Whether RESTORE brings back what an action changes."""
    return _ASPECT_OF[type(action)].is_in_history


def explain(actions: Iterable[Action]) -> Iterator[Change]:
    """Yield the changes of each action, line by line."""
    for action in actions:
        yield from _ASPECT_OF[type(action)].explain(action)


def create_clauses(desired: Table, context: RenderContext) -> CreateClauses:
    """Return the contributions of all aspects to CREATE TABLE, merged."""
    parts = [aspect.create(desired, context) for aspect in TABLE_ASPECTS]
    return CreateClauses(
        columns=tuple(column for part in parts for column in part.columns),
        constraints=tuple(constraint for part in parts for constraint in part.constraints),
        comment="".join(part.comment for part in parts),
        properties={key: value for part in parts for key, value in part.properties.items()},
        clauses=tuple(clause for part in parts for clause in part.clauses),
        cluster_by=tuple(column for part in parts for column in part.cluster_by),
    )
