/* chats: opens the template of a recipe, and reads conversations line by line. */
#include "runner/corpus/chats.h"

#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "runner/corpus/corpus_int.h"

/* --- the template */

const char *const dt_chats_folder_files[] = {"chat_template.jinja",   "chat_template.json",
                                             "tokenizer_config.json", "special_tokens_map.json",
                                             "added_tokens.json",     NULL};

const char *dt_chats_folder(const dt_recipe *recipe, dt_arena *arena)
{
    const char *path = recipe->data.tokenizer, *slash = strrchr(path, '/');

    if (dt_file_exists(dt_arena_printf(arena, "%s/tokenizer.json", path)))
        return path;
    return slash != NULL ? dt_arena_printf(arena, "%.*s", (int)(slash - path), path) : ".";
}

dt_status dt_chats_template(dt_chat **out, const dt_recipe *recipe, const dt_tokenizer *tokenizer,
                            dt_arena *arena, dt_error *err)
{
    const char *file = recipe->data.chat_template;
    dt_chat_source source = {.folder = dt_chats_folder(recipe, arena),
                             .file = file != NULL && file[0] != '\0' ? file : NULL};
    dt_error why = DT_ERROR_INIT;
    dt_status st = dt_chat_open(out, &source, dt_tokenizer_bpe(tokenizer), &why);

    if (st == DT_OK)
        return DT_OK;
    if (st == DT_ERR_NOT_FOUND && source.file == NULL)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "data.format is chat, but the tokenizer's folder '%s' has no chat template: "
                       "set data.chat_template to a file, for example to chat_template.jinja of "
                       "the tuned model of the same family",
                       source.folder);
    if (source.file != NULL && !dt_file_exists(source.file))
        return DT_FAIL(err, DT_ERR_RECIPE, "data.chat_template: '%s' does not exist", source.file);
    return DT_FAIL(err, st == DT_ERR_NOMEM ? st : DT_ERR_RECIPE, "%s", why.message);
}

/* --- lines */

dt_status dt_chats_files(dt_data_files *out, const dt_string_list *patterns, const char *field,
                         dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_data_files_find(out, patterns, DT_TOKENS_BYTE, field, arena, err));
    for (int64_t i = 0; i < out->count; i++)
        if (dt_corpus_kind_of(out->items[i].path) != DT_CORPUS_JSONL)
            DT_THROW(err, DT_ERR_RECIPE,
                     "%s: '%s' is not a file of conversations: expected .jsonl, with a JSON object "
                     "a line",
                     field, out->items[i].path);
out:
    return st;
}

static bool is_blank(const char *text, size_t length)
{
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
        length--;
    return length == 0;
}

static int64_t count_breaks(const char *text, size_t length)
{
    int64_t breaks = 0;

    for (size_t i = 0; i < length; i++)
        breaks += text[i] == '\n';
    return breaks;
}

/* Puts file and line before a message. `start`: of the line in the file's text. */
static dt_status locate(const dt_corpus_file *file, size_t start, dt_status st, dt_error *err)
{
    if (err != NULL && st != DT_ERR_NOMEM)
        st = err->code = DT_ERR_RECIPE;
    dt_error_prefix(err, "%s:%lld", file->path,
                    (long long)count_breaks((const char *)file->text.bytes, start) + 1);
    return st;
}

static dt_status parse(json_t **out, const char *text, size_t length, dt_error *err)
{
    json_error_t problem;

    *out = json_loadb(text, length, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &problem);
    if (*out == NULL)
        return DT_FAIL(err, DT_ERR_RECIPE, "not JSON: %s (column %d); a line has one object",
                       problem.text, problem.column);
    if (!json_is_object(*out))
        return DT_FAIL(err, DT_ERR_RECIPE, "not a JSON object; a line has one conversation");
    return DT_OK;
}

dt_status dt_chats_part_read(const dt_corpus_file *file, size_t start, size_t end,
                             dt_chat_encoder *encoder, dt_arena *arena, bool pairs,
                             dt_chats_line_fn *each, void *context, dt_error *err)
{
    static const dt_chat_options options = {.prompts = false};
    const char *text = (const char *)file->text.bytes;
    dt_chats_line found = {.path = file->path};
    json_t *both[2] = {NULL, NULL};
    bool stop = false;
    dt_status st = DT_OK, taken = DT_OK;
    dt_chat_row row;
    size_t next;

    for (size_t at = start; at < end && !stop; at = next) {
        const char *line_end = memchr(text + at, '\n', end - at);
        json_t *line = NULL;

        next = line_end != NULL ? (size_t)(line_end - text) + 1 : end;
        found.number++; /* within the part; the caller of a part in the middle does not use it */
        if (is_blank(text + at, next - at))
            continue;
        dt_arena_reset(arena);
        st = parse(&line, text + at, next - at, err);
        if (st == DT_OK && pairs)
            st = dt_preference_lines(both, line, err);
        else if (st == DT_OK)
            both[0] = json_incref(line);
        for (int k = 0; k < 2 && st == DT_OK && both[k] != NULL; k++) {
            st = dt_chat_encode(&row, encoder, both[k], &options, arena, err);
            found.line = both[k];
            found.row = &row;
            if (st == DT_OK) {
                taken = each(context, &found, &stop, err);
                if (taken != DT_OK)
                    break;
            }
        }
        if (st != DT_OK)
            st = locate(file, at, st, err);
        else
            st = taken;
        json_decref(both[0]);
        json_decref(both[1]);
        both[0] = both[1] = NULL;
        json_decref(line);
        if (st != DT_OK)
            break;
    }
    return st;
}

dt_status dt_chats_each(const dt_data_files *files, const dt_chat *chat, bool pairs,
                        dt_chats_line_fn *each, void *context, dt_error *err)
{
    dt_chat_encoder *encoder = NULL;
    dt_corpus_parts parts = {0};
    dt_status st = DT_OK;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_corpus_parts_open(&parts, files, "", NULL, err));
    DT_TRY(dt_chat_encoder_open(&encoder, chat, err));
    for (int64_t i = 0; i < parts.file_count; i++) {
        const dt_corpus_file *file = &parts.files[i];

        DT_TRY(dt_chats_part_read(file, dt_corpus_file_start(file), file->text.length, encoder,
                                  &arena, pairs, each, context, err));
    }
out:
    dt_chat_encoder_close(encoder);
    dt_corpus_parts_release(&parts);
    dt_arena_release(&arena);
    return st;
}
