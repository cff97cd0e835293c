/* slurm_flags: lists the options of sbatch and srun, and reads nodes, tasks and devices from them.
 * tests/peers/launcher_flags.py compares the tables with the programs' own help. */
#include <stdlib.h>
#include <string.h>

#include "runner/convert/launcher.h"

#define OWN "dtrun sets the job's"
#define PASSED(name, letter, takes)                              \
    {                                                            \
        name, letter, takes, DT_FLAG_PART, DT_SLURM_PASSED, NULL \
    }
#define LEFT(name, letter, takes, why)               \
    {                                                \
        name, letter, takes, DT_FLAG_LEFT, why, NULL \
    }
#define REFUSED(name, letter, takes, why)               \
    {                                                   \
        name, letter, takes, DT_FLAG_REFUSED, why, NULL \
    }
#define CORES "dtrun divides the cores of a node among its ranks ('threads')"
#define HELP  "it starts no training"

/* Options that both programs have; one a line. */
/* clang-format off */
#define COMMON \
    {"--nodes", "-N", DT_TAKES_TEXT, DT_FLAG_PART, "nodes: slurm:N, and nodes_min of MIN-MAX", NULL}, \
    {"--ntasks-per-node", NULL, DT_TAKES_INT, DT_FLAG_PART, "processes on each node that srun starts", NULL}, \
    {"--ntasks", "-n", DT_TAKES_INT, DT_FLAG_PART, "processes that srun starts, divided among the nodes", NULL}, \
    {"--gpus-per-node", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "gpus; with a type also slurm.options", NULL}, \
    {"--gres", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "gpus of gpu:N; slurm.options", NULL}, \
    {"--gpus", "-G", DT_TAKES_TEXT, DT_FLAG_PART, "gpus, divided among the nodes", NULL}, \
    {"--gpus-per-task", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "gpus, times the tasks of a node", NULL}, \
    {"--cpus-per-task", "-c", DT_TAKES_INT, DT_FLAG_PART, "threads, if Slurm's tasks are the processes", NULL}, \
    {"--job-name", "-J", DT_TAKES_TEXT, DT_FLAG_PART, "name", NULL}, \
    {"--export", NULL, DT_TAKES_TEXT, DT_FLAG_EACH, "env of NAME=value and NAME", NULL}, \
    {"--chdir", "-D", DT_TAKES_TEXT, DT_FLAG_PART, "workdir.folder", NULL}, \
    PASSED("--partition", "-p", DT_TAKES_TEXT), PASSED("--time", "-t", DT_TAKES_TEXT), \
    PASSED("--time-min", NULL, DT_TAKES_TEXT), PASSED("--account", "-A", DT_TAKES_TEXT), \
    PASSED("--qos", "-q", DT_TAKES_TEXT), PASSED("--constraint", "-C", DT_TAKES_TEXT), \
    PASSED("--reservation", NULL, DT_TAKES_TEXT), PASSED("--nodelist", "-w", DT_TAKES_TEXT), \
    PASSED("--exclude", "-x", DT_TAKES_TEXT), PASSED("--mem", NULL, DT_TAKES_TEXT), \
    PASSED("--mem-per-cpu", NULL, DT_TAKES_TEXT), PASSED("--mem-per-gpu", NULL, DT_TAKES_TEXT), \
    PASSED("--mail-type", NULL, DT_TAKES_TEXT), PASSED("--mail-user", NULL, DT_TAKES_TEXT), \
    PASSED("--dependency", "-d", DT_TAKES_TEXT), PASSED("--comment", NULL, DT_TAKES_TEXT), \
    PASSED("--begin", "-b", DT_TAKES_TEXT), PASSED("--deadline", NULL, DT_TAKES_TEXT), \
    PASSED("--licenses", "-L", DT_TAKES_TEXT), PASSED("--priority", NULL, DT_TAKES_TEXT), \
    PASSED("--nice", NULL, DT_TAKES_MAYBE), PASSED("--wckey", NULL, DT_TAKES_TEXT), \
    PASSED("--tmp", NULL, DT_TAKES_TEXT), PASSED("--mincpus", NULL, DT_TAKES_TEXT), \
    PASSED("--switches", NULL, DT_TAKES_TEXT), PASSED("--cluster-constraint", NULL, DT_TAKES_TEXT), \
    PASSED("--exclusive", NULL, DT_TAKES_MAYBE), PASSED("--contiguous", NULL, DT_TAKES_NOTHING), \
    PASSED("--clusters", "-M", DT_TAKES_TEXT), PASSED("--hold", "-H", DT_TAKES_NOTHING), \
    PASSED("--use-min-nodes", NULL, DT_TAKES_NOTHING), PASSED("--spread-job", NULL, DT_TAKES_NOTHING), \
    PASSED("--reboot", NULL, DT_TAKES_NOTHING), PASSED("--oversubscribe", "-s", DT_TAKES_NOTHING), \
    LEFT("--output", "-o", DT_TAKES_TEXT, OWN " output: see 'dtrun logs'"), \
    LEFT("--error", "-e", DT_TAKES_TEXT, OWN " output: see 'dtrun logs'"), \
    LEFT("--open-mode", NULL, DT_TAKES_TEXT, OWN " output: see 'dtrun logs'"), \
    LEFT("--signal", NULL, DT_TAKES_TEXT, "'time_limit' saves and ends a run in time"), \
    LEFT("--quiet", "-Q", DT_TAKES_NOTHING, OWN " output: see 'dtrun logs'"), \
    LEFT("--verbose", "-v", DT_TAKES_NOTHING, OWN " output: see 'dtrun logs'"), \
    LEFT("--no-kill", "-k", DT_TAKES_MAYBE, "'nodes_min' continues with fewer nodes"), \
    LEFT("--distribution", "-m", DT_TAKES_TEXT, "the ranks of a node have consecutive numbers"), \
    LEFT("--cpu-bind", "--mem-bind", DT_TAKES_TEXT, CORES), \
    LEFT("--hint", "--cpu-freq --core-spec -S --thread-spec --threads-per-core --cores-per-socket --sockets-per-node --extra-node-info -B", DT_TAKES_TEXT, CORES), \
    LEFT("--gpu-bind", "--gpu-freq --gres-flags --cpus-per-gpu", DT_TAKES_TEXT, "every process sees the GPUs of its node, and LOCAL_RANK chooses"), \
    LEFT("--acctg-freq", "--profile --power --bb --bbf --delay-boot --mcs-label", DT_TAKES_TEXT, "dtrun does not need it"), \
    LEFT("--propagate", NULL, DT_TAKES_MAYBE, "ranks get the limits of their agent"), \
    REFUSED("--container", "--container-image --container-mounts --container-workdir --container-name", DT_TAKES_TEXT, "the program of a container: its paths and packages are not those of the nodes"), \
    REFUSED("--gpus-per-socket", "--ntasks-per-socket --ntasks-per-core --ntasks-per-gpu", DT_TAKES_TEXT, "the processes of a node depend on the machine: use --ntasks-per-node"), \
    REFUSED("--overcommit", "-O", DT_TAKES_NOTHING, "a recipe cannot express it: remove it"), \
    REFUSED("--input", "-i", DT_TAKES_TEXT, "a run has no input: let the program read the file"), \
    REFUSED("--help", "-h --usage --version -V", DT_TAKES_NOTHING, HELP)

