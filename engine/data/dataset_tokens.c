/* dataset_tokens: opens datasets of token ids and of text. */
#include <stdlib.h>
#include <string.h>

#include "engine/data/data_int.h"
#include "engine/progress.h"

/* dataset_ids: opens token files, which are used in place in the mapping. */

static dt_status map_bins(dt_token_stream *out, const dt_data_files *files, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_token_stream_init(out, files->count, err));
    for (int64_t i = 0; i < files->count; i++) {
        dt_token_piece piece = {.path = files->items[i].path};
        dt_data_file file = files->items[i];
        dt_bin_layout layout;

        DT_TRY(dt_mapping_open(&piece.mapping, file.path, err));
        file.bytes = (int64_t)piece.mapping.length; /* check the size that was mapped */
        if ((st = dt_bin_layout_read(&layout, &file, err)) != DT_OK) {
            dt_mapping_close(&piece.mapping);
            goto out;
        }
        piece.tokens = piece.mapping.bytes + layout.header_bytes;
        piece.width_bytes = layout.width_bytes;
        piece.count = layout.count;
        dt_token_stream_add(out, &piece);
    }
out:
    return st;
}

dt_status dt_dataset_open_ids(dt_dataset *dataset, const dt_data_files *train,
                              const dt_data_files *validation, const dt_recipe *recipe,
                              const dt_tokenizer *fixed, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t vocab = recipe->model.vocab;

    DT_TRY(map_bins(&dataset->train, train, err));
    DT_TRY(map_bins(&dataset->validation, validation, err));
    if (dt_tokenizer_is_file(recipe)) {
        DT_TRY(dt_tokenizer_read(&dataset->tokenizer, recipe, err));
        if (fixed != NULL)
            DT_TRY(dt_tokenizer_bpe_same(fixed, dataset->tokenizer, err));
        goto out;
    }
    if (fixed != NULL) {
        DT_TRY(dt_tokenizer_copy(&dataset->tokenizer, fixed, err));
        goto out;
    }
    if (vocab == 0) {
        int64_t a = dt_token_stream_max(&dataset->train);
        int64_t b = dt_token_stream_max(&dataset->validation);
        vocab = (a > b ? a : b) + 1;
    }
    if (vocab > INT32_MAX)
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' or another data file contains the token %lld, too large for any vocabulary; "
                 "set data.tokens to the format of the file",
                 train->items[0].path, (long long)vocab - 1);
    DT_TRY(dt_tokenizer_new_ids(&dataset->tokenizer, vocab, err));
out:
    return st;
}

/* --- text as code points and tokens */

/* Reports progress once per MiB. */
static inline void report_progress(size_t at, size_t used)
{
    if (at >> 20 != (at + used) >> 20)
        dt_progress_made();
}

dt_status dt_text_scan(dt_char_set *set, int64_t *count, const char *path, const dt_mapping *text,
                       dt_error *err)
{
    size_t used;

    *count = 0;
    for (size_t at = 0; at < text->length; at += used) {
        uint32_t code = 0;

        used = dt_utf8_decode(&code, text->bytes + at, text->length - at);
        if (used == 0)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "'%s': byte %zu is not UTF-8 (0x%02x); convert the file (iconv -t "
                           "UTF-8), or set data.tokens: byte",
                           path, at, text->bytes[at]);
        if (code == 0)
            return DT_FAIL(err, DT_ERR_RECIPE,
                           "'%s': byte %zu is NUL, so that this is not UTF-8 text; convert the "
                           "file, or set data.tokens to what it holds",
                           path, at);
        report_progress(at, used);
        dt_char_set_add(set, code);
        ++*count;
    }
    return DT_OK;
}

static void put_token(unsigned char *tokens, int width_bytes, int64_t index, uint32_t token)
{
    uint16_t two = (uint16_t)token;

    switch (width_bytes) {
    case 1:
        tokens[index] = (unsigned char)token;
        break;
    case 2:
        memcpy(tokens + index * 2, &two, sizeof(two));
        break;
    default:
        memcpy(tokens + index * 4, &token, sizeof(token));
        break;
    }
}

/* Encode the text as a piece in the narrowest width that fits the vocabulary; `count` is from
 * dt_text_scan. A character without a token is an error; this happens only with a checkpoint's
 * tokenizer. */
