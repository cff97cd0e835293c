#!/bin/sh
# A trainer for tests of `command:`: it uses the environment of torchrun, and misbehaves on request.
say() { printf '{"step": %d, "loss": %s}\n' "$1" "$2"; }
await_save() { # expression: until dtrun has reported a checkpoint of such a step, however busy the machine is
    until grep '"event":"checkpoint"' "$DTRUN_NODE_DIR/journal.jsonl" | grep -qE "\"step\":($1)[,}]"; do sleep 0.05; done
}
case ${1:-} in
good)
    echo "rank=$RANK/$WORLD_SIZE local=$LOCAL_RANK/$LOCAL_WORLD_SIZE node=$NODE_RANK group=$GROUP_RANK" \
        "master=$MASTER_ADDR count=$TORCHELASTIC_RESTART_COUNT run=$DTRUN_RUN_ID/$DTRUN_ATTEMPT" \
        "gpus='$CUDA_VISIBLE_DEVICES' threads=$OMP_NUM_THREADS key=${#KEY} words=$# last=${3:-}"
    echo "to stderr" >&2
    read -r line && echo "stdin has '$line'"
    env | grep -E 'DTRUN_(SECRET|CHANNEL|RUN_SECRET)' && exit 9
    say 1 0.5
    say 2 0.25
    ;;
code)
    say 1 0.5
    [ "$RANK" = 1 ] && exit "$2"
    exec sleep 60
    ;;
signal)
    [ "$RANK" = 1 ] && kill -s "$2" $$
    exec sleep 60
    ;;
stubborn) # a child that ignores SIGTERM, one that has left the session, and one without the environment
    trap '' TERM
    sh -c "trap '' TERM; sleep $2 & wait; sleep $2" &
    setsid sleep "$2" &
    setsid env -i /bin/sleep "$2" &
    say 1 0.5
    while :; do sleep 1; done
    ;;
marked) # marks a checkpoint, begins a second one, writes over a third one, and dies at once
    mkdir -p ck-1 ck-2 ck-3
    echo 3 >ck-3/model
    touch ck-3/done
    sleep 0.1
    for k in 1 2 3; do echo "$k" >ck-$k/model; done
    touch ck-1/done
    say 1 0.5
    kill -s KILL $$
    ;;
polite)
    trap 'echo "saved"; exit 0' TERM
    say 1 0.5
    while :; do sleep 0.1; done
    ;;
again)
    echo "count=$TORCHELASTIC_RESTART_COUNT port=$MASTER_PORT attempt=$DTRUN_ATTEMPT"
    say "$DTRUN_ATTEMPT" 0.5
    [ "$DTRUN_ATTEMPT" = "$2" ] || exit 7
    ;;
wild)
    head -c 100000 /dev/urandom
    echo
    head -c 10000000 /dev/zero | tr '\0' x
    echo
    printf '{"step": 1, "loss": NaN, "huge": -Infinity, "text": "NaN is \\" text", "flag": true}\n'
    printf '{"step": 1.5, "loss": 1}\n{"step": -1, "loss": 1}\n{"step": "2", "loss": 1}\n{"step": 2, "loss"\n'
    awk 'BEGIN { printf "{\"step\": 2"; for (i = 0; i < 10000; i++) printf ", \"m%d\": %d", i, i; print "}" }' |
        fold -w 65000 | head -n 1 | tr -d '\n'
    echo
    awk 'BEGIN { for (k = 0; k < 10; k++) { printf "{\"step\": 3"
        for (i = 1000 * k; i < 1000 * k + 1000; i++) printf ", \"m%d\": %d", i, i; print "}" } }'
    say 4 0.125
    say 4 9
    printf '\r10%%\r{"step": 5, "loss": 0.0625}\r'
    exec 1>&-
    exit 0
    ;;
lines)
    for step in 1 2 3; do echo "[12:00] step $step of 3, loss 0.$step (lr 1e-0$step)"; done
    echo "step x loss y"
    ;;
saves) # N steps: saves every fifth one, ends with code 7 at step DIE in the middle of a save, resumes as its arguments say
    last=0
    [ "${4:-}" = --from ] && last=$(cat "$5/step")
    echo "from=${DTRUN_RESUME_FROM:-none} last=$last"
    mkdir -p ckpt
    while [ "$last" -lt "$2" ]; do
        last=$((last + 1))
        say $last 0.5
        if [ $((last % 5)) = 0 ]; then
            mkdir ckpt/tmp
            echo $last >ckpt/tmp/step
            head -c 1000 /dev/zero >ckpt/tmp/weights
            mv ckpt/tmp "ckpt/checkpoint-$last"
        fi
        [ "$last" = "$3" ] && [ "$DTRUN_ATTEMPT" = 1 ] && await_save $((last / 5 * 5)) && mkdir ckpt/checkpoint-99 &&
            echo 99 >ckpt/checkpoint-99/step && exit 7
    done
    exit 0
    ;;
last) # overwrites one file, and one in a folder, whose names contain no step
    mkdir -p held
    for step in 1 2 3 4 5 6; do
        say $step 0.5
        echo $step >last.pt
        echo $step >held/step
        sleep 0.15
    done
    [ "$DTRUN_ATTEMPT" = 1 ] && await_save '[456]' && exit 7
    exit 0
    ;;
signalled)
    trap 'echo "got $2"; touch saved; exit 0' "$2"
    trap 'exit 3' TERM
    say 1 0.5
    while :; do sleep 0.1; done
    ;;
*) exit 64 ;;
esac
