#!/bin/sh
# Installs what Spark Connect needs into .venv/, once, for tests/connect. The demo does not need it.
set -eu
cd "$(dirname "$0")/.."

# to find them takes a moment, to import them seconds
.venv/bin/python -c 'import sys
from importlib.util import find_spec
sys.exit(not all(map(find_spec, ("grpc", "grpc_status", "pandas", "pyarrow", "zstandard"))))' && exit 0
echo "connect: installing what Spark Connect needs" >&2
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/connect.txt
