/* slurm: runs a command on a node of a Slurm job, as a job step (srun), from any machine with
 * Slurm's programs.
 *
 * The step shares all CPUs, memory and GPUs of the job on the node with other steps (--overlap).
 * Processes that a step leaves running are killed when it ends. An agent must outlive connections,
 * and therefore runs in its own step (lifecycle.c).
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "runner/transport/slurm/slurm.h"
#include "runner/transport/transport.h"

/* Variables that salloc, sbatch or an outer srun set, and that srun would read as options. */
static const char *const unset[] = {
    "SLURM_NTASKS",          "SLURM_NPROCS",         "SLURM_NTASKS_PER_NODE",
    "SLURM_NTASKS_PER_CORE", "SLURM_NTASKS_PER_GPU", "SLURM_CPUS_PER_TASK",
    "SRUN_CPUS_PER_TASK",    "SLURM_CPUS_PER_GPU",   "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_GPU",     "SLURM_MEM_PER_NODE",   "SLURM_DISTRIBUTION",
    "SLURM_EXACT",           "SLURM_EXCLUSIVE",      "SLURM_HINT",
    "SLURM_THREAD_SPEC",     "SLURM_GPUS_PER_TASK",  "SLURM_GPU_BIND",
    "SLURM_STEP_GRES",       "SLURM_LABELIO",        "SLURM_STDOUTMODE",
    "SLURM_STDERRMODE",      "SLURM_STDINMODE",      "SLURM_MULTI_PROG",
    "SLURM_PTY_PORT",
};
/* Passed in this order, followed by --jobid and --nodelist. --mem=0: all memory of the job on the
 * node. */
static const char *const options[] = {
    "--overlap", "--nodes=1", "--ntasks=1", "--mem=0",      "--cpu-bind=none",
    "--quiet",   "--chdir=/", "--mpi=none", "--export=ALL",
};
enum {
    UNSET_COUNT = sizeof(unset) / sizeof(unset[0]),
    OPTION_COUNT = sizeof(options) / sizeof(options[0]),
};

static bool slurm_reaches(const char *node)
{
    int64_t number, index;
    const char *host;

    return dt_slurm_name_is_host(node, &number, &host) ||
           dt_slurm_name_is_place(node, &number, &index);
}

static dt_status slurm_command(const char ***argv, const char *node, const char *const *words,
                               dt_arena *arena, dt_error *err)
{
    size_t count = 0, n = 0;
    const char **out, *host;
    int64_t job;

    *argv = NULL;
    if (!dt_slurm_name_is_host(node, &job, &host))
        return DT_FAIL(err, DT_ERR_UNSUPPORTED, "node '%s' is not a node of a Slurm job", node);
    while (words[count] != NULL)
        count++;
    out = dt_arena_alloc_array(arena, 2 * UNSET_COUNT + OPTION_COUNT + count + 10, sizeof(out[0]));
    out[n++] = "env";
    for (size_t i = 0; i < UNSET_COUNT; i++) {
        out[n++] = "-u";
        out[n++] = unset[i];
    }
    out[n++] = "srun";
    for (size_t i = 0; i < OPTION_COUNT; i++)
        out[n++] = options[i];
    out[n++] = dt_arena_printf(arena, "--jobid=%" PRId64, job);
    out[n++] = dt_arena_printf(arena, "--nodelist=%s", host);
    out[n++] = "/bin/sh";
    out[n++] = "-c";
    out[n++] = "echo; echo " DT_TRANSPORT_MARK "; exec \"$@\"";
    out[n++] = "sh";
    memcpy(out + n, words, (count + 1) * sizeof(words[0]));
    *argv = out;
    return DT_OK;
}

/* Returns the last line that is not empty, without its newline. */
static const char *last_line(const char *text, size_t *length)
{
    size_t end = strlen(text), start;

    while (end > 0 && (unsigned char)text[end - 1] <= ' ')
        end--;
    for (start = end; start > 0 && text[start - 1] != '\n'; start--)
        ;
    *length = end - start < 300 ? end - start : 300;
    return text + start;
}

