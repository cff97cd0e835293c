/* allocation: parses the names of nodes of Slurm jobs, reads the nodes of the job that this process runs in,
 * and lists the nodes for a destination of a recipe. */
#include <stdlib.h>
#include <string.h>

#include "runner/transport/slurm/slurm.h"

/* Splits "slurm:" NUMBER `mark` REST; false if the name has another form. */
static bool split(const char *name, char mark, int64_t *number, const char **rest)
{
    size_t digits;

    if (strncmp(name, "slurm:", 6) != 0)
        return false;
    name += 6;
    digits = strspn(name, "0123456789");
    if (digits == 0 || digits > 15 || name[digits] != mark || name[digits + 1] == '\0')
        return false;
    *number = strtoll(name, NULL, 10);
    *rest = name + digits + 1;
    return *number > 0;
}

bool dt_slurm_name_is_host(const char *name, int64_t *job, const char **host)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";

    return split(name, '/', job, host) && (*host)[0] != '-' &&
           (*host)[strspn(*host, letters)] == '\0';
}

bool dt_slurm_name_is_place(const char *name, int64_t *count, int64_t *index)
{
    const char *rest;

    if (!split(name, '#', count, &rest) || strlen(rest) > 6 ||
        rest[strspn(rest, "0123456789")] != '\0')
        return false;
    *index = strtoll(rest, NULL, 10) - 1;
    return *index >= 0 && *index < *count;
}

/* --- the job that this process runs in */

#define COUNT_MAX 1000000

/* Returns NULL if the variable is not set, or empty. */
static const char *variable(const char *name)
{
    const char *text = getenv(name);

    return text != NULL && text[0] != '\0' ? text : NULL;
}

bool dt_slurm_is_inside(void)
{
    return variable("SLURM_JOB_ID") != NULL && variable("SLURM_JOB_NODELIST") != NULL;
}

static bool take_number(int64_t *out, const char **at)
{
    size_t digits = strspn(*at, "0123456789");

    if (digits == 0 || digits > 7)
        return false;
    *out = strtoll(*at, NULL, 10);
    *at += digits;
    return *out <= COUNT_MAX;
}

bool dt_slurm_counts(int64_t *out, int64_t count, const char *text)
{
    int64_t filled = 0, value, times;

    while (*text != '\0') {
        times = 1;
        if (!take_number(&value, &text))
            return false;
        if (strncmp(text, "(x", 2) == 0) {
            text += 2;
            if (!take_number(&times, &text) || *text++ != ')')
                return false;
        }
        if (times > count - filled)
            return false;
        while (times-- > 0)
            out[filled++] = value;
        if (*text == ',' && text[1] != '\0')
            text++;
        else if (*text != '\0')
            return false;
    }
    return filled == count;
}

/* Returns the GPUs of each host; -1: unknown. If SLURM_GPUS_ON_NODE is not set, counts the indexes
 * in SLURM_JOB_GPUS. */
static int64_t gpus(void)
{
    const char *number = variable("SLURM_GPUS_ON_NODE"), *list = variable("SLURM_JOB_GPUS");
    int64_t count = 0;

    if (number != NULL && take_number(&count, &number))
        return count;
    if (list == NULL)
        return -1;
    for (count = 1; *list != '\0'; list++)
        count += *list == ',' ? 1 : 0;
    return count;
}

static dt_status read_tasks(dt_slurm_allocation *out, dt_error *err)
{
    const char *each = variable("SLURM_NTASKS_PER_NODE"), *all = variable("SLURM_TASKS_PER_NODE");
    int64_t count;

    if (each != NULL && take_number(&count, &each) && *each == '\0') {
        for (int64_t i = 0; i < out->count; i++)
            out->tasks[i] = count;
    } else if (variable("SLURM_NTASKS") != NULL && all != NULL &&
               !dt_slurm_counts(out->tasks, out->count, all)) {
        /* Without SLURM_NTASKS the number is Slurm's default, not a request. */
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "SLURM_TASKS_PER_NODE is '%.100s', which does not fit %lld nodes", all,
                       (long long)out->count);
    }
    return DT_OK;
}

