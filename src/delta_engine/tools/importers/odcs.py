"""Reads data contracts of the Open Data Contract Standard 3.x: their tables. `contracts` writes the same parts.

The standard: https://bitol-io.github.io/open-data-contract-standard/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, starmap
from typing import Any, Final

import msgspec

from delta_engine.config.shapes import problem_of
from delta_engine.config.yaml_documents import Document, parse_document
from delta_engine.errors import RefusedError
from delta_engine.models import CheckConstraint, Column, ForeignKey, PrimaryKey, Table
from delta_engine.models.type_text import parse_data_type
from delta_engine.models.types import ArrayType, DataType, MapType, StructField, StructType, first_unsupported
from delta_engine.sql.expressions import condition_problem
from delta_engine.sql.text import quote_ident, sql_literal
from delta_engine.telemetry.visible import counted
from delta_engine.tools.importers.catalog import Catalog, Wanted
from delta_engine.validation.governance_rules import TagsWithinLimits
from delta_engine.validation.rules import name_problem

SUPPORTED: Final = "v3."
PRIMARY_KEY_NAME: Final = "primaryKeyName"
CONSTRAINT_NAME: Final = "constraintName"
COUNTED: Final = "SELECT COUNT(*) FROM {object} WHERE "
IS_VIOLATED: Final = " IS NOT TRUE"
"""What makes a query count the rows that a CHECK refuses, which NULL is not enough for."""

_COUNTING: Final = re.compile(
    r"\s*SELECT\s+COUNT\s*\(\s*(?:\*|1)\s*\)\s+FROM\s+\S+\s+WHERE\s+(?P<condition>.+?)\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_PROPERTY: Final = re.compile(r"`?\$?\{(?:property|column)\}`?")
"""The column of a rule, as versions of the standard and its tools write it."""

_INTEGERS: Final = {
    **{"i8": "tinyint", "i16": "smallint", "i32": "int", "i64": "bigint", "i128": "decimal(38,0)"},
    **{"u8": "smallint", "u16": "int", "u32": "bigint", "u64": "decimal(20,0)", "u128": "decimal(38,0)"},
}
_TABLES: Final = (None, "table", "managed table", "external table")
_NAME_OF_CHECK: Final = re.compile(r"\W+", re.ASCII)
_ELSEWHERE: Final = "Name the catalog and the schema, as in: import CATALOG.SCHEMA --from FILE."


class _Part(msgspec.Struct, rename="camel", omit_defaults=True):
    """A part of a contract, with its keys in the order in which they are written; other keys are ignored."""


class Custom(_Part):
    """A value that the standard has no key for."""

    property: str
    value: Any = None


class Quality(_Part):
    """A rule about the quality of rows."""

    type: str = "library"
    name: str | None = None
    id: str | None = None
    metric: str | None = None
    rule: str | None = None
    arguments: dict[str, Any] | None = None
    must_be: Any = None
    query: str = ""


class Relationship(_Part, kw_only=True):
    """A reference to columns of another table."""

    type: str | None = None
    from_: str | list[str] | None = msgspec.field(name="from", default=None)
    to: str | list[str]
    custom_properties: list[Custom] | None = None


class Element(_Part):
    """A table, a column, or what is inside of one."""

    name: str = ""
    id: str | None = None
    physical_name: str | None = None
    logical_type: str | None = None
    physical_type: str | None = None
    logical_type_options: dict[str, Any] | None = None
    description: str | None = None
    required: bool | None = None
    primary_key: bool | None = None
    primary_key_position: int | None = None
    partitioned: bool | None = None
    partition_key_position: int | None = None
    tags: list[str] | None = None
    properties: list[Element] | None = None
    items: Element | None = None
    map: dict[str, Element] | None = None
    relationships: list[Relationship] | None = None
    quality: list[Quality] | None = None
    custom_properties: list[Custom] | None = None

    @property
    def stored_name(self) -> str:
        """The name in the catalog.

        Raises:
            ValueError: it has none.
        """
        if not (self.physical_name or self.name):
            raise ValueError("one of its parts has no name")
        return self.physical_name or self.name


class Server(_Part):
    """Where tables are."""

    server: str = ""
    type: str = ""
    environment: str | None = None
    catalog: str | None = None
    schema: str | None = None


class Contract(_Part):
    """A whole contract."""

    api_version: Any = None
    kind: Any = None
    id: Any = None
    name: Any = None
    version: Any = None
    status: Any = None
    servers: list[Server] | None = None
    schema: list[Element] | None = None


def read_contract(text: str, file: str, wanted: Wanted, catalog: Catalog) -> None:
    """Add what a contract declares to a catalog.

    Raises:
        RefusedError: it is no contract of version 3, or names no place.
    """
    document = parse_document(text, file)
    _refuse_other_versions(document)
    try:
        contract = msgspec.convert(document.value, Contract)
    except msgspec.ValidationError as error:
        problem = problem_of(error)
        reason = f"it does not follow the standard: {problem.reason}"
        raise document.error(problem.path, reason, problem.way_out) from None
    reader = _Reader(document, contract, wanted)
    for number, item in enumerate(contract.schema or ()):
        reader.read(item, number, catalog)
    catalog.notes += reader.notes
    if reader.other_rules:
        catalog.notes.append(
            f"left out, no CHECK of a row: {counted(reader.other_rules, 'quality rule')} of {file}"
        )


def _refuse_other_versions(document: Document) -> None:
    keys = document.value if isinstance(document.value, dict) else {}
    if "dataContractSpecification" in keys:
        raise document.error(
            ("dataContractSpecification",),
            "it follows the Data Contract Specification, not the Open Data Contract Standard",
            "Export it as ODCS with its own tools, and import the result.",
        )
    if keys.get("kind") != "DataContract":
        raise document.error((), "it is not a data contract: kind is not DataContract")
    if (version := keys.get("apiVersion")) is None:
        raise document.error(
            (), "apiVersion is missing", f"Add the version of the standard, as in: apiVersion: {SUPPORTED}1.0"
        )
    if f"v{version}".startswith(SUPPORTED):
        raise document.error(
            ("apiVersion",),
            f"apiVersion {version} lacks its v",
            f"Write it as the standard does: v{version}",
        )
    if not str(version).startswith(SUPPORTED):
        raise document.error(
            ("apiVersion",),
            f"version {version} of the standard is not read, only version 3",
            "Convert the contract to version 3.",
        )


class _Reader:
    def __init__(self, document: Document, contract: Contract, wanted: Wanted) -> None:
        self._document = document
        self._contract = contract
        self._wanted = wanted
        self._place = self._find_place()
        self._keys = {
            self._reference(item).lower(): _named_key(item) for item in contract.schema or () if item.name
        }
        self.notes: list[str] = []
        self.other_rules = 0

    def _find_place(self) -> tuple[str, str]:
        catalog, schema = self._wanted.home
        if catalog and schema:
            return catalog, schema
        servers = [server for server in self._contract.servers or () if server.catalog and server.schema]
        environment = self._wanted.environment
        own = [server for server in servers if environment in (server.environment, server.server)] or servers
        if len({(server.catalog, server.schema) for server in own}) != 1:
            names = ", ".join(server.server for server in servers)
            reason = f"none of its servers ({names}) is that of {environment}"
            raise self._document.error(
                ("servers",), reason if servers else "no server has a catalog and a schema", _ELSEWHERE
            )
        return catalog or str(own[0].catalog), schema or str(own[0].schema)

    def read(self, item: Element, number: int, catalog: Catalog) -> None:
        """Add an object of the contract to a catalog."""
        path = ("schema", number)
        try:
            if (item.physical_type or "table").lower() not in _TABLES:
                kind = item.physical_type
                reason = f"{item.name} is a {kind}, but the import reads only contracts of tables"
                raise self._document.error(path, reason)
            catalog.add_table(self._table(item, path))
        except RefusedError as refusal:
            catalog.refusals += refusal.refusals
        except ValueError as error:
            catalog.refusals.append(self._document.error(path, f"{item.name}: {error}"))

    def _table(self, item: Element, path: tuple[str | int, ...]) -> Table:
        properties = item.properties or []
        columns = [
            Column(
                column.stored_name,
                self._data_type(column),
                not (column.required or column.primary_key or self._has_no_nulls(column)),
                column.description or "",
                tags=self._tags(column.tags, item),
                declared_at=self._document.location((*path, "properties", number)),
            )
            for number, column in enumerate(properties)
        ]
        if item.stored_name.count(".") > 2:
            raise ValueError(f"{item.stored_name} has more than 3 parts")
        catalog, schema, name = _whole_name(item, self._place)
        keys = _primary_key(item)
        return Table(
            catalog,
            schema,
            name,
            columns,
            item.description or "",
            primary_key=PrimaryKey(keys, _custom(item.custom_properties, PRIMARY_KEY_NAME)) if keys else None,
            foreign_keys=[*filter(partial(self._is_foreign_key, item), self._foreign_keys(item))],
            checks=[*self._checks(item)] if self._wanted.with_checks else (),
            partitioned_by=_ordered(
                properties, lambda column: (column.partitioned, column.partition_key_position)
            ),
            tags=self._tags(item.tags, item),
            declared_at=self._document.location(path),
        )

    def _data_type(self, column: Element) -> DataType:
        physical = parse_data_type(column.physical_type) if column.physical_type else None
        if physical is not None and (first_unsupported(physical) is None or column.logical_type is None):
            return physical
        return self._logical(column) or physical or parse_data_type(column.logical_type or "")

    def _logical(self, column: Element) -> DataType | None:
        options = column.logical_type_options or {}
        match column.logical_type:
            case "integer":
                return parse_data_type(_INTEGERS.get(str(options.get("format", "i32")), "bigint"))
            case "number":
                return parse_data_type("float" if options.get("format") == "f32" else "double")
            case "date" if re.search("[HhKk]", str(options.get("format", ""))):  # 3.0 has no timestamp
                return parse_data_type("timestamp")
            case "timestamp" if options.get("timezone") is False:
                return parse_data_type("timestamp_ntz")
            case "string" if options.get("format") == "binary":
                return parse_data_type("binary")
            case "object" if column.properties:
                return StructType(tuple(map(self._field, column.properties)))
            case "array" if column.items:
                return ArrayType(self._data_type(column.items))
            case "map" if column.map and {"key", "value"} <= column.map.keys():
                return MapType(self._data_type(column.map["key"]), self._data_type(column.map["value"]))
            case "string" | "date" | "timestamp" | "boolean":
                return parse_data_type(column.logical_type)
        return None

    def _field(self, column: Element) -> StructField:
        return StructField(
            column.stored_name, self._data_type(column), not column.required, column.description or ""
        )

    def _foreign_keys(self, item: Element) -> Iterator[ForeignKey]:
        for column in item.properties or ():
            for relationship in column.relationships or ():
                yield self._foreign_key([column.stored_name], relationship)
        for relationship in item.relationships or ():
            columns = [self._target(text)[1] for text in _listed(relationship.from_)]
            yield self._foreign_key(columns, relationship)

    def _foreign_key(self, columns: Sequence[str], relationship: Relationship) -> ForeignKey:
        targets = [self._target(text) for text in _listed(relationship.to)]
        if len(targets) != len(columns) or len({table for table, _ in targets}) != 1:
            raise ValueError(f"the relationship to {relationship.to} does not fit its columns")
        name = _custom(relationship.custom_properties, CONSTRAINT_NAME)
        return ForeignKey(columns, targets[0][0], [column for _, column in targets], name)

    def _target(self, reference: str) -> tuple[str, str]:
        """Return the table and the column of a reference, by names or by ids."""
        objects = self._contract.schema or []
        steps = reference.lstrip("/").split("/")
        by_id = len(steps) == 4
        if not by_id and ("/" in reference or reference.count(".") != 1):
            raise ValueError(f"{reference} is not a column of this contract")
        table, column = (steps[1], steps[3]) if by_id else reference.split(".")
        for item in objects:
            if table == (item.id if by_id else item.name):
                for own in item.properties or ():
                    if column == (own.id if by_id else own.name):
                        column = own.stored_name
                return self._reference(item), column
        return table, column

    def _reference(self, item: Element) -> str:
        """Return the name by which foreign keys of the contract reference a table."""
        parts = _whole_name(item, self._place)
        return ".".join(parts[2:] if parts[:2] == self._place else parts)

    def _is_foreign_key(self, item: Element, key: ForeignKey) -> bool:
        """Whether a relationship is to a whole primary key, as far as the contract knows; note it if not."""
        primary, own = self._keys.get(key.references.lower()), key.referenced_columns
        if not primary or {*map(str.lower, primary)} == {*map(str.lower, own)}:
            return True
        self.notes.append(
            f"left out, no whole primary key: the relationship of {item.name} to {key.references} ({', '.join(own)})"
        )
        return False

    def _tags(self, tags: Sequence[str] | None, item: Element) -> dict[str, str]:
        """Return the tags that Unity Catalog can have, and note the others, which contracts may use too."""
        pairs = (tag.partition(":") for tag in tags or ())
        values = {key.strip(): value.strip() for key, _, value in pairs}
        refused = [key for key, value in values.items() if any(TagsWithinLimits().problems({key: value}))]
        self.notes += [f"left out, no tag of Unity Catalog: {key!r} of {item.name}" for key in refused]
        return {key: value for key, value in values.items() if key not in refused}

    def _has_no_nulls(self, column: Element) -> bool:
        rules = column.quality or () if self._wanted.with_checks else ()
        return any(_is_none(rule) and (rule.metric or rule.rule) == "nullValues" for rule in rules)

    def _checks(self, item: Element) -> Iterator[CheckConstraint]:
        """Yield the rules that are CHECKs; a name that an earlier one has gets a number that makes it free."""
        columns = [None, *(column.stored_name for column in item.properties or ())]
        elements = zip(columns, [item, *(item.properties or ())], strict=True)
        rules = [(rule, column) for column, element in elements for rule in element.quality or ()]
        checks = [*filter(None, starmap(self._check, rules))]
        taken, earlier = {check.name.lower() for check in checks}, set[str]()
        for check in checks:
            numbered = (f"{check.name}_{number}" for number in count(2))
            is_first = check.name.lower() not in earlier
            name = check.name if is_first else next(own for own in numbered if own.lower() not in taken)
            taken.add(name.lower())
            earlier.add(name.lower())
            yield replace(check, name=name)

    def _check(self, rule: Quality, column: str | None) -> CheckConstraint | None:
        if column and _is_none(rule) and (rule.metric or rule.rule) == "nullValues":
            return None
        expression = _expression(rule, column) if _is_none(rule) else None
        if expression is None or condition_problem(expression):
            self.other_rules += 1
            return None
        name = rule.name or rule.id or f"{column or 'rows'}_valid"
        if name_problem(name):
            name = _NAME_OF_CHECK.sub("_", name).strip("_").lower()
        return CheckConstraint(name, expression)


def _expression(rule: Quality, column: str | None) -> str | None:
    """Return the condition that every row meets if a rule holds; None if a CHECK cannot say that."""
    if rule.type == "sql":
        name = quote_ident(column) if column else ""
        query = _PROPERTY.sub(lambda _: name, rule.query) if column else rule.query
        match = _COUNTING.fullmatch(query)
        if match is None:
            return None
        condition = match["condition"]
        inner = condition.removesuffix(IS_VIOLATED)
        is_own = inner != condition and inner.startswith("(") and not condition_problem(inner[1:-1])
        return inner[1:-1] if is_own else f"({condition}){IS_VIOLATED}"
    arguments: Mapping[str, Any] = rule.arguments or {}
    if column is None or (rule.metric or rule.rule) != "invalidValues":
        return None
    name = quote_ident(column)
    values = arguments.get("validValues")
    if isinstance(values, list) and values:
        texts = (sql_literal(value) if isinstance(value, str) else str(value) for value in values)
        return f"{name} IS NULL OR {name} IN ({', '.join(texts)})"
    pattern = arguments.get("pattern")
    return f"{name} IS NULL OR {name} RLIKE {sql_literal(str(pattern))}" if pattern else None


def _is_none(rule: Quality) -> bool:
    """Whether a rule says that no row may break it."""
    return rule.must_be == 0 and not isinstance(rule.must_be, bool)


def _whole_name(item: Element, place: tuple[str, str]) -> tuple[str, str, str]:
    parts = item.stored_name.split(".")
    catalog, schema, name = (*place[: 3 - len(parts)], *parts)[:3]
    return catalog, schema, name


def _primary_key(item: Element) -> list[str]:
    return _ordered(item.properties or [], lambda column: (column.primary_key, column.primary_key_position))


def _named_key(item: Element) -> list[str]:
    """Return the columns of a primary key; none if one has no name, for which reading the object is refused."""
    try:
        return _primary_key(item)
    except ValueError:
        return []


def _ordered(properties: Sequence[Element], facts: Any) -> list[str]:
    """Return the columns for which a fact holds, by their positions."""
    chosen = [(facts(column)[1] or 0, column.stored_name) for column in properties if facts(column)[0]]
    return [name for _, name in sorted(chosen, key=lambda pair: pair[0])]


def _listed(value: str | list[str] | None) -> list[str]:
    return value if isinstance(value, list) else [value] if value else []


def _custom(properties: Sequence[Custom] | None, key: str) -> str | None:
    return next((str(custom.value) for custom in properties or () if custom.property == key), None)
