"""A reader without a platform."""

from __future__ import annotations

from collections.abc import Sequence

from delta_engine.models import Securable
from delta_engine.state.states import CatalogState


class FixedReader:
    def __init__(self, state: CatalogState) -> None:
        self._state = state

    def snapshot(self, models: Sequence[Securable]) -> CatalogState:
        return self._state

    def snapshot_directly(self, models: Sequence[Securable]) -> CatalogState:
        return self._state
