#include "runner/launch/overrides.h"

#include <string.h>

#include "recipes/fields/fields.h"
#include "runner/term/table.h"

/* Returns the --set arguments "a.b=value" as typed; possible secrets are not repeated. */
static json_t *words_of_sets(const dt_recipe_source *source)
{
    json_t *changes = json_array();

    for (size_t i = 0; i < source->sets_count; i++) {
        const char *set = source->sets[i];
        size_t key = strcspn(set, "=");
        bool secret = strncmp(set, "notify", strlen("notify")) == 0;

        json_array_append_new(
            changes, json_pack("{s:o, s:n, s:o}", "key", json_stringn(set, key), "old", "new",
                               secret ? json_string("(not shown)")
                                      : dt_json_text(set + key + (set[key] == '='))));
    }
    return changes;
}

json_t *dt_overrides_of_launch(const dt_recipe_source *source, const dt_recipe *recipe,
                               dt_arena *arena)
{
    dt_recipe_source file = {.path = source->path,
                             .text = source->text,
                             .layers = source->layers,
                             .layers_count = source->layers_count,
                             .find_run = source->find_run};
    dt_error ignored = DT_ERROR_INIT;
    dt_recipe before;

    if (source->sets_count == 0)
        return json_array();
    if (dt_recipe_read(&before, &file, arena, &ignored) != DT_OK)
        return words_of_sets(source);
    return dt_recipe_changes(&before, recipe);
}

json_t *dt_overrides_of_resume(const dt_run *before, const dt_recipe *recipe, dt_arena *arena)
{
    json_t *json = NULL, *changes;
    dt_recipe old;

    if (dt_json_parse(&json, before->recipe_json, strlen(before->recipe_json), "stored recipe",
                      NULL) == DT_OK &&
        dt_recipe_from_json(&old, json, arena, NULL) == DT_OK)
        changes = dt_recipe_changes(&old, recipe);
    else
        changes = json_array();
    json_decref(json);
    return changes;
}

dt_status dt_overrides_store(dt_store *store, const char *run, const json_t *changes, dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    if (json_array_size(changes) == 0)
        return DT_OK;
    dt_strbuf_init(&text);
    dt_json_write(&text, changes);
    st = dt_store_attempt_set_changes(store, run, text.data, err);
    dt_strbuf_release(&text);
    return st;
}

json_t *dt_overrides_to_json(const dt_attempt *attempts, int64_t count)
{
    json_t *all = json_array();

    for (int64_t i = 0; i < count; i++) {
        const char *text = attempts[i].changes_json;
        json_t *changes = NULL;

        if (dt_json_parse(&changes, text, strlen(text), "changes", NULL) != DT_OK)
            continue; /* skip damaged changes */
        for (size_t c = 0; c < json_array_size(changes); c++) {
            json_t *change = json_array_get(changes, c);

            json_object_set_new(change, "attempt", json_integer(attempts[i].attempt));
            json_array_append_new(all, json_incref(change));
        }
        json_decref(changes);
    }
    return all;
}

/* Adds a value as written in a recipe: text without quotes. */
static void add_value(dt_table *table, const json_t *value)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    if (json_is_string(value))
        dt_strbuf_add_str(&text, json_string_value(value));
    else if (value == NULL || json_is_null(value))
        dt_strbuf_add_str(&text, "not given");
    else if (json_is_real(value))
        dt_strbuf_add_fmt(&text, "%.10g", json_real_value(value));
    else
        dt_json_write(&text, value);
    dt_table_add(table, DT_STYLE_PLAIN, "%s", text.length > 0 ? text.data : "empty");
    dt_strbuf_release(&text);
}

void dt_overrides_add(dt_strbuf *out, const dt_term *term, const dt_attempt *attempts,
                      int64_t count, dt_arena *arena)
{
    static const dt_table_column columns[] = {
        {"changed by --set", false}, {"from", false}, {"to", false}, {"attempt", true}};
    json_t *all = dt_overrides_to_json(attempts, count);
    dt_table table;

    dt_table_init(&table, columns, 4, arena);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *change = json_array_get(all, i);
        const char *key = json_string_value(json_object_get(change, "key"));

        dt_table_add(&table, DT_STYLE_BOLD, "%s", key != NULL ? key : "?");
        add_value(&table, json_object_get(change, "old"));
        add_value(&table, json_object_get(change, "new"));
        dt_table_add(&table, DT_STYLE_PLAIN, "%lld",
                     (long long)json_integer_value(json_object_get(change, "attempt")));
    }
    if (json_array_size(all) > 0) {
        dt_table_write(out, &table, term, 2);
        dt_strbuf_add_char(out, '\n');
    }
    json_decref(all);
}
