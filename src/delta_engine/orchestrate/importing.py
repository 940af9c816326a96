"""Reads tables that exist as models: importing what exists, and planning, gives an empty plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from delta_engine.actions.policy import matches_any
from delta_engine.aspects import COLUMN_FACETS, TABLE_FACETS
from delta_engine.aspects.existing_models import (
    THE_CATALOG,
    as_plain_model,
    as_schema_model,
    governed_models,
    imported_arguments,
)
from delta_engine.aspects.facet import Facet
from delta_engine.config.body_files import text_key
from delta_engine.config.settings import Settings
from delta_engine.config.state_backend import DatabricksState
from delta_engine.deployment.stores.databricks import HEADS, LOCKS
from delta_engine.errors import CatalogReadError, InvalidCommandError, NotADeltaTableError, RefusedError
from delta_engine.models import (
    AbacPolicy,
    Column,
    ForeignKey,
    PolicyName,
    QualifiedName,
    Schema,
    SchemaName,
    Securable,
    SecurableName,
    Table,
    View,
    ViewName,
    by_resource,
    labelled,
    of_kind,
    resource_key,
)
from delta_engine.models.constraints import Keyed, referenced_table
from delta_engine.orchestrate.backend import Backend
from delta_engine.sql.view_queries import read_relations
from delta_engine.state.catalog_reader import (
    CatalogLister,
    Listing,
    bare_model,
    bare_view,
    direct_snapshot_by,
    readable_snapshot,
    unmanaged_columns,
)
from delta_engine.state.function_states import FunctionState
from delta_engine.state.states import ABSENT, CatalogState, RelationKind, SchemaState, TableState
from delta_engine.telemetry.context import command
from delta_engine.validation.owned_names import OwnedTables
from delta_engine.validation.relations import PARTS_OF_STREAMING_TABLES
from delta_engine.validation.validator import PlanValidator

State = TypeVar("State", TableState, SchemaState, FunctionState, Column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The tables that an import may take.

    Args:
        owns: globs of the project's tables.
        exclude: globs of schemas and tables to leave out.
        of_engine: the keys of the engine's own tables, which need no model.
    """

    owns: Sequence[str] = ("*",)
    exclude: Sequence[str] = ()
    of_engine: Collection[str] = frozenset()


EVERYTHING: Final = Scope()


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The tables to import.

    Args:
        names: sorted by name, so that the tables of a schema stand together.
        models: the functions, policies and views of the schemas that the target names.
        is_whole: whether the target names whole schemas, which are imported too.
        notes: what is left out on purpose.
        refusals: why schemas cannot be listed.
    """

    names: tuple[QualifiedName, ...]
    models: tuple[Securable, ...] = ()
    is_whole: bool = True
    notes: tuple[str, ...] = ()
    refusals: tuple[RefusedError, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The models that were read.

    Args:
        models: of whole schemas, those that have a comment or tags, then functions, policies and views, then tables.
        refusals: why tables are missing that the target names.
        notes: what is left out on purpose.
        declared: the number of resources that have a model already.
    """

    models: tuple[Securable, ...]
    refusals: tuple[RefusedError, ...]
    notes: tuple[str, ...] = ()
    declared: int = 0

    @property
    def tables(self) -> tuple[Table, ...]:
        """The models of tables."""
        return tuple(of_kind(Table, self.models))

    @property
    def selectable(self) -> tuple[Securable, ...]:
        """The models of all but schemas."""
        return tuple(model for model in self.models if model.qualified_name.is_selectable)


def scope_of(settings: Settings, exclude: Sequence[str]) -> Scope:
    """Return the scope of a project's imports: its tables, without those of the engine."""
    own = {history.key for history in (settings.drift_history, settings.run_history) if history}
    state = settings.state_backend.place
    if isinstance(state, DatabricksState):
        own |= {QualifiedName(state.catalog, state.schema, name).key for name in (HEADS, LOCKS)}
    return Scope(owns=settings.owns, exclude=exclude, of_engine=own)


