"""What Spark's reference catalog cannot keep of Unity Catalog: it is read off the statements, and written down here.

The reference catalog forgets generation and identity, does not drop a constraint when told to, and knows no clustering,
tags, masks, row filters, owners and grants. Statements about those it does not parse either: these end here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TypeVar

from delta_engine.models import Column, QualifiedName
from delta_engine.state.unity_catalog.create_statement import declaration

Kept = TypeVar("Kept")

IDENT = r"(?:`(?:[^`]|``)+`|\w+)"
NAME = rf"{IDENT}(?:\.{IDENT})*"
NAMES = rf"\(\s*{IDENT}(?:\s*,\s*{IDENT})*\s*\)"
TEXT = r"'(?:[^'\\]|\\.)*'"

_KEY = re.compile(
    rf"CONSTRAINT (?P<name>{IDENT}) (?P<kind>PRIMARY KEY|FOREIGN KEY) (?P<columns>{NAMES})"
    rf"(?: REFERENCES (?P<target>{NAME})(?: (?P<referenced>{NAMES}))?)?"
)
_CHECK = re.compile(rf"ADD CONSTRAINT (?P<name>{IDENT}) CHECK \((?P<expression>.*)\)$", re.DOTALL)
_CLUSTER_BY = re.compile(rf"\s+CLUSTER BY (?:(?P<columns>{NAMES})|(?P<word>AUTO|NONE))")
_MASK = re.compile(
    rf"(?P<column>{IDENT}) (?P<rest>[^\n]*?) MASK (?P<function>{NAME})(?: USING COLUMNS (?P<using>{NAMES}))?"
)
_ROW_FILTER = re.compile(rf"\s+WITH ROW FILTER (?P<function>{NAME}) ON (?P<columns>{NAMES}|\(\))")
_PAIR = re.compile(rf"(?P<key>{TEXT})(?: = (?P<value>{TEXT}))?")


@dataclass(kw_only=True)
class Key:
    """A primary or foreign key; tables by their dotted names."""

    name: str
    kind: str
    columns: list[str]
    target: str | None = None
    referenced: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Function:
    """A row filter or a mask."""

    name: str
    columns: list[str]


@dataclass(kw_only=True)
class Securable:
    """What tables and schemas have."""

    tags: dict[str, str] = field(default_factory=dict)
    owner: str = "ann"
    grants: set[tuple[str, str]] = field(default_factory=set)


@dataclass(kw_only=True)
class Entry(Securable):
    """What is written down of a table; columns by their names in lower case."""

    keys: dict[str, Key] = field(default_factory=dict)
    checks: dict[str, str] = field(default_factory=dict)
    computed: dict[str, Column] = field(default_factory=dict)
    clustering: list[str] = field(default_factory=list)
    is_automatic: bool = False
    row_filter: Function | None = None
    masks: dict[str, Function] = field(default_factory=dict)
    column_tags: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    location: str | None = None


class Ledger:
    """Writes down what statements say, and returns what is left of them for Spark."""

    def __init__(self) -> None:
        self.tables: dict[str, Entry] = defaultdict(Entry)
        self.schemas: dict[str, Securable] = defaultdict(Securable)

    def take(self, sql: str) -> str:
        """Write down a statement; return what Spark should run, or nothing."""
        verb, _, rest = sql.partition(" ")
        match verb, rest.split(" ", 1)[0]:
            case "CREATE", "TABLE":
                return self._create(sql)
            case "ALTER", "TABLE":
                table, _, change = rest.removeprefix("TABLE ").partition(" ")
                return self._alter(plain(table), change, sql)
            case "ALTER", "SCHEMA":
                name, _, change = rest.removeprefix("SCHEMA ").partition(" ")
                self._govern(self.schemas[plain(name)], change)
                return ""
            case "GRANT" | "REVOKE", _:
                self._grant(verb, rest)
                return ""
            case "DROP", "TABLE":
                self.tables.pop(plain(rest.split()[-1]), None)
        return sql

    def _create(self, sql: str) -> str:
        table = plain(sql.removeprefix("CREATE TABLE ").split()[0])
        entry = self.tables[table] = Entry()
        for found in _MASK.finditer(sql):
            entry.masks[_plain_ident(found["column"]).lower()] = _function(found["function"], found["using"])
        sql = _MASK.sub(r"\g<column> \g<rest>", sql)
        if filtered := _ROW_FILTER.search(sql):
            entry.row_filter = _function(filtered["function"], filtered["columns"])
            sql = _ROW_FILTER.sub("", sql)
        sql = self._cluster(entry, sql)
        for found in _KEY.finditer(sql):
            self._add_key(entry, found)
        if located := re.search(rf"\nLOCATION (?P<location>{TEXT})", sql):
            entry.location = located["location"].strip("'")
        if " GENERATED " in sql:
            columns = declaration(QualifiedName(*table.split(".")), sql).columns
            entry.computed = {c.key: c for c in columns if c.identity or c.generated_as}
        return sql

    def _alter(self, table: str, change: str, sql: str) -> str:
        entry = self.tables[table]
        if self._govern(entry, change) or self._govern_column(entry, change):
            return ""
        match change.split():
            case ["CLUSTER", "BY", *_]:
                self._cluster(entry, " " + change)
                return ""
            case ["ADD", "CONSTRAINT", *_]:
                if found := _CHECK.search(change):
                    entry.checks[_plain_ident(found["name"]).lower()] = found["expression"]
                elif found := _KEY.search(change):
                    self._add_key(entry, found)
            case ["DROP", "CONSTRAINT", *words]:
                name = _plain_ident(words[2] if words[0] == "IF" else words[0]).lower()
                if not entry.keys.pop(name, None):
                    entry.checks.pop(name, None)
            case ["RENAME", "TO", name]:
                renamed = plain(name)
                self.tables[renamed] = self.tables.pop(table)
                return f"ALTER TABLE {table} RENAME TO {renamed.partition('.')[2]}"
            case ["RENAME", "COLUMN", *_]:
                self._rename_column(entry, change)
            case ["DROP", "COLUMNS", *_]:
                for name in re.findall(IDENT, change.partition("(")[2]):
                    self._forget_column(entry, _plain_ident(name).lower())
        return sql

    def _govern(self, securable: Securable, change: str) -> bool:
        """Write down tags, an owner or a row filter."""
        if change.startswith("SET TAGS "):
            securable.tags |= _pairs(change)
        elif change.startswith("UNSET TAGS "):
            for key in _pairs(change):
                securable.tags.pop(key, None)
        elif change.startswith("OWNER TO "):
            securable.owner = _plain_ident(change.removeprefix("OWNER TO "))
        elif isinstance(securable, Entry) and change.startswith("SET ROW FILTER "):
            found = re.search(rf"FILTER (?P<function>{NAME}) ON (?P<columns>{NAMES}|\(\))", change)
            assert found, change
            securable.row_filter = _function(found["function"], found["columns"])
        elif isinstance(securable, Entry) and change == "DROP ROW FILTER":
            securable.row_filter = None
        else:
            return False
        return True

    def _govern_column(self, entry: Entry, change: str) -> bool:
        """Write down tags or a mask of a column."""
        found = re.match(
            rf"ALTER COLUMN (?P<column>{IDENT}) (?P<verb>SET|UNSET|DROP) (?P<what>TAGS|MASK)", change
        )
        if not found:
            return False
        column = _plain_ident(found["column"]).lower()
        match found["verb"], found["what"]:
            case "SET", "TAGS":
                entry.column_tags[column] |= _pairs(change[found.end() :])
            case "UNSET", "TAGS":
                for key in _pairs(change[found.end() :]):
                    entry.column_tags[column].pop(key, None)
            case "SET", "MASK":
                mask = re.search(
                    rf"SET MASK (?P<function>{NAME})(?: USING COLUMNS (?P<using>{NAMES}))?", change
                )
                assert mask, change
                entry.masks[column] = _function(mask["function"], mask["using"])
            case "DROP", "MASK":
                entry.masks.pop(column, None)
        return True

    def _grant(self, verb: str, rest: str) -> None:
        found = re.fullmatch(
            rf"(?P<privileges>[A-Z ,]+) ON (?P<kind>TABLE|SCHEMA) (?P<name>{NAME}) (?:TO|FROM) (?P<principal>{IDENT})",
            rest,
        )
        assert found, rest
        places = self.tables if found["kind"] == "TABLE" else self.schemas
        grants = places[plain(found["name"])].grants
        for privilege in found["privileges"].split(", "):
            granted = (_plain_ident(found["principal"]), privilege.replace(" ", "_"))
            if verb == "GRANT":
                grants.add(granted)
            else:
                grants.discard(granted)

    def _cluster(self, entry: Entry, sql: str) -> str:
        """Take a CLUSTER BY out of a statement."""
        found = _CLUSTER_BY.search(sql)
        if found:
            entry.clustering = _columns(found["columns"])
            entry.is_automatic = found["word"] == "AUTO"
        return _CLUSTER_BY.sub("", sql)

    def _add_key(self, entry: Entry, found: re.Match[str]) -> None:
        target = plain(found["target"]) if found["target"] else None
        referenced = _columns(found["referenced"])
        if target and not referenced:
            keys = self.tables[target].keys.values()
            referenced = next((key.columns for key in keys if key.kind == "PRIMARY KEY"), [])
        name = _plain_ident(found["name"]).lower()
        entry.keys[name] = Key(
            name=name,
            kind=found["kind"],
            columns=_columns(found["columns"]),
            target=target,
            referenced=referenced,
        )

    def _rename_column(self, entry: Entry, change: str) -> None:
        found = re.match(rf"RENAME COLUMN (?P<old>{NAME}) TO (?P<new>{IDENT})", change)
        assert found, change
        if "." in found["old"].replace("`.`", "."):
            return
        old, new = _plain_ident(found["old"]).lower(), _plain_ident(found["new"])
        _rename(entry.masks, old, new)
        _rename(entry.column_tags, old, new)
        _rename(entry.computed, old, new)
        entry.clustering = [new if name.lower() == old else name for name in entry.clustering]
        entry.keys = {  # Unity Catalog drops them without a word
            name: key
            for name, key in entry.keys.items()
            if old not in [column.lower() for column in key.columns]
        }

    def _forget_column(self, entry: Entry, column: str) -> None:
        entry.masks.pop(column, None)
        entry.column_tags.pop(column, None)
        entry.computed.pop(column, None)


def _rename(kept: dict[str, Kept], old: str, new: str) -> None:
    if old in kept:
        kept[new.lower()] = kept.pop(old)


def plain(name: str) -> str:
    """Return a table's or schema's dotted name without quotes."""
    return name.replace("`", "")


def _plain_ident(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def _columns(text: str | None) -> list[str]:
    return [_plain_ident(name) for name in re.findall(IDENT, text or "")]


def _function(name: str, columns: str | None) -> Function:
    return Function(name=plain(name), columns=_columns(columns))


def _pairs(text: str) -> dict[str, str]:
    return {_text(found["key"]): _text(found["value"] or "''") for found in _PAIR.finditer(text)}


def _text(literal: str) -> str:
    return re.sub(
        r"\\(.)", lambda found: {"n": "\n", "r": "\r", "t": "\t"}.get(found[1], found[1]), literal[1:-1]
    )
