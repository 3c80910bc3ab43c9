#!/usr/bin/env bash
# play.sh PLAYBOOK [ARGUMENT...]: a playbook of the collection on the testbed's inventory.
. "$(dirname "$0")/lib.sh"

playbook=$1
shift
export ANSIBLE_STDOUT_CALLBACK=${ANSIBLE_STDOUT_CALLBACK:-ipu.fabric.steps}
inventory=$(testbed/testbed inventory)
exec ansible-playbook -i "$inventory" "ipu.fabric.$playbook" "$@"
