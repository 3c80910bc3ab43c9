#!/usr/bin/env bash
# Remove what this checkout made. Downloads and builds that other clones share stay: testbed/testbed prune removes those.
. "$(dirname "$0")/lib.sh"

for id in 0 1 2 3; do
    [[ ! -d $CACHE/testbed/$id ]] || TESTBED_ID=$id testbed/testbed down
    [[ ! -d $CACHE/vm/$id ]] || TESTBED_ID=$id testbed/testbed vm down
done
rm -rf .cache .ansible artifacts tests/output
say "clean: removed testbeds, .cache and artifacts"
