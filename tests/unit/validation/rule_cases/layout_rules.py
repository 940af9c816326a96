"""What the rules for clustering, partitions and locations refuse, with the whole message."""

from delta_engine.models import Column
from delta_engine.validation import layout_rules
from tests.unit.validation.rule_cases.subjects import ID, ModelCase, model

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
    (
        layout_rules.ClusteringColumnsFit(),
        [model(*(Column(name, "int") for name in "abcde"), cluster_by=tuple("abcde"))],
    ),
]
