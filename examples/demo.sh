#!/usr/bin/env bash
# Makes a Git repository of examples/repository and judges the recorded fleet of
# examples/fleet against it. Nothing outside the given folder is touched.
#   demo.sh ROLLCALL FOLDER
set -euo pipefail
rollcall=$(realpath "$1")
out=$2
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$out"
mkdir -p "$out"
cp -r "$here/fleet/." "$out"
cp -r "$here/repository" "$out/repository"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=example GIT_AUTHOR_EMAIL=example@example.com GIT_AUTHOR_DATE=2026-11-28T10:00:00Z
export GIT_COMMITTER_NAME=example GIT_COMMITTER_EMAIL=example@example.com GIT_COMMITTER_DATE=2026-11-28T10:00:00Z
git -C "$out/repository" init -q -b main
git -C "$out/repository" add -A
git -C "$out/repository" commit -qm 'Daemons of the example fleet'
echo "A recorded fleet of four clusters; nothing is contacted." >&2
"$rollcall" report -f "$out/rollcall.yaml" --fail-on none -o table -o "markdown=$out/report.md" -o "json=$out/report.json"
cat >&2 <<EOF

Written: $out/report.md, $out/report.json. Try next:
  $1 why node/db-1 ds/log-collector -f $out/rollcall.yaml --cluster prod-eu
  $1 render edge -f $out/rollcall.yaml --explain
  $1 scan -f $out/dumps/staging.yaml
EOF
