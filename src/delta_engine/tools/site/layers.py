"""The columns of a diagram: which tables belong together, and which stands right of which."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence


def connected(keys: Sequence[str], pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the groups of keys that pairs connect, each in the order of the keys."""
    leaders = {key: key for key in keys}

    def leader(key: str) -> str:
        while leaders[key] != key:
            leaders[key] = leaders[leaders[key]]
            key = leaders[key]
        return key

    for key, other in pairs:
        leaders[leader(key)] = leader(other)
    groups: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        groups[leader(key)].append(key)
    return list(groups.values())


def assign_layers(keys: Sequence[str], pairs: Iterable[tuple[str, str]], capacity: int) -> dict[str, int]:
    """Return the column of each key: right of its parents, except in circles, and at most `capacity` in one.

    Args:
        pairs: of parent and child. The two keys of a pair get different columns.
    """
    parents: dict[str, set[str]] = {key: set() for key in keys}
    children: dict[str, set[str]] = {key: set() for key in keys}
    for parent, child in pairs:
        if parent != child:
            parents[child].add(parent)
            children[parent].add(child)
    layers: dict[str, int] = {}
    used: Counter[int] = Counter()
    for key in _parents_first(keys, parents, children):
        layer = 1 + max((layers.get(other, -1) for other in parents[key] | children[key]), default=-1)
        while used[layer] >= capacity:
            layer += 1
        layers[key] = layer
        used[layer] += 1
    for key in sorted(layers, key=lambda key: (-layers[key], key)):
        nearest = min((layers[child] for child in children[key]), default=0) - 1
        if not parents[key] and nearest > layers[key] and used[nearest] < capacity:
            used[layers[key]] -= 1
            used[nearest] += 1
            layers[key] = nearest  # a table without parents stands next to its children: shorter curves
    numbers = {layer: number for number, layer in enumerate(sorted(set(layers.values())))}
    return {key: numbers[layer] for key, layer in layers.items()}


def _parents_first(
    keys: Sequence[str], parents: Mapping[str, set[str]], children: Mapping[str, set[str]]
) -> Iterable[str]:
    """Return the keys with parents first; a circle is entered at the key that waits for the fewest parents."""
    waiting = {key: len(parents[key]) for key in keys}
    queue = [(count, key) for key, count in waiting.items()]
    heapq.heapify(queue)
    ordered: dict[str, None] = {}
    while queue:
        count, key = heapq.heappop(queue)
        if key in ordered or count != waiting[key]:
            continue  # an older entry
        ordered[key] = None
        for child in children[key]:
            waiting[child] -= 1
            heapq.heappush(queue, (waiting[child], child))
    return ordered
