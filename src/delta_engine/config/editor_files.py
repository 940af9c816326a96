"""The files of a project with which editors check its YAML: the schemas, and the settings of VS Code.

The first line of a YAML file names its schema, as the YAML language server reads it. VS Code's settings name the
schemas for files without such a line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from delta_engine.config.conf_folder import CONSENTS_FILE, CONSENTS_FOLDER, DRIFT_POLICY_FILE, LINT_FILE
from delta_engine.config.editor_schemas import EDITOR_SCHEMAS, editor_schema

_FOLDER: Final = "schemas"
"""The folder of the schemas, in the configuration folder."""

VS_CODE_SETTINGS: Final = ".vscode/settings.json"


def editor_files(conf_dir: str, environments: Iterable[str]) -> dict[str, str]:
    """Return the texts of the files by their path in the project; `conf_dir` is the path of its configuration."""
    schemas = {f"{conf_dir}/{_FOLDER}/{name}.json": f"{editor_schema(name)}\n" for name in EDITOR_SCHEMAS}
    checked = {
        "model": [f"{conf_dir}/models/**/*.yml"],
        "config": [f"{conf_dir}/{name}.yml" for name in environments],
        "policy": [f"{conf_dir}/{DRIFT_POLICY_FILE}"],
        "consents": [f"{conf_dir}/{CONSENTS_FILE}", f"{conf_dir}/{CONSENTS_FOLDER}/*.yml"],
        "lint": [f"{conf_dir}/{LINT_FILE}"],
    }
    globs = {f"./{conf_dir}/{_FOLDER}/{name}.json": files for name, files in checked.items()}
    return {**schemas, VS_CODE_SETTINGS: json.dumps({"yaml.schemas": globs}, indent=2) + "\n"}


def schema_line(path: Path, conf_dir: Path) -> str:
    """Return the first line of a model file: a comment that names its schema, relative to the file."""
    schema = conf_dir.absolute() / _FOLDER / "model.json"
    relative = os.path.relpath(schema, path.absolute().parent)
    return f"# yaml-language-server: $schema={Path(relative).as_posix()}"