def import_tables(
    backend: Backend, target: str, scope: Scope = EVERYTHING, present: Iterable[Securable] = ()
) -> Imported:
    """Return models for a catalog, `catalog.schema` or `catalog.schema.table`, with one snapshot.

    Args:
        present: models that need no second one.

    Raises:
        ConfigError: the target is none of these, nothing of that name exists, or all of it has models.
    """
    declared = by_resource(present)
    targets = find_targets(backend, target, scope)
    names = tuple(name for name in targets.names if resource_key(name) not in declared)
    others = tuple(model for model in targets.models if resource_key(model.qualified_name) not in declared)
    named = (*targets.names, *(model.qualified_name for model in targets.models))
    if named and not (names or others):
        raise _declared_already(target, [declared[resource_key(name)] for name in named])
    imported = read_models(backend, replace(targets, names=names, models=others), scope.owns)
    is_no_table = any(isinstance(refusal, NotADeltaTableError) for refusal in imported.refusals)
    if not targets.is_whole and is_no_table and (view := _view_of(backend, targets.names[0])):
        if model := declared.get(resource_key(view.qualified_name)):
            raise _declared_already(target, [model])
        imported = read_models(backend, Targets(names=(), models=(view,), is_whole=False), scope.owns)
    if not imported.selectable and not imported.refusals:
        way_out = "; ".join(imported.notes)
        raise InvalidCommandError(f"{target} has no Delta tables", way_out=f"It has others: {way_out}.")
    models = (*declared.values(), *imported.models)
    relations = {model.key: model for model in models if isinstance(model, Table | View)}
    undeclared = (model for model in imported.models if resource_key(model.qualified_name) not in declared)
    return replace(
        imported,
        models=tuple(as_written(model, relations) for model in undeclared),
        declared=len(named) - len(names) - len(others),
    )


def _view_of(backend: Backend, name: QualifiedName) -> View | None:
    """Return the model of a view; None if there is none whose query you may see."""
    view = ViewName(*name.parts)
    try:
        state = direct_snapshot_by(backend.reader, [bare_view(view)]).views.get(view.key)
    except CatalogReadError:
        return None
    return as_plain_model(view, state) if state and state.query else None


def _declared_already(target: str, models: Sequence[Securable]) -> InvalidCommandError:
    """Return the refusal of a target whose securables all have models."""
    what = "tables" if all(isinstance(model, Table) for model in models) else "securables"
    subject = f"{target} is" if len(models) == 1 else f"all {len(models):,} {what} of {target} are"
    place = "" if len(models) == 1 else "the first in "
    return InvalidCommandError(
        f"{subject} declared already ({place}{models[0].declared_at})",
        way_out="A table has one model. Leave out --to to print what exists, or take changes into the model with "
        f"{command('drift --accept')}.",
    )


def find_targets(backend: Backend, target: str, scope: Scope) -> Targets:
    """List the tables that a target names.

    Raises:
        ConfigError: the target is not a name, or has no table to import.
    """
    match [part.strip() for part in target.split(".")]:
        case [catalog, schema, table] if catalog and schema and table:
            return Targets(names=(QualifiedName(catalog, schema, table),), is_whole=False)
        case [catalog, schema] if catalog and schema:
            return _chosen(
                target, catalog, backend.lister, backend.lister.relations_in(catalog, {schema}), scope
            )
        case [catalog] if catalog:
            return _chosen(target, catalog, backend.lister, backend.lister.relations_in(catalog), scope)
    raise InvalidCommandError(
        f"{target!r} names no table, schema or catalog",
        way_out="Write catalog.schema.table, catalog.schema or catalog, without quotes.",
    )


def read_models(backend: Backend, targets: Targets, owns: Sequence[str]) -> Imported:
    """Return models for tables, read with one snapshot; keys have the columns that they reference."""
    catalog_state, unreadable = _read(backend, targets)
    existing = [name for name in targets.names if _exists(catalog_state, name)]
    unmanaged = [refusal for name in existing for refusal in _unmanaged(name, catalog_state.table(name))]
    left_out = {refusal.table for refusal in unmanaged}
    tables = [as_model(name, catalog_state.table(name)) for name in existing if str(name) not in left_out]
    declarable: list[Securable] = [*targets.models, *tables]
    violations = (*PlanValidator().model_violations(declarable), *OwnedTables(owns).check(declarable))
    refused = {violation.table or violation.securable for violation in violations}
    schemas = catalog_state.schema_states.items() if targets.is_whole else ()
    needed = {name.key for name in _bare_scopes(targets)}
    read = [(key, as_schema_model(SchemaName(*key.split(".")), state)) for key, state in schemas]
    importable = [
        model or Schema(*key.split("."), declared_at=THE_CATALOG)
        for key, model in read
        if model or key in needed
    ]
    others = [
        refusal for refusal in unreadable if targets.is_whole and isinstance(refusal, NotADeltaTableError)
    ]
    return Imported(
        models=(
            *(model for model in importable if not any(OwnedTables(owns).check([model]))),
            *(model for model in declarable if labelled(model.qualified_name) not in refused),
        ),
        refusals=(
            *targets.refusals,
            *(refusal for refusal in unreadable if refusal not in others),
            *unmanaged,
            *violations,
        ),
        notes=(
            *targets.notes,
            *(f"left out: {refusal.table} is no Delta table: {refusal.reason}" for refusal in others),
        ),
    )


