/* check: implements dt_dataset_check. Small data are opened and closed, which checks everything; of
 * large data only the sizes, headers and first megabytes are checked. */
#include "engine/data/data_int.h"

#include <stdlib.h>

#include "engine/data/stream.h"

#define SMALL_BYTES ((int64_t)64 << 20) /* total size of small data: read within a second */
#define PEEK_BYTES  ((size_t)1 << 20)   /* bytes read of each file of large data */

static dt_status check_whole(dt_dataset_facts *out, const dt_recipe *recipe,
                             const dt_tokenizer *fixed, dt_error *err)
{
    dt_status st = DT_OK;
    dt_dataset *dataset = NULL;

    DT_TRY(dt_dataset_open(&dataset, recipe, fixed, err));
    out->vocab = dt_tokenizer_vocab(dataset->tokenizer);
    out->train_tokens = dt_dataset_train_tokens(dataset);
    out->train_groups = dataset->groups.count;
    out->train_packs = dataset->has_chats ? dataset->chat_rows.count : dataset->packs.count;
    if (dataset->has_chats) {
        out->chats = dt_chat_facts_of(&dataset->chat_rows);
        out->valid_chats = dt_chat_facts_of(&dataset->valid_chat_rows);
    }
    for (int64_t i = 0; i < dataset->mixture.count; i++) {
        const dt_data_part *part = &dataset->mixture.parts[i];

        out->parts[i].samples = part->samples;
        out->parts[i].tokens =
            dataset->has_chats ? dt_chat_rows_tokens(&dataset->chat_rows, part->first, part->count)
                               : part->token_end - part->token_first;
    }
    out->pairs = dataset->groups.kept;
    out->too_long = dataset->groups.dropped + dataset->valid_groups.dropped;
out:
    dt_dataset_close(dataset);
    return st;
}

