"""The shape of a Quartz expression, which is not Unix's: seconds first, and one of the two day fields is `?`."""

from __future__ import annotations

import re

_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_RANGES = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (1, 7), (1970, 2099))
_DAY_OF_MONTH, _MONTH, _DAY_OF_WEEK = 3, 4, 5
_SPECIAL = {_DAY_OF_MONTH: re.compile(r"L(-\d+)?|LW|\d+W"), _DAY_OF_WEEK: re.compile(r"L|[1-7]L|[1-7]#[1-5]")}


def is_quartz(expression: str) -> bool:
    """Return whether an expression has six or seven fields with values that such fields can have."""
    fields = expression.upper().split(" ")
    if len(fields) not in (6, 7) or (fields[_DAY_OF_MONTH] == "?") is (fields[_DAY_OF_WEEK] == "?"):
        return False
    return all(
        (part == "?" and position in _SPECIAL) or _is_part(part, position)
        for position, field in enumerate(fields)
        for part in field.split(",")
    )


def _is_part(part: str, position: int) -> bool:
    if position in _SPECIAL and _SPECIAL[position].fullmatch(part):
        return True
    base, slash, step = part.partition("/")
    if slash and not step.isdecimal():
        return False
    return base == "*" or all(_is_value(value, position) for value in base.split("-", 1))


def _is_value(value: str, position: int) -> bool:
    names = {_MONTH: _MONTHS, _DAY_OF_WEEK: _DAYS}.get(position, [])
    lowest, highest = _RANGES[position]
    return value in names or (value.isdecimal() and lowest <= int(value) <= highest)
