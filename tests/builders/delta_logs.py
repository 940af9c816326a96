"""Actions of Delta logs, written by hand (Delta protocol, "Actions")."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence


def field(name: str = "id", data_type: object = "integer", **metadata: object) -> dict[str, object]:
    return {"name": name, "type": data_type, "nullable": True, "metadata": metadata}


def metadata(*fields: Mapping[str, object], **rest: object) -> dict[str, object]:
    schema = json.dumps({"type": "struct", "fields": fields or [field()]})
    described = {"id": "1", "format": {"provider": "parquet", "options": {}}, "schemaString": schema}
    return {"metaData": {**described, "partitionColumns": [], "configuration": {}, **rest}}


def protocol(*features: str, reader: int = 1, writer: int = 2) -> dict[str, object]:
    if not features:
        return {"protocol": {"minReaderVersion": reader, "minWriterVersion": writer}}
    return {"protocol": {"minReaderVersion": reader, "minWriterVersion": 7, "writerFeatures": features}}


def commit_info(**rest: object) -> dict[str, object]:
    return {"commitInfo": {"timestamp": 1, "operation": "WRITE", "operationParameters": {}, **rest}}


def clustering(*paths: Sequence[str], removed: bool = False) -> dict[str, object]:
    text = json.dumps({"clusteringColumns": paths, "domainName": "delta.clustering"})
    return {"domainMetadata": {"domain": "delta.clustering", "configuration": text, "removed": removed}}
