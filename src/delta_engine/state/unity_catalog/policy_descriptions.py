"""What Unity Catalog says of policies: descriptions in SQL, and listings of databricks-sdk.

A listing is one call for a catalog, a schema or a table. SQL needs `SHOW POLICIES` and a `DESCRIBE POLICY` for each.
`information_schema.abac_policy_definitions` is documented without the function. Conditions are returned in the present
words of the platform, which also shows former ones, such as `hasTag`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError
from delta_engine.models.policies import PolicyFilter, PolicyMask, Protection
from delta_engine.sql.expressions import databricks_dialect
from delta_engine.sql.tag_conditions import present_spelling
from delta_engine.state.audits import Audit
from delta_engine.state.policy_states import PolicyState
from delta_engine.state.unity_catalog.table_states import listed_audit
from delta_engine.state.unmanaged import Unmanaged

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import FunctionArgument, PolicyInfo

_ROW_FILTER: Final = "ROW_FILTER"
_COLUMN_MASK: Final = "COLUMN_MASK"
_SDK_PREFIX: Final = "POLICY_TYPE_"


def listed_policy(info: PolicyInfo) -> PolicyState | Unmanaged:
    """Return a policy of a listing."""
    protection = _listed_protection(info)
    if isinstance(protection, Unmanaged):
        return protection
    return PolicyState(
        protection=protection,
        to=tuple(info.to_principals),
        excepted=tuple(info.except_principals or ()),
        match={
            column.alias or "": present_spelling(column.condition or "")
            for column in info.match_columns or ()
        },
        when=present_spelling(info.when_condition) if info.when_condition else None,
        comment=info.comment or "",
        audit=listed_audit(info),
    )


def described_policy(rows: Sequence[Row]) -> PolicyState | Unmanaged:
    """Return a policy from the rows of DESCRIBE POLICY: a property and its value each, without those that are not set.

    Raises:
        CatalogReadError: the description has another form than the documented one.
    """
    properties = dict(map(_property, rows))
    policy_type = _needed(properties, "policy type")
    if policy_type not in (_ROW_FILTER, _COLUMN_MASK):
        return Unmanaged(f"it is a {policy_type} policy")
    function = _needed(properties, "function name")
    using = tuple(part.strip() for part in _split(properties.get("using columns", "")))
    when = properties.get("when condition") or properties.get("when")
    return PolicyState(
        protection=PolicyFilter(function, using)
        if policy_type == _ROW_FILTER
        else PolicyMask(function, _needed(properties, "on column"), using),
        to=_principals(_needed(properties, "to principals")),
        excepted=_principals(properties.get("except principals", "")),
        match=dict(_matched(properties.get("match columns", ""))),
        when=present_spelling(when) if when else None,
        comment=properties.get("comment", ""),
        audit=Audit(
            created_at=_moment(properties.get("created at")),
            created_by=properties.get("created by"),
            altered_at=_moment(properties.get("updated at")),
            altered_by=properties.get("updated by"),
        ),
    )


def _moment(text: str | None) -> datetime | None:
    """Return the moment that a description shows, as in the documented example; None for another form."""
    try:
        shown = datetime.strptime(text or "", "%Y-%m-%d AD at %H:%M:%S UTC")
    except ValueError:
        return None
    return shown.replace(tzinfo=timezone.utc)


def shown_policies(rows: Sequence[Row]) -> list[str]:
    """Return the names of the policies that SHOW POLICIES lists, of every type, sorted.

    Raises:
        CatalogReadError: the answer has another form than the documented one.
    """
    names = []
    for row in rows:
        values = {key.lower().replace(" ", "_"): value for key, value in row.items()}
        if not values.get("policy_name"):
            raise CatalogReadError(f"SHOW POLICIES names no policy: {', '.join(row)}", way_out=_REPORT)
        names.append(str(values["policy_name"]))
    return sorted(names)


_REPORT: Final = "Report it, with what the statement returns."


def _listed_protection(info: PolicyInfo) -> Protection | Unmanaged:
    if info.row_filter is not None:
        using = _arguments(info.row_filter.using or ())
        return using if isinstance(using, Unmanaged) else PolicyFilter(info.row_filter.function_name, using)
    if info.column_mask is not None:
        mask = info.column_mask
        using = _arguments(mask.using or ())
        return (
            using if isinstance(using, Unmanaged) else PolicyMask(mask.function_name, mask.on_column, using)
        )
    return Unmanaged(f"it is a {info.policy_type.value.removeprefix(_SDK_PREFIX)} policy")


def _arguments(listed: Sequence[FunctionArgument]) -> tuple[str, ...] | Unmanaged:
    arguments = [argument.alias if argument.alias is not None else argument.constant for argument in listed]
    if None in arguments:
        return Unmanaged("its function takes an expression that is computed for each query")
    return tuple(map(str, arguments))


def _property(row: Row) -> tuple[str, str]:
    values = [str(value) for value in row.values() if value is not None]
    if len(values) < 2:
        return " ".join(values).strip().lower(), ""
    return values[0].strip().lower(), values[1].strip()


def _needed(properties: Mapping[str, str], name: str) -> str:
    if not properties.get(name):
        shown = ", ".join(sorted(properties))
        raise CatalogReadError(f"DESCRIBE POLICY shows no {name}: it has {shown}", way_out=_REPORT)
    return properties[name]


def _principals(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _matched(text: str) -> Iterator[tuple[str, str]]:
    """Yield alias and condition of `condition AS alias, …`."""
    for part in _split(text):
        condition, word, alias = part.rpartition(" AS ")
        if not word:
            reason = f"DESCRIBE POLICY shows a matched column without an alias: {part.strip()}"
            raise CatalogReadError(reason, way_out=_REPORT)
        yield alias.strip().strip("`"), present_spelling(condition.strip())


def _split(text: str) -> Iterator[str]:
    """Yield the parts of a list between commas that are outside of parentheses and strings."""
    from sqlglot import TokenType, tokenize
    from sqlglot.errors import SqlglotError

    try:
        tokens = tokenize(text, dialect=databricks_dialect())
    except SqlglotError as error:
        raise CatalogReadError(f"DESCRIBE POLICY shows no list: {text}", way_out=_REPORT) from error
    depth, start = 0, 0
    for token in tokens:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if token.token_type is TokenType.COMMA and depth == 0:
            yield text[start : token.start]
            start = token.end + 1
    if text[start:].strip():
        yield text[start:]
