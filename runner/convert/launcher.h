/* launcher: reads what precedes the training program in a command: NAME=value, env, nohup, time, uv run and the like, srun,
 * mpirun, python -m torch.distributed.run, torchrun, deepspeed, accelerate launch. Finds the nodes, processes and GPUs as
 * the launcher means them, and the program.
 *
 * Errors     DT_ERR_USAGE with a reason: an unknown flag, and everything that a recipe cannot express
 * Ownership  borrows the words; the draft's arena has the rest
 */
#ifndef DT_RUNNER_CONVERT_LAUNCHER_H
#define DT_RUNNER_CONVERT_LAUNCHER_H

#include <stdint.h>

#include "runner/convert/flags.h"
#include "runner/convert/script.h"

#define DT_LAUNCHER_NODES_MOST 1024

typedef struct dt_launcher_host {
    const char *name;
    int64_t processes; /* on this host */
} dt_launcher_host;

typedef struct dt_launcher {
    const char *program;        /* as written; "" if there is none */
    bool in_path;               /* it was $(which NAME) */
    const dt_shell_word *words; /* of the program, without its name */
    size_t count;
    const char *by;           /* the launcher of the processes, such as "torchrun"; NULL: none */
    int64_t nodes, nodes_min; /* 0: not given */
    int64_t asked, asked_min; /* nodes of the launcher `by`; 0: not given */
    const char *asked_from;
    int64_t per_node, total;       /* processes; 0: not given */
    int64_t gpus;                  /* visible on each node; -1: none, 0: not given */
    const char *devices;           /* their numbers, if these are not 0, 1, ...; NULL */
    const char *nodes_from, *from; /* the flags that gave nodes and processes */
    const char *gpus_from, *first_node, *first_from; /* NULL: not given */
    dt_launcher_host *hosts;                         /* with names; as many as `nodes`, or NULL */
    bool uneven;                                     /* hosts have different numbers of processes */
    bool any;                                        /* processes are not GPUs: mpirun, srun */
    bool all;                                        /* one process for each GPU of a node */
    const char *folder;  /* of the script, in which files are searched too; NULL */
    const char *workdir; /* in which the command starts; NULL: the current one */
    bool named;          /* the user named the tool: train.py is the tool's */

    /* Slurm */
    bool slurm, steps;    /* a job provides the nodes; srun starts the processes */
    int64_t tasks;        /* on each node; 0: not given */
    int64_t tasks_total;  /* if the nodes are not given */
    int64_t task_threads; /* cores of a task; 0: not given */
    const char *threads_from;

    /* Only if the recipe gets the command itself (`keeps`): */
    bool keeps;
    dt_shell_words before; /* what precedes the program in the recipe's command: wrappers, Python */
    dt_shell_words env;    /* NAME=value; with `open` set: NAME of the environment of the launch */
    bool by_node;          /* `before` is a launcher that starts the processes of a node */
    const char
        *local_rank; /* the argument that the launcher adds, "--local_rank={local_rank}"; NULL */
} dt_launcher;

/* Reads the launcher; parts that are not carried go to the draft's `left`. `job`: the size of the Slurm job
 * that the script asks for; NULL: none. keeps: the recipe gets the command, with its wrappers, Python and
 * variables. */
dt_status dt_launcher_read(dt_launcher *out, const dt_script *script, const dt_launcher *job,
                           bool keeps, dt_draft *draft, dt_error *err);

/* launcher_torch.c: read the flags of torchrun, deepspeed and accelerate, and drop their words. */
dt_status dt_launcher_torch(dt_launcher *l, const char *launcher, bool older, dt_draft *draft,
                            dt_error *err);
dt_status dt_launcher_deepspeed(dt_launcher *l, const char *launcher, dt_draft *draft,
                                dt_error *err);
dt_status dt_launcher_accelerate(dt_launcher *l, size_t words, dt_draft *draft, dt_error *err);
/* mpi.c: read the flags of mpirun; read a hostfile, of which `most` hosts count (0: all). */
dt_status dt_launcher_mpi(dt_launcher *l, dt_draft *draft, dt_error *err);
dt_status dt_launcher_hostfile(dt_launcher *l, const char *path, int64_t most, const char *from,
                               dt_draft *draft, dt_error *err);

/* Returns true for a name that can be a host in a recipe. */
bool dt_launcher_is_host(const char *text, size_t length);

/* Returns the path of a file that the command names. */
const char *dt_launcher_path(const dt_launcher *l, const char *path, dt_arena *arena);

void dt_launcher_drop(dt_launcher *l, size_t words);
/* Adds a word to those that precede the program. */
void dt_launcher_keep(dt_launcher *l, const dt_shell_word *word, dt_draft *draft);
void dt_launcher_keep_text(dt_launcher *l, const char *text, dt_draft *draft);
/* Adds "NAME=value", or a NAME of the environment, to the variables of the program. */
void dt_launcher_variable(dt_launcher *l, const char *text, const char *open, dt_draft *draft);
/* Sets the GPUs to a list such as "4,5,6,7". */
void dt_launcher_choose(dt_launcher *l, const char *list, const char *from, dt_draft *draft);

/* The text of Slurm's table for options that are passed to the job unchanged. */
#define DT_SLURM_PASSED "slurm.options, unchanged"
/* slurm_flags.c: reads nodes, tasks and devices from options of sbatch or srun. */
dt_status dt_slurm_read_size(dt_launcher *out, const dt_flags *flags, dt_error *err);

/* Returns the devices of a node, and of all nodes, for dtrun's own training; 0: not given. */
int64_t dt_launcher_devices(const dt_launcher *launcher);
int64_t dt_launcher_world(const dt_launcher *launcher);

/* Sets the fields nodes, nodes_min, gpus, and for a command `processes`. */
dt_status dt_launcher_carry(const dt_launcher *launcher, dt_draft *draft, dt_error *err);

/* Returns the file name, "train.py" for "fairseq_cli/train.py". */
const char *dt_launcher_name(const char *program);
/* refused.c: returns why a program is refused; NULL: it is not. */
const char *dt_script_refused_program(const char *name);

extern const dt_flag_table dt_launcher_torch_flags, dt_launcher_mpi_flags,
    dt_launcher_deepspeed_flags, dt_launcher_accelerate_flags, dt_slurm_flags, dt_srun_flags;

#endif
