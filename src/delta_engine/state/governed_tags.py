"""Reads the keys of governed tags, which conditions of policies name. Only databricks-sdk lists them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from delta_engine.telemetry.logs import log


class GovernedTag(Protocol):
    """The used part of the SDK's `TagPolicy`."""

    tag_key: str


class TagPolicyListing(Protocol):
    """The used part of the SDK's `WorkspaceClient.tag_policies`."""

    def list_tag_policies(self) -> Iterable[GovernedTag]:
        """Return the governed tags of the account."""
        ...


class TagListing(Protocol):
    """The used part of the SDK's `WorkspaceClient`."""

    @property
    def tag_policies(self) -> TagPolicyListing:
        """Lists governed tags."""


@dataclass(frozen=True, slots=True)
class GovernedTagReader:
    """Reads governed tags; without a listing, none are known."""

    listing: TagListing | None = None

    def read(self) -> frozenset[str] | None:
        """Return their keys; None if they cannot be listed, or if the list is empty and may hide them."""
        try:
            listed = self.listing.tag_policies.list_tag_policies() if self.listing else ()
            return frozenset(str(tag.tag_key) for tag in listed) or None
        except Exception as error:  # noqa: BLE001 - a check that cannot be made refuses nothing
            log(logging.WARNING, "governed tags not listed", error=f"{type(error).__name__}: {error}")
            return None


NO_GOVERNED_TAGS = GovernedTagReader()
