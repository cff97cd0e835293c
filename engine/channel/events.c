/* events: implements events.h. */
#include "engine/channel/events.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "engine/channel/activity.h"

/* --- the request to end early */

void dt_stop_block(void)
{
    sigset_t stop;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &stop, NULL);
}

bool dt_stop_asked(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, SIGTERM) == 1;
}

/* --- the channel. It has two locks. `write_lock` keeps lines intact. `lock` guards the answers: the reader
 * thread stores them, a waiting rendezvous removes its own */

#define STOP_LOOK_SECONDS 0.2 /* interval of checks for a stop during a rendezvous */

struct dt_events {
    int64_t rank, world_size;
    int channel; /* file descriptor; -1: events go to stdout */
    int wake[2]; /* a pipe, written once to end the reader thread */
    pthread_t reader;
    bool reading;
    pthread_mutex_t write_lock;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    json_t *answers; /* rendezvous name → values received */
};

/* --- commands from the agent */

static void take_command(dt_events *events, const char *line, size_t length)
{
    dt_error err = DT_ERROR_INIT;
    json_t *object = NULL, *values;
    const char *command, *name;

    if (dt_json_parse(&object, line, length, "channel", &err) != DT_OK ||
        dt_json_get_string(&command, object, "command", "channel", &err) != DT_OK) {
        dt_log_error("ignored a line of %zu bytes from the agent: %s", length, err.message);
    } else if (strcmp(command, "where") == 0) {
        (void)dt_events_send(events, dt_activity_report(),
                             NULL); /* the reading thread notices a lost channel */
    } else if (strcmp(command, "rendezvous") != 0) {
        dt_log_error("ignored an unknown command '%.64s' from the agent", command);
    } else if (dt_json_get_string(&name, object, "name", "channel", &err) != DT_OK ||
               dt_json_get_array(&values, object, "values", "channel", &err) != DT_OK) {
        dt_log_error("ignored a rendezvous from the agent: %s", err.message);
    } else {
        /* Release the object before the lock: after that the waiter owns the values alone. */
        pthread_mutex_lock(&events->lock);
        json_object_set(events->answers, name, values);
        json_decref(object);
        object = NULL;
        pthread_cond_broadcast(&events->answered);
        pthread_mutex_unlock(&events->lock);
    }
    json_decref(object);
}

/* Process and remove every complete line in `text`. A line that exceeds the limit is dropped up to
 * its end; *skipping: we are inside such a line. */
static void take_lines(dt_events *events, dt_strbuf *text, bool *skipping)
{
    char *end;

    while ((end = memchr(text->data, '\n', text->length)) != NULL) {
        if (!*skipping && end > text->data)
            take_command(events, text->data, (size_t)(end - text->data));
        *skipping = false;
        dt_strbuf_remove_front(text, (size_t)(end - text->data) + 1);
    }
    if (text->length > DT_EVENT_MAX_BYTES) {
        if (!*skipping)
            dt_log_error("ignored a line of more than %d bytes from the agent", DT_EVENT_MAX_BYTES);
        *skipping = true;
        dt_strbuf_reset(text);
    }
}

static void *read_commands(void *self)
{
    dt_events *events = self;
    struct pollfd wait[2] = {{events->channel, POLLIN, 0}, {events->wake[0], POLLIN, 0}};
    bool skipping = false;
    char chunk[4096];
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (;;) {
        ssize_t got;

        if (poll(wait, 2, -1) < 0) {
            if (errno == EINTR)
                continue;
            break;
        }
        if (wait[1].revents != 0)
            break;
        got = recv(events->channel, chunk, sizeof(chunk), 0);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0) {
            dt_log_error(
                "the agent closed the channel: rank %lld stops, because no agent supervises it",
                (long long)events->rank);
            _exit(1);
        }
        dt_strbuf_add(&text, chunk, (size_t)got);
        take_lines(events, &text, &skipping);
    }
    dt_strbuf_release(&text);
    return NULL;
}

