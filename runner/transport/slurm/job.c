/* job: runs Slurm's programs, and submits, inspects and ends a job with them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strbuf.h"
#include "runner/transport/slurm/slurm.h"

/* --- one of Slurm's programs. DT_ERR_UNSUPPORTED: it is missing; DT_ERR_IO: it failed, with the last line
 * of its stderr; DT_ERR_TIMEOUT. */

#define DT_SLURM_TOOL_SECONDS 30.0 /* Slurm itself waits 10 s for an absent controller */

#define ANSWER_MAX_BYTES (1 << 20)

/* Removes the program's prefix from "sbatch: error: Batch job submission failed: Invalid partition". */
static const char *last_words(char *text)
{
    size_t length = strlen(text);
    char *line, *said;

    while (length > 0 && (unsigned char)text[length - 1] <= ' ')
        text[--length] = '\0';
    line = strrchr(text, '\n');
    line = line != NULL ? line + 1 : text;
    said = strstr(line, "error: ");
    for (char *p = line; *p != '\0'; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' ';
    return said != NULL ? said + strlen("error: ") : line;
}

/* input: its stdin (NULL: empty); answer: its whole stdout (NULL: ignored). */
static dt_status slurm_tool(dt_strbuf *answer, const char *const *argv, const char *input,
                            dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_strbuf problems;
    char end[DT_EXIT_WORDS_BYTES];
    const char *words;
    int code = 0;

    dt_strbuf_init(&problems);
    if (answer != NULL)
        dt_strbuf_reset(answer);
    st = dt_child_run(&code,
                      &(dt_child_call){.argv = argv,
                                       .input = input,
                                       .out = answer,
                                       .errors = &problems,
                                       .most_bytes = ANSWER_MAX_BYTES,
                                       .seconds = DT_SLURM_TOOL_SECONDS,
                                       .missing =
                                           "'nodes: slurm' needs Slurm's programs in PATH (Debian: "
                                           "slurm-client; elsewhere often 'module load slurm')"},
                      &problem);
    if (st == DT_ERR_TIMEOUT)
        DT_THROW(err, st, "%s: is Slurm's controller up ('scontrol ping')?", problem.message);
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    if (code != 0) {
        words = last_words(problems.data);
        dt_exit_words_of_shell(end, code);
        DT_THROW(err, DT_ERR_IO, "%s%s%.600s", argv[0], words[0] != '\0' ? ": " : " ",
                 words[0] != '\0' ? words : end);
    }
out:
    dt_strbuf_release(&problems);
    return st;
}

/* --- the job */

#define END_SECONDS 3.0 /* time limit for the script to end after the signal */
#define HOSTS_MAX   1024

/* Exits with 0 on SIGUSR1, so that accounting shows a completed job. */
static const char script[] = "#!/bin/sh\n"
                             "# Holds the nodes of a dtrun run; srun starts the agents.\n"
                             "trap 'exit 0' USR1\n"
                             "while :; do sleep 60 & wait; done\n";

/* Slurm's states and their phases; a job in any other state has ended. */
static const struct {
    const char *state;
    dt_slurm_phase phase;
    const char *words;
} states[] = {
    {"PENDING", DT_SLURM_WAITS, "waits"},
    {"CONFIGURING", DT_SLURM_WAITS, "waits until its nodes are ready"},
    {"REQUEUED", DT_SLURM_WAITS, "was put back into the queue"},
    {"RUNNING", DT_SLURM_RUNS, "runs"},
    {"SUSPENDED", DT_SLURM_RUNS, "is suspended"},
    {"STOPPED", DT_SLURM_RUNS, "is stopped"},
    {"SIGNALING", DT_SLURM_RUNS, "runs"}, /* a signal is being sent to it */
    {"RESIZING", DT_SLURM_RUNS, "runs"},
    {"REQUEUE_HOLD", DT_SLURM_WAITS, "was put back into the queue, and is held"},
    {"RESV_DEL_HOLD", DT_SLURM_WAITS, "is held: its reservation was deleted"},
    {"COMPLETING", DT_SLURM_WAITS, "is ending"}, /* the final state is known a moment later */
    {"CANCELLED", DT_SLURM_ENDED, "was cancelled (scancel)"},
    {"TIMEOUT", DT_SLURM_ENDED, "reached its time limit"},
    {"DEADLINE", DT_SLURM_ENDED, "reached its deadline"},
    {"NODE_FAIL", DT_SLURM_ENDED, "ended because a node failed"},
    {"PREEMPTED", DT_SLURM_ENDED, "was pre-empted by another job"},
    {"OUT_OF_MEMORY", DT_SLURM_ENDED, "was killed for using too much memory"},
    {"COMPLETED", DT_SLURM_ENDED, "is over"},
    {"FAILED", DT_SLURM_ENDED, "has failed"},
    {"", DT_SLURM_ENDED, "is over, and Slurm has no record of it"},
};
enum { STATE_COUNT = sizeof(states) / sizeof(states[0]) };

/* Explanations of the reasons that users see most often. */
static const struct {
    const char *reason, *words;
} reasons[] = {
    {"Priority", "jobs with higher priority are waiting"},
    {"Resources", "waiting for free resources"},
    {"ReqNodeNotAvail", "a requested node is not available"},
    {"PartitionDown", "its partition is down: ask the cluster's administrator"},
    {"PartitionTimeLimit",
     "its time limit exceeds its partition's: set a shorter --time in slurm.options"},
    {"PartitionNodeLimit", "it requests more nodes than its partition has: use fewer in 'slurm:N', "
                           "or another --partition in slurm.options"},
    {"PartitionConfig", "its partition cannot satisfy the request: look at slurm.options"},
    {"AssocMaxJobsLimit", "its account has reached its limit of running jobs"},
    {"QOSMaxJobsPerUserLimit", "its user has reached the limit of running jobs"},
    {"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
     "nodes are down or drained: 'sinfo' shows which"},
};

static int row_of(const char *state)
{
    for (int i = 0; i < STATE_COUNT; i++)
        if (strcmp(states[i].state, state) == 0)
            return i;
    return -1;
}

/* Copies a column of squeue's line, up to the next '|'; returns what follows it. */
static const char *take_column(char *out, size_t size, const char *at)
{
    size_t length = strcspn(at, "|\n");

    snprintf(out, size, "%.*s", (int)length, at);
    return at[length] == '|' ? at + length + 1 : at + length;
}

dt_status dt_slurm_job_look(dt_slurm_job *out, int64_t job, dt_error *err)
{
    char number[48];
    const char *const argv[] = {"squeue", "--noheader",        "--states=all",
                                number,   "--format=%T|%r|%N", NULL};
    dt_error problem = DT_ERROR_INIT;
    dt_strbuf answer;
    dt_status st;
    int row;

    *out = (dt_slurm_job){.job = job, .phase = DT_SLURM_ENDED};
    snprintf(number, sizeof(number), "--jobs=%" PRId64, job);
    dt_strbuf_init(&answer);
    st = slurm_tool(&answer, argv, NULL, &problem);
    if (st == DT_OK) {
        const char *at = take_column(out->state, sizeof(out->state), answer.data);

        at = take_column(out->reason, sizeof(out->reason), at);
        (void)take_column(out->nodes, sizeof(out->nodes), at);
        row = row_of(out->state);
        out->phase = row >= 0 ? states[row].phase : DT_SLURM_ENDED;
    } else if (strstr(problem.message, "Invalid job id") != NULL) {
        st = DT_OK;
    } else {
        DT_FAIL(err, st, "%s", problem.message);
    }
    dt_strbuf_release(&answer);
    return st;
}

void dt_slurm_job_words(dt_strbuf *out, const dt_slurm_job *job)
{
    int row = row_of(job->state);
    const char *more = "";

    dt_strbuf_add_fmt(out, "Slurm job %" PRId64 " ", job->job);
    if (row >= 0)
        dt_strbuf_add_str(out, states[row].words);
    else
        dt_strbuf_add_fmt(out, "is over (%s)", job->state);
    if (strcmp(job->state, "PENDING") != 0)
        return;
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (strcmp(reasons[i].reason, job->reason) == 0)
            more = reasons[i].words;
    if (strcmp(job->reason, "None") != 0 && job->reason[0] != '\0')
        dt_strbuf_add_fmt(out, ": %s%s%s%s", more[0] != '\0' ? more : job->reason,
                          more[0] != '\0' ? " (" : "", more[0] != '\0' ? job->reason : "",
                          more[0] != '\0' ? ")" : "");
}

/* Returns true if the recipe's options for sbatch request GPUs themselves, for example by type. */
static bool says_gpus(const char *const *options, int64_t count)
{
    bool said = false;

    for (int64_t i = 0; i < count; i++)
        said =
            said || strncmp(options[i], "--gpus", 6) == 0 || strncmp(options[i], "--gres", 6) == 0;
    return said;
}

dt_status dt_slurm_job_submit(int64_t *job, const dt_place_wish *wish, bool try_only, dt_error *err)
{
    const char **argv = dt_calloc((size_t)wish->option_count + 16, sizeof(argv[0]));
    char nodes[48], tasks[64], cpus[64], gpus[64], name[128];
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_strbuf answer;
    size_t n = 0;
    char *end;

    dt_strbuf_init(&answer);
    snprintf(nodes, sizeof(nodes), "--nodes=%" PRId64, wish->nodes);
    snprintf(tasks, sizeof(tasks), "--ntasks-per-node=%" PRId64, wish->tasks_per_node);
    snprintf(cpus, sizeof(cpus), "--cpus-per-task=%" PRId64, wish->cpus_per_task);
    snprintf(gpus, sizeof(gpus), "--gpus-per-node=%" PRId64, wish->gpus_per_node);
    snprintf(name, sizeof(name), "--job-name=%s", wish->name);
    argv[n++] = "sbatch";
    argv[n++] = name; /* overrides a job name in the recipe's options */
    for (int64_t i = 0; i < wish->option_count; i++)
        argv[n++] = wish->options[i];
    argv[n++] = nodes;
    argv[n++] = tasks;
    argv[n++] = cpus;
    if (wish->gpus_per_node > 0 && !says_gpus(wish->options, wish->option_count))
        argv[n++] = gpus;
    argv[n++] = "--no-requeue"; /* dtrun itself restarts runs */
    argv[n++] = "--output=/dev/null";
    argv[n++] = "--chdir=/";
    argv[n++] = try_only ? "--test-only" : "--parsable";
    st = slurm_tool(&answer, argv, script, &problem);
    if (st == DT_ERR_IO)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "Slurm rejected the job: %s: change slurm.options or 'slurm:N' in the "
                 "recipe, or look at 'sinfo'",
                 problem.message);
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
    if (try_only)
        goto out;
    *job = strtoll(answer.data, &end, 10); /* the answer is "12", or "12;cluster" */
    if (*job <= 0 || (*end != '\n' && *end != ';' && *end != '\0'))
        DT_THROW(err, DT_ERR_CORRUPT, "sbatch answered '%.60s' instead of a job's number",
                 answer.data);
out:
    free(argv);
    dt_strbuf_release(&answer);
    return st;
}

