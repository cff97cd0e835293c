/* view_steps: prints the lines of step_log.h on stdout, for --log-steps. */
#include <stdlib.h>

#include "runner/cli/report.h"
#include "runner/view/follow/step_log.h"
#include "runner/view/follow/view.h"

#include "base/alloc.h"

typedef struct steps_view {
    dt_view view;
    dt_step_log log;
    dt_store *store;
    dt_arena arena;
    bool begun;
} steps_view;

/* Write errors and a locked store are not reported: the run continues, and the next frame reads what is
 * missing. */
static void steps_show(dt_view *view, const dt_frame *frame)
{
    steps_view *steps = (steps_view *)view;
    dt_step_lines lines = {0};
    dt_strbuf text;

    dt_arena_reset(&steps->arena);
    if (!steps->begun &&
        dt_step_log_begin_at(&steps->log, steps->store, frame->run, &steps->arena, NULL) != DT_OK)
        return;
    steps->begun = true;
    dt_strbuf_init(&text);
    if (dt_step_log_read(&steps->log, &lines, steps->store, frame->run, 0, &steps->arena, NULL) ==
        DT_OK)
        for (int64_t i = 0; i < lines.count; i++)
            dt_strbuf_add_fmt(&text, "%s\n", lines.items[i].text);
    if (text.length > 0)
        (void)dt_report_text(&text, NULL);
    dt_strbuf_release(&text);
}

static void steps_close(dt_view *view)
{
    steps_view *steps = (steps_view *)view;

    dt_arena_release(&steps->arena);
    free(steps);
}

dt_view *dt_view_steps_new(dt_store *store, bool json)
{
    steps_view *steps = dt_calloc(1, sizeof(*steps));

    steps->view = (dt_view){steps_show, steps_close};
    steps->store = store;
    dt_step_log_init(&steps->log, json);
    dt_arena_init(&steps->arena, 0);
    return &steps->view;
}
