/* mixture: prepares each part of data.mixture on its own (corpus_int.h), so that other weights need no new files. */
#include "engine/data/mixture.h"

#include <string.h>

#include "base/display.h"
#include "runner/corpus/corpus.h"
#include "runner/corpus/corpus_int.h"

static void add_facts(dt_prepared_facts *out, const dt_prepared_facts *more)
{
    out->documents += more->documents;
    out->tokens += more->tokens;
    out->bytes += more->bytes;
    out->parts += more->parts;
    out->broken += more->broken;
    out->unknown += more->unknown;
    for (size_t i = 0; i < sizeof(out->chats.forms) / sizeof(out->chats.forms[0]); i++)
        out->chats.forms[i] += more->chats.forms[i];
    out->chats.trained += more->chats.trained;
    out->chats.field_bytes += more->chats.field_bytes;
    out->chats.dropped_bytes += more->chats.dropped_bytes;
}

static void add_rows(dt_chat_facts *out, const dt_chat_facts *more)
{
    out->conversations += more->conversations;
    out->tokens += more->tokens;
    out->rows += more->rows;
    out->row_tokens += more->row_tokens;
    out->targets += more->targets;
    out->untrained += more->untrained;
    out->cut += more->cut;
    out->too_long += more->too_long;
}

static void add_files(dt_string_list *out, const dt_string_list *more, dt_arena *arena)
{
    const char **items =
        dt_arena_alloc_array(arena, (size_t)(out->count + more->count) + 1, sizeof(*items));

    for (int64_t i = 0; i < out->count; i++)
        items[i] = out->items[i];
    for (int64_t i = 0; i < more->count; i++)
        items[out->count + i] = more->items[i];
    *out = (dt_string_list){items, out->count + more->count};
}

/* Adds what is known of one part. What is not known of one is not known of all. */
static void add_part(dt_prepared *out, dt_mixture_part *part, dt_part_facts *facts,
                     const dt_prepared *more, bool first, dt_arena *arena)
{
    dt_chat_facts *rows = dt_arena_alloc(arena, 2 * sizeof(*rows));

    if (first)
        *out = (dt_prepared){.vocab = more->vocab,
                             .texts = more->texts,
                             .pairs = more->pairs,
                             .chats = more->chats,
                             .found = true,
                             .counted = true};
    add_facts(&out->facts, &more->facts);
    memset(rows, 0, 2 * sizeof(*rows));
    for (int i = 0; i < 2 && (first || out->rows != NULL) && more->rows != NULL; i++) {
        if (!first)
            rows[i] = out->rows[i];
        add_rows(&rows[i], &more->rows[i]);
    }
    out->rows = more->rows != NULL && (first || out->rows != NULL) ? rows : NULL;
    if (more->rows != NULL)
        *facts = (dt_part_facts){more->rows[0].row_tokens, more->rows[0].rows};
    out->counted = out->counted && (more->counted || more->files.count > 0);
    out->found = out->found && more->found;
    out->left_out = out->left_out != NULL ? out->left_out : more->left_out;
    part->files = more->files;
    if (more->files.count == 0 || (!first && out->files.count == 0))
        out->files.count = 0;
    else
        add_files(&out->files, &more->files, arena);
}

dt_status dt_prepare_parts(dt_prepared *out, dt_map_list *parts, const dt_recipe *recipe,
                           dt_prepare_list *open_list, void *context, dt_arena *arena,
                           dt_error *err)
{
    int64_t count = recipe->data.mixture.count;
    dt_mixture_part *made = dt_arena_alloc_array(arena, (size_t)count + 1, sizeof(*made));
    dt_part_facts *facts = dt_arena_alloc_array(arena, (size_t)count + 1, sizeof(*facts));
    dt_prepared more;
    dt_status st = DT_OK;

    *parts = (dt_map_list){made, count};
    if (count == 0)
        return open_list(out, recipe, "data.train", context, err);
    for (int64_t i = 0; i < count; i++) {
        dt_recipe own = dt_mixture_recipe_of(recipe, i);

        made[i] = *dt_recipe_part(recipe, i);
        DT_TRY(open_list(&more, &own, dt_arena_printf(arena, "data.mixture '%s'", made[i].name),
                         context, err));
        add_part(out, &made[i], &facts[i], &more, i == 0, arena);
    }
    out->parts = out->rows != NULL && out->counted ? facts : NULL;
out:
    return st;
}

void dt_prepared_take(dt_recipe *recipe, const dt_prepared made[2], const dt_map_list *parts,
                      dt_tokens_kind kind)
{
    if (made[0].files.count == 0 || (recipe->data.validation.count > 0 && made[1].files.count == 0))
        return;
    recipe->data.train = made[0].files;
    recipe->data.validation = made[1].files;
    if (recipe->data.mixture.count > 0)
        recipe->data.mixture = *parts;
    recipe->data.tokens = kind;
}
