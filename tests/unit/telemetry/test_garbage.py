"""The collector is off within, and afterwards as it was, whatever happened."""

import gc
from collections.abc import Iterator

import pytest

from delta_engine.telemetry.garbage import no_garbage_collection


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    yield
    gc.enable()


@no_garbage_collection()
def is_collecting() -> bool:
    return gc.isenabled()


@pytest.mark.parametrize("was_on", [True, False])
def test_it_is_off_within_and_as_it_was_afterwards(was_on: bool) -> None:
    if not was_on:
        gc.disable()
    assert [is_collecting(), is_collecting()] == [False, False]
    assert gc.isenabled() == was_on


def test_it_is_on_again_after_an_error() -> None:
    with pytest.raises(RuntimeError), no_garbage_collection():
        raise RuntimeError
    assert gc.isenabled()


def test_what_is_within_another_one_does_not_end_it() -> None:
    with no_garbage_collection():
        assert not is_collecting()
        assert not gc.isenabled()
    assert gc.isenabled()
