/* slurm_flags: lists the options of sbatch and srun, and reads nodes and devices from them. */
#include <stdlib.h>
#include <string.h>

#include "runner/convert/launcher.h"

#include "base/banned.h"

#define OWN "dtrun sets the job's"

/* one flag per line */
/* clang-format off */
static const dt_flag rows[] = {
    {"--nodes", "-N", DT_TAKES_TEXT, DT_FLAG_PART, "nodes: slurm:N, and nodes_min of MIN-MAX", NULL},
    {"--ntasks-per-node", NULL, DT_TAKES_INT, DT_FLAG_PART, "gpus, if nothing else sets the number", NULL},
    {"--ntasks", "-n", DT_TAKES_INT, DT_FLAG_PART, "gpus, divided among the nodes, if nothing else sets the number", NULL},
    {"--gpus-per-node", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "gpus; with a type also slurm.options", NULL},
    {"--gres", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "gpus of gpu:N; slurm.options", NULL},
    {"--gpus", "-G", DT_TAKES_TEXT, DT_FLAG_PART, "gpus, divided among the nodes", NULL},
    {"--gpus-per-task", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "gpus, times the tasks of a node", NULL},
    {"--cpus-per-task", "-c", DT_TAKES_INT, DT_FLAG_FIELD, "threads", NULL},
    {"--job-name", "-J", DT_TAKES_TEXT, DT_FLAG_PART, "name", NULL},
    {"--partition", "-p", DT_TAKES_TEXT, DT_FLAG_PART, DT_SLURM_PASSED, NULL},
    {"--time", "-t", DT_TAKES_TEXT, DT_FLAG_PART, DT_SLURM_PASSED, NULL},
    {"--account", "-A", DT_TAKES_TEXT, DT_FLAG_PART, DT_SLURM_PASSED, NULL},
    {"--qos", "-q", DT_TAKES_TEXT, DT_FLAG_PART, DT_SLURM_PASSED, NULL},
    {"--constraint", "-C", DT_TAKES_TEXT, DT_FLAG_PART, DT_SLURM_PASSED, NULL},
    {"--reservation", NULL, DT_TAKES_TEXT, DT_FLAG_PART, DT_SLURM_PASSED, NULL},
    {"--nodelist", "-w", DT_TAKES_TEXT, DT_FLAG_PART, DT_SLURM_PASSED, NULL},
    {"--exclude", "-x", DT_TAKES_TEXT, DT_FLAG_PART, DT_SLURM_PASSED, NULL},
    {"--mem", NULL, DT_TAKES_TEXT, DT_FLAG_PART, DT_SLURM_PASSED, NULL},
    {"--mem-per-cpu", NULL, DT_TAKES_TEXT, DT_FLAG_PART, DT_SLURM_PASSED, NULL},
    {"--mem-per-gpu", NULL, DT_TAKES_TEXT, DT_FLAG_PART, DT_SLURM_PASSED, NULL},
    {"--mail-type", NULL, DT_TAKES_TEXT, DT_FLAG_PART, DT_SLURM_PASSED, NULL},
    {"--mail-user", NULL, DT_TAKES_TEXT, DT_FLAG_PART, DT_SLURM_PASSED, NULL},
    {"--dependency", "-d", DT_TAKES_TEXT, DT_FLAG_PART, DT_SLURM_PASSED, NULL},
    {"--comment", NULL, DT_TAKES_TEXT, DT_FLAG_PART, DT_SLURM_PASSED, NULL},
    {"--exclusive", NULL, DT_TAKES_NOTHING, DT_FLAG_PART, DT_SLURM_PASSED, NULL},
    {"--output", "-o", DT_TAKES_TEXT, DT_FLAG_LEFT, OWN " output: see 'dtrun logs'", NULL},
    {"--error", "-e", DT_TAKES_TEXT, DT_FLAG_LEFT, OWN " output: see 'dtrun logs'", NULL},
    {"--chdir", "-D", DT_TAKES_TEXT, DT_FLAG_LEFT, OWN " folder; paths are relative to the recipe's", NULL},
    {"--array", "-a", DT_TAKES_TEXT, DT_FLAG_LEFT, "a job is one run; 'sweep' makes several", NULL},
    {"--requeue", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, "'dtrun resume' continues from the last checkpoint", NULL},
    {"--no-requeue", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, "dtrun always does this", NULL},
    {"--signal", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "'time_limit' saves and ends a run in time", NULL},
    {"--open-mode", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, OWN " output: see 'dtrun logs'", NULL},
    {"--export", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "ranks get the environment that their agent makes", NULL},
    {"--label", "-l", DT_TAKES_NOTHING, DT_FLAG_LEFT, "'dtrun logs' shows the rank of each line", NULL},
    {"--kill-on-bad-exit", "-K", DT_TAKES_TEXT, DT_FLAG_LEFT, "dtrun notices at once when a rank ends", NULL},
    {"--cpu-bind", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "dtrun divides the cores of a node ('threads')", NULL},
};
/* clang-format on */

