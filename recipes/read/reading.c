/* reading: tracks the fields and errors of a recipe while it is read (recipes/read/reading.h). */
#include "recipes/read/reading.h"

#include <string.h>

#include "recipes/fields/values.h"

/* --- fields --- */

size_t dt_reading_row(const char *path)
{
    const dt_field *field = dt_field_find(path);

    DT_ASSERT(field != NULL);
    return (size_t)(field - dt_fields);
}

bool dt_reading_given(const dt_reading *reading, const char *path)
{
    return reading->field[dt_reading_row(path)].source != NULL;
}

const dt_text_mark *dt_reading_mark(const dt_reading *reading, const char *path)
{
    size_t row = dt_reading_row(path);

    return reading->field[row].source != NULL ? &reading->field[row] : &reading->group[row];
}

const dt_text_mark *dt_reading_item_mark(const dt_reading *reading, const char *path, int64_t index)
{
    const dt_yaml_node *node = reading->node[dt_reading_row(path)];
    const dt_yaml_node *item =
        node != NULL && node->kind != DT_YAML_SCALAR && index >= 0 ? node->first : NULL;

    for (; item != NULL && index > 0; index--)
        item = item->next;
    if (item == NULL)
        return dt_reading_mark(reading, path);
    return item->key != NULL ? &item->key->mark : &item->mark;
}

bool dt_reading_written(const dt_reading *reading, const char *path)
{
    size_t row = dt_reading_row(path);

    return reading->node[row] != NULL && reading->field[row].source != reading->resolved;
}

int dt_reading_later(const dt_reading *reading, const char *path, const char *than)
{
    return reading->layer_of[dt_reading_row(path)] - reading->layer_of[dt_reading_row(than)];
}

bool dt_reading_resolved(const dt_reading *reading, const char *path)
{
    return reading->resolved != NULL && dt_reading_mark(reading, path)->source == reading->resolved;
}

void dt_reading_derived(dt_reading *reading, const char *path, const char *text, const char *from)
{
    const dt_text_mark mark = *dt_reading_mark(reading, from);

    reading->field[dt_reading_row(path)] = mark;
    dt_origins_add(reading->origins, dt_field_find(path), text, &mark, from, reading->arena);
}

/* --- errors */

void dt_reading_trouble(dt_reading *reading, const char *path)
{
    for (size_t i = 0; i < dt_fields_count; i++)
        if (strcmp(dt_fields[i].path, path) == 0 || dt_field_below(&dt_fields[i], path))
            reading->troubled[i] = true;
}

dt_status dt_reading_report(const dt_reading *reading, dt_status st, const char *rule)
{
    dt_problem *problem;

    if (st != DT_ERR_RECIPE || reading->err->code == DT_OK)
        return st;
    problem = dt_problems_add(reading->problems, reading->err, rule, false,
                              reading->origins->sources, reading->origins->sources_count);
    if (problem != NULL)
        problem->absent = strcmp(rule, "missing") == 0;
    dt_error_clear(reading->err);
    return dt_problems_full(reading->problems) ? DT_ERR_RECIPE : DT_OK;
}

dt_status dt_reading_refuse(const dt_reading *reading, const dt_text_mark *mark, dt_strbuf *text)
{
    DT_FAIL(reading->err, DT_ERR_RECIPE, "%s", text->data);
    dt_text_mark_prefix(reading->err, mark);
    dt_strbuf_release(text);
    return DT_ERR_RECIPE;
}

dt_status dt_reading_refuse_twice(const dt_reading *reading, const dt_text_mark *mark,
                                  const char *what, const char *name, const dt_text_mark *first)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "%s ", what);
    dt_text_show(&text, name);
    dt_strbuf_add_str(&text, " (first at ");
    dt_text_mark_write(&text, first);
    dt_strbuf_add_str(&text, ")");
    return dt_reading_refuse(reading, mark, &text);
}

dt_status dt_reading_refuse_nothing(const dt_reading *reading, const char *path,
                                    const dt_yaml_node *node)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "'%s' has no value: fill it in, or remove the key", path);
    return dt_reading_refuse(reading, &node->mark, &text);
}