/* --- opening and closing */

static dt_status find_channel(int *out, int64_t rank, int64_t world_size, dt_error *err)
{
    const char *text = getenv("DTRUN_CHANNEL");
    struct stat info;
    char *end;
    long number;

    *out = -1;
    if (text == NULL || text[0] == '\0') {
        if (world_size > 1)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "rank %lld of %lld has no channel: DTRUN_CHANNEL is not set (start the "
                           "ranks through 'dtrun launch')",
                           (long long)rank, (long long)world_size);
        return DT_OK;
    }
    errno = 0;
    number = strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || number < 0 || number > 1 << 20 ||
        fstat((int)number, &info) != 0 || !S_ISSOCK(info.st_mode))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "DTRUN_CHANNEL is '%s': expected the file descriptor of an inherited socket",
                       text);
    *out = (int)number;
    return DT_OK;
}

dt_status dt_events_open(dt_events **out, int64_t rank, int64_t world_size, dt_error *err)
{
    dt_status st = DT_OK;
    pthread_condattr_t monotonic;
    dt_events *events;
    int failed;

    *out = NULL;
    events = calloc(1, sizeof(*events));
    if (events == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the channel to the agent");
    events->rank = rank;
    events->world_size = world_size;
    events->channel = events->wake[0] = events->wake[1] = -1;
    events->answers = json_object();
    pthread_mutex_init(&events->write_lock, NULL);
    pthread_mutex_init(&events->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&events->answered, &monotonic);
    pthread_condattr_destroy(&monotonic);

    DT_TRY(find_channel(&events->channel, rank, world_size, err));
    if (events->channel >= 0) {
        fcntl(events->channel, F_SETFD, FD_CLOEXEC);
        if (pipe2(events->wake, O_CLOEXEC) != 0)
            DT_THROW(err, DT_ERR_IO, "cannot make a pipe: %s", strerror(errno));
        failed = pthread_create(&events->reader, NULL, read_commands, events);
        if (failed != 0)
            DT_THROW(err, DT_ERR_IO, "cannot start the thread that reads the channel: %s",
                     strerror(failed));
        events->reading = true;
    }
    *out = events;
    events = NULL;
out:
    dt_events_close(events);
    return st;
}

void dt_events_close(dt_events *events)
{
    if (events == NULL)
        return;
    if (events->reading) {
        while (write(events->wake[1], "", 1) < 0 && errno == EINTR)
            ;
        pthread_join(events->reader, NULL);
    }
    for (int i = 0; i < 2; i++)
        if (events->wake[i] >= 0)
            close(events->wake[i]);
    if (events->channel >= 0)
        close(events->channel);
    pthread_cond_destroy(&events->answered);
    pthread_mutex_destroy(&events->lock);
    pthread_mutex_destroy(&events->write_lock);
    json_decref(events->answers);
    free(events);
}

/* --- sending */

static dt_status write_line(dt_events *events, const char *line, size_t length, dt_error *err)
{
    if (events->channel < 0)
        return dt_file_write_all(STDOUT_FILENO, line, length, err);
    while (length > 0) {
        ssize_t put = send(events->channel, line, length, MSG_NOSIGNAL);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return DT_FAIL(err, DT_ERR_PEER, "lost the channel to the agent: %s", strerror(errno));
        line += put;
        length -= (size_t)put;
    }
    return DT_OK;
}

dt_status dt_events_send(dt_events *events, json_t *object, dt_error *err)
{
    dt_status st;
    dt_strbuf line;

    DT_ASSERT(json_is_string(json_object_get(object, "event")));
    dt_strbuf_init(&line);
    dt_json_write(&line, object);
    dt_strbuf_add_char(&line, '\n');
    if (line.length > DT_EVENT_MAX_BYTES) {
        st = DT_FAIL(err, DT_ERR_UNSUPPORTED, "event '%s' has %zu bytes; the limit is %d",
                     json_string_value(json_object_get(object, "event")), line.length,
                     DT_EVENT_MAX_BYTES);
    } else {
        pthread_mutex_lock(&events->write_lock);
        st = write_line(events, line.data, line.length, err);
        pthread_mutex_unlock(&events->write_lock);
    }
    dt_strbuf_release(&line);
    json_decref(object);
    return st;
}

/* --- rendezvous */

static json_t *hex_of(const unsigned char *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    dt_strbuf text;
    json_t *out;

    dt_strbuf_init(&text);
    for (size_t i = 0; i < length; i++) {
        dt_strbuf_add_char(&text, digits[bytes[i] >> 4]);
        dt_strbuf_add_char(&text, digits[bytes[i] & 15]);
    }
    out = json_stringn(text.data, text.length);
    dt_strbuf_release(&text);
    return out;
}

static dt_status check_values(const json_t *values, int64_t world_size, const char *name,
                              dt_error *err)
{
    const json_t *value;
    size_t rank;

    if (json_array_size(values) != (size_t)world_size)
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "rendezvous '%s': expected %lld values from the agent, got %zu", name,
                       (long long)world_size, json_array_size(values));
    json_array_foreach(values, rank, value) {
        size_t length = json_string_length(value);

        if (!json_is_string(value) || length % 2 != 0 ||
            strspn(json_string_value(value), "0123456789abcdef") != length)
            return DT_FAIL(err, DT_ERR_CORRUPT,
                           "rendezvous '%s': the value of rank %zu is not a hex string", name,
                           rank);
    }
    return DT_OK;
}

