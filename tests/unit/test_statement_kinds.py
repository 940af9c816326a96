"""docs/statements.md lists what checks each kind of statement, and is up to date."""

from __future__ import annotations

import pytest

from tests.cases.statement_kinds import (
    PAGE,
    emitted_statements,
    spark_answers,
    statements_by_kind,
    with_kinds,
)


def test_the_page_has_every_kind_that_is_emitted(request: pytest.FixtureRequest) -> None:
    said = PAGE.read_text("utf-8")
    answers = spark_answers(said)
    if request.config.getoption("--rewrite-golden"):
        answers = {kind: answers.get(kind, "no") for kind in statements_by_kind(emitted_statements())}
        PAGE.write_text(with_kinds(said, answers), "utf-8")
        return
    assert answers.keys() == statements_by_kind(emitted_statements()).keys(), "rewrite docs/statements.md"
    assert said == with_kinds(said, answers), "rewrite docs/statements.md"
