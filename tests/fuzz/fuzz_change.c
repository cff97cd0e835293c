/* Parses bodies of changes: the first line is the kind of the change. What is accepted is a command line that ends, whose
 * words after "--" are the run and what the body says. */
#include <stdlib.h>
#include <string.h>

#include "web/change.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + 1), *body = text;
    dt_error err = DT_ERROR_INIT;
    dt_web_change change;
    const char *what;
    dt_arena arena;
    int dashes = 0;

    DT_ASSERT(text != NULL);
    if (size > 0)
        memcpy(text, bytes, size);
    text[size] = '\0';
    what = strsep(&body, "\n");
    dt_arena_init(&arena, 0);
    if (dt_web_change_read(&change, what, "m4x9tr", body,
                           body != NULL ? size - (size_t)(body - text) : 0, &arena,
                           &err) != DT_OK) {
        DT_ASSERT(err.code == DT_ERR_USAGE && err.message[0] != '\0');
    } else {
        DT_ASSERT(change.count >= 4 && change.words[change.count] == NULL);
        while (strcmp(change.words[dashes], "--") != 0)
            dashes++;
        DT_ASSERT(strcmp(change.words[dashes + 1], "m4x9tr") == 0);
        for (int i = 1; i < dashes; i++) /* no text of the body is an option */
            DT_ASSERT(strncmp(change.words[i], "--", 2) == 0 || strcmp(change.words[i], "-") == 0 ||
                      strcmp(change.words[i - 1], "--replaces") == 0);
    }
    dt_arena_release(&arena);
    free(text);
    return 0;
}
