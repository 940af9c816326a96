"""The scratch tables, functions, policies, views and schema of a run, as data: they need every statement of the engine.

Groups are independent, so that a refusal in one does not stop the others. A test fails while an action, a kind of
statement or a feature has no group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from delta_engine.aspects import SCHEMA_FACETS, TABLE_FACETS
from delta_engine.backends.capabilities import Capabilities, Feature
from delta_engine.models import (
    AUTO,
    AbacPolicy,
    CheckConstraint,
    Column,
    ColumnMask,
    ForeignKey,
    Function,
    Identity,
    Parameter,
    PolicyFilter,
    PolicyScope,
    PrimaryKey,
    QualifiedName,
    RowFilter,
    Schema,
    SchemaName,
    Securable,
    SecurableName,
    Table,
    View,
    ViewColumn,
)
from delta_engine.models.types import AtomicType

PREFIX: Final = "delta_engine_conformance_"
"""The prefix of every scratch object. A run drops nothing whose name starts differently."""

ROW_FUNCTION: Final = "row"
VALUE_FUNCTION: Final = "value"

TAGGED_COLUMN: Final = "tagged"
"""A column of the table `tagged` that keeps its tag, for a probe."""

ID: Final = Column("id", AtomicType("bigint"), is_nullable=False)

_AWKWARD: Final = 'It\'s "quoted", has a \\ and `ticks`, Zürich and 東京'
"""A text that a wrong escape changes."""

_EVERY_TYPE: Final = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(38,18)", "string", "varchar(5)",
    "char(3)", "binary", "date", "timestamp", "timestamp_ntz", "array<int>", "map<string,array<date>>",
    "struct<a: int, b: struct<c: string, d: decimal(5,2)>>",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchPlace:
    """The place of a run with a unique `run_id` of eight hexadecimal digits. An empty text marks an absent value."""

    catalog: str
    schema: str
    run_id: str
    user: str = ""
    external_location: str = ""

    def qualified(self, name: str) -> QualifiedName:
        """Return the full name of a scratch table or function."""
        return QualifiedName(self.catalog, self.schema, self._prefixed(name))

    @property
    def scratch_schema(self) -> SchemaName:
        """The run's own schema, next to the named one."""
        return SchemaName(self.catalog, self._prefixed("schema"))

    @property
    def missing_catalog(self) -> str:
        """The name of a catalog that does not exist."""
        return self._prefixed("missing")

    @property
    def tag(self) -> str:
        """The key of the run's scratch tags."""
        return f"conformance_{self.run_id}"

    def location(self, name: str) -> str:
        """Return the location of an external scratch table."""
        return f"{self.external_location.rstrip('/')}/{self._prefixed(name)}"

    def is_own(self, name: QualifiedName) -> bool:
        """Whether a table belongs to this run."""
        return name.table.lower().startswith(self._prefixed(""))

    def refusals(self, capabilities: Capabilities, *features: Feature) -> tuple[str, ...]:
        """Return why the platform lacks some of the features here; empty if it has all of them."""
        reasons = {feature: capabilities.refusal(feature, self.catalog) for feature in features}
        return tuple(f"{feature.value}: {reason}" for feature, reason in reasons.items() if reason)

    def _prefixed(self, name: str) -> str:
        return f"{PREFIX}{self.run_id}_{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Scratch objects that belong together. A group that `lacks` an input is skipped.

    Args:
        steps: the models of each step.
    """

    name: str
    features: tuple[Feature, ...]
    steps: tuple[tuple[Securable, ...], ...]
    functions: tuple[str, ...] = ()
    lacks: str = ""

    @property
    def makes_schema(self) -> bool:
        """Whether the group creates the scratch schema."""
        return any(name.is_container for name in self.names)

    @property
    def names(self) -> tuple[SecurableName, ...]:
        """The names of all its objects."""
        return tuple(dict.fromkeys(model.qualified_name for step in self.steps for model in step))


def groups(place: ScratchPlace) -> tuple[Group, ...]:
    """Return the groups of a run in execution order."""
    return (
        *_columns(place),
        *_values(place),
        *_layout(place),
        *_governance(place),
        *_choices(place),
        *_whole_tables(place),
        _functions(place),
        _policies(place),
        *_views(place),
        _scratch_schema(place),
    )


def scratch_table(place: ScratchPlace, name: str, *columns: Column, **declared: Any) -> Table:
    """Return the model of a scratch table, by default with one column."""
    return Table(place.catalog, place.schema, place.qualified(name).table, columns or (ID,), **declared)


def _group(
    name: str, features: tuple[Feature, ...], *steps: Securable | tuple[Securable, ...], **settings: Any
) -> Group:
    """Return a group; a step may be one model."""
    whole = tuple(step if isinstance(step, tuple) else (step,) for step in steps)
    return Group(name=name, features=features, steps=whole, **settings)


def _columns(place: ScratchPlace) -> tuple[Group, ...]:
    columns = partial(scratch_table, place, "columns")
    b, new = Column("b-c", "string", comment=_AWKWARD, renamed_from="b"), Column("new", "date", comment="New")
    ordered, fields = partial(scratch_table, place, "column_order"), partial(scratch_table, place, "fields")
    first, second, third = (Column(name, "int") for name in "abc")
    changed_fields = Column(
        "place",
        "struct<code: bigint COMMENT 'Where', no: bigint COMMENT 'Which', city: string, land: string>",
        renamed_fields={"code": "zip"},
    )
    return (
        _group(
            "columns",
            (Feature.COLUMNS, Feature.COMMENTS, Feature.COLUMN_RENAMES),
            columns(ID, Column("a", "int"), Column("b", "string"), Column("old", "double"), comment=_AWKWARD),
            columns(ID, Column("a", "int", comment="First"), b, new, comment="Changed"),
            columns(ID, Column("a", "int"), b, new),
        ),
        _group(
            "column order",
            (Feature.COLUMN_ORDER,),
            ordered(ID, first, second, third),
            ordered(third, ID, second, first),
        ),
        _group(
            "fields",
            (Feature.NESTED_FIELDS, Feature.TYPE_WIDENING, Feature.COLUMN_RENAMES),
            fields(ID, Column("place", "struct<zip: int, no: int, city: string NOT NULL, old: string>")),
            fields(ID, changed_fields),
        ),
    )


def _values(place: ScratchPlace) -> tuple[Group, ...]:
    types, defaults = partial(scratch_table, place, "types"), partial(scratch_table, place, "defaults")
    every_type = (Column(f"c{number}", spelled) for number, spelled in enumerate(_EVERY_TYPE))
    twice = Column("twice", "bigint", generated_as="id * 2")
    counted = Column("n", "bigint", identity=Identity(start=10, step=5))

    def nullability(*nullable: bool) -> Table:
        columns = (Column(name, "int", is_null) for name, is_null in zip("abcd", nullable, strict=True))
        return scratch_table(place, "nullability", *columns)

    return (
        _group(
            "types and data changes",
            (Feature.TYPE_WIDENING, Feature.COLUMN_RENAMES),
            types(Column("a", "int"), Column("b", "smallint"), Column("c", "varchar(5)")),
            types(Column("a", "bigint"), Column("b", "int"), Column("c", "varchar(5)")),
            types(
                Column("a", "string", using="CAST(a AS string)"),
                *(
                    Column("b", "int"),
                    Column("c", "varchar(9)"),
                    Column("d", "date", using="DATE'2026-01-01'"),
                ),
            ),
        ),
        _group("every type", (Feature.COLUMNS,), scratch_table(place, "every_type", *every_type)),
        _group(
            "NOT NULL",
            (Feature.NOT_NULL,),
            nullability(True, True, True, False),
            nullability(False, False, True, True),
            nullability(True, True, False, True),
        ),
        _group(
            "column defaults",
            (Feature.DEFAULTS,),
            defaults(ID, Column("a", "int", default="1"), Column("b", "string", default="'x'")),
            defaults(ID, Column("a", "int", default="2"), Column("b", "string", default="'it\\'s'")),
            defaults(ID, Column("a", "int"), Column("b", "string")),
        ),
        _group(
            "generated columns", (Feature.GENERATED_COLUMNS,), scratch_table(place, "generated", ID, twice)
        ),
        _group(
            "identity columns", (Feature.IDENTITY_COLUMNS,), scratch_table(place, "identity", ID, counted)
        ),
    )


def _layout(place: ScratchPlace) -> tuple[Group, ...]:
    properties, checks = partial(scratch_table, place, "properties"), partial(scratch_table, place, "checks")
    clustered = partial(scratch_table, place, "clustering", ID, Column("a", "int"))
    automatic = partial(scratch_table, place, "automatic")
    partitioned = partial(scratch_table, place, "partitioning", partitioned_by=["day"])
    number = Column("number", "bigint")
    return (
        _group(
            "table properties",
            (Feature.PROPERTIES,),
            properties(table_properties={"conformance.one": "1", "conformance.two": _AWKWARD}),
            properties(table_properties={"conformance.two": "2", "delta.enableChangeDataFeed": "true"}),
        ),
        _keys(place),
        _group(
            "CHECK constraints",
            (Feature.CHECKS,),
            checks(checks=[CheckConstraint("positive", "id > 0"), CheckConstraint("small", "id < 9")]),
            checks(checks=[CheckConstraint("positive", "id >= 1")]),
        ),
        _group(
            "liquid clustering",
            (Feature.CLUSTERING,),
            clustered(cluster_by=["id"]),
            clustered(cluster_by=["a", "id"]),
            clustered(),
        ),
        _group(
            "automatic clustering",
            (Feature.AUTOMATIC_CLUSTERING,),
            automatic(cluster_by=AUTO),
            automatic(cluster_by=["id"]),
            automatic(cluster_by=AUTO),
        ),
        _group(
            "partitioning",
            (Feature.PARTITIONING, Feature.REPARTITIONING),
            partitioned(number, Column("day", "date")),
            partitioned(number, Column("day", "date"), partitioned_by=[]),
        ),
    )


def _keys(place: ScratchPlace) -> Group:
    parent = partial(scratch_table, place, "parent")
    child = partial(scratch_table, place, "child", ID, Column("parent_id", "bigint"))
    foreign_keys = [ForeignKey(["parent_id"], str(place.qualified("parent")))]
    named = PrimaryKey(["id"], f"conformance_{place.run_id}")
    return _group(
        "keys",
        (Feature.PRIMARY_KEYS, Feature.FOREIGN_KEYS),
        (parent(primary_key=["id"]), child(foreign_keys=foreign_keys)),
        (parent(), child()),
        (parent(primary_key=named), child(foreign_keys=foreign_keys)),
    )


def _governance(place: ScratchPlace) -> tuple[Group, ...]:
    granted = partial(scratch_table, place, "grants")
    filtered = partial(scratch_table, place, "row_filter", ID, Column("a", "bigint"))
    function, mask = str(place.qualified(ROW_FUNCTION)), ColumnMask(str(place.qualified(VALUE_FUNCTION)))
    masked, owned = partial(scratch_table, place, "mask"), partial(scratch_table, place, "owner")
    return (
        _tags(place),
        _group(
            "row filters",
            (Feature.ROW_FILTERS,),
            filtered(row_filter=RowFilter(function, ["id"])),
            filtered(row_filter=RowFilter(function, ["a"])),
            filtered(),
            functions=(ROW_FUNCTION,),
        ),
        _group(
            "column masks",
            (Feature.COLUMN_MASKS,),
            masked(ID, Column("a", "string", mask=mask), Column("b", "string")),
            masked(ID, Column("a", "string"), Column("b", "string", mask=mask)),
            functions=(VALUE_FUNCTION,),
        ),
        _group(
            "grants",
            (Feature.GRANTS,),
            granted(grants={place.user: ["SELECT"]}),
            granted(grants={place.user: ["MODIFY"]}),
        ),
        _group("owners", (Feature.OWNERS,), owned(owner=place.user)),
    )


def _tags(place: ScratchPlace) -> Group:
    table = partial(scratch_table, place, "tags")
    column = Column(TAGGED_COLUMN, "int", tags={place.tag: "1"})
    kept = scratch_table(place, "tagged", ID, column, table_properties={"delta.columnMapping.mode": "name"})
    models = (
        table(Column("id", "bigint", tags={place.tag: "no"}), tags={place.tag: "one"}),
        table(
            Column("id", "bigint", tags={place.tag: "yes"}),
            tags={place.tag: "two", f"{place.tag}_more": ""},
        ),
        table(Column("id", "bigint")),
    )
    return _group("tags", (Feature.TAGS,), *((model, kept) for model in models))


def _choices(place: ScratchPlace) -> Iterator[Group]:
    """Yield a group for each facet of tables with few values: every value, one after the other."""
    for facet in TABLE_FACETS:
        if facet.form.choices and facet.feature:
            table = partial(scratch_table, place, facet.key)
            tables = (table(**{facet.attribute: choice}) for choice in facet.form.choices)
            yield _group(facet.title, (facet.feature,), *tables)


def _whole_tables(place: ScratchPlace) -> tuple[Group, ...]:
    part, removed = partial(scratch_table, place, "part"), scratch_table(place, "removed")
    location = place.location("external") if place.external_location else None
    return (
        _group(
            "a part of a table",
            (Feature.MANAGED_PARTS,),
            part(ID, Column("a", "int")),
            part(ID, Column("a", "void", comment="Theirs"), manages=["comments"]),
        ),
        _group(
            "renamed tables",
            (Feature.TABLE_RENAMES,),
            scratch_table(place, "former"),
            scratch_table(place, "renamed", renamed_from=place.qualified("former").table),
        ),
        _group("removed tables", (Feature.TABLE_REMOVAL,), removed, ()),
        _group(
            "external tables",
            (Feature.EXTERNAL_TABLES,),
            scratch_table(place, "external", location=location),
            lacks="" if location else "no location was named: --external-location URL",
        ),
    )


SCRATCH_FUNCTIONS: Final = (ROW_FUNCTION, VALUE_FUNCTION, "masked", "cleaned", "region")
"""The functions that a run creates; the last ones by syncs."""


def _function(place: ScratchPlace, name: str, returns: str, body: str, **declared: Any) -> Function:
    return Function(place.catalog, place.schema, place.qualified(name).table, returns, body, **declared)


def _functions(place: ScratchPlace) -> Group:
    """Return functions whose texts a platform may show in other words."""
    x, n = Parameter("x", "string", comment=_AWKWARD), Parameter("n n", "int", default="1 + 1")
    masked = partial(_function, place, "masked", "string", parameters=[x, n])
    cleaned = partial(_function, place, "cleaned", "string", parameters=[x], language="python")
    user = {place.user: ["EXECUTE"]}
    bodies = "concat(x,  'it''s', `n n`) -- a note", "CASE WHEN x = '' THEN x\n  ELSE upper(x) END", "x"
    models = (
        (
            masked(bodies[0], comment=_AWKWARD, grants=user),
            cleaned("if x is None:\n    return None\nreturn x.strip()"),
        ),
        (masked(bodies[1], comment="Changed", grants=user), cleaned("return x  # $$", comment="Python")),
        (masked(bodies[2]), cleaned("return x")),
    )
    return _group("functions", (Feature.FUNCTIONS, Feature.GRANTS), *models)


def _policies(place: ScratchPlace) -> Group:
    """Return a policy of a table that filters its rows by tags of nothing, so that it hides nothing."""
    table = scratch_table(place, "policed", ID, Column("region", "string"))
    region = _function(place, "region", "boolean", "true", parameters=[Parameter("x", "string")])
    policy = partial(
        AbacPolicy,
        f"{PREFIX}{place.run_id}_policy",
        PolicyScope("table", str(table.qualified_name)),
        PolicyFilter(str(region.qualified_name), ["r"]),
        [place.user],
    )
    models = (
        policy(match={"r": f"has_tag('{place.tag}')"}, comment=_AWKWARD),
        policy(
            match={"r": f"has_tag_value('{place.tag}', 'it\\'s') OR has_tag('{place.tag}')"},
            when=f"NOT has_tag('{place.tag}')",
        ),
        policy(match={"r": f"has_tag('{place.tag}')"}, comment="Changed"),
    )
    steps = ((table, region, step) for step in models)
    return _group("policies", (Feature.POLICIES, Feature.FUNCTIONS), *steps)


def scratch_view(place: ScratchPlace, name: str, query: str, *columns: ViewColumn, **declared: Any) -> View:
    """Return the model of a scratch view."""
    return View(place.catalog, place.schema, place.qualified(name).table, query, columns, **declared)


def _views(place: ScratchPlace) -> tuple[Group, ...]:
    commented, dressed = (partial(scratch_view, place, name) for name in ("view_comments", "view_rights"))
    query, other_query = "SELECT 1 AS id, 2 AS `a b`", "SELECT 3 AS id, 4 AS `a b`"
    tag, rights = place.tag, {"grants": {place.user: ["SELECT"]}, "owner": place.user, "comment": "Kept"}
    former = scratch_view(place, "view_former", query, grants={place.user: ["SELECT"]}, comment="Kept")
    renamed = replace(
        former, view_name=place.qualified("view_renamed").table, renamed_from=(former.view_name,)
    )
    return (
        _changing_views(place),
        _group(
            "comments of views",
            (Feature.VIEWS, Feature.VIEW_COLUMN_COMMENTS),
            commented(query, ViewColumn("id", _AWKWARD), ViewColumn("a b", "Text")),
            commented(
                "SELECT 3 AS id,\t-- a note\n\n\n  'it''s\t\\\\d' AS `a b`;\n",
                ViewColumn("id", _AWKWARD),
                ViewColumn("a b", "Changed"),
                schema_mode="type evolution",
            ),
        ),
        _group(
            "tags and rights of views",
            (Feature.VIEWS, Feature.TAGS, Feature.GRANTS, Feature.OWNERS),
            dressed(query, ViewColumn("id", tags={tag: "it's"}), tags={tag: "1"}, **rights),
            dressed(other_query, ViewColumn("a b", tags={tag: "yes"}), tags={tag: "2"}, **rights),
        ),
        _group("renamed views", (Feature.VIEWS, Feature.GRANTS), former, renamed),
    )


def _changing_views(place: ScratchPlace) -> Group:
    """Return a view that another one reads, which changes with its table; platforms may re-spell its first query."""
    table = partial(scratch_table, place, "viewed", table_properties={"delta.columnMapping.mode": "name"})
    view, source = partial(scratch_view, place, "view"), place.qualified("viewed")
    reader = scratch_view(place, "view_of_view", f"SELECT id FROM {place.qualified('view')}")
    key, label = Column("id", "bigint", comment="The key"), Column("label", "string", renamed_from="name")
    awkward = f"SELECT id,\tname, -- a note\n\n\n  'it''s\t\\\\d' AS `a b`\nFROM {source} AS t;\n"
    steps = (
        (table(key, Column("name", "string")), view(awkward, schema_mode="binding", comment=_AWKWARD)),
        (table(key, label), view(f"SELECT id, label FROM {source}", schema_mode="type evolution")),
        (
            table(key, label, Column("more", "int")),
            view(f"SELECT * FROM {source}", schema_mode="evolution", comment="Changed"),
        ),
    )
    return _group(
        "views", (Feature.VIEWS, Feature.COLUMN_RENAMES), *((of, model, reader) for of, model in steps)
    )


def _scratch_schema(place: ScratchPlace) -> Group:
    schema = partial(Schema, place.scratch_schema.catalog, place.scratch_schema.schema)
    user, tags = place.user, {place.tag: "1"}
    chosen: dict[str, Any] = {
        facet.attribute: facet.form.choices[0] for facet in SCHEMA_FACETS if facet.form.choices
    }
    models = (
        schema(_AWKWARD, owner=user),
        schema("Changed", tags=tags, grants={user: ["SELECT", "USE SCHEMA"]}, owner=user, **chosen),
        schema("", grants={user: ["USE SCHEMA"]}),
    )
    return _group("schemas", (Feature.SCHEMA_METADATA,), *models)
