"""What the rules for clustering, partitions and locations refuse, with the whole message."""

from __future__ import annotations

from delta_engine.models import Column
from delta_engine.validation import layout_rules
from tests.unit.validation.rule_cases.subjects import ID, SUBJECT, ModelCase, model

MODEL_CASES: list[ModelCase] = [
    (
        layout_rules.PartitioningFits(),
        [model(ID, Column("b", "int"), partitioned_by=["b"], cluster_by="AUTO")],
        f"{SUBJECT}: it is partitioned and clustered. Leave partitioned_by out, or cluster_by.",
    ),
    (
        layout_rules.PartitioningFits(),
        [model(ID, partitioned_by=["nope"])],
        f"{SUBJECT}, column nope: partitioned_by names no column of the table. Declare it, "
        "or correct partitioned_by.",
    ),
    (
        layout_rules.PartitioningFits(),
        [model(ID, Column("b", "int"), partitioned_by=["b", "B"])],
        f"{SUBJECT}, column B: stands in partitioned_by twice. Name each column once.",
    ),
    (
        layout_rules.PartitioningFits(),
        [model(ID, Column("b", "array<int>"), partitioned_by=["b"])],
        f"{SUBJECT}, column b: cannot be partitioned by: its type is array<int>. "
        "Partition by numbers, texts or dates.",
    ),
    (
        layout_rules.PartitioningFits(),
        [model(ID, partitioned_by=["id"])],
        f"{SUBJECT}: all of its columns are partition columns. Leave one of them out of partitioned_by.",
    ),
    (
        layout_rules.LocationsAreWhole(),
        [model(ID, location="bucket/orders")],
        f"{SUBJECT}: its location 'bucket/orders' is no whole address. Write it with its "
        "scheme, as in s3://bucket/path.",
    ),
    (
        layout_rules.ClusteringColumnsFit(),
        [model(ID, cluster_by=["id"], clusters_automatically=True)],
        f"{SUBJECT}: cluster_by names columns, and clusters_automatically lets the platform choose. "
        "Leave clusters_automatically out, or the columns.",
    ),
    (
        layout_rules.ClusteringColumnsFit(),
        [model(ID, cluster_by=("nope",))],
        f"{SUBJECT}, column nope: cluster_by names no column of the table. "
        "Declare it, or correct cluster_by.",
    ),
    (
        layout_rules.ClusteringColumnsFit(),
        [model(ID, cluster_by=("id", "ID"))],
        f"{SUBJECT}, column ID: stands in cluster_by twice. Name each column once.",
    ),
    (
        layout_rules.ClusteringColumnsFit(),
        [model(Column("tags", "array<string>"), cluster_by=("tags",))],
        f"{SUBJECT}, column tags: cannot be clustered by: its type is array<string>. "
        "Cluster by numbers, texts or dates.",
    ),
    (
        layout_rules.ClusteringColumnsFit(),
        [model(*(Column(name, "int") for name in "abcde"), cluster_by=tuple("abcde"))],
        f"{SUBJECT}: cluster_by has 5 columns. Name 4 at most.",
    ),
]
