"""The page of questions: short answers, each with a place to read on, and errors lead to it."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.cases.documentation import DOCS

MOST_WORDS: Final = 60
FEWEST: Final = 20

_SECTION = re.compile(r"^### (.+)\n\n((?:(?!#).*\n?)*)", re.MULTILINE)
ANSWERS = dict(_SECTION.findall((DOCS / "faq.md").read_text("utf-8")))


@pytest.mark.parametrize("question", ANSWERS)
def test_an_answer_is_short(question: str) -> None:
    assert question.endswith(("?", "`?"))
    assert 5 < len(ANSWERS[question].split()) <= MOST_WORDS


def test_there_are_answers_for_errors() -> None:
    assert len(ANSWERS) >= FEWEST
    linked = re.findall(r"\(faq\.md#([^)]+)\)", (DOCS / "troubleshooting.md").read_text("utf-8"))
    assert len(set(linked)) > 5
