"""Unity Catalog in memory: it runs the statements of the `databricks` backend, and refuses what the real one would.

It is a `SqlRunner`, and reads itself as a `CatalogReader`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from threading import Lock
from typing import Any

from typing_extensions import assert_never

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import StatementError
from delta_engine.models import (
    AbacPolicy,
    Function,
    PolicyName,
    PolicyScope,
    QualifiedName,
    Reference,
    Securable,
    Table,
    View,
    of_kind,
)
from delta_engine.models.policies import ScopeKind
from delta_engine.models.views import SchemaMode
from delta_engine.state.audits import NO_AUDIT, Audit
from delta_engine.state.function_states import ABSENT_FUNCTION, FunctionState
from delta_engine.state.policy_states import ABSENT_POLICY, PolicyState
from delta_engine.state.principals import ALL_ACCOUNT_USERS, Permissions
from delta_engine.state.states import ABSENT, CatalogState, SchemaState, TableState
from delta_engine.state.unity_catalog.policy_descriptions import described_policy
from delta_engine.state.view_states import ABSENT_VIEW, ViewState
from tests.fakes.unity_catalog import (
    columns,
    constraints,
    functions,
    governance,
    layout,
    locations,
    policies,
    properties,
    statements,
    user_views,
)
from tests.fakes.unity_catalog.audit import AuditLog
from tests.fakes.unity_catalog.collations import created_in
from tests.fakes.unity_catalog.creation import created
from tests.fakes.unity_catalog.descriptions import (
    as_create_statement,
    as_grants,
    as_json,
    as_properties,
    as_schema_description,
    view_as_json,
)
from tests.fakes.unity_catalog.grammar import parse, parse_question
from tests.fakes.unity_catalog.history import Histories
from tests.fakes.unity_catalog.lineage import LineageEvent, lineage_rows
from tests.fakes.unity_catalog.refusals import Refusal, require
from tests.fakes.unity_catalog.rights import check_rights, require_manager, shown_to, visible_to
from tests.fakes.unity_catalog.spelling import as_read, names_of
from tests.fakes.unity_catalog.statements import Path, Tags
from tests.fakes.unity_catalog.stored import BINARY, Stored
from tests.fakes.unity_catalog.views import VIEWS, Shown, schemas_of, selected

_QUESTIONS = ("SELECT", "SHOW", "DESCRIBE")
_ANALYSIS = "DESCRIBE QUERY "
_EVERYTHING = re.compile(r"SELECT \* FROM ((?:`[^`]+`\.){2}`[^`]+`)")
_CREATOR = "ann@example.com"
_WITHOUT_HISTORY = (
    statements.CreateFunction,
    statements.DropFunction,
    statements.AlterFunction,
    statements.CreatePolicy,
    statements.DropPolicy,
    statements.CreateView,
    statements.AlterView,
    statements.DropView,
)
"""Statements about functions, policies and views, which no table's history has."""


