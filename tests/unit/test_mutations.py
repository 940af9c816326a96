"""The mutants of `benchmarks/mutants.py`: each compiles, and a number draws the same ones again."""

from __future__ import annotations

import ast
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.mutant_copies import PACKAGE, PROJECT
from benchmarks.mutants import DECIDING, drawn
from benchmarks.mutations import mutations, places_of_lines

SOURCE = '''
"""A module."""

LIMIT = 3


class Rule:
    """A rule."""

    def holds(self, name: str, tags: dict[str, str]) -> bool:
        """Say something."""
        if not name and self.count(name, tags) > LIMIT:
            raise ValueError("a message")
        self.seen += 1
        return name in tags
'''

EXPECTED = [
    "rule.py module: 3 → 4",
    "rule.py Rule.holds: not name and self.count(name, tags) > LIMIT → (not name or self.count(name, tags) > LIMIT)",
    "rule.py Rule.holds: not name and self.count(name, tags) > LIMIT → (self.count(name, tags) > LIMIT)",
    "rule.py Rule.holds: not name and self.count(name, tags) > LIMIT → (not name)",
    "rule.py Rule.holds: not name and self.count(name, tags) > LIMIT"
    " → (not (not name and self.count(name, tags) > LIMIT))",
    "rule.py Rule.holds: not name → (name)",
    "rule.py Rule.holds: self.count(name, tags) > LIMIT → (self.count(name, tags) >= LIMIT)",
    "rule.py Rule.holds: self.count(name, tags) → self.count(tags, name)",
    'rule.py Rule.holds: raise ValueError("a message") → pass',
    "rule.py Rule.holds: self.seen += 1 → pass",
    "rule.py Rule.holds: 1 → 2",
    "rule.py Rule.holds: name in tags → (not (name in tags))",
    "rule.py Rule.holds: name in tags → (name not in tags)",
]


def test_operators_conditions_constants_statements_and_arguments_change() -> None:
    assert sorted(mutation.key for mutation in mutations("rule.py", SOURCE.encode())) == sorted(EXPECTED)


@pytest.mark.parametrize("module", ["sql/text.py", "plan_files/staleness.py"])
def test_every_change_compiles_and_is_one(module: str) -> None:
    source = (PROJECT / PACKAGE / module).read_bytes()
    original = ast.dump(ast.parse(source))
    changes = mutations(module, source)
    for mutation in changes:
        tree = ast.parse(mutation.applied_to(source))
        assert ast.dump(tree) != original, mutation.key
        compile(tree, module, "exec")
    assert len({mutation.key for mutation in changes}) == len(changes) > 10


def test_changes_name_the_places_of_their_statements() -> None:
    places = places_of_lines(SOURCE.encode())
    for mutation in mutations("rule.py", SOURCE.encode()):
        assert mutation.lines == () if mutation.where == "" else places[mutation.line] in mutation.lines


def test_a_number_draws_the_same_mutants(tmp_path: Path) -> None:
    package = tmp_path / "package"
    for module in (
        "drift/synchronizing.py",
        "deployment/recorder.py",
        "sql/text.py",
        "models/views.py",
        "cli/app.py",
    ):
        (package / module).parent.mkdir(parents=True, exist_ok=True)
        (package / module).write_bytes((PROJECT / PACKAGE / module).read_bytes())
    mutants = list(islice(drawn(package, 1), 60))
    assert mutants == list(islice(drawn(package, 1), 60))
    assert mutants != list(islice(drawn(package, 2), 60))
    assert sum(mutant.path.startswith(DECIDING) for mutant in mutants) == 40
    assert {mutant.room for mutant in mutants} == {"drift", "deployment", "sql", "models"}
