"""Policies (ABAC) that a team declares: row filters and column masks of a catalog, a schema or a table.

Policies that grant or deny privileges belong to other tools. Conditions are opaque text here; `sql.tag_conditions`
reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, unique
from types import MappingProxyType
from typing import ClassVar, TypeAlias

from delta_engine.errors import SourceLocation
from delta_engine.models.columns import Column, calling_line
from delta_engine.models.parts import (
    NOTHING,
    QualifiedName,
    SchemaName,
    set_fields,
    to_names,
    to_optional_text,
    to_text,
    to_texts,
)


@unique
class ScopeKind(Enum):
    """What a policy may be defined on."""

    CATALOG = "catalog"
    SCHEMA = "schema"
    TABLE = "table"

    @property
    def parts(self) -> int:
        """The number of parts of such a name."""
        return list(ScopeKind).index(self) + 1


@dataclass(frozen=True, slots=True, init=False)
class PolicyScope:
    """The catalog, schema or table that a policy is defined on; it reaches the tables in it.

    Args:
        name: the raw dotted name of a catalog, a schema or a table, such as `dev.sales`.

    Raises:
        ValueError: the name has another number of parts than such a name.
    """

    kind: ScopeKind
    name: str

    def __init__(self, kind: ScopeKind | str, name: str) -> None:
        scope = kind if isinstance(kind, ScopeKind) else ScopeKind(to_text(kind, "kind"))
        text = to_text(name, "name")
        parts = text.split(".")
        if (len(parts) != scope.parts and "${" not in text) or not all(parts):  # a variable may hold several
            raise ValueError(f"{text!r} is not the full name of a {scope.value}: write {_FORMS[scope]}")
        set_fields(self, kind=scope, name=text)

    @property
    def key(self) -> str:
        """The name in lower case, by which scopes of one kind compare."""
        return self.name.lower()

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the name, in lower case."""
        return tuple(self.key.split("."))

    @property
    def above(self) -> tuple[PolicyScope, ...]:
        """The catalog and the schema that the scope is in, whose policies reach its tables too."""
        kinds = list(ScopeKind)[: len(self.parts) - 1]
        return tuple(PolicyScope(kind, ".".join(self.parts[: kind.parts])) for kind in kinds)

    def covers(self, table: str) -> bool:
        """Whether a table, by its key, is the scope or inside it."""
        return f"{table}.".startswith(f"{self.key}.")

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name}"


@dataclass(frozen=True, slots=True)
class PolicyName:
    """The raw name of a policy and its scope, on which it is unique; compares in lower case."""

    kind: ClassVar[str] = "policy"
    is_container: ClassVar[bool] = False
    is_selectable: ClassVar[bool] = True
    scope: PolicyScope
    policy: str

    @property
    def key(self) -> str:
        """The kind and name of the scope and the policy's name, in lower case, by which policies compare."""
        return self.dotted.lower()

    @property
    def dotted(self) -> str:
        """The raw kind and name of the scope and the policy's name."""
        return f"{self.scope.kind.value}.{self.scope.name}.{self.policy}"

    @classmethod
    def of_key(cls, key: str) -> PolicyName:
        """Return the policy of a key; ValueError for a text that is not a key."""
        kind, *parts = key.split(".")
        count = ScopeKind(kind.lower()).parts
        if not all(parts[count:]) or len(parts) <= count:
            raise ValueError(f"{key!r} is not the key of a policy")
        return cls(PolicyScope(kind.lower(), ".".join(parts[:count])), ".".join(parts[count:]))

    def after_rename(self, former: QualifiedName, name: QualifiedName) -> PolicyName:
        """Return the name once a table has another name: policies on the table follow it."""
        if self.scope.kind is not ScopeKind.TABLE or self.scope.key != former.key:
            return self
        return replace(self, scope=PolicyScope(ScopeKind.TABLE, str(name)))

    @property
    def catalog(self) -> str:
        """The catalog that its scope is, or is in."""
        return self.scope.name.partition(".")[0]

    @property
    def parents(self) -> tuple[QualifiedName | SchemaName, ...]:
        """The securables that it is in: its scope; the engine manages no catalog."""
        match self.scope.name.split("."):
            case [catalog, schema, table]:
                return (QualifiedName(catalog, schema, table),)
            case [catalog, schema]:
                return (SchemaName(catalog, schema),)
        return ()

    def __str__(self) -> str:
        return f"{self.policy} on {self.scope}"


