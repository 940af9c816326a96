"""What must hold for the package as a whole."""

import ast
import dataclasses
import subprocess
import sys
from collections.abc import Set
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import delta_engine
from delta_engine.aspects import SCHEMA_ASPECTS, TABLE_ASPECTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "module",
    [
        "delta_engine",
        "delta_engine.cli.app",
        "delta_engine.job",
        "delta_engine.cli.commands",
        "delta_engine.cli.doctor_commands",
    ],
)
def test_importing_imports_nothing_heavy(module: str) -> None:
    heavy = ("pyspark", "delta", "sqlglot", "packaging")
    code = f"import {module}, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_public_names_exist() -> None:
    assert [name for name in delta_engine.__all__ if not hasattr(delta_engine, name)] == []
    assert not hasattr(delta_engine, "nope")


def test_actions_are_frozen_and_slotted() -> None:
    for aspect in (*TABLE_ASPECTS, *SCHEMA_ASPECTS):
        for action in aspect.actions:
            assert dataclasses.is_dataclass(action)
            assert action.__dataclass_params__.frozen  # type: ignore[attr-defined]  # dataclass() sets it
            assert hasattr(action, "__slots__")


def test_no_two_aspects_share_an_action_or_a_name() -> None:
    aspects = [*TABLE_ASPECTS, *(aspect for aspect in SCHEMA_ASPECTS if aspect not in TABLE_ASPECTS)]
    types = [action for aspect in aspects for action in aspect.actions]
    assert len(set(types)) == len(types)
    assert len({aspect.name for aspect in aspects}) == len(aspects)


def test_every_room_is_on_the_page_of_the_architecture() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    folder = ROOT / "src" / "delta_engine"
    rooms = [path.stem for path in folder.glob("*.py") if not path.stem.startswith("__")]
    rooms += [f"{path.parent.name}/" for path in folder.glob("*/__init__.py")]
    assert [room for room in rooms if f"`{room}`" not in page] == []


def test_every_decision_is_in_the_list_of_decisions() -> None:
    folder = ROOT / "docs" / "decisions"
    page = (folder / "README.md").read_text("utf-8")
    assert [path.name for path in sorted(folder.glob("0*.md")) if f"]({path.name})" not in page] == []


def test_no_imports_form_a_circle() -> None:
    """Imports for type checkers and inside functions count too: modules in a circle have one subject."""
    modules = {_module(path): path for path in (ROOT / "src").rglob("*.py")}
    imports = {module: _imports(path, modules.keys()) - {module} for module, path in modules.items()}
    assert sum(map(len, imports.values())) > 1_500  # the walk sees the code
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def _imports(path: Path, modules: Set[str]) -> set[str]:
    """Return the modules that a file imports anywhere. Relative imports would hide from it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, path
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names.update(inner & modules or {str(node.module)})
    return names & modules
