#include "web/web_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/display.h"
#include "store/activity.h"

static json_t *web_text_json(const char *bytes, size_t length)
{
    dt_strbuf text;
    json_t *json;

    dt_strbuf_init(&text);
    dt_display_add_page(&text, bytes, length);
    json = json_stringn(text.data, text.length);
    dt_strbuf_release(&text);
    return json;
}

json_t *dt_web_string_json(const char *text)
{
    return text != NULL ? web_text_json(text, strlen(text)) : json_string("");
}

json_t *dt_web_value_json(json_t *value)
{
    const char *key;
    json_t *item;
    size_t at;
    void *next;

    if (json_is_string(value)) {
        item = web_text_json(json_string_value(value), json_string_length(value));
        json_decref(value);
        return item;
    }
    json_array_foreach(value, at, item)
        json_array_set_new(value, at, dt_web_value_json(json_incref(item)));
    json_object_foreach_safe(value, next, key, item)
        json_object_set_new(value, key, dt_web_value_json(json_incref(item)));
    return value;
}

void dt_web_add_real(dt_strbuf *out, double value)
{
    char text[40];

    if (!isfinite(value)) {
        dt_strbuf_add_str(out, "null");
        return;
    }
    snprintf(text, sizeof(text), "%.17g", value);
    dt_strbuf_add_str(out, text);
    if (strpbrk(text, ".e") == NULL)
        dt_strbuf_add_str(out, ".0"); /* keeps the type: a real number has a decimal point */
}

json_t *dt_web_time_json(int64_t ms)
{
    return ms != 0 ? json_integer(ms) : json_null();
}

double dt_web_speed(const dt_run *run, const dt_activity *activity)
{
    return activity->steps || dt_run_state_is_terminal(run->state) ? run->tokens_per_second : NAN;
}

double dt_web_eta_seconds(const dt_run *run, const dt_activity *activity, int64_t start_step,
                          int64_t now_ms)
{
    int64_t done = run->step - start_step, left = run->steps_total - run->step;
    double elapsed = (double)(now_ms - run->first_step_ms) / 1000.0;

    if (!activity->steps || run->steps_total == 0 || done < 2 || left < 0 || elapsed <= 0)
        return NAN;
    return elapsed / (double)done * (double)left;
}

/* Adds the task of the recipe, and "item": "row" for a model that reads rows (only those have
 * model.inputs), else "token". */
static void add_kind(json_t *out, const dt_run *run)
{
    const char *task = NULL;
    json_t *recipe = NULL;
    bool rows = false;

    if (dt_json_parse(&recipe, run->recipe_json, strlen(run->recipe_json), "recipe", NULL) ==
        DT_OK) {
        rows = json_integer_value(json_object_get(json_object_get(recipe, "model"), "inputs")) > 0;
        task = json_string_value(json_object_get(recipe, "task"));
    }
    json_object_set_new(out, "item", json_string(rows ? "row" : "token"));
    json_object_set_new(out, "task", dt_web_string_json(task != NULL ? task : "train"));
    json_decref(recipe);
}

json_t *dt_web_run_json(const dt_run *run, const dt_activity *activity, int64_t now_ms)
{
    json_t *out = json_pack(
        "{so ss so so sI so so so so sI so so so sb so so so so so so so so so so sI}", "id",
        dt_web_string_json(run->id), "state", dt_run_state_name(run->state), "activity",
        dt_web_string_json(activity->words), "name", dt_web_string_json(run->name), "attempt",
        (json_int_t)run->attempt, "created_ms", dt_web_time_json(run->created_ms), "started_ms",
        dt_web_time_json(run->started_ms), "first_step_ms", dt_web_time_json(run->first_step_ms),
        "ended_ms", dt_web_time_json(run->ended_ms), "step", (json_int_t)run->step, "steps_total",
        run->steps_total > 0 ? json_integer(run->steps_total) : json_null(), "loss",
        dt_json_number(run->loss), "valid_loss", dt_json_number(run->valid_loss), "diverged",
        (int)dt_run_has_diverged(run), "tokens_per_second",
        dt_json_number(dt_web_speed(run, activity)), "elapsed_seconds",
        dt_json_number(dt_run_elapsed_seconds(run, now_ms)), "exit_code",
        run->exit_code >= 0 ? json_integer(run->exit_code) : json_null(), "reason",
        dt_web_string_json(run->reason), "recipe_path", dt_web_string_json(run->recipe_path),
        "recipe_hash", dt_web_string_json(run->recipe_hash), "tags", dt_web_string_json(run->tags),
        "group", dt_web_string_json(run->group), "note", dt_web_string_json(run->note), "parent",
        dt_web_string_json(run->parent), "parent_step", (json_int_t)run->parent_step);

    add_kind(out, run);
    return out;
}

json_t *dt_web_value_of_run_json(const dt_run_value *value)
{
    if (!value->there)
        return json_null();
    return value->is_number && isfinite(value->number) ? dt_json_number(value->number)
                                                       : dt_web_string_json(value->text);
}

dt_status dt_web_row_json(json_t **out, dt_store *store, const dt_run *run,
                          const dt_web_query *query, int64_t now_ms, dt_arena *arena, dt_error *err)
{
    dt_run_entry entry = {.run = run};
    json_t *row = NULL, *columns;
    dt_activity activity;
    dt_status st = DT_OK;
    dt_run_value value;

    DT_TRY(dt_activity_read(&activity, store, run, now_ms, arena, err));
    row = dt_web_run_json(run, &activity, now_ms);
    if (query->columns_count > 0) {
        columns = json_object();
        json_object_set_new(row, "columns", columns);
        for (int64_t i = 0; i < query->columns_count; i++) {
            DT_TRY(dt_run_value_get(&value, store, &entry, query->columns[i], arena, err));
            json_object_set_new(columns, query->columns[i], dt_web_value_of_run_json(&value));
        }
    }
    *out = json_incref(row);
out:
    dt_run_entry_release(&entry);
    json_decref(row);
    return st;
}

bool dt_web_event_is_shown(const char *kind)
{
    return strcmp(kind, "metrics") != 0 && strcmp(kind, "log") != 0 && strcmp(kind, "phase") != 0;
}

json_t *dt_web_event_json(const dt_store_event *e)
{
    json_t *detail;

    if (dt_json_parse(&detail, e->json, strlen(e->json), "event", NULL) != DT_OK)
        detail = json_null();
    if (strcmp(e->kind, DT_STORE_SAMPLES) == 0) /* these have routes of their own */
        json_object_del(detail, "samples");
    if (strcmp(e->kind, DT_STORE_CONFUSION) == 0)
        json_object_del(detail, "counts");
    return json_pack(
        "{sI sI so so so so so}", "id", (json_int_t)e->id, "attempt", (json_int_t)e->attempt,
        "node", e->node >= 0 ? json_integer(e->node) : json_null(), "rank",
        e->rank >= 0 ? json_integer(e->rank) : json_null(), "time_ms", dt_web_time_json(e->time_ms),
        "event", dt_web_string_json(e->kind), "detail", dt_web_value_json(detail));
}

json_t *dt_web_log_line_json(const char *at, size_t length)
{
    const char *space = memchr(at, ' ', length);
    size_t time = space != NULL ? (size_t)(space - at) : 0;
    size_t skip = space != NULL ? time + 1 : 0;

    return json_pack("{so so}", "time", web_text_json(at, time), "text",
                     web_text_json(at + skip, length - skip));
}