def _bare_scopes(targets: Targets) -> tuple[SchemaName, ...]:
    """Return the schemas that have policies and none of the tables: a policy's model needs the model of its schema."""
    with_tables = {parent.key for name in targets.names for parent in name.parents}
    scopes = {
        parent.key: parent
        for policy in of_kind(AbacPolicy, targets.models)
        for parent in policy.qualified_name.parents
        if isinstance(parent, SchemaName) and parent.key not in with_tables
    }
    return tuple(scopes.values())


def _unmanaged(name: QualifiedName, state: TableState) -> Iterator[RefusedError]:
    """Yield the refusal of a table whose model would declare a column that the engine does not manage."""
    if state.relation is not RelationKind.STREAMING_TABLE:
        yield from unmanaged_columns(name, state)


def as_written(model: Securable, relations: Mapping[str, Table | View]) -> Securable:
    """Return a model without what follows from others: the columns of primary keys, and the comments of what is read.

    Args:
        relations: the known tables and views, by key.
    """
    match model:
        case Table():
            return with_short_keys(model, relations)
        case View():
            return _with_own_comments(model, relations)
    return model


def with_short_keys(model: Table, declared: Mapping[str, Keyed | View]) -> Table:
    """Return a model whose foreign keys omit the columns that are the primary key of a declared table.

    Args:
        declared: the tables that models declare, by key; views have no keys.
    """
    if not model.foreign_keys:
        return model
    return replace(model, foreign_keys=tuple(_shortened(model, key, declared) for key in model.foreign_keys))


def _with_own_comments(model: View, relations: Mapping[str, Table | View]) -> View:
    """Return a view without the comments that the tables and views which it reads have too.

    The platform takes the comment of a column that the query returns unchanged. A comment of an unknown table is kept:
    a model that repeats it changes nothing, and one that lacks it would lose it in another environment.
    """
    inherited = {column.comment for source in _sources(model, relations) for column in source.columns}
    columns = (
        replace(column, comment="") if column.comment in inherited else column for column in model.columns
    )
    return replace(model, columns=tuple(column for column in columns if column.comment or column.tags))


def _sources(view: View, relations: Mapping[str, Table | View]) -> Iterator[Table | View]:
    """Yield what a view reads, directly and through other views, as far as it is known."""
    waiting, read = [view], {view.key}
    while waiting:
        keys = {name.key for name in read_relations(waiting.pop().query) or ()} - read
        read |= keys
        for source in map(relations.__getitem__, keys & relations.keys()):
            yield source
            waiting += [source] if isinstance(source, View) else []


def _shortened(model: Table, key: ForeignKey, declared: Mapping[str, Keyed | View]) -> ForeignKey:
    referenced = referenced_table(model.qualified_name, key)
    parent = declared.get(referenced.key) if referenced else None
    primary = parent.primary_key if parent and not isinstance(parent, View) else None
    if primary is None or tuple(map(str.lower, primary.columns)) != tuple(
        map(str.lower, key.referenced_columns)
    ):
        return key
    return replace(key, referenced_columns=())


def as_model(name: QualifiedName, state: TableState) -> Table:
    """Return a model that an existing table matches.

    It leaves out what platforms set by themselves. Owner and grants stay unmanaged until a model declares them.
    """
    if state.relation is RelationKind.STREAMING_TABLE:
        return _as_model_of_parts(name, state)
    arguments = imported_arguments(TABLE_FACETS, name, state)
    return Table(name.catalog, name.schema, name.table, state.columns, declared_at=THE_CATALOG, **arguments)


def _as_model_of_parts(name: QualifiedName, state: TableState) -> Table:
    """Return a model of a streaming table: its pipeline owns all but comments and tags."""
    return Table(
        name.catalog,
        name.schema,
        name.table,
        [
            Column(
                column.name, column.data_type, **imported_arguments(_streaming(COLUMN_FACETS), name, column)
            )
            for column in state.columns
        ],
        manages=PARTS_OF_STREAMING_TABLES,
        declared_at=THE_CATALOG,
        **imported_arguments(_streaming(TABLE_FACETS), name, state),
    )


def _streaming(facets: Iterable[Facet[Any, State, Any]]) -> Iterator[Facet[Any, State, Any]]:
    return (facet for facet in facets if facet.part in PARTS_OF_STREAMING_TABLES)


_MOST_SHOWN: Final = 10