static const dt_flag sbatch[] = {
    COMMON,
    LEFT("--requeue", NULL, DT_TAKES_NOTHING, "'dtrun resume' continues from the last checkpoint"),
    LEFT("--no-requeue", NULL, DT_TAKES_NOTHING, "dtrun always does this"),
    LEFT("--parsable", "--wait -W --get-user-env --ignore-pbs --test-only", DT_TAKES_MAYBE, "dtrun starts the job itself"),
    LEFT("--export-file", NULL, DT_TAKES_TEXT, "ranks get the environment of the node's login"),
    REFUSED("--array", "-a", DT_TAKES_TEXT, "a job is one run: 'sweep' of the recipe makes several, or remove the option for one of them"),
    REFUSED("--wrap", NULL, DT_TAKES_TEXT, "give the command in it: 'dtrun import command'"),
    REFUSED("--nodefile", "-F --uid --gid", DT_TAKES_TEXT, "a recipe cannot express it"),
};

static const dt_flag srun[] = {
    COMMON,
    LEFT("--label", "-l --unbuffered -u --disable-status -X --quit-on-interrupt --preserve-env -E --exact --overlap --resv-ports", DT_TAKES_NOTHING, "'dtrun logs' shows the rank of each line"),
    LEFT("--kill-on-bad-exit", "-K --immediate -I --compress --send-libs", DT_TAKES_MAYBE, "dtrun notices at once when a rank ends"),
    LEFT("--wait", "-W --mpi --threads -T --slurmd-debug --treewidth --network --msg-timeout", DT_TAKES_TEXT, "dtrun notices at once when a rank ends"),
    REFUSED("--jobid", "--relative -r --het-group", DT_TAKES_TEXT, "it uses a job that runs: launch inside of it with 'nodes: slurm'"),
    REFUSED("--multi-prog", "--pty --no-allocate -Z", DT_TAKES_NOTHING, "a recipe cannot express it"),
    REFUSED("--prolog", "--epilog --task-prolog --task-epilog --bcast --bcast-exclude", DT_TAKES_TEXT, "it runs other programs too: put them into 'setup'"),
};
/* clang-format on */

