"""What platforms mean by a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_engine import error_conditions
from delta_engine.error_conditions import Transience, is_conflict, transience
from delta_engine.errors import StatementError
from delta_engine.execute.retries import PATIENCE_SECONDS


def refusal(condition: str | None) -> StatementError:
    return StatementError("DELTA_METADATA_CHANGED, says the message", sql="ALTER", error_class=condition)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("DELTA_METADATA_CHANGED", Transience.CONFLICT),
        ("DELTA_PROTOCOL_CHANGED.CONFLICTING_COMMIT", Transience.CONFLICT),
        ("DELTA_CONCURRENT_APPEND.WHOLE_TABLE_READ", Transience.CONFLICT),
        ("DELTA_CONCURRENT_WRITE", Transience.CONFLICT),
        ("DELTA_MAX_COMMIT_RETRIES_EXCEEDED", Transience.CONFLICT),
        ("RESOURCE_EXHAUSTED", Transience.THROTTLED),
        ("TEMPORARILY_UNAVAILABLE", Transience.UNAVAILABLE),
        ("SERVICE_UNDER_MAINTENANCE", Transience.UNAVAILABLE),
        ("TABLE_OR_VIEW_ALREADY_EXISTS", None),
        ("DELTA_POST_COMMIT_HOOK_FAILED", None),  # it is committed
        ("DEADLINE_EXCEEDED", None),  # nobody knows whether it is
        ("INTERNAL_ERROR", None),
        (None, None),
    ],
)
def test_what_may_pass_in_a_while_is_known_by_its_condition(
    condition: str | None, expected: Transience | None
) -> None:
    assert transience(refusal(condition)) is expected


def test_a_table_is_looked_at_where_a_statement_may_be_done_or_not_needed_any_more() -> None:
    assert [one for one in Transience if one.needs_look] == [Transience.UNAVAILABLE, Transience.CONFLICT]


def test_a_race_to_create_is_a_conflict_and_not_transient() -> None:
    assert is_conflict(refusal("DELTA_TABLE_ALREADY_EXISTS"))
    assert is_conflict(refusal("DELTA_METADATA_CHANGED"))
    assert not is_conflict(refusal(None))


def test_the_documentation_names_what_is_tried_again_and_for_how_long() -> None:
    page = (Path(__file__).parents[2] / "docs" / "running.md").read_text("utf-8")
    conditions = (
        *error_conditions._COMMIT_CONFLICTS,
        *error_conditions._THROTTLED,
        *error_conditions._UNAVAILABLE,
    )
    assert [condition for condition in conditions if f"`{condition}" not in page] == []
    for seconds in PATIENCE_SECONDS.values():
        assert f"{seconds / 60:.0f} minutes" in page
