"""Models: the tables, schemas, functions, policies and views that a team declares.

Python and YAML give the same model: it accepts lists or tuples, SQL type strings or pyspark types. Names stay raw;
`sql` quotes them. A model refuses what has no canonical form, and in Python code repeated names (`repetitions`);
`validation` refuses the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, Final, TypeAlias, TypedDict, TypeVar, overload

from delta_engine.errors import InvalidModelError, SourceLocation
from delta_engine.models.columns import Column, calling_line
from delta_engine.models.fills import FillBy, Using
from delta_engine.models.functions import Function, FunctionLanguage, FunctionName, Parameter
from delta_engine.models.parts import (
    NO_GRANTS,
    NOTHING,
    CheckConstraint,
    ColumnMask,
    ForeignKey,
    Grants,
    Identity,
    Part,
    PrimaryKey,
    QualifiedName,
    Reference,
    RowFilter,
    SchemaName,
    read_only,
    set_fields,
    to_flag,
    to_former_names,
    to_grants,
    to_items,
    to_names,
    to_optional,
    to_optional_text,
    to_text,
    to_texts,
)
from delta_engine.models.policies import AbacPolicy, PolicyFilter, PolicyMask, PolicyName, PolicyScope
from delta_engine.models.repetitions import (
    Repetition,
    repeated_columns,
    repeated_constraint_names,
    repeated_in_foreign_key,
    repeated_in_layout,
    repeated_in_primary_key,
)
from delta_engine.models.types import NOT_MANAGED, first_unsupported
from delta_engine.models.views import SchemaMode, View, ViewColumn, ViewName

__all__ = [
    "AUTO",
    "DEFAULT_TABLE_PROPERTIES",
    "NO_SUBJECT",
    "OPTIMIZATION_SETTINGS",
    "AbacPolicy",
    "CheckConstraint",
    "Column",
    "ColumnMask",
    "FillBy",
    "ForeignKey",
    "Function",
    "FunctionLanguage",
    "FunctionName",
    "Grants",
    "Identity",
    "Parameter",
    "Part",
    "PolicyFilter",
    "PolicyMask",
    "PolicyName",
    "PolicyScope",
    "PrimaryKey",
    "QualifiedName",
    "Reference",
    "RowFilter",
    "Schema",
    "SchemaMode",
    "SchemaName",
    "Securable",
    "SecurableName",
    "Table",
    "Using",
    "View",
    "ViewColumn",
    "ViewName",
    "by_resource",
    "former_names",
    "of_kind",
    "read_only",
    "resource_id",
    "resource_key",
    "subject",
]

DEFAULT_TABLE_PROPERTIES: Mapping[str, str] = MappingProxyType({})
"""The default properties of every table: none. An environment sets its own (`defaults.table_properties`)."""

AUTO = "AUTO"
"""`Table(cluster_by=AUTO)`: the platform chooses the columns by which a table is clustered."""

OPTIMIZATION_SETTINGS = ("enable", "disable", "inherit")
"""The values of `predictive_optimization`."""

_TYPE_WAY_OUT: Final = "Use a Spark SQL type that the engine manages, such as bigint or decimal(18,2)."
_PART_WAY_OUT: Final = (
    "Use another type. Or declare the parts of the table that the engine manages, without its columns, such as "
    "manages: [comments, tags]."
)


@dataclass(frozen=True, slots=True, init=False)
class Table:
    """A declared table.

    Args:
        catalog_name: the raw name; may hold `${variables}` until the configuration replaces them.
        comment: the empty string means no comment.
        table_properties: properties to set; other properties are unmanaged.
        primary_key: column names, or a `PrimaryKey` for an explicit name or RELY.
        cluster_by: the columns of liquid clustering, or fields in structs (`address.country`), in order; `AUTO` lets
            the platform choose.
        partitioned_by: the columns of Hive-style partitioning, in order; at creation only.
        row_filter: the function that decides which rows a reader sees.
        owner: None leaves the owner unmanaged.
        grants: privileges by principal; other principals are unmanaged, unless the policy says otherwise.
        predictive_optimization: `enable`, `disable` or `inherit`; None leaves it unmanaged.
        location: the folder of an external table's files; None for a managed table. At creation only.
        fill_by: the ranges by which `using` of its columns gives existing rows their values; None for all at once.
        renamed_from: the table's former name, or several with the latest first; its data is kept. They have no effect
            after the rename.
        manages: the parts that the model manages; None for all of them.
        default_table_properties: the defaults that `table_properties` overrides.
        declared_at: the place of the declaration; by default the calling line of Python.

    Raises:
        InvalidModelError: the engine does not manage the type of a column; or, without `declared_at`, the table names a
            column, a constraint or a column of a key twice.
        TypeError: an argument has the wrong type.
        ValueError: `manages` names something other than a `Part`, or a text has an unpaired surrogate.
    """

    catalog_name: str
    schema_name: str
    table_name: str
    columns: tuple[Column, ...]
    comment: str = ""
    table_properties: Mapping[str, str] = field(default_factory=dict)
    primary_key: PrimaryKey | None = None
    foreign_keys: tuple[ForeignKey, ...] = ()
    checks: tuple[CheckConstraint, ...] = ()
    cluster_by: tuple[str, ...] = ()
    clusters_automatically: bool = False
    partitioned_by: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    row_filter: RowFilter | None = None
    owner: str | None = None
    grants: Grants = field(default_factory=dict)
    location: str | None = None
    predictive_optimization: str | None = None
    fill_by: FillBy | None = None
    renamed_from: tuple[str, ...] = ()
    manages: frozenset[Part] | None = None
    default_table_properties: Mapping[str, str] = field(default_factory=dict)
    declared_at: SourceLocation | None = field(default=None, compare=False, repr=False)

    def __init__(
        self,
        catalog_name: str,
        schema_name: str,
        table_name: str,
        columns: Sequence[Column],
        comment: str = "",
        table_properties: Mapping[str, str] | None = None,
        primary_key: PrimaryKey | Sequence[str] | None = None,
        *,
        foreign_keys: Iterable[ForeignKey] = (),
        checks: Iterable[CheckConstraint] = (),
        cluster_by: Sequence[str] = (),
        clusters_automatically: bool = False,
        partitioned_by: Sequence[str] = (),
        tags: Mapping[str, str] = NOTHING,
        row_filter: RowFilter | None = None,
        owner: str | None = None,
        grants: Mapping[str, Iterable[str]] = NO_GRANTS,
        location: str | None = None,
        predictive_optimization: str | None = None,
        fill_by: FillBy | None = None,
        renamed_from: str | Sequence[str] | None = None,
        manages: Iterable[str | Part] | None = None,
        default_table_properties: Mapping[str, str] = DEFAULT_TABLE_PROPERTIES,
        declared_at: SourceLocation | None = None,
    ) -> None:
        is_automatic = isinstance(cluster_by, str) and cluster_by.upper() == AUTO
        set_fields(
            self,
            catalog_name=to_text(catalog_name, "catalog_name", table_name),
            schema_name=to_text(schema_name, "schema_name", table_name),
            table_name=to_text(table_name, "table_name"),
            columns=to_items(columns, Column, "columns", table_name),
            comment=to_text(comment, "comment", table_name),
            table_properties=to_texts(
                "table_properties", {} if table_properties is None else table_properties
            ),
            primary_key=_to_primary_key(primary_key),
            foreign_keys=to_items(foreign_keys, ForeignKey, "foreign_keys", table_name),
            checks=to_items(checks, CheckConstraint, "checks", table_name),
            cluster_by=() if is_automatic else to_names("cluster_by", cluster_by),
            clusters_automatically=is_automatic or to_flag(clusters_automatically, "clusters_automatically"),
            partitioned_by=to_names("partitioned_by", partitioned_by),
            tags=to_texts("tags", tags),
            row_filter=to_optional(row_filter, RowFilter, "row_filter", table_name),
            owner=to_optional_text(owner, "owner", table_name),
            grants=to_grants(grants),
            location=to_optional_text(location, "location", table_name),
            predictive_optimization=_to_setting(predictive_optimization, table_name),
            fill_by=to_optional(fill_by, FillBy, "fill_by", table_name),
            renamed_from=to_former_names(renamed_from, "renamed_from", table_name),
            manages=_to_parts(manages),
            default_table_properties=to_texts("default_table_properties", default_table_properties),
            declared_at=declared_at or calling_line(),
        )
        _refuse_unsupported_types(self)
        if declared_at is None and self.declared_at is not None:  # files are judged as a whole, by the rules
            _refuse_repetitions(self)

    @property
    def qualified_name(self) -> QualifiedName:
        """The table's raw three-part name."""
        return QualifiedName(self.catalog_name, self.schema_name, self.table_name)

    @property
    def key(self) -> str:
        """`QualifiedName.key`, without creating a `QualifiedName`."""
        return f"{self.catalog_name}.{self.schema_name}.{self.table_name}".lower()

    @property
    def effective_table_properties(self) -> Mapping[str, str]:
        """The defaults merged with the table's own properties, read-only, sorted by key."""
        if not self.default_table_properties:
            return self.table_properties
        return read_only({**self.default_table_properties, **self.table_properties})

    def is_about(self, part: Part) -> bool:
        """Whether the model manages a part of its table."""
        return self.manages is None or part in self.manages


