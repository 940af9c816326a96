"""The columns of a diagram: which table stands in which, and in what order."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from delta_engine.tools.site.routing import Column, Net, Passage

_SWEEPS: Final = 6


def connected(keys: Sequence[str], edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the groups of keys that edges connect, each in the order of the keys."""
    leader = {key: key for key in keys}

    def find(key: str) -> str:
        while leader[key] != key:
            leader[key] = leader[leader[key]]
            key = leader[key]
        return key

    for one, other in edges:
        leader[find(one)] = find(other)
    groups: dict[str, list[str]] = {}
    for key in keys:
        groups.setdefault(find(key), []).append(key)
    return list(groups.values())


def assign_layers(keys: Sequence[str], edges: Sequence[tuple[str, str]], capacity: int) -> dict[str, int]:
    """Return the column of each key: right of its parents, except in circles, and at most `capacity` in one.

    Args:
        edges: pairs of parent and child. The ends of an edge between two keys get different columns.
    """
    parents: dict[str, set[str]] = {key: set() for key in keys}
    children: dict[str, set[str]] = {key: set() for key in keys}
    for parent, child in edges:
        if parent != child:
            parents[child].add(parent)
            children[parent].add(child)
    layers: dict[str, int] = {}
    used: Counter[int] = Counter()
    for key in _parents_first(keys, parents, children):
        near = [layers[other] for other in parents[key] | children[key] if other in layers]
        layer = max(near, default=-1) + 1
        while used[layer] >= capacity:
            layer += 1
        layers[key] = layer
        used[layer] += 1
    _move_towards_children(layers, used, parents, children, capacity)
    numbers = {layer: number for number, layer in enumerate(sorted(set(layers.values())))}
    return {key: numbers[layer] for key, layer in layers.items()}


def _parents_first(
    keys: Sequence[str], parents: Mapping[str, set[str]], children: Mapping[str, set[str]]
) -> list[str]:
    """Return the keys with parents first; a circle is entered at the key that waits for the fewest parents."""
    waiting = {key: len(parents[key]) for key in keys}
    queue = [(count, key) for key, count in waiting.items()]
    heapq.heapify(queue)
    found: dict[str, None] = {}
    while queue:
        count, key = heapq.heappop(queue)
        if key in found or count != waiting[key]:
            continue  # an older entry
        found[key] = None
        for child in children[key]:
            waiting[child] -= 1
            heapq.heappush(queue, (waiting[child], child))
    return list(found)


def _move_towards_children(
    layers: dict[str, int],
    used: Counter[int],
    parents: Mapping[str, set[str]],
    children: Mapping[str, set[str]],
    capacity: int,
) -> None:
    """Move keys without a parent next to their children: shorter lines."""
    for key in sorted(layers, key=lambda one: (-layers[one], one)):
        right = [layers[child] for child in children[key]]
        if parents[key] or not right:
            continue
        wanted = min(right) - 1
        if wanted > layers[key] and used[wanted] < capacity:
            used[layers[key]] -= 1
            used[wanted] += 1
            layers[key] = wanted


def ordered_columns(layers: Mapping[str, int], nets: Sequence[Net]) -> list[Column]:
    """Return the columns with their tables and the passages of lines, in an order with few crossings."""
    columns: list[Column] = [[] for _ in range(max(layers.values()) + 1)]
    for key, layer in layers.items():
        columns[layer].append(key)
    left: dict[str | Passage, list[str | Passage]] = defaultdict(list)
    right: dict[str | Passage, list[str | Passage]] = defaultdict(list)
    for number, net in enumerate(nets):
        holder: str | Passage = net.node
        start = layers[net.node]
        last = max(layers[target] for target, _, _ in net.targets)
        by_layer: dict[int, list[str]] = defaultdict(list)
        for target, _, _ in net.targets:
            by_layer[layers[target]].append(target)
        for layer in range(start + 1, last + 1):
            ends: list[str | Passage] = [*by_layer[layer]]
            if layer < last:
                passage = Passage(net=number, column=layer)
                columns[layer].append(passage)
                ends.append(passage)
            for end in ends:
                left[end].append(holder)
                right[holder].append(end)
            if layer < last:
                holder = ends[-1]
    position = {one: place for column in columns for one, place in _positions(column)}
    for sweep in range(_SWEEPS):
        forwards = sweep % 2 == 0
        for column in columns[1:] if forwards else columns[-2::-1]:
            _sort_by_neighbours(column, left if forwards else right, position)
    return columns


def _positions(column: Column) -> Iterator[tuple[str | Passage, float]]:
    return ((one, (at + 0.5) / len(column)) for at, one in enumerate(column))


def _sort_by_neighbours(
    column: Column,
    near: Mapping[str | Passage, Sequence[str | Passage]],
    position: dict[str | Passage, float],
) -> None:
    weights = {
        one: sum(position[other] for other in near[one]) / len(near[one]) if near.get(one) else position[one]
        for one in column
    }
    column.sort(key=lambda one: (weights[one], position[one]))
    position.update(_positions(column))
