/* tokens_show TOKENIZER: reads texts from stdin (each a uint32 with its bytes, then the text), and writes their ids to
 * stdout (each a uint32 with their number, then the ids as int32).
 * tokens_show TOKENIZER FILE: measures how fast a file becomes tokens on one core, in processor time. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "engine/tokens/bpe.h"

#define MAX_TEXT_BYTES ((size_t)4 << 30)

static dt_status serve(dt_bpe_encoder *encoder, dt_error *err)
{
    dt_status st = DT_OK;
    uint32_t length, count;
    dt_ids ids = {0};
    char *text = NULL;

    while (fread(&length, sizeof(length), 1, stdin) == 1) {
        text = realloc(text, (size_t)length + 1);
        if (text == NULL || fread(text, 1, length, stdin) != length)
            DT_THROW(err, DT_ERR_IO, "a text is cut off");
        ids.count = 0;
        DT_TRY(dt_bpe_encode(&ids, encoder, text, length, err));
        count = (uint32_t)ids.count;
        fwrite(&count, sizeof(count), 1, stdout);
        fwrite(ids.items, sizeof(ids.items[0]), count, stdout);
        fflush(stdout);
    }
out:
    free(text);
    dt_ids_release(&ids);
    return st;
}

/* Each time with a new encoder, whose cache is empty. */
static dt_status measure(const dt_bpe *bpe, const char *path, dt_error *err)
{
    dt_bpe_encoder *encoder = NULL;
    dt_status st = DT_OK;
    dt_strbuf text;
    dt_ids ids = {0};
    double best = 0;

    dt_strbuf_init(&text);
    DT_TRY(dt_file_read(&text, path, MAX_TEXT_BYTES, err));
    for (int i = 0; i < 5; i++) {
        clock_t start = clock();
        double seconds;

        ids.count = 0;
        dt_bpe_encoder_close(encoder);
        DT_TRY(dt_bpe_encoder_open(&encoder, bpe, err));
        DT_TRY(dt_bpe_encode(&ids, encoder, text.data, text.length, err));
        seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (best == 0 || seconds < best)
            best = seconds;
    }
    printf("%zu bytes, %zu tokens, %.1f MB/s\n", text.length, ids.count,
           (double)text.length / best / 1e6);
out:
    dt_bpe_encoder_close(encoder);
    dt_strbuf_release(&text);
    dt_ids_release(&ids);
    return st;
}

static dt_status run(int argc, char **argv, dt_error *err)
{
    dt_bpe_encoder *encoder = NULL;
    dt_bpe *bpe = NULL;
    dt_status st = DT_OK;
    dt_strbuf file;

    dt_strbuf_init(&file);
    DT_TRY(dt_file_read(&file, argv[1], DT_BPE_MAX_BYTES, err));
    DT_TRY(dt_bpe_parse(&bpe, file.data, file.length, argv[1], err));
    DT_TRY(dt_bpe_encoder_open(&encoder, bpe, err));
    DT_TRY(argc > 2 ? measure(bpe, argv[2], err) : serve(encoder, err));
out:
    dt_bpe_encoder_close(encoder);
    dt_bpe_free(bpe);
    dt_strbuf_release(&file);
    return st;
}

int main(int argc, char **argv)
{
    dt_error err = DT_ERROR_INIT;

    if (argc < 2)
        return 2;
    if (run(argc, argv, &err) == DT_OK)
        return 0;
    fprintf(stderr, "tokens_show: %s\n", err.message);
    return 1;
}
