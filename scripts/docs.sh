#!/bin/sh
# Installs what builds the site into .venv/, once, for `make docs` and tests/browser. The demo does not need it.
set -eu
cd "$(dirname "$0")/.."

.venv/bin/python -c 'import sys
from importlib.util import find_spec
sys.exit(not all(map(find_spec, ("material", "mermaidx", "mkdocs", "pymdownx"))))' && exit 0
echo "docs: installing what builds the site" >&2
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
