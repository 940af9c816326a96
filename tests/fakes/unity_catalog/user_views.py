"""Views of the fake catalog: what their queries return, and what statements keep and lose of them.

What is told apart here was measured on Spark 4.1.1 or is documented ("CREATE VIEW", "ALTER VIEW", "COMMENT ON"): a view
keeps the columns that its query returned when it was set, unless it evolves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope
from sqlglot.schema import MappingSchema

from delta_engine.models import Grants
from delta_engine.models.types import DataType
from delta_engine.models.views import SchemaMode, ViewColumn
from delta_engine.sql.expressions import databricks_dialect
from delta_engine.sql.text import quote_ident
from delta_engine.state.audits import NO_AUDIT, Audit
from delta_engine.state.view_states import ViewState
from tests.fakes.unity_catalog.functions import Functions
from tests.fakes.unity_catalog.refusals import Refusal, require
from tests.fakes.unity_catalog.statements import Tags
from tests.fakes.unity_catalog.stored import Stored

LOST_ON_ALTER = frozenset({"column_tags", "tags"})
"""What a view may lose with its comments of columns when its query changes: no document says it."""

_AFTER_WHERE = ("group", "having", "qualify", "order")


@dataclass(frozen=True, slots=True)
class Output:
    """A column that a query returns.

    Args:
        comment: that of the column of a table which it passes on.
        data_type: the type of that column; None for what is computed.
    """

    name: str
    comment: str = ""
    data_type: DataType | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownColumn:
    """A column of a view."""

    name: str
    comment: str = ""
    tags: Tags = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredView:
    """A view in the fake catalog.

    Args:
        key: its dotted name, in lower case.
        query: as it was submitted.
        outputs: what the query returned when it was set.
        columns: one for each output.
        has_list: whether CREATE VIEW named the columns.
        number: another one for each view that is created, also in place of another.
        audit: who created it, and who changed its query, mode, comment, owner or name last.
    """

    key: str
    query: str
    outputs: tuple[Output, ...]
    columns: tuple[ShownColumn, ...]
    mode: SchemaMode = SchemaMode.COMPENSATION
    has_list: bool = False
    comment: str = ""
    tags: Tags = field(default_factory=dict)
    owner: str | None = None
    grants: Grants = field(default_factory=dict)
    number: int = 0
    audit: Audit = field(default=NO_AUDIT, compare=False)

    @property
    def evolves(self) -> bool:
        """Whether other columns become those of the view; with a list, only other types do."""
        return self.mode is SchemaMode.EVOLUTION and not self.has_list

    def column(self, name: str) -> ShownColumn:
        for column in self.columns:
            if column.name.lower() == name.lower():
                return column
        raise Refusal("UNRESOLVED_COLUMN.WITH_SUGGESTION", f"{self.key} has no column {name}")

    def with_column(self, changed: ShownColumn) -> StoredView:
        """Return the view with another column under its name."""
        self.column(changed.name)
        columns = (
            changed if column.name.lower() == changed.name.lower() else column for column in self.columns
        )
        return replace(self, columns=tuple(columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """What queries can read."""

    tables: Mapping[str, Stored]
    views: Mapping[str, StoredView]
    functions: Functions

    def resolved(self, key: str, *outer: str) -> StoredView:
        """Return a view as a query of it finds it; refuse one that fails."""
        view = self.views[key]
        outputs = self.analyzed(view.query, *outer, key)
        if view.evolves:
            return replace(view, outputs=outputs, columns=_evolved(view, outputs))
        present = {output.name.lower(): output for output in outputs}
        for captured in view.outputs:
            output = present.get(captured.name.lower())
            require(
                output is not None,
                "INCOMPATIBLE_VIEW_SCHEMA_CHANGE",
                f"{key} has no {captured.name} any more",
            )
            types = {captured.data_type, output.data_type if output else None} - {None}
            is_same = len(types) < 2  # what is computed has an unknown type here
            is_bound = view.mode is SchemaMode.BINDING
            require(
                is_same or not is_bound, "CANNOT_UP_CAST_DATATYPE", f"{key}: {captured.name} changes its type"
            )
        if view.mode in (SchemaMode.TYPE_EVOLUTION, SchemaMode.EVOLUTION):
            return replace(view, outputs=tuple(present[captured.name.lower()] for captured in view.outputs))
        return view

    def described(self, query: str, *outer: str) -> tuple[Output, ...]:
        """Return what a query returns, also two columns of one name; refuse one that fails."""
        tree = _tree(query)
        self._check_functions(tree)
        return _analyzed(query, tuple(self._columns(tree, outer).items()))

    def analyzed(self, query: str, *outer: str) -> tuple[Output, ...]:
        """Return what the query of a view returns; refuse one that fails."""
        outputs = self.described(query, *outer)
        names = [output.name.lower() for output in outputs]
        require(len({*names}) == len(names), "COLUMN_ALREADY_EXISTS", f"{names}")
        return outputs

    def _check_functions(self, tree: exp.Query) -> None:
        for call in tree.find_all(exp.Dot):
            if isinstance(call.expression, exp.Anonymous) and not isinstance(call.parent, exp.Dot):
                path = ".".join(part.name for part in call.flatten()).lower()
                require(path in self.functions, "UNRESOLVED_ROUTINE", f"there is no function {path}")

    def _columns(self, tree: exp.Query, outer: Sequence[str]) -> dict[str, tuple[Output, ...]]:
        own = {query.alias_or_name.lower() for query in tree.find_all(exp.CTE)}
        columns = {}
        for table in tree.find_all(exp.Table):
            if not isinstance(table.this, exp.Identifier) or (not table.db and table.name.lower() in own):
                continue
            key = ".".join(part.name for part in table.parts).lower()
            require(key not in outer, "RECURSIVE_VIEW", f"{key} reads itself")
            columns[key] = self._of_relation(key, outer)
        return columns

    def _of_relation(self, key: str, outer: Sequence[str]) -> tuple[Output, ...]:
        if key in self.views:
            view = self.resolved(key, *outer)
            return tuple(
                Output(column.name, column.comment, output.data_type)
                for column, output in zip(view.columns, view.outputs, strict=True)
            )
        require(key in self.tables, "TABLE_OR_VIEW_NOT_FOUND", f"there is no table or view {key}")
        columns = self.tables[key].state.columns
        return tuple(Output(column.name, column.comment, column.data_type) for column in columns)


@lru_cache(4096)
def _tree(query: str) -> exp.Query:
    try:
        trees = sqlglot.parse(query, dialect=databricks_dialect())
    except sqlglot.ParseError as error:
        raise Refusal("PARSE_SYNTAX_ERROR", str(error)) from error
    tree = trees[0]
    require(len(trees) == 1 and isinstance(tree, exp.Query), "PARSE_SYNTAX_ERROR", f"{query} is no query")
    assert isinstance(tree, exp.Query)
    return tree


@lru_cache(4096)
def _analyzed(query: str, relations: tuple[tuple[str, tuple[Output, ...]], ...]) -> tuple[Output, ...]:
    columns = dict(relations)
    renamed = _with_renamed_columns(_tree(query), columns)
    schema = MappingSchema(dialect=databricks_dialect())
    for key, outputs in columns.items():
        path = ".".join(map(quote_ident, key.split(".")))
        schema.add_table(path, {output.name: "string" for output in outputs}, dialect=databricks_dialect())
    try:
        if renamed.args.get("where"):  # which does not see aliases of the SELECT list (measured)
            bare = renamed.copy()
            bare.args = {**bare.args, "expressions": [exp.Literal.number(1)], **dict.fromkeys(_AFTER_WHERE)}
            qualify(bare, schema=schema, dialect=databricks_dialect())
        qualified = qualify(renamed, schema=schema, dialect=databricks_dialect(), quote_identifiers=False)
    except OptimizeError as error:
        raise Refusal("UNRESOLVED_COLUMN.WITH_SUGGESTION", str(error)) from error
    return tuple(_outputs(qualified, columns))


def created(
    view: StoredView, listed: Sequence[ShownColumn] | None, relations: Relations, number: int
) -> StoredView:
    """Return a new view; refuse what the platform refuses.

    Args:
        listed: the columns that the statement names.
    """
    outputs = relations.analyzed(view.query, view.key)
    if listed is not None:
        few = "NOT_ENOUGH_DATA_COLUMNS" if len(listed) > len(outputs) else "TOO_MANY_DATA_COLUMNS"
        is_fit = len(listed) == len(outputs)
        require(is_fit, f"CREATE_VIEW_COLUMN_ARITY_MISMATCH.{few}", f"{view.key} returns {len(outputs)}")
        names = [column.name.lower() for column in listed]
        require(len({*names}) == len(names), "COLUMN_ALREADY_EXISTS", f"{names}")
    columns = tuple(
        ShownColumn(name=column.name, comment=column.comment or output.comment)
        for column, output in zip(listed or map(_shown, outputs), outputs, strict=True)
    )
    return replace(view, outputs=outputs, columns=columns, has_list=listed is not None, number=number)


def altered(view: StoredView, query: str, relations: Relations, lost: frozenset[str]) -> StoredView:
    """Return a view with another query: it loses the comments of columns and perhaps more, and keeps the rest."""
    outputs = relations.analyzed(query, view.key)
    tags = {} if "column_tags" in lost else {column.name.lower(): column.tags for column in view.columns}
    columns = (replace(_shown(output), tags=tags.get(output.name.lower(), {})) for output in outputs)
    return replace(
        view,
        query=query,
        outputs=outputs,
        columns=tuple(columns),
        has_list=False,
        tags={} if "tags" in lost else view.tags,
    )


def as_state(view: StoredView, is_owner: bool) -> ViewState:
    """Return a shown view as the engine's readers have to read it."""
    return ViewState(
        query=view.query if is_owner else None,
        columns=tuple(ViewColumn(column.name, column.comment, tags=column.tags) for column in view.columns),
        schema_mode=view.mode,
        comment=view.comment,
        tags=view.tags,
        owner=view.owner,
        grants=view.grants,
        audit=view.audit,
    )


