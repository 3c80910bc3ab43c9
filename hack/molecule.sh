#!/usr/bin/env bash
# molecule.sh SCENARIO...: molecule's scenarios, one after another, on the testbed TESTBED_ID (default 1).
. "$(dirname "$0")/lib.sh"

export TESTBED_ID=${TESTBED_ID:-1} ANSIBLE_COLLECTIONS_PATH=$ROOT/.cache/collections PATH=$ROOT/.cache/venv/bin:$PATH
for scenario in "$@"; do
    say "molecule: $scenario"
    molecule test --scenario-name "$scenario"
done