const dt_flag_table dt_slurm_flags = {
    .program = "sbatch", .flags = rows, .count = sizeof(rows) / sizeof(rows[0]), .attached = true};

/* Returns the number of devices in "4", "a100:4", "gpu:4" or "gpu:a100:4(S:0-1)", of which `length` bytes count, or 0.
 * Slurm takes "gpu" and "gpu:a100" for one. */
static int64_t devices_of(const char *text, size_t length)
{
    const char *digits = text, *colon;
    char *end;
    long long count;

    length = strcspn(text, "(") < length ? strcspn(text, "(") : length;
    while ((colon = memchr(digits, ':', length - (size_t)(digits - text))) != NULL)
        digits = colon + 1;
    count = strtoll(digits, &end, 10);
    if (digits < text + length && end == text + length)
        return count >= 1 && count <= 1024 ? count : 0;
    return strncmp(text, "gpu", 3) == 0 && (length == 3 || text[3] == ':') ? 1 : 0;
}

/* Returns the sum of a list such as "gpu:a100:2,gpu:h100:2". With `kinds`, as in --gres, only items of the kind "gpu"
 * count: "gpu:4,nvme:1" has 4. */
static int64_t devices_in(const char *text, bool kinds)
{
    int64_t count = 0;
    size_t length;

    for (const char *at = text; *at != '\0'; at += length + (at[length] == ',')) {
        length = strcspn(at, ",");
        if (!kinds || strncmp(at, "gpu", 3) == 0)
            count += devices_of(at, length);
    }
    return count;
}

static void read_nodes(dt_launcher *out, const dt_flags *flags, dt_draft *draft)
{
    const char *text = dt_flags_text(flags, "--nodes", NULL),
               *from = dt_flags_from(flags, "--nodes");
    long long first, last;
    char *end;

    if (text == NULL)
        return;
    first = last = strtoll(text, &end, 10);
    if (*end == '-')
        last = strtoll(end + 1, &end, 10);
    if (*end != '\0' || first < 1 || last < first || last > 1024) {
        dt_draft_left(draft, from, "expected 1 to 1024 nodes, or MIN-MAX");
        return;
    }
    out->nodes = last;
    out->nodes_min = first < last ? first : 0;
    out->nodes_from = from;
}

/* Computes the devices of a node from the tasks per node and the devices of each task. */
static void read_tasks(dt_launcher *out, const dt_flags *flags, dt_draft *draft)
{
    int64_t nodes = out->nodes > 0 ? out->nodes : 1;
    int64_t total = (int64_t)dt_flags_number(flags, "--ntasks", 0);
    int64_t per_node = (int64_t)dt_flags_number(flags, "--ntasks-per-node", 0);
    int64_t each = devices_in(dt_flags_text(flags, "--gpus-per-task", ""), false);
    const char *tasks = per_node > 0 ? "--ntasks-per-node" : "--ntasks", *from;

    if (per_node == 0 && total > 0 && total % nodes == 0)
        per_node = total / nodes;
    if (per_node <= 1 && each == 0) /* a single task per node starts the other processes itself */
        return;
    if (per_node == 0)
        per_node = 1;
    from = dt_flags_given(flags, tasks) ? dt_flags_from(flags, tasks) : "";
    out->per_node = per_node * (each > 0 ? each : 1);
    out->from = each > 0
                    ? dt_arena_printf(draft->arena, "%s%s%s", from, from[0] != '\0' ? ", " : "",
                                      dt_flags_from(flags, "--gpus-per-task"))
                    : from;
}

void dt_slurm_read_size(dt_launcher *out, const dt_flags *flags, dt_draft *draft)
{
    static const char *const names[] = {"--gpus-per-node", "--gres", "--gpus", NULL};
    int64_t nodes;

    read_nodes(out, flags, draft);
    nodes = out->nodes > 0 ? out->nodes : 1;
    for (size_t i = 0; names[i] != NULL && out->per_node == 0; i++) {
        const char *text = dt_flags_text(flags, names[i], "");
        int64_t count = devices_in(text, strcmp(names[i], "--gres") == 0);

        if (count == 0)
            continue;
        out->per_node = strcmp(names[i], "--gpus") == 0 ? (count + nodes - 1) / nodes : count;
        out->from = dt_flags_from(flags, names[i]);
    }
    if (out->per_node == 0)
        read_tasks(out, flags, draft);
}