@dataclass(frozen=True, slots=True, init=False)
class Schema:
    """A declared schema.

    Args:
        comment: None leaves the comment unmanaged; the empty string clears it.
        predictive_optimization: as for a `Table`; tables without a setting of their own inherit it.
        owner: None leaves the owner unmanaged.
        grants: privileges by principal; other principals are unmanaged, unless the policy says otherwise.
        declared_at: the place of the declaration; by default the calling line of Python.
    """

    columns: ClassVar[tuple[Column, ...]] = ()
    catalog_name: str
    schema_name: str
    comment: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    owner: str | None = None
    grants: Grants = field(default_factory=dict)
    predictive_optimization: str | None = None
    declared_at: SourceLocation | None = field(default=None, compare=False, repr=False)

    def __init__(
        self,
        catalog_name: str,
        schema_name: str,
        comment: str | None = None,
        *,
        tags: Mapping[str, str] = NOTHING,
        owner: str | None = None,
        grants: Mapping[str, Iterable[str]] = NO_GRANTS,
        predictive_optimization: str | None = None,
        declared_at: SourceLocation | None = None,
    ) -> None:
        set_fields(
            self,
            catalog_name=to_text(catalog_name, "catalog_name", schema_name),
            schema_name=to_text(schema_name, "schema_name"),
            comment=to_optional_text(comment, "comment", schema_name),
            tags=to_texts("tags", tags),
            owner=to_optional_text(owner, "owner", schema_name),
            grants=to_grants(grants),
            predictive_optimization=_to_setting(predictive_optimization, schema_name),
            declared_at=declared_at or calling_line(),
        )

    @property
    def qualified_name(self) -> SchemaName:
        """The two-part name."""
        return SchemaName(self.catalog_name, self.schema_name)

    @property
    def key(self) -> str:
        """The dotted name in lower case, by which schemas compare."""
        return self.qualified_name.key


