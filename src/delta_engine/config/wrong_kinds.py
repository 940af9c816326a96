"""What is wrong with the kind of a value in a YAML file, in its readers' words instead of the parser's."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MISMATCH = re.compile(r"Expected `(?P<wanted>[^`]+)`(?P<bound> [<>=]+ \S+)?(?:, got `(?P<found>[^`]+)`)?")
_NO_CHOICE = re.compile(r"Invalid enum value (?P<found>.+)")
_MISSING = re.compile(r"Object missing required field `(?P<key>[^`]+)`")

_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "date": "a date",
    "datetime": "a time",
    "float": "a number",
    "int": "a whole number",
    "null": "nothing",
    "object": "a mapping",
    "str": "a text",
}


def wrong_kind(problem: str, choices: Sequence[str] = ()) -> tuple[str, str]:
    """Return what is wrong, and the way out, empty if there is nothing to say.

    Args:
        problem: what msgspec says; what is not known here stays as it is.
        choices: what may stand there, if that is one of a few words.
    """
    no_choice = _NO_CHOICE.fullmatch(problem)
    if no_choice and choices:
        return f"{no_choice['found']} is not one of: {', '.join(choices)}", ""
    missing = _MISSING.fullmatch(problem)
    if missing:
        return f"the key {missing['key']!r} is missing", "Write it."
    mismatch = _MISMATCH.fullmatch(problem)
    if mismatch is None:
        return problem, ""
    kinds = [kind for kind in mismatch["wanted"].split(" | ") if kind != "null"]
    if not {*kinds, mismatch["found"] or "null"} <= _WORDS.keys():
        return problem, ""
    wanted = " or ".join(_WORDS[kind] for kind in kinds) + (mismatch["bound"] or "")
    found = f", not {_WORDS[mismatch['found']]}" if mismatch["found"] else ""
    return f"{wanted} is wanted{found}", _way_out(kinds, mismatch["found"])


def _way_out(wanted: list[str], found: str | None) -> str:
    match wanted, found:
        case _, "null":
            return "Write it, or leave the key out."
        case ["bool"], "str":
            return "Write true or false, without quotes."
        case ["int" | "float"], "str":
            return "Write it without quotes."
        case [*kinds], "bool" | "date" | "datetime" | "float" | "int" if "str" in kinds:
            return "Write it in quotes."
        case ["array"], "object":
            return "Begin each item with a dash."
        case [*kinds], str() if "array" in kinds:
            return "Write [a, b]."
        case [*kinds], str() if "object" in kinds:
            return "Write {key: value}."
    return ""
