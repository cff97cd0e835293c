/* tuned: implements tuned.h. */
#include "engine/ops/cuda/tuned.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"

/* --- what is fastest, in a file */

#define FILE_NAME    "cublaslt-algorithms"
#define FILE_MAX     ((size_t)4 << 20)
#define LINE_BYTES   (DT_TUNED_KEY_MAX + 2 * DT_TUNED_ALGO_MAX + 32)
#define LOCK_TRIES   250
#define LOCK_SECONDS 0.02

struct dt_tuned {
    char path[4096]; /* empty: nothing is stored */
    dt_strbuf text;  /* only valid lines */
    bool told;       /* a problem with the file was logged */
};

static uint64_t sum_of(const char *text, size_t length)
{
    uint64_t sum = 14695981039346656037u;

    for (size_t i = 0; i < length; i++)
        sum = (sum ^ (unsigned char)text[i]) * 1099511628211u;
    return sum;
}

static void tell(dt_tuned *tuned, const char *what)
{
    if (!tuned->told)
        dt_log_warn("tuned algorithms in '%s': %s", tuned->path, what);
    tuned->told = true;
}

/* --- lines */

/* Returns whether a line is valid: key, tab, hex, tab, sum. Gives the hex part in *hex and
 * *hex_length. */
static bool is_line(const char *line, size_t length, const char **hex, size_t *hex_length)
{
    const char *first = memchr(line, '\t', length), *second;
    char sum[17];

    if (length > LINE_BYTES || first == NULL || first == line)
        return false;
    second = memchr(first + 1, '\t', length - (size_t)(first + 1 - line));
    if (second == NULL || length - (size_t)(second + 1 - line) != 16)
        return false;
    *hex = first + 1;
    *hex_length = (size_t)(second - *hex);
    if (*hex_length == 0 || *hex_length % 2 != 0 || *hex_length > 2 * DT_TUNED_ALGO_MAX)
        return false;
    for (size_t i = 0; i < *hex_length; i++)
        if (strchr("0123456789abcdef", (*hex)[i]) == NULL || (*hex)[i] == '\0')
            return false;
    snprintf(sum, sizeof(sum), "%016" PRIx64, sum_of(line, (size_t)(second - line)));
    return memcmp(sum, second + 1, 16) == 0;
}

