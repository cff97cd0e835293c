#include "engine/task/share.h"

#include <stdlib.h>

#include "engine/tokens/text_lines.h"

#include "base/banned.h"

/* Iterates over the parts in order. */
typedef struct walk {
    const dt_plan_task *task;
    int64_t range;   /* ranges of `done` before this one end before the current part */
    int64_t missing; /* missing parts before the current one */
} walk;

/* Whether the next part belongs to this rank. */
static bool is_ours(walk *at, int64_t part, int64_t rank, int64_t world_size)
{
    const dt_plan_task *task = at->task;

    while (at->range < task->done_count && task->done[2 * at->range + 1] <= part)
        at->range++;
    if (at->range < task->done_count && task->done[2 * at->range] <= part)
        return false;
    return at->missing++ % world_size == rank;
}

dt_status dt_task_share_take(dt_task_share *out, const dt_plan_task *task, const dt_strbuf *text,
                             int64_t rank, int64_t world_size, dt_error *err)
{
    dt_text_lines all = {text->data, text->data + text->length};
    walk at = {.task = task};
    dt_status st = DT_OK;
    int64_t number = 0;
    bool ours = false;
    const char *line;
    size_t length;

    dt_strbuf_init(&out->text);
    out->count = 0;
    out->numbers = calloc((size_t)task->lines, sizeof(*out->numbers));
    if (out->numbers == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for %lld lines", (long long)task->lines);
    for (; number < task->lines && dt_text_lines_next(&line, &length, &all); number++) {
        if (number % task->part_lines == 0)
            ours = is_ours(&at, number / task->part_lines, rank, world_size);
        if (!ours)
            continue;
        dt_strbuf_add(&out->text, line, (size_t)(all.at - line)); /* the line with its line break */
        out->numbers[out->count++] = number;
    }
    if (number != task->lines || all.at < all.end)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "'%s' no longer has the %lld lines that it had when the plan was made",
                 task->input, (long long)task->lines);
out:
    return st;
}

void dt_task_share_release(dt_task_share *share)
{
    dt_strbuf_release(&share->text);
    free(share->numbers);
    *share = (dt_task_share){.count = 0};
}
