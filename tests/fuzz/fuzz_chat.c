/* fuzz_chat: any line of a file of conversations, with a template that writes every field. It is refused, or it becomes
 * ids with a mask: the ends of tokens are in order, and what is trained is of an assistant's message.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/display.h"
#include "base/file.h"
#include "engine/chat/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char template[] =
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.name }}"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content | trim }}</think>{% endif %}"
    "{% if m.content is string %}{{ m.content | trim }}{% else %}{% for p in m.content %}{{ p.text "
    "}}"
    "{% endfor %}{% endif %}{% for c in m.tool_calls %}{{ c | tojson }}{% endfor %}<|end|>\n{% "
    "endfor %}"
    "{{ tools }}";
static const char tokenizer[] =
    "{\"version\": \"1.0\", \"added_tokens\": [{\"id\": 300, \"content\": \"<|end|>\", "
    "\"special\": true}, "
    "{\"id\": 301, \"content\": \"<think>\", \"special\": false}], \"pre_tokenizer\": {\"type\": "
    "\"ByteLevel\", "
    "\"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": true}, \"decoder\": "
    "{\"type\": "
    "\"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, \"use_regex\": true}, "
    "\"normalizer\": "
    "{\"type\": \"NFC\"}, \"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": %s}}";

static dt_chat *chat;
static dt_bpe *bpe;
static dt_chat_encoder *encoder;

/* A tokenizer with a token for each byte. */
static void make_tokenizer(void)
{
    dt_error err = DT_ERROR_INIT;
    json_t *vocab = json_object();
    dt_strbuf text;
    char *shown;

    for (int byte = 0; byte < 256; byte++) {
        char utf8[4];
        json_t *key =
            json_stringn(utf8, dt_utf8_encode(utf8, dt_byte_map_code((unsigned char)byte)));

        json_object_set_new(vocab, json_string_value(key), json_integer(byte));
        json_decref(key);
    }
    shown = json_dumps(vocab, 0);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, tokenizer, shown);
    DT_ASSERT(dt_bpe_parse(&bpe, text.data, text.length, "tokenizer.json", &err) == DT_OK);
    dt_strbuf_release(&text);
    free(shown);
    json_decref(vocab);
}

static void close_all(void)
{
    dt_chat_encoder_close(encoder);
    dt_chat_free(chat);
    dt_bpe_free(bpe);
}

static void open_all(void)
{
    char path[] = "/tmp/dtrun-fuzz-XXXXXX";
    dt_chat_source source = {.file = path, .now = 1};
    dt_error err = DT_ERROR_INIT;
    int file = mkstemp(path);

    make_tokenizer();
    DT_ASSERT(file >= 0 && dt_file_write_all(file, template, sizeof(template) - 1, &err) == DT_OK);
    close(file);
    DT_ASSERT(dt_chat_open(&chat, &source, bpe, &err) == DT_OK);
    unlink(path);
    DT_ASSERT(dt_chat_encoder_open(&encoder, chat, &err) == DT_OK);
    atexit(close_all);
}

static void check(const dt_chat_row *row)
{
    size_t at = 0, trained = 0;

    for (size_t i = 0; i < row->run_count; i++) {
        DT_ASSERT(row->runs[i].end > at);
        DT_ASSERT(!row->runs[i].trained ||
                  (row->runs[i].message >= 0 && row->runs[i].field != DT_CHAT_OTHER));
        at = row->runs[i].end;
    }
    DT_ASSERT(at == row->length);
    at = 0;
    for (size_t i = 0; i < row->count; i++) {
        DT_ASSERT(row->ends[i] >= at && row->ends[i] <= row->length);
        DT_ASSERT(row->trained[i] == (row->weights[i] > 0));
        trained += row->trained[i];
        at = row->ends[i];
    }
    DT_ASSERT(trained == row->trained_count && row->dropped_bytes <= row->field_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    json_t *line = json_loadb((const char *)bytes, size, JSON_ALLOW_NUL, NULL);
    dt_error err = DT_ERROR_INIT;
    dt_chat_options options = {
        .unchecked = size % 2 == 1, .continues = size % 3 == 1, .prompts = size % 3 == 2};
    dt_chat_row row;
    dt_arena arena;

    if (chat == NULL)
        open_all();
    if (line == NULL)
        return 0;
    dt_arena_init(&arena, 0);
    if (dt_chat_encode(&row, encoder, line, &options, &arena, &err) == DT_OK)
        check(&row);
    else
        DT_ASSERT(err.message[0] != '\0');
    dt_arena_release(&arena);
    json_decref(line);
    return 0;
}
