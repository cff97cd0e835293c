/* engine: simulates ranks that train, with the events of runner/PROTOCOL.md and engine/channel/events.h. The ranks of
 * an attempt are one job: a step is made by all of them, or by none.
 *
 *   begin ──► rendezvous ──► ready ──(all)──► step, step, save, step ... ──► finished, exit 0
 *                                    one died: the others report `peer`, exit 1
 */
#include <jansson.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/wait.h>

#include "engine/checkpoint/name.h"
#include "tests/sim/sim.h"

#define BLOCKED_LOOK_NS (200 * SIM_MS)
#define PACE_NS         (5 * SIM_SECOND)
#define RENDEZVOUS_NS   (600 * SIM_SECOND)
#define PEERS_GONE_NS   (3600 * SIM_SECOND)

enum { RANKS = 128 };

/* The part of a plan that ranks use. */
typedef struct plan {
    const char *text; /* the text of the plan, which identifies it */
    int64_t length;
    bool shared;
    const char *directory, *resume_from;
} plan;

typedef struct job {
    struct job *next;
    int64_t attempt, world, start_step, step;
    sim_engine *ranks[RANKS];
    int64_t joined, ready;
    bool training, saving, stop, over;
    int64_t paced_ns; /* when the ranks last reported how long they wait */
    int64_t step_began_ns, blocked_ns, blocked_since_ns;
} job;

struct sim_engine {
    sim_proc *proc;
    job *job;
    int64_t rank;
    sim_end *channel, *out, *err;
    dt_strbuf line;
    const plan *plan;
    bool joined, ready, paused, leaving;
    int64_t began_ns;
};

static job *jobs;
static const plan *newest_plan;

void sim_engines_forget(void)
{
    jobs = NULL;
    newest_plan = NULL;
}

bool sim_engines_train(void)
{
    for (const job *each = jobs; each != NULL; each = each->next)
        if (each->training && !each->over)
            return true;
    return false;
}

/* --- output */

static void say(sim_engine *engine, const char *fmt, ...) DT_PRINTF(2, 3);

static void say(sim_engine *engine, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    int length;

    if (engine->proc->over)
        return;
    va_start(args, fmt);
    length = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    sim_end_write(engine->channel, text, (size_t)length);
}

static void print(sim_engine *engine, const char *text)
{
    if (!engine->proc->over)
        sim_end_write(engine->out, text, strlen(text));
}

/* --- the job */

/* Returns true if the ranks are on several machines, and one of them is cut off from the others. */
static bool is_cut(const job *one)
{
    const sim_machine *first = NULL;
    bool several = false, cut = false;

    for (int64_t i = 0; i < one->world; i++) {
        const sim_machine *machine = one->ranks[i] != NULL ? one->ranks[i]->proc->machine : NULL;

        if (machine == NULL)
            continue;
        first = first != NULL ? first : machine;
        several = several || machine != first;
        cut = cut || machine->peers_cut_until_ns > sim_now_ns;
    }
    return several && cut;
}

static bool has_died(const job *one)
{
    for (int64_t i = 0; i < one->world; i++)
        if (one->ranks[i] != NULL && (one->ranks[i]->proc->over || one->ranks[i]->leaving))
            return true;
    return false;
}

static bool is_blocked(const job *one)
{
    for (int64_t i = 0; i < one->world; i++)
        if (one->ranks[i] == NULL || one->ranks[i]->paused)
            return true;
    return is_cut(one);
}

static void on_leave(void *context)
{
    sim_engine *engine = context;

    if (engine->proc->over)
        return;
    if (engine->paused) {
        sim_at(sim_now_ns + BLOCKED_LOOK_NS, on_leave, engine);
        return;
    }
    say(engine, "{\"event\":\"failed\",\"status\":\"peer\",\"message\":\"a peer is gone\"}\n");
    sim_proc_exit(engine->proc, 1 << 8);
}

/* Draws how late a rank notices the end of a peer: at once by its connection if it waits for the
 * others, else after its computation. */
static int64_t draw_notice(void)
{
    return sim_chance(0.5) ? sim_between(SIM_MS / 10, 20 * SIM_MS)
                           : sim_between(20 * SIM_MS, 2 * SIM_SECOND);
}

/* A rank is gone: the others notice it, each at its own time. */
static void fall_apart(job *one)
{
    one->over = true;
    for (int64_t i = 0; i < one->world; i++)
        if (one->ranks[i] != NULL && !one->ranks[i]->proc->over)
            sim_at(sim_now_ns + (is_cut(one) ? PEERS_GONE_NS : 0) + draw_notice(), on_leave,
                   one->ranks[i]);
}