def as_shown(query: str) -> str:
    """Return a query as the platform shows it (github.com/databricks/terraform-provider-databricks/issues/3865)."""
    return re.sub(r"\n\s*\n", "\n", query.replace("\t", "    "))


def _evolved(view: StoredView, outputs: Sequence[Output]) -> tuple[ShownColumn, ...]:
    """Return the columns of a view that evolves: their comments come from the query (docs: "COMMENT ON")."""
    tags = {column.name.lower(): column.tags for column in view.columns}
    return tuple(replace(_shown(output), tags=tags.get(output.name.lower(), {})) for output in outputs)


def _shown(output: Output) -> ShownColumn:
    return ShownColumn(name=output.name, comment=output.comment)


def _with_renamed_columns(tree: exp.Query, columns: Mapping[str, Sequence[Output]]) -> exp.Query:
    """Return a query with `FROM t AS o(a, b)` written as a subquery, which sqlglot reads as Spark does."""

    def renamed(node: exp.Expr) -> exp.Expr:
        alias = node.args.get("alias") if isinstance(node, exp.Table) else None
        if not isinstance(node, exp.Table) or alias is None or not alias.columns:
            return node
        outputs = columns[".".join(part.name for part in node.parts).lower()]
        names = [column.name for column in alias.columns]
        require(len(names) == len(outputs), "ASSIGNMENT_ARITY_MISMATCH", f"{node} has {len(outputs)} columns")
        plain = exp.Table(this=node.this, db=node.args["db"], catalog=node.args["catalog"])
        selected = exp.select(
            *(
                exp.alias_(exp.column(exp.to_identifier(output.name, quoted=True)), name, quoted=True)
                for output, name in zip(outputs, names, strict=True)
            )
        ).from_(plain)
        return selected.subquery(alias.this.name)

    transformed = tree.transform(renamed)
    assert isinstance(transformed, exp.Query)
    return transformed


def _outputs(tree: exp.Query, columns: Mapping[str, Sequence[Output]]) -> Iterator[Output]:
    scope = build_scope(tree)
    for column in tree.selects:
        passed = _passed_on(column.unalias(), scope, columns) if isinstance(tree, exp.Select) else None
        yield (
            Output(column.alias_or_name, passed.comment, passed.data_type)
            if passed
            else Output(column.alias_or_name)
        )


def _passed_on(
    column: exp.Expr, scope: Scope | None, columns: Mapping[str, Sequence[Output]]
) -> Output | None:
    """Return the column of a table or view that a column of a query is, under any name."""
    if scope is None or not isinstance(column, exp.Column):
        return None
    source = scope.sources.get(column.table)
    if isinstance(source, exp.Table):
        key = ".".join(part.name for part in source.parts).lower()
        outputs = columns.get(key, ())
        return next((output for output in outputs if output.name.lower() == column.name.lower()), None)
    if isinstance(source, Scope) and isinstance(source.expression, exp.Select):
        inner = (selected for selected in source.expression.selects if selected.alias_or_name == column.name)
        return next((_passed_on(selected.unalias(), source, columns) for selected in inner), None)
    return None
