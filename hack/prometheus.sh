#!/usr/bin/env bash
# Prints a folder with Debian's prometheus and promtool. They are unpacked, not installed: nothing is started.
. "$(dirname "$0")/lib.sh"

target=$CACHE/prometheus
if [[ ! -x $target/usr/bin/promtool ]]; then
    command -v apt-get >/dev/null || die "no Debian package prometheus on this system" "put prometheus and promtool into PATH"
    mkdir -p "$CACHE"
    scratch=$(mktemp -d "$CACHE/prometheus.XXXXXX")
    trap 'rm -rf "$scratch"' EXIT
    say "setup: fetching Debian's prometheus"
    (cd "$scratch" && apt-get -qq -o APT::Sandbox::User=root download prometheus >&2)
    dpkg -x "$scratch"/prometheus_*.deb "$scratch/tree"
    rm -rf "$target"
    mv "$scratch/tree" "$target"
fi
printf '%s\n' "$target/usr/bin"
