#include "runner/view/recipe/origins.h"

#include "runner/term/table.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static void add_origin(dt_table *table, const char *path, const json_t *origin)
{
    const char *from = text_of(origin, "from"), *source = text_of(origin, "source");
    const json_t *line = json_object_get(origin, "line");
    dt_strbuf where;

    dt_strbuf_init(&where);
    dt_strbuf_add_str(&where, source);
    if (json_is_integer(line))
        dt_strbuf_add_fmt(&where, ":%lld:%lld", (long long)json_integer_value(line),
                          (long long)json_integer_value(json_object_get(origin, "column")));
    if (from[0] != '\0')
        dt_strbuf_add_fmt(&where, " (derived from %s)", from);
    dt_table_add(table, path != NULL ? DT_STYLE_BOLD : DT_STYLE_DIM, "%s",
                 path != NULL ? path : "  overrides");
    dt_table_add(table, path != NULL ? DT_STYLE_PLAIN : DT_STYLE_DIM, "%s",
                 text_of(origin, "value"));
    dt_table_add_whole(table, path != NULL ? DT_STYLE_PLAIN : DT_STYLE_DIM, "%s", where.data);
    dt_strbuf_release(&where);
}

void dt_origins_view(dt_strbuf *out, const dt_term *term, const json_t *fields, dt_arena *arena)
{
    static const dt_table_column columns[] = {{"field", false}, {"value", false}, {"from", false}};
    json_t *borrowed = (json_t *)fields, *chain; /* json_object_foreach reads only */
    const char *path;
    dt_table table;

    dt_table_init(&table, columns, 3, arena);
    json_object_foreach(borrowed, path, chain)
        for (size_t i = 0; i < json_array_size(chain); i++)
            add_origin(&table, i == 0 ? path : NULL, json_array_get(chain, i));
    dt_table_write(out, &table, term, 2);
}
