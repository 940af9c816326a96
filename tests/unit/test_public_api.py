"""The public names of the package, and the data of the public errors."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import delta_engine
from delta_engine import DeltaEngineError
from delta_engine.deployment.stored import LockHolder
from delta_engine.errors import SourceLocation
from delta_engine.plan_files.staleness import Move

REFUSED: dict[str, Any] = {
    "reason": "no",
    "securable": "schema dev.silver",
    "table": "dev.silver.orders",
    "column": "id",
    "location": SourceLocation("models.yml", 7),
    "way_out": "Correct it.",
}
HOLDER = LockHolder(
    who="ana", host="build-7", pid=7, since=datetime(2026, 3, 1, tzinfo=timezone.utc), operation="sync"
)
STALE = delta_engine.StaleStateError("the document", "it is gone")

ERRORS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        (
            "CatalogReadError",
            "ConfigError",
            "DriftRefusal",
            "InvalidModelError",
            "RefusedError",
            "UnsafePlanError",
        ),
        REFUSED,
    ),
    "ApplyFailedError": {"outcomes": ()},
    "ApplyStoppedError": {"outcomes": ()},
    "LockHeld": {"where": "the lock", "holder": HOLDER},
    "MissingDependencyError": {"reason": "no Java", "way_out": "Install it."},
    "RefusalGroup": {"refusals": (delta_engine.ConfigError("no"), delta_engine.ConfigError("neither"))},
    "StalePlanError": {
        "moves": (Move("dev.silver.orders", "table dev.silver.orders was changed"),),
        "where": "plan.json",
        "way_out": "Plan again.",
        "note": "an apply did not get through",
    },
    "StaleStateError": {"where": "the document", "reason": "it is gone"},
    "StateMismatchError": {"reason": "another environment", "where": "the document", "way_out": "Name it."},
    "StatementError": {
        "message": "[NO] no",
        "sql": "SELECT 1",
        "error_class": "NO",
        "sql_state": "42000",
        "exceptions": ("java.lang.Exception",),
        "is_outcome_unknown": True,
    },
    "UnrecordedApplyError": {"outcomes": (), "reason": STALE, "failure": None},
}
"""The arguments of every public error; all of them are to be its attributes."""


def public_errors() -> dict[str, type[DeltaEngineError]]:
    public = {name: getattr(delta_engine, name) for name in delta_engine.__all__}
    return {
        name: kind
        for name, kind in public.items()
        if isinstance(kind, type) and issubclass(kind, DeltaEngineError)
    }


def test_every_public_error_is_looked_at() -> None:
    assert {*ERRORS} == {*public_errors()} - {"DeltaEngineError"}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_carries_its_fields(name: str) -> None:
    kind: Callable[..., DeltaEngineError] = public_errors()[name]
    taken = {
        parameter
        for parameter in inspect.signature(kind).parameters
        if parameter not in ("self", "args", "kwargs")
    }
    assert taken == {*ERRORS[name]}
    error = kind(**ERRORS[name])
    fields = {field: getattr(error, field) for field in ERRORS[name]}
    if name == "StalePlanError":  # its reason has the changes as well
        assert fields["note"] in error.reason  # type: ignore[attr-defined]  # a StalePlanError has a reason
    assert fields == ERRORS[name]
    assert str(error)
    assert error.__doc__


def test_the_names_of_the_package_are_the_public_ones() -> None:
    assert dir(delta_engine) == sorted([*delta_engine.__all__, "__version__"])
    declared = {name for names in delta_engine._NAMES.values() for name in names}
    assert declared == {*delta_engine.__all__}


def test_checkers_of_types_see_every_public_name() -> None:
    tree = ast.parse(Path(delta_engine.__file__).read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert {alias.name for node in imports for alias in node.names} == {*delta_engine.__all__}


def test_the_import_and_its_names_need_no_library() -> None:
    code = (
        "import delta_engine, sys; dir(delta_engine); "
        "print([m for m in ('pyspark', 'msgspec', 'jinja2', 'yaml', 'typer') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
