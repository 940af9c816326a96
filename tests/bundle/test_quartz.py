"""Quartz expressions: which ones Databricks takes as a schedule."""

import pytest

from tests.bundle.schedules import is_quartz

QUARTZ = (
    "0 0 6 * * ?",
    "0 0/15 8-18 ? * MON-FRI",
    "0 0 6 L * ?",
    "30 5 4 1,15 JAN,JUL ? 2030",
    "0 0 6 ? * 6#3",
)
OTHERS = (
    *("", "0 6 * * ?", "0 0 6 * * *", "0 0 6 ? * ?", "0 60 6 * * ?", "0 0 24 * * ?", "0 0 6 * * ?  "),
    *("? 0 6 * * ?", "0 0/x 6 * * ?", "0 0 6 ? * MOO", "0 0 6 * * ? 1066"),
)


@pytest.mark.parametrize("expression", [*QUARTZ, *OTHERS])
def test_quartz_expressions(expression: str) -> None:
    assert is_quartz(expression) is (expression in QUARTZ)
