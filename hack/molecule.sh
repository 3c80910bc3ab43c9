#!/usr/bin/env bash
# molecule.sh SCENARIO...: molecule's scenarios, one after another, on the testbed TESTBED_ID (default 1).
# KEEP=1 leaves the hosts as they are in the end.
. "$(dirname "$0")/lib.sh"

export PATH=$ROOT/.cache/venv/bin:$PATH
for scenario in "$@"; do
    say "molecule: $scenario"
    molecule reset --scenario-name "$scenario" # with --destroy=never it would trust that its hosts of last time are there
    molecule test ${KEEP:+--destroy=never} --scenario-name "$scenario"
done
