#include "runner/agent/rank/tail.h"

#include <stdlib.h>
#include <string.h>

#include "runner/agent/rank/text.h"

#define LINE_BYTES 1000 /* fifty lines stay far below the largest event */

void dt_tail_add(dt_tail *tail, const char *text)
{
    size_t length = strlen(text);
    dt_strbuf kept;

    dt_strbuf_init(&kept); /* cleaning again repairs a character that was cut */
    dt_text_clean(&kept, text, length < LINE_BYTES ? length : LINE_BYTES, length > LINE_BYTES);
    free(tail->lines[tail->next]);
    tail->lines[tail->next] = dt_strbuf_detach(&kept);
    tail->next = (tail->next + 1) % DT_TAIL_LINES;
}

void dt_tail_release(dt_tail *tail)
{
    for (size_t i = 0; i < DT_TAIL_LINES; i++)
        free(tail->lines[i]);
    memset(tail, 0, sizeof(*tail));
}

json_t *dt_tail_to_json(const dt_tail *tail)
{
    json_t *lines = json_array();

    for (size_t i = 0; i < DT_TAIL_LINES; i++) {
        const char *line = tail->lines[(tail->next + i) % DT_TAIL_LINES];
        if (line != NULL)
            json_array_append_new(lines, json_string(line));
    }
    return lines;
}
