"""Tables that are read at the same time."""

from __future__ import annotations

import threading

import pytest

from delta_engine.state.catalog_reader import read_tables
from delta_engine.state.states import ABSENT, TableState


def test_an_interrupt_leaves_the_rest_unread() -> None:
    read, moment = [], threading.Event()

    def interrupted(item: int) -> tuple[str, TableState]:
        if item == 0:
            raise KeyboardInterrupt
        moment.wait(0.01)  # what a statement takes
        read.append(item)
        return str(item), ABSENT

    with pytest.raises(KeyboardInterrupt):
        read_tables(range(300), interrupted, parallelism=2)
    assert len(read) < 100
