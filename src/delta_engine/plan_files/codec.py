"""Encodes and decodes plan files; refuses files by format, version, checksum and shape."""

from __future__ import annotations

import json
import re
import reprlib
import shlex
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from delta_engine.models import QualifiedName
from delta_engine.models.open_struct import checksum_of
from delta_engine.plan_files.document import (
    NO_OPTIONS,
    VERSION,
    Options,
    PlanFile,
    PlanFileError,
    reviewed_changes,
)
from delta_engine.telemetry.context import command
from delta_engine.validation.rules import FORBIDDEN_IN_NAMES

_CHECKSUM = "checksum"
_MARK = "urn:delta-engine:plan-file:"
_HEAD = 200  # bytes that contain the mark of a plan file
_Refusal: TypeAlias = "partial[PlanFileError]"
"""Makes the refusal of a file with its path and the usual way out."""

_ENGINE_VERSION = re.compile(r"[\w.+!-]{1,50}", re.ASCII)


def encode_plan_file(file: PlanFile) -> bytes:
    """Return a plan file as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(file), indent=2) + b"\n"


def sealed(file: PlanFile) -> PlanFile:
    """Return a plan file with the checksum of its content."""
    return file.with_values(checksum=_checksum(msgspec.to_builtins(file)))


def read_plan_file(path: Path, *, environment: str, engine_version: str) -> PlanFile:
    """Read a plan file that this engine may apply to an environment; raise `PlanFileError` for others."""
    refusal = partial(PlanFileError, where=str(path), way_out=plan_again(environment, str(path)))
    try:
        data = path.read_bytes()
    except OSError as error:
        raise refusal(f"the plan file cannot be read: {error.strerror}") from None
    file = _decoded(data, engine_version, refusal)
    if file.environment != environment:
        theirs = command(shlex.join(["apply", str(path)]), file.environment)
        raise refusal(
            f"the plan is for the environment {file.environment!r}, not for {environment!r}",
            way_out=f"Apply it with {theirs}, or make a plan for {environment}.",
        )
    return file


def is_replaceable(path: Path) -> bool:
    """Whether a path is free for a plan file: missing, empty, or a plan file; a folder raises `OSError`."""
    if not path.exists():
        return True
    if not (path.is_file() or path.is_dir()):  # a device or a pipe, which the file would replace
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return not head.strip() or _MARK.encode() in head


def plan_again(environment: str, where: str, options: Options = NO_OPTIONS) -> str:
    """Return the command that writes a plan file again, the user's remedy for an unusable one."""
    repeatable = (("-t", options.tables), ("--allow", options.allow))
    given = [part for option, values in repeatable for value in values for part in (option, value)]
    given += [] if options.counts_checks else ["--no-preflight"]
    given += ["--skip-refused"] if options.skips_refused else []
    given += ["--changed-since", options.changed.since] if options.changed else []
    verb = ["undo", options.undoes] if options.undoes else ["plan"]
    again = command(shlex.join([*verb, *given, "--out", where]), environment)
    return f"Write it again and review it: {again}."


def _another() -> str:
    return f"Name a file that {command('plan --out FILE')} wrote."


def _decoded(data: bytes, engine_version: str, refusal: _Refusal) -> PlanFile:
    raw = _object(data, refusal)
    _require_version(raw, refusal)
    _require_engine(raw, engine_version, refusal)
    if not _has_its_checksum(raw):
        raise refusal("the plan file was edited or damaged: it does not match its checksum")
    try:
        file = msgspec.convert(raw, PlanFile)
        reviewed_changes(file.plan)
        for text in file.options.changed.removed if file.options.changed else ():
            name = QualifiedName.of_key(text.lower())  # tables are read by these names
            if any(map(FORBIDDEN_IN_NAMES.search, (name.catalog, name.schema, name.table))):
                raise ValueError(f"{text!r} is not the name of a table")
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise refusal(f"it is not a valid plan file: {error}") from None
    return file


def _object(data: bytes, refusal: _Refusal) -> dict[str, Any]:
    if not data.strip():
        raise refusal("the file is empty")
    try:
        raw = msgspec.json.decode(data)
        repeated = _repeated_key(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        refused = refusal if _MARK.encode() in data[:_HEAD] else partial(refusal, way_out=_another())
        raise refused(f"it is not complete JSON: {error}") from None
    if not isinstance(raw, dict):
        raise refusal("it is JSON, but not a plan file", way_out=_another())
    if repeated is not None:
        twice = reprlib.repr(repeated)
        raise refusal(f"the plan file was edited or damaged: it has {twice} twice in one place")
    return raw


def _repeated_key(data: bytes) -> str | None:
    """Return a duplicate key of a JSON object: reviewers may read the value that is not used."""
    repeated: list[str] = []

    def collect(pairs: list[tuple[str, object]]) -> None:
        repeated.extend(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)

    json.loads(data, object_pairs_hook=collect, parse_int=str)  # an integer may exceed Python's length limit
    return next(iter(repeated), None)


def _require_version(raw: dict[str, Any], refusal: _Refusal) -> None:
    schema = raw.get("$schema")
    if not isinstance(schema, str) or not schema.startswith(_MARK):
        raise refusal("it is JSON, but not a plan file", way_out=_another())
    version = raw.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise refusal(f"its version is {reprlib.repr(version)}")
    if version > VERSION:
        raise refusal(
            f"it has format {version} of a newer engine, but this engine reads format {VERSION}",
            way_out="Upgrade delta-engine.",
        )
    if version < VERSION:
        raise refusal(
            f"it has format {version} of an older engine, but this engine applies only format {VERSION}"
        )


def _require_engine(raw: dict[str, Any], ours: str, refusal: _Refusal) -> None:
    """Refuse the plan of another engine version: its statements may differ."""
    theirs = raw.get("engine_version")
    if theirs == ours:
        return
    if not isinstance(theirs, str) or not _ENGINE_VERSION.fullmatch(theirs):
        raise refusal(f"its engine_version is {reprlib.repr(theirs)}")
    which = "a newer" if _numbers(theirs) > _numbers(ours) else "another"
    raise refusal(
        f"{which} engine made it: delta-engine {theirs}, but this is {ours}",
        way_out=f"Install delta-engine {theirs}, or plan again with this engine. {refusal.keywords['way_out']}",
    )


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d{1,9}", version)[:3]]


def _has_its_checksum(raw: dict[str, Any]) -> bool:
    try:
        return bool(raw.get(_CHECKSUM) == _checksum(raw))
    except RecursionError:  # too deep for a plan file
        return False


def _checksum(raw: dict[str, Any]) -> str:
    """Return the checksum of a document's content, independent of its layout."""
    content = {key: value for key, value in raw.items() if key != _CHECKSUM}
    return checksum_of(msgspec.json.encode(content, order="sorted"))