dt_status dt_slurm_allocation_read(dt_slurm_allocation *out, dt_arena *arena, dt_error *err)
{
    const char *job = variable("SLURM_JOB_ID"), *cpus = variable("SLURM_JOB_CPUS_PER_NODE");
    const char *nodes = variable("SLURM_JOB_NODELIST");
    dt_status st = DT_OK;
    char *end;

    *out = (dt_slurm_allocation){.gpus = gpus()};
    if (job == NULL || nodes == NULL)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "this is not a Slurm job");
    out->job = strtoll(job, &end, 10);
    if (out->job <= 0 || *end != '\0')
        DT_THROW(err, DT_ERR_CORRUPT, "SLURM_JOB_ID is '%.40s', which is not a number", job);
    DT_TRY(dt_slurm_hosts(&out->hosts, &out->count, nodes, arena, err));
    out->cpus = dt_arena_alloc_array(arena, (size_t)out->count, sizeof(out->cpus[0]));
    out->tasks = dt_arena_alloc_array(arena, (size_t)out->count, sizeof(out->tasks[0]));
    for (int64_t i = 0; i < out->count; i++) {
        out->cpus[i] = 1;
        out->tasks[i] = 0;
    }
    if (cpus != NULL && !dt_slurm_counts(out->cpus, out->count, cpus))
        DT_THROW(err, DT_ERR_CORRUPT,
                 "SLURM_JOB_CPUS_PER_NODE is '%.100s', which does not fit %lld nodes", cpus,
                 (long long)out->count);
    DT_TRY(read_tasks(out, err));
out:
    return st;
}

/* --- the nodes for a destination of a recipe */

static void make_room(dt_lent_nodes *out, int64_t count, dt_arena *arena)
{
    *out = (dt_lent_nodes){.count = count, .gpus = -1};
    out->names = dt_arena_alloc_array(arena, (size_t)count, sizeof(out->names[0]));
    out->cores = dt_arena_alloc_array(arena, (size_t)count, sizeof(out->cores[0]));
    out->ranks = dt_arena_alloc_array(arena, (size_t)count, sizeof(out->ranks[0]));
}

static dt_status expand_inside(dt_lent_nodes *out, int64_t wanted, dt_arena *arena, dt_error *err)
{
    dt_slurm_allocation job;
    dt_status st;

    DT_TRY(dt_slurm_allocation_read(&job, arena, err));
    if (wanted > job.count)
        DT_THROW(err, DT_ERR_RECIPE,
                 "the recipe asks for %lld nodes, but Slurm job %lld has %lld: use 'nodes: slurm' "
                 "to take all nodes of the job",
                 (long long)wanted, (long long)job.job, (long long)job.count);
    make_room(out, wanted > 0 ? wanted : job.count, arena);
    out->gpus = job.gpus;
    for (int64_t i = 0; i < out->count; i++) {
        out->names[i] = dt_arena_printf(arena, "slurm:%lld/%s", (long long)job.job, job.hosts[i]);
        out->cores[i] = job.cpus[i];
        out->ranks[i] = job.tasks[i];
    }
out:
    return st;
}

dt_status dt_slurm_expand(dt_lent_nodes *out, int64_t count, dt_arena *arena, dt_error *err)
{
    if (dt_slurm_is_inside())
        return expand_inside(out, count, arena, err);
    if (count == 0)
        return DT_FAIL(
            err, DT_ERR_RECIPE,
            "'nodes: slurm' takes the nodes of a Slurm job, and dtrun does not run in one: start "
            "dtrun with salloc or sbatch, or give a number as in 'nodes: slurm:4' to submit a job");
    make_room(out, count, arena);
    for (int64_t i = 0; i < count; i++) {
        out->names[i] =
            dt_arena_printf(arena, "slurm:%lld#%lld", (long long)count, (long long)i + 1);
        out->cores[i] = 1;
        out->ranks[i] = 0;
    }
    return DT_OK;
}
