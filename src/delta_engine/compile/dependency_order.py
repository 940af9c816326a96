"""Topological order of interdependent tables. Pure, and iterative for long chains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from heapq import heapify, heappop, heappush


def in_order(needs: Mapping[str, frozenset[str]]) -> tuple[list[str], Mapping[str, frozenset[str]]]:
    """Return the tables, each after those that it needs, and the needs of each table that come later.

    Names resolve ties. A cycle is broken at one table, which comes first. No table needs itself.
    """
    pending = {key: set(needed) for key, needed in needs.items()}
    dependants: dict[str, list[str]] = defaultdict(list)
    for key, needed in needs.items():
        for parent in needed:
            dependants[parent].append(key)
    without = dict.fromkeys(needs, frozenset[str]())
    ready = [key for key, needed in pending.items() if not needed]
    heapify(ready)
    names, place = sorted(needs), 0
    order: list[str] = []
    while pending:
        if not ready:
            while names[place] not in pending:
                place += 1
            key = _member_of_a_cycle(pending, names[place])
            without[key] = frozenset(pending[key])
            ready.append(key)
        key = heappop(ready)
        del pending[key]
        order.append(key)
        for dependant in dependants[key]:
            if dependant in pending:
                pending[dependant].discard(key)
                if not pending[dependant]:
                    heappush(ready, dependant)
    return order, without


def _member_of_a_cycle(needs: Mapping[str, set[str]], start: str) -> str:
    """Return the first table by name of a cycle that is reachable from a table; every table needs another one."""
    path: dict[str, None] = {}
    key = start
    while key not in path:
        path[key] = None
        key = min(needs[key])
    passed = list(path)
    return min(passed[passed.index(key) :])
