#include "tests/dist/ranks.h"

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/strbuf.h"

typedef struct agent {
    ranks *ranks;
    double start;
    int mine[RANKS_MAX], theirs[RANKS_MAX]; /* ends of the channels; -1: closed */
    dt_strbuf text[RANKS_MAX];
    json_t *meetings; /* name → values by rank, null for those that have not arrived */
    int running;
} agent;

static void be_rank(agent *a, int rank)
{
    char number[16];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int other = 0; other < a->ranks->world_size; other++) {
        close(a->mine[other]);
        if (other != rank)
            close(a->theirs[other]);
    }
    snprintf(number, sizeof(number), "%d", a->theirs[rank]);
    setenv("DTRUN_CHANNEL", number, 1);
    snprintf(number, sizeof(number), "%d", rank);
    setenv("RANK", number, 1);
    snprintf(number, sizeof(number), "%d", a->ranks->world_size);
    setenv("WORLD_SIZE", number, 1);
    exit(a->ranks->body(rank, a->ranks->self));
}

/* Once the last value has arrived, every rank gets all of them. */
static void meet(agent *a, int rank, const char *name, json_t *value)
{
    json_t *values = json_object_get(a->meetings, name), *answer, *each;
    size_t at;
    dt_strbuf line;

    if (values == NULL) {
        values = json_array();
        for (int i = 0; i < a->ranks->world_size; i++)
            json_array_append_new(values, json_null());
        json_object_set_new(a->meetings, name, values);
    }
    json_array_set(values, (size_t)rank, value);
    json_array_foreach(values, at, each) {
        if (json_is_null(each))
            return;
    }
    answer = json_pack("{s:s, s:s, s:O}", "command", "rendezvous", "name", name, "values", values);
    dt_strbuf_init(&line);
    dt_json_write(&line, answer);
    dt_strbuf_add_char(&line, '\n');
    for (int i = 0; i < a->ranks->world_size; i++)
        if (a->mine[i] >= 0 && send(a->mine[i], line.data, line.length, MSG_NOSIGNAL) < 0)
            fprintf(stderr, "ranks: rank %d does not take its rendezvous\n", i);
    dt_strbuf_release(&line);
    json_decref(answer);
    json_object_del(a->meetings, name);
}

static void take_line(agent *a, int rank, const char *line)
{
    json_t *object = json_loads(line, 0, NULL);
    const char *event = json_string_value(json_object_get(object, "event"));
    const char *name = json_string_value(json_object_get(object, "name"));

    if (event != NULL && name != NULL && strcmp(event, "rendezvous") == 0)
        meet(a, rank, name, json_object_get(object, "value"));
    else if (a->ranks->on_line != NULL)
        a->ranks->on_line(a->ranks, rank, line);
    json_decref(object);
}

static void take_bytes(agent *a, int rank)
{
    char chunk[65536], *end;
    ssize_t got = recv(a->mine[rank], chunk, sizeof(chunk), 0);
    dt_strbuf *text = &a->text[rank];

    if (got <= 0) {
        close(a->mine[rank]);
        a->mine[rank] = -1;
        return;
    }
    dt_strbuf_add(text, chunk, (size_t)got);
    while ((end = memchr(text->data, '\n', text->length)) != NULL) {
        *end = '\0';
        take_line(a, rank, text->data);
        dt_strbuf_remove_front(text, (size_t)(end - text->data) + 1);
    }
}

static void take_exits(agent *a)
{
    for (int rank = 0; rank < a->ranks->world_size; rank++) {
        int status;

        if (a->ranks->code[rank] >= 0 || waitpid(a->ranks->pid[rank], &status, WNOHANG) <= 0)
            continue;
        a->ranks->code[rank] = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        a->ranks->ended_seconds[rank] = dt_clock_monotonic_seconds() - a->start;
        a->running--;
    }
}

static bool any_channel_open(const agent *a)
{
    for (int rank = 0; rank < a->ranks->world_size; rank++)
        if (a->mine[rank] >= 0)
            return true;
    return false;
}

static void serve(agent *a)
{
    while (a->running > 0 || any_channel_open(a)) {
        struct pollfd wait[RANKS_MAX];

        for (int rank = 0; rank < a->ranks->world_size; rank++)
            wait[rank] = (struct pollfd){a->mine[rank], POLLIN, 0};
        poll(wait, (nfds_t)a->ranks->world_size, 20);
        for (int rank = 0; rank < a->ranks->world_size; rank++)
            if (a->mine[rank] >= 0 && wait[rank].revents != 0)
                take_bytes(a, rank);
        take_exits(a);
        if (!a->ranks->timed_out &&
            dt_clock_monotonic_seconds() - a->start > a->ranks->timeout_seconds) {
            a->ranks->timed_out = true;
            for (int rank = 0; rank < a->ranks->world_size; rank++)
                if (a->ranks->code[rank] < 0)
                    kill(a->ranks->pid[rank], SIGKILL);
        }
    }
}

int ranks_run(ranks *all)
{
    agent a = {.ranks = all, .start = dt_clock_monotonic_seconds()};
    int worst = 0;

    DT_ASSERT(all->world_size >= 1 && all->world_size <= RANKS_MAX);
    all->timed_out = false;
    a.meetings = json_object();
    fflush(NULL);
    for (int rank = 0; rank < all->world_size; rank++) {
        int ends[2];

        DT_ASSERT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        a.mine[rank] = ends[0];
        a.theirs[rank] = ends[1];
        dt_strbuf_init(&a.text[rank]);
    }
    for (int rank = 0; rank < all->world_size; rank++) {
        all->code[rank] = -1;
        all->pid[rank] = fork();
        DT_ASSERT(all->pid[rank] >= 0);
        if (all->pid[rank] == 0)
            be_rank(&a, rank);
        a.running++;
    }
    for (int rank = 0; rank < all->world_size; rank++)
        close(a.theirs[rank]);
    serve(&a);
    for (int rank = 0; rank < all->world_size; rank++) {
        dt_strbuf_release(&a.text[rank]);
        if (all->code[rank] > worst)
            worst = all->code[rank];
    }
    json_decref(a.meetings);
    return all->timed_out ? 124 : worst;
}