def _chosen(target: str, catalog: str, lister: CatalogLister, listing: Listing, scope: Scope) -> Targets:
    """Return what a scope takes of a listing, with a note for each reason to leave something out."""
    schemas = [name for name in listing.schemas if _is_taken(SchemaName(catalog, name), scope)]
    governed, unreadable = lister.governed_in(catalog, schemas, listing.views)
    others = [*governed_models(governed)]
    hidden: dict[SecurableName, str] = {
        other.qualified_name: key for other in others if (key := text_key(other)) and not getattr(other, key)
    }
    left: list[SecurableName] = [*listing.tables, *(other.qualified_name for other in others)]
    left = [name for name in left if name not in hidden]
    notes = [*_notes_on_others(listing.others, scope), *_notes_on_governed(governed, hidden)]
    unused = [
        glob for glob in scope.exclude if not any(_matches(name, glob) for name in (*left, *listing.others))
    ]
    notes += [f"--exclude {glob} matches nothing in {target}" for glob in unused]
    reasons: Sequence[tuple[Callable[[SecurableName], bool], str]] = (
        (lambda name: any(_matches(name, glob) for glob in scope.exclude), "excluded (--exclude)"),
        (lambda name: not matches_any(name, scope.owns), "another project's (owns)"),
        (lambda name: name.kind == QualifiedName.kind and name.key in scope.of_engine, "the engine's own"),
    )
    for is_out, reason in reasons:
        out = [name for name in left if is_out(name)]
        left = [name for name in left if not is_out(name)]
        if out:
            notes.append(f"left out, {reason}: {_shown(map(str, out))}")
    if not (left or unreadable or listing.refusals):
        of_project = " to import" if listing.tables else ""
        raise InvalidCommandError(
            f"{target} has no Delta tables{of_project}, or none that you may see",
            way_out="Correct the name, which is addressed in lower case, or ask for USE SCHEMA and SELECT."
            if not listing.tables
            else f"It has {len(listing.tables):,}: {'; '.join(notes)}.",
        )
    refusals, taken = (*listing.refusals, *unreadable), {*left}
    return Targets(
        names=tuple(name for name in left if isinstance(name, QualifiedName)),
        models=tuple(other for other in others if other.qualified_name in taken),
        notes=tuple(notes),
        refusals=refusals,
    )


def _is_taken(schema: SchemaName, scope: Scope) -> bool:
    return not any(matches_any(schema, [glob]) for glob in scope.exclude)


def _notes_on_governed(governed: CatalogState, hidden: Mapping[SecurableName, str]) -> Iterator[str]:
    """Yield which functions, policies and views are left out, and why."""
    reasons = {f"function {key}": other.reason for key, other in governed.other_routines.items()}
    reasons |= {
        f"policy {PolicyName.of_key(key)}": other.reason for key, other in governed.other_policies.items()
    }
    reasons |= {f"{name.kind} {name}": f"its {key} is hidden from you" for name, key in hidden.items()}
    yield from (f"left out: {name}: {reason}" for name, reason in sorted(reasons.items()))


def _notes_on_others(others: Mapping[QualifiedName, str], scope: Scope) -> Iterator[str]:
    shown = [
        f"{name} ({kind})"
        for name, kind in others.items()
        if matches_any(name, scope.owns) and not any(_matches(name, glob) for glob in scope.exclude)
    ]
    if shown:
        yield f"left out, no Delta tables: {_shown(shown)}"


def _matches(name: SecurableName, glob: str) -> bool:
    """Whether a glob matches a securable or what it is in."""
    return any(matches_any(securable, [glob]) for securable in (name, *name.parents))


def _shown(names: Iterable[str]) -> str:
    listed = [*names]
    first, more = listed[:_MOST_SHOWN], len(listed) - _MOST_SHOWN
    return ", ".join(first) + (f", and {more:,} more" if more > 0 else "")


def _read(backend: Backend, targets: Targets) -> tuple[CatalogState, tuple[RefusedError, ...]]:
    """Return a snapshot, and why other tables cannot be read."""
    schemas = (Schema(*name.parts) for name in _bare_scopes(targets))
    models: list[Table | Schema] = [*map(bare_model, targets.names), *schemas]
    if not models:
        return CatalogState(tables={}), ()
    catalog_state, unreadable = readable_snapshot(backend.reader, models)
    if not targets.is_whole and not unreadable and not _exists(catalog_state, targets.names[0]):
        raise InvalidCommandError(
            f"{targets.names[0]} does not exist, or you may not see it",
            way_out="Correct the name, or ask for SELECT on it.",
        )
    return catalog_state, unreadable


def _exists(catalog_state: CatalogState, name: QualifiedName) -> bool:
    return catalog_state.tables.get(name.key, ABSENT).exists
