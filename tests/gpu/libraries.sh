# shellcheck shell=bash disable=SC2154
# libraries: sourced; finds CUDA's libraries for the programs in $bin, and prints clearly what is missing. They may be
# in the loader's path, in a toolkit, or in Python's packages of them (site-packages/nvidia),
# which need no Python to be found. Sets, unless they are set: DTRUN_CUDNN, DTRUN_NCCL (base/library.h),
# LD_LIBRARY_PATH for the libraries that libdtrun-cuda.so is linked to, and NCCL_ROOT, CUBLAS_ROOT for a build.

# Folders of libraries: next to the programs, Python's packages, the toolkits. Python's come before the toolkits,
# because PyTorch brings newer ones than the system has, and the comparison with it is fair with its own.
library_folders() {
    local site
    printf '%s\n' "$bin"
    {
        [ -z "$python" ] || "$python" -c 'import sys; print(*sys.path, sep="\n")' 2> /dev/null
        printf '%s\n' "${VIRTUAL_ENV:-/nowhere}"/lib/python3*/site-packages \
            "${CONDA_PREFIX:-/nowhere}"/lib/python3*/site-packages /opt/*/lib/python3*/site-packages \
            /usr/local/lib/python3*/*-packages /usr/lib/python3*/*-packages \
            "${HOME:-/nowhere}"/.local/lib/python3*/site-packages
    } | while read -r site; do
        printf '%s\n' "$site"/nvidia/*/lib
    done
    printf '%s\n' /usr/local/cuda*/lib64 /usr/local/cuda*/lib /usr/local/cuda*/targets/*/lib /usr/lib/x86_64-linux-gnu
}

# library_path NAME...: path of the first of these libraries that exists
library_path() {
    local name folder
    for name; do
        while read -r folder; do
            if [ -e "$folder/$name" ]; then
                echo "$folder/$name"
                return
            fi
        done <<< "$folders"
        folder=$(ldconfig -p 2> /dev/null | awk -v name="$name" '$1 == name {print $NF; exit}')
        if [ -n "$folder" ]; then
            echo "$folder"
            return
        fi
    done
    return 1
}

missing() { # WHAT CONSEQUENCE
    echo "MISSING: $1: $2"
}

# root_of LIBRARY HEADER: the folder with its lib/ and include/, if both exist
root_of() {
    local root
    root=$(dirname "$(dirname "$1")")
    [ -e "$root/include/$2" ] && echo "$root"
}

# The libraries that libdtrun-cuda.so is linked to (cuBLASLt) and that the loader does not find.
find_linked() {
    local name found
    for name in $(ldd "$bin/libdtrun-cuda.so" 2> /dev/null | awk '/not found/ {print $1}'); do
        if found=$(library_path "$name"); then
            LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$(dirname "$found")
            export LD_LIBRARY_PATH
            echo "$name: $found"
        else
            missing "$name" "the programs here need it: build them here (move $bin away), or bring it beside them"
        fi
    done
}

find_libraries() {
    local found
    folders=$(library_folders)
    if found=${DTRUN_CUDNN:-$(library_path libcudnn.so.9)} && [ -e "$found" ]; then
        export DTRUN_CUDNN=$found
        echo "cuDNN: $found"
    else
        unset DTRUN_CUDNN
        missing cuDNN "libcudnn.so.9 is nowhere: attention is ours alone, and what compares the two is left out"
    fi
    if found=${DTRUN_NCCL:-$(library_path libnccl.so.2)} && [ -e "$found" ]; then
        export DTRUN_NCCL=$found
        echo "NCCL: $found"
        [ -n "${NCCL_ROOT:-}" ] || ! found=$(root_of "$found" nccl.h) || export NCCL_ROOT=$found
    else
        missing NCCL "libnccl.so.2 is nowhere: collectives go through the host"
    fi
    if found=$(library_path libcublasLt.so.13 libcublasLt.so.12); then
        echo "cuBLASLt: $found"
        [ -n "${CUBLAS_ROOT:-}" ] || ! found=$(root_of "$found" cublasLt.h) || export CUBLAS_ROOT=$found
    else
        missing cuBLAS "libcublasLt.so is nowhere: nothing of ours runs on a card"
    fi
}

# $python: one with torch, else any, else empty. $torch: its version, or empty.
find_python() {
    local one
    python='' torch=''
    for one in ${DTRUN_PYTHON:-} python3 python /opt/*/bin/python3; do
        command -v "$one" > /dev/null || continue
        [ -n "$python" ] || python=$one
        if torch=$(timeout 60 "$one" -c 'import torch; print(torch.__version__)' 2> /dev/null); then
            python=$one
            echo "PyTorch $torch: $(command -v "$one")"
            return
        fi
    done
    torch=''
    [ -n "$python" ] || missing Python "rates come from the engine alone, without tables"
    missing torch "no Python here has it: there is no peer to measure against (DTRUN_PYTHON names one)"
}
