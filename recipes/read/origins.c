#include "recipes/read/origins.h"

#include <string.h>

#include "base/file.h"

enum { VALUE_BYTES = 200, FILE_BYTES_MAX = 4 << 20 };

/* --- values --- */

static void add_node(dt_strbuf *out, const dt_yaml_node *node)
{
    const char *separator = "";

    if (node->kind == DT_YAML_SCALAR) {
        dt_strbuf_add_str(out, node->written != NULL ? node->written : node->text);
        return;
    }
    dt_strbuf_add_char(out, node->kind == DT_YAML_LIST ? '[' : '{');
    for (const dt_yaml_node *child = node->first; child != NULL && out->length < VALUE_BYTES;
         child = child->next) {
        dt_strbuf_add_str(out, separator);
        if (node->kind == DT_YAML_MAP)
            dt_strbuf_add_fmt(out, "%s: ", child->key->text);
        add_node(out, child);
        separator = ", ";
    }
    dt_strbuf_add_char(out, node->kind == DT_YAML_LIST ? ']' : '}');
}

/* Cuts a long text at a character boundary. */
static void cut(dt_strbuf *text)
{
    size_t length = VALUE_BYTES;

    if (text->length <= VALUE_BYTES)
        return;
    while (length > 0 && ((unsigned char)text->data[length] & 0xc0) == 0x80)
        length--;
    text->data[length] = '\0';
    text->length = length;
    dt_strbuf_add_str(text, "...");
}

const char *dt_origin_value(const dt_field *field, const dt_yaml_node *node, dt_arena *arena)
{
    const char *value;
    dt_strbuf text;

    dt_strbuf_init(&text);
    add_node(&text, node);
    cut(&text);
    if (strstr(text.data, "://") != NULL)
        value = "(an address)";
    else if (field->keeps_references && text.length > 0 && strncmp(text.data, "${env:", 6) != 0)
        value = "(not shown)";
    else
        value = dt_arena_strdup(arena, text.data);
    dt_strbuf_release(&text);
    return value;
}

bool dt_origins_has(const dt_origins *origins, const char *path)
{
    return origins != NULL && origins->of[dt_field_find(path) - dt_fields] != NULL;
}

void dt_origins_add(dt_origins *origins, const dt_field *field, const char *value,
                    const dt_text_mark *mark, const char *from, dt_arena *arena)
{
    dt_origin *origin = dt_arena_alloc(arena, sizeof(*origin));
    size_t row = (size_t)(field - dt_fields);

    *origin = (dt_origin){value, *mark, from, origins->of[row]};
    origins->of[row] = origin;
}

/* --- JSON --- */

static json_t *to_json(const dt_origin *origin)
{
    json_t *object = json_object();

    json_object_set_new(object, "value", dt_json_text(origin->value));
    json_object_set_new(object, "source", dt_json_text(origin->mark.source));
    if (origin->mark.line > 0) {
        json_object_set_new(object, "line", json_integer(origin->mark.line));
        json_object_set_new(object, "column", json_integer(origin->mark.column));
    }
    if (origin->from != NULL)
        json_object_set_new(object, "from", json_string(origin->from));
    return object;
}

json_t *dt_origins_to_json(const dt_origins *origins)
{
    json_t *fields = json_object();

    for (size_t i = 0; i < dt_fields_count; i++) {
        json_t *chain = json_array();

        for (const dt_origin *origin = origins->of[i]; origin != NULL; origin = origin->before)
            json_array_append_new(chain, to_json(origin));
        if (json_array_size(chain) > 0)
            json_object_set(fields, dt_fields[i].path, chain);
        json_decref(chain);
    }
    return fields;
}

json_t *dt_origins_document(const dt_origins *origins, const json_t *earlier)
{
    json_t *fields = dt_origins_to_json(origins), *old = json_object_get(earlier, "fields"), *chain;
    const char *path;

    json_object_foreach(old, path, chain) {
        json_t *newer = json_object_get(fields, path);

        if (!json_is_array(chain))
            continue; /* a damaged entry is skipped */
        if (newer == NULL)
            json_object_set(fields, path, chain);
        else
            json_array_extend(newer, chain);
    }
    return json_pack("{s:i, s:o}", "origins", DT_ORIGINS_VERSION, "fields", fields);
}

json_t *dt_origins_beside(const char *path, dt_arena *arena)
{
    static const char ending[] = ".yaml";
    size_t length = strlen(path), front = sizeof(ending) - 1;
    const char *beside;
    json_t *json = NULL;

    if (length <= front || strcmp(path + length - front, ending) != 0)
        return NULL;
    beside = dt_arena_printf(arena, "%.*s" DT_ORIGINS_ENDING, (int)(length - front), path);
    if (dt_json_read(&json, beside, FILE_BYTES_MAX, NULL) != DT_OK)
        return NULL;
    return json;
}

void dt_origins_leave_out(json_t *document, const char *source)
{
    json_t *fields = json_object_get(document, "fields"), *chain;
    const char *path;
    void *next;

    json_object_foreach_safe(fields, next, path, chain) {
        for (size_t i = json_array_size(chain); i-- > 0;) {
            const char *from =
                json_string_value(json_object_get(json_array_get(chain, i), "source"));

            if (from != NULL && strcmp(from, source) == 0)
                json_array_remove(chain, i);
        }
        if (json_is_array(chain) && json_array_size(chain) == 0)
            json_object_del(fields, path);
    }
}

json_t *dt_origins_read(const char *folder, int64_t attempt, dt_arena *arena)
{
    json_t *document = NULL;
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (; attempt > 0 && document == NULL; attempt--) {
        const char *path =
            dt_arena_printf(arena, "%s/attempt-%lld/origins.json", folder, (long long)attempt);

        if (dt_file_read(&text, path, FILE_BYTES_MAX, NULL) != DT_OK ||
            dt_json_parse(&document, text.data, text.length, path, NULL) != DT_OK)
            document = NULL;
    }
    dt_strbuf_release(&text);
    return document;
}
