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
    if (train.items[0].kind != DT_TOKENS_CHAR) /* the number of characters is unknown */
        DT_TRY(dt_dataset_split(&out->train_tokens, recipe, train_count,
                                validation.count > 0 ? valid_count : -1, err));
out:
    dt_arena_release(&arena);
    return st;
}