static void at_seconds(struct timespec *out, double seconds)
{
    out->tv_sec = (time_t)seconds;
    out->tv_nsec = (long)((seconds - (double)out->tv_sec) * 1e9);
}

/* Wait for the answer, and remove it. New reference; NULL on timeout or if the rank is asked to
 * stop. */
static json_t *wait_for_answer(dt_events *events, const char *name, double timeout_seconds)
{
    double now = dt_clock_monotonic_seconds(), until = now + timeout_seconds;
    json_t *values;

    pthread_mutex_lock(&events->lock);
    while ((values = json_object_get(events->answers, name)) == NULL && now < until &&
           !dt_stop_asked()) {
        struct timespec next;

        at_seconds(&next, now + STOP_LOOK_SECONDS < until ? now + STOP_LOOK_SECONDS : until);
        (void)pthread_cond_timedwait(&events->answered, &events->lock, &next);
        now = dt_clock_monotonic_seconds();
    }
    json_incref(values);
    if (values != NULL)
        json_object_del(events->answers, name);
    pthread_mutex_unlock(&events->lock);
    return values;
}

dt_status dt_events_rendezvous(dt_events *events, const char *name, const void *value,
                               size_t value_bytes, double timeout_seconds, json_t **values,
                               dt_error *err)
{
    dt_status st = DT_OK;
    json_t *mine = hex_of(value, value_bytes), *all = NULL;

    *values = NULL;
    if (events->channel < 0) {
        all = json_pack("[O]", mine);
    } else {
        DT_TRY(dt_events_send(
            events,
            json_pack("{s:s, s:s, s:O}", "event", "rendezvous", "name", name, "value", mine), err));
        all = wait_for_answer(events, name, timeout_seconds);
        if (all == NULL && dt_stop_asked())
            DT_THROW(err, DT_ERR_TIMEOUT, "rendezvous '%s': interrupted by a stop request", name);
        if (all == NULL)
            DT_THROW(err, DT_ERR_TIMEOUT,
                     "rendezvous '%s': rank %lld waited %g seconds for the other %lld rank(s)",
                     name, (long long)events->rank, timeout_seconds,
                     (long long)(events->world_size - 1));
        DT_TRY(check_values(all, events->world_size, name, err));
    }
    *values = all;
    all = NULL;
out:
    json_decref(all);
    json_decref(mine);
    return st;
}
