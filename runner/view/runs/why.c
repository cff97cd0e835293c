#include "runner/view/runs/why.h"

#include <string.h>

#include "base/clock.h"
#include "runner/supervisor/folder/run_folder.h"
#include "store/why.h"

#define OLD_MS 60000 /* a judgement comes every few seconds, or with a step */

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

dt_status dt_why_of_run(json_t **out, const dt_run *run, dt_arena *arena, dt_error *err)
{
    const char *folder;
    dt_status st = DT_OK;

    *out = NULL;
    DT_TRY(dt_run_path(&folder, run->id, NULL, arena, err));
    *out = dt_why_read(folder, run->attempt);
out:
    return st;
}

dt_status dt_why_now(json_t **out, const dt_run *run, int64_t now_ms, dt_arena *arena,
                     dt_error *err)
{
    dt_status st = DT_OK;
    double longest;

    *out = NULL;
    if (run->state != DT_RUN_RUNNING)
        return DT_OK;
    DT_TRY(dt_why_of_run(out, run, arena, err));
    longest = OLD_MS + 3e3 * number_of(*out, "step_seconds");
    if (*out != NULL && (double)now_ms - number_of(*out, "time_ms") > longest) {
        json_decref(*out);
        *out = NULL;
    }
out:
    return st;
}

void dt_why_add_line(dt_strbuf *out, const dt_term *term, const json_t *why)
{
    const json_t *finding = json_array_get(json_object_get(why, "findings"), 0);

    if (json_is_object(finding))
        dt_term_add_wrapped(out, term, DT_STYLE_WARN, 2, term->seen ? (size_t)term->columns - 1 : 0,
                            text_of(finding, "text"));
}

/* --- all of it */

static void add_milliseconds(dt_table *table, dt_style style, const json_t *seconds)
{
    if (json_is_number(seconds))
        dt_table_add(table, style, "%.2f ms", 1e3 * json_number_value(seconds));
    else
        dt_table_add(table, DT_STYLE_DIM, "?");
}

static void add_parts(dt_strbuf *out, const dt_term *term, const json_t *why, dt_arena *arena)
{
    static const dt_table_column columns[] = {
        {"part of a step", false}, {"time", true}, {"share", true}, {"at least", true}};
    double step = number_of(why, "step_seconds"), sum = 0;
    const json_t *part;
    dt_table table;
    size_t i;

    dt_table_init(&table, columns, 4, arena);
    json_array_foreach(json_object_get(why, "parts"), i, part) {
        sum += number_of(part, "seconds");
        dt_table_add(&table, DT_STYLE_PLAIN, "%s", text_of(part, "part"));
        add_milliseconds(&table, DT_STYLE_PLAIN, json_object_get(part, "seconds"));
        dt_table_add(&table, DT_STYLE_PLAIN, "%.1f %%", 100 * number_of(part, "share"));
        add_milliseconds(&table, DT_STYLE_DIM, json_object_get(part, "least_seconds"));
    }
    dt_table_add(&table, DT_STYLE_BOLD, "step");
    dt_table_add(&table, DT_STYLE_BOLD, "%.2f ms", 1e3 * step);
    dt_table_add(&table, DT_STYLE_BOLD, "%.1f %%", step > 0 ? 100 * sum / step : 0);
    dt_table_add(&table, DT_STYLE_PLAIN, "%s", "");
    dt_table_write(out, &table, term, 2);
    if (json_is_true(json_object_get(why, "computes_on_gpu")))
        dt_term_add(out, term, DT_STYLE_DIM,
                    "  on a GPU, 'other arithmetic' has products and attention too\n");
}

static void add_ranks(dt_strbuf *out, const dt_term *term, const json_t *why, dt_arena *arena)
{
    static const dt_table_column columns[] = {
        {"rank", true},      {"node", false},    {"own time", true}, {"blocked", true},
        {"forward", true},   {"backward", true}, {"update", true},   {"input", true},
        {"processor", true}, {"lacked", true}};
    static const char *const keys[] = {"own_seconds",      "blocked_seconds", "forward_seconds",
                                       "backward_seconds", "update_seconds",  "input_seconds"};
    const json_t *ranks = json_object_get(why, "ranks"), *rank;
    dt_table table;
    size_t i;

    dt_table_init(&table, columns, 10, arena);
    json_array_foreach(ranks, i, rank) {
        static const char *const shares[] = {"processor_share", "no_processor_share"};

        dt_table_add(&table, DT_STYLE_PLAIN, "%lld", (long long)number_of(rank, "rank"));
        dt_table_add(&table, DT_STYLE_PLAIN, "%s", text_of(rank, "node"));
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
            add_milliseconds(&table, DT_STYLE_PLAIN, json_object_get(rank, keys[k]));
        for (size_t k = 0; k < 2; k++)
            if (json_is_number(json_object_get(rank, shares[k])))
                dt_table_add(&table, DT_STYLE_PLAIN, "%.0f %%", 100 * number_of(rank, shares[k]));
            else
                dt_table_add(&table, DT_STYLE_DIM, "?");
    }
    dt_table_write(out, &table, term, 2);
}

void dt_why_add(dt_strbuf *out, const dt_term *term, const json_t *why, dt_arena *arena)
{
    const json_t *findings = json_object_get(why, "findings"), *finding;
    size_t columns = term->seen ? (size_t)term->columns - 1 : 0, i;

    if (json_array_size(findings) == 0)
        dt_term_add(out, term, DT_STYLE_PLAIN, "Nothing slows the run down that its facts show.\n");
    json_array_foreach(findings, i, finding) {
        dt_term_add_wrapped(out, term, DT_STYLE_WARN, 0, columns, text_of(finding, "text"));
        dt_strbuf_add_str(out, "  evidence: ");
        dt_term_add(out, term, DT_STYLE_DIM, "%s\n", text_of(finding, "evidence"));
    }
    if (json_is_array(json_object_get(why, "parts"))) {
        dt_strbuf_add_char(out, '\n');
        add_parts(out, term, why, arena);
    }
    dt_strbuf_add_char(out, '\n');
    add_ranks(out, term, why, arena);
}
