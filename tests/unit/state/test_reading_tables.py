"""Tables that are read at the same time."""

from __future__ import annotations

import pytest

from delta_engine.backends.cancellation import current_stop
from delta_engine.models import QualifiedName
from delta_engine.state.catalog_reader import read_tables
from delta_engine.state.states import ABSENT, TableState

TABLES = [QualifiedName("dev", "silver", f"table_{number}") for number in range(300)]


def test_an_interrupt_gives_up_what_is_under_way_and_leaves_the_rest_unread() -> None:
    given_up = []

    def interrupted(table: QualifiedName) -> TableState:
        if table == TABLES[0]:
            raise KeyboardInterrupt
        stop = current_stop()
        stop.wait(10)
        given_up.append(stop.is_requested())
        return ABSENT

    with pytest.raises(KeyboardInterrupt):
        read_tables(TABLES, interrupted, parallelism=2)
    assert all(given_up)
    assert len(given_up) < 100
