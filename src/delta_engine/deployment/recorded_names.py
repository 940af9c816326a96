"""The names in a deployment state, for shell completion. Decodes nothing else, and migrates nothing."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class _ChangeRun(msgspec.Struct):
    run: str


class _NamedMetadata(msgspec.Struct):
    change: _ChangeRun | None = None


class _NamedResource(msgspec.Struct):
    id: str
    metadata: _NamedMetadata


class RecordedNames(msgspec.Struct):
    """The part of a document that has names. Other keys are ignored.

    Args:
        resources: by key, such as `table.dev.silver.orders`.
        governance: the other kinds by key.
    """

    resources: dict[str, _NamedResource]
    governance: dict[str, _NamedResource] = {}

    def __post_init__(self) -> None:
        self.resources |= self.governance

    def names(self) -> Iterator[str]:
        """Yield the names of tables and the keys of everything else, which commands take."""
        for key, resource in self.resources.items():
            yield resource.id if key.startswith("table.") else key

    def runs(self) -> Iterator[str]:
        """Yield the ids of the runs that last changed a resource."""
        for resource in self.resources.values():
            if resource.metadata.change is not None:
                yield resource.metadata.change.run


def recorded_names(data: bytes) -> RecordedNames:
    """Return the names in a document; raise `msgspec.MsgspecError` for other content."""
    return msgspec.json.decode(data, type=RecordedNames)
