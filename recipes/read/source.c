/* source: reads the file of a recipe (recipes/read/reader.h). */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "recipes/fields/text.h"
#include "recipes/read/reader.h"

#define RECIPE_BYTES_MAX ((size_t)1 << 20)

dt_status dt_recipe_source_read(dt_recipe_source *out, const char *path, dt_arena *arena,
                                dt_error *err)
{
    dt_error cause = DT_ERROR_INIT;
    dt_status st = DT_OK;
    dt_strbuf text;

    memset(out, 0, sizeof(*out));
    dt_strbuf_init(&text);
    if (strcmp(path, "-") == 0) {
        path = "/dev/stdin";
        st = dt_file_read_fd(&text, STDIN_FILENO, path, RECIPE_BYTES_MAX, &cause);
    } else {
        st = dt_file_read(&text, path, RECIPE_BYTES_MAX, &cause);
    }
    if (st == DT_ERR_UNSUPPORTED)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' is larger than 1 MiB: a recipe is a page of text (is this the data?)", path);
    if (st != DT_OK) /* a wrong path counts as an error of the recipe */
        DT_THROW(err, DT_ERR_RECIPE, "%s", cause.message);
    if (memchr(text.data, '\0', text.length) != NULL)
        DT_TRY(dt_text_check(text.data, text.length, &(dt_text_mark){path, 1, 1},
                             err)); /* reports the position */
    out->path = dt_arena_strdup(arena, path);
    out->text = dt_arena_strndup(arena, text.data, text.length);
out:
    dt_strbuf_release(&text);
    return st;
}