static void save_on(sim_machine *machine, const char *directory, const job *one)
{
    sim_machine *self = machine;
    char path[512], text[128];

    snprintf(path, sizeof(path), "%s", directory);
    if (sim_fs_find(self, path) == NULL)
        sim_fs_make(self, path, true);
    snprintf(path, sizeof(path), "%s/step-%08lld", directory, (long long)one->step);
    if (sim_fs_find(self, path) == NULL)
        sim_fs_make(self, path, true);
    snprintf(path, sizeof(path), "%s/step-%08lld/" DT_CHECKPOINT_MARKER, directory,
             (long long)one->step);
    snprintf(text, sizeof(text), "%lld %lld %lld\n", (long long)one->attempt, (long long)one->step,
             (long long)schedule.steps);
    sim_fs_put(self, path, text);
}

static bool is_full(const job *one)
{
    for (int64_t i = 0; i < one->world; i++) {
        const sim_engine *rank = one->ranks[i];
        const sim_machine *machine = rank->plan->shared ? &sim.machines[0] : rank->proc->machine;

        if (machine->full_until_ns > sim_now_ns)
            return true;
    }
    return false;
}

static void tick(void *context);

static void finish(job *one, const char *reason)
{
    one->over = true;
    sim_fault_moment(SIM_RANKS_FINISH);
    for (int64_t i = 0; i < one->world; i++) {
        sim_engine *engine = one->ranks[i];

        say(engine,
            "{\"event\":\"finished\",\"step\":%lld,\"steps\":%lld,\"reason\":\"%s\",\"loss\":%.6f,"
            "\"valid_loss\":null}\n",
            (long long)one->step, (long long)schedule.steps, reason,
            sim_loss(one->attempt, one->step));
        engine->leaving = true;
        sim_proc_exit(engine->proc, 0);
    }
}

static void save(job *one)
{
    sim_engine *first = one->ranks[0];

    one->saving = false;
    if (is_full(one)) {
        say(first, "{\"event\":\"checkpoint_failed\",\"step\":%lld,\"message\":\"no space\"}\n",
            (long long)one->step);
    } else {
        for (int64_t i = 0; i < one->world; i++)
            save_on(one->ranks[i]->plan->shared ? &sim.machines[0] : one->ranks[i]->proc->machine,
                    one->ranks[i]->plan->directory, one);
        say(first,
            "{\"event\":\"checkpoint\",\"step\":%lld,\"directory\":\"step-%08lld\",\"bytes\":4096,"
            "\"digest\":\"d%lld\",\"valid_loss\":null,\"seconds\":0.5}\n",
            (long long)one->step, (long long)one->step, (long long)one->step);
    }
    if (one->step >= schedule.steps)
        finish(one, "steps");
    else if (one->stop)
        finish(one, "stopped");
    else
        say(first, "{\"event\":\"phase\",\"phase\":\"train\"}\n");
}

static void make_step(job *one)
{
    bool paces = one->world > 1 && sim_now_ns >= one->paced_ns + PACE_NS;
    sim_engine *first = one->ranks[0];
    char text[64];

    if (one->step < schedule.steps) {
        one->step++;
        say(first,
            "{\"event\":\"metrics\",\"step\":%lld,\"values\":{\"loss\":%.6f,"
            "\"tokens_per_second\":1000.0}}\n",
            (long long)one->step, sim_loss(one->attempt, one->step));
        sim_check_point(one->attempt, one->step);
        if (paces)
            one->paced_ns = sim_now_ns;
        for (int64_t i = 0; i < one->world; i++) {
            snprintf(text, sizeof(text), "attempt %lld step %lld\n", (long long)one->attempt,
                     (long long)one->step);
            print(one->ranks[i], text);
            if (paces)
                say(one->ranks[i],
                    "{\"event\":\"pace\",\"step\":%lld,\"step_seconds\":1.0,"
                    "\"waited_seconds\":0.1}\n",
                    (long long)one->step);
        }
    }
    if (one->step % schedule.save_every == 0 || one->step >= schedule.steps || one->stop) {
        one->saving = true;
        sim_fault_moment(SIM_RANKS_SAVE);
        say(first, "{\"event\":\"phase\",\"phase\":\"save\"}\n");
    }
}

static void tick(void *context)
{
    job *one = context;
    int64_t wait = schedule.step_ns;

    if (one->over)
        return;
    if (has_died(one)) {
        fall_apart(one);
        return;
    }
    if (is_blocked(one)) {
        one->blocked_ns += BLOCKED_LOOK_NS;
        if (is_cut(one) && one->blocked_since_ns == 0)
            one->blocked_since_ns = sim_now_ns;
        if (is_cut(one) && sim_now_ns - one->blocked_since_ns > PEERS_GONE_NS)
            fall_apart(one);
        else
            sim_at(sim_now_ns + BLOCKED_LOOK_NS, tick, one);
        return;
    }
    one->blocked_since_ns = 0;
    one->step_began_ns = sim_now_ns;
    if (one->saving)
        save(one);
    else
        make_step(one);
    if (one->saving)
        wait = schedule.save_ns;
    sim_at(sim_now_ns + wait, tick, one);
}

