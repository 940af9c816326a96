"""What the rules for clustering, partitions and locations refuse, with the whole message."""

from delta_engine.actions import CreateTable, TablePlan
from delta_engine.aspects.clustering import ChangeClustering
from delta_engine.aspects.statistics import MissingStatistics
from delta_engine.backends.capabilities import OPEN_SOURCE
from delta_engine.models import Column
from delta_engine.validation import layout_rules
from tests.unit.validation.rule_cases.subjects import ID, ModelCase, PlanCase, aligned, model

MODEL_CASES: list[ModelCase] = [
    (
        layout_rules.PartitioningFits(),
        [model(ID, Column("b", "int"), partitioned_by=["b"], cluster_by="AUTO")],
    ),
    (layout_rules.PartitioningFits(), [model(ID, partitioned_by=["nope"])]),
    (layout_rules.PartitioningFits(), [model(ID, Column("b", "int"), partitioned_by=["b", "B"])]),
    (layout_rules.PartitioningFits(), [model(ID, Column("b", "array<int>"), partitioned_by=["b"])]),
    (layout_rules.PartitioningFits(), [model(ID, partitioned_by=["id"])]),
    (layout_rules.PartitioningFits(), [model(ID, Column("s", "struct<a: int>"), partitioned_by=["S.a"])]),
    (layout_rules.LocationsAreWhole(), [model(ID, location="bucket/orders")]),
    (layout_rules.ClusteringColumnsFit(), [model(ID, cluster_by=["id"], clusters_automatically=True)]),
    (layout_rules.ClusteringColumnsFit(), [model(ID, cluster_by=("nope",))]),
    (layout_rules.ClusteringColumnsFit(), [model(ID, cluster_by=("id", "ID"))]),
    (
        layout_rules.ClusteringColumnsFit(),
        [
            model(
                Column("s", "struct<a: int, t: struct<b: int>, l: array<struct<c: int>>>"),
                cluster_by=("s.a", "S.A", "s.t", "s.l.c"),
            )
        ],
    ),
    (layout_rules.ClusteringColumnsFit(), [model(Column("tags", "array<string>"), cluster_by=("tags",))]),
    *(
        (
            layout_rules.StatisticsColumnsFit(),
            [
                model(
                    *(
                        ID,
                        Column("s", "struct<a: int, b: int>"),
                        Column("is_open", "boolean"),
                        Column("day", "date"),
                    ),
                    partitioned_by=["day"],
                    table_properties={"delta.dataSkippingStatsColumns": names},
                )
            ],
        )
        for names in ("nope, s.c", "id,s,ID", "s.a, s", "`is_open`", "day")
    ),
    (
        layout_rules.ClusteringColumnsFit(),
        [model(*(Column(name, "int") for name in "abcde"), cluster_by=tuple("abcde"))],
    ),
]

_MISSING = MissingStatistics(keys=("c32",), limit="LIMIT", is_default=True, is_managed=True)


def _created(key: str, limits: dict[str, str]) -> TablePlan:
    declared = model(ID, Column("b", "int"), cluster_by=[key], table_properties=limits)
    return TablePlan((CreateTable(declared),))


PLAN_CASES: list[PlanCase] = [
    (
        layout_rules.ClusteringColumnsHaveStatistics(OPEN_SOURCE),
        aligned(ChangeClustering(("c32",), (), missing=_MISSING)),
        aligned(ChangeClustering(("c32",), ())),
    ),
    *(
        (layout_rules.ClusteringColumnsHaveStatistics(), _created("b", limits), _created("id", limits))
        for limits in ({"delta.dataSkippingNumIndexedCols": "1"}, {"delta.dataSkippingStatsColumns": "id"})
    ),
]