static bool has_ended(int64_t job)
{
    dt_slurm_job now;

    return dt_slurm_job_look(&now, job, NULL) == DT_OK && now.phase == DT_SLURM_ENDED;
}

dt_status dt_slurm_job_end(int64_t job, bool good, dt_error *err)
{
    char number[32];
    const char *const tell[] = {"scancel", "--quiet", "--batch", "--signal=USR1", number, NULL};
    const char *const cancel[] = {"scancel", "--quiet", number, NULL};
    double deadline = dt_clock_monotonic_seconds() + END_SECONDS;

    snprintf(number, sizeof(number), "%" PRId64, job);
    if (good && slurm_tool(NULL, tell, NULL, NULL) == DT_OK)
        while (dt_clock_monotonic_seconds() < deadline) {
            if (has_ended(job))
                return DT_OK;
            dt_clock_sleep_seconds(0.1);
        }
    return slurm_tool(NULL, cancel, NULL, err);
}

dt_status dt_slurm_hosts(const char ***out, int64_t *count, const char *list, dt_arena *arena,
                         dt_error *err)
{
    const char *const argv[] = {"scontrol", "show", "hostnames", list, NULL};
    char *line, *rest = NULL;
    dt_status st = DT_OK;
    dt_strbuf answer;

    *count = 0;
    *out = dt_arena_alloc_array(arena, HOSTS_MAX, sizeof((*out)[0]));
    dt_strbuf_init(&answer);
    DT_TRY(slurm_tool(&answer, argv, NULL, err));
    for (line = strtok_r(answer.data, "\n", &rest); line != NULL && *count < HOSTS_MAX;
         line = strtok_r(NULL, "\n", &rest)) {
        (*out)[*count] = dt_arena_strdup(arena, line);
        (*count)++;
    }
    if (*count == 0)
        DT_THROW(err, DT_ERR_CORRUPT, "scontrol lists no machine for '%s'", list);
out:
    dt_strbuf_release(&answer);
    return st;
}