class FakeUnityCatalog:
    """A metastore with one catalog or several; catalogs are there as soon as somebody names them.

    Args:
        schemas: names of schemas that are there from the start: `catalog.schema`.
        governed_tags: keys of tags that block the drop of a column that has them.
        checks_owners: whether to keep the user off tables of other owners, and to hide grants on them in the views.
        user: the principal that runs statements.

    Attributes:
        histories: the commits of every table.
        audit_log: the audit log; None if it may not be read.
        lineage: the reads in the lineage tables; None if these may not be read.
        knows_json: whether it runs `DESCRIBE TABLE … AS JSON`, which older runtimes do not.
        describes_keys: whether that JSON has the table's keys, as on runtimes from 17.3 on.
        groups: the groups that the user is in.
        records_times: whether the views show when tables were created; Spark's catalogs do not.
        hides: whether views and listings leave out what the user has no privileges on.
        catalogs: the holders of catalogs. Every user may use those of `schemas`, as a workspace's own catalog
            ("Manage privileges in Unity Catalog"); another catalog has no owner and no grants.
        files: what dropped external tables left at their locations.
        functions: the functions, by their dotted names.
        lost_on_replace: what CREATE OR REPLACE FUNCTION loses.
        needs_functions: whether masks and filters are refused whose function is missing or takes other arguments.
        hides_bodies: whether `routines` has NULL for the bodies of others' functions.
        policies: the ABAC policies of catalogs, schemas and tables.
        knows_policies: whether it runs `SHOW EFFECTIVE POLICIES`, which runtimes before 16.4 do not.
        known_tags: the keys of the governed tags that policies may name; None for any.
        travels_under_policies: whether time travel is filtered by policies, in place of being refused.
        catalog_tags: the tags of catalogs.
        views: the columns of the views of `information_schema`, as they list them.
        without_files: the keys of registered tables whose files are missing: no statement but DROP works on them.
        collations: the default collations of schemas, by name; the others have UTF8_BINARY.
        queries: the definitions of views of others, by schema and name; None for one that the user may not see.
        user_views: the views that statements created, by their dotted names.
        lost_on_alter: what ALTER VIEW AS loses besides the comments of columns.
        shown_query: how the platform spells the queries of views where it shows them.
        hides_queries: whether `views` has NULL for the queries of others' views.
        refuses_analysis: the condition by which `DESCRIBE QUERY` is refused; None to run it.
        statements: what changed something.
        questions: what was asked.
    """

    def __init__(
        self,
        schemas: Iterable[str] = ("dev.silver",),
        governed_tags: Iterable[str] = (),
        *,
        checks_owners: bool = False,
        user: str = _CREATOR,
    ) -> None:
        self.tables: dict[str, Stored] = {}
        self.files: dict[str, TableState] = {}
        self.schemas: dict[str, SchemaState] = {name: SchemaState(owner=_CREATOR) for name in schemas}
        self.governed_tags = frozenset(governed_tags)
        self.renamed_catalogs: frozenset[str] = frozenset()
        self._checks_owners = checks_owners
        self.user = user
        self.histories = Histories()
        self.audit_log: AuditLog | None = None
        self.lineage: list[LineageEvent] | None = []
        self.knows_json = True
        self.describes_keys = False
        self.groups: set[str] = set()
        self.hides = False
        self.records_times = True
        usable = Permissions(grants={ALL_ACCOUNT_USERS: ("USE CATALOG",)})
        self.catalogs: dict[str, Permissions] = {name.partition(".")[0]: usable for name in self.schemas}
        self.functions: dict[str, FunctionState] = {}
        self.lost_on_replace = functions.LOST_ON_REPLACE
        self.needs_functions = False
        self.hides_bodies = False
        self.policies: list[policies.Policy] = []
        self.knows_policies = True
        self.known_tags: frozenset[str] | None = None
        self.travels_under_policies = False
        self.catalog_tags: dict[str, Tags] = {}
        self.views = dict(VIEWS)
        self.without_files: set[str] = set()
        self.collations: dict[str, str] = {}
        self.queries: dict[tuple[str, str], str | None] = {}
        self.user_views: dict[str, user_views.StoredView] = {}
        self.lost_on_alter = user_views.LOST_ON_ALTER
        self.shown_query: Callable[[str], str] = user_views.as_shown
        self.hides_queries = False
        self.refuses_analysis: str | None = None
        self._created_views = 0
        self.statements: list[str] = []
        self.questions: list[str] = []
        self._lock = Lock()

    def by_hand(self, *statements: str, user: str = "jo") -> None:
        """Run statements of another principal."""
        before, self.user = self.user, user
        try:
            for sql in statements:
                self.run(sql)
        finally:
            self.user = before

    def run(self, sql: str) -> Sequence[Row]:
        with self._lock:
            try:
                if sql.startswith(_QUESTIONS):
                    return self._answer(sql)
                statement = parse(sql)
                is_of_key = self._drops_key(statement)
                self._apply(statement)
                if not is_of_key and not isinstance(statement, _WITHOUT_HISTORY):
                    stored = self.tables.get(".".join(statement.name).lower())
                    self.histories.note(statement, self.user, stored.state if stored else None)
                if self.audit_log is not None:
                    self.audit_log.note(statement, self.user)
            except Refusal as refusal:
                raise StatementError(refusal.message, sql=sql, error_class=refusal.error_class) from refusal
            self.statements.append(sql)
        return [{"num_affected_rows": 0}] if isinstance(statement, statements.Update) else ()

    def put_nulls(self, table: QualifiedName, column: str, count: int) -> None:
        """Let a column of a table have NULL in so many rows."""
        stored = self.tables[table.key]
        self.tables[table.key] = replace(stored, nulls={**stored.nulls, column.lower(): count})

    def write_rows(self, table: QualifiedName, operation: str = "WRITE") -> None:
        """Let somebody write rows into a table."""
        self.histories.write(table.key, operation, "jo", self.stored(table.key).state)

    def snapshot(self, models: Sequence[Securable]) -> CatalogState:
        of_schemas = (model for model in models if not isinstance(model, AbacPolicy))
        pairs = {(model.catalog_name.lower(), model.schema_name.lower()) for model in of_schemas}
        asked = {table.key: self._read(table.key) for table in of_kind(Table, models)}
        beside = [table for table in self.tables.values() if (table.name.catalog, table.name.schema) in pairs]
        return CatalogState(
            tables=asked,
            missing_schemas=frozenset(pair for pair in pairs if ".".join(pair) not in self.schemas),
            other_tables=tuple(name for name in names_of(beside) if name.key not in asked),
            schema_states={
                name: self.schemas[name] for name in map(".".join, sorted(pairs)) if name in self.schemas
            },
            functions=self._read_functions(of_kind(Function, models)),
            policies=self._read_policies(of_kind(AbacPolicy, models)),
            views=self._read_views(of_kind(View, models)),
        )

    def snapshot_directly(self, models: Sequence[Securable]) -> CatalogState:
        return self.snapshot(models)

    def _read_functions(self, models: Sequence[Function]) -> Mapping[str, FunctionState]:
        schemas = {f"{model.catalog_name}.{model.schema_name}.".lower() for model in models}
        present = {key: state for key, state in self.functions.items() if key.startswith(tuple(schemas))}
        return {**{model.key: ABSENT_FUNCTION for model in models}, **present}

    def _read_views(self, models: Sequence[View]) -> Mapping[str, ViewState]:
        shown = self._shown_views()
        return {
            model.key: user_views.as_state(*shown[model.key]) if model.key in shown else ABSENT_VIEW
            for model in models
        }

    def _read_policies(self, models: Sequence[AbacPolicy]) -> Mapping[str, PolicyState]:
        read: dict[str, PolicyState] = {model.key: ABSENT_POLICY for model in models}
        for policy in self.policies:
            if any(f"{model.scope.key}.".startswith(f"{policy.securable}.") for model in models):
                state = described_policy(policy.as_description())
                if isinstance(state, PolicyState):
                    kind = list(ScopeKind)[policy.securable.count(".")]
                    read[PolicyName(PolicyScope(kind, policy.securable), policy.name).key] = state
        return read

    def stored(self, key: str) -> Stored:
        """Return a table with the foreign keys that point at it."""
        stored = self.tables.get(key)
        if stored is None:
            raise Refusal("TABLE_OR_VIEW_NOT_FOUND", f"there is no table {key}")
        require(key not in self.without_files, "DELTA_PATH_DOES_NOT_EXIST", f"{key} is not a Delta table")
        references = tuple(
            Reference(table=table.name, name=str(foreign.name))
            for table in self.tables.values()
            for foreign in table.state.foreign_keys
            if foreign.references == key
        )
        return replace(stored.with_state(referenced_by=references), governed_tags=self.governed_tags)

    def _read(self, key: str) -> TableState:
        return as_read(self.stored(key)) if key in self.tables else ABSENT

    def _shown(self) -> Shown:
        user = self.user if self._checks_owners else None
        tables, schemas = shown_to(user, *self._visible())
        return Shown(
            views=self.views,
            tables={key: table.with_state(audit=self._audit(key)) for key, table in tables.items()},
            schemas=schemas,
            functions=self._shown_functions(),
            user_views=self._shown_views(),
            catalogs=self.catalogs,
            user=self.user,
            groups=frozenset(self.groups),
            renamed=self.renamed_catalogs,
        )

    def _shown_functions(self) -> Mapping[str, FunctionState]:
        names = {self.user, ALL_ACCOUNT_USERS, *self.groups}
        return {
            key: replace(function, body=None)
            if self.hides_bodies and function.owner not in names
            else function
            for key, function in self.functions.items()
            if not self.hides or function.owner in names or not names.isdisjoint(function.grants)
        }

    def _shown_views(self) -> Mapping[str, tuple[user_views.StoredView, bool]]:
        """Return the views as the last query of each left them, and whether the user may see their queries."""
        names = {self.user, ALL_ACCOUNT_USERS, *self.groups}
        return {
            key: (
                replace(view, query=self.shown_query(view.query)),
                not self.hides_queries or view.owner in names,
            )
            for key, view in self.user_views.items()
        }

    def _described_view(self, path: Path) -> Sequence[Row]:
        view = self._view(path)
        return view_as_json(view, shows_query=self._shown_views()[view.key][1])

    def _described_query(self, query: str) -> Sequence[Row]:
        require(not self.refuses_analysis, self.refuses_analysis, "the query cannot be described")
        return [
            {"col_name": output.name, "data_type": "string", "comment": output.comment or None}
            for output in self._relations().described(query)
        ]

    def _relations(self) -> user_views.Relations:
        return user_views.Relations(tables=self.tables, views=self.user_views, functions=self.functions)

    def query_view(self, name: str) -> user_views.StoredView:
        """Query a view, which may evolve, and return it; raises Refusal if it fails."""
        view = self._relations().resolved(name.lower())
        self.user_views[view.key] = view
        return view

    def failing_views(self) -> dict[str, str]:
        """Return why views fail that a query would find broken now, by their dotted names."""
        failing = {}
        with self._lock:
            for key in self.user_views:
                try:
                    self._relations().resolved(key)
                except Refusal as refusal:
                    failing[key] = refusal.message
        return failing

    def _queried_view(self, sql: str) -> str | None:
        """Return the view of which a statement selects everything."""
        match = _EVERYTHING.fullmatch(sql)
        key = match[1].replace("`", "").lower() if match else ""
        return key if key in self.user_views else None

    def returned(self, query: str) -> tuple[str, ...]:
        """Return the columns of a query; raises Refusal if it fails."""
        return tuple(output.name for output in self._relations().analyzed(query))

    def _audit(self, key: str) -> Audit:
        return self.histories.audit(key) if self.records_times else NO_AUDIT

    def _visible(self) -> tuple[Mapping[str, Stored], Mapping[str, SchemaState]]:
        if not self.hides:
            return self.tables, self.schemas
        return visible_to(
            {self.user, ALL_ACCOUNT_USERS, *self.groups}, self.tables, self.schemas, self.catalogs
        )

    def _answer(self, sql: str) -> Sequence[Row]:
        self.questions.append(sql)
        if sql.startswith(_ANALYSIS):
            return self._described_query(sql.removeprefix(_ANALYSIS))
        question = parse_question(sql)
        match question:
            case statements.Question(_, ()) if ".information_schema.views" in sql:
                return [
                    *(
                        {"table_schema": schema, "table_name": name, "view_definition": query}
                        for (schema, name), query in self.queries.items()
                        if f"'{schema}'" in sql
                    ),
                    *selected(sql, self._shown()),
                ]
            case statements.Question("SELECT", ()) if view := self._queried_view(sql):
                self.query_view(view)
                return []  # nothing here has rows
            case statements.Question("SELECT", path) if path:
                self._check_time_travel(_dotted(path, 3))
                return [{"verified": None}]  # it has no rows, so that no two versions differ
            case statements.Question(_, ()) if self.audit_log is not None and "system.access.audit" in sql:
                return self.audit_log.rows(sql)
            case statements.Question(_, ()) if self.lineage is not None and "_lineage\n" in sql:
                return lineage_rows(sql, self.lineage)
            case statements.Question(_, ()):
                return selected(sql, self._shown())
            case statements.Question("SHOW GRANTS ON FUNCTION", path):
                return self._grants_on_function(self._function(path))
            case statements.Question(
                "SHOW POLICIES ON CATALOG" | "SHOW POLICIES ON SCHEMA" | "SHOW POLICIES ON TABLE", path
            ):
                return [policy.as_row() for policy in self._policies_on(".".join(path).lower())]
            case statements.Question("DESCRIBE POLICY", (*path, name)):
                return self._policy(tuple(path), name).as_description()
            case statements.Question("SHOW GRANTS ON VIEW", path):
                key = self._view(path).key
                schema = key.rpartition(".")[0]
                own = as_grants("VIEW", key, self.user_views[key].grants)
                return [*own, *as_grants("SCHEMA", schema, self.schemas[schema].grants)]
            case statements.Question("SHOW GRANTS ON TABLE" | "SHOW GRANTS ON SCHEMA", path):
                return self._grants(".".join(path).lower())
            case statements.Question("SHOW SCHEMAS", (catalog,)):
                return schemas_of(catalog, self._visible()[1])
            case statements.Question("DESCRIBE SCHEMA", path):
                return as_schema_description(self.schemas[self._schema(path)])
            case statements.Question("SHOW TBLPROPERTIES", path):
                return as_properties(self._described(path))
            case statements.Question("SHOW CREATE TABLE", path):
                return as_create_statement(self._described(path))
            case statements.Question("DESCRIBE HISTORY", path, limit):
                key = _dotted(path, 3)
                policies.refuse_history(self.stored(key).state, key, "DESCRIBE_HISTORY")
                return self.histories.rows(key, limit)
            case statements.Question("SHOW EFFECTIVE POLICIES", path):
                return self._effective_policies(self.stored(_dotted(path, 3)).name.key)
            case statements.Question("DESCRIBE DETAIL", path):
                return [{"id": self.histories.id_of(self.stored(_dotted(path, 3)).name.key)}]
            case statements.Question(_, path):
                require(self.knows_json, "PARSE_SYNTAX_ERROR", "no viable alternative at 'AS'")
                if self._is_view(path):
                    return self._described_view(path)
                return as_json(self._described(path), with_keys=self.describes_keys)

    def _effective_policies(self, key: str) -> Sequence[Row]:
        require(self.knows_policies, "PARSE_SYNTAX_ERROR", "no viable alternative at 'EFFECTIVE'")
        if self._checks_owners:
            require_manager(key, self.user, self.tables, self.schemas)
        return [policy.as_row() for policy in policies.effective(self.policies, key)]

    def hidden_by(self, key: str, user: str) -> str | None:
        """Return what hides stored values of a table from a user; None for nothing."""
        effective = policies.effective(self.policies, key)
        return policies.hides(effective, user, self.stored(key).state, self.inherited_tags(key))

    def inherited_tags(self, key: str) -> Tags:
        """Return the tags of a table's catalog and schema."""
        schema = key.rpartition(".")[0]
        return {**self.catalog_tags.get(key.partition(".")[0], {}), **self.schemas[schema].tags}

    def _check_time_travel(self, key: str) -> None:
        """Refuse former versions of a table that something filters or masks for the user."""
        policies.refuse_history(self.stored(key).state, key, "TIME_TRAVEL")
        is_free = self.travels_under_policies or self.hidden_by(key, self.user) is None
        require(is_free, "FGAC_TIME_TRAVEL_NOT_SUPPORTED.NOT_CATALOG_OWNED", f"{key} has no catalog commits")

    def _grants_on_function(self, key: str) -> Sequence[Row]:
        above = key.rpartition(".")[0]
        own = as_grants("FUNCTION", key, self.functions[key].grants)
        return [*own, *as_grants("SCHEMA", above, self.schemas[above].grants)]

    def _policies_on(self, securable: str) -> list[policies.Policy]:
        require(self.knows_policies, "PARSE_SYNTAX_ERROR", "no viable alternative at 'POLICIES'")
        self._require_securable(securable)
        return [policy for policy in self.policies if policy.securable == securable]

    def _policy(self, path: Path, name: str) -> policies.Policy:
        named = [
            policy for policy in self._policies_on(".".join(path).lower()) if policy.key[1] == name.lower()
        ]
        require(named, "POLICY_NOT_FOUND", f"there is no policy {name} on {'.'.join(path)}")
        return named[0]

    def _create_policy(self, policy: policies.Policy, replaces: bool) -> None:
        policies.check(policy)
        others = [other for other in self._policies_on(policy.securable) if other.key != policy.key]
        is_there = any(other.key == policy.key for other in self.policies)
        require(replaces or not is_there, "POLICY_ALREADY_EXISTS", f"{policy.name} is there already")
        most = policies.MOST_POLICIES[policy.securable.count(".") + 1]
        require(len(others) < most, "INVALID_PARAMETER_VALUE", f"{policy.securable} has {most} policies")
        is_known = str(policy.function) in self.functions
        require(is_known, "ROUTINE_NOT_FOUND", f"there is no function {policy.function}")
        policy = replace(policy, altered_at=datetime.now(timezone.utc), altered_by=self.user)
        self.policies = [*(other for other in self.policies if other.key != policy.key), policy]

    def _require_securable(self, name: str) -> None:
        match name.count("."):
            case 0:
                require(name in self.catalogs, "NO_SUCH_CATALOG_EXCEPTION", f"there is no catalog {name}")
            case 1:
                require(name in self.schemas, "SCHEMA_NOT_FOUND", f"there is no schema {name}")
            case _:
                self.stored(name)

    def _create_function(self, path: Path, state: FunctionState, replaces: bool) -> None:
        key = _dotted(path, 3)
        self._schema(path[:2])
        former, now = self.functions.get(key), datetime.now(timezone.utc)  # of the clock, as deployments are
        state = replace(state, audit=Audit(altered_at=now, altered_by=self.user))
        if former is None:
            self.functions[key] = replace(functions.created(key, state), owner=self.user)
            return
        require(replaces, "ROUTINE_ALREADY_EXISTS", f"{key} is there already")
        replaced = functions.replaced(key, former, state, self.lost_on_replace)
        self.functions[key] = replaced if replaced.owner else replace(replaced, owner=self.user)

    def _is_view(self, path: Path) -> bool:
        return ".".join(path).lower() in self.user_views

    def _view(self, path: Path) -> user_views.StoredView:
        key = _dotted(path, 3)
        require(key in self.user_views, "TABLE_OR_VIEW_NOT_FOUND", f"there is no view {key}")
        return self.user_views[key]

    def _create_view(self, statement: statements.CreateView) -> None:
        key = _dotted(statement.name, 3)
        if key in self.user_views and statement.replaces:
            self._schema(statement.name[:2])
        else:
            self._new_name(statement.name)
        self._created_views += 1
        view = user_views.StoredView(
            key=key,
            query=statement.query,
            outputs=(),
            columns=(),
            mode=statement.mode or SchemaMode.COMPENSATION,
            comment=statement.comment,
            owner=self.user,
            audit=Audit(created_at=datetime.now(timezone.utc), created_by=self.user),
        )
        self.user_views[key] = user_views.created(
            view, statement.columns, self._relations(), self._created_views
        )

    def _alter_view(self, view: user_views.StoredView, change: statements.ViewChange) -> None:
        match change:
            case statements.SetQuery(query):
                altered = user_views.altered(view, query, self._relations(), self.lost_on_alter)
                self._keep_view(altered)
            case statements.SetMode(mode):
                with suppress(Refusal):  # a broken view may get another mode
                    view = self._relations().resolved(view.key)
                self._keep_view(replace(view, mode=mode))
            case statements.SetValue(_, owner):
                self._keep_view(replace(view, owner=owner))
            case statements.SetTags() | statements.UnsetTags():
                tags = governance.altered_tags(view.tags, change)
                self.user_views[view.key] = replace(view, tags=tags)
            case statements.RenameTable(path):
                name = self._new_name(path).key
                is_within = name.partition(".")[0] == view.key.partition(".")[0]
                require(is_within, "INVALID_PARAMETER_VALUE", f"{name} is in another catalog")
                del self.user_views[view.key]
                self._keep_view(replace(view, key=name))

    def _keep_view(self, view: user_views.StoredView) -> None:
        now = datetime.now(timezone.utc)  # of the clock, as deployments are
        audit = replace(view.audit, altered_at=now, altered_by=self.user)
        self.user_views[view.key] = replace(view, audit=audit)

    def _alter_function(self, key: str, change: statements.FunctionChange) -> None:
        function = self.functions[key]
        match change:
            case statements.SetValue(_, owner):
                self.functions[key] = replace(function, owner=owner)
            case statements.UnsetTags(keys):
                missing = [tag for tag in keys if tag not in function.tags]
                require(not missing, "INVALID_PARAMETER_VALUE", f"{key} has no tag {missing}")
                self.functions[key] = replace(function, tags=governance.altered_tags(function.tags, change))
            case statements.SetTags():
                self.functions[key] = replace(function, tags=governance.altered_tags(function.tags, change))

    def _function(self, path: Path) -> str:
        key = _dotted(path, 3)
        require(key in self.functions, "ROUTINE_NOT_FOUND", f"there is no function {key}")
        return key

    def _grants(self, key: str) -> Sequence[Row]:
        if self._checks_owners:
            require_manager(key, self.user, self.tables, self.schemas)
        if key in self.schemas:
            return as_grants("SCHEMA", key, self.schemas[key].grants)
        above = key.rpartition(".")[0]
        own = as_grants("TABLE", key, self.stored(key).state.grants)
        return [*own, *as_grants("SCHEMA", above, self.schemas[above].grants)]

    def _apply(self, statement: statements.Statement) -> None:
        if self._checks_owners:
            check_rights(statement, self.user, self.tables, self.schemas, self.functions, self.user_views)
        match statement:
            case statements.CreateSchema(path, comment):
                name = _dotted(path, 2)
                require(name not in self.schemas, "SCHEMA_ALREADY_EXISTS", f"{name} is there already")
                self.schemas[name] = SchemaState(owner=self.user, comment=comment)
            case statements.DropSchema(path):
                name = self._schema(path)
                for key in [key for key in self.tables if key.startswith(f"{name}.")]:
                    self._drop(key, if_exists=False)
                for key in [key for key in self.functions if key.startswith(f"{name}.")]:
                    del self.functions[key]
                self.policies = [policy for policy in self.policies if policy.securable != name]
                for key in [key for key in self.user_views if key.startswith(f"{name}.")]:
                    del self.user_views[key]
                del self.schemas[name]
            case statements.CreateView():
                self._create_view(statement)
            case statements.AlterView(path, change):
                self._alter_view(self._view(path), change)
            case statements.DropView(path, if_exists):
                key = _dotted(path, 3)
                require(key not in self.tables, "WRONG_COMMAND_FOR_OBJECT_TYPE", f"{key} is a table")
                if not if_exists or key in self.user_views:
                    del self.user_views[self._view(path).key]
            case statements.CommentOn("TABLE", path, comment) if self._is_view(path):
                view = self._view(path)
                self._keep_view(replace(view, comment=comment))
            case statements.CommentOn("COLUMN", (*path, column), comment):
                view = self._view(tuple(path))
                changed = replace(view.column(column), comment=comment)
                self._keep_view(view.with_column(changed))
            case statements.AlterTable(path, statements.AlterColumns(((column, tagged),))) if self._is_view(
                path
            ):
                view = self._view(path)
                require(
                    isinstance(tagged, statements.SetTags | statements.UnsetTags),
                    "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
                    f"{view.key} is a view",
                )
                assert isinstance(tagged, statements.SetTags | statements.UnsetTags)
                shown = view.column(column[0])
                tags = governance.altered_tags(shown.tags, tagged)
                self.user_views[view.key] = view.with_column(replace(shown, tags=tags))
            case statements.AlterTable(path) if self._is_view(path):
                raise Refusal("EXPECT_TABLE_NOT_VIEW.USE_ALTER_VIEW", f"{path} is a view")
            case statements.DropTable(path) if self._is_view(path):
                raise Refusal("WRONG_COMMAND_FOR_OBJECT_TYPE", f"{path} is a view")
            case statements.Grant("VIEW", path) | statements.Revoke("VIEW", path):
                view = self._view(path)
                held = governance.altered_grants(view.grants, statement)
                self.user_views[view.key] = replace(view, grants=held)
            case statements.CreateFunction(path, function, replaces):
                self._create_function(path, function, replaces)
            case statements.DropFunction(path, if_exists):
                if not if_exists or _dotted(path, 3) in self.functions:
                    del self.functions[self._function(path)]
            case statements.AlterFunction(path, change):
                self._alter_function(self._function(path), change)
            case statements.CreatePolicy(_, policy, replaces):
                self._create_policy(policy, replaces)
            case statements.DropPolicy(path, policy_name):
                self.policies.remove(self._policy(path, policy_name))
            case statements.CreateTable(path, state, collation):
                table = self._new_name(path)
                made = self._created(table, replace(state, owner=self.user))
                self._keep(created_in(made, collation or self._collation(table)))
            case statements.DropTable(path, if_exists):
                self._drop(_dotted(path, 3), if_exists)
            case statements.AlterTable(path, table_change):
                stored = self.stored(_dotted(path, 3))
                if isinstance(table_change, statements.RenameTable):
                    self._rename(stored, table_change)
                else:
                    self._keep(self._changed(stored, table_change))
            case statements.AlterSchema(path, schema_change):
                self._alter_schema(_dotted(path, 2), schema_change)
            case statements.CommentOn("TABLE", path, comment):
                self._keep(self.stored(_dotted(path, 3)).with_state(table_comment=comment))
            case statements.CommentOn("SCHEMA", path, comment):
                name = self._schema(path)
                self.schemas[name] = replace(self.schemas[name], comment=comment)
            case statements.Update(path, assigned):
                stored = self.stored(_dotted(path, 3))
                filled = {stored.column(name).key for name in assigned}
                nulls = {name: count for name, count in stored.nulls.items() if name not in filled}
                self._keep(replace(stored, nulls=nulls))
            case statements.RewriteTable(path, state, collation):
                rewritten = layout.rewritten(self.stored(_dotted(path, 3)), state)
                self._keep(created_in(rewritten, collation or self._collation(rewritten.name)))
            case statements.Restore(path, version):
                stored = self.stored(_dotted(path, 3))
                former = self.histories.state_at(stored.name.key, version)
                self._keep(replace(stored, state=governance.restored(former, stored.state), nulls={}))
            case statements.Grant("TABLE", path) | statements.Revoke("TABLE", path):
                stored = self.stored(_dotted(path, 3))
                self._keep(
                    stored.with_state(grants=governance.altered_grants(stored.state.grants, statement))
                )
            case statements.Grant("FUNCTION", path) | statements.Revoke("FUNCTION", path):
                key = self._function(path)
                held = governance.altered_grants(self.functions[key].grants, statement)
                self.functions[key] = replace(self.functions[key], grants=held)
            case statements.Grant("SCHEMA", path) | statements.Revoke("SCHEMA", path):
                schema = self.schemas[self._schema(path)]
                grants = governance.altered_grants(schema.grants, statement)
                self.schemas[self._schema(path)] = replace(schema, grants=grants)
            case _:
                raise Refusal("PARSE_SYNTAX_ERROR", f"not understood: {statement}")

    def _created(self, table: QualifiedName, state: TableState) -> Stored:
        files = self.files.pop(locations.normal_form(state.location), None) if state.location else None
        if files is None:
            return created(table, state, self.tables)
        try:
            taken_state = replace(locations.taken(state, files), owner=state.owner)
        except Refusal:
            self.files[locations.normal_form(str(state.location))] = files
            raise
        return Stored(name=table, state=taken_state)

    def _described(self, path: Path) -> Stored:
        """Return a table by its name or by its location."""
        if not locations.is_by_path(path):
            stored = self.stored(_dotted(path, 3))
            is_shown = not self.hides or stored.name.key in self._visible()[0]
            require(is_shown, "INSUFFICIENT_PERMISSIONS", f"{stored.name} needs SELECT")
            return stored
        stored_files = self.files.get(locations.normal_form(path[1]))
        require(stored_files is not None, "DELTA_MISSING_DELTA_TABLE", f"`{path[1]}` is not a Delta table")
        return Stored(name=QualifiedName("none", "none", "none"), state=stored_files or ABSENT)

    def _changed(self, stored: Stored, change: statements.TableChange) -> Stored:
        match change:
            case statements.AddColumns():
                return columns.added(stored, change)
            case statements.DropColumns():
                return columns.dropped(stored, change)
            case statements.RenameColumn((column,)):
                self._drop_references_to(stored, column)
                return columns.renamed(constraints.without_keys_on(stored, column), change)
            case statements.RenameColumn():
                return columns.renamed(stored, change)
            case statements.AlterColumns():
                return columns.altered(stored, change)
            case statements.ClusterBy():
                return layout.clustered(stored, change)
            case statements.SetProperties(changes_made):
                return properties.with_properties(stored, changes_made)
            case statements.UnsetProperties(keys):
                return properties.without_properties(stored, keys)
            case statements.SetTags() | statements.UnsetTags():
                return stored.with_state(tags=governance.altered_tags(stored.state.tags, change))
            case statements.AddConstraint(constraint):
                return constraints.with_constraint(stored, constraint, self.tables)
            case statements.DropConstraint():
                return constraints.without_constraint(stored, change)
            case statements.SetRowFilter(row_filter):
                return governance.with_row_filter(stored, row_filter)
            case statements.SetValue(field, value):
                return stored.with_state(**{field: value})
            case statements.SetManaged():
                return layout.managed(stored)
            case statements.UnsetManaged():
                return layout.external(stored)
            case statements.RenameTable():
                raise AssertionError("a rename is the catalog's business")
        assert_never(change)

    def _alter_schema(self, name: str, change: statements.SchemaChange) -> None:
        schema = self.schemas[self._schema(tuple(name.split(".")))]
        match change:
            case statements.SetValue(field, value):
                changes: dict[str, Any] = {field: value}
                self.schemas[name] = replace(schema, **changes)
            case statements.SetTags() | statements.UnsetTags():
                self.schemas[name] = replace(schema, tags=governance.altered_tags(schema.tags, change))

    def _drops_key(self, statement: statements.Statement) -> bool:
        """Whether a statement drops a key, which is in no commit."""
        match statement:
            case statements.AlterTable(path, statements.DropConstraint(name)):
                stored = self.tables.get(".".join(path).lower())
                names = {check.name for check in stored.state.checks} if stored else set()
                return name.lower() not in names
        return False

    def _drop(self, key: str, if_exists: bool) -> None:
        if if_exists and key not in self.tables:
            return
        dropped = self.stored(key)
        parent = dropped.name
        if dropped.state.location is not None:
            self.files[locations.normal_form(dropped.state.location)] = locations.left_files(dropped.state)
        del self.tables[key]
        self.policies = [policy for policy in self.policies if policy.securable != key]
        for name, table in self.tables.items():  # documented on "DROP TABLE"
            self.tables[name] = constraints.without_references_to(table, parent)

    def _rename(self, stored: Stored, change: statements.RenameTable) -> None:
        name = self._new_name(change.name)
        require(
            name.catalog == stored.name.catalog, "INVALID_PARAMETER_VALUE", f"{name} is in another catalog"
        )
        del self.tables[stored.name.key]
        self.tables[name.key] = replace(stored, name=name)
        self.policies = [
            replace(policy, securable=name.key) if policy.securable == stored.name.key else policy
            for policy in self.policies
        ]
        for key, table in self.tables.items():
            self.tables[key] = constraints.with_renamed_parent(table, stored.name, name)

    def _drop_references_to(self, stored: Stored, column: str) -> None:
        """Renaming a key's column takes other tables' foreign keys with it."""
        key = stored.state.primary_key
        if key is not None and column.lower() in [name_of_key.lower() for name_of_key in key.columns]:
            for name, table in self.tables.items():
                self.tables[name] = constraints.without_references_to(table, stored.name)

    def _keep(self, stored: Stored) -> None:
        if self.needs_functions:
            former = self.tables.get(stored.name.key)
            uses = functions.uses_of(former.state, stored.name) if former else {}
            for use, (name, arguments) in functions.uses_of(stored.state, stored.name).items():
                if uses.get(use) != (name, arguments):
                    functions.check_use(self.functions, name, arguments)
        self.tables[stored.name.key] = stored

    def _collation(self, table: QualifiedName) -> str:
        return self.collations.get(f"{table.catalog}.{table.schema}", BINARY)

    def _schema(self, path: Path) -> str:
        name = _dotted(path, 2)
        require(name in self.schemas, "SCHEMA_NOT_FOUND", f"there is no schema {name}")
        return name

    def _new_name(self, path: Path) -> QualifiedName:
        name = QualifiedName(*_dotted(path, 3).split("."))
        self._schema((name.catalog, name.schema))
        is_free = name.key not in self.tables and name.key not in self.user_views
        require(is_free, "TABLE_OR_VIEW_ALREADY_EXISTS", f"{name} is there already")
        return name


def _dotted(path: Path, parts: int) -> str:
    """Return an object's name as Unity Catalog stores it: in lower case."""
    require(len(path) == parts, "PARSE_SYNTAX_ERROR", f"{'.'.join(path)} has not {parts} parts")
    return ".".join(path).lower()
