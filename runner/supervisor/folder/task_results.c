/* task_results: stores the metrics of evaluation tasks as an event of a run. */
#include "base/clock.h"
#include "runner/supervisor/folder/task_folder.h"
#include "store/event.h"

dt_status dt_task_results_store(dt_store *store, const dt_run *run, int64_t step,
                                const dt_evaluation_results *results, dt_error *err)
{
    dt_store_event event = {.attempt = run->attempt,
                            .node = -1,
                            .rank = -1,
                            .time_ms = dt_clock_wall_ms(),
                            .kind = DT_TASK_RESULTS};
    json_t *object = json_pack("{s:s, s:I, s:o}", "event", DT_TASK_RESULTS, "step",
                               (json_int_t)step, "tasks", dt_evaluation_to_json(results));
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (object == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    dt_json_write(&text, object);
    event.json = text.data;
    DT_TRY(dt_store_event_add(store, run->id, &event, err));
out:
    json_decref(object);
    dt_strbuf_release(&text);
    return st;
}
