#!/bin/bash
# One task of the array that submit.sh submits: a part of the rows.
set -uo pipefail
parts=$1 out=$2
shift 2
# Slurm signals this shell alone, 120 s before the time limit or when the job is preempted.
child= stopped=0
stop() {
  stopped=1
  [ -z "$child" ] || kill -TERM "$child" 2> /dev/null
}
trap stop TERM
# The number of parts comes with the command: SLURM_ARRAY_TASK_COUNT is another one where only
# failed tasks are submitted again.
shard=$SLURM_ARRAY_TASK_ID/$parts
[ -f "$out/index.json" ] && shard=$out/index.json#$SLURM_ARRAY_TASK_ID
apbjudge grade "$@" --shard "$shard" --out "$out/part-$SLURM_ARRAY_TASK_ID" &
child=$!
((stopped)) && stop
while :; do
  wait "$child"
  code=$?
  kill -0 "$child" 2> /dev/null || break # else it was the signal that ended the wait
done
# 75: paused, and to be continued; 143: stopped before it had begun; 1: rows without a verdict,
# which are asked again.
if ((code == 75 || code == 143 || code == 1)) && ((${SLURM_RESTART_COUNT:-0} < ${RESTARTS:-3})); then
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
fi
exit "$code"
