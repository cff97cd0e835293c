/* jinja_render: reads lines {"template": ..., "variables": {...}} from stdin, and writes {"text": ...} or {"error": ...}
 * for each: for comparisons with Jinja. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/jinja/jinja.h"

static json_t *render(const json_t *line)
{
    const json_t *template = json_object_get(line, "template"), *value;
    json_t *variables = json_object_get(line, "variables");
    dt_error err = DT_ERROR_INIT;
    json_t *made = json_object();
    dt_jinja *jinja = NULL;
    dt_jinja_output out;
    dt_jinja_run *run;
    const char *name;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_jinja_parse(&jinja, json_string_value(template), json_string_length(template),
                       "template", &err) == DT_OK) {
        run = dt_jinja_begin(jinja, 1700000000, &arena);
        json_object_foreach(variables, name, value)
            dt_jinja_set(run, name, dt_jinja_from_json(run, value, 1));
        if (dt_jinja_render(&out, run, &err) == DT_OK)
            json_object_set_new(made, "text", json_stringn(out.text, out.length));
    }
    if (err.code != DT_OK)
        json_object_set_new(made, "error", json_string(err.message));
    dt_jinja_free(jinja);
    dt_arena_release(&arena);
    return made;
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;

    while ((length = getline(&line, &room, stdin)) > 0) {
        json_t *json = json_loadb(line, (size_t)length, JSON_ALLOW_NUL, NULL), *made;
        dt_strbuf text;

        if (json == NULL)
            return 2;
        made = render(json);
        dt_strbuf_init(&text);
        dt_json_write(&text, made);
        puts(text.data);
        dt_strbuf_release(&text);
        json_decref(made);
        json_decref(json);
    }
    free(line);
    return 0;
}
