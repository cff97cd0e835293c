#include "store/activity.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/metric_kinds.h"
#include "store/store_int.h"

/* Points are late after LATE_MS, and after LATE_TIMES the usual time between two points. */
enum { LATE_MS = 2000, LATE_TIMES = 2 };

bool dt_run_has_diverged(const dt_run *run)
{
    return isinf(run->loss) || (isnan(run->loss) && isinf(run->valid_loss));
}

const char *dt_run_state_word(const dt_run *run)
{
    return run->state == DT_RUN_FINISHED && dt_run_has_diverged(run)
               ? "diverged"
               : dt_run_state_name(run->state);
}

bool dt_node_is_away(const dt_node *node)
{
    return strncmp(node->state, DT_NODE_NOT_REACHABLE, strlen(DT_NODE_NOT_REACHABLE)) == 0;
}

static bool is_in(const dt_node *node, const char *state)
{
    return strcmp(node->state, state) == 0;
}

/* Returns true if the run waits for this node. After a restart, a node that is still being
 * connected to while another one is ready counts too: only its timeout would show that it is
 * away. */
static bool is_missing(const dt_activity_facts *facts, const dt_node *node)
{
    bool another_ready = false;

    if (dt_node_is_away(node))
        return facts->run->state != DT_RUN_RUNNING ||
               (facts->silent_ms > LATE_MS && facts->silent_ms > LATE_TIMES * facts->usual_ms);
    for (int64_t i = 0; i < facts->nodes_count; i++)
        another_ready = another_ready || is_in(&facts->nodes[i], "ready");
    return facts->run->state == DT_RUN_PREPARING && facts->run->attempt > 1 && another_ready &&
           is_in(node, "connecting");
}

static bool trains(const dt_run *run)
{
    json_t *recipe = NULL;
    const char *task = NULL;
    bool found;

    if (dt_json_parse(&recipe, run->recipe_json, strlen(run->recipe_json), "recipe", NULL) == DT_OK)
        task = json_string_value(json_object_get(recipe, "task"));
    found = task == NULL || strcmp(task, "train") == 0;
    json_decref(recipe);
    return found;
}

/* Returns what the ranks on responding nodes do. Rank 0 reports the steps: while its node, the
 * first, does not respond, it is unknown whether the other ranks wait. */
static const char *ready_words(const dt_run *run, bool waits, bool first_away)
{
    switch (run->state) {
    case DT_RUN_RUNNING:
        return first_away ? "running" : waits ? "waiting" : trains(run) ? "training" : "running";
    case DT_RUN_STOPPING:
        return "stopping";
    default:
        return "ready";
    }
}

void dt_activity_of(dt_activity *out, const dt_activity_facts *facts, dt_arena *arena)
{
    const dt_run *run = facts->run;
    const dt_node *missing = NULL;
    bool first_away = false;

    *out = (dt_activity){.words = dt_run_state_word(run),
                         .failed = run->state == DT_RUN_STOPPED ? "stopped" : "failed"};
    for (int64_t i = 0; i < facts->nodes_count && !dt_run_state_is_terminal(run->state); i++)
        if (is_missing(facts, &facts->nodes[i])) {
            missing = &facts->nodes[i];
            first_away = first_away || missing->node == 0;
            out->missing++;
        }
    out->ready = ready_words(run, out->missing > 0, first_away);
    out->steps = run->state == DT_RUN_RUNNING && run->first_step_ms != 0 && out->missing == 0;
    if (run->state == DT_RUN_STOPPING)
        out->words = facts->ending[0] != '\0' ? facts->ending : out->words;
    else if (out->missing == 1)
        out->words = dt_arena_printf(arena, "waiting for %s", missing->name);
    else if (out->missing > 1)
        out->words = dt_arena_printf(arena, "waiting for %lld nodes", (long long)out->missing);
}

/* Returns why the newest attempt is being ended, from the supervisor's newest event; "" if a person asked for it. */
static dt_status read_ending(const char **out, dt_store *store, const dt_run *run, dt_arena *arena,
                             dt_error *err)
{
    dt_status st;
    bool found;

    *out = "";
    st = DT_SQL_FIRST(out, &found, &dt_sql_one_text, store, arena, err,
                      "SELECT e.kind FROM events e JOIN runs r USING (run) WHERE r.id = ?1 AND"
                      " e.attempt = ?2 AND e.kind IN ('stop', '" DT_EVENT_RESTARTING
                      "', '" DT_EVENT_FAILING "') ORDER BY e.event DESC LIMIT 1",
                      DT_TEXT(run->id), DT_INT(run->attempt));
    if (strcmp(*out, "stop") == 0)
        *out = "";
    return st;
}

