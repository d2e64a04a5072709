#!/bin/bash
# One task of an array: a part of the rows. APBJUDGE is the command, RESTARTS how often a part is
# queued again. Slurm signals this shell alone, 120 s before the time limit or when it preempts.
set -uo pipefail
child= stopped=0
stop() {
  stopped=1
  [ -z "$child" ] || kill -TERM "$child" 2> /dev/null
}
trap stop TERM
eval "exec $APBJUDGE --part $SLURM_ARRAY_TASK_ID" & # exec, so that the signal reaches it
child=$!
((stopped)) && stop
while wait "$child"; kill -0 "$child" 2> /dev/null; do :; done # a signal ends a wait, too
wait "$child" # which has the child's own code, also where the child ended on the signal at once
code=$?
# 75: paused, and to be continued; 143: stopped before it had begun; 1: rows without a result.
if ((code == 75 || code == 143 || code == 1)) && ((${SLURM_RESTART_COUNT:-0} < ${RESTARTS:-3})); then
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
fi
exit "$code"
