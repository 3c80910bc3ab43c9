#!/usr/bin/env bash
# Everything that the other targets stand on: .cache/venv (Python packages of the lock file) and .cache/collections (the
# checkout under its name ipu.fabric). Under a second when nothing changed.
. "$(dirname "$0")/lib.sh"

stamp=.cache/setup.stamp
inputs=$(sha256sum requirements.txt hack/setup.sh hack/lib.sh)
if [[ -x .cache/venv/bin/ansible-playbook && -e .cache/collections/ansible_collections/ipu/fabric/galaxy.yml &&
      $(cat $stamp 2>/dev/null) == "$inputs" ]]; then
    exit 0
fi

started=$SECONDS
python=$(some_python)

command -v git >/dev/null || need_packages git
"$python" -c 'import ensurepip' 2>/dev/null || need_packages "$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"

venv=$(venv_for "$python")
# Typed in a checkout, ansible-test works on a copy at the path that it insists on.
(
    flock 9
    [[ ! -e $venv/bin/ansible-test.real ]] || exit 0
    mv "$venv/bin/ansible-test" "$venv/bin/ansible-test.real"
    cat >"$venv/bin/ansible-test" <<'B'
#!/usr/bin/env bash
top=$(git rev-parse --show-toplevel 2>/dev/null) || top=
[[ ! -x $top/hack/ansible-test.sh ]] || exec "$top/hack/ansible-test.sh" "$@"
exec "$0.real" "$@"
B
    chmod +x "$venv/bin/ansible-test"
) 9>"$venv.lock"
mkdir -p .cache/collections/ansible_collections/ipu
ln -sfn "$venv" .cache/venv
ln -sfn "$ROOT" .cache/collections/ansible_collections/ipu/fabric
printf '%s\n' "$inputs" >$stamp
say "setup: ready in $((SECONDS - started)) s"
