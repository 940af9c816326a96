"""What a reader sees of a table: through its row filter, its masks and the policies that reach it.

A mask is the SQL that its function computes for this reader, with groups and user filled in. Where the platform refuses
the query, the reader sees nothing: a function that is missing or takes other arguments, two filters or two masks that
differ, a policy that names an unknown tag, or no SELECT.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from delta_engine.sql.text import quote_ident
from tests.fakes.unity_catalog import functions, policies
from tests.fakes.unity_catalog.catalog import FakeUnityCatalog
from tests.fakes.unity_catalog.policies import Policy
from tests.fakes.unity_catalog.refusals import Refusal, require
from tests.fakes.unity_catalog.stored import Stored
from tests.fakes.unity_catalog.stored_values import StoredValues, cases, is_bare, origins, without

ALL_ROWS = "TRUE"
NO_ROWS = "FALSE"


class Reader(NamedTuple):
    """A principal that reads tables, with its groups."""

    name: str
    groups: frozenset[str] = frozenset()


class Sight(NamedTuple):
    """What a reader sees of a column.

    Args:
        rows: the condition that its rows meet.
        value: what it sees in place of the value, as SQL over the columns; that of a column alone is its value.
    """

    rows: str
    value: str


class Fact(NamedTuple):
    """What a reader learns of stored values.

    Args:
        rows: the condition on the rows of which it learns it.
        origins: the columns, by their first names, whose values it learns.
        how: the SQL by which it sees them; empty for the values themselves.
    """

    rows: str
    origins: frozenset[str]
    how: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """What a reader sees of a table: a sight by column, by key; none where its queries are refused.

    Args:
        refusal: why the platform refuses; empty if it does not.
    """

    sights: Mapping[str, Sight]
    refusal: str = ""


def facts(seen: View, stored: StoredValues | None = None) -> frozenset[Fact]:
    """Return what a view tells of values. Who sees a COALESCE also sees its first alternative, where it is there.

    Args:
        stored: what the columns hold; None if each holds its first values.
    """
    learned: set[Fact] = set()
    for sight in seen.sights.values():
        value, rows = sight.value, sight.rows
        if stored is not None:
            value, rows = stored.value_of(value), stored.value_of(rows)
        if rows != NO_ROWS:
            learned |= {_fact(rows, value), _fact(rows, cases(value)[0])}
    return frozenset(fact for fact in learned if fact.origins)


def _fact(rows: str, value: str) -> Fact:
    return Fact(rows, origins(value), "" if is_bare(value) else value)


def untold(now: frozenset[Fact], *sides: frozenset[Fact]) -> frozenset[Fact]:
    """Return the facts that no side tells: each has to follow from those of one side."""
    return frozenset(fact for fact in now if not any(_follows(fact, side) for side in sides))


def _follows(fact: Fact, side: frozenset[Fact]) -> bool:
    """Whether a side tells a fact, or each of the values that it may be computed from.

    A COALESCE under a mask tells what its alternatives tell, and which rows lack the first one, which is no value.
    """
    parts = cases(fact.how) if fact.how else ()
    return _is_told(fact, side) or (
        len(parts) > 1 and all(_is_told(_fact(fact.rows, part), side) for part in parts)
    )


def _is_told(fact: Fact, side: frozenset[Fact]) -> bool:
    within = [told for told in side if told.rows in (ALL_ROWS, fact.rows)]
    if fact._replace(rows="") in [told._replace(rows="") for told in within]:
        return True
    plain = frozenset().union(*(told.origins for told in within if not told.how))
    if fact.origins <= plain or not fact.how:
        return fact.origins <= plain
    computed = [told.how for told in within if told.how]
    return origins(without(fact.how, computed)) <= plain  # a mask over a value that is told


def view(catalog: FakeUnityCatalog, table: str, reader: Reader) -> View:
    """Return what a reader sees of a table now."""
    try:
        stored = catalog.stored(table)
        _require_select(catalog, stored, reader)
        effective = _effective(catalog, stored, reader)
        rows = _one(_filters(stored, effective), "INVALID_PARAMETER_VALUE.UC_ABAC_MULTIPLE_ROW_FILTERS")
        condition = ALL_ROWS if rows is None else _computed(catalog, rows, reader)
        sights = {}
        for column in stored.state.columns:
            mask = _one(
                _masks(stored, effective, column.key), "COLUMN_MASKS_FEATURE_NOT_SUPPORTED.MULTIPLE_MASKS"
            )
            value = quote_ident(column.key) if mask is None else _computed(catalog, mask, reader)
            sights[column.key] = Sight(condition, value)
    except Refusal as refusal:
        return View({}, f"{refusal.error_class}: {refusal.message}")
    return View(sights)


class _Call(NamedTuple):
    """A call of a function, with its arguments as SQL."""

    function: str
    arguments: tuple[str, ...]


def _require_select(catalog: FakeUnityCatalog, stored: Stored, reader: Reader) -> None:
    names = {reader.name, *reader.groups, policies.EVERYBODY}
    schema = catalog.schemas[f"{stored.name.catalog}.{stored.name.schema}"]
    held = {
        privilege
        for grants in (stored.state.grants, schema.grants)
        for principal, privileges in grants.items()
        if principal in names
        for privilege in privileges
    }
    may = stored.state.owner in names or not held.isdisjoint({"SELECT", "ALL PRIVILEGES"})
    require(may, "INSUFFICIENT_PERMISSIONS", f"{reader.name} may not select from {stored.name}")


def _effective(catalog: FakeUnityCatalog, stored: Stored, reader: Reader) -> list[Policy]:
    tags = {**catalog.inherited_tags(stored.name.key), **stored.state.tags}
    effective = []
    for policy in policies.effective(catalog.policies, stored.name.key):
        if policy.policy_type not in ("ROW_FILTER", "COLUMN_MASK"):
            continue
        if not policy.is_for(reader.name, reader.groups):
            continue
        conditions = [*([policy.when] if policy.when else []), *(text for _, text in policy.match)]
        named = {key for text in conditions for key in policies.tags_in(text)}
        unknown = set() if catalog.known_tags is None else named - catalog.known_tags
        require(not unknown, "UC_ABAC_UNKNOWN_TAG_POLICY", f"{policy.name} names {sorted(unknown)}")
        if policy.reaches(tags, stored.state.columns):
            effective.append(policy)
    return effective


def _filters(stored: Stored, effective: Iterable[Policy]) -> set[_Call]:
    calls = {
        _Call(str(policy.function), _arguments(policy, stored))
        for policy in effective
        if policy.policy_type == "ROW_FILTER"
    }
    if stored.state.row_filter is not None:
        function, columns = stored.state.row_filter.function, stored.state.row_filter.columns
        calls.add(_Call(stored.name.resolve(function).key, tuple(map(_column, columns))))
    return calls


def _masks(stored: Stored, effective: Iterable[Policy], key: str) -> set[_Call]:
    calls = {
        _Call(str(policy.function), (_column(key), *_arguments(policy, stored)))
        for policy in effective
        if policy.policy_type == "COLUMN_MASK" and key in policy.masked(stored.state.columns)
    }
    mask = stored.column(key).mask
    if mask is not None:
        arguments = (_column(key), *map(_column, mask.using_columns))
        calls.add(_Call(stored.name.resolve(mask.function).key, arguments))
    return calls


def _arguments(policy: Policy, stored: Stored) -> tuple[str, ...]:
    """Return the arguments of a policy's function; refuse an alias that matches several columns."""
    aliases = {alias.lower(): alias for alias, _ in policy.match}
    arguments = []
    for text in policy.using:
        if text.lower() not in aliases:
            arguments.append(text)
            continue
        matched = policy.matched(text, stored.state.columns)
        require(
            len(matched) == 1,
            "INVALID_PARAMETER_VALUE",
            f"{policy.name}: {text} matches {len(matched)} columns",
        )
        arguments.append(_column(matched[0]))
    return tuple(arguments)


def _one(calls: set[_Call], error_class: str) -> _Call | None:
    """Return the only call; refuse several that differ. The same function with the same arguments is one."""
    require(len(calls) <= 1, error_class, f"{sorted(call.function for call in calls)} meet")
    return next(iter(calls), None)


def _computed(catalog: FakeUnityCatalog, call: _Call, reader: Reader) -> str:
    return functions.called(catalog.functions, call.function, call.arguments, reader.groups, reader.name)


def _column(name: str) -> str:
    return quote_ident(name.lower())
