/* api_queue: serves the array of `dtrun queue --json`: what runs and what waits, in its order, and why. Empty if nothing
 * waits, or if the server runs no commands. The queue belongs to the program that launches, not to the store, so that
 * program is asked. */
#include "base/child.h"
#include "web/command.h"
#include "web/web_int.h"

#define QUEUE_SECONDS     10.0
#define QUEUE_MAX_BYTES   ((size_t)8 << 20)
#define MESSAGE_MAX_CHARS 300

static dt_status waits(bool *any, const dt_web_request *request, dt_error *err)
{
    const dt_run_search search = {.state = DT_RUN_WAITING, .limit = 1};
    int64_t count, total = 0;
    const char **ids;
    dt_status st;

    DT_TRY(dt_store_run_search(request->store, &ids, &count, &total, &search, request->arena, err));
    *any = total > 0;
out:
    return st;
}

dt_status dt_web_queue(dt_web_request *request, dt_web_reply *reply, dt_error *err)
{
    const char *program = request->commands != NULL ? request->commands->rules.program : NULL;
    const char *const argv[] = {program, "queue", "--json", NULL};
    json_t *runs = NULL;
    dt_strbuf out, errors;
    bool any = false;
    dt_status st;
    int code = 0;

    dt_strbuf_init(&out);
    dt_strbuf_init(&errors);
    DT_TRY(waits(&any, request, err));
    if (any && program != NULL)
        DT_TRY(dt_child_run(&code,
                            &(dt_child_call){.argv = argv,
                                             .out = &out,
                                             .errors = &errors,
                                             .most_bytes = QUEUE_MAX_BYTES,
                                             .seconds = QUEUE_SECONDS},
                            err));
    else
        dt_strbuf_add_str(&out, "[]");
    if (code != 0)
        DT_THROW(err, DT_ERR_BUSY, "the queue cannot be read: %.*s", MESSAGE_MAX_CHARS,
                 errors.data);
    DT_TRY(dt_json_parse(&runs, out.data, out.length, "dtrun queue", err));
    st = dt_web_reply_json(reply, 200, json_pack("{s:O}", "runs", runs), err);
out:
    json_decref(runs);
    dt_strbuf_release(&errors);
    dt_strbuf_release(&out);
    return st;
}
