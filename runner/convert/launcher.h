/* launcher: what stands in front of a training program: NAME=value, env, nohup, srun, mpirun, python -m
 * torch.distributed.launch, torchrun. It says how many nodes and devices there are, and which program it is.
 *
 * Ownership  borrows the words; the draft's arena has the rest
 */
#ifndef DT_RUNNER_CONVERT_LAUNCHER_H
#define DT_RUNNER_CONVERT_LAUNCHER_H

#include <stdint.h>

#include "runner/convert/flags.h"

typedef struct dt_launcher {
    const char *program;        /* as it is named; "" where there is none */
    const dt_shell_word *words; /* of the program, without its name */
    size_t count;
    int64_t nodes, nodes_min;      /* 0: not said */
    int64_t per_node, total;       /* processes; 0: not said */
    int64_t visible;               /* devices of CUDA_VISIBLE_DEVICES; -1: not said */
    const char *nodes_from, *from; /* the flags that said so */
    const char *first_node;        /* --master_addr; NULL: not said */
    bool slurm;                    /* nodes are Slurm's */
} dt_launcher;

/* What it cannot carry is among the draft's `left`. */
dt_status dt_launcher_read(dt_launcher *out, const dt_shell_command *command, dt_draft *draft,
                           dt_error *err);

/* Devices of a node, of all nodes; 0: not said. */
int64_t dt_launcher_devices(const dt_launcher *launcher);
int64_t dt_launcher_world(const dt_launcher *launcher);

/* nodes, nodes_min, gpus. */
void dt_launcher_carry(const dt_launcher *launcher, dt_draft *draft);

/* "train.py" of "fairseq_cli/train.py". */
const char *dt_launcher_name(const char *program);

extern const dt_flag_table dt_launcher_torch_flags, dt_launcher_mpi_flags, dt_slurm_flags;

#endif
