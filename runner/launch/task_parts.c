#include "runner/launch/task.h"

#include "engine/tokens/text_lines.h"

/* Iterates over the lines of both files. */
typedef struct walk {
    dt_text_lines input, target;
    int64_t line_weight;
} walk;

static walk begin(const dt_strbuf *input, const dt_strbuf *target, int64_t line_weight)
{
    walk position = {.input = {input->data, input->data + input->length},
                     .line_weight = line_weight};

    if (target != NULL)
        position.target = (dt_text_lines){target->data, target->data + target->length};
    return position;
}

/* Returns the weight of the next line; 0: there is none. */
static int64_t next_weight(walk *position)
{
    int64_t weight = position->line_weight;
    const char *line;
    size_t length;

    if (!dt_text_lines_next(&line, &length, &position->input))
        return 0;
    weight += (int64_t)length;
    if (dt_text_lines_next(&line, &length, &position->target))
        weight += (int64_t)length;
    return weight;
}

int64_t dt_task_parts_most(int64_t lines)
{
    int64_t most = lines / DT_TASK_PART_LINES;

    return most < DT_TASK_PARTS_FEW ? DT_TASK_PARTS_FEW
           : most < DT_TASK_PARTS   ? most
                                    : DT_TASK_PARTS;
}

void dt_task_parts_cut(dt_plan_task *out, const dt_strbuf *input, const dt_strbuf *target,
                       int64_t line_weight, dt_arena *arena)
{
    walk position = begin(input, target, line_weight);
    int64_t total = 0, weight, least;
    dt_plan_part next = {0};

    for (; (weight = next_weight(&position)) > 0; out->lines++)
        total += weight;
    least = total / dt_task_parts_most(out->lines) + 1;
    out->parts = dt_arena_alloc_array(arena, DT_TASK_PARTS, sizeof(*out->parts));
    position = begin(input, target, line_weight);
    while ((weight = next_weight(&position)) > 0) {
        next.lines++;
        next.weight += weight;
        if (next.weight < least && next.first + next.lines < out->lines)
            continue;
        out->parts[out->part_count++] = next;
        next = (dt_plan_part){.first = next.first + next.lines};
    }
}