dt_status dt_progress_curve(const char **out, dt_store *store, const dt_run *run, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t one;
    bool lines;

    *out = dt_metric_name(DT_METRIC_LOSS);
    DT_TRY(DT_SQL_FIRST(
        &one, &lines, &dt_sql_one_int, store, NULL, err,
        "SELECT 1 FROM series s JOIN runs r USING (run) WHERE r.id = ?1 AND s.name = ?2",
        DT_TEXT(run->id), DT_TEXT(dt_metric_name(DT_METRIC_LINES_PER_SECOND))));
    if (lines)
        *out = dt_metric_name(DT_METRIC_LINES_PER_SECOND);
out:
    return st;
}

dt_status dt_last_points_read(dt_last_points *out, dt_store *store, const dt_run *run,
                              dt_error *err)
{
    dt_sql_rows rows = {0};
    dt_status st = DT_OK;
    bool more;

    *out = (dt_last_points){.value = NAN};
    DT_TRY(dt_progress_curve(&out->curve, store, run, err));
    DT_TRY(DT_SQL_OPEN(
        &rows, store, NULL, err,
        "SELECT m.step, m.time_ms, m.value FROM metrics m JOIN series s USING (series)"
        " JOIN runs r USING (run) WHERE r.id = ?1 AND s.name = ?4"
        " AND m.attempt = ?2 AND m.time_ms >= ?3 ORDER BY m.step DESC LIMIT 2",
        DT_TEXT(run->id), DT_INT(run->attempt), DT_INT(run->started_ms), DT_TEXT(out->curve)));
    for (;;) {
        DT_TRY(dt_sql_next(&rows, &more, err));
        if (!more)
            break;
        out->step[out->count] = dt_sql_int(&rows);
        out->time_ms[out->count++] = dt_sql_int(&rows);
        if (out->count == 1)
            out->value = dt_sql_real(&rows);
    }
out:
    dt_sql_close(&rows);
    return st;
}

/* Sets the time since the newest point, and the usual time between two points. */
static dt_status read_silence(dt_activity_facts *facts, dt_store *store, int64_t now_ms,
                              dt_error *err)
{
    dt_last_points last;
    dt_status st = dt_last_points_read(&last, store, facts->run, err);
    int64_t since_ms = last.count > 0 ? last.time_ms[0] : facts->run->first_step_ms;

    if (st != DT_OK)
        return st;
    facts->silent_ms = since_ms > 0 ? now_ms - since_ms : 0;
    facts->usual_ms = last.count > 1 ? last.time_ms[0] - last.time_ms[1] : 0;
    return DT_OK;
}

dt_status dt_activity_read(dt_activity *out, dt_store *store, const dt_run *run, int64_t now_ms,
                           dt_arena *arena, dt_error *err)
{
    dt_activity_facts facts = {.run = run, .ending = ""};
    dt_node *nodes = NULL;
    dt_status st = DT_OK;
    bool away = false;

    if (!dt_run_state_is_terminal(run->state))
        DT_TRY(dt_store_node_list(store, &nodes, &facts.nodes_count, run->id, run->attempt, arena,
                                  err));
    facts.nodes = nodes;
    for (int64_t i = 0; i < facts.nodes_count; i++)
        away = away || dt_node_is_away(&nodes[i]);
    if (run->state == DT_RUN_RUNNING && away)
        DT_TRY(read_silence(&facts, store, now_ms, err));
    if (run->state == DT_RUN_STOPPING)
        DT_TRY(read_ending(&facts.ending, store, run, arena, err));
    dt_activity_of(out, &facts, arena);
out:
    return st;
}

const char *dt_activity_of_rank(const dt_activity *activity, const dt_node *node,
                                const dt_rank *rank)
{
    bool ready = strcmp(rank->state, "ready") == 0;

    if (ready || strcmp(rank->state, "started") == 0) {
        if (is_in(node, "lost") || (dt_node_is_away(node) && !activity->steps))
            return "not responding";
        return ready ? activity->ready : "starting";
    }
    return strcmp(rank->state, "failed") == 0 ? activity->failed : rank->state;
}
