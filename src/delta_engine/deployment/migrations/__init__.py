"""Migrations: one step from each format to the next, on raw documents.

A step works on its own frozen idea of the old shape, never on the live classes: those move on. Same
input, same output: reading a document twice must give one identity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from delta_engine.deployment.migrations.v0_to_v1 import migrate_v0_to_v1

RawDocument: TypeAlias = dict[str, Any]

STEPS: Mapping[int, Callable[[RawDocument, str], RawDocument]] = {0: migrate_v0_to_v1}
"""The step that leaves each version; it takes the document and the environment's name."""


def migrate(document: RawDocument, version: int, *, to: int, environment: str) -> RawDocument:
    """Return a document in a newer format.

    Args:
        document: parsed JSON; not changed.
        version: its format.
        to: the format wanted.
        environment: the environment it was read for; early formats do not say.

    Raises:
        msgspec.ValidationError: it is not of the format that it claims.
    """
    for step in range(version, to):
        document = STEPS[step](document, environment) | {"version": step + 1}
    return document