/* --- the life of a rank */

static void begin_training(job *one)
{
    if (one->ready < one->world || one->training)
        return;
    one->training = true;
    one->step_began_ns = schedule.trained_ns = sim_now_ns;
    schedule.trained_attempt = one->attempt;
    say(one->ranks[0], "{\"event\":\"phase\",\"phase\":\"train\"}\n");
    sim_at(sim_now_ns + schedule.step_ns, tick, one);
}

static void answer_where(sim_engine *engine)
{
    const job *one = engine->job;
    bool waits = one->training && is_blocked(one);
    int64_t progress = one->training && !waits
                           ? one->step * 100000 + (sim_now_ns - one->step_began_ns) / (100 * SIM_MS)
                           : one->step * 100000;

    say(engine,
        "{\"event\":\"where\",\"step\":%lld,\"phase\":\"train\",\"progress\":%lld,"
        "\"collective\":%s,\"seconds\":null}\n",
        (long long)one->step, (long long)progress, waits ? "\"all_reduce\"" : "null");
}

static void on_ready(void *context)
{
    sim_engine *engine = context;

    if (engine->proc->over)
        return;
    if (engine->paused) {
        sim_at(sim_now_ns + BLOCKED_LOOK_NS, on_ready, engine);
        return;
    }
    engine->ready = true;
    engine->job->ready++;
    say(engine,
        "{\"event\":\"ready\",\"pid\":%d,\"device\":\"cpu\",\"threads\":1,\"step\":%lld,"
        "\"steps\":%lld,\"matmul_flops\":1e9,\"least_step_seconds\":0.1}\n",
        engine->proc->pid, (long long)engine->job->start_step, (long long)schedule.steps);
    begin_training(engine->job);
}

static void on_line(sim_engine *engine, const char *text)
{
    if (strstr(text, "\"where\"") != NULL) {
        answer_where(engine);
    } else if (strstr(text, "\"rendezvous\"") != NULL && !engine->joined) {
        engine->joined = true;
        sim_at(sim_now_ns + sim_between(50 * SIM_MS, 500 * SIM_MS), on_ready, engine);
    }
}

static void on_heard(void *context)
{
    sim_engine *engine = context;
    char bytes[4096], *newline;
    size_t got;

    if (engine->paused || engine->proc->over)
        return;
    while ((got = sim_end_read(engine->channel, bytes, sizeof(bytes))) > 0)
        dt_strbuf_add(&engine->line, bytes, got);
    while ((newline = memchr(engine->line.data, '\n', engine->line.length)) != NULL) {
        *newline = '\0';
        on_line(engine, engine->line.data);
        dt_strbuf_remove_front(&engine->line, (size_t)(newline - engine->line.data) + 1);
    }
    if (engine->channel->eof && !engine->proc->over)
        sim_proc_exit(engine->proc, 1 << 8); /* its supervision is gone */
}

/* Leaves if the values of the other ranks did not arrive in time. */
static void on_missed(void *context)
{
    sim_engine *engine = context;

    if (!engine->joined)
        on_leave(engine);
}

static void on_begun(void *context)
{
    sim_engine *engine = context;

    if (engine->proc->over)
        return;
    if (engine->paused) {
        sim_at(sim_now_ns + BLOCKED_LOOK_NS, on_begun, engine);
        return;
    }
    say(engine, "{\"event\":\"rendezvous\",\"name\":\"comm/main\",\"value\":\"aa%02lld\"}\n",
        (long long)engine->rank);
    sim_at(sim_now_ns + RENDEZVOUS_NS, on_missed, engine);
}

void sim_engine_signal(sim_engine *engine, int number)
{
    if (number == SIGSTOP)
        engine->paused = true;
    if (number == SIGCONT && engine->paused) {
        engine->paused = false;
        on_heard(engine);
    }
    if (number == SIGTERM && engine->job->training)
        engine->job->stop = true;
    else if (number == SIGTERM)
        sim_proc_exit(engine->proc, SIGTERM);
}

void sim_engine_ended(sim_engine *engine)
{
    job *one = engine->job;

    sim_end_release(engine->channel);
    sim_end_release(engine->out);
    sim_end_release(engine->err);
    dt_strbuf_release(&engine->line);
    dt_strbuf_init(&engine->line);
    sim_fault_moment(SIM_A_RANK_ENDS);
    if (!one->over)
        fall_apart(one);
}

sim_activity sim_engine_activity(const sim_engine *engine, bool paused)
{
    const job *one = engine->job;
    bool waits = one->training && is_blocked(one);

    return (sim_activity){.state = paused  ? 'T'
                                   : waits ? 'S'
                                           : 'R',
                          .cpu_seconds =
                              (double)(sim_now_ns - engine->began_ns - one->blocked_ns) * 1e-9};
}

