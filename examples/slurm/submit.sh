#!/bin/bash
# Grades rows in parts on a Slurm cluster and merges them:
#
#   examples/slurm/submit.sh PARTS OUT ROWS [options of apbjudge grade]
#
# Part I goes to OUT/part-I, the whole to OUT/whole. The same command again, after a failure, asks
# for nothing that is there: finished parts end at once. AT_ONCE is how many parts run at a time
# (default 16), RESTARTS how often a part is requeued (default 3). Resources, partition and account
# are your site's: set them in SBATCH_* variables or in the lines below.
set -euo pipefail
parts=$1 out=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out/logs"
# Cuts the rows into pieces, of which a part reads its own, where they are JSON lines.
[ -f "$out/index.json" ] || apbjudge shards split "$1" --parts "$parts" --out "$out" -- "${@:2}" |
  grep '^#' >&2 || true
# The largest index of an array is the site's MaxArraySize - 1 (scontrol show config).
job=$(sbatch --parsable --job-name=apbjudge --array="1-$parts%${AT_ONCE:-16}" --cpus-per-task=1 \
  --requeue --open-mode=append --signal=B:TERM@120 --output="$out/logs/%a.log" \
  "$here/part.sh" "$parts" "$out" "$@")
job=${job%%;*} # of several clusters the name follows
sbatch --parsable --job-name=apbjudge-merge --dependency="afterok:$job" \
  --output="$out/logs/merge.log" "$here/merge.sh" "$out"
