/* record: runs a script with stand-ins for launchers, which note their exact words instead of starting a training.
 *
 * Stand-ins  torchrun, accelerate, deepspeed, mpirun, mpiexec, srun, sbatch, fairseq-train, and python only for
 *            "-m torch.distributed.*"; first in PATH, and functions of bash, which also count after the script changed
 *            PATH. Each notes its arguments, environment and folder, and ends with 0.
 * Runs       everything else of the script, really; also a launcher that is called by its path
 * Ownership  records live in the arena
 */
#ifndef DT_RUNNER_CONVERT_RECORD_H
#define DT_RUNNER_CONVERT_RECORD_H

#include "runner/cli/command.h"
#include "runner/convert/words.h"

typedef struct dt_record {
    char **words;
    int count;
    dt_shell_words changed; /* variables NAME=value that the script set */
    const char *folder;     /* NULL: that in which the script was started */
} dt_record;

typedef struct dt_records {
    dt_record *items;
    size_t count;
} dt_records;

/* Asks, unless --yes is given, and runs the command. DT_ERR_USAGE: refused, interrupted, or nothing was noted. */
dt_status dt_record_run(dt_records *out, char **words, int count, dt_call *call, dt_error *err);

#endif
