/* launcher: reads what precedes the training program in a command: NAME=value, env, nohup, timeout, numactl, conda
 * run, srun, mpirun, python -m torch.distributed.launch, torchrun, deepspeed, accelerate launch. Finds the numbers of nodes and devices, and the
 * program.
 *
 * Ownership  borrows the words; the draft's arena has the rest
 */
#ifndef DT_RUNNER_CONVERT_LAUNCHER_H
#define DT_RUNNER_CONVERT_LAUNCHER_H

#include <stdint.h>

#include "runner/convert/flags.h"

typedef struct dt_launcher_host {
    const char *name;
    int64_t processes; /* on this host */
} dt_launcher_host;

typedef struct dt_launcher {
    const char *program;        /* as written; "" if there is none */
    const dt_shell_word *words; /* of the program, without its name */
    size_t count;
    int64_t nodes, nodes_min;            /* 0: not given */
    int64_t per_node, total;             /* processes; 0: not given */
    int64_t visible;                     /* devices of CUDA_VISIBLE_DEVICES; -1: not given */
    const char *nodes_from, *from;       /* the flags that gave nodes and processes */
    const char *first_node, *first_from; /* --master_addr; NULL: not given */
    dt_launcher_host *hosts;             /* of mpirun; as many as `nodes`, or NULL */
    bool uneven;                         /* hosts have different numbers of processes */
    bool slurm;                          /* a Slurm job provides the nodes */
    bool distributes;                    /* a launcher of several processes was there */

    /* Only if the recipe gets the command itself (`keeps`): */
    bool keeps;
    dt_shell_words before; /* what precedes the program in the recipe's command: wrappers, Python */
    dt_shell_words env;    /* NAME=value */
    size_t wrappers;       /* the first words of `before`, which are not a launcher's Python */
    bool by_node;          /* `before` is a launcher that starts the processes of a node */
    bool adds_local_rank;  /* the launcher adds --local_rank=N to the program's arguments */
} dt_launcher;

/* Reads the launcher; parts that cannot be carried go to the draft's `left`. `exported`: variables that the script
 * exported before. keeps: the recipe gets the command, with its wrappers, Python and variables. */
dt_status dt_launcher_read(dt_launcher *out, const dt_shell_command *command,
                           const dt_shell_words *exported, bool keeps, dt_draft *draft,
                           dt_error *err);

/* Takes nodes and processes from `job` if it has them. The launcher's own values then go to the draft's `same`, or to
 * `left` if they differ. */
void dt_launcher_join(dt_launcher *launcher, const dt_launcher *job, dt_draft *draft);

/* The text of Slurm's table for options that are passed to the job unchanged. */
#define DT_SLURM_PASSED "slurm.options, unchanged"
/* slurm_flags.c: reads nodes and devices from options of sbatch or srun. */
void dt_slurm_read_size(dt_launcher *out, const dt_flags *flags, dt_draft *draft);

/* Returns the devices of a node, and of all nodes; 0: not given. */
int64_t dt_launcher_devices(const dt_launcher *launcher);
int64_t dt_launcher_world(const dt_launcher *launcher);

/* Sets the fields nodes, nodes_min and gpus. */
void dt_launcher_carry(const dt_launcher *launcher, dt_draft *draft);

/* Returns the file name, "train.py" for "fairseq_cli/train.py". */
const char *dt_launcher_name(const char *program);

extern const dt_flag_table dt_launcher_torch_flags, dt_launcher_mpi_flags,
    dt_launcher_deepspeed_flags, dt_slurm_flags;

#endif
