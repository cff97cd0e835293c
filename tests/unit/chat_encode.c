/* chat_encode: FOLDER TEMPLATE: encodes the conversations of stdin, one a line, with the tokenizer and the special
 * tokens of a folder, and writes an object for each: text, ids, ends, trained, generated, and counts; or error. TEMPLATE
 * "-": that of the folder. "prompt": true on a line adds the prompt for an answer. For comparisons with transformers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "engine/chat/chat.h"

static json_t *numbers(const uint8_t *values, size_t count)
{
    json_t *made = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(made, json_integer(values[i]));
    return made;
}

static json_t *show(const dt_chat_row *row)
{
    json_t *made = json_object(), *ids = json_array(), *ends = json_array(), *runs = json_array();

    for (size_t i = 0; i < row->count; i++) {
        json_array_append_new(ids, json_integer(row->ids[i]));
        json_array_append_new(ends, json_integer(row->ends[i]));
    }
    for (size_t i = 0; i < row->run_count; i++)
        json_array_append_new(runs, json_pack("[iisb]", (int)row->runs[i].end, row->runs[i].message,
                                              dt_chat_field_name(row->runs[i].field),
                                              row->runs[i].trained));
    json_object_set_new(made, "text", json_stringn(row->text, row->length));
    json_object_set_new(made, "ids", ids);
    json_object_set_new(made, "ends", ends);
    json_object_set_new(made, "runs", runs);
    json_object_set_new(made, "trained", numbers(row->trained, row->count));
    if (row->generated != NULL)
        json_object_set_new(made, "generated", numbers(row->generated, row->count));
    json_object_set_new(made, "dropped", json_integer((json_int_t)row->dropped_bytes));
    json_object_set_new(made, "endless", json_integer((json_int_t)row->endless));
    return made;
}

static int run(const dt_chat *chat, bool quiet, dt_error *err)
{
    dt_chat_encoder *encoder = NULL;
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    if (dt_chat_encoder_open(&encoder, chat, err) != DT_OK)
        return 1;
    while ((length = getline(&line, &room, stdin)) > 0) {
        json_t *json = NULL, *made;
        dt_error why = DT_ERROR_INIT;
        dt_chat_options options = {.unchecked = quiet};
        dt_chat_row row;
        dt_strbuf text;

        if (dt_json_parse_with_nul(&json, line, (size_t)length, "stdin", err) != DT_OK)
            return 1;
        options.prompts = json_is_true(json_object_get(json, "prompt"));
        (void)json_object_del(json, "prompt");
        made = dt_chat_encode(&row, encoder, json, &options, &arena, &why) == DT_OK
                   ? show(&row)
                   : json_pack("{ss}", "error", why.message);
        dt_strbuf_init(&text);
        dt_json_write(&text, made);
        puts(text.data);
        dt_strbuf_release(&text);
        json_decref(made);
        json_decref(json);
        dt_arena_reset(&arena);
    }
    dt_chat_encoder_close(encoder);
    dt_arena_release(&arena);
    free(line);
    return 0;
}

int main(int argc, char **argv)
{
    dt_error err = DT_ERROR_INIT;
    dt_chat_source source;
    dt_bpe *bpe = NULL;
    dt_chat *chat = NULL;
    char path[4096];
    dt_strbuf file;
    int rc = 1;

    if (argc < 3)
        return 2;
    dt_strbuf_init(&file);
    snprintf(path, sizeof(path), "%s/tokenizer.json", argv[1]);
    source = (dt_chat_source){
        .folder = argv[1], .file = strcmp(argv[2], "-") == 0 ? NULL : argv[2], .now = 1764331200};
    if (dt_file_read(&file, path, DT_BPE_MAX_BYTES, &err) == DT_OK &&
        dt_bpe_parse(&bpe, file.data, file.length, path, &err) == DT_OK &&
        dt_chat_open(&chat, &source, bpe, &err) == DT_OK)
        rc = run(chat, argc > 3 && strcmp(argv[3], "unchecked") == 0, &err);
    if (rc != 0)
        fprintf(stderr, "%s\n", err.message);
    dt_chat_free(chat);
    dt_bpe_free(bpe);
    dt_strbuf_release(&file);
    return rc;
}
