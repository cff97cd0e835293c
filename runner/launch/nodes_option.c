#include "runner/launch/nodes_option.h"

#include <string.h>

#include "base/strbuf.h"

void dt_nodes_option(const char **out, const char *text, dt_arena *arena)
{
    dt_strbuf list;
    bool several = false;
    int depth = 0;

    *out = text;
    if (text == NULL || text[0] == '[')
        return;
    dt_strbuf_init(&list);
    dt_strbuf_add_str(&list, "[\"");
    for (; *text != '\0'; text++) {
        depth += (*text == '[') - (*text == ']');
        several = several || (*text == ',' && depth == 0);
        if (*text == ',' && depth == 0)
            dt_strbuf_add_str(&list, "\", \"");
        else
            dt_strbuf_add_char(&list, *text);
    }
    dt_strbuf_add_str(&list, "\"]");
    if (several)
        *out = dt_arena_strdup(arena, list.data);
    dt_strbuf_release(&list);
}
