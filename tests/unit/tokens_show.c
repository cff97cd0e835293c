/* tokens_show TOKENIZER: reads texts from stdin (each a uint32 with its bytes, then the text), and writes their ids to
 * stdout (each a uint32 with their number, then the ids as int32).
 * tokens_show TOKENIZER TEXTS THREADS ROUNDS: encodes the texts of a file of that form, and prints for each round: tokens,
 * seconds, processor seconds. In each round every thread begins with an empty cache. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "engine/tokens/bpe.h"

#define MAX_TEXT_BYTES ((size_t)4 << 30)
#define MOST_THREADS   1024

static dt_status serve(const dt_bpe *bpe, dt_error *err)
{
    dt_bpe_encoder *encoder = NULL;
    dt_status st = DT_OK;
    uint32_t length, count;
    dt_ids ids = {0};
    char *text = NULL;

    DT_TRY(dt_bpe_encoder_open(&encoder, bpe, err));
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
    dt_bpe_encoder_close(encoder);
    return st;
}

/* --- the measurement */

typedef struct text_queue {
    const dt_bpe *bpe;
    const dt_strbuf *texts;
    pthread_mutex_t mutex;
    size_t at; /* the next text that no thread has taken */
    size_t tokens;
    dt_status st;
} text_queue;

/* Takes the next text; NULL: there is none. */
static const char *take(text_queue *queue, uint32_t *length)
{
    const char *taken = NULL;

    pthread_mutex_lock(&queue->mutex);
    if (queue->at + sizeof(*length) <= queue->texts->length) {
        memcpy(length, queue->texts->data + queue->at, sizeof(*length));
        taken = queue->texts->data + queue->at + sizeof(*length);
        queue->at += sizeof(*length) + *length;
    }
    pthread_mutex_unlock(&queue->mutex);
    return taken;
}

static void *encode_texts(void *context)
{
    dt_bpe_encoder *encoder = NULL;
    dt_status st = DT_OK;
    text_queue *queue = context;
    size_t tokens = 0;
    dt_ids ids = {0};
    const char *text;
    uint32_t length;

    DT_TRY(dt_bpe_encoder_open(&encoder, queue->bpe, NULL));
    while ((text = take(queue, &length)) != NULL) {
        ids.count = 0;
        DT_TRY(dt_bpe_encode(&ids, encoder, text, length, NULL));
        tokens += ids.count;
    }
out:
    dt_bpe_encoder_close(encoder);
    dt_ids_release(&ids);
    pthread_mutex_lock(&queue->mutex);
    queue->tokens += tokens;
    if (st != DT_OK)
        queue->st = st;
    pthread_mutex_unlock(&queue->mutex);
    return NULL;
}

static double seconds_of(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static dt_status measure(const dt_bpe *bpe, const dt_strbuf *texts, int threads, dt_error *err)
{
    text_queue queue = {.bpe = bpe, .texts = texts, .mutex = PTHREAD_MUTEX_INITIALIZER};
    double begun = seconds_of(CLOCK_MONOTONIC), used = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    pthread_t started[MOST_THREADS];
    int count = 0;

    while (count < threads && count < MOST_THREADS &&
           pthread_create(&started[count], NULL, encode_texts, &queue) == 0)
        count++;
    for (int i = 0; i < count; i++)
        pthread_join(started[i], NULL);
    if (count < threads || queue.st != DT_OK)
        return DT_FAIL(err, DT_ERR_IO, "%d of %d threads started, status %d", count, threads,
                       (int)queue.st);
    printf("%zu %.4f %.4f\n", queue.tokens, seconds_of(CLOCK_MONOTONIC) - begun,
           seconds_of(CLOCK_PROCESS_CPUTIME_ID) - used);
    return DT_OK;
}

static dt_status run(int argc, char **argv, dt_error *err)
{
    dt_strbuf file, texts;
    dt_status st = DT_OK;
    dt_bpe *bpe = NULL;

    dt_strbuf_init(&file);
    dt_strbuf_init(&texts);
    DT_TRY(dt_file_read(&file, argv[1], DT_BPE_MAX_BYTES, err));
    DT_TRY(dt_bpe_parse(&bpe, file.data, file.length, argv[1], err));
    if (argc > 2)
        DT_TRY(dt_file_read(&texts, argv[2], MAX_TEXT_BYTES, err));
    else
        DT_TRY(serve(bpe, err));
    for (int i = 0; argc > 2 && i < (int)strtol(argv[4], NULL, 10); i++)
        DT_TRY(measure(bpe, &texts, (int)strtol(argv[3], NULL, 10), err));
out:
    dt_bpe_free(bpe);
    dt_strbuf_release(&file);
    dt_strbuf_release(&texts);
    return st;
}

int main(int argc, char **argv)
{
    dt_error err = DT_ERROR_INIT;

    if (argc != 2 && argc != 5)
        return 2;
    if (run(argc, argv, &err) == DT_OK)
        return 0;
    fprintf(stderr, "tokens_show: %s\n", err.message);
    return 1;
}
