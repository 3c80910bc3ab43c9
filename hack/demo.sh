#!/usr/bin/env bash
# Two bare hosts to a cluster that is proved from inside pods, with the time that each step took.
. "$(dirname "$0")/lib.sh"

step() {
    local name=$1 begin=$SECONDS
    shift
    say ""
    say "==> $name"
    "$@" || die "$name failed" "read its last lines above; the hosts are left as they are: testbed/testbed status"
    say "==> $name: $((SECONDS - begin)) s"
}

testbed/testbed estimate
step "hosts and mirror" testbed/testbed up
step "site: plan, Kubernetes, fabric, proof" hack/play.sh site "$@"
step "verify" hack/play.sh verify "$@"
say ""
say "Done in $SECONDS s. Reports are in artifacts/; look inside with:"
say "testbed/testbed exec cp1 -- kubectl --kubeconfig /etc/kubernetes/admin.conf get pods -A"
