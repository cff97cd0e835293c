#include "engine/data/sides.h"

#include <stdlib.h>
#include <string.h>

#define VERSION 1

/* --- the file */

json_t *dt_side_of_dictionary(const dt_strbuf *dictionary, const dt_strbuf *codes)
{
    json_t *out = json_object();

    json_object_set_new(out, "dictionary", json_stringn(dictionary->data, dictionary->length));
    if (codes != NULL)
        json_object_set_new(out, "codes", json_stringn(codes->data, codes->length));
    return out;
}

json_t *dt_side_of_tokenizer(const dt_strbuf *tokenizer)
{
    json_t *out = json_object();

    json_object_set_new(out, "tokenizer", json_stringn(tokenizer->data, tokenizer->length));
    return out;
}

static dt_status read_dictionary(dt_side *out, const json_t *json, const char *name, dt_error *err)
{
    const json_t *text = json_object_get(json, "dictionary"),
                 *codes = json_object_get(json, "codes");
    dt_status st = DT_OK;

    DT_TRY(dt_dictionary_parse(&out->dictionary, json_string_value(text), json_string_length(text),
                               name, err));
    if (json_is_string(codes)) {
        DT_TRY(dt_codes_parse(&out->codes, json_string_value(codes), json_string_length(codes),
                              name, err));
        out->has_codes = true;
    }
    out->vocab = dt_dictionary_size(&out->dictionary);
    out->pad = DT_DICTIONARY_PAD;
    out->end = DT_DICTIONARY_END;
out:
    return st;
}

/* The token of a text, if it is encoded as a single token; else -1. */
static dt_status find_token(int32_t *out, const dt_bpe *bpe, const char *text, dt_error *err)
{
    dt_bpe_encoder *encoder = NULL;
    dt_status st = DT_OK;
    dt_ids ids = {0};

    *out = -1;
    DT_TRY(dt_bpe_encoder_open(&encoder, bpe, err));
    DT_TRY(dt_bpe_encode(&ids, encoder, text, strlen(text), err));
    if (ids.count == 1)
        *out = ids.items[0];
out:
    dt_ids_release(&ids);
    dt_bpe_encoder_close(encoder);
    return st;
}

static dt_status read_tokenizer(dt_side *out, const json_t *text, const char *name, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_parse(&out->bpe, json_string_value(text), json_string_length(text), name, err));
    out->vocab = dt_bpe_vocab(out->bpe);
    out->end = dt_bpe_end_of_text(out->bpe);
    if (out->end < 0)
        DT_THROW(err, DT_ERR_CORRUPT,
                 "'%s' has no end-of-text token such as '</s>' or '<|endoftext|>', which every "
                 "sentence of a pair ends with: add one to the tokenizer",
                 name);
    DT_TRY(find_token(&out->pad, out->bpe, "<pad>", err));
    if (out->pad < 0)
        DT_TRY(find_token(&out->pad, out->bpe, "[PAD]", err));
    if (out->pad < 0 || out->pad == out->end)
        out->pad = (int32_t)out->vocab++;
out:
    return st;
}

static dt_status read_side(dt_side *out, const json_t *json, const char *name, dt_error *err)
{
    const json_t *tokenizer = json_object_get(json, "tokenizer");

    if (json_is_string(tokenizer))
        return read_tokenizer(out, tokenizer, name, err);
    if (json_is_string(json_object_get(json, "dictionary")))
        return read_dictionary(out, json, name, err);
    return DT_FAIL(err, DT_ERR_CORRUPT,
                   "'%s': 'source' or 'target' is neither a dictionary nor a tokenizer", name);
}

dt_status dt_sides_parse(dt_sides **out, const char *bytes, size_t length, const char *name,
                         dt_error *err)
{
    dt_sides *made = calloc(1, sizeof(*made));
    json_t *json = NULL, *source, *target;
    dt_status st = DT_OK;
    int64_t version;

    *out = NULL;
    if (made == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the tokenizers of sentence pairs");
    DT_TRY(dt_json_parse(&json, bytes, length, name, err));
    DT_TRY(dt_json_get_int(&version, json, "version", name, err));
    if (version != VERSION)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': unsupported version %lld (expected %d)", name,
                 (long long)version, VERSION);
    source = json_object_get(json, "source");
    target = json_object_get(json, "target");
    DT_TRY(read_side(&made->own[0], source, name, err));
    if (target != NULL)
        DT_TRY(read_side(&made->own[1], target, name, err));
    made->source = &made->own[0];
    made->target = &made->own[target != NULL ? 1 : 0];
    if (made->source->pad != made->target->pad)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' pads sources with %d and targets with %d", name,
                 made->source->pad, made->target->pad);
    *out = made;
    made = NULL;
out:
    json_decref(json);
    dt_sides_free(made);
    return st;
}

void dt_sides_free(dt_sides *sides)
{
    if (sides == NULL)
        return;
    for (int i = 0; i < 2; i++) {
        dt_dictionary_release(&sides->own[i].dictionary);
        dt_codes_release(&sides->own[i].codes);
        dt_bpe_free(sides->own[i].bpe);
    }
    free(sides);
}

/* --- sentences */

dt_status dt_side_encoder_open(dt_side_encoder *out, const dt_side *side, dt_error *err)
{
    *out = (dt_side_encoder){.side = side};
    dt_strbuf_init(&out->pieces);
    return side->bpe != NULL ? dt_bpe_encoder_open(&out->bpe, side->bpe, err) : DT_OK;
}

void dt_side_encoder_close(dt_side_encoder *encoder)
{
    if (encoder->side == NULL)
        return;
    dt_bpe_encoder_close(encoder->bpe);
    dt_strbuf_release(&encoder->pieces);
    *encoder = (dt_side_encoder){0};
}

dt_status dt_side_encode(dt_ids *out, dt_side_encoder *encoder, const char *text, size_t length,
                         dt_error *err)
{
    const dt_side *side = encoder->side;
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_check_text(text, length, err));
    if (side->bpe != NULL) {
        DT_TRY(dt_bpe_encode(out, encoder->bpe, text, length, err));
    } else if (side->has_codes) {
        dt_strbuf_reset(&encoder->pieces);
        DT_TRY(dt_codes_apply(&encoder->pieces, &side->codes, text, length, err));
        DT_TRY(dt_dictionary_encode(out, &side->dictionary, encoder->pieces.data,
                                    encoder->pieces.length, err));
    } else {
        DT_TRY(dt_dictionary_encode(out, &side->dictionary, text, length, err));
    }
    DT_TRY(dt_ids_add(out, side->end, err));
out:
    return st;
}

void dt_side_decode(dt_strbuf *out, const dt_side *side, int32_t id)
{
    if (id == side->end || id == side->pad)
        return;
    if (side->bpe != NULL)
        dt_bpe_decode(out, side->bpe, id);
    else
        dt_dictionary_decode(out, &side->dictionary, id);
}
