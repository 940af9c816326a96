"""Several refusals at once, as callers of the Python API catch them."""

from __future__ import annotations

import copy
import pickle

import pytest

from delta_engine import (
    CatalogReadError,
    ConfigError,
    RefusalGroup,
    RefusedError,
    UnsafePlanError,
)
from delta_engine.deployment.errors import CorruptStateError, StateMismatchError
from delta_engine.errors import NotADeltaTableError, SourceLocation, raise_all


def unsafe(column: str, table: str = "dev.s.t") -> UnsafePlanError:
    return UnsafePlanError(
        f"{column} loses values", table=table, column=column, location=SourceLocation("m.yml", 3)
    )


def test_several_refusals_of_one_kind_are_caught_as_that_kind() -> None:
    refusals = (unsafe("a"), unsafe("b"))
    with pytest.raises(UnsafePlanError) as caught:
        raise_all(refusals)
    assert isinstance(caught.value, RefusalGroup)
    assert caught.value.refusals == refusals
    assert (caught.value.table, caught.value.column) == ("dev.s.t", None)
    assert caught.value.location == SourceLocation("m.yml", 3)
    assert caught.value.topic == UnsafePlanError.topic
    assert str(caught.value) == f"{refusals[0]}\n{refusals[1]}"


@pytest.mark.parametrize(
    ("refusals", "kind", "other"),
    [
        ((CatalogReadError("a"), NotADeltaTableError("b")), CatalogReadError, NotADeltaTableError),
        ((NotADeltaTableError("b"), CatalogReadError("a")), CatalogReadError, NotADeltaTableError),
        ((UnsafePlanError("a"), ConfigError("b")), RefusedError, UnsafePlanError),
        ((CorruptStateError("a"), CorruptStateError("b")), CorruptStateError, StateMismatchError),
    ],
)
def test_a_group_is_of_the_nearest_kind_of_all(
    refusals: tuple[RefusedError, ...], kind: type[RefusedError], other: type[RefusedError]
) -> None:
    group = RefusalGroup(refusals)
    assert isinstance(group, kind)
    assert not isinstance(group, other)


def test_a_single_refusal_is_raised_as_itself_and_lists_itself() -> None:
    refusal = unsafe("a")
    with pytest.raises(UnsafePlanError) as caught:
        raise_all([refusal])
    assert caught.value is refusal
    assert caught.value.refusals == (refusal,)


def test_a_group_in_a_group_gives_its_refusals() -> None:
    first, second, third = unsafe("a"), unsafe("b"), ConfigError("c")
    group = RefusalGroup([RefusalGroup([first, second]), third])
    assert group.refusals == (first, second, third)
    assert not isinstance(group, UnsafePlanError)


def test_a_group_survives_copies_and_pickles() -> None:
    group = RefusalGroup([UnsafePlanError("a"), UnsafePlanError("b")])
    for again in (copy.copy(group), pickle.loads(pickle.dumps(group))):
        assert isinstance(again, UnsafePlanError)
        assert str(again) == str(group)
        assert len(again.refusals) == 2
