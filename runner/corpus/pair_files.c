#include "runner/corpus/corpus_int.h"

#include <string.h>

#include "base/file.h"
#include "engine/data/files.h"
#include "recipes/foreign/databin.h"

static bool ends_with(const char *text, const char *tail)
{
    size_t length = strlen(text), tail_length = strlen(tail);

    return length >= tail_length && strcmp(text + length - tail_length, tail) == 0;
}

/* Returns true for a file with both languages; false: two files. */
static bool format_of(dt_pair_format *out, const char *path)
{
    static const struct {
        const char *tail;
        dt_pair_format format;
    } tails[] = {{".jsonl", DT_PAIR_JSONL},
                 {".json", DT_PAIR_JSONL},
                 {".csv", DT_PAIR_CSV},
                 {".tsv", DT_PAIR_TSV}};

    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++)
        if (ends_with(path, tails[i].tail)) {
            *out = tails[i].format;
            return true;
        }
    return false;
}

static void add(dt_pair_files *out, int64_t *room, const dt_pair_file *file, dt_arena *arena)
{
    out->items = dt_arena_array_room(arena, out->items, out->count + 1, room, sizeof(*out->items));
    out->items[out->count++] = *file;
}

/* Checks that the files exist, with the same messages as for other data. */
static dt_status look_at(const dt_pair_file *file, const char *field, dt_arena *arena,
                         dt_error *err)
{
    const char *paths[4] = {file->paths[0], file->paths[1], file->indexes[0], file->indexes[1]};
    dt_status st = DT_OK;
    dt_data_files found;

    for (int i = 0; i < 4; i++)
        if (paths[i] != NULL)
            DT_TRY(dt_data_files_find(&found, &(dt_string_list){&paths[i], 1}, DT_TOKENS_BYTE,
                                      field, arena, err));
out:
    return st;
}

static dt_status find_both(dt_pair_files *out, int64_t *room, const char *entry,
                           dt_pair_format format, const char *field, dt_arena *arena, dt_error *err)
{
    dt_pair_file file = {.format = format};
    dt_status st = DT_OK;
    dt_data_files found;

    DT_TRY(dt_data_files_find(&found, &(dt_string_list){&entry, 1}, DT_TOKENS_BYTE, field, arena,
                              err));
    for (int64_t i = 0; i < found.count; i++) {
        file.paths[0] = found.items[i].path;
        add(out, room, &file, arena);
    }
out:
    return st;
}

static dt_status look_at_index(dt_pair_file *file, const char *field, dt_error *err)
{
    static const int widths[] = {[DT_TOKENS_NANOGPT] = 2,
                                 [DT_TOKENS_UINT8] = 1,
                                 [DT_TOKENS_INT32] = 4,
                                 [DT_TOKENS_INT64] = 8};
    dt_databin found[DT_LANGUAGES];
    dt_status st = DT_OK;

    for (int i = 0; i < DT_LANGUAGES; i++) {
        DT_TRY(dt_databin_look(&found[i], file->paths[i], err));
        if (found[i].kind == DT_TOKENS_AUTO)
            DT_THROW(err, DT_ERR_RECIPE,
                     "%s: the fairseq index (.idx) of '%s' is missing; binarize the text again",
                     field, file->paths[i]);
    }
    if (found[0].kind != found[1].kind)
        DT_THROW(err, DT_ERR_RECIPE,
                 "%s: '%s' has %d bytes per id and '%s' has %d; binarize both with one command",
                 field, file->paths[0], widths[found[0].kind], file->paths[1],
                 widths[found[1].kind]);
    file->width_bytes = widths[found[0].kind];
out:
    return st;
}

/* Looks for NAME.de-en.de.bin and its companions, with the languages in either order. */
static dt_status find_databin(bool *there, dt_pair_file *file, const char *entry,
                              const char *const names[], const char *field, dt_arena *arena,
                              dt_error *err)
{
    dt_status st = DT_OK;

    *there = false;
    for (int turn = 0; turn < 2 && !*there; turn++) {
        for (int i = 0; i < DT_LANGUAGES; i++) {
            file->paths[i] = dt_arena_printf(arena, "%s.%s-%s.%s.bin", entry, names[turn],
                                             names[1 - turn], names[i]);
            file->indexes[i] = dt_arena_printf(arena, "%s.%s-%s.%s.idx", entry, names[turn],
                                               names[1 - turn], names[i]);
        }
        *there = dt_file_exists(file->paths[DT_SOURCE]) || dt_file_exists(file->paths[DT_TARGET]);
    }
    if (!*there)
        goto out;
    file->format = DT_PAIR_DATABIN;
    DT_TRY(look_at(file, field, arena, err));
    DT_TRY(look_at_index(file, field, err));
out:
    return st;
}

static dt_status find_two(dt_pair_file *out, const char *entry, const char *const names[],
                          const char *field, dt_arena *arena, dt_error *err)
{
    dt_pair_file text = {.format = DT_PAIR_TEXT};
    dt_status st = DT_OK;
    bool there;

    for (int i = 0; i < DT_LANGUAGES; i++) {
        text.paths[i] = dt_arena_printf(arena, "%s.%s", entry, names[i]);
    }
    if (dt_file_exists(text.paths[DT_SOURCE]) || dt_file_exists(text.paths[DT_TARGET])) {
        *out = text;
        DT_TRY(look_at(out, field, arena, err));
        goto out;
    }
    DT_TRY(find_databin(&there, out, entry, names, field, arena, err));
    if (!there)
        DT_THROW(err, DT_ERR_RECIPE,
                 "%s: cannot find sentence pairs for '%s': neither '%s' with '%s', nor fairseq's "
                 "'%s', exist; one file with both languages must end in .jsonl, .csv or .tsv",
                 field, entry, text.paths[DT_SOURCE], text.paths[DT_TARGET], out->paths[DT_SOURCE]);
out:
    return st;
}

dt_status dt_pair_files_find(dt_pair_files *out, const dt_string_list *entries,
                             const char *const names[DT_LANGUAGES], const char *field,
                             dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t room = 0;

    *out = (dt_pair_files){.count = 0};
    for (int64_t i = 0; i < entries->count; i++) {
        dt_pair_file file = {.format = DT_PAIR_TEXT};
        dt_pair_format format;

        if (format_of(&format, entries->items[i])) {
            DT_TRY(find_both(out, &room, entries->items[i], format, field, arena, err));
            continue;
        }
        DT_TRY(find_two(&file, entries->items[i], names, field, arena, err));
        add(out, &room, &file, arena);
    }
out:
    return st;
}
