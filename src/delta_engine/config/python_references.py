"""Loads Python objects that a configuration names as `module:attribute`: models, rules."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from delta_engine.errors import ConfigError, RefusalGroup, RefusedError, SourceLocation

Result = TypeVar("Result")

_ENGINE = str(Path(__file__).parents[1])


def load_reference(
    reference: str,
    use: Callable[[object], Result],
    *,
    what: str,
    project_dir: Path,
    named_at: SourceLocation,
) -> Result:
    """Import an object, with the project folder importable, and return what `use` makes of it.

    Args:
        use: may run the user's code, which may fail.
        what: the kind of object, for messages: `models`.

    Raises:
        ConfigError: the import or the use failed.
        RefusedError, RefusalGroup: `use` refused something.
    """
    module_name, _, attribute = reference.partition(":")
    if not module_name or not attribute:
        raise ConfigError(f"{reference!r} is not of the form module:attribute", location=named_at)
    project = str(project_dir)
    if project not in sys.path:
        sys.path.insert(0, project)
    try:
        return use(getattr(importlib.import_module(module_name), attribute))
    except (RefusedError, RefusalGroup):
        raise
    except Exception as error:
        raise ConfigError(
            f"loading the {what} {reference!r} failed: {type(error).__name__}: {error}",
            location=_origin(error) or named_at,
        ) from error


def _origin(error: Exception) -> SourceLocation | None:
    """Return the line of the user's code that failed."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_ENGINE) and "importlib" not in frame.filename
    ]
    return SourceLocation(frames[-1].filename, frames[-1].lineno) if frames else None
