#!/usr/bin/env bash
# molecule.sh SCENARIO...: molecule's scenarios, one after another, on the testbed TESTBED_ID (default 1).
# KEEP=1 leaves the hosts as they are in the end.
. "$(dirname "$0")/lib.sh"

export TESTBED_ID=${TESTBED_ID:-1} ANSIBLE_COLLECTIONS_PATH=$ROOT/.cache/collections PATH=$ROOT/.cache/venv/bin:$PATH
for scenario in "$@"; do
    say "molecule: $scenario"
    molecule reset --scenario-name "$scenario" # what it remembers of hosts that somebody else may have removed
    molecule test ${KEEP:+--destroy=never} --scenario-name "$scenario"
done