static dt_status peek_text(const dt_data_file *file, dt_error *err)
{
    dt_status st = DT_OK;
    dt_char_set *set = calloc(1, sizeof(*set));
    dt_mapping text = {0}, start;
    int64_t count;

    if (set == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a vocabulary");
    DT_TRY(dt_mapping_open(&text, file->path, err));
    start = text;
    if (start.length > PEEK_BYTES) {
        start.length = PEEK_BYTES;
        for (int i = 0; i < DT_UTF8_MAX && (start.bytes[start.length] & 0xc0) == 0x80; i++)
            start.length--; /* do not cut a character */
    }
    DT_TRY(dt_text_scan(set, &count, file->path, &start, err));
out:
    dt_mapping_close(&text);
    free(set);
    return st;
}

/* Check the start of each file, and count tokens if they are ids; characters are not counted. */
static dt_status peek(int64_t *tokens, const dt_data_files *files, dt_error *err)
{
    dt_status st = DT_OK;

    *tokens = 0;
    for (int64_t i = 0; i < files->count; i++) {
        const dt_data_file *file = &files->items[i];
        dt_bin_layout layout;

        switch (file->kind) {
        case DT_TOKENS_CHAR:
            DT_TRY(peek_text(file, err));
            break;
        case DT_TOKENS_BYTE:
            *tokens += file->bytes;
            break;
        default:
            DT_TRY(dt_bin_layout_read(&layout, file, err));
            *tokens += layout.count;
            break;
        }
    }
out:
    return st;
}

/* Check the tokens of each part and set its facts; quotas are checked unless documents are packed. */
static dt_status peek_parts(dt_dataset_facts *out, const dt_data_files *train,
                            const dt_recipe *recipe, int64_t valid_count, dt_arena *arena,
                            dt_error *err)
{
    int64_t files[DT_MIXTURE_MOST], at = 0;
    dt_mixture mixture;
    dt_status st = DT_OK;

    dt_mixture_init(&mixture, recipe);
    DT_TRY(dt_mixture_files(files, recipe, train->items[0].kind, arena, err));
    for (int64_t i = 0; i < mixture.count; at += files[i], i++) {
        dt_data_files own_files = {.items = train->items + at, .count = files[i]};
        dt_recipe own = dt_mixture_recipe_of(recipe, i);
        int64_t tokens;

        DT_TRY(peek(&tokens, &own_files, err));
        st = dt_dataset_split(&out->parts[i].tokens, &own, tokens, valid_count, err);
        DT_TRY(dt_mixture_in_part(st, recipe, i, err));
        out->train_tokens += out->parts[i].tokens;
        if (!dt_packs_asked(recipe))
            out->parts[i].samples =
                dt_mixture_part_samples(out->parts[i].tokens, recipe->batch.tokens, 1);
        mixture.parts[i].samples = out->parts[i].samples;
    }
    if (!dt_packs_asked(recipe))
        DT_TRY(dt_mixture_set_quotas(&mixture, err));
out:
    return st;
}

/* Count the rows, if headers give the number; otherwise by a full read. */
static dt_status check_rows(dt_dataset_facts *out, const dt_data_files *train,
                            const dt_data_files *validation, const dt_recipe *recipe, dt_error *err)
{
    int64_t count, of_validation;
    dt_rows rows;
    dt_status st = DT_OK;

    dt_rows_init(&rows, recipe);
    DT_TRY(dt_rows_count(&count, &rows, train, err));
    DT_TRY(dt_rows_count(&of_validation, &rows, validation, err));
    if (count > 0)
        out->train_tokens = dt_dataset_split_rows(recipe, count, validation->count > 0);
out:
    return st;
}

/* Check with the tokenizer's file only; the text may not have been converted to tokens yet. */
static dt_status check_unprepared(dt_dataset_facts *out, const dt_recipe *recipe, dt_error *err)
{
    dt_tokenizer *tokenizer = NULL;
    dt_status st = DT_OK;
    int32_t document_end;

    DT_TRY(dt_tokenizer_read(&tokenizer, recipe, err));
    out->vocab = dt_tokenizer_vocab(tokenizer);
    DT_TRY(dt_dataset_check_vocab(recipe, out->vocab, err));
    DT_TRY(dt_documents_end(&document_end, recipe, tokenizer, out->vocab, err));
out:
    dt_tokenizer_free(tokenizer);
    return st;
}

dt_status dt_dataset_check(dt_dataset_facts *out, const dt_recipe *recipe,
                           const dt_tokenizer *fixed, dt_error *err)
{
    dt_status st = DT_OK;
    dt_arena arena;
    dt_data_files train, validation;
    int64_t train_count, valid_count;
    int32_t document_end;

    *out = (dt_dataset_facts){0};
    dt_arena_init(&arena, 0);
    if (recipe->data.format == DT_DATA_CHAT && recipe->data.tokens != DT_TOKENS_CHATS) {
        DT_TRY(check_unprepared(out, recipe, err));
        goto out;
    }
    if (dt_dataset_pairs_are_text(recipe)) {
        DT_TRY(dt_dataset_check_pairs_text(out, recipe, err));
        goto out;
    }
    DT_TRY(dt_dataset_find_files(&train, &validation, recipe, &arena, err));
    if (train.items[0].kind == DT_TOKENS_PAIRS || /* cheap: reads only the lengths */
        train.items[0].kind == DT_TOKENS_CHATS) {
        DT_TRY(check_whole(out, recipe, fixed, err));
        goto out;
    }
    if (dt_tokenizer_is_file(recipe) && !dt_tokens_kind_is_ids(train.items[0].kind)) {
        DT_TRY(check_unprepared(out, recipe, err));
        goto out;
    }
    if (train.bytes + validation.bytes <= SMALL_BYTES) {
        DT_TRY(check_whole(out, recipe, fixed, err));
        goto out;
    }
    if (train.items[0].kind == DT_TOKENS_ROWS) {
        DT_TRY(check_rows(out, &train, &validation, recipe, err));
        goto out;
    }
    DT_TRY(peek(&train_count, &train, err));
    DT_TRY(peek(&valid_count, &validation, err));
    if (train.items[0].kind == DT_TOKENS_BYTE)
        out->vocab = 256;
    else if (dt_tokenizer_is_file(recipe))
        DT_TRY(check_unprepared(out, recipe, err));
    else if (train.items[0].kind != DT_TOKENS_CHAR)
        out->vocab = recipe->model.vocab;
    DT_TRY(dt_dataset_check_vocab(recipe, out->vocab, err));
    if (!dt_tokenizer_is_file(recipe))
        DT_TRY(dt_documents_end(&document_end, recipe, fixed, out->vocab, err));
    if (train.items[0].kind == DT_TOKENS_CHAR) /* the number of characters is unknown */
        goto out;
    if (recipe->data.mixture.count > 0)
        DT_TRY(
            peek_parts(out, &train, recipe, validation.count > 0 ? valid_count : -1, &arena, err));
    else
        DT_TRY(dt_dataset_split(&out->train_tokens, recipe, train_count,
                                validation.count > 0 ? valid_count : -1, err));
out:
    dt_arena_release(&arena);
    return st;
}
