"""What the rules for models refuse, with the whole message."""

from delta_engine.models import Column, PolicyScope, PrimaryKey, Table
from delta_engine.validation import model_rules
from tests.unit.validation.rule_cases.subjects import HERE, ID, ModelCase, function, model, policy

SCHEMAS_ALIKE = (("caf\u00e9", "a"), ("cafe\u0301", "a"))

MODEL_CASES: list[ModelCase] = [
    (model_rules.RenamedTables(), [model(ID, renamed_from="gold.order")]),
    (model_rules.RenamedTables(), [model(ID, renamed_from="ORDERS")]),
    (
        model_rules.RenamedTables(),
        [model(ID, renamed_from="order"), model(ID, table="sales", renamed_from="Order")],
    ),
    (
        model_rules.DeclaresOnlyWhatItManages(),
        [model(ID, tags={"team": "sales"}, comment="Orders", manages=("comments",))],
    ),
    (model_rules.DeclaresOnlyWhatItManages(), [model(ID, manages=())]),
    (model_rules.ValidColumnNames(), [model(Column("s", "array<struct<`a b`: int>>"))]),
    (
        model_rules.ValidColumnNames(),
        [
            model(
                Column("s", "struct<a: map<string, struct<`${x}`: int>>>"),
                table_properties={"delta.columnMapping.mode": "name"},
            )
        ],
    ),
    (
        model_rules.ReadableProperties(),
        [model(ID, table_properties={"delta.appendOnly": "true", "delta.AppendOnly": "false"})],
    ),
    (model_rules.ReadableProperties(), [model(ID, table_properties={"": "x"})]),
    (model_rules.ReadableProperties(), [model(ID, table_properties={"table_type": "x"})]),
    (
        model_rules.ReadableProperties(),
        [model(ID, table_properties={"delta.IgnoreProtocolDefaults": "true"})],
    ),
    (
        model_rules.KnownPropertiesFit(),
        [model(ID, table_properties={"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"})],
    ),
    (
        model_rules.ReadableProperties(),
        [model(ID, table_properties={"Delta.Feature.Clustering": "supported"})],
    ),
    (model_rules.ValidTableNames(), [model(ID, table="or ders")]),
    (model_rules.ValidTableNames(), [model(ID, table="a`b")]),
    (model_rules.ValidTableNames(), [model(ID, table="a.b")]),
    (model_rules.ValidTableNames(), [model(ID, table="")]),
    (model_rules.ValidTableNames(), [model(ID, table="t" * 256)]),
    (model_rules.UniqueNames(), [model(ID), model(ID, table="ORDERS")]),
    (model_rules.UniqueNames(), [function(), function("MASK_EMAIL")]),
    (model_rules.UniqueNames(), [policy(), policy("MASK_PII"), policy(scope=PolicyScope("catalog", "dev"))]),
    (model_rules.NamesLookDifferent(), [model(ID, table="caf\u00e9"), model(ID, table="CAFE\u0301")]),
    (
        model_rules.NamesLookDifferent(),
        [Table("dev", schema, table, [ID], declared_at=HERE) for schema, table in SCHEMAS_ALIKE],
    ),
    (
        model_rules.NamesLookDifferent(),
        [model(Column("caf\u00e9", "int"), Column("cafe\u0301", "int"))],
    ),
    (
        model_rules.NamesLookDifferent(),
        [model(Column("a", "array<struct<`caf\u00e9`: int, `cafe\u0301`: int>>"))],
    ),
    (model_rules.TablesHaveColumns(), [model()]),
    (model_rules.ValidColumnNames(), [model(Column("a b", "int"))]),
    (model_rules.ValidColumnNames(), [model(Column("a\x00", "int"))]),
    (model_rules.ValidColumnNames(), [model(Column("", "int"))]),
    (
        model_rules.ChangeFeedNamesAreFree(),
        [
            model(
                ID, Column("_Change_Type", "string"), table_properties={"delta.enablechangedatafeed": "TRUE"}
            )
        ],
    ),
    (
        model_rules.ChangeFeedNamesAreFree(),
        [
            model(
                *(Column(name, "string") for name in ("_commit_version", "_commit_timestamp")),
                default_table_properties={"delta.enableChangeDataFeed": "true"},
            )
        ],
    ),
    (model_rules.DuplicateColumnNames(), [model(ID, Column("ID", "int"))]),
    (model_rules.PrimaryKeyColumnsNotNull(), [model(ID, primary_key=["nope", "x"])]),
    (model_rules.PrimaryKeyColumnsNotNull(), [model(ID, Column("b", "int"), primary_key=["id", "B"])]),
    (model_rules.PrimaryKeyColumnsNotNull(), [model(ID, primary_key=["id", "ID"])]),
    (model_rules.PrimaryKeyColumnsNotNull(), [model(ID, primary_key=PrimaryKey([]))]),
    (
        model_rules.KnownPropertiesFit(),
        [model(ID, table_properties={"delta.feature.allowColumnDefaults": "disabled"})],
    ),
    (model_rules.KnownPropertiesFit(), [model(ID, table_properties={"DELTA.columnMapping.mode": "yes"})]),
    (
        model_rules.KnownPropertiesFit(),
        [model(ID, table_properties={"delta.enableTypeWidening": "maybe"})],
    ),
    (
        model_rules.KnownPropertiesFit(),
        [
            model(
                ID,
                table_properties={
                    "delta.appendOnly": "maybe",
                    "delta.autoOptimise.optimizeWrite": "true",
                    "delta.optimizeWrite": "true",
                    "delta.logRetentionDuration": "30",
                    "delta.deletedFileRetentionDuration": "interval 1 month",
                    "delta.checkpointInterval": "0",
                    "delta.dataSkippingNumIndexedCols": "all",
                    "delta.isolationLevel": "Snapshot",
                    "delta.minReaderVersion": "4",
                    "delta.targetFileSize": "big",
                    "detla.enableChangeDataFeed": "true",
                },
            )
        ],
    ),
    (model_rules.KeepsNestedClauses(), [model(Column("a", "array<struct<x: int NOT NULL>>"))]),
    (
        model_rules.KeepsNestedClauses(),
        [model(Column("a", "struct<x: struct<y: int COMMENT 'c'>, z: map<string,char(3)>>"))],
    ),
    (model_rules.ReadableProperties(), [model(ID, table_properties={"my.Password": "x"})]),
    (model_rules.ReadableProperties(), [model(ID, table_properties={"owner": "ann"})]),
    (model_rules.ReadableProperties(), [model(ID, table_properties={"clusterByAuto": "true"})]),
    (model_rules.ReadableProperties(), [model(ID, table_properties={"option.path": "x"})]),
    (
        model_rules.ReadableProperties(),
        [model(ID, table_properties={"delta.inCommitTimestampEnablementVersion": "3"})],
    ),
    (model_rules.KnownPropertiesFit(), [model(ID, table_properties={"delta.feature.clustering": "enabled"})]),
    (model_rules.ReadableProperties(), [model(ID, table_properties={"delta.constraints.x": "a > 1"})]),
]
