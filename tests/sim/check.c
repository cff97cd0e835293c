/* check: checks the promises against what ranks did, what the store holds, and which processes still run. */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/agent/journal/journal.h"
#include "runner/supervisor/rebuild/rebuild.h"
#include "store/curve.h"
#include "store/event.h"
#include "store/run.h"
#include "store/store.h"
#include "tests/sim/sim.h"

double sim_loss(int64_t attempt, int64_t step)
{
    return 5.0 - 0.01 * (double)step + 0.0001 * (double)attempt;
}

/* --- events that were acknowledged to an agent as stored (the wrapped dt_journal_trim) */

#define STOP_NS    (30 * SIM_SECOND)  /* after the grace period */
#define IDLE_NS    (900 * SIM_SECOND) /* an agent without a run and ranks */
#define HUNG_NS    (90 * SIM_SECOND)  /* an agent that sends nothing, after a minute */
#define SETTLED_NS (10 * SIM_SECOND)  /* a killed rank may end this much later */

enum { ATTEMPTS = 64, STEPS = 64, FOLLOWED = 256 };

typedef struct followed {
    const sim_inode *journal;
    int64_t offset; /* bytes read so far */
} followed;

static struct {
    bool safe[ATTEMPTS][STEPS];
    followed journals[FOLLOWED];
    int count;
    int64_t begun,
        resumes; /* the newest attempt with a rank that began, and the number of resumes by then */
    int64_t grew, growths; /* the newest attempt that was stopped to grow, and how many were */
} seen;

void sim_check_point(int64_t attempt, int64_t step)
{
    int64_t since = schedule.stop_ns;

    schedule.points++;
    if (schedule.trouble_until_ns > since)
        since = schedule.trouble_until_ns;
    if (strstr(schedule.reason, "cannot verify that nothing is left") != NULL)
        return; /* stop has reported that this node could not be asked */
    if (schedule.attempt_at_stop > 0 &&
        sim_now_ns > since + (int64_t)(schedule.grace_seconds * 1e9) + STOP_NS)
        sim_fail("attempt %lld makes step %lld, long after a stop was accepted", (long long)attempt,
                 (long long)step);
}

/* --- one supervisor */

static int64_t count_supervisors(void)
{
    int64_t count = 0;

    for (const sim_proc *each = sim.machines[0].procs; each != NULL; each = each->next)
        if (!each->over && strcmp(each->name, "supervisor") == 0 &&
            (sim_now_ns / (10 * SIM_MS) - each->start_ticks) > 1000)
            count++;
    return count;
}

/* --- no agent stays for hours because of a connection whose other end is gone */

static bool has_ranks(const sim_proc *agent)
{
    for (const sim_proc *each = agent->machine->procs; each != NULL; each = each->next)
        if (!each->over && each->engine != NULL && each->parent == agent)
            return true;
    return false;
}

static void check_idle(sim_proc *agent)
{
    if (!schedule.ended || has_ranks(agent))
        agent->idle_since_ns = 0;
    else if (agent->idle_since_ns == 0)
        agent->idle_since_ns = sim_now_ns;
    else if (sim_now_ns > agent->idle_since_ns + IDLE_NS)
        sim_fail("agent[%d] lives on %s, %lld s after the run has ended", agent->pid,
                 agent->machine->name, (long long)(IDLE_NS / SIM_SECOND));
}

void sim_check_now(void)
{
    if (count_supervisors() > 1)
        sim_fail("two supervisors follow the run");
    for (int i = 0; i < sim.machine_count; i++)
        for (sim_proc *each = sim.machines[i].procs; each != NULL; each = each->next)
            if (!each->over && strcmp(each->name, "agent") == 0)
                check_idle(each);
}

static followed *follow(const sim_inode *journal)
{
    for (int i = 0; i < seen.count; i++)
        if (seen.journals[i].journal == journal)
            return &seen.journals[i];
    DT_ASSERT(seen.count < FOLLOWED);
    seen.journals[seen.count] = (followed){journal, 0};
    return &seen.journals[seen.count++];
}

static void note_line(const char *line, size_t length, int attempt)
{
    const char *step = memmem(line, length, "\"step\":", 7);
    int64_t number = step != NULL ? strtoll(step + 7, NULL, 10) : 0;

    if (memmem(line, length, "\"event\":\"metrics\"", 17) != NULL && number > 0 && number < STEPS &&
        attempt < ATTEMPTS)
        seen.safe[attempt][number] = true;
}

