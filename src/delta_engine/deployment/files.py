"""The ports of files next to the documents: versions, journals and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from delta_engine.deployment.stored import StoredFile


class Files(Protocol):
    """A folder of files, or of objects with a common prefix. Names are relative, with `/` between folders.

    Every method raises `StoreError` if the store refuses, and `UncertainWriteError` if a write got no answer.
    """

    def location(self, name: str) -> str:
        """Return a file's place for messages, without credentials."""

    def read(self, name: str) -> bytes | None:
        """Return a file's bytes; None if it does not exist."""

    def write(self, name: str, data: bytes) -> str:
        """Write or replace a file; return its place."""

    def create(self, name: str, data: bytes) -> None:
        """Write a file unless it exists."""

    def list(self, folder: str) -> Sequence[StoredFile]:
        """Return all files below a folder; empty if the folder does not exist."""

    def delete(self, name: str) -> None:
        """Delete a file; a missing file is not an error."""


class JournalFiles(Files, Protocol):
    """Files whose folders can be deleted as a whole."""

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with all its files; a missing folder is not an error."""


class ReportFiles(Protocol):
    """Keeps the latest report of each kind next to the documents."""

    def write(self, name: str, data: bytes) -> str:
        """Write or replace a report such as `prod.drift.html`; return its place."""
