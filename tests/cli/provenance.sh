#!/usr/bin/env bash
# A run records where it comes from: the command, the program, the commit of its recipe, its data; also after the
# history was deleted.
. "$(dirname "$0")/lib.sh"
make_tiny

origin() { # condition on p, the provenance of the first attempt
    expect 0 show "$run" --json
    json "[$1 for p in o['provenance'][:1]] == [True]"
}

cp "$work/tiny.yaml" "$work/it's mine.yaml"
expect 0 launch --wait --json "$work/it's mine.yaml" --set schedule.steps=20
run=$(field "o['run']")
origin "p['attempt'] == 1 and p['command'][1:] == ['launch', '--wait', '--json', \"$work/it's mine.yaml\", '--set', 'schedule.steps=20']"
origin "p['host'] == '$(hostname)' and p['user'] == '$(id -un)' and p['folder'] == '$PWD'"
origin "[p['dtrun'], '(' + p['commit'] + ')'] == '$("$dtrun" --version)'.split()[1:]"
origin "p['git'] is None" # the folder is not a repository
origin "p['files'] == 1 and p['data'][0]['path'] == '$work/corpus.txt'"
origin "p['data'][0]['bytes'] == $(stat -c %s "$work/corpus.txt") and len(p['data'][0]['xxh3_128']) == 32"
json "list(o)[1:3] == ['changes', 'provenance']"
expect 0 show "$run"
says "launch --wait --json '$work/it'\''s mine.yaml' --set" "corpus.txt  " "$(id -un) on $(hostname)"
lacks "git"

# Facts that only the store had are also in the run's folder.
rm "$work/state/dtrun/store.db"*
origin "p['command'][1] == 'launch' and p['files'] == 1"

# Without git, or with a git that never answers, a run starts nevertheless.
mkdir "$work/bin"
printf '#!/bin/sh\nexec sleep 1000\n' >"$work/bin/git"
chmod +x "$work/bin/git"
PATH=$work/bin:$PATH expect 0 launch --wait --json "$work/tiny.yaml" --set schedule.steps=20
run=$(field "o['run']")
origin "p['git'] is None"

# The secret of a webhook is not recorded.
expect 0 launch --wait --json "$work/tiny.yaml" --set schedule.steps=20 --set 'notify.webhook=http://127.0.0.1:1/short'
run=$(field "o['run']")
origin "p['command'][-1] == 'notify.webhook=(not shown)'"

command -v git >/dev/null || exit 0
git -C "$work" init -q
printf '*\n!tiny.yaml\n' >"$work/.gitignore"
git -C "$work" add tiny.yaml
git -C "$work" -c user.name=a -c user.email=a@b commit -qm first
expect 0 launch --wait --json "$work/tiny.yaml" --set schedule.steps=20
run=$(field "o['run']")
commit=$(git -C "$work" rev-parse HEAD)
origin "p['git'] == {'commit': '$commit', 'changed': 0}"
expect 0 show "$run"
says "${commit:0:12}, clean"
echo "# changed" >>"$work/tiny.yaml"
expect 0 resume "$run" --wait --json --set schedule.steps=40
expect 0 show "$run" --json
json "[(p['attempt'], p['git']['changed'], p['command'][1]) for p in o['provenance']] == [(1, 0, 'launch'), (2, 1, 'resume')]"
expect 0 show "$run"
says "${commit:0:12}, 1 file changed" "command of 2"
