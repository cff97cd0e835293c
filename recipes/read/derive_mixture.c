/* derive_mixture: sets data.train to the files of data.mixture, and names parts without a name
 * (recipes/read/reading.h). */
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "recipes/read/reading.h"

/* The file's name without folders and ending; of a pattern the name of its folder. */
static const char *name_of_file(const char *path, dt_arena *arena)
{
    size_t end = strstr(path, "://") != NULL ? strcspn(path, "#") : strlen(path);
    const char *text = dt_arena_strndup(arena, path, end), *slash;
    const char *name, *dot;

    while ((slash = strrchr(text, '/')) != NULL && slash > text && strpbrk(slash, "*?[") != NULL)
        text = dt_arena_strndup(arena, text, (size_t)(slash - text));
    name = slash != NULL ? slash + 1 : text;
    dot = strrchr(name, '.');
    return dot != NULL && dot != name ? dt_arena_strndup(arena, name, (size_t)(dot - name)) : name;
}

static bool is_taken(const dt_recipe *recipe, const char *name)
{
    for (int64_t i = 0; i < recipe->data.mixture.count; i++)
        if (strcmp(dt_recipe_part(recipe, i)->name, name) == 0)
            return true;
    return false;
}

static void name_part(const dt_recipe *recipe, dt_mixture_part *part, dt_arena *arena)
{
    const char *stem, *name;

    if (part->name[0] != '\0' || part->files.count == 0)
        return;
    stem = name = name_of_file(part->files.items[0], arena);
    for (int n = 2; is_taken(recipe, name); n++)
        name = dt_arena_printf(arena, "%s-%d", stem, n);
    part->name = name;
}

/* Sets data.train to the files of all parts; returns them as text, "[a.txt, b.txt]". */
static const char *join_files(dt_string_list *out, const dt_recipe *recipe, dt_arena *arena)
{
    const char *text;
    int64_t count = 0;
    dt_strbuf shown;

    dt_strbuf_init(&shown);
    for (int64_t i = 0; i < recipe->data.mixture.count; i++)
        count += dt_recipe_part(recipe, i)->files.count;
    out->items = dt_arena_alloc_array(arena, (size_t)count + 1, sizeof(*out->items));
    out->count = 0;
    for (int64_t i = 0; i < recipe->data.mixture.count; i++) {
        const dt_string_list *files = &dt_recipe_part(recipe, i)->files;

        for (int64_t f = 0; f < files->count; f++) {
            dt_strbuf_add_fmt(&shown, "%s%s", out->count > 0 ? ", " : "[", files->items[f]);
            out->items[out->count++] = files->items[f];
        }
    }
    dt_strbuf_add_char(&shown, ']');
    text = dt_arena_strdup(arena, shown.data);
    dt_strbuf_release(&shown);
    return text;
}

void dt_reading_derive_mixture(dt_reading *reading)
{
    dt_recipe *recipe = reading->recipe;
    dt_mixture_part *parts = recipe->data.mixture.items;
    dt_string_list joined;
    const char *files;

    if (reading->troubled[dt_reading_row("data.mixture")])
        dt_reading_trouble(reading, "data.train"); /* it would follow from the mixture */
    if (recipe->data.mixture.count == 0 || reading->troubled[dt_reading_row("data.mixture")])
        return;
    if (dt_reading_later(reading, "data.train", "data.mixture") > 0) {
        recipe->data.mixture.count = 0;
        dt_reading_derived(reading, "data.mixture", "[]", "data.train");
        return;
    }
    for (int64_t i = 0; i < recipe->data.mixture.count; i++)
        name_part(recipe, &parts[i], reading->arena);
    files = join_files(&joined, recipe, reading->arena);
    if (dt_reading_written(reading, "data.train") &&
        dt_reading_later(reading, "data.mixture", "data.train") == 0)
        return; /* the rule compares them */
    recipe->data.train = joined;
    if (!dt_reading_resolved(reading, "data.mixture"))
        dt_reading_derived(reading, "data.train", files, "data.mixture");
}