/* --- start */

static int64_t number_of(const char *const *environment, const char *name)
{
    size_t length = strlen(name);

    for (; *environment != NULL; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return strtoll(*environment + length + 1, NULL, 10);
    return 0;
}

/* Finds the job of an attempt, or makes it. Ranks that start again (after a power loss that also
 * took their journal entries) get a new job. */
static job *job_of(int64_t attempt, int64_t world)
{
    job *one = jobs;

    while (one != NULL && (one->attempt != attempt || one->over))
        one = one->next;
    if (one != NULL)
        return one;
    one = sim_alloc(sizeof(*one));
    one->attempt = attempt;
    one->world = world;
    one->next = jobs;
    jobs = one;
    DT_ASSERT(world <= RANKS);
    return one;
}

/* Reads the step of the checkpoint that the plan resumes from; false: the checkpoint is missing. */
static bool read_start(int64_t *out, sim_machine *machine, const char *resume_from)
{
    long long attempt, step, total;
    char path[512];
    const sim_inode *inode;

    *out = 0;
    if (resume_from[0] == '\0')
        return true;
    snprintf(path, sizeof(path), "%s/" DT_CHECKPOINT_MARKER, resume_from);
    inode = sim_fs_find(machine, path);
    if (inode == NULL)
        return false;
    snprintf(path, sizeof(path), "%.*s", (int)inode->length, inode->data);
    DT_ASSERT(sscanf(path, "%lld %lld %lld", &attempt, &step, &total) == 3);
    *out = step;
    return true;
}

static void on_nothing_to_continue_from(void *context)
{
    sim_engine *engine = context;

    if (engine->proc->over)
        return;
    say(engine, "{\"event\":\"failed\",\"status\":\"io\",\"message\":\"no checkpoint\"}\n");
    sim_proc_exit(engine->proc, 1 << 8);
}

static const char *word_of(const json_t *json, const char *key)
{
    const char *word = json_string_value(json_object_get(json, key));

    return sim_print("%s", word != NULL ? word : "");
}

/* Parses a plan, with a cache: most ranks get the same plan. */
static const plan *read_plan(const sim_inode *inode)
{
    plan *read;
    json_t *json;

    if (newest_plan != NULL && newest_plan->length == inode->length &&
        memcmp(newest_plan->text, inode->data, (size_t)inode->length) == 0)
        return newest_plan;
    json = json_loadb(inode->data, (size_t)inode->length, 0, NULL);
    DT_ASSERT(json != NULL);
    read = sim_alloc(sizeof(*read));
    read->text = memcpy(sim_alloc((size_t)inode->length), inode->data, (size_t)inode->length);
    read->length = inode->length;
    read->shared = json_is_true(json_object_get(json, "shared"));
    read->directory = word_of(json, "directory");
    read->resume_from = word_of(json, "resume_from");
    json_decref(json);
    newest_plan = read;
    return read;
}

/* Reads the plan. Returns false if the node lost its folder after its preparation, and has no
 * checkpoint to continue from. */
static bool take_plan(sim_engine *engine, const char *path)
{
    sim_machine *machine = engine->proc->machine;
    int64_t start;

    engine->plan = read_plan(sim_fs_find(machine, path));
    if (!read_start(&start, engine->plan->shared ? &sim.machines[0] : machine,
                    engine->plan->resume_from)) {
        if (!machine->wiped)
            sim_fail("a rank continues from '%s', which is not on %s", engine->plan->resume_from,
                     machine->name);
        return false;
    }
    engine->job->start_step = engine->job->step = start;
    return true;
}

void sim_engine_begin(sim_proc *proc, const char *const *environment, const char *plan_path,
                      sim_end *channel, sim_end *out, sim_end *err)
{
    sim_engine *engine = sim_alloc(sizeof(*engine));
    bool ready;

    proc->engine = engine;
    engine->proc = proc;
    engine->rank = number_of(environment, "RANK");
    engine->job =
        job_of(number_of(environment, "DTRUN_ATTEMPT"), number_of(environment, "WORLD_SIZE"));
    engine->channel = channel;
    engine->out = out;
    engine->err = err;
    engine->began_ns = sim_now_ns;
    dt_strbuf_init(&engine->line);
    channel->heard = on_heard;
    channel->heard_context = engine;
    sim_check_rank_begins(proc, engine->job->attempt, engine->rank);
    ready = take_plan(engine, plan_path);
    engine->job->ranks[engine->rank] = engine;
    sim_fault_moment(SIM_A_RANK_BEGINS);
    sim_at(sim_now_ns + sim_between(200 * SIM_MS, 2 * SIM_SECOND),
           ready ? on_begun : on_nothing_to_continue_from, engine);
}