/* --- the history as a power loss of the launch machine would leave it now */

/* One connection for all checks of a world, which reads the schema once. Its file shares the
 * data of the store's file, and is only read. */
static struct {
    sqlite3 *db;
    sqlite3_stmt *statement;
    sim_inode *store, *log;
} durable;

static void show(sim_inode *shown, const char *from, bool synced)
{
    const sim_inode *inode = sim_fs_find(&sim.machines[0], from);

    shown->data = inode != NULL ? inode->data : NULL;
    shown->length = inode == NULL ? 0 : synced ? inode->synced : inode->length;
    shown->synced = shown->capacity = shown->length;
}

static void open_durable(void)
{
    static const char sql[] = "SELECT acknowledged FROM nodes WHERE attempt = ? AND node = ?";

    sqlite3_open("/durable.db", &durable.db);
    sqlite3_prepare_v2(durable.db, sql, -1, &durable.statement, NULL);
    /* No schema yet: closes the connection, so that the next check opens the file again. */
    if (durable.statement == NULL) {
        sqlite3_db_config(durable.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        sqlite3_close(durable.db);
        durable.db = NULL;
    }
}

static int64_t read_durable(int attempt, int node)
{
    int64_t sequence = -1;

    if (durable.db == NULL)
        open_durable();
    else
        sqlite3_file_control(durable.db, "main", SQLITE_FCNTL_RESET_CACHE, NULL);
    sqlite3_bind_int(durable.statement, 1, attempt);
    sqlite3_bind_int(durable.statement, 2, node);
    if (durable.statement != NULL && sqlite3_step(durable.statement) == SQLITE_ROW)
        sequence = sqlite3_column_int64(durable.statement, 0);
    sqlite3_reset(durable.statement);
    return sequence;
}

static int64_t durable_sequence(int attempt, int node)
{
    sim_task *self = sim_running;
    int64_t sequence;

    if (durable.store == NULL) {
        durable.store = sim_fs_make(&sim.machines[0], "/durable.db", false);
        durable.log = sim_fs_make(&sim.machines[0], "/durable.db-wal", false);
    }
    show(durable.store, SIM_STATE "/dtrun/store.db", false);
    show(durable.log, SIM_STATE "/dtrun/store.db-wal", true);
    for (size_t i = 0; i < sizeof(durable.store->shm) / sizeof(durable.store->shm[0]); i++)
        if (durable.store->shm[i] != NULL) /* the index of the log has to be built again */
            memset(durable.store->shm[i], 0, SIM_SHM_BYTES);
    sim_running = NULL; /* the connection belongs to the world, and outlives the running process */
    sequence = read_durable(attempt, node);
    sim_running = self;
    return sequence;
}

/* Checks that acknowledged events before `sequence` would survive a power loss. */
static void check_durable(int attempt, int node, int64_t sequence)
{
    const sim_machine *machine = sim_machine_self();
    int64_t left;

    if (machine->full_until_ns > sim_now_ns || machine->slow_until_ns > sim_now_ns ||
        !sim_chance(0.02))
        return;
    left = durable_sequence(attempt, node);
    if (left < sequence)
        sim_fail("the agent of node %d may delete events before %lld, but a power loss leaves %lld",
                 node, (long long)sequence, (long long)left);
}

static void note_safe(const char *folder, int64_t sequence)
{
    char path[640];
    const sim_inode *journal;
    int attempt = 0, node = 0;
    followed *from;

    snprintf(path, sizeof(path), "%s/journal.jsonl", folder);
    journal = sim_fs_find(sim_machine_self(), path);
    if (journal == NULL || schedule.damaged || strstr(folder, "attempt-") == NULL ||
        sscanf(strstr(folder, "attempt-"), "attempt-%d/node-%d", &attempt, &node) != 2)
        return;
    check_durable(attempt, node, sequence);
    from = follow(journal);
    while (from->offset < journal->length) {
        const char *line = journal->data + from->offset;
        const char *end = memchr(line, '\n', (size_t)(journal->length - from->offset));
        const char *number;

        if (end == NULL)
            return;
        number = memmem(line, (size_t)(end - line), "\"sequence\":", 11);
        if (number != NULL && strtoll(number + 11, NULL, 10) >= sequence)
            return;
        note_line(line, (size_t)(end - line), attempt);
        from->offset += end - line + 1;
    }
}

dt_status __real_dt_journal_trim(dt_journal *journal, int64_t sequence, int64_t most_bytes,
                                 dt_error *err);
dt_status __wrap_dt_journal_trim(dt_journal *journal, int64_t sequence, int64_t most_bytes,
                                 dt_error *err);
dt_status __wrap_dt_journal_trim(dt_journal *journal, int64_t sequence, int64_t most_bytes,
                                 dt_error *err)
{
    note_safe(sim_self()->cwd, sequence);
    return __real_dt_journal_trim(journal, sequence, most_bytes, err);
}

void sim_check_begin(void)
{
    memset(&seen, 0, sizeof(seen));
    memset(&durable, 0, sizeof(durable));
}

/* --- an agent is replaced only if something kept it from responding for long */

void sim_check_replaced(const void *proc)
{
    const sim_proc *agent = proc;
    const sim_machine *machine = agent->machine;
    int64_t lately = sim_now_ns - HUNG_NS;
    char folder[64];

    snprintf(folder, sizeof(folder), "/attempt-%lld/", (long long)seen.begun);
    if (strstr(agent->cwd, folder) == NULL || agent->paused || agent->woken_ns > lately ||
        machine->slow_until_ns > lately || machine->full_until_ns > lately)
        return;
    sim_fail("agent[%d] on %s is replaced, but nothing kept it from responding", agent->pid,
             machine->name);
}

/* --- one attempt at a time */

/* Returns true if the attempt began to train after all faults that can end an attempt were over,
 * and no such fault came since. */
static bool had_peace(int64_t attempt)
{
    return schedule.trained_attempt == attempt &&
           schedule.harm_until_ns + SETTLED_NS < schedule.trained_ns;
}

/* Returns the number of nodes that can be found missing one after the other, each in an attempt
 * of its own; at least 1. */
static int64_t count_away(void)
{
    int64_t count = 0, spare = schedule.nodes - schedule.nodes_min;

    for (int i = 0; i < sim.machine_count; i++)
        count += sim.machines[i].troubled || sim.machines[i].closed_until_ns > 0;
    count = count < spare ? count : spare;
    return count > 1 ? count : 1;
}

/* Counts the attempts that were ended to continue on nodes that were lost (supervisor/session/grow.c). */
static void see_growth(void)
{
    const sim_inode *mark =
        sim_fs_find(&sim.machines[0], SIM_STATE "/dtrun/runs/" SIM_RUN "/grows");
    int64_t attempt = mark != NULL && mark->length > 0 ? strtoll(mark->data, NULL, 10) : 0;

    if (attempt > seen.grew)
        seen.growths++;
    seen.grew = attempt;
}

/* Checks that each attempt has a cause: a fault that ended before the previous attempt trained does not count. */
static void check_count(int64_t attempt)
{
    int64_t most;

    see_growth();
    most = 1 + schedule.harms + schedule.resumes + seen.growths;
    if (schedule.nodes_min > 0) /* each fault can also cause attempts without the missing nodes */
        most += schedule.harms * count_away();
    if (attempt > most)
        sim_fail("%lld attempts, after %lld things that can end one: %s", (long long)attempt,
                 (long long)schedule.harms, schedule.reason);
    if (seen.resumes == schedule.resumes && seen.grew != attempt - 1 && had_peace(attempt - 1))
        sim_fail("attempt %lld follows one to which nothing had happened since it began to train",
                 (long long)attempt);
    seen.begun = attempt;
    seen.resumes = schedule.resumes;
}

/* Returns true for a machine that could be reached when the attempt ended. Others are given up,
 * and may still have ranks. */
static bool could_be_asked(const sim_machine *machine)
{
    return !machine->troubled && machine->closed_until_ns + 60 * SIM_SECOND < sim_now_ns;
}

void sim_check_rank_begins(void *context, int64_t attempt, int64_t rank)
{
    sim_proc *proc = context;

    if (attempt > seen.begun)
        check_count(attempt);
    proc->attempt = attempt;
    proc->rank = rank;
    for (int i = 0; i < sim.machine_count; i++)
        for (const sim_proc *each = sim.machines[i].procs; each != NULL; each = each->next) {
            if (each->over || each->engine == NULL || each == proc)
                continue;
            if (each->attempt == attempt && each->rank == rank)
                sim_fail("rank %lld of attempt %lld runs twice", (long long)rank,
                         (long long)attempt);
            if (each->attempt != attempt &&
                (&sim.machines[i] == proc->machine || could_be_asked(&sim.machines[i])))
                sim_fail("a rank of attempt %lld begins on %s while one of attempt %lld lives on "
                         "%s",
                         (long long)attempt, proc->machine->name, (long long)each->attempt,
                         sim.machines[i].name);
        }
}

/* --- the history */

static void check_points(dt_store *store, dt_arena *arena)
{
    dt_metric *points;
    int64_t count, next = 1;

    if (dt_store_metric_list(store, &points, &count, SIM_RUN, "loss", 0, 0, arena, NULL) != DT_OK) {
        sim_fail("the history cannot be read");
        return;
    }
    for (int64_t i = 0; i < count; i++, next++) {
        if (schedule.damaged && points[i].step > next)
            next = points[i].step;
        if (points[i].step != next) {
            sim_fail("the history has step %lld where step %lld is due", (long long)points[i].step,
                     (long long)next);
            return;
        }
        if (fabs(points[i].value - sim_loss(points[i].attempt, points[i].step)) > 1e-9)
            sim_fail("step %lld has another loss than its rank reported",
                     (long long)points[i].step);
    }
    if (schedule.state == DT_RUN_FINISHED && !schedule.damaged && next != schedule.steps + 1)
        sim_fail("the run has finished, and its history ends at step %lld of %lld",
                 (long long)next - 1, (long long)schedule.steps);
}

static void check_safe(void)
{
    static const char sql[] = "SELECT attempt, step FROM metrics JOIN series USING (series)"
                              " WHERE name = 'loss'";
    bool there[ATTEMPTS][STEPS] = {{false}};
    sqlite3_stmt *statement = NULL;
    sqlite3 *db = NULL;

    sqlite3_open_v2(SIM_STATE "/dtrun/store.db", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                    NULL);
    sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    while (statement != NULL && sqlite3_step(statement) == SQLITE_ROW)
        if (sqlite3_column_int(statement, 0) < ATTEMPTS && sqlite3_column_int(statement, 1) < STEPS)
            there[sqlite3_column_int(statement, 0)][sqlite3_column_int(statement, 1)] = true;
    sqlite3_finalize(statement);
    sqlite3_close(db);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++)
        for (int step = 0; step < STEPS; step++)
            if (!schedule.damaged && seen.safe[attempt][step] && !there[attempt][step])
                sim_fail("step %d of attempt %d was acknowledged, and is not in the history", step,
                         attempt);
}

