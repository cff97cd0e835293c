/* launcher_words: takes words of a launcher's command line into what is known of the launch. */
#include <stdlib.h>
#include <string.h>

#include "runner/convert/launcher.h"

const char *dt_launcher_name(const char *program)
{
    const char *slash = strrchr(program, '/');

    return slash != NULL ? slash + 1 : program;
}

const char *dt_launcher_path(const dt_launcher *l, const char *path, dt_arena *arena)
{
    if (l->workdir == NULL || path[0] == '/')
        return path;
    return dt_arena_printf(arena, "%s/%s", l->workdir, path);
}

void dt_launcher_drop(dt_launcher *l, size_t words)
{
    l->words += words;
    l->count -= words;
}

void dt_launcher_keep(dt_launcher *l, const dt_shell_word *word, dt_draft *draft)
{
    dt_shell_add_to(&l->before, word->text, strlen(word->text), word->line, draft->arena);
    l->before.items[l->before.count - 1].open = word->open;
}

void dt_launcher_keep_text(dt_launcher *l, const char *text, dt_draft *draft)
{
    dt_shell_add_to(&l->before, text, strlen(text), 0, draft->arena);
}

void dt_launcher_choose(dt_launcher *l, const char *list, const char *from, dt_draft *draft)
{
    bool first = true;
    int64_t count = 0;

    for (const char *at = list; *at != '\0'; at += strcspn(at, ",") + (strchr(at, ',') != NULL)) {
        first = first && strcspn(at, ",") > 0 && strtoll(at, NULL, 10) == count &&
                strspn(at, "0123456789") == strcspn(at, ",");
        count++;
    }
    l->gpus = count > 0 ? count : -1;
    l->devices = first ? NULL : list;
    l->gpus_from = from;
    if (!first && !l->keeps)
        dt_draft_note(draft, from,
                      "'gpus' is a number, and dtrun uses the first visible GPUs: to use others, "
                      "set CUDA_VISIBLE_DEVICES where dtrun is started");
}

void dt_launcher_variable(dt_launcher *l, const char *text, const char *open, dt_draft *draft)
{
    size_t length = strcspn(text, "=");

    for (size_t i = 0; i < l->env.count; i++)
        if (strncmp(l->env.items[i].text, text, length) == 0 &&
            strchr("=", l->env.items[i].text[length]) != NULL)
            l->env.items[i] = l->env.items[--l->env.count]; /* the last one counts */
    dt_shell_add_to(&l->env, text, strlen(text), 0, draft->arena);
    l->env.items[l->env.count - 1].open = open;
}
