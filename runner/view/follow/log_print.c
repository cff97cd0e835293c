#include "runner/view/follow/log_print.h"

#include <string.h>

#include "base/clock.h"
#include "runner/cli/report.h"
#include "runner/view/runs/runs.h"

dt_status dt_log_boundaries_read(dt_log_boundaries *out, dt_store *store, const char *run,
                                 dt_arena *arena, dt_error *err)
{
    return dt_store_attempt_list(store, &out->attempts, &out->count, run, arena, err);
}

static bool is_before(const char *line, const dt_attempt *attempt, char *when)
{
    dt_clock_iso(when, attempt->created_ms);
    return strncmp(line, when, strlen(when)) < 0; /* both start with an ISO time */
}

static void add_boundary(dt_strbuf *out, const dt_term *term, const dt_log_boundaries *between,
                         int64_t at, dt_arena *arena)
{
    char when[DT_CLOCK_ISO_SIZE];

    if (at > 0)
        dt_term_add(out, term, DT_STYLE_WARN, "%s --- %s\n",
                    dt_clock_iso(when, between->attempts[at].created_ms),
                    dt_runs_attempt_sentence(between->attempts, at, arena));
}

/* Adds the boundaries before a line (NULL: all that remain). Before the first line only the newest one is
 * added, since the output may start long after it. */
static void add_boundaries(dt_strbuf *out, const dt_term *term, dt_log_boundaries *between,
                           const char *line, dt_arena *arena)
{
    int64_t from = between->printed;
    char when[DT_CLOCK_ISO_SIZE];

    while (between->printed < between->count &&
           (line == NULL || !is_before(line, &between->attempts[between->printed], when)))
        between->printed++;
    if (!between->begun && line != NULL && between->printed > 0)
        from = between->printed - 1;
    for (int64_t at = from; at < between->printed; at++)
        add_boundary(out, term, between, at, arena);
    between->begun = true;
}

dt_status dt_log_print_lines(const dt_log_line *lines, int64_t count, const dt_log_tail *tail,
                             dt_log_boundaries *between, const dt_term *term, dt_arena *arena,
                             dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    for (int64_t i = 0; i < count; i++) {
        add_boundaries(&text, term, between, lines[i].text, arena);
        if (lines[i].rank >= 0 && tail->count > 1 && tail->several_nodes)
            dt_term_add(&text, term, DT_STYLE_DIM, "[rank %lld %s] ", (long long)lines[i].rank,
                        lines[i].node);
        else if (lines[i].rank >= 0 && tail->count > 1)
            dt_term_add(&text, term, DT_STYLE_DIM, "[rank %lld] ", (long long)lines[i].rank);
        if (term->seen)
            dt_term_add(&text, term, DT_STYLE_PLAIN, "%s", lines[i].text);
        else
            dt_strbuf_add_str(&text, lines[i].text);
        dt_strbuf_add_char(&text, '\n');
    }
    add_boundaries(&text, term, between, NULL, arena);
    st = dt_report_styled(&text, err);
    dt_strbuf_release(&text);
    return st;
}

static json_t *line_to_json(const dt_log_line *line)
{
    json_t *object = json_object();

    json_object_set_new(object, "rank", json_integer(line->rank));
    json_object_set_new(object, "node", json_string(line->node));
    json_object_set_new(object, "text", dt_json_text(line->text));
    return object;
}

/* Returns the part after the time: lines of ranks are "TIME TEXT", lines of the run "TIME OBJECT". */
static const char *after_time(const char *text)
{
    const char *blank = strchr(text, ' ');

    return blank != NULL ? blank + 1 : text;
}

dt_status dt_log_print_json(const dt_log_line *lines, int64_t count,
                            const dt_log_boundaries *between, const dt_run *run, dt_error *err)
{
    json_t *object = dt_report_object(), *array = json_array(), *history = json_array(), *one;
    const char *text;

    for (int64_t i = 0; i < count; i++) {
        text = after_time(lines[i].text);
        if (lines[i].rank >= 0)
            json_array_append_new(array, line_to_json(&lines[i]));
        else if (dt_json_parse(&one, text, strlen(text), "history", NULL) == DT_OK)
            json_array_append_new(history, one);
    }
    json_object_set_new(object, "run", json_string(run->id));
    json_object_set_new(object, "attempts",
                        dt_runs_attempts_json(between->attempts, between->count));
    json_object_set_new(object, "lines", array);
    json_object_set_new(object, "history", history);
    return dt_report_json(object, err);
}

static void add_rank_object(dt_strbuf *out, const dt_log_line *line)
{
    const char *text = after_time(line->text);
    int length = text > line->text ? (int)(text - line->text) - 1 : 0;
    json_t *object =
        json_pack("{ss# ss sI ss so}", "time", line->text, length, "kind", "log", "rank",
                  (json_int_t)line->rank, "node", line->node, "text", dt_json_text(text));

    dt_json_write(out, object);
    json_decref(object);
}

dt_status dt_log_print_objects(const dt_log_line *lines, int64_t count, dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    for (int64_t i = 0; i < count; i++) {
        if (lines[i].rank >= 0)
            add_rank_object(&text, &lines[i]);
        else
            dt_strbuf_add_str(&text, after_time(lines[i].text));
        dt_strbuf_add_char(&text, '\n');
    }
    st = dt_report_text(&text, err);
    dt_strbuf_release(&text);
    return st;
}
