/* fuzz_protocol: any bytes on a channel. The readers of both sides refuse or understand them.
 *
 * The input is cut into lines twice, whole and in uneven pieces: both must give the same lines.
 * Each line goes to the agent's reader of commands, its reader of a rank's events, the
 * supervisor's reader and its verdict, and through the cleaning of log lines, whose result must
 * be fit for JSON; clean lines go to the readers of nvidia-smi's output and the kernel's log.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runner/agent/command.h"
#include "runner/agent/process/describe.h"
#include "runner/agent/rank/devices.h"
#include "runner/agent/rank/output.h"
#include "runner/channel/stream.h"
#include "runner/supervisor/policy/verdict.h"

#define LINE_BYTES 512 /* short, so that lines are cut too */
#define WORLD_SIZE 2

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_as_agent(const char *text, size_t length)
{
    dt_error err = DT_ERROR_INIT;
    dt_agent_command command;
    const char *kind;
    json_t *event;

    if (dt_agent_command_parse(&command, text, length, &err) == DT_OK)
        dt_agent_command_release(&command);
    else
        DT_ASSERT(err.message[0] != '\0');
    dt_error_clear(&err);
    if (dt_agent_event_parse(&event, &kind, text, length, &err) == DT_OK)
        json_decref(event);
    else
        DT_ASSERT(err.message[0] != '\0');
}

static void read_as_supervisor(dt_verdict *verdict, const char *text, size_t length)
{
    dt_error err = DT_ERROR_INIT;
    dt_message message;

    if (dt_message_parse(&message, text, length, WORLD_SIZE, &err) == DT_OK) {
        DT_ASSERT(message.rank < WORLD_SIZE);
        dt_verdict_see(verdict, &message, "localhost");
        dt_message_release(&message);
    } else {
        DT_ASSERT(err.message[0] != '\0');
    }
}

static void read_answers(const char *text)
{
    dt_devices devices;

    if (dt_devices_parse(&devices, text, NULL) == DT_OK) {
        DT_ASSERT(devices.count <= 1); /* longest line */
        dt_devices_keep_visible(&devices, text);
        json_decref(dt_devices_to_json(&devices));
    }
    (void)dt_kernel_line_names(text, 7);
    (void)dt_kernel_line_is_oom(text);
}

static void clean(const char *text, size_t length, bool cut)
{
    dt_strbuf out;
    json_t *json;

    dt_strbuf_init(&out);
    dt_text_clean(&out, text, length, cut);
    json = json_string(out.data);
    DT_ASSERT(json != NULL && strlen(out.data) == out.length);
    json_decref(json);
    read_answers(out.data);
    dt_strbuf_release(&out);
}

static bool take_line(void *context, const char *text, size_t length, bool cut)
{
    DT_ASSERT(length <= LINE_BYTES);
    read_as_agent(text, length);
    read_as_supervisor(context, text, length);
    clean(text, length, cut);
    return true;
}

static bool collect_line(void *context, const char *text, size_t length, bool cut)
{
    dt_strbuf_add(context, text, length);
    dt_strbuf_add_str(context, cut ? "+\n" : "\n");
    return true;
}

/* Feeds it in pieces of 1, 2, 3, ... bytes, or whole. */
static void collect(dt_strbuf *out, const char *bytes, size_t size, bool pieces)
{
    dt_lines lines;

    dt_strbuf_init(out);
    dt_lines_init(&lines, LINE_BYTES);
    for (size_t at = 0, step = 1; at < size; at += step, step++) {
        size_t left = size - at;

        step = pieces && step < left ? step : left;
        dt_lines_feed(&lines, bytes + at, step, collect_line, out);
    }
    dt_lines_finish(&lines, collect_line, out);
    dt_lines_release(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    dt_strbuf whole, pieces;
    dt_verdict verdict;
    const char *reason;
    dt_run_state state;
    dt_lines lines;
    int code;

    collect(&whole, (const char *)bytes, size, false);
    collect(&pieces, (const char *)bytes, size, true);
    DT_ASSERT(whole.length == pieces.length && memcmp(whole.data, pieces.data, whole.length) == 0);
    dt_strbuf_release(&whole);
    dt_strbuf_release(&pieces);

    dt_verdict_init(&verdict, WORLD_SIZE);
    dt_lines_init(&lines, LINE_BYTES);
    dt_lines_feed(&lines, (const char *)bytes, size, take_line, &verdict);
    dt_lines_finish(&lines, take_line, &verdict);
    dt_lines_release(&lines);
    dt_verdict_give(&verdict, &state, &code, &reason);
    DT_ASSERT(dt_run_state_is_terminal(state) && reason != NULL);
    dt_verdict_release(&verdict);
    return 0;
}
