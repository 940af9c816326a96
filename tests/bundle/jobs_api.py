"""Compares resources with databricks-sdk's typed classes for the APIs that make them, the Jobs API above all.

What the classes read and write back must be what was there: that finds unknown and misspelt fields, and
values outside an enum. They pass scalars through unseen, so the kinds come from their annotations.
"""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from types import NoneType
from typing import Any, Union, get_args, get_origin, get_type_hints

from databricks.sdk.service.catalog import PrivilegeAssignment, VolumesAPI
from databricks.sdk.service.dashboards import Dashboard, LakeviewAPI
from databricks.sdk.service.jobs import JobSettings


def field_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield every field that the Jobs API would not understand as it is meant."""
    yield from _kinds("", settings, JobSettings)
    try:
        understood = JobSettings.from_dict(dict(settings)).as_dict()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        yield f"the Jobs API does not understand it: {error}"
        return
    yield from _differences("", settings, understood)


def volume_problems(volume: Mapping[str, Any]) -> Iterator[str]:
    """Yield every field that the APIs which create volumes and grant on them would not understand.

    The arguments of the first are the fields of a volume.
    """
    hints = {**get_type_hints(VolumesAPI.create), "grants": list[PrivilegeAssignment]}
    for key, value in volume.items():
        if key not in hints:
            yield f"{key} is no field of a volume"
        else:
            yield from _kinds(f"{key}.", value, hints[key])
    for position, grant in enumerate(volume.get("grants", ())):
        understood = PrivilegeAssignment.from_dict(grant).as_dict()
        yield from _differences(f"grants.{position}.", grant, understood)
    for key in ("catalog_name", "schema_name", "name", "volume_type"):
        if key not in volume:
            yield f"{key} is missing"


def dashboard_problems(dashboard: Mapping[str, Any]) -> Iterator[str]:
    """Yield every field that the APIs which create and publish dashboards would not understand."""
    hints = {
        **get_type_hints(LakeviewAPI.publish),
        **get_type_hints(LakeviewAPI.create),
        **get_type_hints(Dashboard),
    }
    for key, value in dashboard.items():
        if key not in hints:
            yield f"{key} is no field of a dashboard"
        else:
            yield from _kinds(f"{key}.", value, hints[key])
    for key in ("display_name", "warehouse_id", "dataset_catalog", "dataset_schema"):
        if not dashboard.get(key):
            yield f"{key} is missing"


def _kinds(place: str, given: Any, hint: Any) -> Iterator[str]:
    """Yield values that are not of the annotated kind, down to the scalars."""
    if get_origin(hint) is Union:
        (hint,) = (member for member in get_args(hint) if member is not NoneType)
    origin = get_origin(hint) or hint
    expected: Any = dict if is_dataclass(origin) else str if issubclass(origin, Enum) else origin
    if type(given) is not expected:
        yield f"{place.rstrip('.')} is {given!r}, not {expected.__name__}"
    elif issubclass(origin, Enum):
        if given not in {member.value for member in origin}:
            yield f"{place.rstrip('.')} is {given!r}, not a {origin.__name__}"
    elif origin is list:
        for position, item in enumerate(given):
            yield from _kinds(f"{place}{position}.", item, get_args(hint)[0])
    elif origin is dict:
        for key, item in given.items():
            yield from _kinds(f"{place}{key}.", item, get_args(hint)[1])
    elif is_dataclass(origin):
        fields = get_type_hints(origin)
        for key in given.keys() & fields.keys():
            yield from _kinds(f"{place}{key}.", given[key], fields[key])


def _differences(place: str, given: Any, understood: Any) -> Iterator[str]:
    match given, understood:
        case dict(), dict():
            for key, value in given.items():
                if key not in understood and value == []:
                    continue  # the classes leave out an empty list, which is the API's default
                if key not in understood:
                    yield f"{place}{key} does not survive the API"
                else:
                    yield from _differences(f"{place}{key}.", value, understood[key])
        case list(), list() if len(given) == len(understood):
            for position, (item, other) in enumerate(zip(given, understood, strict=True)):
                yield from _differences(f"{place}{position}.", item, other)
        case _ if given != understood:
            yield f"{place.rstrip('.')} is {given!r}, understood as {understood!r}"