static dt_status text_encode(dt_token_piece *out, int64_t count, const char *path,
                             const dt_mapping *text, const dt_tokenizer *tokenizer, dt_error *err)
{
    dt_status st = DT_OK;
    int width_bytes = tokenizer->vocab <= 256 ? 1 : tokenizer->vocab <= 65536 ? 2 : 4;
    unsigned char *tokens = malloc((size_t)count * (size_t)width_bytes);
    int64_t done = 0;
    size_t used;

    if (tokens == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the %lld tokens of '%s'", (long long)count,
                 path);
    for (size_t at = 0; at < text->length && done < count; at += used) {
        uint32_t code = 0;
        int32_t token;

        used = dt_utf8_decode(&code, text->bytes + at, text->length - at);
        token = used == 0 ? -1 : dt_tokenizer_find(tokenizer, code);
        if (token < 0)
            DT_THROW(err, DT_ERR_RECIPE,
                     "'%s': the character '%.*s' (U+%04X) at byte %zu is not in the checkpoint's "
                     "vocabulary; resume with the text that it was trained on, or start a new run",
                     path, (int)used, (const char *)text->bytes + at, code, at);
        report_progress(at, used);
        put_token(tokens, width_bytes, done++, (uint32_t)token);
    }
    memset(out, 0, sizeof(*out));
    out->path = path;
    out->width_bytes = width_bytes;
    out->count = done;
    out->tokens = out->memory = tokens;
    tokens = NULL;
out:
    free(tokens);
    return st;
}

/* dataset_text: opens text. Its bytes are the tokens, or it is scanned for its characters and
 * encoded. */

static dt_status map_texts(dt_token_stream *out, const dt_data_files *files, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_token_stream_init(out, files->count, err));
    for (int64_t i = 0; i < files->count; i++) {
        dt_token_piece piece = {.path = files->items[i].path, .width_bytes = 1};

        DT_TRY(dt_mapping_open(&piece.mapping, piece.path, err));
        piece.tokens = piece.mapping.bytes;
        piece.count = (int64_t)piece.mapping.length;
        dt_token_stream_add(out, &piece);
    }
out:
    return st;
}

/* Collect the code points of all pieces, and count them per piece. */
static dt_status scan_texts(dt_char_set *set, dt_token_stream *stream, int64_t *counts,
                            dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = 0; i < stream->piece_count; i++)
        DT_TRY(
            dt_text_scan(set, &counts[i], stream->pieces[i].path, &stream->pieces[i].mapping, err));
out:
    return st;
}

static dt_status encode_texts(dt_token_stream *out, const dt_token_stream *texts,
                              const int64_t *counts, const dt_tokenizer *tokenizer, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_token_stream_init(out, texts->piece_count, err));
    for (int64_t i = 0; i < texts->piece_count; i++) {
        dt_token_piece piece;

        DT_TRY(text_encode(&piece, counts[i], texts->pieces[i].path, &texts->pieces[i].mapping,
                           tokenizer, err));
        dt_token_stream_add(out, &piece);
    }
out:
    return st;
}

dt_status dt_dataset_open_chars(dt_dataset *dataset, const dt_data_files *train,
                                const dt_data_files *validation, const dt_tokenizer *fixed,
                                dt_error *err)
{
    dt_status st = DT_OK;
    dt_char_set *set = calloc(1, sizeof(*set));
    int64_t *counts = calloc((size_t)(train->count + validation->count), sizeof(*counts));
    dt_token_stream train_text = {0}, validation_text = {0};

    if (set == NULL || counts == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a vocabulary");
    DT_TRY(map_texts(&train_text, train, err));
    DT_TRY(map_texts(&validation_text, validation, err));
    /* One vocabulary for both, so that validation has no unknown characters. */
    DT_TRY(scan_texts(set, &train_text, counts, err));
    DT_TRY(scan_texts(set, &validation_text, counts + train->count, err));
    DT_TRY(fixed != NULL ? dt_tokenizer_copy(&dataset->tokenizer, fixed, err)
                         : dt_tokenizer_new_char(&dataset->tokenizer, set, err));
    DT_TRY(encode_texts(&dataset->train, &train_text, counts, dataset->tokenizer, err));
    DT_TRY(encode_texts(&dataset->validation, &validation_text, counts + train->count,
                        dataset->tokenizer, err));
out:
    dt_token_stream_release(&train_text);
    dt_token_stream_release(&validation_text);
    free(counts);
    free(set);
    return st;
}

dt_status dt_dataset_open_bytes(dt_dataset *dataset, const dt_data_files *train,
                                const dt_data_files *validation, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(map_texts(&dataset->train, train, err));
    DT_TRY(map_texts(&dataset->validation, validation, err));
    DT_TRY(dt_tokenizer_new_byte(&dataset->tokenizer, err));
out:
    return st;
}