const dt_flag_table dt_slurm_flags = {.program = "sbatch",
                                      .flags = sbatch,
                                      .count = sizeof(sbatch) / sizeof(sbatch[0]),
                                      .attached = true,
                                      .strict = true,
                                      .stops_at_operand = true};
const dt_flag_table dt_srun_flags = {.program = "srun",
                                     .flags = srun,
                                     .count = sizeof(srun) / sizeof(srun[0]),
                                     .attached = true,
                                     .strict = true,
                                     .stops_at_operand = true};

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

static dt_status read_nodes(dt_launcher *out, const dt_flags *flags, dt_error *err)
{
    const char *text = dt_flags_text(flags, "--nodes", NULL);
    long long first, last;
    char *end;

    if (text == NULL)
        return DT_OK;
    first = last = strtoll(text, &end, 10);
    if (*end == '-')
        last = strtoll(end + 1, &end, 10);
    if (*end != '\0' || first < 1 || last < first || last > 1024)
        return DT_FAIL(err, DT_ERR_USAGE, "--nodes %s: expected 1 to 1024 nodes, or MIN-MAX", text);
    out->nodes = last;
    out->nodes_min = first < last ? first : 0;
    out->nodes_from = dt_flags_from(flags, "--nodes");
    return DT_OK;
}

/* Reads the tasks; they give the number of nodes if it is certain. */
static dt_status read_tasks(dt_launcher *out, const dt_flags *flags, dt_error *err)
{
    int64_t total = (int64_t)dt_flags_number(flags, "--ntasks", 0);
    int64_t each = (int64_t)dt_flags_number(flags, "--ntasks-per-node", 0);
    dt_arena *arena = flags->draft->arena;

    if (total < 0 || each < 0 || total > 1048576 || each > 1024)
        return DT_FAIL(err, DT_ERR_USAGE, "expected 1 to 1024 tasks on a node");
    if (total > 0 && each > 0)
        out->from = dt_arena_printf(arena, "%s, %s", dt_flags_from(flags, "--ntasks"),
                                    dt_flags_from(flags, "--ntasks-per-node"));
    else if (total > 0 || each > 0)
        out->from = dt_flags_from(flags, total > 0 ? "--ntasks" : "--ntasks-per-node");
    if (total > 0 && out->nodes == 0 && (each > 0 || total == 1)) {
        out->nodes = each > 0 ? total / each : 1;
        out->nodes_from = out->from;
        if (each > 0 && total % each != 0)
            return DT_FAIL(err, DT_ERR_USAGE, "%s: the tasks are not the same on each node",
                           out->from);
    }
    if (total > 0 && out->nodes > 0) {
        if (total % out->nodes != 0)
            return DT_FAIL(err, DT_ERR_USAGE, "%s: %lld tasks cannot be divided among %lld nodes",
                           out->from, (long long)total, (long long)out->nodes);
        out->tasks = total / out->nodes; /* srun takes --ntasks-per-node for the most then */
    } else if (each > 0) {
        out->tasks = each;
    } else if (total > 0) {
        out->tasks_total = total;
    }
    return DT_OK;
}

dt_status dt_slurm_read_size(dt_launcher *out, const dt_flags *flags, dt_error *err)
{
    static const char *const names[] = {"--gpus-per-node", "--gres", "--gpus", "--gpus-per-task",
                                        NULL};
    dt_status st = read_nodes(out, flags, err);

    if (st == DT_OK)
        st = read_tasks(out, flags, err);
    for (size_t i = 0; names[i] != NULL && out->gpus == 0 && st == DT_OK; i++) {
        const char *text = dt_flags_text(flags, names[i], NULL);
        int64_t nodes = out->nodes > 0 ? out->nodes : 1, count;

        if (text == NULL)
            continue;
        count = devices_in(text, strcmp(names[i], "--gres") == 0);
        if (i == 2 && count % nodes != 0)
            return DT_FAIL(err, DT_ERR_USAGE, "%s: the GPUs cannot be divided among %lld nodes",
                           dt_flags_from(flags, names[i]), (long long)nodes);
        out->gpus = i == 2   ? count / nodes
                    : i == 3 ? count * (out->tasks > 0 ? out->tasks : 1)
                             : count;
        if (out->gpus > 0)
            out->gpus_from = dt_flags_from(flags, names[i]);
        if (i == 3 && out->gpus > 0 && out->from != NULL)
            out->gpus_from =
                dt_arena_printf(flags->draft->arena, "%s, %s", out->from, out->gpus_from);
    }
    if (st == DT_OK && dt_flags_given(flags, "--cpus-per-task")) {
        out->task_threads = (int64_t)dt_flags_number(flags, "--cpus-per-task", 0);
        out->threads_from = dt_flags_from(flags, "--cpus-per-task");
    }
    return st;
}
