"""The page about security names the packages that the wheel needs, and the tables that a removal drops."""

from __future__ import annotations

import re
from importlib.metadata import requires

from delta_engine.deployment.stores.databricks import HEADS, LOCKS
from delta_engine.errors import DISTRIBUTION
from tests.cases.documentation import DOCS

PAGE = (DOCS / "security.md").read_text("utf-8")


def test_the_packages_of_the_wheel_are_named() -> None:
    needed = {
        re.split(r"[^\w-]", name)[0].lower()
        for name in requires(DISTRIBUTION) or ()
        if "extra ==" not in name
    }
    listed = re.search(r"eight packages: ([^.]+)\.", PAGE)
    assert listed is not None
    assert {*re.split(r", | and ", listed[1].lower().replace("\n", " "))} == needed
    assert len(needed) == 8


def test_a_removal_names_the_tables_of_the_engine() -> None:
    assert {HEADS, LOCKS} == {*re.findall(r"`(deployment_\w+)`", PAGE)}
