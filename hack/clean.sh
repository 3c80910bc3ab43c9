#!/usr/bin/env bash
# Remove what this checkout made, and every testbed of this machine. Downloads and builds stay, for other clones; `testbed/testbed prune`
# removes those that nothing uses any more.
. "$(dirname "$0")/lib.sh"

shopt -s nullglob
for state in "$CACHE"/testbed/[0-9] "$CACHE"/vm/[0-9]; do
    machine=()
    [[ $state != "$CACHE"/vm/* ]] || machine=(vm)
    TESTBED_ID=${state##*/} testbed/testbed "${machine[@]}" down
done
rm -rf .cache .ansible artifacts tests/output
say "clean: removed testbeds, .cache and artifacts"