/* Checks that a run that grew has repeated no step: it continued from the last one of the attempt before. */
static void check_growths(void)
{
    static const char sql[] =
        "SELECT n.attempt, n.start_step, (SELECT max(step) FROM metrics JOIN series USING (series)"
        " WHERE name = 'loss' AND attempt = n.attempt - 1) FROM attempts n"
        " WHERE n.attempt IN (SELECT attempt FROM events WHERE kind = 'grown')";
    sqlite3_stmt *statement = NULL;
    sqlite3 *db = NULL;

    sqlite3_open_v2(SIM_STATE "/dtrun/store.db", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                    NULL);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        sim_fail("attempts cannot be read: %s", sqlite3_errmsg(db));
    while (statement != NULL && sqlite3_step(statement) == SQLITE_ROW) {
        schedule.grown++;
        if (!schedule.damaged && sqlite3_column_type(statement, 2) != SQLITE_NULL &&
            sqlite3_column_int(statement, 2) > sqlite3_column_int(statement, 1))
            sim_fail("attempt %d grew at step %d, and the one before had done step %d",
                     sqlite3_column_int(statement, 0), sqlite3_column_int(statement, 1),
                     sqlite3_column_int(statement, 2));
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
}

/* Checks that no store was treated as an older copy: crashes must never look like one. */
static void check_never_older(dt_store *store, dt_arena *arena)
{
    dt_store_event *events;
    int64_t count;

    if (schedule.damaged ||
        dt_store_event_list(store, &events, &count, SIM_RUN, 0, 0, arena, NULL) != DT_OK)
        return;
    for (int64_t i = 0; i < count; i++)
        if (strcmp(events[i].kind, "gap") == 0 &&
            strstr(events[i].json, "restored from its folder") != NULL)
            sim_fail("the run store was treated as an older copy: %s", events[i].json);
}

/* Each rank prints one line for each step; checks that no line is in its log twice. */
static void check_log(int64_t rank)
{
    bool there[ATTEMPTS][STEPS] = {{false}};
    const sim_inode *log;
    char path[256];

    snprintf(path, sizeof(path), SIM_STATE "/dtrun/runs/" SIM_RUN "/logs/rank-%lld.log",
             (long long)rank);
    log = sim_fs_find(&sim.machines[0], path);
    for (int64_t at = 0; log != NULL && at < log->length;) {
        const char *line = log->data + at, *said;
        const char *end = memchr(line, '\n', (size_t)(log->length - at));
        size_t length = end != NULL ? (size_t)(end - line) : (size_t)(log->length - at);
        int attempt, step;

        said = memmem(line, length, " attempt ", 9);
        if (said != NULL && sscanf(said, " attempt %d step %d", &attempt, &step) == 2 &&
            attempt < ATTEMPTS && step < STEPS) {
            if (there[attempt][step])
                sim_fail("the log of rank %lld has step %d of attempt %d twice", (long long)rank,
                         step, attempt);
            there[attempt][step] = true;
        }
        at += (int64_t)length + 1;
    }
}

static void check_saved(dt_store *store, dt_arena *arena)
{
    dt_store_checkpoint *rows;
    int64_t count, newest = 0;

    if (schedule.state != DT_RUN_FINISHED ||
        dt_store_checkpoint_list(store, &rows, &count, SIM_RUN, arena, NULL) != DT_OK)
        return;
    for (int64_t i = 0; i < count; i++)
        newest = rows[i].step > newest ? rows[i].step : newest;
    if (newest != schedule.steps && schedule.harms == 0 && !schedule.troubled)
        sim_fail("the run has finished, and its last checkpoint is of step %lld",
                 (long long)newest);
}

/* --- the end of a run */

static void check_ending(void)
{
    switch (schedule.state) {
    case DT_RUN_FINISHED:
        break;
    case DT_RUN_STOPPED:
        if (!schedule.stop_asked)
            sim_fail("the run was stopped, but no stop was requested");
        break;
    case DT_RUN_FAILED:
        if (schedule.harms == 0)
            sim_fail("the run failed, and nothing had happened to it: %s", schedule.reason);
        if (schedule.reason[0] == '\0')
            sim_fail("the run failed without a reason");
        if (had_peace(schedule.attempt))
            sim_fail(
                "the run failed, and nothing but perhaps a stop had happened since attempt %lld"
                " began to train: %s",
                (long long)schedule.attempt, schedule.reason);
        break;
    default:
        sim_fail("the run has not ended");
    }
    if (schedule.attempt_at_stop > 0 && schedule.attempt > schedule.attempt_at_stop)
        sim_fail("attempt %lld follows a stop that was accepted in attempt %lld",
                 (long long)schedule.attempt, (long long)schedule.attempt_at_stop);
    if (schedule.attempt > seen.begun) /* no rank of it began */
        check_count(schedule.attempt);
}

static void check_nothing_lives(void)
{
    for (int i = 0; i < sim.machine_count; i++)
        for (const sim_proc *each = sim.machines[i].procs; each != NULL; each = each->next)
            if (!each->over)
                sim_fail("%s[%d] still lives on %s", each->name, each->pid, sim.machines[i].name);
}

static int look(sim_proc *proc)
{
    dt_error err = DT_ERROR_INIT;
    dt_store *store = NULL;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_store_open(&store, NULL, &err) == DT_OK) {
        if (schedule.damaged)
            dt_restore_run(store, SIM_RUN);
        check_points(store, &arena);
        check_saved(store, &arena);
        check_growths();
        check_never_older(store, &arena);
        check_safe();
        for (int64_t rank = 0; rank < schedule.nodes * schedule.ranks_per_node; rank++)
            check_log(rank);
    } else {
        sim_fail("the history cannot be opened: %s", err.message);
    }
    dt_store_close(store);
    dt_arena_release(&arena);
    return 0;
}

void sim_check_end(void)
{
    check_ending();
    check_nothing_lives();
    /* Gives SQLite room for its own files while checking. */
    sim.machines[0].full_until_ns = sim_now_ns;
    sim_proc_start(&sim.machines[0], NULL, "check", look, NULL);
    sim_run_until(sim_now_ns + 60 * SIM_SECOND, NULL);
}
