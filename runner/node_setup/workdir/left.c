/* left: keeps what rules left out of a command's folder, for the message of a program that does not find it. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "runner/node_setup/workdir/workdir.h"

#define FILE_NAME  "workdir-left-out.json"
#define ITEMS_MOST 1000
#define FILE_BYTES ((size_t)4 << 20)

dt_status dt_workdir_left_write(const dt_workdir_left_list *left, const char *run_folder,
                                dt_error *err)
{
    json_t *list = json_array();
    dt_strbuf path, text;
    dt_status st = DT_OK;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    for (int64_t i = 0; i < left->count && i < ITEMS_MOST; i++)
        json_array_append_new(list,
                              json_pack("{s:o, s:o}", "path", dt_json_text(left->items[i].path),
                                        "rule", dt_json_text(left->items[i].rule)));
    dt_strbuf_add_fmt(&path, "%s/" FILE_NAME, run_folder);
    dt_json_write(&text, list);
    st = dt_file_write_atomic(path.data, text.data, text.length, 0600, err);
    json_decref(list);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

/* Returns whether the path names this file or folder, or something below, maybe from a folder above. */
static bool is_below(const char *named, const char *left)
{
    size_t length = strlen(left);

    for (const char *at = named; (at = strstr(at, left)) != NULL; at++)
        if ((at == named || at[-1] == '/') && (at[length] == '\0' || at[length] == '/'))
            return true;
    return false;
}

const char *dt_workdir_left_hint(const char *run_folder, const char *message, dt_arena *arena)
{
    const char *path = dt_arena_printf(arena, "%s/" FILE_NAME, run_folder), *hint = NULL;
    const char *quote = strpbrk(message, "'\""), *end;
    json_t *list = NULL, *one;
    size_t i;

    if (strstr(message, "No such file") == NULL ||
        dt_json_read(&list, path, FILE_BYTES, NULL) != DT_OK)
        return NULL;
    for (; hint == NULL && quote != NULL && (end = strchr(quote + 1, *quote)) != NULL;
         quote = strpbrk(end + 1, "'\"")) {
        const char *named = dt_arena_strndup(arena, quote + 1, (size_t)(end - quote - 1));

        json_array_foreach(list, i, one) {
            const char *left = json_string_value(json_object_get(one, "path"));
            const char *rule = json_string_value(json_object_get(one, "rule"));

            if (hint == NULL && left != NULL && rule != NULL && is_below(named, left))
                hint = dt_arena_printf(
                    arena, "'%s' was not sent to the nodes: it is left out by %s", left, rule);
        }
    }
    json_decref(list);
    return hint;
}
