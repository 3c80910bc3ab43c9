#!/usr/bin/env bash
# try.sh [ARGUMENT...]: plan and report of the recorded rack, opened where there is a display. Arguments go to ansible-playbook, such as
# -e fabric_pods_per_node=4.
. "$(dirname "$0")/lib.sh"

pages=$ROOT/artifacts/recorded
hack/rack.sh "$ROOT/artifacts" "$@"
say ""
say "The plan of the rack, and the report of its proof, which found one slow NIC ($SECONDS s):"
say "  file://$pages/plan.html"
say "  file://$pages/report.html"
say "More recorded sites, and your own: docs/recorded.md. On two disposable hosts: make demo"
if [[ -n ${DISPLAY:-}${WAYLAND_DISPLAY:-} ]] && command -v xdg-open >/dev/null; then
    xdg-open "$pages/plan.html"
    xdg-open "$pages/report.html"
fi
