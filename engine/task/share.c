#include "engine/task/share.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "engine/tokens/text_lines.h"

/* A missing part. */
typedef struct piece {
    int64_t part, weight;
} piece;

/* --- which parts */

static int64_t list_missing(piece *out, const dt_plan_task *task)
{
    int64_t count = 0, range = 0;

    for (int64_t part = 0; part < task->part_count; part++) {
        while (range < task->done_count && task->done[2 * range + 1] <= part)
            range++;
        if (range == task->done_count || task->done[2 * range] > part)
            out[count++] = (piece){part, task->parts[part].weight};
    }
    return count;
}

/* Descending by weight, then in the order of the file. */
static int compare(const void *a, const void *b)
{
    const piece *x = a, *y = b;

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
    piece *missing = dt_calloc((size_t)task->part_count, sizeof(*missing));
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
    dt_text_lines all = {text->data, text->data + text->length};
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
    for (; number < task->lines && dt_text_lines_next(&line, &length, &all); number++) {
        if (number == task->parts[part].first + task->parts[part].lines)
            part++;
        if (!ours[part])
            continue;
        dt_strbuf_add(&out->text, line, (size_t)(all.at - line)); /* the line with its line break */
        out->numbers[out->count++] = number;
    }
    if (number != task->lines || all.at < all.end)
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
