/* run: what every function of the interpreter needs: errors with their line, limits, memory. */
#include <string.h>

#include "base/jinja/jinja_int.h"

dt_status dt_jinja_fail(const dt_jinja_run *run, const char *fmt, ...)
{
    char message[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    return DT_FAIL(run->err, DT_ERR_USAGE, "'%s', line %d: %s", run->jinja->name, run->line,
                   message);
}

dt_status dt_jinja_spend(dt_jinja_run *run, int64_t steps)
{
    run->steps -= steps;
    if (run->bytes < 0)
        return dt_jinja_fail(run, "the template takes too much memory");
    if (run->steps < 0)
        return dt_jinja_fail(run, "the template takes too many steps");
    return DT_OK;
}

void *dt_jinja_alloc(dt_jinja_run *run, size_t bytes)
{
    run->bytes -= (int64_t)bytes;
    return dt_arena_alloc(run->arena, bytes);
}

void *dt_jinja_alloc_array(dt_jinja_run *run, size_t count, size_t elem_bytes)
{
    run->bytes -= (int64_t)(count * elem_bytes);
    return dt_arena_alloc_array(run->arena, count, elem_bytes);
}

void *dt_jinja_room(dt_jinja_run *run, void *items, int64_t count, int64_t *capacity,
                    size_t elem_bytes)
{
    int64_t room = *capacity > 0 ? *capacity : 4;
    void *made;

    if (count <= *capacity)
        return items;
    while (room < count)
        room *= 2;
    made = dt_jinja_alloc_array(run, (size_t)room, elem_bytes);
    if (*capacity > 0)
        memcpy(made, items, (size_t)*capacity * elem_bytes);
    *capacity = room;
    return made;
}

dt_status dt_jinja_deepen(dt_jinja_run *run)
{
    if (run->depth == 0)
        return dt_jinja_fail(run, "calls, loops or values are nested too deeply");
    run->depth--;
    return DT_OK;
}
