"""What Unity Catalog says of functions: rows of `information_schema`, and listings of databricks-sdk.

The views (docs: "ROUTINES", "PARAMETERS", "ROUTINE_PRIVILEGES") show only routines that the principal may execute or
owns, and no tags. The documentation of ROUTINES names no owner: the listing has it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from delta_engine.backends.sql_runner import Row
from delta_engine.errors import CatalogReadError
from delta_engine.models.functions import FunctionLanguage, Parameter
from delta_engine.models.type_text import parse_data_type
from delta_engine.state.function_states import FunctionState
from delta_engine.state.unity_catalog.information_schema import LAGGING, SystemView, optional_text
from delta_engine.state.unity_catalog.table_states import audit, listed_audit
from delta_engine.state.unmanaged import Unmanaged
from delta_engine.telemetry.visible import has_half_a_character

if TYPE_CHECKING:
    from databricks.sdk.service.catalog import FunctionInfo

_NAME = ("specific_schema", "specific_name")

ROUTINES = SystemView(
    name="routines",
    catalog_column="specific_catalog",
    schema_column="specific_schema",
    needed=(*_NAME, "routine_type"),
)
"""Read with all columns, because workspaces may show more than the documentation has, such as owners."""

PARAMETERS = SystemView(
    name="parameters",
    catalog_column="specific_catalog",
    columns=(*_NAME, "ordinal_position", "parameter_name", "full_data_type", "parameter_default", "comment"),
    schema_column="specific_schema",
    needed=(*_NAME, "ordinal_position", "parameter_name", "full_data_type"),
)

ROUTINE_PRIVILEGES = SystemView(
    name="routine_privileges",
    catalog_column="specific_catalog",
    columns=(*_NAME, "grantee", "privilege_type"),
    schema_column="specific_schema",
    condition="coalesce(inherited_from, 'NONE') = 'NONE'",
    needed=(*_NAME, "grantee", "privilege_type"),
)

OF_FUNCTIONS: Final = (ROUTINES, PARAMETERS, ROUTINE_PRIVILEGES)
"""The views of functions."""

RoutineKey = tuple[str, str]
"""A schema's and a function's name in lower case."""

RoutineAnswer: TypeAlias = FunctionState | Unmanaged | CatalogReadError
"""A function, a routine that the engine does not manage, or why it cannot be read."""

_YES: Final = {"YES": True, "NO": False}


def function_states(routines: Iterable[Row], parameters: Iterable[Row]) -> Mapping[RoutineKey, RoutineAnswer]:
    """Return the functions of a catalog, from the rows of two views.

    Raises:
        CatalogReadError: a row lacks a name or a type, so that any function may lack it.
    """
    of_parameters = by_routine(PARAMETERS, parameters)
    return {
        key: _function_state(rows[0], of_parameters.get(key, ()))
        for key, rows in by_routine(ROUTINES, routines).items()
    }


def listed_function(info: FunctionInfo) -> RoutineAnswer:
    """Return a function of a listing, without grants and tags."""
    external = str(info.external_language or "") if _value(info.routine_body) == "EXTERNAL" else "SQL"
    if other := _other_kind("FUNCTION", _value(info.data_type), external):
        return other
    if info.full_data_type is None:
        return _without_result(str(info.full_name))
    listed = info.input_params.parameters if info.input_params else None
    texts = (text for each in listed or () for text in (each.name, each.parameter_default, each.comment))
    if _has_half((info.routine_definition, info.comment, *texts)):
        return _with_half_a_character(str(info.full_name))
    return FunctionState(
        returns=parse_data_type(info.full_data_type),
        body=info.routine_definition,
        parameters=tuple(
            Parameter(
                parameter.name, parameter.type_text, parameter.parameter_default, parameter.comment or ""
            )
            for parameter in sorted(listed or (), key=lambda parameter: parameter.position)
        ),
        language=FunctionLanguage(external.lower()),
        is_deterministic=info.is_deterministic,
        comment=info.comment or "",
        owner=info.owner,
        shows_tags=False,
        audit=listed_audit(info),
    )


def _function_state(row: Row, parameters: Sequence[Row]) -> RoutineAnswer:
    language = str(row.get("external_language") or "SQL")
    if other := _other_kind(str(row["routine_type"]), optional_text(row.get("data_type")), language):
        return other
    name = f"{row['specific_catalog']}.{row['specific_schema']}.{row['specific_name']}"
    if row.get("full_data_type") is None:
        return _without_result(name)
    if _has_half(value for each in (row, *parameters) for value in each.values()):
        return _with_half_a_character(name)
    return FunctionState(
        returns=parse_data_type(str(row["full_data_type"])),
        body=optional_text(row.get("routine_definition")),
        parameters=tuple(map(_parameter, sorted(parameters, key=_position))),
        language=FunctionLanguage(language.lower()),
        is_deterministic=_YES.get(str(row.get("is_deterministic")).upper()),
        comment=optional_text(row.get("comment")) or "",
        owner=optional_text(row.get("routine_owner")),
        shows_tags=False,
        audit=audit(row),
    )


def _other_kind(routine_type: str, data_type: str | None, language: str) -> Unmanaged | None:
    if routine_type.upper() != "FUNCTION":
        return Unmanaged(f"it is a {routine_type.lower()}")
    if (data_type or "").upper() in ("TABLE", "TABLE_TYPE"):
        return Unmanaged("it is a table function")
    languages = {managed.value for managed in FunctionLanguage}
    return None if language.lower() in languages else Unmanaged(f"it is a function in {language}")


def _parameter(row: Row) -> Parameter:
    return Parameter(
        str(row["parameter_name"]),
        str(row["full_data_type"]),
        optional_text(row["parameter_default"]),
        optional_text(row["comment"]) or "",
    )


def _position(row: Row) -> int:
    return int(str(row["ordinal_position"]))


def by_routine(view: SystemView, rows: Iterable[Row]) -> Mapping[RoutineKey, Sequence[Row]]:
    """Return rows by schema and name; CatalogReadError for NULL in columns that are documented to have values."""
    grouped: dict[RoutineKey, list[Row]] = defaultdict(list)
    for row in rows:
        missing = [column for column in view.needed if row.get(column) is None]
        if missing:
            raise CatalogReadError(
                f"information_schema.{view.name} has a row without {', '.join(missing)}", way_out=LAGGING
            )
        grouped[str(row["specific_schema"]).lower(), str(row["specific_name"]).lower()].append(row)
    return grouped


def _without_result(name: str) -> CatalogReadError:
    reason = "the platform does not show the type of its result"
    return CatalogReadError(reason, securable=f"function {name.lower()}", way_out=LAGGING)


def _has_half(values: Iterable[object]) -> bool:
    """Whether one of the values is a text that no model and no statement can hold."""
    return any(isinstance(value, str) and has_half_a_character(value) for value in values)


def _with_half_a_character(name: str) -> CatalogReadError:
    return CatalogReadError(
        "one of its strings contains an unpaired surrogate, which no statement can contain",
        securable=f"function {name.lower()}",
        way_out="Create the function again without this character.",
    )


def _value(member: object) -> str | None:
    """Return the value of an enum of the SDK; None for no member."""
    return None if member is None else str(getattr(member, "value", member))
