#!/usr/bin/env bash
# rack.sh FOLDER [ARGUMENT...]: plan and report of the recorded rack, into FOLDER/recorded. Arguments go to ansible-playbook. It needs
# Python with venv, and installs what a plan needs: no root, no host, nothing is compiled.
. "$(dirname "$0")/lib.sh"

folder=$1
shift
venv=$ROOT/.cache/venv
if [[ ! -x $venv/bin/ansible-playbook ]]; then
    python=$(some_python)
    "$python" -c 'import ensurepip' 2>/dev/null || die "$python has no venv" "install it, on Debian: sudo apt install python3-venv"
    venv=$(venv_for "$python" "" ansible-core jmespath netaddr)
fi

mkdir -p "$folder/recorded"
gzip -dc inventories/recorded/rack.probe.json.gz >"$folder/recorded/probe.json"
export ANSIBLE_COLLECTIONS_PATH=$ROOT/collections ANSIBLE_STDOUT_CALLBACK=${ANSIBLE_STDOUT_CALLBACK:-ipu.fabric.steps}
exec "$venv/bin/ansible-playbook" -i inventories/recorded/rack hack/rack.yml \
    -e fabric_observations=inventories/recorded/rack.json.gz -e "{fabric_artifacts_dir: '$folder'}" "$@"