/* srun's messages vary between versions: if the job has ended, report its state instead. */
static dt_status slurm_explain(const char *node, const char *complaint, dt_error *err)
{
    dt_status st = DT_ERR_PEER;
    dt_slurm_job now;
    const char *host, *line;
    dt_strbuf words;
    int64_t job;
    size_t length;

    line = last_line(complaint, &length);
    if (!dt_slurm_name_is_host(node, &job, &host) || dt_slurm_job_look(&now, job, NULL) != DT_OK ||
        now.phase != DT_SLURM_ENDED)
        return DT_FAIL(err, st, "node '%s': srun: %.*s", node,
                       length > 0 ? (int)length : (int)strlen("ended without a message"),
                       length > 0 ? line : "ended without a message");
    dt_strbuf_init(&words);
    dt_slurm_job_words(&words, &now);
    st = DT_FAIL(err, DT_ERR_UNSUPPORTED, "node '%s': %s", node, words.data);
    dt_strbuf_release(&words);
    return st;
}

/* Returns true for the lines that srun adds after the stderr of a failed command. */
static bool slurm_is_transport_line(const char *line)
{
    return strncmp(line, "srun: ", 6) == 0 || strncmp(line, "slurmstepd: ", 12) == 0;
}

/* Returns true if the step was ended from outside. For a command that failed, srun prints only
 * "Exited with ...". */
static bool slurm_connection_lost(const char *complaint)
{
    return strstr(complaint, "CANCELLED AT") != NULL ||
           strstr(complaint, "Job step aborted") != NULL ||
           strstr(complaint, "Node failure on") != NULL;
}

static bool slurm_is_preempted(const char *node)
{
    dt_slurm_job now;
    const char *host;
    int64_t job;

    return dt_slurm_name_is_host(node, &job, &host) &&
           dt_slurm_job_look(&now, job, NULL) == DT_OK && now.phase == DT_SLURM_ENDED;
}

/* If the Slurm controller does not answer, nothing is known about the node. */
static dt_contact slurm_contact(const char *complaint)
{
    static const char *const away[] = {"contact slurm controller",      "contact controller",
                                       "Socket timed out on send/recv", "slurm_persist_conn",
                                       "Protocol authentication error", "Invalid authentication"};

    for (size_t i = 0; i < sizeof(away) / sizeof(away[0]); i++)
        if (strstr(complaint, away[i]) != NULL)
            return DT_CONTACT_UNKNOWN;
    return DT_CONTACT_NONE;
}

static dt_status slurm_check_placed(const char *node, dt_error *err)
{
    int64_t count, index;

    if (!dt_slurm_name_is_place(node, &count, &index))
        return DT_OK;
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "Slurm has not allocated the %lld nodes yet: run 'salloc --nodes=%lld', "
                   "then 'dtrun doctor' inside it",
                   (long long)count, (long long)count);
}

static dt_status slurm_try_place(const dt_place_wish *wish, dt_error *err)
{
    return dt_slurm_job_submit(NULL, wish, true, err);
}

const dt_transport dt_transport_slurm = {
    .kind = "slurm",
    .reaches = slurm_reaches,
    .command = slurm_command,
    .explain = slurm_explain,
    .is_transport_line = slurm_is_transport_line,
    .connection_lost = slurm_connection_lost,
    .contact = slurm_contact,
    .is_preempted = slurm_is_preempted,
    .lent = true,
    .expand = dt_slurm_expand,
    .check_placed = slurm_check_placed,
    .try_place = slurm_try_place,
    .place = dt_slurm_place,
    .start = dt_slurm_start,
    .remove = dt_slurm_remove,
    .spares_group = true, /* srun's shepherd ends the step once srun is gone */
};