SecurableName: TypeAlias = QualifiedName | SchemaName | FunctionName | PolicyName | ViewName
"""The name of a securable.

`kind` is the word for what it names. `is_container` says whether other securables live in that, declared or not: it is
created alone, before them, and never dropped. `is_selectable` says whether globs such as those of `-t` select it.
"""

Securable: TypeAlias = Table | Schema | Function | AbacPolicy | View
"""A model of any kind."""

_Model = TypeVar("_Model", bound=Securable)


def resource_key(name: SecurableName) -> str:
    """Return a key in lower case: the kind and the key of the name, such as `schema.<catalog>.<schema>`."""
    return f"{name.kind}.{name.key}"


def resource_id(name: SecurableName) -> str:
    """Return a name as documents have it; that of a policy begins with the kind and the name of its scope."""
    return name.dotted if isinstance(name, PolicyName) else str(name)


def by_resource(models: Iterable[_Model]) -> dict[str, _Model]:
    """Return models by the keys of their resources."""
    return {resource_key(model.qualified_name): model for model in models}


def of_kind(model_type: type[_Model], models: Iterable[Securable]) -> list[_Model]:
    """Return the models of one kind."""
    return [model for model in models if isinstance(model, model_type)]


@overload
def former_names(model: Table) -> tuple[QualifiedName, ...]: ...


@overload
def former_names(model: Securable) -> tuple[SecurableName, ...]: ...


