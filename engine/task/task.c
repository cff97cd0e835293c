/* task: runs one rank of a task: selects its share of the lines, processes it, and sends the output part by
 * part. */
#include "engine/task/task.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/display.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "engine/channel/activity.h"
#include "engine/channel/events.h"
#include "engine/generate/text.h"
#include "engine/tokens/text_lines.h"

/* part: sends the output for the lines of a share, part by part, as events `part` (channel/events.h).
 *
 * Lines are added in the order of the share. A part is sent once its last line is added; if it is too long
 * for one event, in several pieces, the last of which is marked.
 */

typedef struct dt_task_parts {
    dt_events *events;
    const dt_plan_task *task;
    const dt_task_share *share;
    int64_t given;  /* number of lines added so far */
    int64_t part;   /* the current part */
    dt_strbuf text; /* output of the current part */
    int64_t tokens;
    double log_likelihood;
    bool scores; /* scoring: log_likelihood is meaningful */
    double since_seconds;
} dt_task_parts;

/* --- the share of a rank */

/* A missing part. */
typedef struct weighed_part {
    int64_t part, weight;
} weighed_part;

/* --- which parts */

static int64_t list_missing(weighed_part *out, const dt_plan_task *task)
{
    int64_t count = 0, range = 0;

    for (int64_t part = 0; part < task->part_count; part++) {
        while (range < task->done_count && task->done[2 * range + 1] <= part)
            range++;
        if (range == task->done_count || task->done[2 * range] > part)
            out[count++] = (weighed_part){part, task->parts[part].weight};
    }
    return count;
}

/* Descending by weight, then in the order of the file. */
static int compare(const void *a, const void *b)
{
    const weighed_part *x = a, *y = b;

    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->part < y->part ? -1 : x->part > y->part;
}

static int64_t least_loaded(const int64_t *loads, int64_t count)
{
    int64_t least = 0;

    for (int64_t i = 1; i < count; i++)
        if (loads[i] < loads[least])
            least = i;
    return least;
}

/* Marks the parts of the rank. */
static void assign(bool *ours, const dt_plan_task *task, int64_t rank, int64_t world_size)
{
    weighed_part *missing = dt_calloc((size_t)task->part_count, sizeof(*missing));
    int64_t *loads = dt_calloc((size_t)world_size, sizeof(*loads));
    int64_t count = list_missing(missing, task);

    qsort(missing, (size_t)count, sizeof(*missing), compare);
    for (int64_t i = 0; i < count; i++) {
        int64_t to = least_loaded(loads, world_size);

        loads[to] += missing[i].weight;
        ours[missing[i].part] = to == rank;
    }
    free(missing);
    free(loads);
}

/* --- their lines */

dt_status dt_task_share_take(dt_task_share *out, const dt_plan_task *task, const dt_strbuf *text,
                             int64_t rank, int64_t world_size, dt_error *err)
{
    dt_text_lines text_lines = {text->data, text->data + text->length};
    bool *ours = dt_calloc((size_t)task->part_count, sizeof(*ours));
    int64_t number = 0, part = 0;
    dt_status st = DT_OK;
    const char *line;
    size_t length;

    dt_strbuf_init(&out->text);
    out->count = 0;
    out->numbers = calloc((size_t)task->lines, sizeof(*out->numbers));
    if (out->numbers == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for %lld lines", (long long)task->lines);
    assign(ours, task, rank, world_size);
    for (; number < task->lines && dt_text_lines_next(&line, &length, &text_lines); number++) {
        if (number == task->parts[part].first + task->parts[part].lines)
            part++;
        if (!ours[part])
            continue;
        dt_strbuf_add(&out->text, line,
                      (size_t)(text_lines.at - line)); /* the line with its line break */
        out->numbers[out->count++] = number;
    }
    if (number != task->lines || text_lines.at < text_lines.end)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "'%s' no longer has the %lld lines that it had when the plan was made",
                 task->input, (long long)task->lines);
out:
    free(ours);
    return st;
}

void dt_task_share_release(dt_task_share *share)
{
    dt_strbuf_release(&share->text);
    free(share->numbers);
    *share = (dt_task_share){.count = 0};
}

