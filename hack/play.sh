#!/usr/bin/env bash
# play.sh PLAYBOOK [ARGUMENT...]: a playbook of the collection on the testbed's inventory.
. "$(dirname "$0")/lib.sh"

playbook=$1
shift
inventory=$(testbed/testbed inventory)
exec ansible-playbook -i "$inventory" "ipu.fabric.$playbook" "$@"
