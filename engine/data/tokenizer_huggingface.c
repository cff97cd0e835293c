/* tokenizer_huggingface: writes character and byte tokenizers as a tokenizer.json for Hugging
 * Face's libraries. */
#include "base/display.h"
#include "engine/data/data_int.h"
#include "engine/tokens/bpe.h"

enum { UTF8_MOST = 4 };

/* Append a token as a JSON key with its id. Not through jansson, which does not allow U+0000 in a
 * key. */
static void add_token(dt_strbuf *out, uint32_t code, int64_t id)
{
    char text[UTF8_MOST];
    json_t *name = json_stringn(text, dt_utf8_encode(text, code));

    DT_ASSERT(name != NULL);
    dt_strbuf_add_str(out, id > 0 ? ", " : "");
    dt_json_write(out, name);
    dt_strbuf_add_fmt(out, ": %lld", (long long)id);
    json_decref(name);
}

/* Write a WordLevel model with one word per character. Its "unk_token" is not in the vocabulary, so
 * that encoding an unknown character fails. */
static void add_characters(dt_strbuf *out, const dt_tokenizer *tokenizer)
{
    dt_strbuf_add_str(out,
                      "  \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": "
                      "\"[\\\\s\\\\S]\"}, \"behavior\": \"Isolated\", \"invert\": false},\n"
                      "  \"post_processor\": null,\n"
                      "  \"decoder\": {\"type\": \"Fuse\"},\n"
                      "  \"model\": {\"type\": \"WordLevel\", \"unk_token\": \"\", \"vocab\": {");
    for (int64_t i = 0; i < tokenizer->vocab; i++)
        add_token(out, tokenizer->characters[i], i);
    dt_strbuf_add_str(out, "}}\n");
}

static void add_bytes(dt_strbuf *out)
{
    dt_strbuf_add_str(
        out,
        "  \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
        "\"trim_offsets\": true, \"use_regex\": false},\n"
        "  \"post_processor\": null,\n"
        "  \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": "
        "true, \"use_regex\": false},\n"
        "  \"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "
        "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, \"fuse_unk\": false, "
        "\"byte_fallback\": false, \"vocab\": {");
    for (int byte = 0; byte < 256; byte++)
        add_token(out, dt_byte_map_code((unsigned char)byte), byte);
    dt_strbuf_add_str(out, "}, \"merges\": []}\n");
}

bool dt_tokenizer_to_huggingface(dt_strbuf *out, const dt_tokenizer *tokenizer)
{
    if (tokenizer->kind != DT_TOKENIZER_CHAR && tokenizer->kind != DT_TOKENIZER_BYTE)
        return false;
    dt_strbuf_add_str(out, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": "
                           "null,\n  \"added_tokens\": [],\n  \"normalizer\": null,\n");
    if (tokenizer->kind == DT_TOKENIZER_CHAR)
        add_characters(out, tokenizer);
    else
        add_bytes(out);
    dt_strbuf_add_str(out, "}\n");
    return true;
}
