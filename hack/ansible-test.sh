#!/usr/bin/env bash
# ansible-test.sh ARGUMENT...: ansible-test on a copy of the checkout: it insists on a real path that ends with
# ansible_collections/ipu/fabric, and leaves its output there. The copy lies outside the checkout, so that its virtual
# environments are made once. The `ansible-test` of .cache/venv comes here when it is called in a checkout.
. "$(dirname "$0")/lib.sh"

# What no user of the collection gets has its own linters.
outside=(':!.ci' ':!ansible.cfg' ':!collections' ':!hack' ':!molecule' ':!site.yml' ':!testbed' ':!tests/bench' ':!tests/browser' ':!tests/e2e' ':!tests/matrix')
copy=$CACHE/sanity/ansible_collections/ipu/fabric
mkdir -p "$copy" "$CACHE/sanity/ansible_collections/kubernetes"
exec 9>"$CACHE/sanity/lock"
flock 9

find "$copy" -mindepth 1 -maxdepth 1 ! -name tests -exec rm -rf {} +
find "$copy/tests" -mindepth 1 -maxdepth 1 ! -name output -exec rm -rf {} + 2>/dev/null || true
git ls-files -z --cached --others --exclude-standard -- . "${outside[@]}" | while IFS= read -r -d '' file; do
    [[ ! -f $file ]] || printf '%s\0' "$file"
done | tar -c --null -T - | tar -x -C "$copy"
git -C "$copy" init -q
git -C "$copy" add -A
# Documentation fragments of kubernetes.core.
ln -sfn "$(echo "$ROOT"/.cache/venv/lib/python3*/site-packages/ansible_collections/kubernetes/core)" "$CACHE/sanity/ansible_collections/kubernetes/core"

# ansible-test downloads a script that puts pip into its virtual environments; Python has one of its own.
bootstrap=$HOME/.ansible/test/cache/get_pip_24_2.py
if [[ ! -e $bootstrap ]]; then
    mkdir -p "$(dirname "$bootstrap")"
    printf 'import ensurepip\nensurepip.bootstrap()\n' >"$bootstrap"
fi

# Every Python that a host may have (3.8 on) is tried on modules and module_utils, where it is here. With OUTER=1 only the
# oldest and the newest: what either takes, those between them take.
outer=(--controller origin:python=venv/default)
for version in 3.8 3.9 3.10 3.11 3.12 3.13; do
    python=$(python_of $version)
    if [[ -n $python ]]; then
        PATH=$PATH:$(dirname "$("$python" -c 'import sys; print(sys.executable)')")
        [[ $version != 3.8 && $version != 3.13 ]] || outer+=(--target-python "$version")
    else
        say "ansible-test: skipped for Python $version, which is not installed"
    fi
done
export PATH
[[ -z ${OUTER:-} ]] || set -- "$@" "${outer[@]}"
cd "$copy"
rm -rf tests/output/junit
code=0
"$ROOT"/.cache/venv/bin/ansible-test "$@" || code=$?
[[ -z ${JUNIT_DIR:-} ]] || cp tests/output/junit/*.xml "$JUNIT_DIR"
exit $code
