#include "runner/supervisor/supervisor.h"

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"

#define TRIES           6
#define CONNECT_SECONDS 5L
#define TRY_SECONDS     15L
#define PAUSE_SECONDS   2.0 /* pause before the second try; doubles for each further try */
#define WAKE_NS         ((uint64_t)100 * 1000 * 1000)

typedef struct news {
    struct news *next;
    char *url, *body;
} news;

struct dt_notifier {
    uv_thread_t thread;
    uv_mutex_t lock; /* guards `first` and `closing` */
    uv_cond_t changed;
    news *first;
    bool closing;
    atomic_bool hurry; /* skip the pauses and abort the current request */
};

/* --- the URL */

dt_status dt_notify_expand(dt_strbuf *out, const char *text, dt_error *err)
{
    dt_status st = dt_env_expand(out, text, err);

    if (st != DT_OK)
        dt_error_prefix(err, "notify.webhook");
    return st;
}

/* --- one try */

static size_t swallow(char *bytes, size_t size, size_t count, void *context)
{
    return size * count;
}

static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    dt_notifier *notifier = context;

    return atomic_load(&notifier->hurry) ? 1 : 0;
}

static void allow_web_only(CURL *curl)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

/* Sends one message. The error buffer of curl may contain the URL, so only its error code is
 * reported. *again: whether to retry. */
static dt_status post(dt_notifier *notifier, const news *item, bool *again, dt_error *err)
{
    struct curl_slist *headers = NULL;
    CURL *curl = curl_easy_init();
    long answer = 0;
    dt_status st;
    dt_strbuf url;
    CURLcode code;

    *again = false;
    dt_strbuf_init(&url);
    DT_TRY(dt_notify_expand(&url, item->url, err));
    headers = curl_slist_append(headers, "Content-Type: application/json");
    if (curl == NULL || headers == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    curl_easy_setopt(curl, CURLOPT_URL, url.data);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, item->body);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "dtrun");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, TRY_SECONDS);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, swallow);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, notifier);
    allow_web_only(curl);
    code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer);
    *again = code != CURLE_OK || answer >= 500 || answer == 408 || answer == 429;
    if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
        *again = false;
    if (code != CURLE_OK)
        DT_THROW(err, DT_ERR_IO, "%s", curl_easy_strerror(code));
    if (answer < 200 || answer >= 300)
        DT_THROW(err, DT_ERR_IO, "HTTP status %ld", answer);
out:
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    explicit_bzero(url.data, url.length);
    dt_strbuf_release(&url);
    return st;
}

/* --- the thread */

static void pause_for(dt_notifier *notifier, double seconds)
{
    double until = dt_clock_monotonic_seconds() + seconds;

    while (!atomic_load(&notifier->hurry) && dt_clock_monotonic_seconds() < until)
        dt_clock_sleep_seconds((double)WAKE_NS / 1e9);
}

static void deliver(dt_notifier *notifier, const news *item)
{
    double pause = PAUSE_SECONDS;
    dt_error err = DT_ERROR_INIT;
    bool again = true;

    for (int i = 0; i < TRIES && again && !atomic_load(&notifier->hurry); i++, pause *= 2) {
        if (i > 0)
            pause_for(notifier, pause);
        dt_error_clear(&err);
        if (post(notifier, item, &again, &err) == DT_OK)
            return;
        dt_log_warn("webhook not delivered, try %d: %s", i + 1, err.message);
    }
    dt_log_error("webhook not delivered, giving up: %s", err.message);
}

static void item_free(news *item)
{
    free(item->url);
    free(item->body);
    free(item);
}

static void send_all(void *context)
{
    dt_notifier *notifier = context;
    news *item;

    uv_mutex_lock(&notifier->lock);
    for (;;) {
        while (notifier->first == NULL && !notifier->closing)
            uv_cond_wait(&notifier->changed, &notifier->lock);
        item = notifier->first;
        if (item == NULL)
            break;
        uv_mutex_unlock(&notifier->lock);
        deliver(notifier, item);
        uv_mutex_lock(&notifier->lock);
        notifier->first = item->next; /* other threads only append */
        item_free(item);
        uv_cond_broadcast(&notifier->changed);
    }
    uv_mutex_unlock(&notifier->lock);
}

/* --- interface */

dt_status dt_notifier_open(dt_notifier **out, dt_error *err)
{
    dt_notifier *notifier = dt_calloc(1, sizeof(*notifier));

    *out = NULL;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(notifier);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for libcurl");
    }
    uv_mutex_init(&notifier->lock);
    uv_cond_init(&notifier->changed);
    atomic_init(&notifier->hurry, false);
    if (uv_thread_create(&notifier->thread, send_all, notifier) != 0) {
        free(notifier);
        return DT_FAIL(err, DT_ERR_IO, "cannot start a thread");
    }
    *out = notifier;
    return DT_OK;
}

void dt_notifier_send(dt_notifier *notifier, const char *url, json_t *message)
{
    news *item = dt_calloc(1, sizeof(*item)), **last = &notifier->first;
    dt_strbuf body;

    dt_strbuf_init(&body);
    dt_json_write(&body, message);
    json_decref(message);
    if (url[0] == '\0') {
        free(item);
        dt_strbuf_release(&body);
        return;
    }
    item->url = dt_strdup(url);
    item->body = dt_strbuf_detach(&body);
    uv_mutex_lock(&notifier->lock);
    while (*last != NULL)
        last = &(*last)->next;
    *last = item;
    uv_cond_broadcast(&notifier->changed);
    uv_mutex_unlock(&notifier->lock);
}

void dt_notifier_close(dt_notifier *notifier, double seconds)
{
    double until = dt_clock_monotonic_seconds() + seconds;

    if (notifier == NULL)
        return;
    uv_mutex_lock(&notifier->lock);
    notifier->closing = true;
    uv_cond_broadcast(&notifier->changed);
    while (notifier->first != NULL && dt_clock_monotonic_seconds() < until)
        uv_cond_timedwait(&notifier->changed, &notifier->lock, WAKE_NS);
    uv_mutex_unlock(&notifier->lock);
    atomic_store(&notifier->hurry, true);
    uv_thread_join(&notifier->thread);
    uv_cond_destroy(&notifier->changed);
    uv_mutex_destroy(&notifier->lock);
    curl_global_cleanup();
    free(notifier);
}
