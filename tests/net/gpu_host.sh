# Shared code of tests of GPUs that several people use: sourced after lib.sh, once `hosts` has run.
#
#   gpu_host host1 2                 host1 gets two GPUs, which are files of its driver and an nvidia-smi that lists them,
#                                    and two users, alice and bob, whom ssh lets in
#   as alice DTRUN-WORDS...          dtrun with the state folder of alice, in $net/launch/alice
#   smi HOST LINE...                 programs on its GPUs from now on: "GPU, PID, COMMAND"
#   launch_as alice OPTIONS...       launches $net/launch/r.yaml, a program that holds GPUs of host1 until it is stopped
#   is_state alice RUN STATE         gives_reason alice RUN TEXT (of `dtrun queue`)      id_of alice RUN
uuid() { printf 'GPU-%08d-0000-0000-0000-00000000000%d' "$1" "$1"; }

gpu_host() { # host gpus
    local gpu lines='' passwd=$net/$1/passwd
    chmod 711 "$net" "$net/$1"
    chmod 644 "$net/$1/authorized_keys"
    { cat /etc/passwd; echo "alice:*:4001:4001::/home/alice:/bin/sh"; echo "bob:*:4002:4002::/home/bob:/bin/sh"; } >"$passwd"
    for gpu in $(seq 0 $(($2 - 1))); do lines+="$gpu, $(uuid "$gpu")"$'\n'; done
    : >"$net/$1/programs"
    printf '%s' "$lines" >"$net/$1/gpus"
    cat >"$net/$1/nvidia-smi" <<END
#!/bin/sh
case "\$1" in
*compute-apps*) cat $net/$1/programs ;;
*utilization*) while :; do sed 's/^[0-9]*, //; s/\$/, 50, 1024, 81559, 300.5, 45/' $net/$1/gpus; sleep 0.2; done ;;
*memory.used*) sed 's/\$/, 0/' $net/$1/gpus ;;
*driver_version*) sed 's/.*/550.1, 81559, 80000, NVIDIA Test Card/' $net/$1/gpus ;;
*) cat $net/$1/gpus ;;
esac
END
    chmod 755 "$net/$1/nvidia-smi"
    on "$1" sh -c "mount --bind $passwd /etc/passwd && mount -t tmpfs tmpfs /home &&
        mkdir -m 700 /home/alice /home/bob && chown 4001:4001 /home/alice && chown 4002:4002 /home/bob &&
        mount -t tmpfs tmpfs /usr/local/bin && cp $net/$1/nvidia-smi /usr/local/bin/nvidia-smi &&
        mount -t tmpfs tmpfs /proc/driver && mkdir -p /proc/driver/nvidia &&
        echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.1  Sat Aug 19' >/proc/driver/nvidia/version"
}

smi() { # host line...
    local host=$1 line
    shift
    for line; do echo "$(uuid "${line%%,*}"),${line#*,}"; done >"$net/$host/programs.new"
    cat "$net/$host/programs.new" >"$net/$host/programs" # in place: the host has the file bound
}

as() { # user words...
    local user=$1
    shift
    XDG_STATE_HOME=$net/launch/$user "$dtrun" "$@"
}

end_runs_of() { # user...
    local user
    for user; do
        XDG_STATE_HOME=$net/launch/$user
        end_runs
    done
}

undo() { end_runs_of alice bob; "$net_sh" down "$net"; }

cat >"$net/launch/r.yaml" <<'YAML'
command: sh -c 'setsid sleep 100000 & exec sleep 100000'
workdir: /
gpus: 1
grace_seconds: 1
failure: {max_restarts: 0}
YAML
launch_as() { # user options...
    as "$1" launch "$net/launch/r.yaml" --set "nodes=[$1@host1]" "${@:2}"
}
state() { as "$1" status "$2" --json 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)["state"])' 2>/dev/null; }
is_state() { [ "$(state "$1" "$2")" = "$3" ]; }
id_of() { as "$1" status "$2" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["run"])'; }
reason() { as "$1" queue --json | python3 -c "import json, sys; print(next(r['reason'] for r in json.load(sys.stdin) if r['name'] == '$2'))"; }
gives_reason() { [[ "$(reason "$1" "$2")" == *"$3"* ]]; }