/* A byte takes at most six bytes of JSON, so an event stays far below DT_EVENT_MAX_BYTES. */
#define PIECE_BYTES ((size_t)64 << 10)

static void task_parts_open(dt_task_parts *out, dt_events *events, const dt_plan_task *task,
                            const dt_task_share *share, bool scores)
{
    *out = (dt_task_parts){.events = events,
                           .task = task,
                           .share = share,
                           .scores = scores,
                           .since_seconds = dt_clock_monotonic_seconds()};
    dt_strbuf_init(&out->text);
}

static void task_parts_close(dt_task_parts *parts)
{
    dt_strbuf_release(&parts->text);
}

/* Bytes of the next piece, which does not end inside a character. */
static size_t piece_of(const char *text, size_t left)
{
    size_t length = left < PIECE_BYTES ? left : PIECE_BYTES;

    while (length > 1 && length < left && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    return length;
}

/* Add the bytes as text if they are UTF-8, else as hex. */
static void add_bytes(json_t *event, const char *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    dt_strbuf hex;

    if (dt_utf8_valid_length(bytes, length) == length && memchr(bytes, 0, length) == NULL) {
        json_object_set_new(event, "text", json_stringn(bytes, length));
        return;
    }
    dt_strbuf_init(&hex);
    for (size_t i = 0; i < length; i++) {
        dt_strbuf_add_char(&hex, digits[(unsigned char)bytes[i] >> 4]);
        dt_strbuf_add_char(&hex, digits[(unsigned char)bytes[i] & 15]);
    }
    json_object_set_new(event, "hex", json_stringn(hex.data, hex.length));
    dt_strbuf_release(&hex);
}

static dt_status send(dt_task_parts *parts, dt_error *err)
{
    double now = dt_clock_monotonic_seconds();
    const char *text = parts->text.data;
    size_t length = parts->text.length, at = 0;
    dt_status st = DT_OK;

    do {
        size_t piece = piece_of(text + at, length - at);
        bool last = at + piece == length;
        json_t *event =
            json_pack("{s:s, s:I, s:I, s:b}", "event", "part", "part", (json_int_t)parts->part,
                      "offset", (json_int_t)at, "last", (int)last);

        if (last) {
            json_object_set_new(event, "lines",
                                json_integer(parts->task->parts[parts->part].lines));
            json_object_set_new(event, "tokens", json_integer(parts->tokens));
            json_object_set_new(event, "seconds", json_real(now - parts->since_seconds));
        }
        if (last && parts->scores)
            json_object_set_new(event, "log_likelihood", dt_json_number(parts->log_likelihood));
        add_bytes(event, text + at, piece);
        DT_TRY(dt_events_send(parts->events, event, err));
        at += piece;
    } while (at < length);
    dt_strbuf_reset(&parts->text);
    parts->tokens = 0;
    parts->log_likelihood = 0;
    parts->since_seconds = now;
out:
    return st;
}

/* Add the output for the next line, with its line break. tokens: generated or scored; 0: not
 * counted. */
static dt_status task_parts_add(dt_task_parts *parts, const char *text, size_t length,
                                int64_t tokens, double log_likelihood, dt_error *err)
{
    int64_t line = parts->share->numbers[parts->given++];
    const dt_plan_part *extended = parts->task->parts;

    dt_strbuf_add(&parts->text, text, length);
    parts->tokens += tokens;
    parts->log_likelihood += log_likelihood;
    while (line >= extended[parts->part].first + extended[parts->part].lines)
        parts->part++;
    if (line + 1 < extended[parts->part].first + extended[parts->part].lines)
        return DT_OK;
    return send(parts, err);
}

/* --- the task */

#define LINES_MOST ((size_t)1 << 30) /* maximum size of an input file in bytes */

typedef struct task {
    const dt_plan *plan;
    const dt_plan_rank *place;
    const dt_task_how *how;
    dt_events *events;
    int64_t rank;
    dt_task_share share, target; /* lines of the input, and of the translations to score */
    dt_task_parts parts;
} task;

/* --- processing the lines */

static dt_status heed_stop(void *context, dt_error *err)
{
    (void)context;
    return dt_stop_asked() ? DT_FAIL(err, DT_ERR_TIMEOUT, "a stop was requested") : DT_OK;
}

static dt_status take_continued(void *context, const char *prompt, size_t length,
                                const dt_text *text, dt_error *err)
{
    task *t = context;
    dt_strbuf line;
    dt_status st;

    dt_strbuf_init(&line);
    dt_continued_line(&line, prompt, length, text);
    st = task_parts_add(&t->parts, line.data, line.length, text->added, 0, err);
    dt_strbuf_release(&line);
    return st;
}

static dt_status take_translated(void *context, const char *text, size_t length, double score,
                                 dt_error *err)
{
    task *t = context;
    dt_strbuf line;
    dt_status st;

    (void)score;
    dt_strbuf_init(&line);
    dt_strbuf_add(&line, text, length);
    dt_strbuf_add_char(&line, '\n');
    st = task_parts_add(&t->parts, line.data, line.length, 0, 0, err);
    dt_strbuf_release(&line);
    return st == DT_OK ? heed_stop(t, err) : st;
}

/* With all digits, because the total is summed from them (runner/supervisor/folder/task_folder.h). */
static dt_status take_scored(void *context, double log_likelihood, int64_t tokens, dt_error *err)
{
    task *t = context;
    dt_strbuf line;
    dt_status st;

    dt_strbuf_init(&line);
    dt_strbuf_add_fmt(&line, "%.17g\t%lld\n", log_likelihood, (long long)tokens);
    st = task_parts_add(&t->parts, line.data, line.length, tokens, log_likelihood, err);
    dt_strbuf_release(&line);
    return st == DT_OK ? heed_stop(t, err) : st;
}

static dt_status continue_lines(task *t, dt_error *err)
{
    dt_continue_options options = {.checkpoint = t->plan->resume_from,
                                   .base = &t->plan->weights,
                                   .text = t->share.text.data,
                                   .length = t->share.text.length,
                                   .numbers = t->share.numbers,
                                   .batch = t->how->batch,
                                   .rules = t->how->rules,
                                   .device = t->place->device,
                                   .threads = t->place->threads,
                                   .precision = t->how->precision,
                                   .emit = take_continued,
                                   .before = heed_stop,
                                   .context = t};
    int64_t step;

    return dt_continue(&step, &options, err);
}

static dt_status translate(task *t, dt_error *err)
{
    dt_translate_options options = {.checkpoint = t->plan->resume_from,
                                    .text = t->share.text.data,
                                    .length = t->share.text.length,
                                    .numbers = t->share.numbers,
                                    .batch = t->how->batch,
                                    .beams = t->how->rules.beams,
                                    .length_penalty = t->how->rules.length_penalty,
                                    .past_end = t->how->rules.past_end,
                                    .device = t->place->device,
                                    .threads = t->place->threads,
                                    .precision = t->how->precision,
                                    .emit = take_translated,
                                    .context = t};

    return dt_translate(&options, err);
}

static dt_status score(task *t, dt_error *err)
{
    bool pairs = t->plan->task.target[0] != '\0';
    dt_score_options options = {
        .checkpoint = t->plan->resume_from,
        .base = &t->plan->weights,
        .input = {t->share.text.data, t->share.text.length},
        .target = {pairs ? t->target.text.data : NULL, t->target.text.length},
        .numbers = t->share.numbers,
        .device = t->place->device,
        .threads = t->place->threads,
        .emit = take_scored,
        .context = t};

    return dt_score(&options, err);
}

static dt_status take_result(void *context, const dt_strbuf *result, dt_error *err)
{
    task *t = context;
    dt_strbuf line;
    dt_status st;

    dt_strbuf_init(&line);
    dt_strbuf_add_fmt(&line, "%s\n", result->data);
    st = task_parts_add(&t->parts, line.data, line.length, 0, 0, err);
    dt_strbuf_release(&line);
    return st;
}

static dt_status evaluate(task *t, dt_error *err)
{
    dt_evaluate_options options = {.checkpoint = t->plan->resume_from,
                                   .recipe = &t->plan->recipe,
                                   .base = &t->plan->weights,
                                   .text = t->share.text.data,
                                   .length = t->share.text.length,
                                   .device = t->place->device,
                                   .threads = t->place->threads,
                                   .precision = t->how->precision,
                                   .emit = take_result,
                                   .before = heed_stop,
                                   .context = t};

    return dt_evaluate_lines(&options, err);
}

static dt_status make(task *t, dt_error *err)
{
    dt_status st = DT_OK;
    bool pairs;

    if (t->share.count == 0)
        return DT_OK;
    if (t->plan->recipe.task == DT_TASK_SCORE)
        return score(t, err);
    if (t->plan->recipe.task == DT_TASK_EVALUATE)
        return evaluate(t, err);
    DT_TRY(dt_loaded_is_of_pairs(&pairs, t->plan->resume_from, err));
    DT_TRY(pairs ? translate(t, err) : continue_lines(t, err));
out:
    return st;
}

/* --- other events */

static dt_status report_ready(const task *t, dt_error *err)
{
    const char *phase = t->plan->recipe.task == DT_TASK_GENERATE ? "generate" : "score";
    dt_status st = DT_OK;

    dt_activity_phase(phase);
    DT_TRY(dt_events_send(t->events,
                          json_pack("{s:s, s:I, s:s, s:I, s:I, s:I}", "event", "ready", "pid",
                                    (json_int_t)getpid(), "device", t->place->device, "threads",
                                    (json_int_t)t->place->threads, "step", (json_int_t)0, "steps",
                                    (json_int_t)t->plan->task.lines),
                          err));
    DT_TRY(
        dt_events_send(t->events, json_pack("{s:s, s:s}", "event", "phase", "phase", phase), err));
out:
    return st;
}

/* step is 0: only the run as a whole has a step, which a rank does not know. */
static dt_status report_finished(const task *t, const char *reason, dt_error *err)
{
    return dt_events_send(t->events,
                          json_pack("{s:s, s:i, s:I, s:s}", "event", "finished", "step", 0, "steps",
                                    (json_int_t)t->plan->task.lines, "reason", reason),
                          err);
}

static dt_status report_failed(const task *t, const dt_error *failure, dt_error *err)
{
    return dt_events_send(t->events,
                          json_pack("{s:s, s:s, s:o}", "event", "failed", "status",
                                    dt_status_name(failure->code), "message",
                                    dt_json_text(failure->message)),
                          err);
}

/* --- all of it */

static dt_status take_share(dt_task_share *out, const task *t, const char *path, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_file_read(&text, path, LINES_MOST, err));
    DT_TRY(dt_task_share_take(out, &t->plan->task, &text, t->rank, t->plan->world_size, err));
out:
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_task_run(const dt_plan *plan, int64_t rank, const dt_task_how *how, dt_events *events,
                      dt_error *err)
{
    task t = {
        .plan = plan, .place = &plan->ranks[rank], .how = how, .events = events, .rank = rank};
    bool scores = plan->recipe.task == DT_TASK_SCORE, stopped;
    dt_error unsent = DT_ERROR_INIT;
    dt_status st = DT_OK;

    task_parts_open(&t.parts, events, &plan->task, &t.share, scores);
    DT_TRY(report_ready(&t, err));
    DT_TRY(take_share(&t.share, &t, plan->task.input, err));
    if (plan->task.target[0] != '\0')
        DT_TRY(take_share(&t.target, &t, plan->task.target, err));
    dt_log_info("this rank processes %lld of %lld lines", (long long)t.share.count,
                (long long)plan->task.lines);
    st = make(&t, err);
    stopped = st == DT_ERR_TIMEOUT && dt_stop_asked();
    if (stopped)
        dt_error_clear(err);
    else
        DT_TRY(st);
    DT_TRY(report_finished(&t, stopped ? "stopped" : "steps", err));
out:
    if (st != DT_OK && report_failed(&t, err, &unsent) != DT_OK)
        dt_log_error("cannot report the failure: %s", unsent.message);
    task_parts_close(&t.parts);
    dt_task_share_release(&t.share);
    dt_task_share_release(&t.target);
    return st;
}