_FORMS: Mapping[ScopeKind, str] = {
    ScopeKind.CATALOG: "catalog",
    ScopeKind.SCHEMA: "catalog.schema",
    ScopeKind.TABLE: "catalog.schema.table",
}


@dataclass(frozen=True, slots=True, init=False)
class PolicyMask:
    """The mask of a policy.

    Args:
        function: the function through which the principals see the column: `catalog.schema.function`.
        column: the alias of the masked column in `match`.
        using: the further arguments: aliases of `match`, or constants as SQL.
    """

    function: str
    column: str
    using: tuple[str, ...] = ()

    def __init__(self, function: str, column: str, using: Iterable[str] = ()) -> None:
        set_fields(
            self,
            function=to_text(function, "function"),
            column=to_text(column, "column"),
            using=to_names("using", using),
        )


@dataclass(frozen=True, slots=True, init=False)
class PolicyFilter:
    """The row filter of a policy.

    Args:
        function: the function that decides which rows the principals see: `catalog.schema.function`.
        using: its arguments: aliases of `match`, or constants as SQL.
    """

    function: str
    using: tuple[str, ...] = ()

    def __init__(self, function: str, using: Iterable[str] = ()) -> None:
        set_fields(self, function=to_text(function, "function"), using=to_names("using", using))


Protection: TypeAlias = PolicyMask | PolicyFilter


@dataclass(frozen=True, slots=True, init=False)
class AbacPolicy:
    """A declared policy.

    Args:
        name: the raw name, unique on its scope.
        scope: what it is defined on.
        protection: what it does to the tables in its scope.
        to: the users, service principals and groups that it applies to.
        excepted: those that it does not apply to.
        match: conditions on tags of columns by alias; a table needs a column for each.
        when: the condition on tags of the table; None for every table.
        comment: the empty string means no comment.
        declared_at: the place of the declaration; by default the calling line of Python.

    Raises:
        TypeError: an argument has the wrong type.
    """

    columns: ClassVar[tuple[Column, ...]] = ()
    name: str
    scope: PolicyScope
    protection: Protection
    to: tuple[str, ...]
    excepted: tuple[str, ...] = ()
    match: Mapping[str, str] = field(default_factory=dict, hash=False)
    when: str | None = None
    comment: str = ""
    declared_at: SourceLocation | None = field(default=None, compare=False, repr=False)

    def __init__(
        self,
        name: str,
        scope: PolicyScope,
        protection: Protection,
        to: Iterable[str],
        *,
        excepted: Iterable[str] = (),
        match: Mapping[str, str] = NOTHING,
        when: str | None = None,
        comment: str = "",
        declared_at: SourceLocation | None = None,
    ) -> None:
        if not isinstance(scope, PolicyScope):
            raise TypeError(f"scope of {name!r} takes PolicyScope(…), not {scope!r}")
        if not isinstance(protection, (PolicyMask, PolicyFilter)):
            raise TypeError(
                f"protection of {name!r} takes PolicyMask(…) or PolicyFilter(…), not {protection!r}"
            )
        conditions = to_texts("match", match)
        set_fields(
            self,
            name=to_text(name, "name"),
            scope=scope,
            protection=protection,
            to=to_names("to", to),
            excepted=to_names("excepted", excepted),
            match=MappingProxyType(
                {alias: conditions[alias] for alias in match}
            ),  # their order is the user's
            when=to_optional_text(when, "when", name),
            comment=to_text(comment, "comment", name),
            declared_at=declared_at or calling_line(),
        )

    @property
    def catalog_name(self) -> str:
        """The raw name of the catalog that it is in."""
        return self.qualified_name.catalog

    @property
    def qualified_name(self) -> PolicyName:
        """The raw name and the scope."""
        return PolicyName(self.scope, self.name)

    @property
    def key(self) -> str:
        """`PolicyName.key`."""
        return self.qualified_name.key