def former_names(model: Securable) -> tuple[SecurableName, ...]:
    """Return the whole names from which a model renames its table or view, the latest first."""
    match model:
        case Table():
            return tuple(replace(model.qualified_name, table=name) for name in model.renamed_from)
        case View():
            return model.former_names
    return ()


def labelled(name: SecurableName) -> str:
    """Return a name for users: that of a table alone, others after their kind."""
    return str(name) if isinstance(name, QualifiedName) else f"{name.kind} {name}"


class Subject(TypedDict):
    """The keyword arguments of a refusal that name what it is about."""

    table: str | None
    securable: str | None


NO_SUBJECT: Final[Subject] = {"table": None, "securable": None}


def subject(name: SecurableName) -> Subject:
    """Return what a refusal is about."""
    if isinstance(name, QualifiedName):
        return {"table": str(name), "securable": None}
    return {"table": None, "securable": f"{name.kind} {name}"}


def _to_primary_key(value: PrimaryKey | Sequence[str] | None) -> PrimaryKey | None:
    if value is None or isinstance(value, PrimaryKey):
        return value
    columns = to_names("primary_key", value)
    return PrimaryKey(columns) if columns else None


def _to_setting(value: str | None, of: str) -> str | None:
    if value is None or value in OPTIMIZATION_SETTINGS:
        return value
    raise ValueError(
        f"predictive_optimization of {of} is {value!r}: write {', '.join(OPTIMIZATION_SETTINGS)}"
    )


def _to_parts(names: Iterable[str | Part] | None) -> frozenset[Part] | None:
    if names is None:
        return None
    if isinstance(names, str):
        raise TypeError(f"manages takes a tuple or list of parts, not the string {names!r}")
    parts = {part.value: part for part in Part}
    values = [name.value if isinstance(name, Part) else to_text(name, "manages") for name in names]
    for name in values:
        if name not in parts:
            raise ValueError(f"manages knows no part {name!r}: write {', '.join(parts)}")
    return frozenset(parts[name] for name in values)


def _refuse_unsupported_types(model: Table) -> None:
    """Raise `InvalidModelError` for the first column whose type the engine does not manage.

    A model that does not manage columns may name each type that tables on Databricks can have.
    """
    types = {id(column.data_type): column.data_type for column in model.columns}  # equal texts share one
    if not any(map(first_unsupported, types.values())):
        return
    manages_types = model.is_about(Part.COLUMNS)
    for column in model.columns:
        unsupported = first_unsupported(column.data_type)
        if unsupported and (manages_types or unsupported.reason != NOT_MANAGED):
            meant = unsupported.meant
            way_out = _PART_WAY_OUT if unsupported.reason == NOT_MANAGED else _TYPE_WAY_OUT
            raise InvalidModelError(
                f"type {unsupported.text!r} cannot be used: {unsupported.reason}",
                table=str(model.qualified_name),
                column=column.name,
                location=column.declared_at or model.declared_at,
                way_out=f"Did you mean {meant!r}?" if meant else way_out,
            )


def _refuse_repetitions(model: Table) -> None:
    """Raise `InvalidModelError` for the first repetition."""
    for reason, way_out, named in _repetitions(model):
        name = named if named is None or isinstance(named, str) else named.name
        column = next(
            (candidate for candidate in model.columns if candidate is named or candidate.name == name), None
        )
        raise InvalidModelError(
            reason,
            table=str(model.qualified_name),
            column=name,
            location=(column.declared_at if column else None) or model.declared_at,
            way_out=way_out,
        )


def _repetitions(model: Table) -> Iterator[Repetition]:
    yield from repeated_columns(model.columns)
    yield from repeated_in_primary_key(model.primary_key)
    for key in model.foreign_keys:
        for reason, way_out, column in repeated_in_foreign_key(key):
            yield Repetition(f"foreign key ({', '.join(key.columns)}) {reason}", way_out, column)
    keys = (model.primary_key, *model.foreign_keys)
    key_names = [key.name for key in keys if key is not None and key.name is not None]
    yield from repeated_constraint_names([*(check.name for check in model.checks), *key_names])
    for layout, names in (("cluster_by", model.cluster_by), ("partitioned_by", model.partitioned_by)):
        yield from filter(None, (repeated_in_layout(layout, names, place) for place in range(len(names))))
