#!/bin/sh
# Installs what Spark Connect needs into .venv/, for tests/connect. The demo does not need it.
set -eu
cd "$(dirname "$0")/.."

.venv/bin/python -c 'import grpc, grpc_status, pandas, pyarrow, zstandard' 2>/dev/null && exit 0
echo "connect: installing what Spark Connect needs" >&2
.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/connect.txt
