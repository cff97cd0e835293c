#include <string.h>

#include "runner/nodes/nodes_int.h"

#include "base/banned.h"

bool dt_nodes_is_here(const char *node)
{
    const char *rest = strncmp(node, "localhost", 9) == 0 ? node + 9 : "?";

    return rest[0] == '\0' || rest[0] == '#';
}

static dt_status copy_words(const char ***out, const char *const *words, dt_arena *arena,
                            dt_error *err)
{
    size_t count = 0;

    while (words[count] != NULL)
        count++;
    *out = dt_arena_alloc_array(arena, count + 1, sizeof((*out)[0]));
    for (size_t i = 0; *out != NULL && i < count; i++)
        (*out)[i] = words[i];
    return *out != NULL ? DT_OK : DT_FAIL(err, DT_ERR_NOMEM, "no memory");
}

dt_status dt_node_command(const char ***argv, const char *node, const char *const *words,
                          dt_arena *arena, dt_error *err)
{
    *argv = NULL;
    if (dt_nodes_is_here(node))
        return copy_words(argv, words, arena, err);
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "node '%s' cannot be reached: this version runs on 'localhost' only", node);
}
