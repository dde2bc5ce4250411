#!/bin/bash
# Installs the client library into an empty prefix, builds the example against it as a user would, and runs
# it: with no master named, and against a cluster of real processes.
#   example_test.sh BUILD_DIR COMPILER CXX_FLAGS PICKET_COMMAND
set -euo pipefail
build=$1 compiler=$2 flags=$3 picket=$4

work=$(mktemp -d)
finish() {
  "$picket" dev down --dir "$work/cluster" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap finish EXIT
unset PICKET_MASTER PICKET_CONFIG
export HOME=$work

echo "== install"
cmake --install "$build" --prefix "$work/prefix" --component client >/dev/null
echo "== build the example"
example=$work/prefix/share/doc/picket/example
cmake -S "$example" -B "$work/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" \
  -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build"

echo "== run it with no master named"
if "$work/build/hello" 2>"$work/error"; then
  echo "it succeeded without a master" >&2
  exit 1
fi
grep -q "no master is named" "$work/error"

echo "== run it against a cluster"
"$picket" dev up --dir "$work/cluster" --chunkservers 3
export PICKET_CONFIG=$work/cluster/client.toml
"$work/build/hello" | tee "$work/output"
grep -q "1000 lines, 1 chunk(s) with 3 replicas each" "$work/output"
"$picket" cat /hello/world.txt | tail -1 | grep -q "hello, line 1000"
echo "== done"