static unsigned nibble(char digit)
{
    return (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

static bool find_in(const dt_strbuf *text, const char *key, void *algo, size_t bytes)
{
    size_t key_length = strlen(key), left = text->length, hex_length;
    const char *line = text->data, *hex;

    while (left > 0) {
        const char *end = memchr(line, '\n', left);
        size_t length = end != NULL ? (size_t)(end - line) : left;

        if (is_line(line, length, &hex, &hex_length) && (size_t)(hex - line) == key_length + 1 &&
            memcmp(line, key, key_length) == 0 && hex_length == 2 * bytes) {
            for (size_t i = 0; i < bytes; i++)
                ((unsigned char *)algo)[i] =
                    (unsigned char)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
            return true;
        }
        left -= length + (end != NULL);
        line += length + (end != NULL);
    }
    return false;
}

static void add_to(dt_strbuf *text, const char *key, const void *algo, size_t bytes)
{
    size_t start = text->length;

    dt_strbuf_add_fmt(text, "%s\t", key);
    for (size_t i = 0; i < bytes; i++)
        dt_strbuf_add_fmt(text, "%02x", ((const unsigned char *)algo)[i]);
    dt_strbuf_add_fmt(text, "\t%016" PRIx64 "\n", sum_of(text->data + start, text->length - start));
}

/* --- the file */

static void load(dt_tuned *tuned)
{
    dt_error err = DT_ERROR_INIT;
    dt_strbuf raw;
    size_t bad = 0, hex_length;
    const char *line, *hex;

    dt_strbuf_reset(&tuned->text);
    dt_strbuf_init(&raw);
    if (!dt_file_exists(tuned->path)) {
        dt_strbuf_release(&raw);
        return;
    }
    if (dt_file_read(&raw, tuned->path, FILE_MAX, &err) != DT_OK)
        tell(tuned, err.message);
    line = raw.data;
    for (size_t left = raw.length; left > 0;) {
        const char *end = memchr(line, '\n', left);
        size_t length = end != NULL ? (size_t)(end - line) : left;

        if (end != NULL && is_line(line, length, &hex, &hex_length))
            dt_strbuf_add(&tuned->text, line, length + 1);
        else
            bad++;
        left -= length + (end != NULL);
        line += length + (end != NULL);
    }
    dt_strbuf_release(&raw);
    if (bad > 0)
        tell(tuned, "some lines are damaged and ignored");
}

static dt_status lock(int *fd, const char *path, dt_error *err)
{
    char name[sizeof(((dt_tuned *)NULL)->path) + 8];
    dt_status st = DT_ERR_BUSY;

    snprintf(name, sizeof(name), "%s.lock", path);
    for (int i = 0; i < LOCK_TRIES && st == DT_ERR_BUSY; i++) {
        if (i > 0)
            dt_clock_sleep_seconds(LOCK_SECONDS);
        st = dt_file_lock(fd, name, err);
    }
    return st;
}

bool dt_tuned_find(dt_tuned *tuned, const char *key, void *algo, size_t bytes)
{
    return find_in(&tuned->text, key, algo, bytes);
}

void dt_tuned_keep(dt_tuned *tuned, const char *key, void *algo, size_t bytes)
{
    dt_error err = DT_ERROR_INIT;
    dt_status st = DT_OK;
    int fd = -1;

    DT_ASSERT(bytes <= DT_TUNED_ALGO_MAX && strlen(key) < DT_TUNED_KEY_MAX &&
              strpbrk(key, "\t\n") == NULL);
    if (tuned->path[0] == '\0') {
        add_to(&tuned->text, key, algo, bytes);
        return;
    }
    DT_TRY(lock(&fd, tuned->path, &err));
    load(tuned);
    if (find_in(&tuned->text, key, algo, bytes))
        goto out;
    add_to(&tuned->text, key, algo, bytes);
    DT_TRY(dt_file_write_atomic(tuned->path, tuned->text.data, tuned->text.length, 0600, &err));
out:
    if (fd >= 0)
        close(fd);
    if (st != DT_OK)
        tell(tuned, err.message);
}

/* --- opening and closing */

static void find_path(dt_tuned *tuned)
{
    dt_error err = DT_ERROR_INIT;
    const char *directory;
    dt_arena arena;

    dt_arena_init(&arena, 4096);
    if (dt_dir_make(&directory, DT_DIR_CACHE, &arena, &err) == DT_OK)
        snprintf(tuned->path, sizeof(tuned->path), "%s/%s", directory, FILE_NAME);
    else
        tell(tuned, err.message);
    dt_arena_release(&arena);
}

dt_tuned *dt_tuned_open(const char *path)
{
    dt_tuned *tuned = calloc(1, sizeof(*tuned));

    if (tuned == NULL)
        return NULL;
    dt_strbuf_init(&tuned->text);
    if (path != NULL)
        snprintf(tuned->path, sizeof(tuned->path), "%s", path);
    else
        find_path(tuned);
    if (tuned->path[0] != '\0')
        load(tuned);
    return tuned;
}

void dt_tuned_close(dt_tuned *tuned)
{
    if (tuned == NULL)
        return;
    dt_strbuf_release(&tuned->text);
    free(tuned);
}

/* --- the choice between two attention kernels */

/* cuDNN is chosen below this share of the built-in kernel's time; a smaller gain is noise */
#define MARGIN     0.98f
#define SWITCH     "DTRUN_ATTENTION"
#define KEPT_OWN   'o'
#define KEPT_RIVAL 'c'

dt_status dt_attention_wish_read(dt_attention_wish *out, dt_error *err)
{
    static const struct {
        const char *word;
        dt_attention_wish wish;
    } words[] = {{"", DT_ATTENTION_FASTEST}, {"fastest", DT_ATTENTION_FASTEST},
                 {"own", DT_ATTENTION_OWN},  {"cudnn", DT_ATTENTION_CUDNN},
                 {"mma", DT_ATTENTION_MMA},  {"wgmma", DT_ATTENTION_WGMMA}};
    const char *text = getenv(SWITCH);

    *out = DT_ATTENTION_FASTEST;
    if (text == NULL)
        return DT_OK;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(text, words[i].word) == 0) {
            *out = words[i].wish;
            return DT_OK;
        }
    return DT_FAIL(err, DT_ERR_USAGE,
                   "unknown attention '%s' in " SWITCH
                   ": use own, cudnn, mma, wgmma or fastest, or leave it unset",
                   text);
}

/* --- stored choices */

static void write_key(char *out, const dt_attention_question *q)
{
    snprintf(out, DT_TUNED_KEY_MAX, "%s %s %s", q->machine, q->kind, q->name);
}

/* Finds a stored choice; returns whether there is one. Values other than these two, which dtrun
 * never writes, are ignored. */
static bool recall(const dt_attention_question *q, const char *key, bool *taken)
{
    char kept = 0;

    if (!dt_tuned_find(q->tuned, key, &kept, sizeof(kept)))
        return false;
    *taken = kept == KEPT_RIVAL;
    return kept == KEPT_RIVAL || kept == KEPT_OWN;
}

/* Stores a choice. Returns the choice that counts: another process may have stored one since. */
static bool keep(const dt_attention_question *q, const char *key, bool taken)
{
    char kept = taken ? KEPT_RIVAL : KEPT_OWN;

    dt_tuned_keep(q->tuned, key, &kept, sizeof(kept));
    (void)recall(q, key, &taken);
    return taken;
}

/* --- choosing */

static bool refuse(const dt_attention_question *q, const dt_error *err)
{
    dt_log_info("attention of %s: %s; %s is not used: %s", q->name, q->own, q->rival, err->message);
    return false;
}

static bool as_before(const dt_attention_question *q, bool taken)
{
    dt_error err = DT_ERROR_INIT;

    if (!taken) {
        dt_log_info("attention of %s: %s, as chosen before", q->name, q->own);
        return false;
    }
    if (q->build(q->context, &err) != DT_OK) {
        dt_log_warn("attention of %s: %s; %s was chosen before and is not available, so results "
                    "differ by rounding: %s",
                    q->name, q->own, q->rival, err.message);
        return false;
    }
    dt_log_info("attention of %s: forward by %s, as chosen before", q->name, q->rival);
    return true;
}

static bool as_wished(const dt_attention_question *q)
{
    dt_error err = DT_ERROR_INIT;
    float own_ms, rival_ms;

    if (q->build(q->context, &err) != DT_OK ||
        q->measure(q->context, &own_ms, &rival_ms, &err) != DT_OK)
        return refuse(q, &err);
    dt_log_info("attention of %s: forward by %s (" SWITCH "), %.3f ms, %s %.3f", q->name, q->rival,
                (double)rival_ms, q->own, (double)own_ms);
    return true;
}

bool dt_attention_choose(const dt_attention_question *q)
{
    char key[DT_TUNED_KEY_MAX];
    float own_ms = 0, rival_ms = 0;
    dt_error err = DT_ERROR_INIT;
    bool taken = false, kept;

    if (q->forced)
        return as_wished(q);
    write_key(key, q);
    if (recall(q, key, &taken))
        return as_before(q, taken);
    if (q->build(q->context, &err) == DT_OK &&
        q->measure(q->context, &own_ms, &rival_ms, &err) == DT_OK)
        taken = rival_ms < MARGIN * own_ms;
    if (err.code == DT_ERR_NOMEM) /* not stored: memory may suffice next time */
        return refuse(q, &err);
    kept = keep(q, key, taken);
    if (err.code != DT_OK)
        return refuse(q, &err);
    dt_log_info("attention of %s: %s%s; %s %.3f ms, %s %.3f%s", q->name, kept ? "forward by " : "",
                kept ? q->rival : q->own, q->rival, (double)rival_ms, q->own, (double)own_ms,
                kept != taken ? ", as chosen by another rank" : "");
    return kept;
}
