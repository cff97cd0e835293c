#!/usr/bin/env bash
# Checkpoints of a command on two hosts that share no folder: where only rank 0 saves, where each rank saves its own
# part, and where one file is overwritten. A restart and a resume send every host the files that it lacks, below its own
# folder.
. "$(dirname "$0")/lib.sh"
hosts 2 apart
work=$net/launch/program
mkdir "$work"
# Saves a checkpoint in each of `steps` steps, waits until those of `wait` are downloaded, and fails once.
cat >"$work/saves.py" <<'END'
import json, os, sys, time
rank, attempt, start = os.environ['RANK'], int(os.environ['DTRUN_ATTEMPT']), os.environ['DTRUN_RESUME_FROM']
how, steps = sys.argv[1], int(sys.argv[2])
print('rank', rank, 'attempt', attempt, 'from', start or 'nothing', flush=True)
done = 0
if start:
    assert start.startswith(os.environ['HOME'] + '/.local/state/dtrun/nodes/' + os.environ['DTRUN_RUN_ID']), start
    if how == 'shards':
        parts = sorted(os.listdir(start))
        print('rank', rank, 'parts', *parts, flush=True)
        done = int(open(f'{start}/part-{rank}').read())
    else:
        done = int(open(start).read())
    print('rank', rank, 'continues at', done, flush=True)
os.makedirs('out', exist_ok=True)
while done < steps:
    time.sleep(0.1)
    done += 1
    if how == 'shards':
        os.makedirs(f'out/step-{done}', exist_ok=True)
        open(f'out/step-{done}/part-{rank}', 'w').write(str(done))
        open(f'out/step-{done}/same', 'w').write('the same')
        open(f'out/step-{done}/own', 'w').write(rank)
    elif rank == '0':
        name = 'out/last' if how == 'last' else f'out/step-{done}'
        open(name + '.tmp', 'w').write(str(done))
        os.rename(name + '.tmp', name)
    if rank == '0':
        print(json.dumps({'step': done, 'loss': 1}), flush=True)
    if done == 5 and attempt == 1:
        while not os.path.exists(sys.argv[3]):
            time.sleep(0.1)
        if how == 'last':
            open('out/last', 'w').write('half of the next')
            while rank != '1':
                time.sleep(1)
        if rank == '1':
            sys.exit(5)
        time.sleep(60)
END
cat >"$net/launch/r.yaml" <<END
nodes: [host1, host2]
workdir: program
command: python3 saves.py {args.how} 8 $net/go
args: {how: rank0}
processes: 1
metrics: json
grace_seconds: 1
checkpoints: {path: "out/step-{step}", settle: 0.5}
END
output() { "$dtrun" logs "$1" >"$net/out"; }
says() { grep -qF -- "$1" "$net/out" || fail "no '$1' in: $(cat "$net/out")"; }
folder_of() { echo "$net/launch/state/dtrun/runs/$(value "$1" "o['run']")"; }
brought() { [ -e "$(folder_of "$1")/saved/step-5.json" ] || [ "$(cat "$(folder_of "$1")"/saved/*/last 2>/dev/null)" = 5 ]; }
begin_run() { # name code options...
    rm -f "$net/go"
    wants 0 "" "$dtrun" launch --detach "$net/launch/r.yaml" --set "name=$1" "${@:3}"
    await 20 brought "$1"
    touch "$net/go"
    wants "$2" "" "$dtrun" wait "$1"
    output "$1"
}

wants 0 "is brought to the folder 'saved'" "$dtrun" launch --dry-run "$net/launch/r.yaml"
begin_run rank0 0
for rank in 0 1; do says "rank $rank continues at 5"; done
[ "$(grep -c 'attempt 2 from /root/.local/state/dtrun/nodes/.*/out/step-5$' "$net/out")" -eq 2 ] || fail "not below its folder: $(cat "$net/out")"
is "the copy" "$(cat "$(folder_of rank0)/saved/step-8/step-8")" 8
is "how many are kept" "$(ls "$(folder_of rank0)"/saved/*.json | wc -l)" 2
wants 0 "$(folder_of rank0)/saved/step-8/step-8" "$dtrun" checkpoints rank0
wants 0 "$(folder_of rank0)/saved/step-8/step-8" "$dtrun" show rank0

# Each host gets the parts of the other one, and its own file if both have one of this name; also on a resume after the
# copies of one host are gone.
begin_run shards 1 --set args.how=shards --set failure.max_restarts=0
is "the parts here" "$(cd "$(folder_of shards)/saved/step-5/step-5" && cat own part-0 part-1 same)" "055the same"
is "the other file" "$(cat "$(folder_of shards)"/saved/step-5.node-1/step-5/own)" 1
on host2 sh -c 'rm -r /root/.local/state/dtrun/nodes/*/workdir-*[0-9]/out/step-5'
wants 0 "" "$dtrun" resume shards --wait
output shards
for rank in 0 1; do says "rank $rank parts own part-0 part-1 same"; says "rank $rank continues at 5"; done
is "own files" "$(for host in host1 host2; do on $host sh -c 'cat /root/.local/state/dtrun/nodes/*/workdir-*[0-9]/out/step-5/own'; done)" 01

# One file that was being overwritten: the complete copy is placed next to it, and the program's file stays.
begin_run over 0 --set args.how=last --set checkpoints.path=out/last
for rank in 0 1; do says "rank $rank continues at 5"; done
says "/continued/last"

# If this is switched off, the launch reports it.
wants 0 "cannot work unless each node saves all that it reads" "$dtrun" launch --dry-run "$net/launch/r.yaml" --set checkpoints.max_mb=0

# Restarts continue after steps, with growing pauses; a stop ends a pause.
cat >"$net/launch/steps.yaml" <<'END'
command: 'echo "{\"step\": $DTRUN_ATTEMPT, \"loss\": 1}"; exit 3'
shell: true
metrics: json
failure: {max_restarts: 9}
END
wants 0 "" "$dtrun" launch --detach "$net/launch/steps.yaml"
waits() { grep -qs "restarting in [34]" "$(folder_of steps)/supervisor.log"; }
await 20 waits
wants 0 "" "$dtrun" stop steps
is "the state" "$(value steps "o['state']")" stopped
is "the attempts" "$(value steps "o['attempt']")" 3
