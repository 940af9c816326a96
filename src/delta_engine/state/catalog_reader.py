"""The port for reading the catalog, and snapshots over it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar, runtime_checkable

from delta_engine.backends.sql_runner import query_each
from delta_engine.errors import CatalogReadError, RefusedError, raise_all
from delta_engine.models import (
    Part,
    QualifiedName,
    Securable,
    SecurableName,
    Table,
    View,
    ViewName,
    former_names,
    labelled,
    of_kind,
)
from delta_engine.models.parts import joined_grants
from delta_engine.models.policies import AbacPolicy, PolicyFilter, PolicyName, PolicyScope, ScopeKind
from delta_engine.models.types import NOT_MANAGED, first_unsupported
from delta_engine.state.policy_states import EVERY_POLICY
from delta_engine.state.states import CatalogState, TableState

Name = TypeVar("Name", bound=SecurableName)
State = TypeVar("State")
_Policy = TypeVar("_Policy")


class CatalogReader(Protocol):
    """Reads what exists. This method is enough for an injected reader."""

    def snapshot(self, models: Sequence[Table]) -> CatalogState:
        """Return the state of every model's table.

        Args:
            models: their declared grants are requested one by one if the platform hides grants in bulk queries.

        Raises:
            CatalogReadError: a table is not a Delta table, or not completely readable: missing parts look like drift.
                Or its model declares and manages columns, and the engine does not manage the type of one.
            RefusalGroup: several such tables.
            StatementError: the platform refused a query.
        """
        ...


@runtime_checkable
class PlatformReader(CatalogReader, Protocol):
    """Reads what exists on a platform: securables of every kind, and those that have just changed."""

    def snapshot(self, models: Sequence[Securable]) -> CatalogState:
        """Return the state of every model's securable; schemas only if the platform stores details of them.

        Functions and policies that no model declares are read too, in the schemas and scopes of those that are
        declared; views are not.
        """
        ...

    def snapshot_directly(self, models: Sequence[Securable]) -> CatalogState:
        """Return the state of securables just changed, as far as possible from themselves; other sources may lag."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What some schemas of a catalog hold.

    Args:
        tables: the Delta tables, sorted by name.
        views: the views, sorted by name, where the listing distinguishes them.
        others: what the engine cannot manage, each with its kind where the listing shows it.
        refusals: why schemas cannot be listed.
        schemas: the schemas that may hold functions and policies, in lower case.
    """

    tables: tuple[QualifiedName, ...]
    views: tuple[ViewName, ...] = ()
    others: Mapping[QualifiedName, str] = field(default_factory=dict)
    refusals: tuple[RefusedError, ...] = ()
    schemas: tuple[str, ...] = ()


class CatalogLister(Protocol):
    """Lists tables, functions, policies and views."""

    def relations_in(self, catalog: str, schemas: Collection[str] | None = None) -> Listing:
        """Return what some schemas hold, by default all but `information_schema`.

        Named schemas that do not exist hold nothing. CatalogReadError if the catalog is not visible.
        """
        ...

    def governed_in(
        self, catalog: str, schemas: Collection[str], views: Sequence[ViewName] = ()
    ) -> tuple[CatalogState, tuple[RefusedError, ...]]:
        """Return the functions and views of existing schemas and the policies on them, and why some are unreadable.

        Args:
            views: those of `Listing.views`.
        """
        ...


def snapshot_by(reader: CatalogReader, models: Sequence[Securable]) -> CatalogState:
    """Return the snapshot of a reader; one that reads only tables knows nothing about others.

    Raises:
        CatalogReadError: an injected reader leaves out a table.
    """
    if isinstance(reader, PlatformReader):
        return reader.snapshot(models)
    tables = of_kind(Table, models)
    observed = reader.snapshot(tables)
    for table in tables:
        if table.key not in observed.tables:
            raise CatalogReadError(
                f"{type(reader).__name__}.snapshot returns no state of the table",
                table=str(table.qualified_name),
                way_out="Return TableState(exists=False) for a table that does not exist.",
            )
    return observed


def direct_snapshot_by(reader: CatalogReader, models: Sequence[Securable]) -> CatalogState:
    """Return the state of securables just changed, as directly as the reader can."""
    if isinstance(reader, PlatformReader):
        return reader.snapshot_directly(models)
    return snapshot_by(reader, models)


def snapshot_with_former_names(
    reader: CatalogReader, models: Sequence[Securable], *, directly: bool = False
) -> CatalogState:
    """Return a snapshot that also finds tables and views under the names from which models rename them.

    Such a state has its model's name as key, and a `former_name`, and the policies on such a table have the name that
    they get with it. A pending rename costs a second snapshot.

    Args:
        directly: whether to read as `direct_snapshot_by` does. Of former names, the latest may exist without being
            listed.
    """
    read = direct_snapshot_by if directly else snapshot_by
    observed = read(reader, models)
    declared = {table.key: table for table in of_kind(Table, models) if table.renamed_from}
    unlisted = [former_names(table)[0] for table in declared.values()] if directly else []
    formers = _former_tables(declared.values(), observed, (*observed.other_tables, *unlisted))
    views = [view for view in of_kind(View, models) if _may_have_former_name(view, observed)]
    if not formers and not views:
        return observed
    policies = [policy for policy in of_kind(AbacPolicy, models) if policy.scope.key in formers]
    of_renamed = read(
        reader,
        [
            *(under_former_name(declared[key], former) for key, former in formers.items()),
            *(_under_former_name(view, former) for view in views for former in view.former_names),
            *(_on_former_table(policy, formers[policy.scope.key]) for policy in policies),
        ],
    )
    tables = {
        key: replace(of_renamed.table(former), former_name=former)
        for key, former in formers.items()
        if of_renamed.table(former).exists
    }
    renamed_views = {
        view.key: replace(of_renamed.views[former.key], former_name=former)
        for view in views
        for former in [name for name in view.former_names if of_renamed.views[name.key].exists][:1]
    }
    new_names = [(formers[key], declared[key].qualified_name) for key in tables]
    renamed = {former.key for former in formers.values()}
    renamed |= {str(state.former_name).lower() for state in renamed_views.values()}
    return replace(
        observed,
        tables={**observed.tables, **tables},
        views={**observed.views, **renamed_views},
        policies=_under_new_names({**observed.policies, **of_renamed.policies}, new_names),
        other_policies=_under_new_names({**observed.other_policies, **of_renamed.other_policies}, new_names),
        other_tables=tuple(name for name in observed.other_tables if name.key not in renamed),
    )


def _former_tables(
    tables: Iterable[Table], observed: CatalogState, others: Iterable[QualifiedName]
) -> dict[str, QualifiedName]:
    """Return the latest former name that exists of each table that is missing, by the table's key.

    Args:
        tables: those that models rename.
        others: the other tables that may exist.
    """
    listed = {name.key: name for name in others}
    missing = (table for table in tables if not observed.table(table.qualified_name).exists)
    existing = ((table.key, former.key) for table in missing for former in reversed(former_names(table)))
    return {key: listed[former] for key, former in existing if former in listed}


def _under_former_name(view: View, former: ViewName) -> View:
    return replace(view, view_name=former.name, renamed_from=())


def _on_former_table(policy: AbacPolicy, former: QualifiedName) -> AbacPolicy:
    return replace(policy, scope=PolicyScope(ScopeKind.TABLE, str(former)))


def _under_new_names(
    policies: Mapping[str, _Policy], new_names: Sequence[tuple[QualifiedName, QualifiedName]]
) -> Mapping[str, _Policy]:
    """Return policies by the names that they have after the renames of tables."""
    renamed = {}
    for key, state in policies.items():
        name = PolicyName.of_key(key)
        for former, new in new_names:
            name = name.after_rename(former, new)
        if name.key not in renamed or name.key != key:  # the new name has no policy yet
            renamed[name.key] = state
    return renamed


def _may_have_former_name(model: View, observed: CatalogState) -> bool:
    """Whether a view is missing that its model renames, as far as the reader reads views."""
    state = observed.views.get(model.key)
    return bool(model.renamed_from) and state is not None and not state.exists


def readable_snapshot(
    reader: CatalogReader,
    models: Sequence[Securable],
    *,
    required: Collection[str] = (),
    directly: bool = False,
) -> tuple[CatalogState, tuple[RefusedError, ...]]:
    """Return a snapshot of what is readable, and why the rest is not, at the cost of a second snapshot.

    Args:
        required: the `labelled` names of what has to be readable.
        directly: as of `snapshot_with_former_names`.

    Raises:
        CatalogReadError, RefusalGroup: a catalog, a schema or something required is unreadable.
    """
    try:
        return snapshot_with_former_names(reader, models, directly=directly), ()
    except CatalogReadError as error:
        refusals = error.refusals
        names = by_label(models)
        if any(refusal.table is None and refusal.securable not in names for refusal in refusals):
            raise
        raise_all(refusal for refusal in refusals if _refused(refusal, names) in required)
    unreadable = {_refused(refusal, names) for refusal in refusals}
    readable = [model for model in models if labelled(model.qualified_name) not in unreadable]
    if not readable:
        return CatalogState(tables={}), refusals
    return snapshot_with_former_names(reader, readable, directly=directly), refusals


def by_label(models: Iterable[Securable]) -> Mapping[str, Securable]:
    """Return models by the `labelled` names under which a refusal may name them: also former ones that no model has."""
    models = [model for model in models if not model.qualified_name.is_container]
    former = {labelled(name): model for model in models for name in former_names(model)}
    return former | {labelled(model.qualified_name): model for model in models}


def _refused(refusal: RefusedError, models: Mapping[str, Securable]) -> str:
    """Return the `labelled` name of the model that a refusal names."""
    label = str(refusal.table or refusal.securable)
    return labelled(models[label].qualified_name) if label in models else label


def with_tables_read(
    reader: CatalogReader, observed: CatalogState, names: Iterable[QualifiedName]
) -> CatalogState:
    """Return a snapshot that also has further tables, as far as they are readable.

    Raises:
        CatalogReadError, RefusalGroup: a whole catalog is not readable.
    """
    missing = {
        name.key: bare_model(name) for name in sorted(names, key=str) if name.key not in observed.tables
    }
    return observed.with_tables(readable_snapshot(reader, [*missing.values()])[0]) if missing else observed


def with_policies_on(
    reader: CatalogReader, observed: CatalogState, tables: Iterable[QualifiedName]
) -> tuple[CatalogState, tuple[RefusedError, ...]]:
    """Return a snapshot that also has the policies on single existing tables, and why some of these are unreadable."""
    formers = {name: observed.tables[name.key].former_name or name for name in tables}
    asked = [bare_policy(PolicyScope(ScopeKind.TABLE, str(former))) for former in formers.values()]
    if not asked:
        return observed, ()
    read, unreadable = readable_snapshot(reader, asked)
    new_names = [(former, name) for name, former in formers.items()]
    existing = {key: state for key, state in read.policies.items() if state.exists}
    others = _under_new_names(read.other_policies, new_names)
    return replace(
        observed,
        policies={**_under_new_names(existing, new_names), **observed.policies},
        other_policies={**others, **observed.other_policies},
    ), unreadable


def under_former_name(model: Table, former: QualifiedName) -> Table:
    """Return a model for the snapshot of its table as long as that has its former name."""
    return replace(model, table_name=former.table, renamed_from=())


def unmanaged_types(models: Iterable[Table], tables: Mapping[str, TableState]) -> Iterator[CatalogReadError]:
    """Yield a refusal of each table with a column that its model manages and whose type the engine does not manage.

    Args:
        tables: the states by `QualifiedName.key`.
    """
    for model in models:
        if model.columns and model.is_about(Part.COLUMNS) and model.key in tables:
            yield from unmanaged_columns(model.qualified_name, tables[model.key])


def unmanaged_columns(table: QualifiedName, state: TableState) -> Iterator[CatalogReadError]:
    """Yield the refusal of the first column of a table whose type the engine does not manage."""
    for column in state.columns:
        if unsupported := first_unsupported(column.data_type):
            why = "" if unsupported.reason == NOT_MANAGED else f" ({unsupported.reason})"
            yield CatalogReadError(
                f"the engine does not manage its type {unsupported.text!r}{why}",
                table=str(table),
                column=column.name,
                way_out="Remove the model of this table. Or declare the parts that the engine manages, "
                "without its columns, such as manages: [comments, tags].",
            )
            return


def bare_model(name: QualifiedName) -> Table:
    """Return a model with nothing but a name, which is enough for a snapshot."""
    return Table(name.catalog, name.schema, name.table, ())


def bare_policy(scope: PolicyScope) -> AbacPolicy:
    """Return a model with nothing but a scope, which is enough to read the policies on it, without those above it."""
    return AbacPolicy(EVERY_POLICY, scope, PolicyFilter(EVERY_POLICY), [EVERY_POLICY])


def bare_view(name: ViewName) -> View:
    """Return a model with nothing but a name, which is enough for a snapshot."""
    return View(name.catalog, name.schema, name.name)


def read_each(
    names: Iterable[Name],
    read: Callable[[Name], State],
    parallelism: int,
    refusals: Iterable[RefusedError] = (),
) -> dict[str, State]:
    """Read securables in parallel, by the keys of their names; raise given and new refusals together."""

    def state_or_refusal(name: Name) -> State | CatalogReadError:
        try:
            return read(name)
        except CatalogReadError as refusal:
            return refusal

    answers = query_each(state_or_refusal, names, parallelism)
    raise_all((*refusals, *(answer for _, answer in answers if isinstance(answer, CatalogReadError))))
    return {name.key: answer for name, answer in answers if not isinstance(answer, CatalogReadError)}


def read_again(reader: CatalogReader, models: Sequence[Table], observed: CatalogState) -> CatalogState:
    """Return the states of tables as they are now, read directly, with the privileges that a snapshot has seen."""
    asked = [
        replace(model, grants=joined_grants(model.grants, observed.tables[model.key].grants))
        for model in models
    ]
    fresh = direct_snapshot_by(reader, asked)
    tables = {key: replace(state, audit=observed.tables[key].audit) for key, state in fresh.tables.items()}
    return replace(fresh, tables=tables)
